"""Hydra's composition of the project's files, without repeating the steps that depend on choices of components alone.

A composition takes a tenth of a second, and tests make a thousand. What is the same for every command line with the
same choices, the list of files and their merged content, is made once; values are applied to a copy, by Hydra.
"""

import contextlib
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra._internal import config_loader_impl
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.defaults_list import DefaultsList
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, ListConfig, OmegaConf

_ROOT = Path(__file__).parents[1]
_MOST = 100

_list, _merge = config_loader_impl.create_defaults_list, ConfigLoaderImpl._compose_config_from_defaults_list
_store, _load = ConfigStore.store, OmegaConf.load

# A file of the project -> its content, choices -> the list of files, and the identity of a list -> the merged content.
_files = dict[str, DictConfig | ListConfig]()
_lists = dict[tuple, DefaultsList]()
_merged = dict[int, DictConfig]()


def forget() -> None:
    """Compose anew from now on: for other components in Hydra's store."""
    _lists.clear()
    _merged.clear()


@contextlib.contextmanager
def forgotten() -> Iterator[None]:
    """Context manager in which Hydra composes as everywhere else."""
    config_loader_impl.create_defaults_list = _list  # a list that is not known here is merged by Hydra
    try:
        yield
    finally:
        config_loader_impl.create_defaults_list = _create_defaults_list


def _loaded(file: Any) -> DictConfig | ListConfig:
    """``OmegaConf.load``, which takes longer to read a page than to copy its content."""
    name = str(getattr(file, "name", file))
    if not Path(name).is_relative_to(_ROOT):
        return _load(file)
    if name not in _files:
        _files[name] = _load(file)
    return copy.deepcopy(_files[name])


def _is_choice(override: Override, repo) -> bool:
    return repo.group_exists(override.key_or_group) and not isinstance(override.value(), dict)


def _create_defaults_list(repo, config_name, overrides_list, prepend_hydra, skip_missing) -> DefaultsList:
    arguments = repo, config_name, overrides_list, prepend_hydra, skip_missing
    sources = tuple((source.scheme(), source.path) for source in repo.get_sources())
    if any(scheme == "file" and not Path(path).is_relative_to(_ROOT) for scheme, path in sources):
        return _list(*arguments)
    given = [each for each in overrides_list if not each.is_sweep_override()]
    choices = [each for each in given if _is_choice(each, repo)]
    key = sources, config_name, tuple(each.input_line for each in choices), prepend_hydra, skip_missing
    if key not in _lists:
        if len(_lists) >= _MOST:
            forget()
        _lists[key] = _list(repo, config_name, choices, prepend_hydra, skip_missing)
    found = copy.copy(_lists[key])
    found.config_overrides = [each for each in given if each not in choices]
    return found


def _compose(self: ConfigLoaderImpl, defaults, repo) -> DictConfig:
    if not any(known.defaults is defaults for known in _lists.values()):
        return _merge(self, defaults, repo)
    if id(defaults) not in _merged:
        _merged[id(defaults)] = _merge(self, defaults, repo)
    found = copy.deepcopy(_merged[id(defaults)])
    OmegaConf.clear_cache(found)  # of resolvers, such as the time, which the merging of a file may ask for
    return found


def _stored(self: ConfigStore, *args, **kwargs) -> None:
    forget()
    _store(self, *args, **kwargs)


config_loader_impl.create_defaults_list = _create_defaults_list
ConfigLoaderImpl._compose_config_from_defaults_list = _compose
ConfigStore.store = _stored
OmegaConf.load = staticmethod(_loaded)

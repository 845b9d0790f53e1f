"""Checks of configuration files as Hydra reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra._internal.core_plugins import file_config_source
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult
from omegaconf import Container, DictConfig, Node, OmegaConf
from omegaconf.resolvers import oc

from orbit.core.errors import InputError
from runners.config.messages import shown
from runners.config.schema import KINDS, SECTIONS

_load = FileConfigSource.load_config

# Keys by which Hydra and Python's logging build objects, and the files of the project that have them.
_KEYS_OF_CODE = "_target_", "()", "class"
_FILES_THAT_NAME_CODE = "config.yaml", "hydra/job_logging/orbit.yaml"


def check_files(config_dir: Path) -> None:
    """From now on, raise InputError for a file that names code to run, which two files of ``config_dir`` alone may.

    A file from somebody else may choose components and values; Hydra would also build any object that it names.
    """
    own = {(config_dir / name).resolve() for name in _FILES_THAT_NAME_CODE}

    def load_checked(source: FileConfigSource, config_path: str) -> ConfigResult:
        loaded = _load(source, config_path)
        path = Path(source.path, f"{config_path.removesuffix('.yaml')}.yaml").absolute()
        content = OmegaConf.to_container(loaded.config)
        if path.resolve() not in own and (key := _key_of_code(content)) is not None:
            raise InputError(
                f"{path}: the key {key!r} names code to run, which a configuration file must not: remove it"
            )
        if loaded.header["package"] == "_global_" and isinstance(loaded.config, DictConfig):
            _check_sections(path, loaded.config)
        return loaded

    # the method is replaced and not the class, which the workers of a parallel sweep register a second time
    Plugins.instance()  # on its first use Hydra runs the module of the class once more, which makes another class
    file_config_source.FileConfigSource.load_config = load_checked  # type: ignore[assignment, method-assign]
    # these two resolvers would turn a text in a file into a section with any keys
    OmegaConf.register_new_resolver("oc.decode", _decoded, replace=True)
    OmegaConf.clear_resolver("oc.create")


def _check_sections(path: Path, config: DictConfig) -> None:
    """Raise InputError for a value in place of a section, of whose key OmegaConf's error says nothing."""
    sections = [key for key in (*KINDS, *SECTIONS) if key in config and not OmegaConf.is_interpolation(config, key)]
    for key in sections:
        value = config[key]
        if value is not None and not isinstance(value, DictConfig):
            hint = f"; a choice is an entry '- override /{key}: NAME' of the defaults list" if key in KINDS else ""
            raise InputError(f"{path}: {key}: expected settings KEY: VALUE, found {shown(value)}{hint}")


def _decoded(text: str | None, *, _parent_: Container, _node_: Node) -> Any:
    """The number, truth value or text that a text says, for ``${oc.decode:${oc.env:SEED}}``."""
    value = oc.decode(text, _parent_, _node_)
    if isinstance(value, (dict, list)):
        raise InputError(f"oc.decode: expected a number, true, false, null or a text, found {text!r}")
    return value


def _key_of_code(node: Any) -> str | None:
    """The first key in dictionaries and lists by which Hydra or Python's logging builds objects; None without one."""
    if isinstance(node, dict):
        found = next((str(key) for key in node if str(key).strip() in _KEYS_OF_CODE), None)
        return found or _key_of_code([*node.values()])
    parts = map(_key_of_code, node) if isinstance(node, list) else ()
    return next(filter(None, parts), None)

"""The folders of configuration files: the project's own, those of other packages, those added on the command line."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.plugins.search_path_plugin import SearchPathPlugin

from orbit import registry
from orbit.core.errors import InputError

_KEY = "hydra.searchpath"


def own() -> Path:
    """The project's folder ``conf``, which is ``runners/conf`` where the project is installed from a wheel."""
    installed = Path(__file__).resolve().parents[1] / "conf"
    return installed if installed.is_dir() else installed.parents[1] / "conf"


def text_of(file: Path) -> str:
    """The text of a configuration file, without a byte order mark and whatever its encoding."""
    return file.read_text(encoding="utf-8-sig", errors="replace")


def named_yml(group: str, name: str) -> Path | None:
    """The file of a choice that does not exist for Hydra, because its name ends in ``.yml``."""
    folders = (*of_plugins(), *added(sys.argv[1:]))
    return next((path for folder in folders if (path := folder / group / f"{name}.yml").is_file()), None)


def of_plugins() -> list[Path]:
    """The folders ``conf`` beside the modules of other packages that register components.

    A module outside of any package has none: beside it are the files of all packages.
    """
    folders = (_beside(entry.module) for entry in registry.plugins())
    return list(dict.fromkeys(folder for folder in folders if folder is not None and folder.is_dir()))


def _beside(module: str) -> Path | None:
    """The folder of a module, found without importing it, with ``conf``; None for a module outside of any package."""
    package, *names = module.split(".")
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0], *names)
    return (path if path.is_dir() else path.parent) / "conf"


def added(arguments: Sequence[str]) -> list[Path]:
    """The folders that ``--config-dir`` and ``hydra.searchpath`` add.

    Raises
    ------
    InputError
        If a folder of ``hydra.searchpath`` does not exist.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-dir", "-cd", type=Path, nargs="?")  # one without a folder is refused with the rest
    given = parser.parse_known_args(arguments)[0].config_dir
    return [*([] if given is None else [given]), *map(_folder, _search_path(arguments))]


def _search_path(arguments: Sequence[str]) -> list[str]:
    """The folders in ``hydra.searchpath=[...]``; packages, ``pkg://NAME``, are code that the user installed."""
    given = [argument for argument in arguments if argument.lstrip("+").startswith(f"{_KEY}=")]
    values = [override.value() for override in OverridesParser.create().parse_overrides(given)]
    paths = [path for value in values if isinstance(value, list) for path in value]
    return [path for path in paths if isinstance(path, str) and not path.startswith("pkg://")]


def _folder(path: str) -> Path:
    folder = Path(path.removeprefix("file://"))
    if not folder.is_dir():
        raise InputError(f"{_KEY}: expected folders of configuration files, found no folder {path}")
    return folder


class PluginFolders(SearchPathPlugin):
    """Adds the folders of other packages to those that Hydra searches for configuration files."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        for folder in of_plugins():
            search_path.append(provider="orbit", path=f"file://{folder}")

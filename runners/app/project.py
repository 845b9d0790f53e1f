"""``orbit init FOLDER``: writes a package for one's own components, with an example of each kind of file."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import keyword
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from omegaconf import OmegaConf

from orbit.core.errors import InputError
from orbit.core.files import write_whole
from runners.config import config_dirs
from runners.config.program import program

_TEMPLATE = Path(__file__).parent / "new_project"
_NAME = "my_orbit"  # of the package in the template
_FILES = "pyproject.toml", f"{_NAME}/__init__.py", f"{_NAME}/groups.py", f"{_NAME}/conf/experiment/{_NAME}.yaml"
_EXAMPLES = f"test_{_NAME}.py", "explore.ipynb"


def init(arguments: Sequence[str]) -> str:
    """Write the package into a folder, which names it, and return what to do next.

    Parameters
    ----------
    arguments : sequence of str
        The folder, which need not exist; none is the working directory, if nothing but hidden files is in it.

    Raises
    ------
    InputError
        If the folder's name cannot be that of a package, or is that of an experiment of this one, or a file exists or
        cannot be written, or no folder is named and the working directory has files.
    """
    parser = argparse.ArgumentParser(f"{program()} init", description="Write a package for components of your own.")
    parser.add_argument("folder", nargs="?", help="a new or an empty folder, whose name the package gets")
    parser.error = _refuse  # type: ignore[method-assign]  # argparse prints the usage and exits
    given = parser.parse_args(arguments).folder
    if given is None:
        if found := next((path.name for path in sorted(Path().iterdir()) if not path.name.startswith(".")), None):
            raise InputError(f"init: this folder has files ({found}): name a new folder, or . for this one")
        given = "."
    if not given:
        raise InputError("init: expected the name of a folder, found ''")
    folder = Path(given).resolve()
    name = _package_name(folder)
    texts = {
        folder / file.replace(_NAME, name): (_TEMPLATE / file).read_text(encoding="utf-8").replace(_NAME, name)
        for file in (*_FILES, *_EXAMPLES)
    }
    if existing := [path for path in texts if path.exists()]:
        raise InputError(f"init: {existing[0]} exists, choose another folder")
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
    except OSError as error:
        for path in texts:  # none of them existed
            with contextlib.suppress(OSError):
                path.unlink()
        raise InputError(f"init: cannot write {error.filename} ({error.strerror})") from error
    written = "\n".join(f"  {path.relative_to(folder)}" for path in texts)
    return f"{folder} has\n{written}\nRun\n  pip install -e {shlex.quote(given)}\n  {program()} experiment={name}"


def _refuse(message: str) -> NoReturn:
    raise InputError(f"init: {message}; it takes one folder")


def _is_reserved(name: str) -> bool:
    """Whether Python or YAML reads a name as something else, such as lambda or true."""
    return keyword.iskeyword(name) or OmegaConf.create(f"name: {name}").name != name


def _package_name(folder: Path) -> str:
    """The folder's name as that of a Python package that does not hide another one."""
    name = re.sub(r"\W", "_", folder.name.lower(), flags=re.ASCII)
    if not re.fullmatch("[a-z]([a-z0-9_]*[a-z0-9])?", name) or _is_reserved(name):
        raise InputError(
            f"init: {folder.name!r} cannot be the name of a package, which has letters a to z, digits and _, begins "
            "with a letter, does not end in _, and is no word of Python or YAML; choose another folder"
        )
    folders = config_dirs.own(), *config_dirs.of_plugins()
    if any((folder / "experiment" / f"{name}.yaml").exists() for folder in folders):
        raise InputError(f"init: experiment={name} exists, choose another folder")
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.origin is not None:
        raise InputError(f"init: there is a Python package {name} at {spec.origin}, choose another folder")
    return name

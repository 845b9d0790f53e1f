"""Checks of configuration files before Hydra reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from orbit.core.errors import InputError

# Keys by which Hydra and Python's logging build objects, and the files of the project that have them.
_KEYS_OF_CODE = "_target_", "()"
_FILES_THAT_NAME_CODE = "config.yaml", "hydra/job_logging/orbit.yaml"


def check_files(config_dir: Path, *added: Path) -> None:
    """Raise InputError if a configuration file names code to run, which two files of ``config_dir`` alone may.

    A file from somebody else may choose components and values. Hydra would also build any object that it names.
    """
    own = [config_dir / name for name in _FILES_THAT_NAME_CODE]
    for path in sorted(path for folder in (config_dir, *added) for path in folder.rglob("*.yaml")):
        text = path.read_text(encoding="utf-8", errors="replace")
        written = any(sign in text for sign in (*_KEYS_OF_CODE, "\\"))  # a backslash may spell one of them
        if written and path not in own and (key := _key_of_code(text)):
            raise InputError(
                f"{path.absolute()}: the key {key!r} names code to run, which a configuration file must not: remove it"
            )


def _key_of_code(text: str) -> str | None:
    """The first key of a YAML text by which Hydra or Python's logging builds objects; None if there is none."""
    try:
        remaining: list[Any] = [OmegaConf.to_container(OmegaConf.create(text))]
    except (OmegaConfBaseException, YAMLError):
        return None  # Hydra reports it, if the file is used
    while remaining:
        node = remaining.pop()
        if isinstance(node, dict):
            found = [str(key) for key in node if str(key).strip() in _KEYS_OF_CODE]
            if found:
                return found[0]
            remaining += node.values()
        elif isinstance(node, list):
            remaining += node
    return None

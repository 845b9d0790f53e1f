"""Checkpoints of a training on disk: arrays of numbers and text, which are never unpickled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from orbit.core.errors import InputError
from orbit.core.files import replacing
from orbit.core.fingerprint import digest
from runners.config.plan import Plan
from runners.tracking.storage import writing

# Raised whenever a checkpoint of before could not be resumed.
_VERSION = 4

_VERSION_KEY = "version"


def checkpoint_path(plan: Plan, suffix: str) -> Path:
    """The file for what is kept of a fit of ``plan`` in its outputs folder: the same for one model on the same data."""
    name = "-".join(filter(None, [plan.model_hash, digest(plan.fingerprints())]))
    return Path(plan.config["outputs"]) / "checkpoints" / f"{name}{suffix}"


def write_checkpoint(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays of numbers or text with a version; a reader finds the old file or the new one."""
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            np.savez(file, allow_pickle=False, **arrays, **{_VERSION_KEY: np.array(_VERSION)})


def read_checkpoint(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a checkpoint.

    Raises
    ------
    InputError
        If it is damaged, holds Python objects, or is of another version of the program.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}  # each has a checksum in the archive
        version = int(arrays.pop(_VERSION_KEY))
    except Exception as error:  # zipfile, zlib and NumPy raise errors of many kinds for damaged files
        raise damaged(path, str(error) or type(error).__name__) from error
    if version != _VERSION:
        raise damaged(path, f"it has version {version}, this program reads version {_VERSION}")
    return arrays


def damaged(path: Path, reason: str) -> InputError:
    """The error for a checkpoint that cannot be resumed."""
    line = " ".join(reason.split())
    return InputError(f"resume: the checkpoint {path.absolute()} is damaged ({line}); delete it, or set resume=false")

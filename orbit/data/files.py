"""Finding data files: a folder from the configuration or ORBIT_DATA, checked by sha256."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from orbit.errors import DataFileError


@dataclass(frozen=True)
class DataFile:
    """A file as upstream ships it.

    Attributes
    ----------
    name : file name
    sha256 : its digest, or None where users' copies may differ
    how : one sentence: where to get it
    """

    name: str
    sha256: str | None
    how: str


def data_root(root: str | None) -> Path:
    """The data folder: ``dataset.root``, else the variable ORBIT_DATA, else ``data``."""
    return Path(root or os.environ.get("ORBIT_DATA") or "data").expanduser()


def find(root: str | None, folder: str, file: DataFile) -> Path:
    """The path of ``file`` in the data folder, or in its subfolder ``folder``.

    Raises
    ------
    DataFileError
        If it is in neither place: says where it was looked for, and how to get it.
    """
    base = data_root(root)
    places = [base / folder / file.name, base / file.name]
    for path in places:
        if path.is_file():
            return path
    raise DataFileError(
        f"dataset.root: expected the file {file.name} at {places[0].absolute()}, found none. {file.how} "
        "Put it there, or set dataset.root (or the variable ORBIT_DATA) to the folder that has it."
    )


def read_checked(path: Path, file: DataFile) -> bytes:
    """The bytes of a file whose digest has been checked.

    Raises
    ------
    DataFileError
        If the file cannot be read, or its digest is not the expected one.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataFileError(f"{path.absolute()} cannot be read ({error.strerror})") from error
    found = hashlib.sha256(content).hexdigest()
    if file.sha256 is not None and found != file.sha256:
        raise DataFileError(
            f"{path.absolute()} is corrupt or another file: expected sha256 {file.sha256}, found {found}. {file.how}"
        )
    return content

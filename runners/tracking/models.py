"""Fitted models on disk. A model is a pickle, which is a program: only one that this user wrote is loaded unasked.

A model is written with a keyed digest (HMAC-SHA256), whose key no other user can read. A model without that digest, or
that was changed since, comes from elsewhere.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import logging
import os
import pickle
from pathlib import Path
from typing import IO, Any

from orbit.core.errors import InputError
from orbit.core.files import replacing, write_new, write_whole

log = logging.getLogger(__name__)

MODEL = "model.pkl"
SIGNATURE = "model.hmac"

#: The protocol of pickles: with it, arrays are written and read without a copy in memory.
PROTOCOL = 5

_KEY_BYTES = 32


class ForeignError(Exception):
    """A file that this user did not write on this machine, or that was changed since."""


def write_model(folder: Path, model: Any) -> None:
    """Write a fitted pipeline, or another object, and its digest."""
    with replacing(folder / MODEL) as file:
        pickle.dump(model, file, protocol=PROTOCOL)
        file.seek(0)
        write_whole(folder / SIGNATURE, _digest(file))  # before the model has its name


def load_model(folder: Path, trust: bool = False) -> Any:
    """The pipeline in a run folder.

    Parameters
    ----------
    folder : Path
    trust : bool
        Load it whoever wrote it. Loading runs its code.

    Raises
    ------
    InputError
        If there is none, it is damaged, or it comes from elsewhere and is not trusted.
    """
    path = folder / MODEL
    if not path.is_file():
        raise InputError(
            f"runner.model: expected a run folder with a {MODEL} at {folder.absolute()}, found none; "
            "runner=fit writes it unless runner.save_model=false"
        )
    try:
        return read(folder, trust)
    except ForeignError as error:
        raise InputError(
            f"runner.model: {path.absolute()} {error}, and loading it runs the code in it; set runner.trust=true if "
            "you trust where it comes from"
        ) from error
    except Exception as error:
        raise InputError(f"runner.model: {path.absolute()} cannot be loaded ({error})") from error


def read(folder: Path, trust: bool = False) -> Any:
    """The object that :func:`write_model` wrote to a folder.

    Raises
    ------
    ForeignError
        If it comes from elsewhere, or is damaged, and is not trusted.
    Exception
        Of any kind, where it cannot be read.
    """
    with open(folder / MODEL, "rb") as file:
        if not trust and not _is_own(folder, file):
            raise ForeignError("was not written by you on this machine, or was changed since")
        file.seek(0)
        return pickle.load(file)


def _is_own(folder: Path, file: IO[bytes]) -> bool:
    signature = folder / SIGNATURE
    return signature.is_file() and hmac.compare_digest(signature.read_bytes().strip(), _digest(file).encode("ascii"))


def _digest(file: IO[bytes]) -> str:
    return hashlib.file_digest(file, lambda: hmac.new(_key(), digestmod="sha256")).hexdigest()  # type: ignore[arg-type]


def _key() -> bytes:
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return _key_in(Path(data).expanduser() / "orbit" / "model_key")


@functools.lru_cache
def _key_in(path: Path) -> bytes:
    """The key of this user, made on first use; without a place to keep it, one that lasts as long as this process."""
    fresh = os.urandom(_KEY_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_new(path, fresh)
        return path.read_bytes()
    except OSError as error:
        log.info("models cannot be signed for later processes (%s)", error)
        return fresh

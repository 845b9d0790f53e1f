"""Fitted models on disk. A model is a pickle, which is a program: only one that this user wrote is loaded unasked.

:func:`save` and :func:`load` are for users, the others for the command line, whose errors name its own keys.

A model is written with a keyed digest (HMAC-SHA256), whose key no other user can read. A model without that digest, or
that was changed since, comes from elsewhere.
"""

import functools
import hashlib
import hmac
import logging
import os
import pickle
from pathlib import Path
from typing import IO, Any

from orbit.core.errors import InputError, shortened
from orbit.core.files import replacing, write_new, write_whole
from orbit.core.paths import user_path

log = logging.getLogger(__name__)

MODEL = "model.pkl"
SIGNATURE = "model.hmac"

#: The file of a run folder that says, among other things, how its data were read.
RECORD = "run.json"

#: The protocol of pickles: with it, arrays are written and read without a copy in memory.
PROTOCOL = 5

_KEY_BYTES = 32


class ForeignError(Exception):
    """A file that this user did not write on this machine, or that was changed since."""


def write_model(folder: Path, model: Any, name: str = MODEL) -> None:
    """Write a fitted pipeline, or another object under a ``name`` of its own, and its digest."""
    with replacing(folder / name) as file:
        pickle.dump(model, file, protocol=PROTOCOL)
        file.seek(0)
        write_whole(folder / SIGNATURE, _digest(file))  # before the model has its name


def save(model: Any, folder: str | Path) -> None:
    """Keep a fitted model in a folder, from which :func:`load` brings it back.

    Parameters
    ----------
    model : scikit-learn estimator
        Such as a fitted pipeline.
    folder : str or Path
        It is made if it does not exist. A model that it has is replaced.

    Raises
    ------
    InputError
        If the folder cannot be written, or the model is no estimator, or has a part that cannot be pickled, such as a
        function without a name.

    Examples
    --------
    See :func:`load`.
    """
    _check_estimator(model, "model")
    path = user_path(str(folder), "folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        write_model(path, model)
    except OSError as error:
        raise InputError(
            f"folder: expected a folder that can be written at {path.absolute()}, found none ({error.strerror})"
        ) from error
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"model: expected a model that can be pickled, found one that cannot ({error})") from error


def load(folder: str | Path, trust: bool = False) -> Any:
    """The fitted model in the folder of a run, or in one that :func:`save` wrote, ready to predict.

    MLflow is not needed.

    Parameters
    ----------
    folder : str or Path
        The run folder that ``python run.py`` prints, in which ``runner=fit`` has kept its model.
    trust : bool
        Load a model that you did not fit on this machine. Loading it runs the code in it.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Its ``predict`` takes points in the form of the training points, an array of shape (n, *shape). That of a model
        of ``dataset=table`` takes a data frame with the columns of the table by name, in any order, with categories as
        they are; missing values are imputed if they were in training, and columns that it does not know are ignored. A
        model that :func:`save` wrote is as it was.

    Raises
    ------
    InputError
        If the folder has no model, or one that is damaged, or that comes from elsewhere and is not trusted.

    Examples
    --------
    >>> import numpy as np, orbit, tempfile
    >>> X, y = np.random.default_rng(0).random((20, 3)), np.arange(20) % 2
    >>> model = orbit.RidgeClassifier(0.1).fit(X, y)
    >>> folder = tempfile.mkdtemp()
    >>> orbit.save(model, folder)
    >>> bool((orbit.load(folder).predict(X) == model.predict(X)).all())
    True
    """
    path = user_path(str(folder), "folder")
    model = load_model(path, trust)
    _check_estimator(model, f"folder: {(path / MODEL).absolute()}")
    return model


def _check_estimator(model: Any, where: str) -> None:
    from sklearn.base import BaseEstimator  # here, because a refused configuration needs no scikit-learn

    if not isinstance(model, BaseEstimator):
        found = shortened(type(model).__name__)
        raise InputError(f"{where}: expected a scikit-learn estimator, such as a pipeline, found {found}")


def load_model(folder: Path, trust: bool = False, key: str = "folder", advice: str = "trust=True") -> Any:
    """The object that :func:`write_model` wrote to a folder, or an error for the user.

    Parameters
    ----------
    folder : Path
    trust : bool
        Load it whoever wrote it. Loading runs its code.
    key, advice : str
        How errors name the folder, and what trusts a model.

    Raises
    ------
    InputError
        If there is none, it is damaged, or it comes from elsewhere and is not trusted.
    """
    path = folder / MODEL
    if not path.is_file():
        raise InputError(
            f"{key}: expected a run folder with a {MODEL} at {folder.absolute()}, found {_instead(folder)}; "
            "runner=fit writes it unless runner.save_model=false"
        )
    try:
        return read(folder, trust)
    except ForeignError as error:
        raise InputError(
            f"{key}: {path.absolute()} {error}, and loading it runs the code in it; set {advice} if "
            "you trust where it comes from"
        ) from error
    except Exception as error:
        raise InputError(f"{key}: {path.absolute()} cannot be loaded ({error})") from error


def _instead(folder: Path) -> str:
    """What is at a path in place of the folder of a model, for an error."""
    if folder.is_file():
        return "a file"
    jobs = sorted(path.parent.name for path in folder.glob(f"*/{MODEL}"))
    return f"folders that have one, such as {shortened(jobs[0])}" if jobs else "none"


def read(folder: Path, trust: bool = False, name: str = MODEL) -> Any:
    """The object that :func:`write_model` wrote to a folder, under the same ``name``.

    Raises
    ------
    ForeignError
        If it comes from elsewhere, or is damaged, and is not trusted.
    Exception
        Of any kind, where it cannot be read.
    """
    with open(folder / name, "rb") as file:
        if not trust and not _is_own(folder, file):
            raise ForeignError("was not written by you on this machine, or was changed since")
        return read_own(file)


def write_own(file: IO[bytes], content: Any) -> None:
    """Write an object to an open file that no other process can find, from which :func:`read_own` brings it back."""
    pickle.dump(content, file, protocol=PROTOCOL)
    file.flush()


def read_own(file: IO[bytes]) -> Any:
    """The object in a file, such as one of :func:`write_own`; this runs its code.

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     write_own(file, {"a": 1})
    ...     read_own(file)
    {'a': 1}
    """
    file.seek(0)
    return pickle.load(file)


def _is_own(folder: Path, file: IO[bytes]) -> bool:
    signature = folder / SIGNATURE
    return signature.is_file() and hmac.compare_digest(signature.read_bytes().strip(), _digest(file).encode("ascii"))


def _digest(file: IO[bytes]) -> str:
    return hashlib.file_digest(file, lambda: hmac.new(_key(), digestmod="sha256")).hexdigest()  # type: ignore[arg-type]


def _key() -> bytes:
    return _key_in(os.environ.get("XDG_DATA_HOME") or "~/.local/share")


@functools.lru_cache
def _key_in(data: str) -> bytes:
    """The key of this user, made on first use; without a place to keep it, one that lasts as long as this process."""
    fresh = os.urandom(_KEY_BYTES)
    try:
        path = Path(data).expanduser() / "orbit" / "model_key"
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_new(path, fresh)
        return path.read_bytes()
    except (OSError, RuntimeError) as error:  # the last for a user without a home
        log.info("models cannot be signed for later processes (%s)", error)
        return fresh

"""Databases and servers of tracking, checked within seconds."""

from __future__ import annotations

import os
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlparse

from orbit.core.errors import InputError

_CHECK_TIMEOUT_S = 4.0
_NO_SERVER = "start it, change tracking.uri, or set tracking.enabled=false"
_WHEN = "(raised as a result of "  # SQLAlchemy's first line of an error that occurs when it flushes


def check(uri: str) -> None:
    """Raise ``InputError`` within seconds if a store cannot be used, where MLflow's own retries take minutes.

    Parameters
    ----------
    uri : str
        A tracking URI. Databases and HTTP servers are checked.
    """
    found: list[Exception | None] = []
    ready = threading.Event()
    # some drivers have no timeout
    thread = threading.Thread(target=lambda: found.append(_problem(uri, ready)), daemon=True)
    thread.start()
    ready.wait()  # as long as it takes: the first import of a driver reads many files
    thread.join(_CHECK_TIMEOUT_S)
    problem = found[0] if found else TimeoutError(f"no answer in {_CHECK_TIMEOUT_S:g} s")
    if problem is None:
        return
    if is_server(uri):
        raise InputError(f"tracking.uri: no tracking server answers at {uri} ({reason(problem)}); {_NO_SERVER}")
    raise unusable(uri, problem)


def unusable(uri: str, problem: Exception) -> InputError:
    """The error for a store that cannot be used, with the keys to change."""
    hint = ""
    if isinstance(problem, ModuleNotFoundError):
        extra = "pip install 'orbit-kernels[postgres]'" if problem.name == "psycopg" else f"pip install {problem.name}"
        hint = f"install its driver with {extra}, "
    return InputError(
        f"tracking.uri: cannot use {uri} ({reason(problem)}); {hint}set tracking.uri, or tracking.enabled=false"
    )


def reason(error: Exception) -> str:
    """The first line of an error's message that says what happened, or the name of its class."""
    text = str(error.reason if isinstance(error, urllib.error.URLError) else error).strip()
    lines = [line for line in text.splitlines() if not line.startswith(_WHEN)]
    return lines[0] if lines else type(error).__name__


def is_server(uri: str) -> bool:
    return urlparse(uri).scheme in ("http", "https")


def is_database(uri: str) -> bool:
    return urlparse(uri).scheme.partition("+")[0] in ("sqlite", "postgresql", "mysql", "mssql")


def sqlite_file(uri: str) -> Path | None:
    """The file of an SQLite database; None for other stores and for a database in memory."""
    path = unquote(uri.partition("?")[0].removeprefix("sqlite:///"))
    is_path = uri.startswith("sqlite:///") and path not in ("", ":memory:") and not path.startswith("file:")
    return Path(path) if is_path else None


def _problem(uri: str, ready: threading.Event) -> Exception | None:
    """What is wrong with a store; ``ready`` is set when it is asked."""
    try:
        if is_database(uri):
            _ask_database(uri, ready)
        elif is_server(uri):
            ready.set()
            _ask_server(uri)
    except Exception as error:
        return error
    finally:
        ready.set()
    return None


def _ask_server(uri: str) -> None:
    address = urlparse(uri)
    host = address.netloc.rpartition("@")[2]
    try:
        urllib.request.urlopen(f"{address.scheme}://{host}{address.path.rstrip('/')}/health", timeout=_CHECK_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code >= 500:
            raise


def _ask_database(uri: str, ready: threading.Event) -> None:
    import sqlalchemy

    key = {"sqlite": "timeout", "mssql": "timeout"}.get(sqlalchemy.make_url(uri).get_backend_name(), "connect_timeout")
    engine = sqlalchemy.create_engine(uri, connect_args={key: int(_CHECK_TIMEOUT_S) - 1})
    ready.set()
    if (file := sqlite_file(uri)) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():  # connecting would make an empty file
            tempfile.TemporaryFile(dir=file.parent).close()
            return
        if not os.access(file, os.W_OK):
            raise PermissionError(f"no permission to write {file}")
    with engine.connect() as connection:
        sqlalchemy.inspect(connection).get_table_names()  # fails if an SQLite file is locked, or no database
    engine.dispose()

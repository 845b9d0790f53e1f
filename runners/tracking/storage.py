"""Disks that are full or cannot be written: one line that names the folder, and no line of the log."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from orbit.core.errors import InputError, shortened
from orbit.core.files import NO_ROOM


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raise ``InputError`` for what cannot be written into a folder of the outputs."""
    try:
        yield
    except OSError as error:
        raise cannot_write(folder, error) from error


def cannot_write(folder: Path | str, error: OSError) -> InputError:
    """The error for a folder of the outputs that cannot be written."""
    hint = "make room there, or set" if error.errno in NO_ROOM else "set"
    blocked = error.errno in (errno.ENOTDIR, errno.EEXIST)
    paths = (Path(folder), *Path(folder).parents) if blocked else ()
    file = next((path for path in paths if os.path.isfile(path)), None)
    no_locks = "its file system has no locks" if error.errno == errno.ENOSYS else None
    reason = "it is a file" if file else no_locks or error.strerror or error
    problem = f"outputs: cannot write to {shortened(str(file or folder))} ({reason})"
    return InputError(f"{problem}; {hint} outputs to a folder you can write to")


class LogFile(logging.FileHandler):
    """A log file that takes no more lines when the disk is full: the run itself ends with the error."""

    def __init__(self, filename: str) -> None:
        super().__init__(filename, encoding="utf-8", errors="backslashreplace")  # paths may have other characters

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging's name
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # of lines that could not be written
            super().close()

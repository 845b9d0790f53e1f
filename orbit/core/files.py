"""Files that are written whole or not at all. Every file that may be read again is written here."""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

#: Errors of a file system that has no room or takes no changes, whatever the path.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file, open to write and read, that takes the place of ``path`` when the body succeeds.

    Its content is on the disk before it gets its name, so that after a crash, even of the machine, a reader finds the
    old content or the new one. If the body fails, the old file is as it was. Until then the name of the new file
    begins with a full stop.

    Raises
    ------
    OSError
        If it cannot be written; ``filename`` is the path, also where the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "settings.json"
    >>> with replacing(path) as file:
    ...     _ = file.write(b"{}")
    >>> path.read_text()
    '{}'
    """
    if path.exists() and not path.is_file():  # a device would become a file
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    new = _beside(path)
    try:
        with open(new, "w+b") as file:
            yield file
            _to_disk(file)
        os.replace(new, path)
    except OSError as error:
        if error.errno in NO_ROOM or error.filename == str(new):  # writing and flushing name no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        with contextlib.suppress(OSError):  # missing after the rename, or without a folder
            new.unlink()


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace the content of a file, text as UTF-8, in which lone surrogates are escaped; see :func:`replacing`."""
    with replacing(path) as file:
        file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that only this user can read, unless it exists.

    Of several processes that do this at once, one writes the file, and the others find all of its content.
    """
    new = _beside(path)
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o600), "wb") as file:
            file.write(content)
            _to_disk(file)
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    return path.with_name(f".{secrets.token_hex(8)}.part")


def _to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())

"""Results kept in the user's cache folder for as long as the files that they come from stay as they are."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from orbit.core.files import write_whole


def read(key: list[str]) -> Any:
    """What was kept under ``key``; None if that is nothing, is damaged, or one of its files has changed since."""
    try:
        kept = json.loads(_path(key).read_text(encoding="utf-8"))
        same = kept["key"] == key and all(_stamp(file) == stamp for file, stamp in kept["files"].items())
        return kept["content"] if same else None
    except (OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError):
        return None


def write(key: list[str], content: Any, files: Iterable[str], since_ns: int) -> None:
    """Keep ``content``, of JSON's types, under ``key``; no effect where that is impossible.

    Parameters
    ----------
    files : iterable of str
        Files, and folders with their lists of files, that ``content`` comes from.
    since_ns : int
        When they were first read, in ns since the epoch: with a file that has changed since, nothing is kept.
    """
    with contextlib.suppress(OSError, RuntimeError, TypeError):
        stamps = {file: _stamp(file) for file in files}
        if any(changed_ns >= since_ns for file, (changed_ns, _) in stamps.items() if os.path.isfile(file)):
            return
        text = json.dumps({"key": key, "files": stamps, "content": content})
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)


def _path(key: list[str]) -> Path:
    """The file of a key. Raises ``RuntimeError`` for a user without a home."""
    folder = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(folder).expanduser() / "orbit" / f"{sha256(json.dumps(key).encode()).hexdigest()[:16]}.json"


def _stamp(file: str) -> list[int]:
    """Time of modification in ns since the epoch, and size in bytes."""
    found = os.stat(file)
    return [found.st_mtime_ns, found.st_size]

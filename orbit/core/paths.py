"""Paths that users write."""

import os
from pathlib import Path

from orbit.core.errors import ParameterError


def user_path(path: str, name: str) -> Path:
    """``path`` with the home folder expanded; the file need not exist.

    Raises
    ------
    ParameterError
        If the file system does not allow such a path, it may not be read, or ``~user`` is unknown, naming the
        parameter ``name``.

    Examples
    --------
    >>> user_path("x" * 5000, "path")
    Traceback (most recent call last):
        ...
    orbit.core.errors.ParameterError: path: expected a path that can be read (File name too long), found ...
    """
    try:
        expanded = Path(path).expanduser()
        os.stat(expanded)
    except (FileNotFoundError, NotADirectoryError):
        return expanded
    except (OSError, ValueError, RuntimeError) as error:  # too long or not allowed, a null character, an unknown user
        reason = error.strerror if isinstance(error, OSError) else error
        if "\0" in str(path):
            reason = "a null character"
        raise ParameterError(name, f"a path that can be read ({reason})", path) from error
    return expanded

"""Passwords in URIs: kept out of the configuration, and masked in everything that is written or printed."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from orbit.core.errors import InputError

# A JSON object, masked URI -> URI. The workers of a sweep inherit it.
_ENV = "ORBIT_URIS"

_MASK = "***"
_AUTHORITY = re.compile(r"(?<=://)([^\s:/@]*):\S+@")  # up to the last @, because passwords may have one
_FIELD = re.compile(r"([?&][\w-]*(?:password|passwd|token|secret)[\w-]*=)(?:\\(?!['\"])|[^&\s'\"\\])+", re.IGNORECASE)


def mask(text: str) -> str:
    """``text`` with the passwords of all URIs in it replaced by ``***``.

    >>> mask("cannot use postgresql://ann:pa55@host/runs?sslpassword=x1 here")
    'cannot use postgresql://ann:***@host/runs?sslpassword=*** here'
    """
    return _FIELD.sub(rf"\1{_MASK}", _AUTHORITY.sub(rf"\1:{_MASK}@", text))


def conceal(arguments: list[str]) -> list[str]:
    """Command-line arguments with masked URIs, which :func:`reveal` restores in this process and its children.

    Hydra writes the arguments into its files before any of this code runs, so they must not have passwords.

    Raises
    ------
    InputError
        For a URI with a space before its ``@``, whose password could not be found.
    """
    for argument in arguments:
        key, _, value = argument.partition("=")
        if re.search(r"://[^@]*\s[^@]*@", value):
            raise InputError(f"{key.lstrip('+')}: expected a URI without spaces, write a space as %20")
        uri = value.strip("'\"")
        if mask(uri) != uri:
            os.environ[_ENV] = json.dumps(_known() | {mask(uri): uri})
    return [mask(argument) for argument in arguments]


def reveal(uri: str) -> str:
    """The URI with its password.

    Raises
    ------
    InputError
        If it is masked and was not concealed by this process or its parent, such as one copied from a ``config.yaml``.
    """
    found = _known().get(uri, uri)
    if f":{_MASK}@" in found:
        raise InputError(f"tracking.uri: the password of {uri} is masked; give the URI with its password")
    return found


@contextlib.contextmanager
def masked_output() -> Iterator[None]:
    """Mask everything that is printed inside the ``with`` statement."""
    with contextlib.redirect_stdout(_masked(sys.stdout)), contextlib.redirect_stderr(_masked(sys.stderr)):
        yield


class MaskingFormatter(logging.Formatter):
    """Formats log records, tracebacks included, and masks passwords. Named in conf/hydra/job_logging/orbit.yaml."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))


class _MaskedStream:
    """A text stream that masks what is written to it, and is otherwise the stream it wraps."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(mask(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _masked(stream: Any) -> Any:
    return stream if isinstance(stream, _MaskedStream) else _MaskedStream(stream)


def _known() -> dict[str, str]:
    return json.loads(os.environ.get(_ENV, "{}"))

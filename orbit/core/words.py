"""The text of warnings: the library names parameters as in Python, the command line puts its keys in their place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_words: ContextVar[Callable[[str], str]] = ContextVar("words", default=str)


@contextlib.contextmanager
def wording(words: Callable[[str], str]) -> Iterator[None]:
    """Context manager in which ``words`` turns the library's text of a warning into the one that is given.

    >>> with wording(str.upper):
    ...     worded("axis=0")
    'AXIS=0'
    >>> worded("axis=0")
    'axis=0'
    """
    token = _words.set(words)
    try:
        yield
    finally:
        _words.reset(token)


def worded(text: str) -> str:
    """The text of a warning, as the function of :func:`wording` puts it."""
    return _words.get()(text)

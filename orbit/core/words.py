"""The words of warnings, which name parameters, as a Python user writes them; the command line names its keys."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_words: ContextVar[Callable[[str], str]] = ContextVar("words", default=str)


@contextlib.contextmanager
def wording(words: Callable[[str], str]) -> Iterator[None]:
    """Context manager in which ``words`` gives the text of each warning, from that of the library, where it arises.

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
    """The text of a warning that is being given, in the words in use."""
    return _words.get()(text)

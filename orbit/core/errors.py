"""Errors caused by user input. Each message is one line: what was expected, what was found, what to change."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Collection, Iterable, Iterator

# The most characters of a value in a message; the characters of its beginning and of its end if it has more.
_LONG_TEXT, _SHOWN = 200, 40


class InputError(ValueError):
    """Bad input from the user: parameters, arrays, files or combinations of components.

    The command line prints it as one line and exits with status 2; any other
    exception is a bug and is shown with its traceback.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(encodable(message))  # names of files may have bytes that are not UTF-8


class ParameterError(InputError):
    """A component's parameter has the wrong type or an impossible value."""

    def __init__(self, name: str, expected: str, found: object) -> None:
        self.name = name
        self.expected = expected
        self.found = found
        super().__init__(f"{name}: expected {expected}, found {shortened(repr(found))}")

    def __reduce__(
        self,
    ) -> tuple[type, tuple[str, str, object]]:  # default pickling passes only the message to __init__
        return type(self), (self.name, self.expected, self.found)

    def prefixed(self, prefix: str) -> ParameterError:
        """The same error with a prefixed name, e.g. ``factors[1].sigma`` for the prefix ``factors[1]``."""
        return ParameterError(f"{prefix}.{self.name}", self.expected, self.found)


class UnknownNameError(InputError):
    """No component of that name is registered."""


class DataFileError(InputError):
    """A data file is missing or does not have the expected content."""


@contextlib.contextmanager
def located(where: str) -> Iterator[None]:
    """Errors that name no parameter begin with ``where``, such as the file that they are about."""
    try:
        yield
    except ParameterError:
        raise
    except InputError as error:
        raise type(error)(f"{where}: {error}") from error


@contextlib.contextmanager
def of_part(name: str) -> Iterator[None]:
    """Errors name the part of a component that they are about, as in ``layers[1].size: expected ...``."""
    try:
        yield
    except ParameterError as error:
        raise error.prefixed(name) from None
    except InputError as error:
        raise type(error)(f"{name}: {error}") from None


def shortened(text: str) -> str:
    """A text in one line; of a long one the beginning, the end and its length.

    >>> shortened("a" * 300)
    'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa (300 characters)'
    """
    text = " ".join(text.splitlines())
    if len(text) <= _LONG_TEXT:
        return text
    return f"{text[:_SHOWN]}...{text[-_SHOWN:]} ({len(text):,} characters)"


def in_one_line(text: str) -> str:
    r"""A text whose line breaks and control characters, which names of files and columns may have, are escaped.

    >>> in_one_line("column a\nb")
    'column a\\nb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def encodable(name: str) -> str:
    r"""The name of a file in UTF-8: lone surrogates, which stand for other bytes in names, are escaped.

    >>> encodable("caf\udce9")
    'caf\\udce9'
    """
    return name.encode("utf-8", "backslashreplace").decode()


def suggestion(name: str, choices: Iterable[str]) -> str:
    """``"; did you mean 'rotation'?"`` for the closest choice, or just the full stop."""
    by_lower_case = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(str(name).lower(), list(by_lower_case), n=1)
    return f"; did you mean {by_lower_case[close[0]]!r}?" if close else "."


def choose_from(name: str, choices: Collection[str]) -> str:
    """The end of the message for an unknown name: the closest choice, and all choices.

    >>> choose_from("rotatoin", ["rotation", "shear"])
    "; did you mean 'rotation'? Choose from rotation, shear."
    """
    return f"{suggestion(name, choices)} Choose from {', '.join(choices)}."

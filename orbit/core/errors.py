"""Errors caused by user input. Each message is one line: what was expected, what was found, what to change."""

import contextlib
import difflib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

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
    """A component's parameter has the wrong type or an impossible value.

    The message names it as a configuration does, ``kernel.lengthscale``; ``section`` is ``kernel``.
    """

    def __init__(self, name: str, expected: str, found: object, section: str = "") -> None:
        self.name = name
        self.expected = expected
        self.found = found
        self.section = section
        super().__init__(f"{_key(section, name)}: expected {expected}, found {shortened(repr(found))}")

    def __reduce__(self) -> tuple[type, tuple[str, str, object, str]]:  # default pickling passes only the message
        return type(self), (self.name, self.expected, self.found, self.section)


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
def of_part(section: str, name: str) -> Iterator[None]:
    """Errors are of a part of a component, as in ``encoder.layers[1].size: expected ...``.

    ``section`` is that of the component, and ``name`` the parameter that holds the part.
    """
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"{name}.{error.name}", error.expected, error.found, section) from None
    except InputError as error:
        raise type(error)(f"{_key(section, name)}: {error}") from None


def check_each(section: str, name: str, parts: Iterable[T], check: Callable[[T], None]) -> None:
    """Check all parts that a parameter of a component lists; errors are of ``name[i]``, as those of :func:`of_part`."""
    for i, part in enumerate(parts):
        with of_part(section, f"{name}[{i}]"):
            check(part)


@contextlib.contextmanager
def of_section(section: str) -> Iterator[None]:
    """Errors that begin with a parameter, as in ``layers[1]: expected ...``, begin with its section."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(error.name, error.expected, error.found, section) from None
    except InputError as error:
        raise type(error)(_key(section, str(error))) from None


def accepts(check: Callable[..., None], *args: object) -> bool:
    """Whether a check of these arguments raises no ``InputError``."""
    try:
        check(*args)
    except InputError:
        return False
    return True


def _key(section: str, name: str) -> str:
    return f"{section}.{name}" if section else name


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

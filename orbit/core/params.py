"""Parameters of components, defined by the typed signatures of their constructors.

The signature gives the type, range and default of each parameter. It is used to
check values before any work starts (:func:`check_params`), and by the command line
to make the schema of its configuration files.

>>> from orbit.core.params import check_params
>>> from orbit.approx import RandomFourier
>>> check_params(RandomFourier(n_components=0))
Traceback (most recent call last):
    ...
orbit.core.errors.ParameterError: approx.n_components: expected an integer >= 1, found 0
"""

import functools
import inspect
import math
import numbers
import operator
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Annotated, Any, Literal

from orbit.core.errors import ParameterError


@dataclass(frozen=True)
class Range:
    """Bounds of a number, used as in ``Annotated[float, Range(low=0.0, open_low=True)]``."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def contains(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return bool(above and below)

    def __str__(self) -> str:
        parts = []
        if self.low > -math.inf:
            parts.append(f"{'>' if self.open_low else '>='} {self.low:g}")
        if self.high < math.inf:
            parts.append(f"{'<' if self.open_high else '<='} {self.high:g}")
        return " and ".join(parts)


#: Limits of every number that has no narrower ones: squares of numbers and of their inverses stay inside float64.
LARGEST_NUMBER = 1e100

PositiveInt = Annotated[int, Range(low=1)]
PositiveFloat = Annotated[float, Range(low=0.0, open_low=True)]
NonNegativeFloat = Annotated[float, Range(low=0.0)]
Lengthscale = PositiveFloat | Literal["auto", "evidence", "ard", "median"]
Fraction = Annotated[float, Range(low=0.0, high=1.0, open_low=True, open_high=True)]


@dataclass(frozen=True)
class Parameter:
    """One constructor parameter: its annotation and default (``inspect.Parameter.empty`` if none)."""

    annotation: Any
    default: Any


def parameters(cls: type) -> Mapping[str, Parameter]:
    """The constructor parameters of ``cls`` by name, in order, with resolved annotations."""
    return _parameters(cls)


def named_parameters(function: Callable[..., Any], annotated: object = None) -> dict[str, Parameter]:
    """The named parameters of a function by name, in order, with the resolved annotations of it or of a class."""
    hints = typing.get_type_hints(annotated or function, include_extras=True)
    return {
        name: Parameter(hints.get(name, Any), p.default)
        for name, p in inspect.signature(function).parameters.items()
        if p.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    }


@functools.cache
def _parameters(cls: type) -> Mapping[str, Parameter]:
    owner = next(base for base in cls.__mro__ if "__init__" in vars(base))
    # the constructor of a data class has annotations of several modules, those of its bases
    annotated = owner if "__dataclass_fields__" in vars(owner) else None
    found = named_parameters(cls.__init__, annotated)  # type: ignore[misc]
    found.pop("self", None)
    return types.MappingProxyType(found)  # every caller gets the same one


def check_params(component: object) -> None:
    """Check every parameter of ``component`` against its constructor's annotations; afterwards it is a plain value.

    Raises
    ------
    ParameterError
        For the first parameter whose value its annotation does not allow.
    """
    for name, parameter in parameters(type(component)).items():
        given = getattr(component, name)
        check_value(name, given, parameter.annotation, getattr(component, "section", ""))
        if (value := plain(given)) is not given:
            setattr(component, name, value)


def check_value(name: str, value: Any, annotation: Any, section: str = "") -> None:
    """Raise ``ParameterError`` for a value of the parameter ``name`` that its annotation does not allow."""
    given, value = value, plain(value)
    if isinstance(value, range) or _is_numbers(value):
        value = [plain(item) for item in value]
    if not _are_representable(value):
        raise ParameterError(
            name, f"0 or a number of size {1 / LARGEST_NUMBER:g} to {LARGEST_NUMBER:g}", given, section
        )
    if not allows(value, annotation):
        is_name = isinstance(value, int) and allows(str(value), annotation) and not allows(1, annotation)
        hint = f", as in \"{section}.{name}='{value}'\" with both quotes" if section and is_name else ""
        raise ParameterError(name, describe(annotation) + hint, given, section)


def plain(value: Any) -> Any:
    """The Python value of a NumPy scalar, an array without axes, a member of an enumeration or a path; others as given.

    >>> import numpy as np
    >>> plain(np.bool_(True)), plain([np.array(3), "a"])
    (True, [3, 'a'])
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (list, tuple)):
        items = [plain(item) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    return value.item() if getattr(value, "ndim", None) == 0 else value


def checked_values(values: Mapping[str, Any], known: Mapping[str, Parameter], section: str) -> dict[str, Any]:
    """The plain values; raises ``ParameterError`` for the first that the parameter of its name does not allow."""
    for name, value in values.items():
        check_value(name, value, known[name].annotation, section)
    return {name: plain(value) for name, value in values.items()}


def allows_beyond(value: float, sign: int, annotation: Any) -> bool:
    """Whether an annotation allows numbers slightly larger (``sign`` 1) or smaller (-1) than a value, not only whole.

    >>> allows_beyond(1e-6, -1, PositiveFloat), allows_beyond(0.0, -1, NonNegativeFloat)
    (True, False)
    >>> allows_beyond(3, 1, PositiveInt)
    False
    """
    return allows(float(value + sign * 0.01 * (abs(value) or 1)), annotation)


def _is_numbers(value: Any) -> bool:
    """Whether it is an array of numbers, shape (n,). A refused command line does not import NumPy."""
    return getattr(value, "ndim", None) == 1 and getattr(value.dtype, "kind", None) in ("i", "u", "f")


def _are_representable(value: Any) -> bool:
    """Whether a number, or every number of a list, is zero or of a size from 1 / LARGEST_NUMBER to LARGEST_NUMBER."""
    if isinstance(value, (list, tuple)):
        return all(map(_are_representable, value))
    if isinstance(value, numbers.Integral):  # may exceed every float
        return abs(int(value)) <= LARGEST_NUMBER
    if not isinstance(value, numbers.Real) or not math.isfinite(value):
        return True
    return value == 0 or 1 / LARGEST_NUMBER <= abs(float(value)) <= LARGEST_NUMBER


def build_parameters(cls: type) -> Mapping[str, Parameter]:
    """What ``orbit.build`` takes for ``cls``: its ``config_parameters``, or those of a constructor without them."""
    return getattr(cls, "config_parameters", functools.partial(parameters, cls))()


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The choices of a union, or the annotation alone."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def allows(value: Any, annotation: Any) -> bool:
    """Whether an annotation allows a value; true and false, as YAML has them, are no numbers.

    >>> allows(1, PositiveInt), allows(True, PositiveInt)
    (True, False)
    """
    return any(_matches_one(value, option) for option in alternatives(annotation))


def _matches_one(value: Any, option: Any) -> bool:
    origin = typing.get_origin(option)
    if origin is Annotated:
        inner, bounds = typing.get_args(option)[:2]
        return _matches_one(value, inner) and bounds.contains(value)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in typing.get_args(option))
    if origin is list:
        (item,) = typing.get_args(option)
        return isinstance(value, (list, tuple)) and all(allows(v, item) for v in value)
    if origin is dict:
        return isinstance(value, Mapping)
    if option is bool:
        return isinstance(value, bool)
    if option is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if option is float:
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if option in (str, list, dict, type(None)):
        return isinstance(value, option)
    return option is Any or not isinstance(option, type) or isinstance(value, option)


def describe(annotation: Any) -> str:
    """The values that an annotation allows, in words.

    >>> describe(Lengthscale | None)
    "a finite number > 0 or one of 'auto', 'evidence', 'ard', 'median' or null"
    """
    return " or ".join(_describe_one(option) for option in alternatives(annotation))


_NOUNS = {int: "an integer", float: "a finite number", str: "a string", bool: "true or false", type(None): "null"}


def _describe_one(option: Any) -> str:
    origin = typing.get_origin(option)
    if origin is Annotated:
        inner, bounds = typing.get_args(option)[:2]
        return f"{_describe_one(inner)} {bounds}"
    if origin is Literal:
        choices = ", ".join(map(repr, typing.get_args(option)))
        return f"one of {choices}" if len(typing.get_args(option)) > 1 else choices
    if origin is dict:
        return "a mapping"
    if origin is list:
        return f"a list, each item {describe(typing.get_args(option)[0])}"
    name = str(getattr(option, "__name__", option))
    return _NOUNS.get(option, f"{'an' if name[0] in 'AEIOU' else 'a'} {name}")

"""The space of a search, from the sweeps of Hydra's override grammar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep, ValueType
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from orbit.core.errors import InputError
from runners.config.schema import FILE_GROUPS, KINDS

_HELP = "write a,b or choice(a,b), range(1,10), interval(0,1), int(interval(1,9)), or tag(log,interval(1e-6,1))"


def split(parser: OverridesParser, arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The overrides with several values, as distributions of Optuna by key, and the others as they are.

    Raises
    ------
    InputError
        For sweeps that are not a choice or a range of numbers, and for a search over seeds.
    """
    space: dict[str, Any] = {}
    fixed: list[str] = []
    for override in parser.parse_overrides(list(arguments)):
        if not override.is_sweep_override():
            fixed.append(str(override.input_line))
        elif override.key_or_group == "seed":
            raise InputError("seed: a search over seeds finds the luckiest; give one seed")
        else:
            space[override.get_key_element()] = _distribution(override)
    if not space:
        raise InputError(f"hydra/sweeper=optuna: nothing to search, no key has several values; {_HELP}")
    return space, fixed


def first(key: str, distribution: Any) -> str:
    """The override of a key with its first or lowest value."""
    is_choice = isinstance(distribution, CategoricalDistribution)
    return f"{key}={distribution.choices[0] if is_choice else distribution.low}"


def others(key: str, distribution: Any) -> list[str]:
    """The overrides of a choice of components with all names but the first; none for numbers."""
    if key not in (*KINDS, *FILE_GROUPS) or not isinstance(distribution, CategoricalDistribution):
        return []
    return [f"{key}={choice}" for choice in distribution.choices[1:]]


def _distribution(override: Override) -> Any:
    key, value = override.get_key_element(), override.value()
    if override.value_type in (ValueType.CHOICE_SWEEP, ValueType.SIMPLE_CHOICE_SWEEP, ValueType.GLOB_CHOICE_SWEEP):
        return CategoricalDistribution(list(override.sweep_string_iterator()))
    log = "log" in value.tags  # type: ignore[union-attr]
    try:
        if not isinstance(value, RangeSweep):  # an interval; its ends are whole numbers only by a cast
            whole = isinstance(value.start, int) and isinstance(value.end, int)  # type: ignore[union-attr]
            made: Any = IntDistribution if whole else FloatDistribution
            return made(value.start, value.end, log=log)  # type: ignore[union-attr]
        numbers = list(value.range())
        whole = all(isinstance(number, int) for number in numbers)
        low, high = sorted((numbers[0], numbers[-1]))
        if whole:
            return IntDistribution(int(low), int(high), log=log, step=1 if log else int(abs(value.step)))
        return FloatDistribution(float(low), float(high), log=log, step=None if log else abs(value.step))
    except (ValueError, IndexError) as error:
        raise InputError(f"{key}: no such range to search ({error}); {_HELP}") from error

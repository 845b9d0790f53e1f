"""Checks of the command line itself, before Hydra composes a configuration from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

from hydra._internal.utils import get_args_parser
from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override
from hydra.errors import OverrideParseException

from orbit.core.errors import InputError, choose_from, encodable, shortened
from orbit.core.ranks import world_size
from runners.config.messages import shown
from runners.config.program import OF_SWEEPS
from runners.config.schema import FILE_GROUPS, KINDS, check_has_no_password

_QUOTES = "values with spaces or any of ,:=[]{}() are quoted twice, as in 'KEY=\"a, b\"'"

#: The error of a sweep that several processes share.
SHARED_SWEEP = "-m: several processes share one run, found a sweep; start each of its jobs by a command of its own"


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuse arguments that Hydra answers with its usage, or accepts without any effect.

    Raises
    ------
    InputError
        For text that is not UTF-8, unknown options, arguments that are not of the form ``KEY=VALUE``, choices that
        are no names, new keys in Hydra's own section, settings of a sweep for a single run, and a sweep in several
        processes.
    """
    for argument in arguments:
        if argument != encodable(argument):  # no file, log or database could repeat it
            raise InputError(f"{shown(argument)}: expected text in UTF-8; rename the file, if it is the name of one")
    parser = get_args_parser()  # Hydra's own, which alone knows its options and prints its usage on an error
    parser.error = _refuse  # type: ignore[method-assign]  # argparse prints the usage and exits
    options = parser.parse_args(arguments)
    if options.experimental_rerun is not None:
        raise InputError("--experimental-rerun: expected settings KEY=VALUE, found a pickle, which would run code")
    try:
        overrides = OverridesParser.create().parse_overrides(options.overrides)
    except OverrideParseException as error:
        raise InputError(
            f"{shown(error.override)}: expected KEY=VALUE ({shortened(_reason(error))}); {_QUOTES}"
        ) from error
    is_sweep = options.multirun or any(override.key_or_group == "hydra.mode" for override in overrides)
    if is_sweep and world_size() > 1:
        raise InputError(SHARED_SWEEP)
    for override in overrides:
        _check(override, is_sweep)


def _check(override: Override, is_sweep: bool) -> None:
    key = override.key_or_group
    if not key:
        raise InputError(f"{override.input_line}: expected KEY=VALUE, found no key")
    if not is_sweep and key.startswith(OF_SWEEPS):
        raise InputError(f"{override.input_line}: is for a sweep, which is started with -m")
    if key in ("hydra", "schema", *KINDS, *FILE_GROUPS) or "/" in key:
        for value in _values(override):
            if value is None or isinstance(value, (bool, int, float)):  # Hydra has an assertion for these
                raise InputError(f"{key}: expected a name, found {shown(value)}; write {key}=NAME")
    if key == "outputs" and not override.value():  # before Hydra makes a folder in it
        raise InputError(f"outputs: expected the name of a folder, found {shown(override.value())}")
    if key.startswith("tracking"):  # before Hydra writes it into the folder of a sweep
        check_has_no_password(str(override.input_line))
    if override.is_add() or override.is_force_add():
        _check_hydra_key(key)


def _values(override: Override) -> list[Any]:
    """The value, or all values of a sweep."""
    value = override.value()
    return list(value.list) if isinstance(value, ChoiceSweep) else [value]


def _refuse(message: str) -> NoReturn:
    raise InputError(f"{message}; settings are written KEY=VALUE, side by side, --help lists the options")


def _reason(error: OverrideParseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if set(line) - set(" ^")]
    return next((line for line in lines if not line.startswith("Error parsing")), "nothing there")


def _check_hydra_key(key: str) -> None:
    section, *parts = key.split(".")
    known: Any = HydraConf if section == "hydra" else None
    for part in parts:
        if not dataclasses.is_dataclass(known):  # free keys, or keys of a plugin, which checks them
            return
        fields = {field.name: field.type for field in dataclasses.fields(known)}
        if part not in fields:
            raise InputError(f"{key}: no such key{choose_from(part, fields)}")
        known = fields[part]

"""Checks of the command line itself, before Hydra composes a configuration from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NoReturn

from hydra._internal.utils import get_args_parser
from hydra.conf import HydraConf
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override, Transformer
from hydra.errors import OverrideParseException

from orbit.core.errors import choose_from, shortened
from orbit.core.ranks import world_size
from runners.config.messages import ConfigError, shown
from runners.config.program import OF_SWEEPS
from runners.config.schema import FILE_GROUPS, KINDS, Root, check_has_no_password

_QUOTES = "values with spaces or any of ,:=[]{}() are quoted twice, as in 'KEY=\"a, b\"'"

#: The error of a sweep in which some jobs are dry runs and others are not.
ONE_DRY_RUN = "dry_run: expected true or false for all jobs of a sweep; give it once, on the command line"
#: The error of a sweep that several processes share.
SHARED_SWEEP = "-m: several processes share one run, found a sweep; start each of its jobs by a command of its own"

_SETTINGS = [field.name for field in dataclasses.fields(Root)]


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuse arguments that Hydra answers with its usage or a traceback, or accepts without any effect.

    Raises
    ------
    ConfigError
        For unknown options, arguments that are not of the form ``KEY=VALUE``, choices that are no names, settings
        deleted by ``~``, new keys in Hydra's own section, and a sweep in several processes.
    """
    if "torchrun" in arguments:
        raise ConfigError("torchrun: expected as the first word, as in: torchrun --nproc-per-node 2 KEY=VALUE")
    parser = get_args_parser()
    parser.error = _refuse  # type: ignore[method-assign]  # argparse prints the usage and exits
    options = parser.parse_args(arguments)
    if options.experimental_rerun is not None:
        raise ConfigError("--experimental-rerun: expected settings KEY=VALUE, found a pickle, which would run code")
    overrides = options.overrides
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except OverrideParseException as error:
        raise ConfigError(
            f"{shown(error.override)}: expected KEY=VALUE ({shortened(_reason(error))}); {_QUOTES}"
        ) from error
    for override in parsed:
        if override.key_or_group.startswith("tracking"):  # before Hydra writes it into the folder of a sweep
            check_has_no_password(str(override.input_line))
        _check(override)
    is_sweep = options.multirun or any(override.key_or_group == "hydra.mode" for override in parsed)
    if is_sweep and world_size() > 1:
        raise ConfigError(SHARED_SWEEP)
    if not is_sweep:
        _refuse_sweeps(parsed)


def _refuse_sweeps(overrides: Sequence[Override]) -> None:
    """Refuse settings of a sweep for a single run, where they have no effect."""
    for override in overrides:
        if override.key_or_group.startswith(OF_SWEEPS):
            raise ConfigError(f"{override.input_line}: is for a sweep, which is started with -m")


def _refuse(message: str) -> NoReturn:
    unread = message.partition("unrecognized arguments: ")[2]
    if unread and not unread.startswith("-"):
        raise ConfigError(f"{unread}: expected all settings side by side, with options before or after all of them")
    raise ConfigError(f"{message}; a setting is written KEY=VALUE, --help lists the options")


def _reason(error: OverrideParseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if set(line) - set(" ^")]
    return next((line for line in lines if not line.startswith("Error parsing")), "nothing there")


def _check(override: Override) -> None:
    key = override.key_or_group
    if not key:
        raise ConfigError(f"{override.input_line}: expected KEY=VALUE, found no key")
    if override.is_delete():
        section, *parts = key.split(".")
        if section in _SETTINGS and len(parts) < 2:  # what is deeper may be an entry of a mapping, as in a grid
            raise ConfigError(f"~{key}: every run has {key}, which cannot be deleted; set another value instead")
        return
    if override.package is not None:
        raise ConfigError(f"{override.input_line}: expected KEY=VALUE without @PACKAGE, found @{override.package}")
    if key == "hydra":
        raise ConfigError(f"hydra: expected settings hydra.KEY=VALUE, found {shown(override.value())}")
    if key == "outputs":  # before Hydra makes a folder in it
        for value in _values(override):
            if value in ("", None):
                raise ConfigError(
                    f"outputs: expected {'a string' if value is None else 'the name of a folder'}, found {shown(value)}"
                )
    if key == "dry_run" and override.is_sweep_override():
        raise ConfigError(ONE_DRY_RUN)
    if key in (*KINDS, *FILE_GROUPS, "schema") or "/" in key:
        for value in _values(override):
            if not isinstance(value, str) or ("/" in value and {"", ".", ".."} & {*value.split("/")}):
                raise ConfigError(f"{key}: expected a name, found {shown(value)}; write {key}=NAME")
    if override.is_range_sweep() and not _has_values(override):
        raise ConfigError(
            f"{override.input_line}: expected a range(START, STOP, STEP) of at least one value, found none"
        )
    if override.is_add() or override.is_force_add():
        _check_hydra_key(key)


def _has_values(override: Override) -> bool:
    found: Any = override.value()
    return bool(found.step and (found.stop - found.start) / found.step > 0)


def _values(override: Override) -> list[Any]:
    """The value, or all values of a sweep."""
    if not override.is_sweep_override():
        return [override.value()]
    if isinstance(override.value(), Glob):
        return []
    return [getattr(value, "text", value) for value in override.sweep_iterator(Transformer.identity)]


def _check_hydra_key(key: str) -> None:
    section, *parts = key.split(".")
    known: Any = HydraConf if section == "hydra" else None
    for part in parts:
        if not dataclasses.is_dataclass(known):  # free keys, or keys of a plugin, which checks them
            return
        fields = {field.name: field.type for field in dataclasses.fields(known)}
        if part not in fields:
            raise ConfigError(f"{key}: no such key{choose_from(part, fields)}")
        known = fields[part]

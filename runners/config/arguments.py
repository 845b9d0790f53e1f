"""Checks of the command line itself, before Hydra composes a configuration from it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override
from hydra.errors import OverrideParseException

from orbit.core.errors import InputError, choose_from, encodable
from orbit.core.ranks import world_size
from runners.config.messages import shown
from runners.config.program import OF_SWEEPS
from runners.config.schema import FILE_GROUPS, KINDS, check_has_no_password
from runners.config.signatures import names

#: The error of a sweep that several processes share.
SHARED_SWEEP = "-m: several processes share one run, found a sweep; start each of its jobs by a command of its own"

# Options of Hydra that the next word belongs to, and others.
_WITH_A_WORD = (
    *("--config-dir", "--config-path", "--config-name", "--package", "--cfg", "--info", "--experimental-rerun"),
    *("-cd", "-cp", "-cn", "-p", "-c", "-i"),
)
_ALONE = (
    *("--help", "--hydra-help", "--version", "--resolve", "--run", "--multirun", "--shell-completion"),
    *("-h", "-r", "-m", "-sc"),
)


def options_first(arguments: Sequence[str]) -> list[str]:
    """The arguments with the settings ``KEY=VALUE`` last: Hydra takes no settings on both sides of an option.

    >>> options_first(["outputs=x", "-m", "seed=0,1", "--config-dir", "mine"])
    ['-m', '--config-dir', 'mine', 'outputs=x', 'seed=0,1']
    """
    return [word for _, word in sorted(pairwise(["", *arguments]), key=lambda pair: _is_setting(*pair))]


def quoted(arguments: Sequence[str]) -> list[str]:
    """The arguments with quotes about values that Hydra's grammar has no place for, such as names of files.

    Its words are of ASCII without parentheses. Values with a comma or other signs of lists and quotes stay as they are.

    >>> quoted(["dataset.path=geräusche", "dataset.path=plate (1).csv", "seed=0,1", "dataset.resize=[8"])
    ['dataset.path="geräusche"', 'dataset.path="plate (1).csv"', 'seed=0,1', 'dataset.resize=[8']
    """
    parser = OverridesParser.create()

    def parses(word: str) -> bool:
        try:
            parser.parse_overrides([word])
        except OverrideParseException:
            return False
        return True

    def as_text(word: str) -> str:
        key, sign, value = word.partition("=")
        text = f'{key}{sign}"{value}"'
        is_plain = value and not set(value) & set(",=[]{}$\\'\"") and value == encodable(value)
        return text if is_plain and not parses(word) and parses(text) else word

    return [as_text(word) if _is_setting(before, word) else word for before, word in pairwise(["", *arguments])]


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuse arguments that Hydra answers with its usage or a traceback, or accepts without any effect.

    Raises
    ------
    InputError
        For text that is not UTF-8, unknown options, arguments that are not of the form ``KEY=VALUE``, choices that are
        no names, settings of a sweep for a single run, and a sweep in several processes.
    """
    for argument in arguments:
        if argument != encodable(argument):  # no file, log or database could repeat it
            raise InputError(f"{shown(argument)}: expected text in UTF-8; rename the file, if it is the name of one")
        _check_option(argument)
    settings = [word for before, word in pairwise(["", *arguments]) if _is_setting(before, word)]
    try:
        overrides = OverridesParser.create().parse_overrides(settings)
    except OverrideParseException as error:
        if meant := [f"{kind}={error.override}" for kind in KINDS if error.override in names(kind)]:
            raise InputError(f"{shown(error.override)}: expected KEY=VALUE, such as {' or '.join(meant)}") from error
        raise InputError(
            f"{shown(error.override)}: expected KEY=VALUE; values with spaces or any of ,:=[]{{}}() are quoted twice, "
            "as in 'KEY=\"a, b\"'"
        ) from error
    is_sweep = not {"-m", "--multirun"}.isdisjoint(arguments) or any(o.key_or_group == "hydra.mode" for o in overrides)
    if is_sweep and world_size() > 1:
        raise InputError(SHARED_SWEEP)
    for override in overrides:
        _check(override, is_sweep)


def _is_setting(before: str, word: str) -> bool:
    return not (word[:1] == "-" or before in _WITH_A_WORD)


def _check_option(argument: str) -> None:
    option, known = argument.partition("=")[0], (*_WITH_A_WORD, *_ALONE)
    is_short_form = option[:2] == "--" and any(name.startswith(option) for name in known)
    if option[:1] == "-" and option not in known and not is_short_form:
        raise InputError(f"{option}: no such option{choose_from(option, known)}")


def _check(override: Override, is_sweep: bool) -> None:
    key, value = override.key_or_group, override.value()
    if not key:
        raise InputError(f"{override.input_line}: expected KEY=VALUE, found no key")
    if not is_sweep and key.startswith(OF_SWEEPS):
        raise InputError(f"{override.input_line}: is for a sweep, which is started with -m")
    if key in ("hydra", "schema", *KINDS, *FILE_GROUPS) or "/" in key:
        for name in value.list if isinstance(value, ChoiceSweep) else [value]:
            if name is None or isinstance(name, (bool, int, float)):  # Hydra has an assertion for these
                raise InputError(f"{key}: expected a name, found {shown(name)}; write {key}=NAME")
    if key == "outputs" and not value:  # before Hydra makes a folder in it
        raise InputError(f"outputs: expected the name of a folder, found {shown(value)}")
    if key.startswith("tracking"):  # before Hydra writes it into the folder of a sweep
        check_has_no_password(str(override.input_line))

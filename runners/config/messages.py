"""One-line error messages for bad input, also for what Hydra and OmegaConf raise."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from typing import TypeVar

from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException, ValidationError
from yaml import MarkedYAMLError, YAMLError

from orbit.core.errors import InputError, choose_from, in_one_line, shortened
from orbit.core.params import Parameter, describe, parameters
from runners.config import config_dirs
from runners.config.schema import FILE_GROUPS, KINDS, SECTIONS, Root, config_parameters, section_signature

E = TypeVar("E", bound=Exception)

# What Hydra says of several values for a single run.
_SEVERAL = re.compile(r"Ambiguous value for argument '(.*)'\s")
# How Hydra's message of an error in a file begins.
_IN_FILE = re.compile(r"In '([^']+)': ")
# Hydra's functions that read a file -> the variable with its name, which is not in their errors.
_READING = {"load_config": "config_path", "_load_config_impl": "config_path", "_create_defaults_tree_impl": "path"}


def shown(value: object) -> str:
    """A value as in configuration files, shortened."""
    return "null" if value is None else shortened(repr(value))


def bad_input(error: BaseException) -> str | None:
    """The one line that answers bad input, with the keys to change; None for any other error, which is a defect."""
    if isinstance(error, InputError):
        return in_one_line(str(error))
    if isinstance(error, PermissionError) and error.filename is not None:
        return in_one_line(f"{error.filename}: expected a path that this process may use, found {error.strerror}")
    return in_one_line(one_line(error)) if is_configuration_error(error) else None


def one_line(error: BaseException) -> str:
    """The message of an error of Hydra or OmegaConf, or of one while Hydra composed, as one line with suggestions."""
    if not isinstance(error, (HydraException, OmegaConfBaseException)):
        return _of_file(error)
    if (found := _SEVERAL.match(str(error))) is not None:
        return f"{found[1]}: several values are a sweep, which is started with -m; a list is written KEY=[a,b]"
    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        choices = [option for option in error.options if option != "auto"]
        if group.startswith("experiment/"):  # the folder of an experiment has a file for each of its sizes
            experiment = group.removeprefix("experiment/")
            return f"size={name}: experiment={experiment} has no such size. Choose from {', '.join(choices)}."
        if (unread := config_dirs.named_yml(group, name)) is not None:
            return f"{group}={name}: expected a file {name}.yaml, found {unread}; rename it"
        return f"{group}={name}: no such {group}{choose_from(name, choices)}"
    if (refused := _cause(error, InputError, context=True)) is not None:  # by a resolver: OmegaConf names no cause
        return str(refused)
    if (file := _IN_FILE.match(str(error))) and (cause := _cause(error, OmegaConfBaseException, context=True)):
        return f"{file[1]}.yaml: {one_line(cause)}"
    cause = _cause(error, OmegaConfBaseException)
    if isinstance(cause, (ConfigKeyError, ConfigAttributeError)):
        return _unknown_key(cause)
    if isinstance(cause, ValidationError):
        return f"{cause.full_key}: {_wrong_type(cause)}"
    if isinstance(cause, OmegaConfBaseException):
        return f"{cause.full_key or 'configuration'}: {_first_line(cause)}"
    return " ".join(line.strip() for line in str(error).splitlines() if line.strip())


def is_configuration_error(error: BaseException) -> bool:
    """Whether an error is of Hydra or OmegaConf, or was raised while Hydra read a configuration file."""
    if isinstance(error, (HydraException, OmegaConfBaseException)):
        return True
    return isinstance(error, (YAMLError, ValueError, RecursionError)) and _file_being_read(error) is not None


def _of_file(error: BaseException) -> str:
    """The message of an error about the text of a configuration file, or its defaults list."""
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{mark.name}: expected YAML, found in line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    reason = (
        "it is too deep, or leads back to itself" if isinstance(error, RecursionError) else " ".join(str(error).split())
    )
    return f"{_file_being_read(error)}.yaml: {reason}"


def _file_being_read(error: BaseException) -> str | None:
    """The configuration file, without its suffix, that Hydra was reading; None if it was not."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    reading = [frame.f_locals.get(_READING.get(frame.f_code.co_name, "")) for frame in frames]
    return next((str(path) for path in reversed(reading) if path is not None), None)


def _cause(error: BaseException | None, kind: type[E], context: bool = False) -> E | None:
    """The error itself or its first cause of the kind; with ``context``, also errors while which it was raised."""
    while error is not None:
        if isinstance(error, kind):
            return error
        error = error.__cause__ or (error.__context__ if context else None)
    return None


def _wrong_type(error: ValidationError) -> str:
    known = _parameters(error)
    if error.key not in known:
        return _first_line(error)
    return f"expected {describe(known[error.key].annotation)}, found {shown(error.value)}"


def _parameters(error: ValidationError) -> Mapping[str, Parameter]:
    """The parameters of the section that the error is about; empty for other parts of the configuration."""
    section, _, key = str(error.full_key).rpartition(".")
    if not section:
        return parameters(Root)
    if section in SECTIONS:
        return section_signature(section).parameters
    if section in KINDS and isinstance(error.parent_node, DictConfig) and key != "name":
        return config_parameters(section, error.parent_node["name"])
    return {}


def _unknown_key(error: ConfigKeyError | ConfigAttributeError) -> str:
    parent, key = error.parent_node, str(error.key)
    if key in FILE_GROUPS and key == error.full_key:
        return f"expected a first line '# @package _global_', because there is no key {key}"
    if key in KINDS:
        return f"{error.full_key}: no such key; {key} is a choice of its own: {key}=NAME, {key}.KEY=VALUE"
    keys = [str(key) for key in parent] if isinstance(parent, DictConfig) else []
    kind = str(error.full_key).partition(".")[0]
    if kind in KINDS and isinstance(parent, DictConfig) and keys == ["name"] and parent["name"] == "auto":
        return f"{error.full_key}: no such key of {kind}=auto; choose one that has it, {kind}=NAME"
    return f"{error.full_key}: no such key{choose_from(key, keys) if keys else '.'}"


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".")

"""Hydra's and OmegaConf's errors as one line that says which key to change."""

from __future__ import annotations

import re

from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException, ValidationError

from orbit.core.errors import suggestion


def one_line(error: BaseException) -> str:
    """What is wrong with a configuration, and what would be right."""
    if isinstance(error, MissingConfigException) and error.options is not None:
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        choices = [option for option in error.options if option != "auto"]
        return f"{group}={name}: no such {group}{suggestion(name, choices)} Choose from {', '.join(choices)}."
    cause = _omegaconf_cause(error)
    if isinstance(cause, (ConfigKeyError, ConfigAttributeError)):
        return _unknown_key(cause)
    if isinstance(cause, ValidationError):
        return f"{cause.full_key}: {_wrong_type(cause)}"
    if isinstance(cause, OmegaConfBaseException):
        return f"{cause.full_key or 'configuration'}: {_first_line(cause)}"
    return " ".join(line.strip() for line in str(error).splitlines() if line.strip())


def is_configuration_error(error: BaseException) -> bool:
    return isinstance(error, (HydraException, OmegaConfBaseException))


def _omegaconf_cause(error: BaseException | None) -> OmegaConfBaseException | None:
    while error is not None:
        if isinstance(error, OmegaConfBaseException):
            return error
        error = error.__cause__
    return None


_EXPECTED = {"Integer": "an integer", "Float": "a number", "Boolean": "true or false", "String": "a string"}


def _wrong_type(error: ValidationError) -> str:
    found = re.match(r"Value '(.*)' of type '.*' could not be converted to (\w+)", _first_line(error))
    if found is None:
        return _first_line(error)
    return f"expected {_EXPECTED.get(found[2], found[2])}, found {found[1]!r}"


def _unknown_key(error: ConfigKeyError | ConfigAttributeError) -> str:
    parent = error.parent_node
    keys = [str(key) for key in parent] if isinstance(parent, DictConfig) else []
    return f"{error.full_key}: no such key{suggestion(str(error.key), keys)} Choose from {', '.join(keys)}."


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0].rstrip(".")

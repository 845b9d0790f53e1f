"""Checks of single settings: known sections and keys, names of components, and values that annotations allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from orbit.core.errors import InputError, choose_from
from orbit.core.params import check_value, parameters
from orbit.core.paths import user_path
from orbit.registry import check_known, check_parameters
from runners.config.messages import shown
from runners.config.schema import KINDS, SECTIONS, Root, Tracking, chosen, config_parameters, section_signature
from runners.config.signatures import Signature, names, signature


def resolved(config: DictConfig) -> Any:
    """A configuration as plain dictionaries and lists, with all interpolations resolved."""
    return OmegaConf.to_container(config, resolve=True)


def check_settings(config: dict[str, Any]) -> None:
    """Raise InputError for a setting that is wrong by itself, whatever the others are. It imports no component."""
    own = parameters(Root)
    _check_keys("", config, [*KINDS, *SECTIONS, *own])
    for section in SECTIONS:
        if not isinstance(config.get(section), dict):
            raise InputError(f"{section}: expected settings {section}.KEY=VALUE, found {shown(config.get(section))}")
        _check_keys(f"{section}.", config[section], section_signature(section).parameters)
    Root(**{key: config[key] for key in own if key in config}).check()
    Tracking(**config["tracking"]).check()
    for kind in KINDS:
        check_name(kind, config[kind])
        if (name := config[kind]["name"]) in names(kind):  # auto has no keys
            known = signature(kind, name)
            given = [key for key in config[kind] if key != "name" and key not in known.ignored_keys]
            check_parameters(kind, name, given, known.parameters)
            _check_values(kind, config[kind], known)
    for section in ("engine", "orbit"):
        _check_values(section, config[section], section_signature(section))


def check_place(dataset: Mapping[str, Any], runner: str) -> None:
    """Raise InputError for a path of the data set that leads nowhere, or to what another data set reads.

    It imports no component, as :func:`check_settings`.
    """
    kinds, given = signature("dataset", dataset["name"]).reads, dataset.get("path")
    if not kinds or given is None or not signature("runner", runner).uses_data:
        return
    path = user_path(given, "dataset.path")
    ending = "folder" if path.is_dir() else path.suffix.lower()
    found = "a folder" if path.is_dir() else f"a {ending} file" if path.exists() else "none"
    others = [name for name in names("dataset") if ending in signature("dataset", name).reads and ending not in kinds]
    is_place = path.is_dir() if "folder" in kinds else path.is_file()
    if is_place and not others:
        return
    wanted = "a folder" if "folder" in kinds else f"a file ({', '.join(kinds)})" if is_place else "a file"
    advice = f"; choose dataset={' or '.join(others)}" if others and path.exists() else ""
    raise InputError(f"dataset.path: expected {wanted} at {path.absolute()}, found {found}{advice}")


def check_name(kind: str, section: Any) -> None:
    """Raise ``UnknownNameError`` unless the section names a component of the kind."""
    known = names(kind)
    chosen(kind, section)
    if section["name"] != "auto":
        check_known(kind, section["name"], known)
    if section["name"] in known:
        return
    for key in section.keys() - config_parameters(kind, "auto").keys() - {"name"}:
        raise InputError(f"{kind}.{key}: no such key of {kind}=auto; choose one with keys, {kind}=NAME")


def _check_keys(prefix: str, found: Mapping[str, Any], known: Collection[str]) -> None:
    for key in found:
        if key not in known:
            raise InputError(f"{prefix}{key}: no such key{choose_from(key, known)}")


def _check_values(section: str, values: Mapping[str, Any], described: Signature) -> None:
    for key, parameter in described.parameters.items():
        if key in values:
            check_value(key, values[key], parameter.annotation, section)

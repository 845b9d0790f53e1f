"""Typed configuration: Hydra checks every key and value against the components' own signatures.

A component's constructor is the only place where its parameters are declared.
Here it becomes a structured configuration, stored as ``schema/KIND/NAME``; the
YAML file of the component names it in its defaults list and adds what a person
wants to read: what it is, the values, their units and ranges.
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass, field, make_dataclass
from typing import Annotated, Any, Literal, Optional, Union

from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

import orbit
from orbit.core.params import Parameter, config_fields, parameters

#: Configuration group -> registered kinds its names are looked up in.
GROUPS: dict[str, tuple[str, ...]] = {
    "group": ("group",),
    "distribution": ("distribution",),
    "kernel": ("kernel", "operator_kernel"),
    "frequencies": ("frequencies",),
    "landmarks": ("landmarks",),
    "approx": ("approx",),
    "hyper": ("hyper",),
    "representation": ("representation",),
    "learner": ("classifier", "regressor"),
    "selection": ("selection",),
    "augmentation": ("augmentation",),
    "dataset": ("dataset",),
    "runner": ("runner",),
}


@dataclass
class Tracking:
    """Where results are logged beyond the run folder."""

    enabled: bool = True
    uri: Optional[str] = None  # noqa: UP045  OmegaConf reads typing.Optional
    experiment: str = "orbit"


@dataclass
class Root:
    """The top level of the configuration."""

    runner: Any = dataclasses.MISSING
    dataset: Any = None
    representation: Any = None
    group: Any = None
    distribution: Any = None
    orbit: Any = None
    kernel: Any = None
    frequencies: Any = None
    landmarks: Any = None
    approx: Any = None
    hyper: Any = None
    learner: Any = None
    selection: Any = None
    augmentation: Any = None
    engine: Any = None
    tracking: Any = None
    seed: int = 0
    size: str = "small"
    resume: bool = False
    outputs: str = "outputs"
    run_name: str = "run"


def register_schemas() -> None:
    """Store the schema of every registered component with Hydra. Safe to call twice."""
    OmegaConf.register_new_resolver("orbit_choices", choices, replace=True)
    store = ConfigStore.instance()
    store.store(group="schema", name="root", node=Root)
    store.store(group="schema", name="tracking", node=Tracking)
    store.store(group="schema", name="orbit", node=_schema("orbit", orbit.Orbit))
    store.store(group="schema", name="engine", node=_schema("engine", orbit.Engine))
    for group, kinds in GROUPS.items():
        for name in registered_names(group):
            classes = [orbit.get(kind, name) for kind in kinds if name in orbit.available(kind)]
            store.store(group=f"schema/{group}", name=name, node=_schema(name, *classes))


def has_own_kernel(approx: str, kernel: str, learner: str) -> bool:
    """Whether an approximation has a kernel of its own, and ``kernel`` chooses nothing.

    It does where the learner makes the layers of the kernel's skeleton.
    """
    feature_map: Any = orbit.get("approx", approx) if approx in orbit.available("approx") else None
    if feature_map is None or feature_map.own_kernel is None:
        return False
    return not (_has_layers("kernel", kernel) and _has_layers("learner", learner))


def _has_layers(group: str, name: str) -> bool:
    classes = [orbit.get(kind, name) for kind in GROUPS[group] if name in orbit.available(kind)]
    return any("layers" in parameters(cls) for cls in classes)


def run_name(runner: str, group: str, approx: str, kernel: str, learner: str, seed: int) -> str:
    """``rotation-nystrom-gaussian-s0``: a kernel only where it is a choice, the runner alone where it fits nothing."""
    fits = runner not in orbit.available("runner") or getattr(orbit.get("runner", runner), "tracked", True)
    if not fits:
        return runner
    return "-".join([group, approx, *([] if has_own_kernel(approx, kernel, learner) else [kernel]), f"s{seed}"])


# on import, because the workers of a launcher resolve the names of their run folders before anything else runs
OmegaConf.register_new_resolver("orbit_run_name", run_name, replace=True)


def choices() -> str:
    """A line for each kind of component and its names, for ``--help``."""
    lines = [f"{group}: {', '.join(registered_names(group))}" for group in GROUPS]
    return "\n".join(lines)


def registered_names(group: str) -> list[str]:
    """The component names that a configuration group can take, sorted."""
    return sorted({name for kind in GROUPS[group] for name in orbit.available(kind)})


def _schema(name: str, *classes: type) -> type:
    """A dataclass with the parameters of all the classes, and the component's name."""
    parameters: dict[str, Parameter] = {}
    for cls in classes:
        parameters.update(config_fields(cls))
    fields: list[Any] = [] if name in ("orbit", "engine") else [("name", str, field(default=name))]
    for key, parameter in parameters.items():
        fields.append((key, _config_type(parameter.annotation), _config_default(parameter.default)))
    return make_dataclass(name, fields)


def _config_type(annotation: Any) -> Any:
    """The closest type that OmegaConf can check; ranges and choices are checked by the component itself."""
    options = (
        [_plain(option) for option in typing.get_args(annotation) or (annotation,)]
        if _is_union(annotation)
        else [_plain(annotation)]
    )
    if Any in options:
        return Any
    optional = type(None) in options
    options = [option for option in dict.fromkeys(options) if option is not type(None)]
    if float in options and len(options) > 1 and int not in options:
        options.insert(0, int)  # a union does not turn 6 into 6.0
    result = options[0] if len(options) == 1 else Union[tuple(options)]  # noqa: UP007
    return Optional[result] if optional else result  # noqa: UP045


def _is_union(annotation: Any) -> bool:
    return str(typing.get_origin(annotation)) in ("<class 'types.UnionType'>", "typing.Union")


def _plain(option: Any) -> Any:
    origin = typing.get_origin(option)
    if origin is Annotated:
        return _plain(typing.get_args(option)[0])
    if origin is Literal:
        return str
    return Any if origin in (list, dict) or option in (list, dict) else option


def _config_default(default: Any) -> Any:
    if isinstance(default, (list, dict, tuple)):
        value = list(default) if isinstance(default, tuple) else default
        return field(default_factory=lambda: value)
    return field(default=default)

"""From a composed configuration to a plan: defaults filled in, components built and checked.

Nothing here reads data or computes; whatever is wrong with a configuration is
said here, before any work.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf

import orbit
from orbit.core.distributed import world_size
from orbit.core.errors import InputError, ParameterError, UnknownNameError, suggestion
from orbit.core.params import parameters
from orbit.core.random import spawn
from orbit.data import Dataset, Loader
from orbit.kernels import OperatorKernel
from orbit.learners.base import Learner
from orbit.learners.streaming import check_streams, sample_rows
from runners.app.schema import KINDS, Root, config_parameters, has_own_kernel

_PARTS = (
    *("group", "distribution", "kernel", "frequencies", "landmarks"),
    *("representation", "augmentation", "dataset", "selection"),
)

# A grid may change what is learnt and how, never the data that it is judged on.
_SELECTABLE = (
    *("representation", "group", "distribution", "orbit", "kernel"),
    *("frequencies", "landmarks", "approx", "hyper", "learner"),
)

# What does not change a result does not change its identity.
_NOT_IN_HASH = ("tracking", "outputs", "resume", "run_name")
_ENGINE_NOT_IN_HASH = ("memory", "workers", "progress")


@dataclass(frozen=True)
class Plan:
    """One run, ready to start.

    Attributes
    ----------
    config : dict
        The configuration with every default filled in.
    defaults : list of str
        The keys whose values were filled in because none was named.
    composed : dict
        The configuration as it was composed, before defaults were filled in.
    """

    config: dict[str, Any]
    defaults: list[str]
    composed: dict[str, Any]

    @property
    def config_hash(self) -> str:
        """Equal for two runs exactly when they compute the same thing."""
        return self._hash(_NOT_IN_HASH)

    @property
    def model_hash(self) -> str:
        """Equal for two plans exactly when they fit the same model, whichever runner does it and whatever for."""
        return self._hash((*_NOT_IN_HASH, "runner", "size"))

    def _hash(self, without: tuple[str, ...]) -> str:
        config = {key: value for key, value in self.config.items() if key not in without}
        config["engine"] = {k: v for k, v in config["engine"].items() if k not in _ENGINE_NOT_IN_HASH}
        config["version"] = orbit.__version__
        return hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def seed(self, purpose: str) -> int:
        """An independent seed for each purpose, from the run's one seed."""
        purposes = ("dataset", "approx", "learner", "runner", "hyper", "selection", "sample")
        return spawn(self.config["seed"], len(purposes))[purposes.index(purpose)]

    def component(self, kind: str) -> Any:
        """A new, checked component of one of the simple kinds."""
        section = dict(self.config[kind])
        name = section.pop("name")
        return _checked(kind, orbit.build(kind, name, **section))

    def load(self) -> Dataset:
        """The data set; for a stream, what this process of a job needs of it."""
        loader, seed = self.component("dataset"), self.seed("dataset")
        if not self.engine().stream:
            return loader.load(seed)
        data = loader.load(seed, lazy=True)
        return data.own(self.sample(len(data.X_train)))

    def sample(self, n: int) -> np.ndarray:
        """Of ``n`` training points of a stream, the rows that representation, maps and second layer are fitted to."""
        wanted = max(part.points_wanted(n) for part in (self.approx(), self.hyper()))
        return sample_rows(n, self.seed("sample"), self.engine(), at_least=wanted)

    def engine(self) -> orbit.Engine:
        return _checked("engine", orbit.Engine(**self.config["engine"]))

    def orbit(self, **changes: Any) -> orbit.Orbit:
        """The orbit of the plan; ``changes`` override its own parameters."""
        group, q = self.component("group"), self.component("distribution")
        return _checked("orbit", orbit.Orbit(group, q, **(self.config["orbit"] | changes)))

    def approx(self, **changes: Any) -> Any:
        """The feature map, wired to its kernel, orbit, engine and rules; ``changes`` override parts."""
        parts: dict[str, Any] = {"orbit": self.orbit, "engine": self.engine}
        parts |= {kind: lambda kind=kind: self.component(kind) for kind in ("kernel", "frequencies", "landmarks")}
        return self._wired("approx", parts, changes)

    def hyper(self) -> Any:
        """The second layer."""
        return self._wired("hyper", {"engine": self.engine}, {})

    def learner(self, task: str) -> Any:
        """The learner for classification or regression."""
        section = dict(self.config["learner"])
        name = section.pop("name")
        kind = {"classification": "classifier", "regression": "regressor"}[task]
        if name not in orbit.available(kind):
            others = ", ".join(orbit.available(kind))
            raise InputError(
                f"learner={name} is not for {task}, which dataset={self.config['dataset']['name']} needs: "
                f"choose from {others}"
            )
        cls = orbit.get(kind, name)
        self._check_operator(name, kind)
        self._check_points(name, kind)
        known = parameters(cls)
        # a key of the same name's other task is no error, an unknown one is
        other = config_parameters("learner", name)
        params = {key: value for key, value in section.items() if key in known or key not in other}
        if "random_state" in known:
            params["random_state"] = self.seed("learner")
        if "engine" in known:
            params["engine"] = self.engine()
        return _checked("learner", orbit.build(kind, name, **params))

    def _check_operator(self, learner: str, kind: str) -> None:
        """Features of an operator-valued map are of use only to a learner that knows its operator, and as they are."""
        approx, hyper = self.config["approx"]["name"], self.config["hyper"]["name"]
        if not getattr(orbit.get("approx", approx), "operator_valued", False):
            return
        if kind == "regressor" and self.config["kernel"].get("output") == "simplex":
            raise InputError(
                f"kernel.output=simplex codes classes, dataset={self.config['dataset']['name']} has numbers: "
                "choose kernel.output=identity, covariance, low_rank, graph or learned"
            )
        able = [name for name in orbit.available(kind) if learner_class(kind, name).operator_valued]
        if learner not in able:
            raise InputError(
                f"learner={learner} does not know how the outputs of approx={approx} hang together: "
                f"choose learner={' or learner='.join(able)}"
            )
        if hyper != "linear":
            raise InputError(f"hyper={hyper} mixes the features of approx={approx}: choose hyper=linear")

    def _check_points(self, learner: str, kind: str) -> None:
        """A learner that makes features of its own takes points as they are."""
        approx, hyper = self.config["approx"]["name"], self.config["hyper"]["name"]
        if learner_class(kind, learner).takes_points and (approx, hyper) != ("points", "linear"):
            raise InputError(
                f"learner={learner} makes features of its own, found approx={approx}, hyper={hyper}: "
                "choose approx=points hyper=linear"
            )

    def _wired(self, kind: str, parts: Mapping[str, Callable[[], Any]], changes: Mapping[str, Any]) -> Any:
        """A component of ``kind`` with those of the parts, and the seed, that its constructor takes."""
        section = dict(self.config[kind])
        name = section.pop("name")
        known = parameters(orbit.get(kind, name))
        wired = {key: make() for key, make in parts.items() if key in known}
        if "random_state" in known:
            wired["random_state"] = self.seed(kind)
        kernel = wired.get("kernel")
        if isinstance(kernel, OperatorKernel) and not getattr(orbit.get(kind, name), "operator_valued", False):
            raise InputError(f"{kernel.label()} is operator valued, {kind}={name} is not: choose approx=orff")
        return _checked(kind, orbit.build(kind, name, **{**section, **wired, **changes}))

    def variant(self, changes: Mapping[str, Any]) -> Plan:
        """The plan with some settings changed, checked like any other.

        Parameters
        ----------
        changes : mapping
            Sections (``{"approx": {"name": "rf"}}``: with a name, another component
            with its own defaults; without, other values of the same one), or
            single keys (``{"dataset.fold": 3}``).
        """
        config = copy.deepcopy(self.composed)
        for key, value in changes.items():
            section, _, name = key.partition(".")
            if section not in config:
                raise InputError(f"{key}: no such key{suggestion(section, config)} Choose from {', '.join(config)}.")
            if name:
                config[section][name] = value
            elif isinstance(value, Mapping) and "name" not in value:
                config[section] = config[section] | value
            else:
                config[section] = value if not isinstance(value, Mapping) else _complete(section, dict(value))
        return make_plan(config)

    def settled(self, changes: Mapping[str, Any]) -> Plan:
        """A variant with nothing left to select: one point of a grid."""
        return self.variant({**changes, "selection": {"name": "none"}})

    def params(self) -> dict[str, Any]:
        """What was computed, as flat names: ``approx.n_components`` and so on, for tracking."""
        flat: dict[str, Any] = {}
        for section, value in self.config.items():
            if section in _NOT_IN_HASH:
                continue
            if isinstance(value, dict):
                flat |= {f"{section}.{key}": item for key, item in value.items()}
            else:
                flat[section] = value
        return flat


def plan(cfg: DictConfig) -> Plan:
    """Fill in the defaults that fit and check everything that can be checked without data.

    Raises
    ------
    InputError
        In one line, with the configuration key to change.
    """
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    return make_plan(config)


def make_plan(composed: dict[str, Any]) -> Plan:
    """A plan from a composed configuration as plain dictionaries. See :func:`plan`."""
    config = copy.deepcopy(composed)
    known = [field.name for field in dataclasses.fields(Root)]
    for key in config:
        if key not in known:
            raise InputError(f"{key}: no such key{suggestion(key, known)} Choose from {', '.join(known)}.")
    for group in KINDS:
        _check_name(group, config[group])
    result = Plan(config, _fill_defaults(config), composed)
    if config["seed"] < 0:
        raise ParameterError("seed", "an integer >= 0", config["seed"])
    for kind in _PARTS:
        result.component(kind)
    result.engine()
    result.orbit()
    result.approx()
    result.hyper()
    if _uses_data(config):
        result.component("dataset").check_files()
    _check_selection(result)
    if config["augmentation"]["name"] != "none" and not result.engine().stream:
        raise InputError(
            f"augmentation={config['augmentation']['name']} changes points in every pass over them: "
            "set engine.stream=true, or choose augmentation=none"
        )
    if config["augmentation"]["name"] != "none" and "epochs" not in config["learner"]:
        raise InputError(
            f"augmentation={config['augmentation']['name']}: learner={config['learner']['name']} goes through "
            "its points once; choose learner=adagrad or learner=network"
        )
    task = _loader_class(config).fixed_task
    if task is not None:
        learner = result.learner(task)
        if result.engine().stream:
            check_streams(learner)
    if world_size() > 1:
        _check_shared(config)
    return result


def _check_selection(plan: Plan) -> None:
    name, points = plan.config["selection"]["name"], plan.component("selection").points()
    if name == "none":
        return
    if not points:
        raise InputError(f"selection.grid: selection={name} needs a key and its values, {{kernel.lengthscale: [1, 2]}}")
    if plan.config["engine"]["stream"]:
        raise InputError(f"engine.stream=true: selection={name} needs all features at once; use selection=none")
    for key in points[0]:
        section = key.partition(".")[0]
        if section not in _SELECTABLE:
            hint = suggestion(section, _SELECTABLE)
            raise InputError(f"selection.grid: {key} cannot be selected{hint} Choose from {', '.join(_SELECTABLE)}.")
    for point in points:
        plan.settled(point)


def _check_name(group: str, section: Any) -> None:
    names = orbit.available(group)
    if not isinstance(section, dict) or "name" not in section:
        raise UnknownNameError(f"{group}: expected one of {', '.join(names)}, found {section!r}")
    if section["name"] not in [*names, "auto"]:
        raise UnknownNameError(
            f"{group}={section['name']}: no such {group}{suggestion(section['name'], names)} "
            f"Choose from {', '.join(names)}."
        )


def _uses_data(config: dict[str, Any]) -> bool:
    runner: Any = orbit.get("runner", config["runner"]["name"])
    return runner.uses_data


def _check_shared(config: dict[str, Any]) -> None:
    if not config["engine"]["stream"]:
        raise InputError("several processes share a stream: set engine.stream=true, or start one process")
    runner = config["runner"]["name"]
    if runner != "fit":
        raise InputError(f"several processes share one fit, found runner={runner}: choose runner=fit, or start one")


def learner_class(kind: str, name: str) -> type[Learner]:
    """The class of a learner; ``kind`` is ``classifier`` or ``regressor``."""
    return orbit.get(kind, name)


def _loader_class(config: dict[str, Any]) -> type[Loader]:
    return orbit.get("dataset", config["dataset"]["name"])


def _fill_defaults(config: dict[str, Any]) -> list[str]:
    filled = []
    if config["representation"]["name"] == "auto":
        config["representation"] = _complete("representation", _loader_class(config).default_representation)
        filled.append("representation")

    group: Any = orbit.get("group", config["group"]["name"])
    representation: Any = orbit.get("representation", config["representation"]["name"])
    for key, value in representation.group_params.items():
        if key in config["group"] and config["group"][key] is None:
            config["group"][key] = value
            filled.append(f"group.{key}")

    if config["distribution"]["name"] == "auto":
        config["distribution"] = _complete("distribution", group.default_distribution)
        filled.append("distribution")
    for key in ("size", "rule"):
        if config["orbit"][key] is None:
            config["orbit"][key] = getattr(group, f"default_{key}")
            filled.append(f"orbit.{key}")
    if has_own_kernel(*(config[kind]["name"] for kind in ("approx", "kernel", "learner"))):
        section = {key: value for key, value in config["approx"].items() if key != "name"}
        kernel = _checked("approx", orbit.build("approx", config["approx"]["name"], **section)).own_kernel()
        config["kernel"] = {"name": kernel.name, **kernel.get_params(deep=False)}
        filled.append("kernel")
    if config["approx"].get("residual", False) is None:
        name = config["learner"]["name"]
        learners: list[Any] = orbit.registry.classes("learner", name)
        config["approx"]["residual"] = any(learner.needs_norms for learner in learners)
        filled.append("approx.residual")
    if config["learner"].get("layers", False) is None and config["kernel"].get("layers") is not None:
        config["learner"]["layers"] = config["kernel"]["layers"]
        filled.append("learner.layers")
    return filled


def _complete(group: str, section: dict[str, Any]) -> dict[str, Any]:
    """A section with the component's other parameters spelled out, so that the resolved config hides nothing."""
    if section["name"] == "auto":
        return section
    _check_name(group, section)
    return {key: p.default for key, p in config_parameters(group, section["name"]).items()} | section


def _checked(kind: str, component: Any) -> Any:
    try:
        component.check()
    except ParameterError as error:
        raise error.prefixed(kind) from None
    return component

"""From a composed configuration to a plan: defaults filled in, components built and checked.

This module does not compute, and reads data only where a default depends on the number of points or on their targets,
so that a wrong configuration fails before any work. Every component is built once, and a run uses copies of the
components that were checked.
"""

from __future__ import annotations

import copy
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from omegaconf import DictConfig
from sklearn.base import clone

import orbit
from orbit.core.component import Component
from orbit.core.errors import InputError, choose_from
from orbit.core.fingerprint import Fingerprint, digest, fingerprint
from orbit.core.params import parameters
from orbit.core.progress import Progress
from orbit.core.random import spawn
from orbit.core.warned import Warned, warn, with_warnings
from orbit.data import Dataset
from orbit.data.base import Loader
from orbit.learners.streaming import sample_rows
from orbit.registry import check_parameters
from runners.config import checks
from runners.config.defaults import Facts, complete, fill_defaults
from runners.config.schema import ENGINE_NOT_IN_HASH, KINDS, NOT_IN_HASH, config_parameters
from runners.config.settings import check_settings, resolved
from runners.config.signatures import config_fields, signature

#: The most training points, and moved training points, for which ``approx=auto`` is ``exact``.
MOST_EXACT, MOST_EXACT_MOVED = 3000, 32_000

#: The most training points whose kernel matrix ``engine.dtype=auto`` takes in float64 for numbers: some gigabytes.
MOST_FLOAT64_GRAM = 12_000

_SEEDED = ("approx", "hyper", "learner")

# The data set that was loaded last, kept in memory for the next job of a sweep, and the seconds of each reading.
_last: dict[tuple[type[Loader], str], tuple[Dataset, Warned]] = {}
_readings: list[float] = []


@dataclass(frozen=True)
class Plan:
    """One run, ready to start.

    Attributes
    ----------
    config : dict
        The configuration with every default filled in.
    defaults : list of str
        The keys whose values follow from other choices, because none was given.
    composed : dict
        The configuration before defaults were filled in.
    """

    config: dict[str, Any]
    defaults: list[str]
    composed: dict[str, Any]
    _parts: dict[tuple[str, str | None], Any] = field(default_factory=dict, repr=False, compare=False)
    _variants: dict[str, Plan] = field(default_factory=dict, repr=False, compare=False)

    @property
    def config_hash(self) -> str:
        """Hash of the settings that affect results: equal for two runs if they compute the same."""
        return self._hash(NOT_IN_HASH)

    @property
    def model_hash(self) -> str:
        """Hash of the settings that affect the model: equal for two plans if they fit the same one, by any runner."""
        return self._hash((*NOT_IN_HASH, "runner", "size"))

    @property
    def has_open_group(self) -> bool:
        """Whether neither the user nor the data set names a group, and the features can be averaged over one."""
        is_open = self.composed["group"]["name"] == "auto" and self._part("dataset").default_group is None
        return is_open and not self._part("approx").operator_valued

    @property
    def has_default_identity(self) -> bool:
        """Whether there is no group because the user names none, and that of the data set is the identity."""
        return self.composed["group"]["name"] == "auto" and self.config["group"]["name"] == "identity"

    @property
    def resumes(self) -> bool:
        """Whether results of earlier runs are taken."""
        return self.config["resume"] or self.config["retry_failed"]

    def _hash(self, without: tuple[str, ...]) -> str:
        config = {key: value for key, value in self.config.items() if key not in without}
        config["engine"] = {k: v for k, v in config["engine"].items() if k not in ENGINE_NOT_IN_HASH}
        config["version"] = orbit.__version__
        return hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def fingerprints(self) -> list[Fingerprint]:
        """Those of all files that the components read, those in folders included, in a fixed order."""
        return _fingerprints(self._components())

    def all_fingerprints(self) -> list[Fingerprint]:
        """:meth:`fingerprints` of the plan and its variants, such as the rows of a table."""
        variants = [part for variant in self._variants.values() for part in variant._components()]
        return _fingerprints([*self._components(), *variants])

    def _components(self) -> list[Component]:
        return [part for part in self._parts.values() if isinstance(part, Component)]

    def seed(self, purpose: str) -> int:
        """An independent seed for each purpose, derived from the seed of the run."""
        purposes = ("dataset", "approx", "learner", "runner", "hyper", "selection", "sample")
        return spawn(self.config["seed"], len(purposes))[purposes.index(purpose)]

    def component(self, kind: str) -> Any:
        """An unfitted copy of a checked component, wired to its parts: ``group``, ``approx``, ``runner`` and so on."""
        return clone(self._part(kind))

    def engine(self) -> orbit.Engine:
        return self.component("engine")

    def orbit(self, **changes: Any) -> orbit.Orbit:
        """The orbit of the plan; ``changes`` override its own parameters."""
        return self._copy("orbit", changes)

    def approx(self, **changes: Any) -> Any:
        """The feature map, wired to its kernel, orbit, engine and rules; ``changes`` override parameters or parts."""
        return self._copy("approx", changes)

    def hyper(self) -> Any:
        """The second layer."""
        return self.component("hyper")

    def learner(self, task: str) -> Any:
        """The learner for classification or regression."""
        return clone(self._part("learner", task))

    def load(self) -> Dataset:
        """The data set, shared by plans that load the same; for a stream, only the rows that this process needs."""
        loader, seed = self.component("dataset"), self.seed("dataset")
        if not self.config["engine"]["stream"]:
            return loaded(loader, self.config["dataset"], seed, _fingerprints([loader]))
        data = loader.load(seed, lazy=True)
        return data.own(self.sample(len(data.X_train)))

    def sample(self, n: int) -> np.ndarray:
        """Rows, of ``n`` training points of a stream, that representation, features and second layer are fitted to."""
        wanted = max(self._part(kind).min_fit_points(n) for kind in ("approx", "hyper"))
        return sample_rows(n, self.seed("sample"), self._part("engine"), at_least=wanted)

    def variant(self, changes: Mapping[str, Any]) -> Plan:
        """The plan with some settings changed, checked like any other. Equal changes return the same object.

        Parameters
        ----------
        changes : mapping
            Whole sections, ``{"approx": {"name": "rf", "n_components": 64}}``, names of components,
            ``{"approx": "rf"}``, or single keys, ``{"dataset.fold": 3}``. A section with a name replaces the component,
            with the defaults of the new one; without a name it changes parameters.
        """
        key = json.dumps(changes, sort_keys=True, default=str)
        if key not in self._variants:
            self._variants[key] = make_plan(_changed(self.composed, changes))
        return self._variants[key]

    def without_selection(self, changes: Mapping[str, Any]) -> Plan:
        """A variant without selection, such as one point of the grid."""
        return self.variant({**changes, "selection": {"name": "none"}})

    def _check_selection(self) -> None:
        """Raise InputError unless every point of the grid is a valid plan."""
        points = self.component("selection").points()
        checks.check_grid(self.config, points)
        for point in points:
            self.without_selection(point)

    def progress(self, total: int, description: str) -> Progress:
        """The progress of the run's own steps, shown unless ``engine.progress=false``."""
        return Progress(total, description, self.config["engine"]["progress"])

    def params(self) -> dict[str, Any]:
        """The settings that affect results, under flat names such as ``approx.n_components``, for tracking."""
        flat: dict[str, Any] = {}
        for section, value in self.config.items():
            if section in NOT_IN_HASH:
                continue
            if isinstance(value, dict):
                flat |= {f"{section}.{key}": item for key, item in value.items()}
            else:
                flat[section] = value
        return flat

    def _part(self, kind: str, task: str | None = None) -> Any:
        """The component itself, built and checked on first use. It is never fitted: runners get copies."""
        if (kind, task) not in self._parts:
            self._parts[kind, task] = self._build(kind, task)
        return self._parts[kind, task]

    def _build(self, kind: str, task: str | None) -> Any:
        section = dict(self.config[kind])
        if kind == "engine":
            return _checked(orbit.Engine(**section))
        if kind == "orbit":
            return _checked(orbit.Orbit(self._part("group"), self._part("distribution"), **section))
        name = section.pop("name")
        if kind == "learner":
            assert task is not None
            checks.check_learner(self.config, task)
            known = parameters(orbit.get(kind, name, task))
            for key in config_parameters(kind, name).keys() - known.keys():  # for the other task's class of that name
                section.pop(key, None)
            section["task"] = task
        cls = orbit.get(kind, name, task)
        wired = {
            key: self._part(key) for key in parameters(cls) if key in self.config and key not in config_fields(cls)
        }
        if kind in _SEEDED and "random_state" in parameters(cls):
            wired["random_state"] = self.seed(kind)
        checks.check_kernel(cls, wired.get("kernel"))
        checks.check_encoder(cls, self.config)
        return _checked(orbit.build(kind, name, **section, **wired))

    def _copy(self, kind: str, changes: Mapping[str, Any]) -> Any:
        part = self.component(kind)
        if not changes:
            return part
        check_parameters(part.kind, part.name, changes, parameters(type(part)))
        return _checked(part.set_params(**changes))


def _fingerprints(parts: list[Component]) -> list[Fingerprint]:
    found = {path for part in parts for path in part.input_files()}
    names = {inner: inner.relative_to(path).as_posix() for path in found if path.is_dir() for inner in path.rglob("*")}
    names |= dict.fromkeys(found, "")
    read = [fingerprint(path, name) for path, name in sorted(names.items()) if path.is_file()]
    return list(dict.fromkeys(read + [listed for part in parts for listed in part.input_parts()]))


def loaded(loader: Loader, settings: dict[str, Any], seed: int, files: list[Fingerprint]) -> Dataset:
    """The data set of a loader: the one loaded last if class, settings, seed and files are the same.

    Warnings that loading gave are given every time. Callers do not change the arrays.

    Parameters
    ----------
    settings : dict
        The section ``dataset`` of the configuration, which the loader was built from.
    files : list of Fingerprint
        What it reads.
    """
    key = type(loader), json.dumps([settings, seed, digest(files)], sort_keys=True, default=str)
    if key not in _last:
        _last.clear()  # before the next one is loaded, so that this function never keeps two in memory
        start = time.perf_counter()
        _last[key] = with_warnings(lambda: loader.load(seed))
        _readings.append(time.perf_counter() - start)
    data, warned = _last[key]
    warn(warned)
    return data


def seconds_of_reading() -> float:
    """The seconds that reading data has taken since the last call."""
    seconds = sum(_readings)
    _readings.clear()
    return seconds


def plan(cfg: DictConfig) -> Plan:
    """Fill in defaults, and check everything that can be checked without data.

    Raises
    ------
    InputError
        For a configuration that cannot run. The message is one line and names the key to change.
    """
    config: Any = resolved(cfg)
    return make_plan(config)


def make_plan(composed: dict[str, Any]) -> Plan:
    """A plan from a composed configuration as plain dictionaries. See :func:`plan`."""
    made = _made(composed, facts := Facts())
    runner: Any = orbit.get("runner", made.config["runner"]["name"])
    if runner.uses_data and (found := Facts(_exact_is_cheap(made), _needs_float64(made))) != facts:
        return _made(composed, found)
    return made


def _exact_is_cheap(made: Plan) -> bool:
    """Whether the exact kernel of all training points takes seconds, where ``approx=auto`` depends on it."""
    if made.composed["approx"]["name"] != "auto" or made.config["approx"]["name"] != "exact":
        return True
    n = _n_train(made)
    return n <= MOST_EXACT and n * made.config["orbit"]["size"] <= MOST_EXACT_MOVED


def _needs_float64(made: Plan) -> bool:
    """Whether targets are numbers, maybe of a smooth function without noise, where ``engine.dtype=auto`` asks.

    Not with features of pictures and series, which hardly tell a number to seven digits: an encoder that is not linear.
    Nor for a stream and large kernel matrices, for which time and memory matter more.
    """
    config, loader = made.config, made._part("dataset")
    is_open = made.composed["engine"]["dtype"] == "auto" and config["engine"]["dtype"] == "float32"
    if not is_open or config["engine"]["stream"] or not made._part("encoder").is_linear:
        return False
    if (loader.known_task or made.load().task) == "classification":
        return False
    return not made._part("approx").gives_gram or _n_train(made) <= MOST_FLOAT64_GRAM


def _n_train(made: Plan) -> int:
    """The number of training points. Reads the data if none is given."""
    return made._part("dataset").n_train or len(made.load().X_train)


def _made(composed: dict[str, Any], facts: Facts) -> Plan:
    config = copy.deepcopy(composed)
    check_settings(config)
    _leave_out(config)
    result = Plan(config, fill_defaults(config, facts), composed)
    for kind in (*KINDS, "engine", "orbit"):
        if kind not in ("learner", "runner"):  # the task may depend on the data; variants are run by another runner
            result._part(kind)
    if config["orbit"]["rule"] is None and (rule := result._part("orbit").resolved_rule()):
        config["orbit"]["rule"] = rule
        result.defaults.append("orbit.rule")
    loader = result._part("dataset")
    runner: Any = orbit.get("runner", config["runner"]["name"])
    if runner.uses_data:
        loader.check_files()
    loader.check_memory()
    result._part("orbit").check_memory()
    result._check_selection()
    checks.check_augmentation(config)
    _check_learner(result, loader.known_task)
    checks.check_processes(config)
    return result


def _leave_out(config: dict[str, Any]) -> None:
    """Remove keys without effect, in place: a run with one computes the same as a run without it."""
    for kind in KINDS:
        if (name := config[kind]["name"]) != "auto":
            for key in signature(kind, name).ignored_keys:
                config[kind].pop(key, None)


def _check_learner(made: Plan, task: str | None) -> None:
    """Raise InputError unless the learner is valid for the task; if that depends on the data, for one task."""
    name = made.config["learner"]["name"]
    problems = []
    for known in [task] if task else [known for known in orbit.registry.TASKS if name in checks.learner_classes(known)]:
        try:
            checks.check_stream(made.config, made._part("learner", known))
            return
        except InputError as error:
            problems.append(error)
    raise problems[0]


def _changed(composed: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    config = copy.deepcopy(composed)
    for key, value in changes.items():
        section, _, name = key.partition(".")
        if section not in config:
            raise InputError(f"{key}: no such key{choose_from(section, config)}")
        if not isinstance(config[section], Mapping) and (name or isinstance(value, Mapping)):
            raise InputError(f"{section}: expected a single value, found {key}={value!r}")
        if section in KINDS and not name and isinstance(value, str):
            value = {"name": value}
        if name:
            config[section][name] = value
        elif not isinstance(value, Mapping):
            config[section] = value
        elif "name" in value:
            config[section] = complete(section, dict(value))
        else:
            config[section] = config[section] | value
    return config


def _checked(component: Any) -> Any:
    component.check()
    return component

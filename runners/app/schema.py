"""Typed configuration: Hydra checks every key and value against the components' own signatures.

A component's constructor is the only place where its parameters are declared.
Here it becomes a structured configuration, stored as ``schema/KIND/NAME``; the
component itself is ``KIND/NAME``; it needs no file. A file of that name, or of
another one (a preset), names the schema in its defaults list and holds only the
values that differ. Keys are documented in the docstring of the component:
``python run.py --info KIND=NAME``.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from omegaconf import OmegaConf

import orbit
from orbit.core.errors import ParameterError, UnknownNameError
from orbit.core.params import Parameter, Range, check_params, config_fields, parameters

#: The configuration groups whose choices are registered components.
KINDS = (
    *("group", "distribution", "kernel", "frequencies", "landmarks", "approx", "hyper", "representation", "encoder"),
    *("learner", "selection", "augmentation", "dataset", "runner"),
)

#: Defaults of the command line that differ from those in Python, where a feature map keeps the precision of its data,
#: as scikit-learn's do, and shows no progress. float32 is twice as fast, and runs at a terminal can be long.
OWN_DEFAULTS: dict[str, dict[str, Any]] = {"engine": {"dtype": "float32", "progress": True}}


# In bytes: names of files have at most 255, and a run's folder is named by its time too.
_LONGEST_RUN_NAME = 200


@dataclass
class Tracking:
    """Where results are logged in addition to the run folder.

    Parameters
    ----------
    enabled : bool
        False: only the run folder is written.
    uri : str or None
        An MLflow tracking URI; None is the SQLite database ``outputs/mlflow.db``. A password in it is masked in all
        output and files.
    experiment : str
        Name of the MLflow experiment.
    artifacts : str or None
        Folder or URI for the artifacts of a new experiment; None is ``outputs/artifacts``, and for a server its own
        choice.
    """

    enabled: bool = True
    uri: str | None = None
    experiment: str = "orbit"
    artifacts: str | None = None

    def check(self) -> None:
        """Raise ``ParameterError`` for a value of the wrong type, and an empty one."""
        check_params(self)
        for key in ("uri", "experiment", "artifacts"):
            value = vars(self)[key]
            if value is not None and not value.strip():
                expected = "a name that is not empty" if key == "experiment" else "a name that is not empty or null"
                raise ParameterError(key, expected, value)


#: Sections of the configuration that are not a choice of component -> the class that declares their keys.
SECTIONS: dict[str, type] = {"orbit": orbit.Orbit, "engine": orbit.Engine, "tracking": Tracking}


@dataclass
class Root:
    """The settings of a run that belong to no component.

    Parameters
    ----------
    seed : int >= 0
        Seed of every random draw in the run.
    size : {"small", "paper"}
        Size of an experiment: a few minutes on two cores, or the numbers of its paper.
    resume : bool
        Skip a job whose configuration already has a finished run.
    retry_failed : bool
        Like ``resume``; and a job of a parallel sweep whose process dies, as it does when memory runs out, is run a
        second time after all others, alone.
    outputs : str
        Folder for run folders, mlflow.db and artifacts.
    run_name : str
        The run's name in MLflow and in its folder.
    """

    runner: Any = None
    dataset: Any = None
    representation: Any = None
    encoder: Any = None
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
    seed: Annotated[int, Range(low=0)] = 0
    size: str = "small"
    resume: bool = False
    retry_failed: bool = False
    outputs: str = "outputs"
    run_name: str = "run"

    def check(self) -> None:
        """Raise ``ParameterError`` for a value of the wrong type or range."""
        check_params(self)
        checked_run_name(self.run_name)


@dataclass
class Joblib:
    """``hydra/launcher=joblib``: the jobs of a sweep in parallel on this machine.

    Parameters
    ----------
    n_jobs : int
        Number of processes; -1 is one for each core.
    """

    _target_: str = "hydra_plugins.orbit_launcher.ProcessLauncher"
    n_jobs: int = -1


def register_schemas(*config_dirs: Path) -> None:
    """Register every component with Hydra under its name. Safe to call twice.

    Parameters
    ----------
    config_dirs : Path
        Folders of configuration files. A component with a file of its name there is configured
        by that file, which lists ``/schema/KIND/NAME@_here_`` in its defaults.
    """
    OmegaConf.register_new_resolver("orbit_choices", choices, replace=True)
    store = ConfigStore.instance()
    # Hydra copies the store, which is a singleton, for each composition: half of its time with all the schemas.
    ConfigStore.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]
    Plugins.instance()  # they store their configurations, of which the next line replaces one
    store.store(group="hydra/launcher", name="joblib", node=Joblib)
    store.store(group="schema", name="root", node=make_dataclass("Root", _fields(parameters(Root))))
    for section, node in SECTIONS.items():
        store.store(group="schema", name=section, node=_section(section, node))
    for kind in KINDS:
        for name in orbit.available(kind):
            node = _component(kind, name)
            store.store(group=f"schema/{kind}", name=name, node=node)
            if not any((folder / kind / f"{name}.yaml").is_file() for folder in config_dirs):
                store.store(group=kind, name=name, node=node)


def config_parameters(kind: str, name: str) -> dict[str, Parameter]:
    """The keys of a component's section: the parameters of all classes of that name."""
    return {
        key: parameter for cls in orbit.registry.classes(kind, name) for key, parameter in config_fields(cls).items()
    }


def kernel_is_a_choice(approx: str, kernel: str, learner: str) -> bool:
    """Whether the section ``kernel`` has an effect: the features have no own kernel, or the learner reads it."""
    feature_map: Any = orbit.get("approx", approx)
    return feature_map.own_kernel is None or bool(taken_from_kernel(kernel, learner))


def taken_from_kernel(kernel: str, learner: str) -> list[str]:
    """Parameters that the learner takes from the kernel where its own are None."""
    learners: list[Any] = orbit.registry.classes("learner", learner)
    known = config_parameters("kernel", kernel)
    return [key for cls in learners for key in cls.takes_from_kernel if key in known]


def run_name(runner: str, group: str, encoder: str, approx: str, kernel: str, learner: str, seed: int) -> str:
    """The default name of a run, ``rotation-nystrom-gaussian-s0``.

    The kernel is part of it only where it is a choice, the encoder only where there is one. A run that is not tracked
    has the name of its runner.
    """
    try:
        runner_class: Any = orbit.get("runner", runner)
        if not runner_class.tracked:
            return runner
        kernels = [kernel] if kernel_is_a_choice(approx, kernel, learner) else []
    except UnknownNameError:  # reported with its key once the configuration is composed
        kernels = [kernel]
    return "-".join([group, *([] if encoder == "none" else [encoder]), approx, *kernels, f"s{seed}"])


def checked_run_name(name: str) -> str:
    """``name``, which is part of the name of a folder.

    Raises
    ------
    ParameterError
        If it is empty, too long, or has line breaks or other control characters.
    """
    if not (name.isprintable() and 0 < len(name.encode()) <= _LONGEST_RUN_NAME):
        raise ParameterError("run_name", f"1 to {_LONGEST_RUN_NAME} printable characters in one line", name)
    return name


def new_folder(path: str) -> str:
    """Make a folder that no other run has: ``path`` or, if it exists, ``path-2`` and so on."""
    for name in itertools.chain([path], (f"{path}-{number}" for number in itertools.count(2))):
        try:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).mkdir()
        except FileExistsError:
            if Path(name).is_dir():
                continue
            break
        except OSError:
            break
        return name
    return path  # it cannot be made, which Hydra reports


# on import, because the workers of a launcher resolve the names of their run folders before they call anything
OmegaConf.register_new_resolver("orbit_run_name", run_name, replace=True)
OmegaConf.register_new_resolver("orbit_new_folder", new_folder, replace=True, use_cache=True)
OmegaConf.register_new_resolver("orbit_checked", checked_run_name, replace=True)


def choices() -> str:
    """A line for each kind of component with its names, for ``--help``."""
    return "\n".join(f"{kind}: {', '.join(orbit.available(kind))}" for kind in KINDS)


def _component(kind: str, name: str) -> type:
    return make_dataclass(name, [("name", str, field(default=name)), *_fields(config_parameters(kind, name))])


def _section(section: str, cls: type) -> type:
    own = OWN_DEFAULTS.get(section, {})
    parameters = {key: dataclasses.replace(p, default=own.get(key, p.default)) for key, p in config_fields(cls).items()}
    return make_dataclass(section, _fields(parameters))


def _fields(parameters: Mapping[str, Parameter]) -> list[Any]:
    return [(key, _config_type(p.annotation), _config_default(p.default)) for key, p in parameters.items()]


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
    # OmegaConf takes 2 and 'on' for true; components take only true and false
    return Any if origin in (list, dict) or option in (list, dict, bool) else option


def _config_default(default: Any) -> Any:
    if isinstance(default, (list, dict, tuple)):
        value = list(default) if isinstance(default, tuple) else default
        return field(default_factory=lambda: value)
    return field(default=default)

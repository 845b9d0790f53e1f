"""Typed configuration: Hydra checks every key and value against the components' own signatures.

A component's constructor is the only place where its parameters are declared.
Here it becomes a structured configuration, stored as ``schema/KIND/NAME``; the
component itself is ``KIND/NAME``; it needs no file. A file of that name, or of
another one (a preset), names the schema in its defaults list and holds only the
values that differ. Keys are documented in the docstring of the component:
``python run.py --info KIND=NAME``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Optional, Union

from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from omegaconf import OmegaConf

from orbit.core.errors import InputError, ParameterError, UnknownNameError, shortened
from orbit.core.params import Parameter, Range, alternatives, check_params, parameters
from runners.config.config_dirs import PluginFolders
from runners.config.names import checked_run_name, data_name, default_name, given, split_override
from runners.config.program import program
from runners.config.signatures import KINDS, Signature, names, signature

#: Configuration groups of files only; null is the empty choice of the last two.
FILE_GROUPS = ("size", "experiment", "architecture")

#: Defaults of the command line that differ from those in Python, which shows no progress: a run may take long.
OWN_DEFAULTS: dict[str, dict[str, Any]] = {"engine": {"progress": True}}

#: Settings that do not change results, and therefore not the hash of a configuration.
NOT_IN_HASH = ("tracking", "outputs", "resume", "retry_failed", "dry_run", "run_name", "feature_cache")
ENGINE_NOT_IN_HASH = ("memory", "workers", "progress")

#: Keys, and sections with a full stop, that the default name of a run leaves out.
HIDDEN_SETTINGS = (
    *NOT_IN_HASH,
    "tracking.",
    *(f"engine.{key}" for key in ENGINE_NOT_IN_HASH),
    *("dataset.download", "runner.save_model"),
)

#: Kind -> the component whose keys ``auto`` takes, and which is chosen if one of them is given.
KEYS_OF_AUTO = {"approx": "nystrom"}

# The password, token or secret of a URI: before the @, or in its query.
_PASSWORD = re.compile(
    r"https?://[^/\s]*@|://[^\s:/@]*:[^@]*@|[?&][\w-]*(password|passwd|token|secret)[\w-]*=", re.IGNORECASE
)


@dataclass
class Tracking:
    """Where results are logged in addition to the run folder.

    Parameters
    ----------
    enabled : bool
        False: only the run folder is written.
    uri : str or None
        An MLflow tracking URI without a password; None is the SQLite database ``outputs/mlflow.db``.
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

    section: ClassVar[str] = "tracking"

    def check(self) -> None:
        """Raise ``InputError`` for a value of the wrong type, one that is no name, and a URI with a password."""
        check_params(self)
        check_has_no_password(self.uri or "")
        for key in ("uri", "experiment", "artifacts"):
            value = vars(self)[key]
            if value is not None and not (value.strip() and value.isprintable()):
                expected = "a name that is not empty, of printable characters in one line"
                raise ParameterError(
                    key, expected if key == "experiment" else f"{expected}, or null", value, self.section
                )


def check_has_no_password(uri: str) -> None:
    """Raise ``InputError`` for a tracking URI with a password or token, which every run would write to its files.

    >>> check_has_no_password("postgresql://ann@host/runs")
    """
    if _PASSWORD.search(uri):
        raise InputError(
            "tracking.uri: expected a URI without a password, found one; give it by PGPASSWORD or ~/.pgpass "
            "(PostgreSQL), or by MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN "
            "(a server)"
        )


#: Sections of the configuration that are not a choice of component.
SECTIONS = ("orbit", "engine", "tracking")

#: All sections, in the order of configuration files.
_IN_ORDER = (
    *("runner", "dataset", "representation", "encoder", "group", "distribution", "orbit", "kernel", "frequencies"),
    *("landmarks", "approx", "hyper", "learner", "selection", "augmentation", "engine", "tracking"),
)


@dataclass
class Root:
    """The settings of a run that belong to no component.

    Parameters
    ----------
    seed : int >= 0
        Seed of every random draw in the run.
    size : {"small", "middle", "paper"}
        Size of an experiment: small takes minutes on two cores, paper has the numbers of its paper, and middle takes
        hours (only of experiments whose paper size takes days).
    resume : bool
        Skip a job whose configuration already has a finished run, and continue a table or a training that was stopped.
    retry_failed : bool
        Like ``resume``; and a job of a parallel sweep whose process dies, as it does when memory runs out, is run a
        second time after all others, alone.
    dry_run : bool
        Print what a run would take, a line for each row of its experiment (fits, bytes, operations and a rough time),
        and write nothing.
    feature_cache : float in [0, 1e6] or None
        GiB of fitted maps and features that later jobs may read again: 0 keeps none, and the least recently used go
        first. They are kept in the folder ``feature_cache`` of the outputs if a number is given, and in a sweep over
        settings of the learner, where the default is 10. Within one run, the fits of a table and the passes of a stream
        always share up to this many GiB (by default 10) in files that vanish with the run. Streams, times and runners
        other than ``fit``, ``table``, ``compare`` and ``validate`` do not read what other jobs have kept.
    outputs : str
        Folder for run folders, mlflow.db and artifacts.
    run_name : str
        The run's name in MLflow and in its folder.
    """

    seed: Annotated[int, Range(low=0)] = 0
    size: str = "small"
    resume: bool = False
    retry_failed: bool = False
    dry_run: bool = False
    feature_cache: Annotated[float, Range(low=0.0, high=1e6)] | None = None
    outputs: str = "outputs"
    run_name: str = "run"

    def check(self) -> None:
        """Raise ``ParameterError`` for a value of the wrong type or range."""
        check_params(self)
        if not self.outputs.strip():
            raise ParameterError("outputs", "the name of a folder", self.outputs)
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


@dataclass
class SubmititLocal:
    """``hydra/launcher=submitit_local``: each job of a sweep in a new process of this machine, by submitit.

    Parameters
    ----------
    n_jobs : int
        Number of jobs at a time; -1 is one for each core.
    timeout_min : int
        Minutes after which a job is ended.
    """

    _target_: str = "hydra_plugins.orbit_launcher.SubmititLauncher"
    cluster: str = "local"
    folder: str = "${hydra.sweep.dir}/.submitit/%j"
    n_jobs: int = -1
    timeout_min: int = 24 * 60


@dataclass
class SubmititSlurm:
    """``hydra/launcher=submitit_slurm``: each job of a sweep as a job of Slurm, by submitit.

    Parameters
    ----------
    n_jobs : int
        Number of jobs in the queue at a time.
    partition : str or None
        None is the cluster's default.
    timeout_min, cpus_per_task, gpus_per_node : int
        Minutes, cores and GPUs of a job.
    mem_gb : float
        Memory of a job in GB.
    more : dict or None
        Other options of ``sbatch``, such as ``{account: mine, qos: high}``.
    """

    _target_: str = "hydra_plugins.orbit_launcher.SubmititLauncher"
    cluster: str = "slurm"
    folder: str = "${hydra.sweep.dir}/.submitit/%j"
    n_jobs: int = 100
    partition: str | None = None
    timeout_min: int = 60
    cpus_per_task: int = 1
    gpus_per_node: int = 0
    mem_gb: float = 4.0
    more: Any = None  # OmegaConf cannot merge a mapping into a null that is typed


@dataclass
class Ray:
    """``hydra/launcher=ray``: each job of a sweep as a task of Ray.

    Parameters
    ----------
    n_jobs : int
        Number of jobs at a time; -1 is one for each core of this machine.
    address : str or None
        A cluster that runs already, ``HOST:6379`` or ``auto``; None starts Ray on this machine for the sweep.
    num_cpus, num_gpus : float
        What a job takes of a machine's; it counts the jobs that fit, and gives them GPUs.
    """

    _target_: str = "hydra_plugins.orbit_launcher.RayLauncher"
    n_jobs: int = -1
    address: str | None = None
    num_cpus: float = 1.0
    num_gpus: float = 0.0


@dataclass
class Search:
    """``hydra/sweeper=optuna``: the jobs of a sweep are the trials of a search by Optuna.

    Parameters
    ----------
    n_trials : int
        Number of trials of the study, those of earlier runs of the same command included.
    n_jobs : int
        Number of trials at a time, for a launcher that runs several.
    prune : bool
        End a trial whose mean over the first validation parts is worse than the median of other trials.
    params : dict or None
        Key -> the values to search, such as ``tag(log,interval(1e-6,1.0))``; the command line overrides it.
    """

    _target_: str = "hydra_plugins.orbit_sweeper.OptunaSweeper"
    n_trials: int = 20
    n_jobs: int = 1
    prune: bool = True
    params: Any = None


#: What the project adds to Hydra: configuration group -> name -> settings.
PLUGINS: dict[str, dict[str, type]] = {
    "hydra/launcher": {"joblib": Joblib, "submitit_local": SubmititLocal, "submitit_slurm": SubmititSlurm, "ray": Ray},
    "hydra/sweeper": {"optuna": Search},
}


def register_schemas(*config_dirs: Path) -> None:
    """Register every component with Hydra under its name. Safe to call twice.

    Parameters
    ----------
    config_dirs : Path
        Folders of configuration files. A component with a file of its name there is configured
        by that file, which lists ``/schema/KIND/NAME@_here_`` in its defaults.
    """
    OmegaConf.register_new_resolver("orbit_choices", choices, replace=True)
    OmegaConf.register_new_resolver("orbit_program", program, replace=True)
    store = ConfigStore.instance()
    # Hydra copies the store, which is a singleton, for each composition: half of its time with all the schemas.
    ConfigStore.__deepcopy__ = lambda self, memo: self  # type: ignore[attr-defined]
    plugins = Plugins.instance()  # they store their configurations, of which the loop replaces some
    plugins.register(PluginFolders)  # by hand, because Hydra would use it in every application of the environment
    for group, known in PLUGINS.items():
        for name, settings in known.items():
            store.store(group=group, name=name, node=settings)
    sections = [(section, Any, field(default=None)) for section in _IN_ORDER]
    store.store(group="schema", name="root", node=make_dataclass("Root", [*sections, *_fields(parameters(Root))]))
    store.store(group="schema", name="auto", node=make_dataclass("auto", [("name", str, field(default="auto"))]))
    for section in SECTIONS:
        store.store(group="schema", name=section, node=_section(section))
    for kind in KINDS:
        for name in names(kind):
            store.store(group=f"schema/{kind}", name=name, node=_component(kind, name))
            if not any((folder / kind / f"{name}.yaml").is_file() for folder in config_dirs):
                file = f"{name}.yaml"  # the same node under both names, because making one takes a millisecond
                node = store.repo["schema"][kind][file]
                store.repo.setdefault(kind, {})[file] = dataclasses.replace(node, group=kind)
    for kind in KEYS_OF_AUTO:
        store.store(group=f"schema/{kind}", name="auto", node=_component(kind, "auto"))


def section_signature(section: str) -> Signature:
    """The signature of the class that declares the keys of a section."""
    return Signature.of(Tracking) if section == "tracking" else signature(section, section)


def config_parameters(kind: str, name: str) -> Mapping[str, Parameter]:
    """The keys of a component's section: the parameters of all classes of that name; None for one not given to auto."""
    if name != "auto" or name in names(kind):
        return signature(kind, name).parameters
    known = signature(kind, KEYS_OF_AUTO[kind]).parameters if kind in KEYS_OF_AUTO else {}
    return {key: Parameter(Optional[each.annotation], None) for key, each in known.items()}  # noqa: UP045


def kernel_is_a_choice(approx: str, kernel: str, learner: str) -> bool:
    """Whether the section ``kernel`` has an effect: the features have no own kernel, or the learner reads it."""
    return not signature("approx", approx).implied_kernel or bool(taken_from_kernel(kernel, learner))


def taken_from_kernel(kernel: str, learner: str) -> list[str]:
    """Parameters that the learner takes from the kernel where its own are None."""
    known = config_parameters("kernel", kernel)
    return [key for key in signature("learner", learner).takes_from_kernel if key in known]


def chosen(kind: str, section: Any) -> str:
    """The name of the component in a section. Raises ``UnknownNameError`` if the section has none."""
    if isinstance(section, Mapping) and "name" in section:
        return str(section["name"])
    found = "null" if section is None else shortened(repr(section))
    raise UnknownNameError(f"{kind}: expected {{name: NAME}} with a NAME of {', '.join(names(kind))}, found {found}")


def run_name(runner: Any, dataset: Any, group: Any, encoder: Any, approx: Any, seed: int, learner: Any) -> str:
    """The default name of a run, ``rotated_digits-rotation-nystrom-n_components_100-s0``, from its sections.

    It starts with the experiment or, without one, the runner unless it is ``fit``, the data, the group, the encoder if
    one is given, and the features: ``auto`` where their choice depends on the number of points. Runners that use no
    group have neither it nor the features. Settings that were given follow, except for those that do not change
    results. A run that is not tracked has the name of its runner.

    Raises
    ------
    UnknownNameError
        For a section without a name, such as null.
    """
    sections = {"runner": runner, "dataset": dataset, "group": group, "encoder": encoder, "approx": approx}
    name = {kind: chosen(kind, section) for kind, section in sections.items()}
    overrides = given(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []
    experiment = dict(map(split_override, overrides)).get("experiment", "null")
    hidden = ["experiment", "seed", *HIDDEN_SETTINGS]
    if experiment != "null":
        return default_name([experiment], overrides, hidden, seed)
    with contextlib.suppress(UnknownNameError):  # reported with its key once the configuration is composed
        if name["group"] == "auto":
            name["group"] = signature("dataset", name["dataset"]).default_choices["group"]["name"]
        if name["approx"] == "auto" and not signature("learner", chosen("learner", learner)).needs_norms:
            name["approx"] = KEYS_OF_AUTO["approx"]
        known = signature("runner", name["runner"])
        if not known.tracked:
            return name["runner"]
        if not known.takes_group:
            name |= {"group": "", "approx": ""}
    name["dataset"] = data_name(dataset)
    left_out = {"runner": "fit", "encoder": "auto"}
    parts = ["" if name[kind] == left_out.get(kind) else name[kind] for kind in sections]
    return default_name(parts, overrides, [*hidden, *sections], seed)


OmegaConf.register_new_resolver("orbit_run_name", run_name, replace=True)


def choices() -> str:
    """A line for each kind of component with its names, for ``--help``."""
    return "\n".join(f"{kind}: {', '.join(names(kind))}" for kind in KINDS)


def _component(kind: str, name: str) -> type:
    return make_dataclass(name, [("name", str, field(default=name)), *_fields(config_parameters(kind, name))])


def _section(section: str) -> type:
    own, keys = OWN_DEFAULTS.get(section, {}), section_signature(section).parameters
    return make_dataclass(
        section, _fields({key: dataclasses.replace(p, default=own.get(key, p.default)) for key, p in keys.items()})
    )


def _fields(parameters: Mapping[str, Parameter]) -> list[Any]:
    return [(key, _config_type(p.annotation), _config_default(p.default)) for key, p in parameters.items()]


def _config_type(annotation: Any) -> Any:
    """The closest type that OmegaConf can check; ranges and choices are checked by the component itself."""
    options = [_plain(option) for option in alternatives(annotation)]
    if Any in options:
        return Any
    optional = type(None) in options
    options = [option for option in dict.fromkeys(options) if option is not type(None)]
    if float in options and len(options) > 1 and int not in options:
        options.insert(0, int)  # a union does not turn 6 into 6.0
    result = options[0] if len(options) == 1 else Union[tuple(options)]  # noqa: UP007
    return Optional[result] if optional else result  # noqa: UP045


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

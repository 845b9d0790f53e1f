"""Functions that tests of whole runs share: configurations, a small run, and the folders of its results."""

import copy
import functools
from pathlib import Path

import composition
import mlflow
from filelock import AcquireReturnProxy, FileLock
from hydra import compose, initialize_config_dir
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf
from program import folders  # noqa: F401  beside the other functions for tests of runs

import orbit
import runners.components  # noqa: F401  registers the runners
from runners.config import config_dirs
from runners.config.arguments import check_arguments
from runners.config.messages import bad_input
from runners.config.plan import plan
from runners.config.schema import KINDS, register_schemas
from runners.experiments.fitting import Fitted, fit_and_score
from runners.job.job import Job, Stopwatch
from runners.tracking.pending import Marker, Pending
from runners.tracking.record import Record, RunFolder

CONF = Path(__file__).parent.parent / "conf"
CONF_DIRS = CONF, *config_dirs.of_plugins()
#: Experiment -> its file.
EXPERIMENTS = {path.stem: path for folder in CONF_DIRS for path in sorted((folder / "experiment").glob("*.yaml"))}
SMALL = ("dataset.n_train=60", "dataset.n_test=40", "approx.n_components=20", "orbit.size=4", "runner.save_model=false")

_VALUES = ("seed", "resume", "outputs", "run_name")

register_schemas(*CONF_DIRS)


def composed(*overrides: str):
    """The resolved configuration of a command line."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def by_hydra_alone(*overrides: str):
    """``composed`` without :mod:`composition`."""
    with composition.forgotten():
        return composed(*overrides)


_default = functools.cache(composed)


def quickly_composed(*overrides: str):
    """``composed`` in milliseconds, by Hydra's own steps, for choices of registered components and for values.

    The default configuration is composed once; the section of a component is its schema in Hydra's store.
    """
    parsed = OverridesParser.create().parse_overrides(list(overrides))
    chosen = [o for o in parsed if str(o.input_line).partition("=")[0] in KINDS and _is_registered(o)]
    others = [o for o in parsed if o not in chosen]
    if any(("." not in o.key_or_group and o.key_or_group not in _VALUES) or "hydra" in o.key_or_group for o in others):
        return composed(*overrides)
    cfg, store = copy.deepcopy(_default()), ConfigStore.instance()
    OmegaConf.set_struct(cfg, False)
    for choice in chosen:
        cfg[choice.key_or_group] = store.load(f"schema/{choice.key_or_group}/{choice.value()}.yaml").node
    OmegaConf.set_struct(cfg, True)
    ConfigLoaderImpl._apply_overrides_to_config(others, cfg)
    return cfg


def fitted(*overrides: str) -> Fitted:
    """What the command line would fit, without a run."""
    made = plan(quickly_composed(*overrides))
    return fit_and_score(made, made.load(), Stopwatch())


def new_job(folder: Path, *overrides: str) -> Job:
    """The job of a command line, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    return Job(plan(quickly_composed(*overrides, f"outputs={folder}")), RunFolder(folder), Record("test"))


def ran(folder: Path, *overrides: str, figures: bool = False) -> Job:
    """A job that has run, with its configuration and record in the folder; most tests need no figures."""
    job = new_job(folder, *overrides)
    if not figures:
        job.log_figure = lambda *args, **kwargs: None
    job.plan.component("runner").run(job)
    job.folder.write_config(job.plan.config, job.plan.defaults)
    job.folder.write_record(job.record)
    return job


def write_experiment(folder: Path, text: str, name: str = "mine") -> Path:
    """A file of an experiment in a folder of ``--config-dir``."""
    file = folder / "experiment" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# @package _global_\n{text}")
    return file


def _is_registered(choice: Override) -> bool:
    return choice.value() in orbit.available(choice.key_or_group)


def refused(*overrides: str, load: bool = False) -> str:
    """The one line that run.py answers a command line with, on bad input; any other error is raised.

    ``load`` reads the data too, as a run does before it computes.
    """
    try:
        check_arguments(overrides)
        made = plan(quickly_composed(*overrides))
        made.component("runner").plans(made)
        if load:
            made.load()
    except Exception as error:
        if (line := bad_input(error)) is None:
            raise
        return line
    raise AssertionError(f"accepted: {overrides}")


def is_owned(marker: Marker) -> bool:
    """Whether a process, perhaps this one, works on the run of a marker."""
    return not Pending(marker.path.parents[1]).wait_until_free(marker.folder, 0)


def given_away(marker: Marker) -> AcquireReturnProxy:
    """The lock of a marker of this process, held by what stands for another one, which dies at the end of ``with``."""
    Pending(marker.path.parents[1]).release(marker)
    return FileLock(marker.path.with_suffix(".lock")).acquire(timeout=0)


def mlflow_client(tmp_path: Path) -> mlflow.MlflowClient:
    """Of the database in the outputs of the ``run`` fixture."""
    return mlflow.MlflowClient(f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}")


def mlflow_runs(tmp_path: Path) -> list:
    client = mlflow_client(tmp_path)
    experiment = client.get_experiment_by_name("orbit")
    return client.search_runs([experiment.experiment_id])

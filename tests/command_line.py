"""Functions that tests of whole runs share: configurations, a small run, and the folders of its results."""

from __future__ import annotations

import copy
import functools
from pathlib import Path

import mlflow
from hydra import compose, initialize_config_dir

import runners.app.cli  # noqa: F401  registers the runners
from runners.app.schema import register_schemas

CONF = Path(__file__).parent.parent / "conf"
SMALL = ("dataset.n_train=60", "dataset.n_test=40", "approx.n_components=20", "orbit.size=4", "runner.save_model=false")

register_schemas(CONF)


def composed(*overrides: str):
    """The resolved configuration of a command line."""
    return copy.deepcopy(_composed(overrides))


@functools.cache
def _composed(overrides: tuple[str, ...]):
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", overrides=list(overrides))


def folders(tmp_path: Path) -> list[Path]:
    """The run folders in the outputs of the ``run`` fixture, in the order of their names."""
    return sorted(path.parent for path in (tmp_path / "out").rglob("run.json") if "artifacts" not in path.parts)


def mlflow_runs(tmp_path: Path) -> list:
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("orbit")
    return client.search_runs([experiment.experiment_id])

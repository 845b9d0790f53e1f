"""Fixtures of all tests: seeded generators, and the command line in this process.

What takes long to import is imported by :func:`pytest_configure`, and not where tests only are handed out to workers.
"""

import contextlib
import gc
import importlib
import inspect
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from program import Program

pytest.register_assert_rewrite("orbit_rules")

collect_ignore = ["extension"]  # a package and its tests, which test_extension.py runs where they are installed


def pytest_configure(config: pytest.Config) -> None:
    """Import the project, unless other processes run the tests: they are xdist's, and have no ``dist`` themselves."""
    if config.getoption("dist", "no") != "no":
        return
    import torch
    from threadpoolctl import threadpool_limits

    import orbit

    orbit.available()  # before a test replaces the registry, which packages fill when they are first imported
    # Tests run thousands of small matrix products. With two threads each, on cores shared with other work, barriers
    # make them a hundred times slower. Tests of threads set the number of workers.
    torch.set_num_threads(1)
    threadpool_limits(1, "blas")


@pytest.fixture(scope="session", autouse=True)
def _own_data_folder(tmp_path_factory) -> Iterator[None]:
    """The key that signs models is not that of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data_home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _files_need_not_survive_a_power_cut() -> Iterator[None]:
    """Tests wait for no disk; test_faults.py checks when files are made to be on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: None)
        yield


def pytest_collection_finish() -> None:
    """Garbage collections leave out the million objects of imported modules and collected tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20170)


@pytest.fixture(params=[(30, 6), (12, 40), (20, 20)], ids=["primal", "dual", "square"])
def system(request, rng):
    """X and Y of least squares, with two outputs and features far from zero mean."""
    n, d = request.param
    X = rng.standard_normal((n, d)) @ np.diag(np.logspace(0, -2, d)) + rng.standard_normal(d)
    return X, X[:, :2] @ rng.standard_normal((2, 2)) + 0.3 * rng.standard_normal((n, 2)) + [5.0, -2.0]


@pytest.fixture
def problem(rng):
    """X and Y of least squares with many rows, two outputs and columns of different sizes."""
    X = rng.standard_normal((300, 12)) * np.geomspace(1, 0.1, 12) + 3.0
    Y = X @ rng.standard_normal((12, 2)) + 0.3 * rng.standard_normal((300, 2))
    return X, Y


@pytest.fixture(autouse=True)
def _alike_in_any_order() -> Iterator[None]:
    """A test finds global generators, the last data set and the registry as if it were the first.

    Estimators whose ``random_state`` is None draw from NumPy's global generator, as scikit-learn's do. A test may
    replace what a loader reads. Pages and contracts that later tests check are those of all components in the registry.
    """
    import torch

    from orbit import registry

    np.random.seed(20170)
    torch.default_generator.manual_seed(20170)
    before = registry.registered()
    yield
    if (plan := sys.modules.get("runners.config.plan")) is not None:
        plan._last.clear()
    own = ("orbit.", "runners.", "papers.", "benchmarks.")
    added = [cls for cls in registry.registered() - before if not cls.__module__.startswith(own)]
    assert not added, f"{added} would be found by other tests: use the fixture own_registry or install"


class Records(logging.Handler):
    """The messages that were logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def log_messages():
    """What ``orbit``, ``runners`` and ``papers`` log during a test.

    pytest's own fixture needs a plugin that adds handlers to every logger three times in each test, a tenth of the
    time of all tests, so it is switched off.
    """
    records = Records()
    with contextlib.ExitStack() as stack:
        for logger in map(logging.getLogger, ("orbit", "runners", "papers")):
            level = logger.level
            logger.addHandler(records)
            logger.setLevel(logging.INFO)
            stack.callback(logger.setLevel, level)
            stack.callback(logger.removeHandler, records)
        yield records.messages


# For what Hydra's store, which persists between runs, was last filled: components, and files that replace theirs.
_in_store: list[set] = []


@pytest.fixture
def run_with_figures(monkeypatch, tmp_path, capsys, new_database):
    """The command line in this process, as a Program."""
    # here, so that tests of the library alone do not import Hydra and MLflow
    import composition  # noqa: F401  compositions of equal choices share work
    from hydra.core.hydra_config import HydraConfig

    import orbit
    import runners.app.cli
    import runners.components
    from runners.config.schema import KINDS

    monkeypatch.setattr(HydraConfig.instance(), "cfg", None)  # a run sets it, and the names of runs depend on it
    register_schemas = runners.app.cli.register_schemas

    def register_once(*folders: Path) -> None:
        classes = {orbit.get(kind, name) for kind in orbit.available() for name in orbit.available(kind)}
        files = {(kind, path.stem) for folder in folders for kind in KINDS for path in (folder / kind).glob("*.yaml")}
        if _in_store != [classes, files]:
            register_schemas(*folders)
            _in_store[:] = classes, files

    monkeypatch.setattr(runners.app.cli, "register_schemas", register_once)
    monkeypatch.setattr("runners.tracking.mlflow._create_database", new_database)
    # Hydra composes each configuration once more to read hydra.mode, which the tests give by -m only
    monkeypatch.setattr("hydra._internal.hydra.Hydra.get_mode", lambda *args, **kwargs: None)
    monkeypatch.chdir(tmp_path)

    def execute(*overrides: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["run.py", *overrides, f"outputs={tmp_path / 'out'}"])
        capsys.readouterr()
        try:
            code = runners.app.cli.main()
        except SystemExit as end:  # of a sweep before its first job
            code = end.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return Program(execute, tmp_path)


@pytest.fixture
def run(run_with_figures, monkeypatch):
    """``run_with_figures`` with blank figures, because drawing takes two thirds of the time of a small run."""
    from matplotlib.figure import Figure

    from orbit import plots
    from runners.measure import figures

    for place in (plots, figures):
        for name in [name for name, drawn in vars(place).items() if inspect.isfunction(drawn) and name != "short"]:
            monkeypatch.setattr(place, name, lambda *args, **kwargs: Figure((1, 1)))
    return run_with_figures


@pytest.fixture
def few_groups(monkeypatch):
    """Runs that would compare all groups compare turns alone."""
    import orbit
    from runners.experiments import discover

    def compared(*args, groups, **kwargs):
        return orbit.discover(*args, groups=[orbit.groups.Rotation()] if groups is None else groups, **kwargs)

    monkeypatch.setattr(discover, "discover", compared)


def _look_for_packages_again() -> None:
    from orbit import registry

    registry._entry_points.cache_clear()
    registry.load_plugins.cache_clear()


@pytest.fixture
def own_registry(monkeypatch) -> Iterator[None]:
    """Components that the test registers are forgotten after it."""
    from orbit import registry

    monkeypatch.setattr(registry, "_classes", {kind: dict(known) for kind, known in registry._classes.items()})
    registry.load_plugins.cache_clear()
    yield
    registry.load_plugins.cache_clear()


@pytest.fixture
def install(monkeypatch, tmp_path) -> Iterator[Callable[..., Path]]:
    """``install(name, files, module=None)`` installs a package with components for one test; returns its folder."""
    from installed_package import remove_components_of, remove_from_store, write_package

    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)

    def write(name: str, files: Mapping[str, str], module: str | None = None) -> Path:
        write_package(site, name, files, module)
        importlib.invalidate_caches()
        _look_for_packages_again()
        return site / name

    yield write
    for kind, name in remove_components_of(site):
        for group in (kind, f"schema/{kind}"):
            remove_from_store(group, name)
    _look_for_packages_again()


@pytest.fixture(scope="session")
def new_database(tmp_path_factory) -> Callable[[Path], None]:
    """Puts an MLflow database without runs at a path; creating the tables takes seconds, so that it is done once."""
    from runners.tracking import mlflow

    create, empty = mlflow._create_database, tmp_path_factory.mktemp("database") / "mlflow.db"

    def copied(file: Path) -> None:
        if not empty.exists():
            create(empty)
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(empty, file)

    return copied


@pytest.fixture
def database(new_database, tmp_path) -> Path:
    """A database in the outputs of ``run``: for other processes, and before a test lets writing fail."""
    new_database(tmp_path / "out" / "mlflow.db")
    return tmp_path / "out" / "mlflow.db"

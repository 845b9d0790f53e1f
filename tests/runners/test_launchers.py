"""Launchers: the same sweep has the same results in one process, in several, by submitit and by Ray."""

import os
import signal
import sys
from pathlib import Path

import pytest
from command_line import SMALL, composed, folders
from test_jobs import start, statuses, wait_for_job

from orbit.core.errors import InputError
from runners.app.launcher import THREADS, threads
from runners.config.schema import PLUGINS
from runners.tracking.record import RunFolder, SweepFolder

LAUNCHERS = PLUGINS["hydra/launcher"]
PACKAGES = {"joblib": "joblib", "submitit_local": "submitit", "submitit_slurm": "submitit", "ray": "ray"}
SWEEP = ("-m", *SMALL, "runner.check_group=false", "group=identity,rotation", "seed=0,1")


@pytest.fixture
def slurm(tmp_path, monkeypatch) -> Path:
    """The folder of the scripts given to ``sbatch``, each of which is a process of this machine, and their output."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    monkeypatch.setenv("SLURM_FAKE", str(folder))
    monkeypatch.setenv("PATH", f"{Path(__file__).parent / 'slurm'}{os.pathsep}{os.environ['PATH']}")
    return folder


def printed_by_jobs(tmp_path: Path) -> str:
    """What the jobs of Slurm have printed, for the message of a test that failed."""
    return "\n".join(path.read_text() for path in sorted((tmp_path / "slurm").glob("output-*")))


def results(tmp_path: Path) -> dict[str, dict[str, float]]:
    """The metrics of each run, without times and memory."""
    runs = [RunFolder(folder) for folder in folders(tmp_path)]
    return {
        run.read_record().name: {
            k: v for k, v in run.read_metrics().items() if k.split("/")[0] not in ("time", "memory")
        }
        for run in runs
    }


def test_every_launcher_has_settings_that_compose():
    for name in LAUNCHERS:
        assert composed(f"hydra/launcher={name}").seed == 0


@pytest.mark.parametrize(
    ("part", "name", "value", "expected"),
    [
        ("launcher=joblib", "n_jobs", 0, "an integer >= 1, or -1"),
        ("launcher=joblib", "n_jobs", -2, "an integer >= 1, or -1"),
        ("sweeper=optuna", "n_trials", -1, "an integer >= 1"),
    ],
)
def test_numbers_of_jobs_are_checked_before_a_sweep_writes_anything(run, tmp_path, part, name, value, expected):
    key = f"hydra.{part.partition('=')[0]}.{name}"
    err = run.refused("-m", f"hydra/{part}", f"{key}={value}")
    assert err.splitlines()[-1] == f"error: {key}: expected {expected}, found {value}"
    assert not [path for path in (tmp_path / "out").glob("**/*") if path.is_file()]


def test_parallel_jobs_share_the_cores(monkeypatch):
    monkeypatch.setattr("runners.app.launcher.cpu_count", lambda: 8)
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    assert threads(3) == dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "2"
    )
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert "OMP_NUM_THREADS" not in threads(3)


def test_a_package_that_is_missing_is_named(monkeypatch, tmp_path):
    from runners.app.launcher import RayLauncher, SubmititLauncher

    for module in ("ray", "submitit"):
        monkeypatch.setitem(sys.modules, module, None)
    slurm = SubmititLauncher("slurm", str(tmp_path), n_jobs=1, timeout_min=1)
    for launcher, extra in ((slurm, "slurm"), (RayLauncher(1, None, 1, 0), "ray")):
        with (
            pytest.raises(InputError, match=rf"is not installed; pip install 'orbit-kernels\[{extra}\]'"),
            launcher._opened(1),
        ):
            pass


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Matrix products with other numbers of threads round differently."""
    with pytest.MonkeyPatch.context() as patch:
        for name in THREADS:
            patch.setenv(name, "1")
        yield


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, dict[str, float]]:
    """The results of the sweep in one process."""
    folder = tmp_path_factory.mktemp("basic")
    sweep = start(folder, *SWEEP)
    _, err = sweep.communicate(timeout=400)
    assert sweep.returncode == 0, err
    return results(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAUNCHERS)
def test_results_are_equal_to_the_last_digit(tmp_path, expected, name, request):
    pytest.importorskip(PACKAGES[name])
    more = ()
    if name == "submitit_slurm":
        request.getfixturevalue("slurm")
        more = (
            "hydra.launcher.partition=long",
            "hydra.launcher.gpus_per_node=1",
            "hydra.launcher.more={account: mine}",
        )
    sweep = start(tmp_path, *SWEEP, f"hydra/launcher={name}", "hydra.launcher.n_jobs=2", *more)
    out, err = sweep.communicate(timeout=400)
    assert sweep.returncode == 0, err + printed_by_jobs(tmp_path)
    assert "4 of 4 jobs finished" in out
    assert len(expected) == 4
    assert results(tmp_path) == expected
    assert statuses(tmp_path) == {"FINISHED": 5}
    commands = [RunFolder(folder).read_record().command for folder in folders(tmp_path)]
    assert all(command.startswith(f"python run.py {SMALL[0]} ") for command in commands)
    assert not any("hydra" in command for command in commands)
    (record,) = (SweepFolder(path.parent).read_record() for path in (tmp_path / "out").glob("*/*-sweep/sweep.json"))
    assert record.command.startswith(f"python run.py -m hydra/launcher={name} hydra.launcher.n_jobs=2 ")
    if name == "submitit_slurm":
        scripts = [path.read_text() for path in (tmp_path / "slurm").glob("script-*")]
        assert len(scripts) == 4
        for option in ("partition=long", "gpus-per-node=1", "account=mine", "time=60", "mem=4GB", "cpus-per-task=1"):
            assert all(f"#SBATCH --{option}\n" in script for script in scripts)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAUNCHERS)
def test_worker_that_dies_loses_its_job_only(tmp_path, name, request):
    pytest.importorskip(PACKAGES[name])
    if name == "submitit_slurm":
        request.getfixturevalue("slurm")
    sweep = start(tmp_path, *SWEEP, f"hydra/launcher={name}", "hydra.launcher.n_jobs=2")
    os.kill(wait_for_job(tmp_path, sweep).pid, signal.SIGKILL)
    out, err = sweep.communicate(timeout=400)
    assert sweep.returncode == 1, out + err + printed_by_jobs(tmp_path)
    assert "3 of 4 jobs finished" in out
    assert "ended without a result" in err
    assert "Traceback" not in err
    assert statuses(tmp_path) == {"FINISHED": 3, "FAILED": 2}  # the job, and the sweep

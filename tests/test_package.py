"""The wheel in a new environment, away from the clone: a run, a sweep, a prediction, and packages with components.

The environment borrows the dependencies of the one that runs the tests, which takes seconds instead of minutes.
"""

import csv
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from test_readme import EXTEND_PAGE, files_of_the_package

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SMALL = ("dataset.n_train=100", "dataset.n_test=100", "approx.n_components=32", "tracking.enabled=false")
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
OFFLINE = ("--no-deps", "--no-build-isolation")


class Environment:
    """A virtual environment with the wheel, and an empty folder in which its commands run."""

    def __init__(self, folder: Path) -> None:
        self.venv, self.work = folder / "venv", folder / "work"
        self.work.mkdir()
        execute(sys.executable, "-m", "venv", "--without-pip", self.venv, cwd=folder)
        self.site = Path(self("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())

    def __call__(self, name: str, *arguments: object, code: int = 0, cwd: Path | None = None) -> str:
        """Run a command of the environment; its output, and its errors if it fails as expected."""
        return execute(self.venv / "bin" / name, *arguments, cwd=cwd or self.work, code=code)

    def install(self, *what: object) -> None:
        execute(*PIP, "--python", self.venv / "bin" / "python", "install", *OFFLINE, *what, cwd=self.work)

    def folders(self) -> set[Path]:
        """The run folders."""
        return {path.parent for path in (self.work / "outputs").rglob("run.json")}


def execute(*command: object, cwd: Path, code: int = 0) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, env=environment)
    assert done.returncode == code, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy, because a build may leave files in the folder."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("orbit", "runners", "papers", "hydra_plugins", "conf"):
        shutil.copytree(ROOT / name, folder / "clone" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "clone")
    execute(*PIP, "wheel", *OFFLINE, "--wheel-dir", folder, folder / "clone", cwd=folder)
    (built,) = folder.glob("orbit_kernels-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("environment"))
    environment.install(wheel)
    (environment.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment


def test_a_run_a_prediction_and_a_sweep_from_an_empty_folder(installed):
    out = installed("orbit", "group=rotation", "approx=nystrom", *SMALL, "runner.save_model=true")
    (folder,) = installed.folders()
    assert re.search(rf"^ *run folder +{folder}$", out, re.MULTILINE)
    assert not [path for path in installed.work.iterdir() if path.name != "outputs"]
    np.savez(installed.work / "new.npz", X=load_digits().images[:20].astype(np.float32) / 16)
    installed("orbit", "runner=predict", f"runner.model={folder}", "runner.input=new.npz")
    (predictions,) = installed.work.rglob("predictions.csv")
    with predictions.open() as file:
        predicted = [row["prediction"] for row in csv.DictReader(file)]
    assert len(predicted) == 20
    code = (
        "import orbit, sys, numpy as np; orbit.available(); X = np.load('new.npz')['X']; "
        f"print(*orbit.load({str(folder)!r}).predict(X));"
        " sys.exit('runners' in sys.modules or 'mlflow' in sys.modules)"
    )
    assert installed("python", "-c", code).split() == predicted
    before = installed.folders()
    out = installed("orbit", "-m", "group=identity,rotation", *SMALL, "hydra/launcher=joblib")
    assert "2 of 2 jobs finished" in out
    assert len(installed.folders() - before) == 2


def test_the_installed_program_is_not_that_of_the_clone(installed):
    code = (
        "import orbit, runners, hydra_plugins.orbit_launcher as l; print(orbit.__file__, runners.__file__, l.__file__)"
    )
    assert all(Path(path).is_relative_to(installed.site) for path in installed("python", "-c", code).split())
    assert "  orbit -m group=identity,rotation seed=0,1" in installed("orbit", "--help")
    experiments = installed("python", "-m", "runners", "--info", "experiment")
    assert "experiment=rotated_mnist " in experiments
    assert "experiment=bench_" not in experiments
    assert (installed.site / "orbit" / "py.typed").is_file()
    assert "error: group=rotaton: no such group; did you mean 'rotation'?" in installed(
        "orbit", "group=rotaton", code=2
    )


def test_the_package_of_the_readme(installed, tmp_path):
    for file, content in files_of_the_package().items():
        (tmp_path / file).write_text(content)
    installed.install(tmp_path)
    assert " passed" in installed("python", "-m", "pytest", "-p", "no:cacheprovider", cwd=tmp_path)
    assert "group=reversal: Sequences of shape" in installed("orbit", "--info", "group=reversal")
    command = re.search(r"^    orbit (-m dataset=xperm .*)$", EXTEND_PAGE, re.MULTILINE)[1].split()
    before = installed.folders()
    assert "4 of 4 jobs finished" in installed("orbit", *command, *SMALL)
    assert len(installed.folders() - before) == 4


def test_the_package_that_init_writes(installed):
    said = installed("orbit", "init", "my_turns")
    install, run = (line.split() for line in said.rpartition("Run\n")[2].splitlines())
    assert install[:3] == ["pip", "install", "-e"]
    installed.install(*install[2:])
    out = installed(*run, *SMALL)
    assert "group=my_turns_turns" in out
    assert " passed" in installed("python", "-m", "pytest", "-p", "no:cacheprovider", cwd=installed.work / "my_turns")

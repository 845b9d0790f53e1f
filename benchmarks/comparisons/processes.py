"""The start of the command line and of the library: seconds of whole processes, beside those of their imports."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from subprocess import run

from benchmarks.comparisons.base import Comparison
from runners.config.plan import Plan
from runners.config.program import python_path

#: Arguments that are answered before any work; those refused, with exit code 2.
REFUSED = ("grp=rotation", "orbit.size=-1")
ANSWERED = ("--help", "--info=approx=rf", *REFUSED)

# What a run that draws and is tracked cannot do without.
_IMPORTS = (
    "import hydra, torch, sklearn, matplotlib.figure, matplotlib.backends.backend_agg, mlflow.sklearn, "
    "mlflow.store.tracking.sqlalchemy_store"
)
_RUN_TWICE = "import sys; from runners.app.cli import main; sys.exit(main() or main())"

#: Case -> arguments of Python. Those of the command line also get a folder for its outputs.
CASES = {
    "import hydra": ("-c", "import hydra"),
    "import torch, sklearn": ("-c", "import torch, sklearn"),
    "import orbit": ("-c", "import orbit"),
    "import all of orbit": ("-c", "import orbit; orbit.available()"),
    "compiled loops": ("-c", "import orbit, orbit.approx.loops; orbit.available()"),
    **{argument: ("-m", "runners", argument) for argument in ANSWERED},
    "imports of a run": ("-c", _IMPORTS),
    "run": ("-m", "runners"),
    "two runs": ("-c", _RUN_TWICE),
}


def start(plan: Plan, n_points: int, threads: int) -> Comparison:
    """Help, information, two refusals and the default run, each a process, against what Python takes to import.

    ``beyond hydra``: what a process takes more than ``import hydra``. ``imports and work``: the imports that a run
    cannot do without, and the second of two runs in one process. ``loading loops``: what the compiled loops take in
    a process that uses them. The first round, which is not measured, is that of a first use: it reads the
    signatures, compiles the loops and creates the database. The plan has no part in it.
    """
    folder = tempfile.TemporaryDirectory(prefix="orbit-start-")
    derived = {f"{case} beyond hydra": {case: 1, "import hydra": -1} for case in ANSWERED}
    derived["imports and work"] = {"imports of a run": 1, "two runs": 1, "run": -1}
    derived["loading loops"] = {"compiled loops": 1, "import all of orbit": -1}
    ratios = {f"{case}/import hydra": (case, "import hydra") for case in ANSWERED}
    ratios |= {f"{case}/torch, sklearn": (case, "import torch, sklearn") for case in CASES if case.endswith("orbit")}
    ratios["run/imports and work"] = ("run", "imports and work")
    return Comparison({case: partial(_run, case, folder) for case in CASES}, ratios, derived=derived)


def _run(case: str, folder: tempfile.TemporaryDirectory) -> None:
    command_line = CASES[case][0] == "-m" or case == "two runs"
    arguments = [*CASES[case], *([f"outputs={folder.name}"] if command_line else [])]
    done = run(
        [sys.executable, *arguments],
        cwd=folder.name,
        env=os.environ | {"PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != (2 if case in REFUSED else 0):
        raise RuntimeError(f"{case}: the process ended with exit code {done.returncode}:\n{done.stderr}")

"""The command that starts the program, as messages and pages write it, and the comments of configuration files."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from runners.config.config_dirs import text_of
from runners.config.names import given, key_of

#: Environment variable with what :func:`program` returns, for the processes of a launcher, which are started otherwise.
PROGRAM_ENV = "ORBIT_PROGRAM"

#: Environment variable of a job that is the trial of a search: a JSON list of storage and name of the study, and the
#: number of the trial. And the attribute of a trial that has ended early.
TRIAL_ENV, PRUNED = "ORBIT_TRIAL", "pruned"

#: Beginnings of the settings of sweeps, which a single run does not take.
OF_SWEEPS = ("hydra/sweeper", "hydra/launcher", "hydra.sweep", "hydra.launcher.")

# Settings of one run or sweep, which another one cannot have: its folder, its number, and its trial.
_OF_ONE = ("hydra.mode", "hydra.run.dir", "hydra.sweep.dir", "hydra.job.num", f"hydra.job.env_set.{TRIAL_ENV}")

# A command in a comment, whose arguments follow.
_COMMAND = re.compile(r"^(python run\.py|orbit)(?= (-m )?[\w./]+=)")


def program() -> str:
    """``python run.py`` in a process that was started by that file, otherwise ``orbit``."""
    return os.environ.get(PROGRAM_ENV) or ("python run.py" if Path(sys.argv[0]).name == "run.py" else "orbit")


def command(hydra: Any, overrides: Iterable[str], sweep: bool = False) -> str:
    """The command line that repeats a run, a job of a sweep as a run of its own, or a sweep; see :func:`arguments`."""
    return f"{program()} {shlex.join([*(['-m'] if sweep else []), *arguments(hydra, overrides, sweep)])}"


def arguments(hydra: Any, overrides: Iterable[str], sweep: bool = False) -> list[str]:
    """The arguments of a run, or those of a sweep and its jobs.

    Parameters
    ----------
    hydra : DictConfig
        Hydra's section of the configuration: its settings and folders of configuration files are repeated too, but for
        the folder of the results and, for a run, the settings of its sweep.
    overrides : iterable of str
        All others.
    sweep : bool
    """
    left_out = _OF_ONE if sweep else (*_OF_ONE, *OF_SWEEPS)
    settings = [setting for setting in given(hydra.overrides.hydra) if not key_of(setting).startswith(left_out)]
    folders = [source.path for source in hydra.runtime.config_sources if source.provider == "command-line"]
    return [*(word for folder in folders for word in ("--config-dir", folder)), *settings, *overrides]


def python_path() -> str:
    """PYTHONPATH for processes that are to import the project from where this one has."""
    return os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))


def leading_comment(path: Path) -> tuple[str, list[str]]:
    """The text of the comment that a configuration file begins with, and the commands in it."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), text_of(path).splitlines())
    comment = [line.lstrip("# ") for line in lines if "@package" not in line]
    commands = [_COMMAND.sub(program(), line) for line in comment if _COMMAND.match(line)]
    return " ".join(line for line in comment if not _COMMAND.match(line)), commands

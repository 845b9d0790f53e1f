"""``orbit torchrun OPTIONS SETTINGS`` starts several processes for one run, as ``torchrun`` does, with one-line errors.

``torchrun`` itself ends with its own traceback when a process fails, which nothing in that process can prevent.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from orbit.core.errors import InputError
from runners.program import python_path

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

#: Set in processes whose launcher says which one was lost: those that lose touch with it do not.
REPORTS_ENV = "ORBIT_TORCHRUN"

# Exit codes of processes that have printed what is wrong.
_SAID = (1, 2)


def launch(arguments: Sequence[str]) -> int:
    """Start the processes of a run, wait for them, and return the exit code.

    Parameters
    ----------
    arguments : sequence of str
        Options of ``torchrun``, and settings.

    Raises
    ------
    InputError
        For options that ``torchrun`` does not have, and values that it does not take.
    """
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    from runners.app.launcher import threads

    parser = run.get_args_parser()
    parser.error = _refuse  # type: ignore[method-assign]  # argparse prints the usage and exits
    options = parser.parse_args([*arguments, ""])  # the first setting takes the place of a script
    _check(options)
    settings = [options.training_script, *options.training_script_args][:-1]
    options.module, options.training_script, options.training_script_args = True, "runners", settings
    if options.nproc_per_node.isdigit():
        os.environ.update(threads(int(options.nproc_per_node)))
    if options.nnodes in ("1", "1:1"):
        os.environ[REPORTS_ENV] = "1"
    os.environ["PYTHONPATH"] = python_path()
    logging.disable(logging.ERROR)  # of torch, about processes that it ends
    try:
        run.run(options)
    except ValueError as error:  # such as a number of processes that is none
        raise InputError(f"torchrun: {error}") from error
    except ChildFailedError as error:
        _end_runs(settings)
        return _report(error)
    except (SignalException, KeyboardInterrupt):
        return 130
    finally:
        logging.disable(logging.NOTSET)
    return 0


def _refuse(message: str) -> NoReturn:
    raise InputError(f"torchrun: {message}")


def _check(options: argparse.Namespace) -> None:
    """Raise ``InputError`` for numbers that ``torchrun`` answers with a traceback."""
    least = {"nproc_per_node": 1, "nnodes": 1, "max_restarts": 0}
    for name, lowest in least.items():
        given = str(vars(options)[name])
        numbers = given.split(":") if name == "nnodes" else [given]
        words = name == "nproc_per_node" and given.isalpha()  # gpu, cpu, auto
        if not words and not all(number.isdecimal() and int(number) >= lowest for number in numbers):
            raise InputError(f"torchrun: --{name.replace('_', '-')}: expected an integer >= {lowest}, found {given}")


def _end_runs(settings: Sequence[str]) -> None:
    """Record that runs have failed whose first process was killed."""
    from runners.tracking.recovery import recover

    given = [setting.partition("=")[2] for setting in settings if setting.startswith("outputs=")]
    recover(Path((given or ["outputs"])[-1]), None)


def _report(error: ChildFailedError) -> int:
    """Say which process was lost first, unless a process has said what is wrong; returns the exit code."""
    said = [failure for failure in error.failures.values() if failure.exitcode in _SAID]
    known = {*_SAID, *([-signal.SIGTERM] if any(failure.exitcode == 2 for failure in said) else [])}
    # torchrun ends the others by SIGTERM when one has refused its settings
    lost = {rank: failure for rank, failure in error.failures.items() if failure.exitcode not in known}
    if not lost:
        return int(min(said, key=lambda failure: failure.timestamp).exitcode)
    rank, failure = min(lost.items(), key=lambda item: item[1].timestamp)
    how = (
        f"was killed by {failure.signal_name()}" if failure.exitcode < 0 else f"ended with exit code {failure.exitcode}"
    )
    print(f"error: process {rank} {how}; the job was ended, start it again", file=sys.stderr)
    return 1

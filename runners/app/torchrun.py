"""``orbit torchrun OPTIONS SETTINGS`` starts several processes for one run, as ``torchrun`` does, with one-line errors.

``torchrun`` itself ends with its own traceback when a process fails, which nothing in that process can prevent.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from orbit.core import ranks
from orbit.core.errors import InputError
from runners.config.arguments import SHARED_SWEEP
from runners.config.program import python_path

if TYPE_CHECKING:
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

#: Set in processes whose launcher says which one was lost: those that lose touch with it do not.
REPORTS_ENV = "ORBIT_TORCHRUN"

# The file in which the first process says where its results are: the launcher composes no configuration, and would
# resolve times in it anew.
_OUTPUTS_ENV = "ORBIT_TORCHRUN_OUTPUTS"

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
        For options that ``torchrun`` does not have, values that it does not take, and a sweep.
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
    if options.module or {"-m", "--multirun"} & {*settings}:  # torchrun has an option -m too
        raise InputError(SHARED_SWEEP)
    options.module, options.training_script, options.training_script_args = True, "runners", settings
    if options.nproc_per_node.isdigit():
        os.environ.update(threads(int(options.nproc_per_node)))
    if options.nnodes in ("1", "1:1"):
        os.environ[REPORTS_ENV] = "1"
    os.environ["PYTHONPATH"] = python_path()
    logging.disable(logging.ERROR)  # of torch, about processes that it ends
    with _outputs_file() as outputs:
        try:
            run.run(options)
        except ValueError as error:  # such as a number of processes that is none
            raise InputError(f"torchrun: {error}") from error
        except ChildFailedError as error:
            _end_runs(outputs)
            return _report(error)
        except (SignalException, KeyboardInterrupt):
            return 130
        finally:
            logging.disable(logging.NOTSET)
    return 0


def tell_outputs(outputs: Path) -> None:
    """Tell the launcher, if there is one, where the results of this run are. Without effect in all but the first."""
    if _OUTPUTS_ENV in os.environ and ranks.rank() == 0:
        Path(os.environ[_OUTPUTS_ENV]).write_text(str(outputs.absolute()), encoding="utf-8")


@contextlib.contextmanager
def _outputs_file() -> Iterator[Path]:
    """Context manager with the file for :func:`tell_outputs` in the processes that are started in it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[_OUTPUTS_ENV] = str(Path(folder, "outputs"))
        try:
            yield Path(folder, "outputs")
        finally:
            del os.environ[_OUTPUTS_ENV]


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


def _end_runs(outputs: Path) -> None:
    """Record that runs have failed whose first process was killed; without one here, or before it had begun, none."""
    from runners.tracking.recovery import recover

    if outputs.is_file():
        recover(Path(outputs.read_text(encoding="utf-8")), None)


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

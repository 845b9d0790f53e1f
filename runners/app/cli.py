"""The command line: composes a configuration, runs it, and reports errors as one line and an exit code.

Exit codes: 0 success, 1 a defect or a failed job of a sweep, 2 bad input, also of all jobs of a sweep, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import logging
import math
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from orbit.core import interruption, ranks
from orbit.core.environment import check_environment
from orbit.core.errors import InputError, shortened
from orbit.core.models import MODEL
from runners.app import processes, project
from runners.config import config_dirs, info
from runners.config.arguments import check_arguments, options_first, quoted
from runners.config.files import check_files
from runners.config.imports import large_imports
from runners.config.messages import bad_input, is_configuration_error
from runners.config.names import given
from runners.config.program import command
from runners.config.schema import register_schemas
from runners.config.settings import check_place, check_settings, resolved
from runners.tracking.pending import Marker, Pending
from runners.tracking.record import CONFIG, METRICS, TRACEBACK, Record, RunFolder
from runners.tracking.storage import cannot_write
from runners.tracking.sweep import PARENT_ENV, SWEEP_ENV, close_sweep, nothing_kept, open_folder

log = logging.getLogger(__name__)

# So often a repeated warning was given that its number is said.
_OFTEN = 10

INTERRUPTED = 130  # the exit code

_exit_code = 0  # of the last job run in this process


def main() -> int:
    """Run the command line, and return the exit code."""
    global _exit_code
    _exit_code = 0
    _prepare()
    try:
        try:
            if (own := _asked_to_run(sys.argv[1:])) is None:
                return 0
            with _own_folder(), nothing_kept():
                hydra.main(version_base="1.3", config_path=str(own), config_name="config")(run_job)()
        except KeyboardInterrupt as error:
            _let_go(error)
            close_sweep(interrupted=True)
            print(
                "interrupted; finished results are kept, and the same command with resume=true goes on after them",
                file=sys.stderr,
            )
            return INTERRUPTED
        except BrokenPipeError:  # whoever read the output has stopped, as `| head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter fails to flush it
            return 1
        except Exception as error:
            return _failed(error)
        code = close_sweep(ended=True)
        return _exit_code if code is None else code
    except KeyboardInterrupt:  # while the results of a sweep, or of what was interrupted, were completed
        print("interrupted; the next start, or runner=sync, uploads what is missing", file=sys.stderr)
        return INTERRUPTED


def _asked_to_run(arguments: list[str]) -> Path | None:
    """The folder of configuration files, with Hydra ready to compose; None if the request was another, and answered."""
    if arguments[:1] == ["init"]:
        print(project.init(arguments[1:]), flush=True)
        return None
    own, folders = config_dirs.own(), [*config_dirs.of_plugins(), *config_dirs.added(arguments)]
    if (topic := info.requested(arguments)) is not None:
        print(info.describe_topic(topic, own, *folders), flush=True)
        return None
    if not {"--info", "-i"}.isdisjoint(arguments):  # Hydra answers by its log, which shows a traceback for each line
        logging.raiseExceptions = False  # that nobody reads, as those after the first of `| head -1`
    arguments = quoted(arguments)
    check_arguments(arguments)
    sys.argv[1:] = options_first(arguments)
    check_environment()
    check_files(own)
    register_schemas(own, *folders)
    return own


def _failed(error: Exception) -> int:
    """Close the sweep, and report an error that no job has reported."""
    folder = open_folder()
    close_sweep(refused=bad_input(error) is not None)
    if (lost := processes.lost(error)) is not None:
        return _report(lost)
    if isinstance(error, OSError) and not is_configuration_error(error):  # of Hydra's creation of the run folder
        return _report(cannot_write(error.filename or folder or "the run folder", error))
    return _report(error)


def _prepare() -> None:
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra raises errors instead of printing them
    if os.path.expanduser("~") == "~":  # a number without a name, as in containers: MLflow's import needs a home
        os.environ["HOME"] = os.devnull  # in which nobody can write
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr has it: no locale has all characters
    processes.end_on_signals()


@contextlib.contextmanager
def _own_folder() -> Iterator[None]:
    """Context manager in which all but the first process of a job leave nothing on disk or in MLflow."""
    if ranks.rank() == 0:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        sys.argv += [f"hydra.run.dir={folder}", "tracking.enabled=false", "engine.progress=false"]
        yield


def run_job(cfg: DictConfig) -> float:
    """Run one job. Hydra calls it once for a run, and once for each job of a sweep.

    Returns the main metric, for Hydra's search plugins; NaN if there is none or
    the job failed. It raises only when interrupted: on any other exception Hydra
    would stop the sweep without its summary.
    """
    global _exit_code
    try:
        with processes.job(), _logged_warnings(), _folder_of_command():
            if cfg.dry_run and SWEEP_ENV not in os.environ:
                return _dry_run(cfg)
            folder, record = _begun(cfg)
            pending = Pending(Path(cfg.outputs))
            marker = pending.add(folder.path)
            with contextlib.ExitStack() as afterwards, _recorded(folder, record):
                afterwards.callback(_complete, pending, marker, folder)
                _check(cfg)
                if cfg.dry_run:
                    raise InputError(
                        "dry_run: expected one value for all jobs of a sweep, give it once, on the command line"
                    )
                return _work().run(cfg, folder, record, afterwards)
    except ranks.ShareDone:
        return math.nan
    except Exception as error:
        if (lost := processes.lost(error)) is not None:
            with contextlib.suppress(Exception):  # imports that the loss has interrupted
                from runners.tracking.recovery import recover

                recover(Path(cfg.outputs), None)  # the first process may be the one that died, with the run's record
        _exit_code = _report(lost or error)
        return math.nan


def _folder_of_command() -> contextlib.AbstractContextManager[None]:
    """Context manager in which paths are relative to the folder of the command, as without ``hydra.job.chdir=true``."""
    hydra_config = HydraConfig.get()
    return contextlib.chdir(hydra_config.runtime.cwd) if hydra_config.job.chdir else contextlib.nullcontext()


def _check(cfg: DictConfig) -> None:
    config = resolved(cfg)
    check_settings(config)
    check_place(config["dataset"], config["runner"]["name"])


@functools.cache
def _work() -> ModuleType:
    """``runners.app.run``, imported here, because it imports all components, which takes seconds."""
    with large_imports():
        from runners.app import run
    return run


def _dry_run(cfg: DictConfig) -> float:
    cfg.engine.progress = False
    _check(cfg)
    _work().dry_run(cfg)
    return math.nan


def _check_is_free(folder: RunFolder) -> None:
    """Raise ``InputError`` for a folder whose files would be replaced, or whose model be taken for the new one."""
    earlier = folder.read_record()
    if earlier is not None and earlier.status == "FINISHED":
        raise InputError(f"hydra.run.dir: expected a folder without a finished run, found {folder.path.absolute()}")
    for name in (CONFIG, METRICS, MODEL):
        if earlier is None and (path := folder.path / name).exists():
            raise InputError(f"hydra.run.dir: expected a folder without files of others, found {path.absolute()}")


def _begun(cfg: DictConfig) -> tuple[RunFolder, Record]:
    """The folder of a job, and its record."""
    hydra_config = HydraConfig.get()
    multirun = SWEEP_ENV in os.environ
    folder, overrides = RunFolder(Path(hydra_config.runtime.output_dir)), given(hydra_config.overrides.task)
    record = Record(
        name=cfg.run_name,
        overrides=overrides,
        command=command(hydra_config, overrides),
        job=int(hydra_config.job.num) if multirun else None,
        parent_id=os.environ.get(PARENT_ENV) if multirun else None,
    )
    if not multirun and not (cfg.resume or cfg.retry_failed):
        _check_is_free(folder)
    folder.write_text("overrides.yaml", "".join(f"- {o}\n" for o in overrides))
    if multirun:
        log.info("job %d: %s", record.job, " ".join(overrides))
    return folder, record


@contextlib.contextmanager
def _logged_warnings() -> Iterator[None]:
    """Write Python's warnings to the log, which is shown on the terminal and kept in the run folder.

    Each is written once, and at the end how often it was given, if often: data that a run takes several times warn each
    time.
    """
    counts = Counter[str]()

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        text = f"{category.__name__}: {' '.join(str(message).split())}"
        counts[text] += 1
        if counts[text] == 1:
            log.warning("%s", text)

    before, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = before
        for text, count in counts.items():
            if count >= _OFTEN:
                log.warning("%d times: %s", count, shortened(text))


@contextlib.contextmanager
def _recorded(folder: RunFolder, record: Record) -> Iterator[None]:
    """Keep the record of a job on disk; if the job fails, its traceback too."""
    begun = time.monotonic()
    folder.write_record(record)
    try:
        yield
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        record.status = "KILLED" if interrupted else "FAILED"
        record.error = "interrupted" if interrupted else _describe(error)
        record.refused = bad_input(error) is not None
        record.end = record.start + time.monotonic() - begun
        with contextlib.suppress(InputError):  # on a full disk; the error that is raised says so
            folder.write_text(TRACEBACK, traceback.format_exc())
        with contextlib.suppress(InputError):
            folder.write_record(record)
        if interrupted:
            _let_go(error)
        raise
    record.end = record.start + time.monotonic() - begun  # the clock may have been set meanwhile
    folder.write_record(record)


def _let_go(error: BaseException) -> None:
    """Allow what follows an interrupted call: the request to end is withdrawn, and no transaction is open.

    The transaction is one that the frames of the call hold, and would lock MLflow's database for the upload.
    """
    interruption.clear()
    cause: BaseException | None = error
    while cause is not None:
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__context__
    gc.collect()


def _complete(pending: Pending, marker: Marker, folder: RunFolder) -> None:
    """The run is complete, unless its end could not be written: then the next start ends it."""
    if folder.has_ended():
        pending.remove(marker)
    if folder.is_refused():
        folder.discard()


def _describe(error: BaseException) -> str:
    return str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"


def _report(error: BaseException) -> int:
    """Print an error: bad input in one line (its traceback is in the log file), anything else in full."""
    if isinstance(error, ranks.ProcessLostError):
        print(f"error: {error}", file=sys.stderr)
        return 1
    line = bad_input(error)
    if line is None:
        log.error("the program failed; this is a defect", exc_info=error)
        if not logging.getLogger().handlers:
            traceback.print_exception(error)
        return 1
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handle(
                log.makeRecord(log.name, logging.ERROR, "", 0, line, (), (type(error), error, error.__traceback__))
            )
    print(f"error: {line}", file=sys.stderr)
    return 2

"""Formats a run for the cells of a table."""

from __future__ import annotations

import re
import shlex
import time

from papers.content import Code
from papers.runs import Run
from runners.config.program import program

_MAX_CELL = 60
_MAX_ERROR = 300


def command_line(overrides: list[str], *options: str) -> Code:
    """The command line of a run, without passwords.

    >>> command_line(["approx=rf", "tracking.uri=http://me:secret@host", "kernel={a: 1}"])
    "orbit approx=rf tracking.uri=http://***@host 'kernel={a: 1}'"
    """
    return Code(public(" ".join([program(), *map(shlex.quote, [*options, *overrides])])))


def public(text: str) -> str:
    """The text without what an address has before an @, which may be a password or a token.

    >>> public("https://ghp_1@host and postgresql://me:secret@host")
    'https://***@host and postgresql://***@host'
    """
    return re.sub(r"(?<=://)[^\s/]+(?=@)", "***", text)


def command(run: Run) -> Code:
    """The command that repeats the run."""
    if run.record.command:
        return Code(public(run.record.command))
    return command_line(run.record.overrides, *(["-m"] if run.opens_sweep else []))


def identity(run: Run) -> Code:
    """The id of the run in MLflow, or its folder."""
    return Code(run.record.run_id or (run.folder.path if run.folder is not None else ""))


def metric(run: Run, name: str) -> str:
    return f"{run.metrics[name]:.4g}" if name in run.metrics else ""


def error(run: Run) -> str:
    return shortened(public(run.record.error or ""), _MAX_ERROR)


def shortened(text: str, length: int = _MAX_CELL) -> str:
    """One line of at most ``length`` characters.

    >>> shortened("a long\\nline", 6)
    'a lon…'
    """
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1]}…"


def started(run: Run) -> str:
    """Date and minute, local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(run.record.start))


def duration(run: Run) -> str:
    """``12.3 s``, ``1 min 23 s`` or ``2 h 5 min``; empty for a run without an end."""
    if run.record.end is None:
        return ""
    seconds = run.record.end - run.record.start
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min {seconds} s"

"""The command that starts the program, as messages and pages write it, and the comments of configuration files."""

from __future__ import annotations

import itertools
import os
import re
import sys
from pathlib import Path

# A command in a comment, whose arguments follow.
_COMMAND = re.compile(r"^(python run\.py|orbit)(?= (-m )?[\w./]+=)")


def program() -> str:
    """``python run.py`` in a process that was started by that file, otherwise ``orbit``."""
    return "python run.py" if Path(sys.argv[0]).name == "run.py" else "orbit"


def python_path() -> str:
    """PYTHONPATH for processes that are to import the project from where this one has."""
    return os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))


def leading_comment(path: Path) -> tuple[str, list[str]]:
    """The text of the comment that a configuration file begins with, and the commands in it."""
    lines = itertools.takewhile(lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines())
    comment = [line.lstrip("# ") for line in lines if "@package" not in line]
    commands = [_COMMAND.sub(program(), line) for line in comment if _COMMAND.match(line)]
    return " ".join(line for line in comment if not _COMMAND.match(line)), commands

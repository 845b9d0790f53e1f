"""The command that starts the program, as messages and pages write it."""

from __future__ import annotations

import sys
from pathlib import Path


def program() -> str:
    """``python run.py`` in a process that was started by that file, otherwise ``orbit``."""
    return "python run.py" if Path(sys.argv[0]).name == "run.py" else "orbit"

"""The command line as tests call it, and the folders of its runs."""

import json
from collections.abc import Callable
from pathlib import Path


class Program:
    """``run("group=identity", ...)`` -> (exit code, stdout, stderr), outputs in ``tmp_path / "out"``."""

    def __init__(self, execute: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
        self.execute, self.tmp_path = execute, tmp_path

    def __call__(self, *overrides: str) -> tuple[int, str, str]:
        return self.execute(*overrides)

    def ok(self, *overrides: str) -> str:
        """What a command that succeeds prints; ``said`` has its errors too."""
        return self.ends(0, *overrides)

    def ends(self, expected: int, *overrides: str) -> str:
        """What a command with this exit code prints."""
        code, self.out, self.err = self.execute(*overrides)
        assert code == expected, self.err
        self.said = self.out + self.err
        return self.out

    def finished(self, *overrides: str) -> Path:
        """The folder of the run of a command that succeeds."""
        before = {*folders(self.tmp_path)}
        self.ok(*overrides)
        (folder,) = {*folders(self.tmp_path)} - before
        return folder

    def metrics(self, *overrides: str) -> dict[str, float]:
        """Those of the run of a command that succeeds."""
        return json.loads((self.finished(*overrides) / "metrics.json").read_text())

    def refused(self, *overrides: str) -> str:
        """The errors of a command that is refused as bad input."""
        self.ends(2, *overrides)
        return self.err


def folders(tmp_path: Path) -> list[Path]:
    """The run folders in the outputs of the ``run`` fixture, in the order of their names."""
    return sorted(path.parent for path in (tmp_path / "out").rglob("run.json") if "artifacts" not in path.parts)

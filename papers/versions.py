"""Which kept results are older than the code that they depend on, by git."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from orbit.registry import available, classes
from papers.published import Experiment
from papers.records import Gathered
from runners.measure.machine import git

_ROOT = Path(__file__).parents[1]


def versions(kept: Mapping[str, Gathered], experiments: Mapping[str, Experiment]) -> list[list[str]]:
    """For each run its name, its commit, and the number of later commits that changed the code it depends on.

    That is the files of the experiment, of the components that they name, and of their base classes. The number is
    ``unknown`` for a commit that is not in the repository. Outside of a clone the list is empty.
    """
    if git(_ROOT, "ls-files", "--error-unmatch", __file__) is None:
        return []
    rows = []
    for name, gathered in kept.items():
        files = sources(experiments[gathered.runs[0].experiment])
        for run in gathered.runs:
            commit = run.commit.split()[0] if run.commit else ""
            count = git(_ROOT, "rev-list", "--count", f"{commit}..HEAD", "--", *map(str, files)) if commit else None
            rows.append([name, run.commit, count or "unknown"])
    return rows


def sources(experiment: Experiment) -> list[Path]:
    """The files of an experiment, of the components that they name, and of their base classes.

    >>> from papers.published import experiments
    >>> names = [file.name for file in sources(experiments()["rotated_mnist"])]
    >>> [name in names for name in ("paper.yaml", "rotation.py", "nystrom.py", "base.py", "cyclic.py")]
    [True, True, True, True, False]
    """
    words = {word for file in experiment.files for word in _words(yaml.safe_load(file.read_text(encoding="utf-8")))}
    named = ((kind, name) for kind in available() for name in available(kind) if name in words)
    bases = {base for kind, name in named for cls in classes(kind, name) for base in cls.__mro__}
    own = {inspect.getfile(base) for base in bases if base.__module__.split(".")[0] in ("orbit", "papers")}
    return [*experiment.files, *map(Path, sorted(own))]


def _words(content: Any) -> Iterator[str]:
    """All texts of a YAML document but its keys."""
    if isinstance(content, str):
        yield content
    for item in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from _words(item)

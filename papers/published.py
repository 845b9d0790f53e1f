"""The papers' tables and figures in their order, from ``published/*.yaml``, and the experiments that repeat them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from runners.config.program import leading_comment, program
from runners.measure.results import TABLE, Result

_PAPERS = Path(__file__).parent / "published"
_EXPERIMENTS = Path(__file__).parent / "conf" / "experiment"
_SMALL = "small"  # the size without an argument


@dataclass(frozen=True)
class Headline:
    """The result that stands for an item in the index; of a line the last point."""

    label: str
    part: str = TABLE

    def find(self, results: list[Result]) -> Result | None:
        """The result; None if there is none."""
        found = [result for result in results if (result.part, result.label) == (self.part, self.label)]
        return found[-1] if found else None


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper.

    Attributes
    ----------
    name : str
        Its number, ``Table 1``.
    about : str
    experiment : str
        Name of the experiment; empty where ``reason`` says why there is none.
    parts : list of str, or None
        The parts of the results that are shown; None is all.
    pictures : list of str
        The figures of the run that are shown.
    headline : Headline or None
    published : str or float
        What the paper shows, where it is no value of the experiment.
    departures : dict of str to str
        Size -> how it departs from the paper, in one line.
    chosen_on : dict of str to str
        Row or curve -> the data on which its settings were chosen, where the paper does not give them; that of ``""``
        stands for all others.
    quoted : str
        Values that the paper takes from others, which are not repeated here.
    reason : str
    """

    name: str
    about: str
    experiment: str = ""
    parts: list[str] | None = None
    pictures: list[str] = field(default_factory=list)
    headline: Headline | None = None
    published: str | float = ""
    departures: dict[str, str] = field(default_factory=dict)
    chosen_on: dict[str, str] = field(default_factory=dict)
    quoted: str = ""
    reason: str = ""

    def shown(self, results: list[Result]) -> dict[str, list[Result]]:
        """Part -> its results, for the parts of this item that there are."""
        parts = self.parts if self.parts is not None else list(dict.fromkeys(result.part for result in results))
        found = {part: [result for result in results if result.part == part] for part in parts}
        return {part: some for part, some in found.items() if some}


@dataclass(frozen=True)
class Paper:
    """A paper with its items. ``name`` is that of its page."""

    name: str
    title: str
    authors: str
    items: list[Item]

    @classmethod
    def read(cls, path: Path) -> Paper:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        items = [_item(values) for values in content["items"]]
        return cls(path.stem.partition("_")[2], content["title"], content["authors"], items)


@dataclass(frozen=True)
class Experiment:
    """The commands of an experiment.

    Attributes
    ----------
    name : str
    commands : list of str
        Those in the comment at the top of its file.
    sizes : list of str
        Values of ``size``, the default first; empty for an experiment without sizes.
    files : list of Path
        Its configuration.
    """

    name: str
    commands: list[str]
    sizes: list[str]
    files: list[Path] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Experiment:
        of_sizes = sorted(path.with_suffix("").glob("*.yaml"), key=lambda file: (file.stem != _SMALL, file.stem))
        commands = leading_comment(path)[1] or [f"{program()} experiment={path.stem}"]
        return cls(path.stem, commands, [file.stem for file in of_sizes], [path, *of_sizes])

    def command(self, size: str) -> str:
        """The command that runs the experiment at a size."""
        if size == _SMALL:
            return self.commands[0]
        named = f"size={size}"
        return next((c for c in self.commands if named in c.split()), f"{self.commands[0]} {named}")


def experiments() -> dict[str, Experiment]:
    """The experiments of the papers, by name."""
    return {path.stem: Experiment.read(path) for path in sorted(_EXPERIMENTS.glob("*.yaml"))}


@functools.cache
def papers() -> list[Paper]:
    """All papers, in the order of their files.

    >>> [paper.name for paper in papers()]
    ['raj2017', 'mroueh2015', 'daniely2017', 'brault2016']
    """
    return [Paper.read(path) for path in sorted(_PAPERS.glob("*.yaml"))]


def _item(values: dict[str, Any]) -> Item:
    headline = values.get("headline")
    return Item(**values | {"headline": Headline(**headline) if headline else None})

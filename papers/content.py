"""The content of a report, independent of its format: the tables, pictures and sections that the templates use."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


class Code(str):
    """Text shown verbatim, such as a command."""


class Link(str):
    """A web address."""


class Reference(str):
    """A heading of a page of the report: its text, and where it is."""

    page: str
    anchor: str

    def __new__(cls, text: str, page: str, anchor: str) -> Reference:
        made = super().__new__(cls, text)
        made.page, made.anchor = page, anchor
        return made


@dataclass(frozen=True)
class Heading:
    """A heading within a page; ``level`` 1 is the title of the page."""

    text: str
    level: int = 2

    @property
    def anchor(self) -> str:
        """The end of its web address, as sites make it from Markdown.

        >>> Heading("Table 1 at size=small").anchor
        'table-1-at-sizesmall'
        """
        return re.sub(r"[^\w -]", "", self.text.lower()).strip().replace(" ", "-")


@dataclass(frozen=True)
class Table:
    """Rows of cells, each as long as the header."""

    header: list[str]
    rows: list[list[str]]

    def without_empty(self) -> Table:
        """The table without the columns whose cells are all empty."""
        kept = [i for i in range(len(self.header)) if any(row[i] for row in self.rows)]
        return Table([self.header[i] for i in kept], [[row[i] for i in kept] for row in self.rows])


@dataclass(frozen=True)
class Picture:
    """A PNG file; ``path`` is relative to the folder of the report."""

    run: str
    title: str
    path: str


#: A part of a page; a string is a paragraph.
Block = str | Code | Heading | Table | Picture


@dataclass(frozen=True)
class Page:
    """A page of the report; ``name`` is that of its file."""

    name: str
    title: str
    blocks: list[Block]


@dataclass
class Section:
    """One experiment at one size, shown by its newest finished run.

    Attributes
    ----------
    name, size, anchor, about : str
    command : Code
        The command that repeats the run.
    facts : list of (label, value)
        When and on which machine the run was made, with which code.
    parts : list of (title, Table or str)
        The tables that the run wrote, and the text between them.
    pictures : list of Picture
    older : Table or None
        Finished runs of other configurations.
    failed : Table or None
        Later runs that did not finish.
    lost : bool
        True if the files of the run no longer exist.
    """

    name: str
    size: str
    anchor: str
    about: str
    command: Code
    facts: list[tuple[str, str]]
    parts: list[tuple[str, Table | str]] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    older: Table | None = None
    failed: Table | None = None
    lost: bool = False


@dataclass
class Content:
    """A whole report.

    Attributes
    ----------
    sources : list of str
        Where the runs were read from.
    overview : Table or None
        A row for each section.
    sections : list of Section
    runs, failed : Table or None
        Runs and sweeps without an experiment, and those of them that did not finish.
    hidden : int
        Number of older runs and sweeps that are left out.
    sweeps : list of (name, command)
    pictures : list of Picture
        Figures of the sweeps.
    missing : dict of str to Table
        Experiments without a finished run, by origin.
    pages : list of Page
        The index of the papers' tables and figures, and the pages of the papers.
    """

    sources: list[str]
    overview: Table | None
    sections: list[Section]
    runs: Table | None
    hidden: int
    failed: Table | None
    sweeps: list[tuple[str, Code]]
    pictures: list[Picture]
    missing: dict[str, Table]
    pages: list[Page] = field(default_factory=list)


def read_parts(text: str) -> list[Table | str]:
    """Split Markdown into its tables and the text between them.

    >>> read_parts("| run | error |\\n| --- | ----- |\\n| a   | 0.1   |\\n\\nPublished: 1999.\\n")
    [Table(header=['run', 'error'], rows=[['a', '0.1']]), 'Published: 1999.']
    """
    blocks = [block for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip()]
    return [_read_table(block) or block for block in blocks]


def _read_table(block: str) -> Table | None:
    lines = [line.strip() for line in block.splitlines()]
    if len(lines) < 2 or not all(line.startswith("|") and line.endswith("|") for line in lines):
        return None
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    if len({len(row) for row in rows}) > 1 or not all(re.fullmatch(":?-+:?", cell) for cell in rows[1]):
        return None
    return Table(rows[0], rows[2:])

"""Markdown of pages. Text that comes from runs and files is escaped here, and only here."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runners.measure.tables import markdown_table


class Markdown(str):
    """Text that is Markdown already."""


def text(words: str) -> Markdown:
    """Text escaped so that Markdown shows it verbatim, on one line.

    >>> print(text("a|b <i> *c* mnist_local [d](e)"))
    a\\|b \\<i\\> \\*c\\* mnist_local \\[d\\](e)
    """
    if isinstance(words, Markdown):
        return words
    line = re.sub(r"([\\`*<>\[\]|~&])", r"\\\1", " ".join(words.split()))
    return Markdown(re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", line))  # within a word an underscore has no meaning


def code(words: str) -> Markdown:
    """Text shown verbatim, such as a command.

    >>> print(code("x|`y"))
    `` x\\|`y ``
    """
    line = " ".join(words.split())
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if "`" in line else ""
    return Markdown(f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|") if line else "")


def commands(lines: Sequence[str]) -> Markdown:
    """A block of commands."""
    fence = "`" * max(3, _longest_run("".join(lines)) + 1)
    return Markdown("\n".join([f"{fence}bash", *lines, fence]))


def heading(words: str, level: int = 2) -> Markdown:
    return Markdown(f"{'#' * level} {text(words)}")


def link(words: str, page: str) -> Markdown:
    """A link to the heading ``words`` of a page, whose address sites make in this way."""
    anchor = re.sub(r"[^\w -]", "", words.lower()).strip().replace(" ", "-")
    return Markdown(f"[{text(words)}]({page}.md#{anchor})")


def picture(about: str, path: str) -> Markdown:
    return Markdown(f"![{text(about)}]({path})")


def table(header: list[str], rows: list[list[str]]) -> Markdown:
    """A table without the columns whose cells are all empty."""
    used = [i for i in range(len(header)) if any(row[i] for row in rows)]
    head, *body = ([str(text(row[i])) for i in used] for row in [header, *rows])
    return Markdown(markdown_table(head, body))


def page(title: str, blocks: Sequence[str]) -> str:
    """A page of paragraphs, tables and other blocks."""
    return "\n\n".join([heading(title, 1), *map(text, blocks)]) + "\n"


def _longest_run(words: str) -> int:
    """The length of the longest run of backticks."""
    return max(map(len, re.findall("`+", words)), default=0)

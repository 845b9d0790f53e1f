"""Renders a report as HTML and Markdown. Text that comes from runs is escaped here, and only here."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from papers.content import Code, Content, Heading, Link, Page, Picture, Reference, Table
from runners.config.program import program
from runners.measure.tables import markdown_table

#: File of the report, beside its pages in Markdown -> template.
FILES = {"index.html": "page.html", "runs.md": "runs.md"}

# Types by the names of their Jinja tests: {% if cell is code %}.
_KINDS: dict[str, type] = {
    **{"code": Code, "link": Link, "reference": Reference},
    **{"table": Table, "heading": Heading, "picture": Picture},
}


def render(content: Content, template: str) -> str:
    """Render a report with a template."""
    return _rendered(template, content=content, program=program())


def render_page(page: Page) -> str:
    """A page as Markdown."""
    return _rendered("paper.md", page=page).rstrip("\n") + "\n"


def _rendered(template: str, **values: Any) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"md": inline, "md_table": table_as_markdown, "md_block": block}
    kinds: dict[str, Any] = {name: partial(_is, kind) for name, kind in _KINDS.items()}
    environment.tests |= kinds | {"number": _is_number}
    text = environment.get_template(template).render(**values)
    return re.sub(r"\n{3,}", "\n\n", text)


def inline(text: str) -> str:
    """Text escaped so that Markdown shows it verbatim, on one line.

    >>> print(inline("a|b <i> *c* mnist_local [d](e)"), inline(Code("x|`y")))
    a\\|b \\<i\\> \\*c\\* mnist_local \\[d\\](e) `` x\\|`y ``
    """
    line = " ".join(text.split())
    if isinstance(text, Reference):
        return f"[{line}]({text.page}.md#{text.anchor})"
    if isinstance(text, Link):
        return f"<{re.sub('[<> ]', '', line)}>"
    if not isinstance(text, Code):
        line = re.sub(r"([\\`*<>\[\]|~&])", r"\\\1", line)
        return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", line)  # within a word an underscore has no meaning
    if not line:
        return ""
    fence = "`" * (_longest_run(line) + 1)
    pad = " " if "`" in line else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def block(text: str) -> str:
    """A Markdown code block of commands, with any text."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}bash\n{text}\n{fence}"


def table_as_markdown(table: Table) -> str:
    return markdown_table([inline(cell) for cell in table.header], [[inline(c) for c in row] for row in table.rows])


def _is(kind: type, value: object) -> bool:
    return isinstance(value, kind)


def _is_number(cell: str) -> bool:
    return re.match(r"[+-]?\d[\d.]*(e[+-]?\d+)?( ±|$)", cell) is not None


def _longest_run(text: str) -> int:
    """The length of the longest run of backticks."""
    return max((len(found) for found in re.findall("`+", text)), default=0)

"""Python-Markdown: formulas as MathML, which browsers draw themselves; roles of Sphinx in docstrings as links."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.postprocessors import Postprocessor

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_SIGN = re.compile(r"(<mo[^>]*>(?:&#x0005B;|&#x00028;|&#x0003D;|=|\(|\[|,)</mo>|<mrow>)<mo>&#x02212;</mo>")
_ROLE = re.compile(r":\w+:<code>~?((?:\w+\.)*)(\w+)</code>")


class Formulas(Postprocessor):
    """Runs after everything else."""

    def run(self, text: str) -> str:
        return _ROLE.sub(r'<autoref identifier="\1\2" optional><code>\2</code></autoref>', _FORMULA.sub(_mathml, text))


def _mathml(match: re.Match[str]) -> str:
    block = match[2] == "["
    formula = convert(html.unescape(match[3].strip()), display="block" if block else "inline")
    formula = _SIGN.sub(r'\1<mo form="prefix">&#x02212;</mo>', formula)
    return f'<div class="formula">{formula}</div>' if block else formula


class SiteExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802  the name that Python-Markdown calls
        md.postprocessors.register(Formulas(md), "formulas", priority=-10)


def makeExtension(**options: Any) -> SiteExtension:  # noqa: N802  the name that Python-Markdown calls
    return SiteExtension(**options)

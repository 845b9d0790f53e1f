"""Griffe: a doctest without a heading becomes the section ``Examples`` of its docstring."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_BARE = re.compile(r"\n\n(?=>>> )")


class Examples(Extension):
    """Docstrings here may have an example right after the text; Markdown would take ``>>>`` for a quotation."""

    def on_object(self, *, obj: Object, **more: Any) -> None:
        if obj.docstring is not None and "\nExamples\n---" not in obj.docstring.value:
            obj.docstring.value = _BARE.sub("\n\nExamples\n--------\n", obj.docstring.value, count=1)

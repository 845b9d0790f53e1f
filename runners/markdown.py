"""Markdown tables that are also readable as plain text."""

from __future__ import annotations


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """A table with its columns aligned.

    >>> print(markdown_table(["run", "accuracy"], [["a", "0.9"]]))
    | run | accuracy |
    | --- | -------- |
    | a   | 0.9      |
    """
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )

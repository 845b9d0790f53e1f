"""Tables as text: Markdown that is readable as it is, and LaTeX."""

from __future__ import annotations

import numpy as np
import pandas as pd


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table with aligned columns.

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


def latex_table(header: list[str], rows: list[list[str]]) -> str:
    """The same table for LaTeX with the package booktabs.

    >>> print(latex_table(["run", "test/accuracy"], [["a_1", "0.9 ± 0.1"]]))
    \\begin{tabular}{ll}
    \\toprule
    run & test/accuracy \\\\
    \\midrule
    a\\_1 & 0.9 ± 0.1 \\\\
    \\bottomrule
    \\end{tabular}
    <BLANKLINE>
    """
    return pd.DataFrame(rows, columns=header).to_latex(index=False, escape=True)


def number(value: float) -> str:
    """Four digits; whole numbers below a million in full, such as a number of columns.

    >>> number(26112.0), number(0.123456), number(1.5e9)
    ('26112', '0.1235', '1.5e+09')
    """
    return f"{value:.0f}" if abs(value) < 1e6 and float(value).is_integer() else f"{value:.4g}"


def mean_and_spread(values: list[float]) -> str:
    """Mean and standard deviation over seeds or folds; a single value without a deviation.

    >>> mean_and_spread([0.5, 1.0]), mean_and_spread([2.0])
    ('0.75 ± 0.25', '2')
    """
    if not values:
        return ""
    spread = f" ± {np.std(values):.2g}" if len(values) > 1 else ""
    return f"{number(float(np.mean(values)))}{spread}"

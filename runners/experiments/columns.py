"""The columns of runner=table, compared in pairs: the gap in every row, and the order of the rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
from scipy import stats

from runners.job.job import Job
from runners.measure import figures
from runners.measure.results import GAP, Result

Pairs = dict[str, tuple[float, float]]


def compare_columns(
    job: Job,
    metric: str,
    names: tuple[list[str], list[str]],
    values: Mapping[str, float],
    published: Mapping[str, float],
    with_ranks: bool,
) -> None:
    """Log the gap of every row between two columns and, for all pairs of columns, the order of the rows.

    Parameters
    ----------
    job : Job
    metric : str
    names : labels of the rows and of the columns
    values, published : ``row column`` -> value of the metric
    with_ranks : bool
        False where some rows of the table are left out: ranks are those among all rows.
    """
    rows, columns = names
    for one, two in itertools.combinations(columns, 2):
        pairs, theirs = _pairs(values, rows, one, two), _pairs(published, rows, one, two)
        job.log_result(*_gaps(metric, pairs, theirs, f"{two} - {one}"))
        if not with_ranks:
            continue
        job.log_result(*_ranks(pairs, theirs, two))
        if len(pairs) < 3:
            continue
        ours = rank_correlation(pairs)
        job.log_metrics({f"rank_correlation/{one}/{two}": ours})
        title = f"rank correlation {ours:.2f}"
        if len(theirs) > 2:
            title += f", published {rank_correlation(theirs):.2f}"
        job.row(f"{one}, {two}", title)
        axes = f"{metric}, {one}", f"{metric}, {two}"
        job.log_figure(f"{one}_{two}", figures.agreement, pairs, theirs, axes, title)


def _pairs(values: Mapping[str, float], rows: list[str], one: str, two: str) -> Pairs:
    """The values of both columns, for the rows that have both."""
    known = [row for row in rows if {f"{row} {one}", f"{row} {two}"} <= values.keys()]
    return {row: (values[f"{row} {one}"], values[f"{row} {two}"]) for row in known}


def _gaps(metric: str, pairs: Pairs, published: Pairs, part: str) -> list[Result]:
    """How much larger the second number of each row is."""
    gap = {row: two - one for row, (one, two) in published.items()}
    name = f"{GAP} of {metric}"
    return [Result(part, row, name, [two - one], published=gap.get(row)) for row, (one, two) in pairs.items()]


def _ranks(pairs: Pairs, published: Pairs, column: str) -> list[Result]:
    """The place of each row in the second column, 1 for the largest, of the rows in the order of the first."""
    found, known = (
        {row: 1 + sum(b > two for _, b in some.values()) for row, (_, two) in some.items()}
        for some in (pairs, published)
    )
    ordered = sorted(pairs, key=lambda row: -pairs[row][0])
    return [Result(f"rank of {column}", row, "rank", [found[row]], published=known.get(row)) for row in ordered]


def rank_correlation(pairs: Mapping[str, tuple[float, float]]) -> float:
    """Spearman's rank correlation between the first and the second numbers of the pairs.

    >>> round(rank_correlation({"a": (1, 10), "b": (2, 30), "c": (3, 20)}), 3)
    0.5
    """
    one, two = np.array(list(pairs.values())).T
    return float(stats.spearmanr(one, two).statistic)

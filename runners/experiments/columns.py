"""The columns of runner=table, compared in pairs: the gap in every row, and the order of the rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pandas as pd

from runners.job.job import Job
from runners.measure import figures
from runners.measure.results import GAP, Result


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
    tables = [
        pd.DataFrame({column: {row: known.get(f"{row} {column}") for row in rows} for column in columns}, dtype=float)
        for known in (values, published)
    ]
    for one, two in itertools.combinations(columns, 2):
        ours, theirs = (table[[one, two]].dropna() for table in tables)
        gap, known = (pairs[two] - pairs[one] for pairs in (ours, theirs))
        _log(job, f"{two} - {one}", f"{GAP} of {metric}", gap, known)
        if not with_ranks:
            continue
        rank, known = (pairs[two].rank(ascending=False, method="min") for pairs in (ours, theirs))
        _log(job, f"rank of {two}", "rank", rank[ours.sort_values(one, ascending=False, kind="stable").index], known)
        if len(ours) < 3:
            continue
        correlations = [pairs[one].corr(pairs[two], "spearman") for pairs in (ours, theirs)]
        job.log_metrics({f"rank_correlation/{one}/{two}": correlations[0]})
        title = f"rank correlation {correlations[0]:.2f}"
        if len(theirs) > 2:
            title += f", published {correlations[1]:.2f}"
        job.row(f"{one}, {two}", title)
        axes = f"{metric}, {one}", f"{metric}, {two}"
        job.log_figure(f"{one}_{two}", figures.agreement, ours.T.to_dict("list"), theirs.T.to_dict("list"), axes, title)


def _log(job: Job, part: str, metric: str, values: pd.Series, published: pd.Series) -> None:
    """A result for each row."""
    job.log_result(
        *(Result(part, str(row), metric, [value], published=published.get(row)) for row, value in values.items())
    )

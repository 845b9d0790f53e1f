"""A picture of all results at ``size=paper``: the error of every row against its seconds, beside the published one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from orbit.core.files import replacing
from orbit.plots.axes import new_figure, plain
from papers.records import Gathered
from runners.measure.results import TABLE, Result
from runners.tracking.record import FIGURES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

#: The picture, in the folder of the pages.
PICTURE = f"{FIGURES}/overview.png"

# Title and unit of a panel -> its experiments.
_PANELS = {
    ("CIFAR-10", "test error in per cent"): ("cifar10", "cifar10_patches", "skeleton_cifar10"),
    ("Rotated MNIST", "test error in per cent"): ("rotated_mnist", "rotated_mnist_patches"),
    ("MNIST, 10 or 1,000 images a class", "test error in per cent"): ("mnist_local", "mnist_local_patches"),
    ("QM7", "RMSE in kcal/mol"): ("qm7",),
}

# Area of a point in square points for each GB of memory, and that of one whose memory is not known.
_AREA, _UNKNOWN_AREA = 12.0, 6.0

# An error up to this multiple of another one is no worse, for the names.
_NEAR = 1.1

# Share of the width from which on a name stands to the left of its point.
_MIDDLE = 0.45


class _Row(NamedTuple):
    label: str
    seconds: float
    error: float
    memory_gb: float | None
    published: float | None


def draw(kept: Mapping[str, Gathered], path: Path) -> None:
    """Write the picture of the rows of tables at ``size=paper`` whose time is known.

    Parameters
    ----------
    kept : mapping
        ``EXPERIMENT-SIZE`` -> the result at that size.
    path : Path
    """
    figure = new_figure(11, 8.5)
    for ax, ((title, unit), experiments) in zip(figure.subplots(2, 2).flat, _PANELS.items(), strict=True):
        _panel(ax, [row for name in experiments if (run := kept.get(f"{name}-paper")) for row in _rows(run)])
        ax.set(title=title, xlabel="seconds of a fit and its predictions", ylabel=unit)
    figure.legend(handles=_legend(), loc="outside lower center", ncols=5, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        figure.savefig(file, dpi=110, format="png", metadata={"Software": None})


def _rows(run: Gathered) -> Iterator[_Row]:
    """Rows with a score that is an accuracy or a root mean square error."""
    for result in run.results:
        if result.part != TABLE or not result.seconds or not result.metric.endswith(("accuracy", "rmse")):
            continue
        memory = run.sources[result.label][-1].memory_mb
        yield _Row(
            result.label,
            result.seconds,
            _error(result, result.mean),
            None if memory is None else memory / 1024,
            None if result.published is None else _error(result, result.published),
        )


def _error(result: Result, value: float) -> float:
    """A score as an error, accuracies as per cent."""
    return 100 * (1 - value) if result.metric.endswith("accuracy") else value


def _panel(ax: Axes, rows: list[_Row]) -> None:
    """Ours with lines to the published values, and the names of rows clearly better than all that take less time."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for row in rows:
        area = _UNKNOWN_AREA if row.memory_gb is None else _AREA * row.memory_gb
        ax.scatter(row.seconds, row.error, area, color="C0", alpha=0.6, marker="x" if row.memory_gb is None else "o")
        if row.published is not None:
            ax.plot([row.seconds] * 2, [row.error, row.published], color="C1", lw=0.8, alpha=0.7)
            ax.scatter(row.seconds, row.published, 40, color="C1", marker="_")
    ax.set(xscale="log", yscale="log")
    ax.margins(0.1)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.tick_params(axis="y", which="minor", labelsize=7)
    ax.grid(alpha=0.3, which="both")
    for row in rows:
        if not any(other.seconds < row.seconds and other.error <= _NEAR * row.error for other in rows):
            _name(ax, row)


def _name(ax: Axes, row: _Row) -> None:
    """The label of a row, on the side of its point where there is more room."""
    right = ax.transAxes.inverted().transform(ax.transData.transform((row.seconds, row.error)))[0] > _MIDDLE
    side, by = ("right", -6) if right else ("left", 6)
    place, name = (row.seconds, row.error), plain(row.label)
    text = ax.annotate(name, place, (by, 5), textcoords="offset points", ha=side, fontsize=7)
    text.set_in_layout(False)


def _legend() -> list[Line2D]:
    """Marks of memory and of published values."""
    from matplotlib.lines import Line2D

    discs = [("o", (_AREA * gb) ** 0.5, "C0", f"ours, {gb} GB") for gb in (1, 4, 16)]
    others = [("x", _UNKNOWN_AREA**0.5, "C0", "ours, memory not recorded"), ("_", 40**0.5, "C1", "published")]
    return [Line2D([], [], marker=m, ms=size, color=c, ls="", label=text) for m, size, c, text in [*discs, *others]]

"""Points and targets in the parts of a folder, of which each process reads its own."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orbit.core import distributed, interruption
from orbit.core.errors import InputError
from orbit.data.base import Task, are_labels, are_one_hot, check_arrays
from orbit.data.formats import Block, Format, Header, check_equal
from orbit.data.rows import AllBut, SharedSource, Source
from orbit.data.splits import MOST_CLASSES

# Different labels of a classification: more are rather names.
_MOST_LABELS = 10_000


class Parts(SharedSource):
    """The points of all parts, numbered through the parts in the order of their names.

    Each process has the headers of its own parts, consecutive and as many for each process as possible, and learns the
    numbers of rows of the others. Rows are read in blocks and are best indexed in ascending order: after rows of a part
    it is read on from there.

    Parameters
    ----------
    form : Format

    Attributes
    ----------
    shape, dtype : of all points, and of the points that are read
    features : names of the columns of points, or None
    targets : Targets

    Raises
    ------
    InputError
        For fewer parts than processes, unreadable parts, and parts of different forms.
    ShareDone
        In every process except the first, instead of ``InputError``.
    """

    def __init__(self, form: Format) -> None:
        self.form, self.names = form, form.folder.names
        check_enough(self.names, form.folder.key)
        self._own = distributed.share(np.arange(len(self.names)))
        with distributed.together():
            self._headers = {part: form.header(self.names[part]) for part in self._own.tolist()}
        found = distributed.gather([[header.rows, header.columns] for header in self._headers.values()])
        headers: list[Any] = [header for of_process in found for header in of_process]
        check_equal(self.names, [columns for _, columns in headers], form.folder.key)
        self._starts = np.cumsum([0] + [rows for rows, _ in headers])
        first = self._headers[int(self._own[0])]
        self.shape, self.dtype = (int(self._starts[-1]), *first.shape), first.dtype
        self._reader: _Reader | None = None
        self._kept: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self.features = first.features
        self.targets = Targets(self, first, self._summary())

    def _summary(self) -> Summary:
        """The summary of all targets, which are read once."""
        found: Summary | None = None
        with distributed.together():
            for part, header in self._headers.items():
                for _, y in self.form.blocks(self.names[part], header, points=False):
                    interruption.check()
                    assert y is not None
                    found = Summary.of(y) if found is None else found + Summary.of(y)
        parts = [Summary(**each) for each in distributed.gather(vars(found) if found else None) if each]
        return functools.reduce(operator.add, parts)

    def own(self, indices: np.ndarray | AllBut) -> range:
        first, last = indices.searchsorted(self._starts[[self._own[0], self._own[-1] + 1]])
        return range(int(first), int(last))

    def keep(self, rows: np.ndarray) -> None:
        """Read all own parts once, and hold points and targets of some rows, sorted, of all parts in every process."""
        X, y = np.zeros((len(rows), *self.shape[1:]), self.dtype), np.zeros((len(rows), *self.targets.shape[1:]))
        with distributed.together():
            for part, header in self._headers.items():
                start = self._starts[part]
                for points, targets in self.form.blocks(self.names[part], header):
                    interruption.check()
                    assert points is not None
                    assert targets is not None
                    here = slice(*np.searchsorted(rows, [start, start + len(points)]))
                    X[here], y[here] = points[rows[here] - start], self.targets.codes(targets[rows[here] - start])
                    start += len(points)
        distributed.all_reduce(X, y)
        self._kept = rows, X, self.targets.decoded(y)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.read(rows)[0]

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points and targets of some rows. The last ones are kept: targets are asked for after their points."""
        if not len(rows):
            return np.empty((0, *self.shape[1:]), self.dtype), np.empty(
                (0, *self.targets.shape[1:]), self.targets.dtype
            )
        if self._kept is not None and (places := _places(self._kept[0], rows)) is not None:
            return self._kept[1][places], self._kept[2][places]
        if self._last is None or not np.array_equal(self._last[0], rows):
            order = np.argsort(rows, kind="stable")
            X, y = self._read(rows[order])
            back = np.argsort(order)
            self._last = rows, X[back], y[back]
        return self._last[1], self._last[2]

    def _read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points and targets of ascending rows, at least one."""
        found: list[tuple[np.ndarray, np.ndarray]] = []
        done = 0
        while done < len(rows):
            block = self._block(int(rows[done]))
            end = int(np.searchsorted(rows, block.end))
            here = rows[done:end] - block.start
            found.append((block.X[here], block.y[here]))
            done = end
        return np.concatenate([X for X, _ in found]), np.concatenate([y for _, y in found])

    def _block(self, row: int) -> _Reader:
        """The reader, at the block that has a row."""
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        if part not in self._headers:
            raise IndexError(f"row {row} is in part {self.names[part]}, which another process reads")
        if self._reader is None or self._reader.part != part or row < self._reader.start:
            blocks = self.form.blocks(self.names[part], self._headers[part], row - int(self._starts[part]))
            self._reader = _Reader(part, row, blocks, np.empty(0), np.empty(0))
        while row >= self._reader.end:
            self._reader.advance()
        return self._reader


@dataclass
class _Reader:
    """A part that is being read: its current block, of points X and targets y, and the row where that starts."""

    part: int
    start: int
    blocks: Iterator[Block]
    X: np.ndarray
    y: np.ndarray

    @property
    def end(self) -> int:
        return self.start + len(self.X)

    def advance(self) -> None:
        start, (X, y) = self.end, next(self.blocks)
        assert X is not None
        assert y is not None
        self.start, self.X, self.y = start, X, y


class Targets(Source):
    """The targets of parts.

    Attributes
    ----------
    summary : Summary
    distinct : their different values, sorted; None if there are too many for classes
    """

    def __init__(self, parts: Parts, header: Header, summary: Summary) -> None:
        self.parts, self.shape = parts, (parts.shape[0], *header.y_shape)
        self.summary = summary
        self.distinct = None if summary.distinct is None else np.array(summary.distinct, header.y_dtype)
        self.dtype = np.dtype(str) if header.y_dtype is None else header.y_dtype

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.parts.read(rows)[1]

    def own(self, indices: np.ndarray | AllBut) -> range:
        return self.parts.own(indices)

    def check(self, task: Task, where: str) -> None:
        """Raise ``InputError`` for targets that no learner of the task accepts."""
        odd, tail = self.summary.not_a_label, self.shape[1:]
        if task == "classification" and self.distinct is None and odd is None and not tail:
            raise InputError(f"{where}: expected at most {_MOST_LABELS:,} different labels, found more")
        example = np.full((1, *tail), self.summary.largest if odd is None or task == "regression" else odd)
        y = example if self.distinct is None or (task == "regression" and self.dtype.kind in "iuf") else self.distinct
        check_arrays(np.zeros((len(y), 1)), y, task, where)

    def codes(self, y: np.ndarray) -> np.ndarray:
        """Targets as numbers that can be sent."""
        return y if self.distinct is None else np.searchsorted(self.distinct, y)

    def decoded(self, codes: np.ndarray) -> np.ndarray:
        """The targets of :meth:`codes`."""
        return codes.astype(self.dtype) if self.distinct is None else self.distinct[codes.astype(int)]


@dataclass
class Summary:
    """A summary of any number of targets, from which the task is guessed and checked.

    Attributes
    ----------
    distinct : the different labels; None if there are more than 10,000, or other targets
    not_a_label : a number that cannot be a label; None if there is none
    largest : the size of the largest number
    is_text, is_bool, is_one_hot : whether they are strings, true and false, or one-hot rows
    """

    distinct: list[Any] | None
    not_a_label: float | None = None
    largest: float = 0.0
    is_text: bool = False
    is_bool: bool = False
    is_one_hot: bool = False

    @classmethod
    def of(cls, y: np.ndarray) -> Summary:
        """The summary of targets, shape (n,) or (n, k)."""
        found = cls(None, None, 0.0, y.dtype.kind == "U", y.dtype.kind == "b", are_one_hot(y))
        if y.dtype.kind in "iuf":
            found.largest = float(np.abs(y.astype(np.float64)).max(initial=0))
        if y.ndim == 1 and y.dtype.kind == "f" and not are_labels(y):
            found.not_a_label = float(next(value for value in y if not are_labels(np.array([value], y.dtype))))
        elif y.ndim == 1:
            found.distinct = np.unique(y).tolist()
        return found

    def __add__(self, other: Summary) -> Summary:
        both = None
        if self.distinct is not None and other.distinct is not None:
            both = sorted({*self.distinct, *other.distinct})
        return Summary(
            both if both is not None and len(both) <= _MOST_LABELS else None,
            self.not_a_label if self.not_a_label is not None else other.not_a_label,
            max(self.largest, other.largest),
            self.is_text,
            self.is_bool,
            self.is_one_hot and other.is_one_hot,
        )

    def guess_task(self) -> Task:
        """As :func:`orbit.data.splits.guess_task` of all targets."""
        if self.is_text or self.is_bool or self.is_one_hot:
            return "classification"
        few = self.distinct is not None and len(self.distinct) <= MOST_CLASSES
        return "classification" if few else "regression"


def check_enough(names: Sequence[str], key: str) -> None:
    """Raise ``InputError`` for fewer parts than processes."""
    if len(names) < distributed.world_size():
        raise InputError(
            f"{key}: expected a part for each of {distributed.world_size()} processes, found {len(names)}; start fewer "
            "processes, or write smaller parts"
        )


def _places(kept: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
    """Positions of ``rows`` in the sorted array ``kept``; None unless it has all of them."""
    places = np.searchsorted(kept, rows)
    return places if len(rows) <= len(kept) and np.array_equal(kept[np.minimum(places, len(kept) - 1)], rows) else None

"""Points and targets in the parts of a folder, of which each process reads its own."""

import itertools
from collections.abc import Sequence

import numpy as np

from orbit.core import distributed, interruption
from orbit.core.errors import InputError
from orbit.data.checks import Task, check_arrays
from orbit.data.formats import Format, Header, check_equal
from orbit.data.rows import AllBut, SharedSource, Source
from orbit.data.splits import guess_task

# Different labels of a classification: more are rather names.
_MOST_LABELS = 10_000
# Targets that are no labels, of which as many are kept as examples.
_FEW_NUMBERS = 100


class Parts(SharedSource):
    """The points of all parts, numbered through the parts in the order of their names.

    Each process reads the headers and rows of its own parts, consecutive and as many for each process as possible, and
    learns the headers of the others. Rows are read in blocks, of which the last one is kept: they are best indexed in
    ascending order.

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
        For fewer parts than processes, fewer than two rows, unreadable parts, and parts of different forms.
    ShareDone
        In every process except the first, instead of ``InputError``.
    """

    def __init__(self, form: Format) -> None:
        self.form, self.names, key = form, list(form.folder.files), form.folder.key
        check_enough(self.names, key)
        own = distributed.share(np.arange(len(self.names)))
        with distributed.together():
            headers = [form.header(self.names[part]) for part in own.tolist()]
        self._headers = [header for of_process in distributed.gather(headers) for header in of_process]
        self._starts = np.cumsum([0] + [header.rows for header in self._headers])
        if self._starts[-1] < 2:
            found = f"{form.folder.path} has {self._starts[-1]} rows"
            raise InputError(f"{key}: {found}, too few to split; expected at least 2")
        check_equal(self.names, self._headers, key)
        self._own = self._starts[[own[0], own[-1] + 1]]
        self._blocks = [(part, block) for part in own.tolist() for block in self._headers[part].blocks]
        self._firsts = np.array(
            [self._starts[part] + self._headers[part].starts[block] for part, block in self._blocks]
        )
        first = next(header for header in self._headers if header.rows)
        self.shape, self.dtype = (int(self._starts[-1]), *first.shape), np.dtype(first.dtype)
        self.features = first.features
        self._kept: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._block: tuple[int, np.ndarray, np.ndarray] | None = None
        self.targets = Targets(self, first, self._examples(first))

    def own(self, indices: np.ndarray | AllBut) -> range:
        first, last = indices.searchsorted(self._own)
        return range(int(first), int(last))

    def keep(self, rows: np.ndarray) -> None:
        """Read all own parts once, and hold points and targets of some rows, sorted, of all parts in every process."""
        X, own = np.zeros((len(rows), *self.shape[1:]), self.dtype), []
        with distributed.together():
            for i, start in enumerate(self._firsts):
                points, targets = self._read_block(i)
                here = slice(*np.searchsorted(rows, [start, start + len(points)]))
                X[here] = points[rows[here] - start]
                own.append((here, targets[rows[here] - start]))
        distributed.all_reduce(X)
        y = np.empty((len(rows), *self.targets.shape[1:]), self.targets.dtype)
        for here, targets in itertools.chain(*distributed.gather(own)):
            y[here] = targets
        self._kept = rows, X, y

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.read(rows)[0]

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Points and targets of some rows. The last ones are kept: targets are asked for after their points."""
        if self._kept is not None and (places := _places(self._kept[0], rows)) is not None:
            return self._kept[1][places], self._kept[2][places]
        if self._last is None or not np.array_equal(self._last[0], rows):
            self._last = rows, *self._read(rows)
        return self._last[1], self._last[2]

    def _read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        others = rows[(rows < self._own[0]) | (rows >= self._own[1])]
        if len(others):
            part = int(np.searchsorted(self._starts, others[0], side="right")) - 1
            raise IndexError(f"row {others[0]} is in part {self.names[part]}, which another process reads")
        X = np.empty((len(rows), *self.shape[1:]), self.dtype)
        y = np.empty((len(rows), *self.targets.shape[1:]), self.targets.dtype)
        blocks = np.searchsorted(self._firsts, rows, side="right") - 1
        for i in np.unique(blocks):
            here = np.flatnonzero(blocks == i)
            points, targets = self._read_block(i)
            X[here], y[here] = points[rows[here] - self._firsts[i]], targets[rows[here] - self._firsts[i]]
        return X, y

    def _read_block(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        if self._block is None or self._block[0] != i:
            interruption.check()
            part, block = self._blocks[i]
            self._block = None  # two need not fit in memory
            self._block = i, *self.form.read(self.names[part], self._headers[part], block)
        return self._block[1], self._block[2]

    def _examples(self, first: Header) -> np.ndarray:
        """Some targets of all parts, which are read once, that stand for all; see :func:`examples`."""
        found = np.empty((0, *first.y_shape), first.y_dtype)
        with distributed.together():
            for part, block in self._blocks:
                interruption.check()
                _, y = self.form.read(self.names[part], self._headers[part], block, points=False)
                found = examples(np.concatenate([found, y]))
        return examples(np.concatenate(distributed.gather(found)))


class Targets(Source):
    """The targets of parts.

    Attributes
    ----------
    distinct : their different values, sorted; if there are too many for classes, some of them
    """

    def __init__(self, parts: Parts, header: Header, distinct: np.ndarray) -> None:
        self.parts, self.shape, self.distinct = parts, (parts.shape[0], *header.y_shape), distinct
        self.dtype = distinct.dtype

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self.parts.read(rows)[1]

    def own(self, indices: np.ndarray | AllBut) -> range:
        return self.parts.own(indices)

    def guess_task(self) -> Task:
        """As :func:`orbit.data.splits.guess_task` of all targets."""
        return guess_task(self.distinct, self.shape[0])

    def check(self, task: Task, where: str) -> None:
        """Raise ``InputError`` for targets that no learner of the task accepts."""
        check_arrays(np.zeros((len(self.distinct), 1)), self.distinct, task, where)
        if task == "classification" and len(self.distinct) > _MOST_LABELS:
            raise InputError(f"{where}: expected at most {_MOST_LABELS:,} different labels, found more")


def examples(y: np.ndarray) -> np.ndarray:
    """The different targets; of more than 10,000 labels, or 100 other numbers, some.

    These have one of the largest size and one that is no integer.

    >>> examples(np.array([2, 1, 2]))
    array([1, 2])
    """
    y = np.unique(y, axis=0)
    if y.dtype.kind == "U" or not len(y):
        return y[: _MOST_LABELS + 1]
    by_row = y.reshape(len(y), -1).astype(np.float64)
    are_integers = (by_row == np.round(by_row)).all(1)
    most = _MOST_LABELS + 1 if are_integers.all() else _FEW_NUMBERS
    special = [np.abs(by_row).max(1).argmax(), are_integers.argmin()]
    return np.unique(np.concatenate([y[:most], y[special]]), axis=0)


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

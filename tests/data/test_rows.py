"""Rows of a file and of the share of a process: equal to those of the array, and no other rows."""

import numpy as np
import pytest

from orbit import Arrays, InputError
from orbit.core.distributed import share
from orbit.data.rows import NpyFile, Rows, own_rows, subset

N = 40
NONE = np.array([], dtype=int)


@pytest.fixture
def processes(monkeypatch):
    """``processes(rank, n)``: as if this process were one of ``n``, not connected to the others."""

    def become(rank: int, n: int = 2) -> None:
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(n))

    return become


@pytest.fixture
def load(tmp_path, rng):
    """``load(bad, lazy)`` -> the data set of an .npy file of N points; the first coordinates of ``bad`` are NaN."""
    X, y = rng.random((N, 2, 3)), np.arange(N) % 2

    def from_file(bad: np.ndarray = NONE, lazy: bool = True):
        values = X.copy()
        values[bad, 0, 0] = np.nan
        np.save(tmp_path / "X.npy", values)
        np.save(tmp_path / "y.npy", y)
        return Arrays(str(tmp_path / "X.npy"), y_path=str(tmp_path / "y.npy")).load(0, lazy)

    return from_file


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.dtype(">f4")])
@pytest.mark.parametrize(
    "limits", [{}, {"_ROWS_AT_ONCE": 3}, {"_BYTES_AT_ONCE": 100}, {"_BYTES_AT_ONCE": 1}, {"_SPREAD": 0}]
)
def test_rows_of_a_file_are_those_of_the_array(tmp_path, rng, monkeypatch, dtype, limits):
    for name, value in limits.items():
        monkeypatch.setattr(f"orbit.data.rows.{name}", value)
    X = (100 * rng.random((N, 2, 3))).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    chosen = rng.permutation(N)[:25]
    rows = Rows(NpyFile(str(tmp_path / "X.npy"), np.float32), np.arange(N)).subset(chosen)
    expected = X[chosen].astype(np.float32)
    assert (rows.shape, rows.ndim, rows.size, rows.dtype, len(rows)) == ((25, 2, 3), 3, 150, np.float32, 25)
    for index in (slice(3, 20, 2), np.array([7, 0, 7]), expected[:, 0, 0] > 50, 4, np.int64(-1), slice(5, 5)):
        np.testing.assert_array_equal(rows[index], expected[index])
    np.testing.assert_array_equal(np.asarray(rows), expected)
    seen = list(rows.blocks(np.array([9, 3, 24])))
    numbers = np.concatenate([block for block, _ in seen])
    np.testing.assert_array_equal(numbers, np.sort(chosen[[9, 3, 24]]))  # as they lie in the file
    np.testing.assert_array_equal(np.concatenate([values for _, values in seen]), X[numbers].astype(np.float32))


def test_rows_that_are_not_kept_raise(rng):
    X, kept = rng.random((N, 3)), np.array([3, 7, 8, 30])
    rows = Rows.keeping(X, kept)
    assert rows.shape == X.shape
    assert rows.source.shape == (4, 3)
    np.testing.assert_array_equal(rows[kept[::-1]], X[kept[::-1]])
    for foreign in (np.array([3, 4]), slice(30, 32), 0):
        with pytest.raises(IndexError, match="out of bounds"):
            rows[foreign]


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_shares_partition_the_rows_and_are_contiguous_in_a_file(processes, load, rng, n):
    data = load()
    for X in (data.X_train, rng.random((25, 2)), Rows.keeping(rng.random((25, 2)), np.arange(5, 12))):
        found = []
        for rank in range(n):
            processes(rank, n)
            found.append(own_rows(X))
            if X is data.X_train:
                places, lie = X.indices[found[-1]], np.sort(X.indices)
                np.testing.assert_array_equal(places, lie[np.searchsorted(lie, places[0]) :][: len(places)])
        assert np.ptp([len(rows) for rows in found]) <= 1
        np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(len(X)))


def test_a_process_keeps_its_share_and_the_sample(processes, load):
    data, sample = load(lazy=False), np.array([1, 2, 29])
    for rank in (0, 1):
        processes(rank)
        own = data.own(sample)
        mine = np.union1d(share(np.arange(30)), sample)
        assert len(own.X_train.source) == len(mine) < len(data.X_train)
        np.testing.assert_array_equal(own.X_train[mine], data.X_train[mine])
        np.testing.assert_array_equal(own.y_train, data.y_train)
        assert own.describe() == data.describe()
        if rank == 0:
            assert own.X_test is data.X_test
        else:
            assert own.X_test.source.size == 0
    processes(0, 1)
    assert data.own(sample).X_train is data.X_train


def test_each_process_checks_only_the_values_that_it_reads(processes, load):
    X = load().X_train
    processes(1)
    mine = X.indices[own_rows(X)]
    foreign = np.setdiff1d(np.arange(N), mine)  # of the test part too
    sample = np.flatnonzero(np.isin(X.indices, foreign))[:2]
    data = load(foreign)
    assert np.isfinite(data.own(NONE).X_train[own_rows(X)]).all()
    message = rf"2 values that are NaN or infinite, the first at index \({X.indices[sample].min()}, 0, 0\)"
    with pytest.raises(InputError, match=message):
        data.own(sample)
    processes(0)
    with pytest.raises(InputError, match="X, by rows of the file, has 15 values that are NaN or infinite"):
        data.own(NONE)
    load(mine[:1]).own(NONE)
    processes(0, 1)
    with pytest.raises(InputError, match=rf"1 values .* the first at index \({mine[0]}, 0, 0\)"):
        load(mine[:1]).own(NONE)


@pytest.mark.parametrize(
    ("rows", "is_view"),
    [([2, 3, 4], True), ([2], True), ([4, 3], False), ([0, 2], False), ([-2, -1], False), ([], False)],
)
def test_rows_next_to_each_other_are_not_copied(rows, is_view, rng):
    X = rng.random((5, 2, 3))
    found = subset(X, np.array(rows, dtype=int))
    np.testing.assert_array_equal(found, X[np.array(rows, dtype=int)])
    assert np.shares_memory(found, X) is is_view

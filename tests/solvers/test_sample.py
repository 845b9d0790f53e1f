"""Rows of a stream drawn at random."""

import numpy as np
import pytest

from orbit.core import distributed
from orbit.solvers.sample import RowSample


def sampled(X, weights, size, batch):
    sample = RowSample(size)
    for start in range(0, len(X), batch):
        rows = slice(start, start + batch)
        sample.add(X[rows], 2 * X[rows], weights[rows])
    return sample


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_the_sample_does_not_depend_on_the_batches(batch):
    X = np.arange(100.0)[:, None]
    rows, targets, weights = sampled(X, 1 + X[:, 0], 30, batch).rows()
    assert len(np.unique(rows)) == 30
    np.testing.assert_array_equal(targets, 2 * rows)
    np.testing.assert_array_equal(weights, 1 + rows[:, 0])
    np.testing.assert_array_equal(np.sort(rows[:, 0]), np.sort(sampled(X, 1 + X[:, 0], 30, 100).rows()[0][:, 0]))


def test_a_short_stream_is_kept_without_the_rows_of_weight_zero():
    X = np.arange(10.0)[:, None]
    rows, _, weights = sampled(X, X[:, 0] % 2, 20, 3).rows()
    np.testing.assert_array_equal(np.sort(rows[:, 0]), [1, 3, 5, 7, 9])
    np.testing.assert_array_equal(weights, np.ones(5))


def test_every_part_of_a_stream_is_drawn_from_in_proportion():
    X = np.arange(100_000.0)[:, None]
    rows, _, _ = sampled(X, np.ones(len(X)), 4000, 1000).rows()
    counts, _ = np.histogram(rows, bins=10, range=(0, 100_000))
    # 400 in each tenth with a standard deviation of 18.6
    assert np.abs(counts - 400).max() < 5 * 18.6


def test_processes_together_have_the_sample_of_one(monkeypatch):
    """Two processes in turn, the second with the rows from 60 on; what each sends is added up."""
    X, w = np.arange(100.0)[:, None], np.ones(100)
    samples = [RowSample(20), RowSample(20, first_row=60)]
    for sample, rows in zip(samples, (slice(0, 60), slice(60, 100)), strict=True):
        sample.add(X[rows], 2 * X[rows], w[rows])
    keys = [sample._keys.tolist() for sample in samples]
    monkeypatch.setattr(distributed, "gather", lambda value: keys)
    sums: list[list[np.ndarray]] = []
    for rank, sample in enumerate(samples):
        monkeypatch.setattr(distributed, "rank", lambda rank=rank: rank)
        monkeypatch.setattr(distributed, "all_reduce", lambda array, sums=sums: sums[-1].append(array.copy()))
        sums.append([])
        sample.gather()
    rows, targets, weights = (one + two for one, two in zip(*sums, strict=True))
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(sampled(X, w, 20, 7).rows()[0], axis=0))
    assert 0 < (rows < 60).sum() < 20
    np.testing.assert_array_equal(targets, 2 * rows)
    np.testing.assert_array_equal(weights, np.ones(20))
    np.testing.assert_array_equal(samples[0]._keys, samples[1]._keys)

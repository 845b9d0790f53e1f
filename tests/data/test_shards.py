"""Data in parts: equal to the same points in memory, by whatever process they are read, and never read whole."""

import os
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import fitted, quickly_composed
from samples import noisy_digits, npy_shards, parquet_shards

from orbit import Dataset, InputError, Shards
from orbit.data.formats import ParquetFormat
from orbit.data.parts import examples
from orbit.data.rows import AllBut, own_rows
from orbit.data.splits import guess_task
from orbit.testing import DatasetContract
from runners.config.plan import plan
from runners.tracking.record import Record, add_fingerprints

ROOT = Path(__file__).parents[2]
SIZES = (230, 0, 170, 300, 100)
STREAMED = ("approx=rf", "approx.n_components=60", "orbit.size=4", "engine.dtype=float64", "engine.stream=true")
FEW_BYTES = ("engine.memory=0.0001", "learner.regularization=0.02")


class TestNpyShards(DatasetContract):
    component, sizes = Shards, (45, 15)

    @pytest.fixture(autouse=True)
    def _parts(self, tmp_path):
        self.params = {"path": str(tmp_path / "X"), "y_path": str(tmp_path / "y")}
        npy_shards(tmp_path, np.random.default_rng(0).random((60, 3, 4)), np.arange(60) % 3, (7, 33, 20))


class TestParquetShards(DatasetContract):
    component, sizes = Shards, (45, 15)

    @pytest.fixture(autouse=True)
    def _parts(self, tmp_path):
        self.params = {"path": f"file://{tmp_path}", "target": "kind"}
        rng = np.random.default_rng(0)
        for part, n in enumerate((7, 33, 20)):
            kind = np.array(["owl", "cat"])[np.arange(n) % 2]
            columns = {"a": rng.random(n), "b": rng.integers(0, 9, n), "kind": kind}
            pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet", row_group_size=8)


@pytest.fixture
def digits(rng):
    return noisy_digits(rng, sum(SIZES))


# ---- what is read ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [npy_shards, parquet_shards])
def test_parts_are_the_rows_of_all_in_the_order_of_their_names(tmp_path, digits, write, monkeypatch):
    X, y = digits
    monkeypatch.setattr("orbit.data.formats._BLOCK_BYTES", 33 * X[:1].nbytes)
    data = plan(quickly_composed(*write(tmp_path, X, y, SIZES))).component("dataset").load(3, lazy=True)
    test, train = data.X_test.indices, data.X_train.indices[:]
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(800))
    assert (len(test), data.task, data.X_train.dtype) == (200, "classification", np.float32)
    for rows in (np.arange(600), np.array([3, 4, 500, 501, 599]), np.array([9, 0, 450]), np.array([], int)):
        np.testing.assert_array_equal(data.X_train[rows], X[train[rows]])
        np.testing.assert_array_equal(data.y_train[rows], y[train[rows]])
    np.testing.assert_array_equal(data.X_train[-1], X[train[-1]])
    np.testing.assert_array_equal(data.X_test[:], X[test])


def test_columns_of_parquet_become_points_side_by_side(tmp_path):
    lists = pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])  # of lengths that only their rows tell
    table = pa.table({"z": [7, 8, 9], "v": lists, "u": [True, False, True], "y1": [0.5, 1.5, 2.5], "y2": [1, 2, 3]})
    pq.write_table(table, tmp_path / "a.parquet")
    data = Shards(str(tmp_path), target=["y1", "y2"]).load(0, lazy=True)
    X = np.concatenate([data.X_train[:], data.X_test[:]])
    assert sorted(X.tolist()) == [[7, 1, 2, 1], [8, 3, 4, 0], [9, 5, 6, 1]]
    assert data.y_train.shape == (2, 2)
    assert data.targets == ["y1", "y2"]
    assert data.task == "regression"
    one = Shards(str(tmp_path), target="y1", features=["v", "z"], shape=[3, 1]).load(0)
    assert one.X_test.shape == (1, 3, 1)
    points = Shards(str(tmp_path), target="y1").read_points(str(tmp_path), {"shape": [3], "features": ["v", "z"]})
    assert points.X.tolist() == [[1, 2, 7], [3, 4, 8], [5, 6, 9]]


def test_integers_without_some_are_an_array_without_them(rng):
    for left_out in ([], [0], [9], [0, 1, 2], [3, 5, 9], range(10)):
        kept, expected = AllBut(10, np.array(left_out, int)), np.setdiff1d(np.arange(10), left_out)
        np.testing.assert_array_equal(kept[:], expected)
        np.testing.assert_array_equal(kept[1:6:2], expected[1:6:2])
        np.testing.assert_array_equal(kept[expected > 4], expected[expected > 4])
        np.testing.assert_array_equal(kept.searchsorted(np.arange(11)), np.searchsorted(expected, np.arange(11)))
        if len(expected):
            chosen = rng.integers(-len(expected), len(expected), 20)
            np.testing.assert_array_equal(kept[chosen], expected[chosen])


@pytest.mark.parametrize(
    "y",
    [
        np.arange(300) % 100,
        np.arange(300) % 101,
        np.arange(300) % 4 == 0,
        np.array(["b", "a"] * 150),
        np.arange(300.0) % 7,
        np.linspace(0, 1, 300),
        np.ones((300, 2)),
        np.eye(3)[np.arange(300) % 3],
    ],
    ids=["100 integers", "101 integers", "booleans", "strings", "whole floats", "fractions", "two", "one-hot"],
)
def test_task_of_parts_is_that_of_all_targets(y):
    found = examples(np.concatenate([examples(part) for part in np.array_split(y, 7)]))
    assert guess_task(found, len(y)) == guess_task(y)


def test_examples_of_many_targets_have_the_largest_and_a_fraction():
    y = np.append(np.arange(20_000.0), [-1e9, 15_000.5])
    assert {-1e9, 15_000.5} < {*examples(y).tolist()}
    assert guess_task(examples(np.arange(20_000)), 20_000) == "regression"
    assert len(examples(np.arange(20_000).astype(str))) == 10_001


@pytest.mark.parametrize("columns", [{"a": [], "y": []}, {"a": [0.5], "y": [1]}], ids=["no rows", "one row"])
def test_parts_without_rows_to_split_are_refused(tmp_path, columns):
    pq.write_table(pa.table(columns), tmp_path / "p0.parquet")
    pq.write_table(pa.table({key: [] for key in columns}), tmp_path / "p1.parquet")
    with pytest.raises(InputError, match=r"^dataset.path: .* has [01] rows, too few to split; expected at least 2$"):
        Shards(str(tmp_path), target="y").load(0)


def test_parts_without_rows_may_have_columns_of_no_type(tmp_path):
    pq.write_table(pa.table({"a": [], "y": []}), tmp_path / "p0.parquet")
    pq.write_table(pa.table({"a": [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], "y": [1, 2, 1]}), tmp_path / "p1.parquet")
    data = Shards(str(tmp_path), target="y", task="regression").load(0)
    assert sorted(np.concatenate([data.X_train, data.X_test]).tolist()) == [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]]


def test_columns_of_one_name_are_refused(tmp_path):
    twins = pa.Table.from_arrays([pa.array([1.0, 2.0])] * 3, names=["a", "a", "y"])
    pq.write_table(twins, tmp_path / "p.parquet")
    with pytest.raises(InputError, match=r"^dataset.path: part p.parquet has several columns of one name: a$"):
        Shards(str(tmp_path), target="y").load(0)


def test_decimals_are_numbers(tmp_path):
    values = [Decimal(i) / 4 for i in range(8)]
    pq.write_table(pa.table({"a": values, "y": values}), tmp_path / "p.parquet")
    data = Shards(str(tmp_path), target="y").load(0)
    np.testing.assert_array_equal(data.X_train[:, 0], data.y_train)
    assert data.task == "regression"


@pytest.mark.parametrize("name", [b"\xff.parquet", b"caf\xe9/p.parquet"])
def test_names_that_are_not_utf8_are_an_error_of_one_line(tmp_path, name):
    path = os.path.join(os.fsencode(tmp_path), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(os.fsdecode(path)).touch()
    with pytest.raises(InputError, match=r"^dataset.path: .* cannot be read \('utf-8' codec can't dec") as error:
        Shards(str(tmp_path), target="y").load(0)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"^dataset.path: .*'utf-8' codec can't encode"):
        Shards(os.fsdecode(path), target="y").load(0)


# ---- learning --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "more"),
    [(npy_shards, ()), (parquet_shards, ("dataset.n_train=300",)), (parquet_shards, FEW_BYTES)],
    ids=["npy", "parquet, some rows", "parquet, many passes"],
)
def test_a_stream_of_parts_is_the_fit_of_the_same_points_in_memory(tmp_path, digits, write, more, monkeypatch):
    monkeypatch.setattr("orbit.learners.streaming.SAMPLE_ROWS", 100)
    settings = (*write(tmp_path, *digits, SIZES), *STREAMED, *more)
    by_parts, lazily = fitted(*settings), Shards._load_lazily

    def at_once(self, random_state) -> Dataset:
        data = lazily(self, random_state)
        return replace(data, **{part: getattr(data, part)[:] for part in ("X_train", "y_train", "X_test", "y_test")})

    monkeypatch.setattr(Shards, "_load_lazily", at_once)
    in_memory = fitted(*settings)
    np.testing.assert_allclose(by_parts.model["learner"].coef_, in_memory.model["learner"].coef_, rtol=1e-6)
    for metric in ("test/accuracy", "train/accuracy", "kernel/lengthscale"):
        assert by_parts.metrics[metric] == pytest.approx(in_memory.metrics[metric], rel=1e-12)
    assert by_parts.metrics["test/accuracy"] > 0.5


def test_each_process_opens_its_own_parts_only(tmp_path, digits, monkeypatch):
    """After the first look at all parts."""
    folder, opened = tmp_path / "parts", []
    settings = parquet_shards(folder, *digits, (200, 200, 200, 200))
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("orbit.core.distributed.gather", lambda value: [value, value])
    monkeypatch.setattr("orbit.core.distributed.all_reduce", lambda *arrays: None)
    opened_by = ParquetFormat._opened
    for rank in (0, 1):
        monkeypatch.setenv("RANK", str(rank))
        data = plan(quickly_composed(*settings, *STREAMED)).component("dataset").load(0, lazy=True)
        with monkeypatch.context() as patch:
            patch.setattr(ParquetFormat, "_opened", lambda self, name: opened.append(name) or opened_by(self, name))
            data = data.own(np.arange(0, 600, 50))
            mine = own_rows(data.X_train)
            np.testing.assert_array_equal(
                data.X_train[np.arange(mine.start, mine.stop)], digits[0][data.X_train.indices[mine]]
            )
        assert {*opened} == {f"p{2 * rank}.parquet", f"p{2 * rank + 1}.parquet"}
        opened.clear()
        with pytest.raises(IndexError, match="which another process reads"):
            data.X_train[np.array([mine.start - 3 if rank else mine.stop + 3])]


@pytest.mark.parametrize("write", [npy_shards, parquet_shards])
def test_no_part_is_ever_held_whole(tmp_path, rng, write):
    """One part of 24 MB, in Parquet row groups of 2.4 MB: what pyarrow holds between two blocks."""
    X, y = rng.standard_normal((50_000, 120)).astype(np.float32), np.arange(50_000) % 2
    settings = write(tmp_path, X, y, [50_000], *([5000] if write is parquet_shards else []))
    parts = plan(quickly_composed(*settings, "group=identity")).component("dataset").load(0, lazy=True).X_train.source
    before, header = pa.total_allocated_bytes(), parts._headers[0]
    for block in header.blocks:
        points, _ = parts.form.read(parts.names[0], header, block)
        assert points.nbytes <= 2**22
        assert pa.total_allocated_bytes() - before < X.nbytes / 3
    assert block > 4


def test_parts_that_changed_are_other_data(tmp_path, digits):
    """Parts are told apart by size and time of modification; they are not read for it."""

    def digest() -> str:
        record = Record("run")
        add_fingerprints(record, plan(quickly_composed(*settings)).fingerprints())
        return record.data_hash

    settings = npy_shards(tmp_path, *digits, SIZES)
    before = digest()
    assert digest() == before
    os.utime(tmp_path / "y" / "p1.npy", ns=(1, 1))
    assert digest() != before

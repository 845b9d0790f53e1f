"""Features from a store are those that would be computed, and everything that they depend on is in their key."""

import copy
import importlib
import os
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone

import orbit
from orbit.core.component import Component
from runners.job import features, stores
from runners.job.features import storing
from runners.job.keys import _code
from runners.job.stores import FileStore, RowStore, Store


class Memory(Store):
    """Keeps results in memory, and counts those that it made."""

    def __init__(self) -> None:
        self.results: dict[str, object] = {}
        self.made = 0

    def get(self, key, make):
        if key not in self.results:
            self.made += 1
            result = make()
            self.results[key] = copy.deepcopy(result)  # a map may be fitted again
            return result
        return self.results[key]


def make(name: str = "rf", **settings):
    cls = orbit.get("approx", name)
    parts = {
        "orbit": orbit.Orbit(orbit.build("group", "rotation"), size=4),
        "kernel": orbit.build("kernel", "gaussian", lengthscale="median"),
        "engine": orbit.Engine(workers=1),
        "random_state": 0,
    }
    known = clone(cls()).get_params(deep=False)
    return cls(**{key: value for key, value in (parts | settings).items() if key in known})


def fitted(feature_map, X):
    """A map that is fitted by way of the store in use."""
    features.fit(feature_map, X)
    return feature_map


def key_of(feature_map, X=None, purpose: object = "fit") -> str | None:
    with storing(Memory()):
        return features._key(purpose, feature_map, np.ones((3, 8, 8)) if X is None else X)


@pytest.mark.parametrize("name", ["rf", "nystrom", "cdf", "exact"])
def test_features_are_those_without_a_store(name, rng):
    X, X_new = rng.random((40, 8, 8)), rng.random((9, 8, 8))
    plain = make(name).fit(X)
    expected, memory = (plain.transform(X), plain.transform(X_new)), Memory()
    for _ in range(2):
        with storing(memory):
            stored = fitted(make(name), X)
            for points, wanted in zip((X, X_new), expected, strict=True):
                np.testing.assert_array_equal(features.transform(stored, points), wanted)
        assert stored.metrics() == plain.metrics()
        assert str(stored.route_) == str(plain.route_)
        np.testing.assert_array_equal(stored.transform(X_new), expected[1])
    assert memory.made == 3


def test_a_map_that_is_fitted_again_has_the_features_of_its_new_points(rng):
    X, other = rng.random((2, 30, 8, 8))
    with storing(Memory()):
        first = make("nystrom")
        before, after, again = (features.transform(fitted(first, points), X) for points in (X, other, X))
        np.testing.assert_array_equal(again, before)
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(after, make("nystrom").fit(other).transform(X))


@pytest.mark.parametrize("name", ["rf", "nystrom", "cdf", "exact", "skeleton", "orff", "points"])
def test_every_parameter_of_a_map_and_of_its_parts_changes_the_key(name):
    feature_map = make(name, kernel=None) if name in ("skeleton", "orff") else make(name)
    keys = {(): key_of(feature_map)}
    assert keys[()] == key_of(clone(feature_map)) is not None
    for parameter in feature_map.get_params():
        changed = clone(feature_map).set_params(**{parameter: 1 if parameter == "random_state" else 7.25})
        if not parameter.startswith("engine"):
            keys[parameter] = key_of(changed)
    for option, value in {"memory": 2.0, "workers": 3, "dtype": "float64", "path": "direct", "tf32": True}.items():
        keys[f"engine {option}"] = key_of(clone(feature_map).set_params(**{f"engine__{option}": value}))
    assert None not in keys.values()
    assert len(set(keys.values())) == len(keys)


def test_shape_dtype_purpose_threads_and_versions_change_the_key(monkeypatch):
    X = np.zeros((4, 8, 8))
    keys = [key_of(make(), points) for points in (X, X.astype(np.float32), X.reshape(4, 64))]
    keys.append(key_of(make(), X, "features"))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 17)
    keys.append(key_of(make(), X))
    monkeypatch.setattr("runners.job.keys._code", lambda packages: "another version")
    keys.append(key_of(make(), X))
    assert None not in keys
    assert len(set(keys)) == len(keys)


@pytest.fixture(params=["whole", "shared", "memory", "files"])
def a_store(request, tmp_path, monkeypatch):
    """Every kind of store."""
    for rate in ("_BYTES_PER_S", "_SHARED_BYTES_PER_S"):  # files keep what takes no time too
        monkeypatch.setattr(stores, rate, 1e18)
    monkeypatch.setattr(stores, "_WORTH_S", 0.0)
    by_row = {"memory": RowStore(1e8), "files": RowStore(1e8, tmp_path)}
    return {"whole": Memory(), "shared": FileStore(tmp_path, 1.0), **by_row}[request.param]


def test_points_are_told_apart_by_their_values_and_not_by_their_order_in_memory(a_store, rng):
    X = rng.random((4, 8, 8))
    changed = X.copy()
    changed[3, 7, 7] = np.nextafter(X[3, 7, 7], 1)
    made = list[int]()

    def last_rows(points: np.ndarray):
        made.append(len(points))
        return points[:, 7], None, ()

    for points in (X, np.asfortranarray(X), changed, X[:3], X):
        np.testing.assert_array_equal(a_store.rows("last rows", points, last_rows)[0], points[:, 7])
    assert made == ([4, 1] if a_store.by_row else [4, 4, 3])


def test_fits_to_other_points_are_told_apart(a_store, rng):
    """Also where only their features are kept."""
    X, other = rng.random((2, 30, 8, 8))
    with storing(a_store):
        maps = [fitted(make("nystrom", n_components=5), points) for points in (X, other, X)]
        found = [features.transform(one, X) for one in maps]
    np.testing.assert_array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1])


def test_the_code_of_a_component_elsewhere_and_the_files_that_it_reads_change_the_key(tmp_path, monkeypatch):
    source, weights = tmp_path / "my_kernels.py", tmp_path / "weights.bin"
    code = (
        "from pathlib import Path\nfrom orbit.core.component import Component\n\n"
        "class Mine(Component):\n    kind, name = 'kernel', 'mine'\n\n"
        "    def __init__(self, path=''):\n        self.path = path\n\n"
        "    def input_files(self):\n        return [Path(self.path)]\n"
    )
    source.write_text(code)
    weights.write_bytes(b"one")
    monkeypatch.syspath_prepend(tmp_path)
    mine = importlib.import_module("my_kernels").Mine(str(weights))
    assert isinstance(mine, Component)
    keys = [key_of(make(kernel=mine))]
    weights.write_bytes(b"other")
    keys.append(key_of(make(kernel=mine)))
    source.write_text(f"{code}\n# changed\n")
    _code.cache_clear()
    keys.append(key_of(make(kernel=mine)))
    del sys.modules["my_kernels"]
    assert None not in keys
    assert len(set(keys)) == 3


def test_there_is_no_key_where_not_all_is_known():
    assert key_of(make(random_state=None)) is None
    assert key_of(make(random_state=np.random.RandomState(0))) is None
    assert key_of(make(engine=orbit.Engine(stream=True))) is None
    assert key_of(make(), [[0.0, 1.0]]) is None
    assert key_of(make(kernel=lambda: None)) is None
    assert key_of(make(), purpose=["features", {"fitted": lambda: None}]) is None
    assert features._key("fit", make(), np.ones((3, 8, 8))) is None  # no store is in use


@pytest.mark.parametrize("a_store", ["whole", "shared", "files"], indirect=True)
def test_the_warnings_of_a_result_are_given_every_time(a_store):
    made = list[int]()

    def warned() -> int:
        warnings.warn("of little mass", RuntimeWarning, stacklevel=1)
        return made.append(1) or 3

    for _ in range(3):
        with storing(a_store), pytest.warns(RuntimeWarning, match="of little mass") as caught:
            assert features.cached("warned", make(), np.ones((3, 8, 8)), warned) == 3
        assert len(caught) == 1
        assert caught[0].filename == __file__
    assert made == [1]
    refused = pytest.raises(RuntimeWarning, match="of little mass")
    with storing(a_store), warnings.catch_warnings(action="error"), refused:
        features.cached("warned", make(), np.ones((3, 8, 8)), warned)


def test_a_warning_that_a_filter_hides_is_kept_for_those_who_show_it(a_store):
    for action in ("ignore", "always"):
        with storing(a_store), warnings.catch_warnings(record=True, action=action) as caught:
            features.cached("warned", make(), np.ones((3, 8, 8)), lambda: warnings.warn("of little mass", stacklevel=1))
        assert len(caught) == (action == "always")


def test_the_warnings_of_rows_are_given_every_time(a_store, rng):
    X = rng.random((6, 8, 8))

    def warned(points: np.ndarray):
        for name, row in (("first", 0), ("last", 5)):
            if (points == X[row]).all((1, 2)).any():
                warnings.warn(f"of the {name} row", stacklevel=1)
        return points[:, 0]

    def texts(rows: slice) -> set[str]:
        with storing(a_store), warnings.catch_warnings(record=True, action="always") as caught:
            found = features._rows("warned", SimpleNamespace(transform=warned, route_=None), X[rows])
            np.testing.assert_array_equal(found, X[rows, 0])
        return {str(one.message) for one in caught}

    assert texts(slice(0, 3)) == {"of the first row"}
    for _ in range(2):
        assert texts(slice(0, 6)) == {"of the first row", "of the last row"}


def test_a_store_is_not_used_inside_of_what_it_keeps():
    memory = Memory()
    with storing(memory):
        arguments = make(), np.ones((3, 8, 8))
        found = features.cached("outer", *arguments, lambda: features.cached("inner", *arguments, os.getpid))
    assert found == os.getpid()
    assert len(memory.results) == 1


def test_maps_fitted_to_other_points_share_features_if_they_are_equal(rng):
    """Templates do not depend on the points, landmarks do: as in a curve against the number of training points."""
    X, other, X_new = rng.random((3, 30, 8, 8))
    for name, made in (("cdf", 3), ("nystrom", 4)):
        memory = Memory()
        with storing(memory):
            maps = [fitted(make(name), points) for points in (X, other)]
            first, second = (features.transform(one, X_new) for one in maps)
        assert memory.made == made
        assert np.array_equal(first, second) == (made == 3)


@pytest.mark.parametrize("thresholds", ["uniform", "quantile"])
def test_features_of_some_templates_are_columns_of_those_of_all_that_were_drawn(thresholds, rng):
    X, X_new = rng.random((30, 8, 8)), rng.random((9, 8, 8))

    def of(m: int, drawn: int | None):
        return make("cdf", n_components=m, drawn=drawn, n_bins=4, thresholds=thresholds)

    whole, memory = of(40, None).fit(X).transform(X_new), Memory()
    for m in (40, 7, 1):
        plain = of(m, 40).fit(X).transform(X_new)
        np.testing.assert_allclose(plain, whole[:, : 9 * m] * np.sqrt(40 / m), rtol=1e-6, atol=1e-9)
        with storing(memory):
            found = fitted(of(m, 40), X)
            shared = features.transform(found, X_new)
            np.testing.assert_allclose(shared, plain, rtol=1e-6, atol=1e-9)
            shared[:] = 0  # a copy
        assert found.route_ is not None
    assert memory.made == 3 + 1, "three fits, one computation of features"


def test_what_a_store_is_too_small_for_is_computed_alone(rng):
    X, memory = rng.random((30, 8, 8)), Memory()
    memory.limit_bytes = 100.0
    with storing(memory):
        found = features.transform(fitted(make("cdf", n_components=2, drawn=40, n_bins=4), X), X)
    assert {result[0].shape for result in memory.results.values() if len(result) == 3} == {found.shape}


def by_row(tmp_path, where: str, limit: float, **options) -> RowStore:
    return RowStore(limit, tmp_path if where == "files" else None, **options)


@pytest.mark.parametrize("where", ["memory", "files"])
class TestRowStore:
    @pytest.fixture(autouse=True)
    def keeps_all(self, monkeypatch):
        monkeypatch.setattr(stores, "_BYTES_PER_S", 1e18)

    def test_each_row_is_computed_once_in_whatever_array_and_order_it_comes(self, where, tmp_path, rng):
        kept, X, made = by_row(tmp_path, where, 1e6), rng.random((20, 3)), list[int]()

        def compute(rows: np.ndarray):
            made.append(len(rows))
            return np.hstack([rows, -rows]), f"note {len(made)}", ()

        for rows in (slice(5, 12), slice(0, 20), rng.permutation(20), [3, 3, 7], slice(0, 0)):
            found, note, _ = kept.rows("key", X[rows], compute)
            np.testing.assert_array_equal(found, np.hstack([X[rows], -X[rows]]))
            found[:] = 0  # a copy
        assert made == [7, 13, 0]
        assert note == "note 3"
        kept.rows("another key", X, compute)
        assert made[3:] == [20]
        assert list(tmp_path.iterdir()) == [], "files have no names"

    def test_keeps_what_was_used_last_within_the_limit(self, where, tmp_path):
        kept, made = by_row(tmp_path, where, 100.0), list[str]()

        def get(key: str, rows: range) -> None:
            def compute(X: np.ndarray):
                made.append(f"{key}{len(X)}")
                return X + 1.0, None, ()

            X = np.array(rows, dtype=float)[:, None]
            np.testing.assert_array_equal(kept.rows(key, X, compute)[0], X + 1)

        for _ in range(2):
            get("a", range(10))  # 80 of 100 bytes
            get("a", range(10, 15))
        assert made == ["a10", "a5", "a5"], "what has no room takes the place of nothing"
        for key in ("b", "c", "b", "d", "b", "c"):  # two of 40 bytes have room
            get(key, range(5))
        assert made[3:] == ["b5", "c5", "d5", "c5"]

    def test_asks_the_store_beyond_for_what_it_does_not_have(self, where, tmp_path):
        beyond = Memory()
        for made in (2, 2):
            kept = by_row(tmp_path, where, 1e6, beyond=beyond)
            for _ in range(2):
                assert kept.get("key", lambda: 3) == 3
                found = kept.rows("rows", np.eye(2), lambda X: (2 * X, "note", ()))
                np.testing.assert_array_equal(found[0], 2 * np.eye(2))
                assert found[1] == "note"
            assert beyond.made == made

    @pytest.mark.parametrize("beyond", [False, True])
    def test_has_other_results_in_files(self, beyond, where, tmp_path):
        kept, made = by_row(tmp_path, where, 10_000.0), list[str]()

        def get(key: str, size: int) -> None:
            if beyond:
                kept.beyond = Memory()  # a new one, which has nothing
            found = kept.get(key, lambda: made.append(key) or {"values": np.ones(size, np.uint8)})
            assert found["values"].sum() == size
            found["values"][:] = 0  # a copy

        for key in ("e", "f", "e", "g", "e", "f"):  # two of 4,000 bytes have room
            get(key, 4000)
        assert made == (["e", "f", "g", "f"] if where == "files" else ["e", "f", "e", "g", "e", "f"])
        assert list(tmp_path.iterdir()) == [], "files have no names"

    def test_has_small_results_in_memory(self, where, tmp_path):
        kept, made = by_row(tmp_path, where, 10_000.0), list[str]()

        def get(key: str, size: int) -> None:
            found = kept.in_memory(key, lambda: made.append(key) or {"values": np.ones(size, np.uint8)})
            assert found["values"].sum() == size
            found["values"][:] = 0  # a copy

        for _ in range(2):
            get("a", 60)  # of 100 bytes
            get("large", 101)
            get("b", 40)
        assert made == ["a", "large", "b", "large"]
        get("c", 40)
        get("b", 40)
        assert made[4:] == ["c"], "in place of a"


def test_rows_are_not_kept_in_files_where_computing_them_is_faster_than_reading(tmp_path, monkeypatch):
    kept, made = RowStore(1e6, tmp_path), list[int]()
    for rate, expected in ((1.0, 2), (1e18, 3)):
        monkeypatch.setattr(stores, "_BYTES_PER_S", rate)
        for _ in range(2):
            kept.rows("key", np.eye(2), lambda X: (X, made.append(1), ()))
        assert len(made) == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is full")
def test_a_full_disk_ends_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "_BYTES_PER_S", 1e18)
    kept, warned = RowStore(1e6, tmp_path), list[str]()
    monkeypatch.setattr(stores.log, "warning", lambda text, *arguments: warned.append(text % arguments))
    with open("/dev/full", "wb+", buffering=0) as full:
        monkeypatch.setattr(stores, "tempfile", SimpleNamespace(TemporaryFile=lambda dir: full))
        for _ in range(2):
            np.testing.assert_array_equal(kept.rows("rows", np.eye(2), lambda X: (X, None, ()))[0], np.eye(2))
            np.testing.assert_array_equal(kept.get("large", lambda: np.ones(5000)), np.ones(5000))
    assert len(warned) == 4
    assert all("cannot be written (No space left on device)" in text for text in warned)

"""Features kept on disk: sweeps over learners compute them once, with the results of computing them each time."""

import collections
import errno
import multiprocessing
import os
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from command_line import SMALL, folders
from omegaconf import OmegaConf

import orbit
from orbit import FeatureMap, InputError
from runners.job import stores
from runners.job.stores import FEATURES, FileStore
from runners.tracking.record import RunFolder
from runners.tracking.sweep import _shares_features, _varied

UNTRACKED = (*SMALL, "tracking.enabled=false", "runner.check_group=false")
SWEEP = ("-m", *UNTRACKED, "learner.regularization=0.1,1,10")


@pytest.fixture
def keeps_all(monkeypatch):
    """Small features are kept too."""
    monkeypatch.setattr(stores, "_WORTH_S", 0.0)
    monkeypatch.setattr(stores, "_SHARED_BYTES_PER_S", 1e18)


@pytest.fixture
def computed(monkeypatch) -> collections.Counter:
    """How often maps are fitted and features computed."""
    counts: collections.Counter = collections.Counter()

    def count(name: str) -> None:
        method = getattr(FeatureMap, name)

        def counted(self, X, *args, **kwargs):
            counts[name] += 1
            return method(self, X, *args, **kwargs)

        monkeypatch.setattr(FeatureMap, name, counted)

    count("fit")
    count("transform")
    return counts


def scores(path: Path) -> dict[str, float]:
    metrics = RunFolder(path).read_metrics()
    return {key: value for key, value in metrics.items() if not key.startswith(("time/", "memory/"))}


@pytest.mark.usefixtures("keeps_all")
class TestSweep:
    def test_computes_features_once_and_has_the_results_of_computing_them_each_time(self, run, tmp_path, computed):
        assert run(*SWEEP, "feature_cache=0", "hydra.sweep.dir=out/plain")[0] == 0
        each = dict(computed)
        computed.clear()
        run.ok(*SWEEP, "hydra.sweep.dir=out/kept")
        assert {name: 3 * count for name, count in computed.items()} == each
        plain, kept = folders(tmp_path)[3:], folders(tmp_path)[:3]
        assert [path.parent.name for path in (*kept, *plain)] == ["kept"] * 3 + ["plain"] * 3
        for one, other in zip(kept, plain, strict=True):
            assert scores(one) == scores(other)
        read = [RunFolder(path).read_metrics().get("time/features_from_disk", 0) for path in kept]
        assert read[0] == 0 < read[1] == read[2]
        assert "were read from disk" in run.said

    def test_a_single_run_keeps_features_if_it_is_asked_to(self, run, tmp_path, computed):
        assert run(*UNTRACKED)[0] == 0
        assert not (tmp_path / "out" / "feature_cache").exists()
        assert run(*UNTRACKED, "feature_cache=1")[0] == 0
        computed.clear()
        assert run(*UNTRACKED, "feature_cache=1", "learner=svm")[0] == 0
        assert not computed

    def test_a_sweep_over_anything_else_keeps_nothing(self, run, tmp_path):
        assert run("-m", *UNTRACKED, "orbit.size=2,3")[0] == 0
        assert not (tmp_path / "out" / "feature_cache").exists()

    def test_nothing_is_kept_of_times_and_dry_runs(self, run, tmp_path):
        table = ("runner=table", *SMALL[:-1], "tracking.enabled=false", "runner.repeats={seed: [0]}")
        series = "series: {plain: {group: {name: identity}}}"
        curves = f"runner.curves={{time: {{along: {{orbit.size: [4]}}, {series}, metric: time/total_s}}}}"
        assert run(*table, curves, "feature_cache=1")[0] == 0
        assert run(*UNTRACKED, "feature_cache=1", "dry_run=true")[0] == 0
        assert not (tmp_path / "out" / "feature_cache").exists()


@pytest.mark.parametrize(
    ("overrides", "params", "shares"),
    [
        (["seed=0,1", "learner=ridge,svm"], None, True),
        (["seed=0", "learner.regularization=choice(1,2)"], None, True),
        (["seed=0"], {"learner.regularization": "1,2"}, True),
        (["seed=0,1", "learner=ridge"], None, False),
        (["learner.regularization=[1,2]"], None, False),
        (["learner.regularization=interval(1,2)"], {"learner": "ridge,krr"}, True),
        (["learner.regularization=interval(1,2)", "kernel.lengthscale=interval(1,2)"], None, False),
    ],
)
def test_which_sweeps_share_features(overrides, params, shares):
    config = OmegaConf.create({"overrides": {"task": overrides}, "sweeper": {"params": params}})
    assert _shares_features(_varied(config)) == shares


def _slow(path: str) -> np.ndarray:
    with open(path, "a") as file:
        file.write("x")
    time.sleep(0.5)
    return np.arange(3)


def _work(folder: Path, count: str) -> None:
    stores._WORTH_S, stores._SHARED_BYTES_PER_S = 0.0, 1e18
    found = FileStore(folder, 1.0).get("key", lambda: _slow(count))
    os._exit(0 if np.array_equal(found, np.arange(3)) else 1)


def made(store: FileStore, key: str, size: int = 1) -> list[np.ndarray]:
    """The results that were made, of ``size`` MiB, for one call."""
    results: list[np.ndarray] = []

    def make() -> np.ndarray:
        results.append(np.full(size * 2**20, 7, np.uint8))
        return results[-1]

    np.testing.assert_array_equal(store.get(key, make), np.full(size * 2**20, 7, np.uint8))
    return results


@pytest.mark.usefixtures("keeps_all")
class TestFileStore:
    def test_of_two_processes_one_computes(self, tmp_path):
        context = multiprocessing.get_context("fork")
        workers = [context.Process(target=_work, args=(tmp_path / "c", str(tmp_path / "count"))) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert [worker.exitcode for worker in workers] == [0, 0]
        assert (tmp_path / "count").read_text() == "x"
        assert [path.name for path in (tmp_path / "c").iterdir()] == ["key"]

    def test_the_least_recently_used_go_first(self, tmp_path):
        store = FileStore(tmp_path, 3.5 / 1024)
        for age, key in enumerate("abc"):
            assert made(store, key)
            os.utime(tmp_path / key / FEATURES, (1000 + age, 1000 + age))
        assert not made(store, "a")  # read: b is the oldest
        assert made(store, "d")
        assert sorted(path.parent.name for path in tmp_path.rglob(FEATURES)) == ["a", "c", "d"]
        assert made(store, "e", size=4)
        assert made(store, "e", size=4), "larger than the limit"
        assert sorted(path.parent.name for path in tmp_path.rglob(FEATURES)) == ["a", "c", "d"]
        assert (store.found, store.made) == (1, 6)

    def test_what_is_kept_is_no_model(self, tmp_path):
        assert made(FileStore(tmp_path / "cache", 1.0), "key")
        for folder in (tmp_path / "cache", tmp_path / "cache" / "key"):
            with pytest.raises(InputError, match="a run folder with a model.pkl at .*, found none; runner=fit"):
                orbit.load(folder)

    @pytest.mark.parametrize("damage", ["cut", "changed", "empty", "forged"])
    def test_a_damaged_file_is_computed_again_with_a_warning(self, tmp_path, damage, log_messages):
        store = FileStore(tmp_path, 1.0)
        assert made(store, "key")
        path = tmp_path / "key" / FEATURES
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        cut = {"cut": content[:1000], "changed": content, "empty": b"", "forged": b"cos\n_exit\n(I3\ntR."}
        path.write_bytes(bytes(cut[damage]))
        assert made(store, "key")
        assert [message for message in log_messages if "computed again" in message]
        assert not made(store, "key")

    def test_a_full_disk_is_a_warning(self, tmp_path, monkeypatch, log_messages):
        full = OSError(errno.ENOSPC, "No space left on device")
        monkeypatch.setattr(stores, "write_model", Mock(side_effect=full))
        store = FileStore(tmp_path, 1.0)
        assert made(store, "key")
        assert made(store, "key")
        assert [message for message in log_messages if "No space left on device" in message]
        assert not list(tmp_path.iterdir())

    def test_a_folder_that_cannot_be_made_is_no_failure(self, tmp_path):
        (tmp_path / "file").write_text("")
        store = FileStore(tmp_path / "file" / "cache", 1.0)
        assert made(store, "key")

    def test_what_is_fast_to_compute_is_not_kept(self, tmp_path, monkeypatch):
        monkeypatch.setattr(stores, "_WORTH_S", 60.0)
        store = FileStore(tmp_path, 1.0)
        assert made(store, "key")
        assert made(store, "key")
        assert not list(tmp_path.rglob(FEATURES))

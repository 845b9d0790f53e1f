"""The data set that is kept between jobs: loaded once where it is the same, again where anything differs."""

import warnings

import numpy as np
import pytest
from command_line import SMALL, folders, new_job, quickly_composed
from PIL import Image

import orbit
from orbit.core.fingerprint import digest, fingerprint
from orbit.data import Digits
from orbit.data.rows import Rows
from runners.config import plan as module
from runners.config.plan import loaded, plan
from runners.experiments.trials import Trials

SETTINGS = {"name": "digits", "n_train": 50, "n_test": 20}


@pytest.fixture
def loads(monkeypatch) -> list[int]:
    """The seeds of all loads of digits."""
    seeds = []
    load = Digits.load

    def counted(self, random_state=None, lazy=False):
        seeds.append(random_state)
        return load(self, random_state, lazy)

    monkeypatch.setattr(Digits, "load", counted)
    return seeds


def test_same_settings_and_seed_load_once(loads):
    loader = Digits(n_train=50, n_test=20)
    assert loaded(loader, SETTINGS, 3, []) is loaded(loader, dict(SETTINGS), 3, [])
    assert loads == [3]


@pytest.mark.parametrize(("settings", "seed"), [(SETTINGS, 4), ({**SETTINGS, "n_test": 21}, 3)])
def test_other_settings_or_seed_load_again(loads, settings, seed):
    loaded(Digits(n_train=50, n_test=20), SETTINGS, 3, [])
    found = loaded(Digits(**{key: settings[key] for key in ("n_train", "n_test")}), settings, seed, [])
    assert (len(found.X_test), loads) == (settings["n_test"], [3, seed])
    assert len(module._last) == 1  # the other one is let go


def test_changed_file_is_read_again(tmp_path):
    path, settings = tmp_path / "points.npz", {"name": "arrays"}
    for value in (1.0, 2.0):
        X = np.full((20, 3), value, dtype=np.float32)
        np.savez(path, X=X, y=np.arange(20) % 2)
        loader = orbit.build("dataset", "arrays", path=str(path))
        found = loaded(loader, settings, 0, [fingerprint(path)])
        assert float(found.X_train[0, 0]) == value


def test_warnings_of_loading_name_configuration_keys(tmp_path):
    np.savez(tmp_path / "points.npz", X=np.zeros((40, 3)), y=np.arange(40) % 20, Z=np.zeros(40))
    loader = orbit.build("dataset", "arrays", path=str(tmp_path / "points.npz"))
    with warnings.catch_warnings(record=True, action="always") as found:
        loaded(loader, {"name": "arrays"}, 0, [])
    texts = " ".join(str(each.message) for each in found)
    for key in ("dataset.x_test_key=NAME", "dataset.y_test_key=NAME", "dataset.task=regression"):
        assert key in texts


def test_warnings_of_loading_are_given_every_time(monkeypatch, loads):
    load = Digits.load

    def warning(self, random_state=None, lazy=False):
        warnings.warn("3 rows were left out", stacklevel=1)
        return load(self, random_state, lazy)

    monkeypatch.setattr(Digits, "load", warning)
    for _ in range(2):
        with pytest.warns(UserWarning, match="3 rows were left out"):
            loaded(Digits(n_train=50, n_test=20), SETTINGS, 3, [])
    assert loads == [3]


def test_jobs_of_a_sweep_load_once_for_each_seed(run, tmp_path, loads):
    sweep = (*SMALL, "tracking.enabled=false", "runner.check_group=false")
    run.ok("-m", *sweep, "seed=0,1", "learner.regularization=0.1,1")
    assert len(folders(tmp_path)) == 4
    assert len(loads) == 2


def test_a_picture_in_another_class_is_other_data(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for i in range(3):
            Image.new("L", (4, 4), 10 * i).save(tmp_path / name / f"{i}{name}.png")
    made = plan(quickly_composed("dataset=images", f"dataset.path={tmp_path}", "group=identity"))
    before = made.fingerprints()
    (tmp_path / "a" / "2a.png").rename(tmp_path / "b" / "2a.png")
    after = made.fingerprints()
    assert [file.sha256 for file in sorted(after, key=lambda f: f.sha256)] == [
        file.sha256 for file in sorted(before, key=lambda f: f.sha256)
    ]
    assert digest(after) != digest(before)


def test_a_streamed_row_of_a_table_reads_its_own_points(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32), np.arange(40) % 2
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    files = "dataset=arrays", f"dataset.path={tmp_path / 'X.npy'}", f"dataset.y_path={tmp_path / 'y.npy'}"
    job = new_job(tmp_path / "run", *files, "group=identity", "representation=raw")
    made, trials = job.plan, Trials(job, "test/accuracy")
    in_memory = trials.data(made)
    assert trials.data(made) is in_memory
    streamed = trials.data(made.variant({"engine.stream": True}))
    assert isinstance(in_memory.X_train, np.ndarray)
    assert isinstance(streamed.X_train, Rows)
    wider = made.variant({"engine.stream": True, "approx.n_components": 20})
    assert trials.data(wider) is not streamed, "its sample may be larger"

"""Models in folders, from Python; that strangers' models run no code is tested in tests/runners/test_run_trust.py."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import orbit
from orbit.core.errors import InputError
from orbit.core.models import MODEL, SIGNATURE, write_model


@pytest.fixture
def fitted(rng):
    X = rng.standard_normal((20, 3))
    return make_pipeline(orbit.Standardize(), orbit.RidgeRegressor(0.1)).fit(X, X[:, 0]), X


def test_a_saved_model_comes_back_and_is_replaced(fitted, tmp_path):
    model, X = fitted
    orbit.save(orbit.RidgeRegressor(0.1).fit(X, X[:, 0]), tmp_path / "new" / "folder")
    orbit.save(model, str(tmp_path / "new" / "folder"))
    np.testing.assert_array_equal(orbit.load(tmp_path / "new" / "folder").predict(X), model.predict(X))


def test_a_model_from_elsewhere_needs_trust(fitted, tmp_path):
    orbit.save(fitted[0], tmp_path)
    (tmp_path / SIGNATURE).unlink()
    with pytest.raises(
        InputError, match=r"^folder: .*model.pkl was not written by you .*; set trust=True if you trust"
    ):
        orbit.load(tmp_path)
    assert len(orbit.load(tmp_path, trust=True)) == 2


def file(folder: Path) -> Path:
    (folder / "notes.txt").touch()
    return folder / "notes.txt"


def sweep(folder: Path) -> Path:
    (folder / "0").mkdir()
    write_model(folder / "0", 1)
    return folder


def damaged(folder: Path) -> Path:
    write_model(folder, 1)
    (folder / MODEL).write_bytes(b"")
    return folder


def number(folder: Path) -> Path:
    write_model(folder, 1)
    return folder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder, "found none; runner=fit writes it unless runner.save_model=false"),
        (lambda folder: folder / "missing", "missing, found none; runner=fit writes it"),
        (file, "expected a run folder with a model.pkl at .*notes.txt, found a file; runner=fit"),
        (sweep, "found folders that have one, such as 0; runner=fit"),
        (damaged, "model.pkl was not written by you on this machine, or was changed since"),
        (number, "model.pkl: expected a scikit-learn estimator, such as a pipeline, found int"),
    ],
)
def test_folders_without_a_model_are_refused(tmp_path, make, message):
    with pytest.raises(InputError, match=f"^folder: .*{message}") as error:
        orbit.load(make(tmp_path))
    assert "\n" not in str(error.value)


def test_what_cannot_be_saved_is_refused(fitted, tmp_path):
    with pytest.raises(InputError, match="model: expected a scikit-learn estimator, such as a pipeline, found dict"):
        orbit.save({}, tmp_path)
    with pytest.raises(InputError, match="model: expected a model that can be pickled, found one that cannot"):
        orbit.save(FunctionTransformer(lambda X: X), tmp_path)
    with pytest.raises(InputError, match="folder: expected a folder that can be written at .*notes.txt, found none"):
        orbit.save(fitted[0], file(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]

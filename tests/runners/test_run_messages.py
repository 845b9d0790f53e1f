"""Errors and warnings of the library name parameters as configuration keys."""

import numpy as np
import pytest

import orbit
from orbit.core.errors import InputError

VON_MISES = {"name": "von_mises", "concentration": -1}


@pytest.mark.parametrize(
    ("kind", "name", "values", "expected"),
    [
        ("kernel", "gaussian", {"lengthscale": -1}, "kernel.lengthscale: expected a finite number > 0"),
        ("kernel", "decomposable", {"base": {"name": "matern", "nu": -1}}, "kernel.base.nu: expected"),
        ("kernel", "skeleton", {"layers": [{"kind": "full"}, {}]}, r"kernel.layers\[1\]: expected {kind: conv"),
        ("kernel", "skeleton", {"activation": "cosine"}, "kernel.activation: expected one of"),
        ("learner", "network", {"layers": [{"kind": "none"}]}, r"learner.layers\[0\]: expected {kind: conv"),
        (
            "hyper",
            "gaussian",
            {"lengthscale": 1e-30, "engine": orbit.Engine(dtype="float32")},
            "hyper.lengthscale: expected a number between",
        ),
        ("distribution", "product", {"factors": [VON_MISES]}, r"distribution.factors\[0\].concentration: expected"),
        ("encoder", "patches", {"layers": [{}, {"size": 0}]}, r"encoder.layers\[1\].size: expected an integer"),
        ("encoder", "patches", {"size": 0}, "encoder.size: expected an integer"),
        ("approx", "nystrom", {"kernel": orbit.Gaussian(-1)}, "kernel.lengthscale: expected"),
    ],
)
def test_an_error_names_the_section_of_its_component(kind, name, values, expected):
    more = {"task": "classification"} if kind == "learner" else {}
    with pytest.raises(InputError, match=f"^{expected}"):
        orbit.build(kind, name, **values, **more).check()


class TestWarnings:
    """Warnings name parameters in Python, and keys on the command line."""

    @pytest.fixture
    def shown(self, run):
        """The log of a run."""

        def shown(*overrides: str) -> str:
            folder = run.finished(*overrides, "tracking.enabled=false", "runner.save_model=false")
            return (folder / "run.log").read_text()

        return shown

    @pytest.fixture
    def series(self, tmp_path) -> str:
        X = np.random.default_rng(0).normal(size=(20, 64, 2))
        np.savez(tmp_path / "series.npz", X=X, y=np.arange(20) % 2)
        return f"dataset.path={tmp_path / 'series.npz'}"

    def test_of_a_solver(self, shown, series):
        log = shown(
            "dataset=arrays", series, "group=identity", "representation=raw", "learner=svm", "learner.max_iter=1"
        )
        assert "stopped after learner.max_iter=1 steps before it converged for learner.regularization=1e-06" in log

    @pytest.mark.parametrize("learner", ["ridge", "logistic"])
    def test_of_many_classes_is_shown_once(self, shown, tmp_path, learner):
        """scikit-learn gives it in each function that checks the targets."""
        X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 40
        np.savez(tmp_path / "many.npz", X=X, y=np.char.add("class ", y.astype(str)))
        log = shown("dataset=arrays", f"dataset.path={tmp_path / 'many.npz'}", "group=identity", f"learner={learner}")
        assert len([line for line in log.splitlines() if "unique classes" in line and " times: " not in line]) == 1

"""Data and parameters at the limits of floating point: they give the usual result, or one line that names them."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from command_line import fitted
from samples import noisy_digits, npy_files

from orbit.core.errors import InputError
from runners.experiments.fitting import Fitted

SMALL = ("approx.n_components=20", "orbit.size=4", "tracking.enabled=false")
FLOAT64 = "engine.dtype=float64"
MEDIAN = "kernel.lengthscale=median"


def fit(*overrides: str) -> Fitted:
    """A small fit; warnings of NumPy are errors, those of the library are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        return fitted(*SMALL, *overrides)


def refusal(*overrides: str) -> str:
    """The line that the command line would print for a run that is refused."""
    with pytest.raises(InputError) as caught:
        fit(*overrides)
    return str(caught.value)


def scaled(folder: Path, scale: float, dtype: str, outlier: float | None = None) -> tuple[str, ...]:
    X, y = noisy_digits(np.random.default_rng(0), 80)
    X = (X.astype(np.float64) * scale).astype(dtype)
    if outlier is not None:
        X[3, 3, 3] = outlier
    return npy_files(folder, X, y)


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, float]:
    """The accuracy on data of the usual scale, by representation."""
    data = scaled(tmp_path_factory.mktemp("data"), 1.0, "float64")
    names = ("unit_norm", "standardize")
    return {name: fit(*data, f"representation={name}").metrics["test/accuracy"] for name in names}


@pytest.mark.parametrize(
    ("representation", "scale", "dtype", "options"),
    [
        *(("unit_norm", scale, "float32", ()) for scale in (1e19, 1e38, 1e-30, 1e-41)),
        *(("unit_norm", scale, "float64", (FLOAT64,)) for scale in (1e200, 1e-200, 1e-308)),
        ("unit_norm", 1e200, "float64", ()),
        *(("standardize", scale, "float64", ()) for scale in (1e200, 1e-200, 1e-308)),
    ],
)
def test_the_scale_of_the_points_does_not_matter(tmp_path, expected, representation, scale, dtype, options):
    found = fit(*scaled(tmp_path, scale, dtype), f"representation={representation}", *options)
    # subnormal numbers have few digits
    assert found.metrics["test/accuracy"] == pytest.approx(expected[representation], abs=0.06)
    assert expected[representation] > 0.4  # chance is 0.1


@pytest.mark.parametrize(
    ("scale", "dtype", "outlier", "options", "message"),
    [
        (1e33, "float32", None, ["representation=raw"], r"largest entry .* 1\.\S+e\+33, of point .* float32 needs one"),
        (
            1e24,
            "float32",
            None,
            ["representation=raw"],
            "kernel.lengthscale: expected one between 1.2e-18 and 6.5e.18 in float32, found .*, the median dist",
        ),
        (1e-42, "float32", None, ["representation=raw"], "largest entry .* or compute with engine.dtype=float64"),
        (1e200, "float64", None, ["representation=raw", FLOAT64], "largest entry .* float64 needs one .* Standardize$"),
        (1e-310, "float64", None, ["representation=raw", FLOAT64], "largest entry .* Standardize$"),
        (1.0, "float32", 1e38, [], "kernel.lengthscale: .* in float32, found .*, the median distance: remove outl"),
        (1e300, "float64", None, ["representation=raw"], r"largest entry .* \S+e\+300, of point .* float32 needs"),
        (1.0, "float32", 1e38, ["representation=raw"], "largest entry of the points is 1e.38, of point"),
    ],
)
def test_points_whose_squares_overflow_are_refused(tmp_path, scale, dtype, outlier, options, message):
    line = refusal(*scaled(tmp_path, scale, dtype, outlier), "seed=1", *options)
    assert "\n" not in line
    assert re.search(message, line), line


@pytest.mark.parametrize("size", [1e200, 1e38, 1e-200])
@pytest.mark.parametrize("task", ["auto", "regression"])
def test_targets_whose_squares_overflow_are_refused(tmp_path, size, task):
    X = np.random.default_rng(0).random((40, 3))
    data = npy_files(tmp_path, X, X.sum(1) * size)
    assert "largest target must be between 1e-30 and 1e+30 in size" in refusal(*data, f"dataset.task={task}")


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        (["kernel=polynomial", "kernel.gamma=1e30"], "features: NaN or infinite for 60 of 60 points, .* kernel.gamma="),
        (["kernel=polynomial", "kernel.degree=99", "kernel.gamma=1e30"], "kernel matrix: NaN or inf"),
        *(
            ([f"{key}=1e300", *more], f"{key}: expected 0 or a number of size 1e-100 to 1e.100, found 1e.300")
            for key, *more in (
                ("kernel.gamma", "kernel=polynomial"),
                ("kernel.coef0", "kernel=polynomial"),
                ("kernel.lengthscale",),
                ("engine.memory",),
                ("learner.regularization",),
                ("distribution.sigma", "group=translation", "distribution=gaussian"),
            )
        ),
        (["learner=adagrad", "learner.learning_rate=1e38", MEDIAN], "learner.learning_rate: training with 1e.38 has"),
        (["engine.memory=1e7"], "engine.memory: expected a finite number > 0 and <= 1e.06"),
        (["kernel=rational_quadratic", "kernel.alpha=1e13"], "kernel.alpha: expected a finite number >= 0.001"),
        (["distribution=von_mises", "distribution.concentration=1e20"], "concentration: expected .* 1e.12"),
        (["group=scaling", "distribution=lognormal", "distribution.sigma=50"], "from -450 to 450, .* most 50"),
        (["group=translation", "distribution=gaussian", "distribution.sigma=1e9"], "from -9e.09 to 9e.09, .* 100000"),
        (["group=translation", "distribution=gaussian", "distribution.mean=-1e9"], "can be at most 100000 in size"),
    ],
)  # fmt: skip
def test_numbers_out_of_range_are_refused_by_name(overrides, line):
    found = refusal("dataset=digits", "dataset.n_train=60", "dataset.n_test=40", *overrides)
    assert "\n" not in found
    assert re.search(line, found), found


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["kernel.lengthscale=1e12"], "features of 60 points are equal"),
        (["approx=rf", "kernel.lengthscale=1e12"], "features of 60 points are equal"),
        (["approx=rf", "kernel.lengthscale=1e12", "engine.stream=true"], "features of 60 points are equal"),
        (["group=translation", "distribution=gaussian", "distribution.mean=500"], "features of 60 points are equal"),
        (["kernel.lengthscale=1e-3"], "kernel matrix of 60 points is the identity up to 0"),
        (["approx=rf", "kernel.lengthscale=1e-3"], "kernel matrix of 60 points is the identity up to 0"),
        (["learner.regularization=1e100"], "the prediction of all 40 test points is "),
        (["learner=adagrad", "learner.learning_rate=1e-90"], "the prediction of all 40 test points is "),
        (["kernel=laplacian"], None),
        (["approx=cdf"], None),
        (["kernel.lengthscale=1000", FLOAT64], None),
    ],
)
def test_features_that_say_nothing_are_reported(overrides, problem):
    with warnings.catch_warnings(record=True, action="always") as caught:
        found = fitted(*SMALL, "dataset=digits", "dataset.n_train=60", "dataset.n_test=40", *overrides)
    if problem is None:
        assert found.problem is None
        assert found.metrics["features/variation"] > 0
        assert 0.1 < found.metrics["kernel/similarity"] <= 1 + 1e-12
        return
    assert problem in found.problem
    assert found.problem in [str(warning.message) for warning in caught]


def test_a_single_test_point_of_a_regression_has_no_r2(tmp_path):
    X = np.random.default_rng(0).random((40, 3))
    data = npy_files(tmp_path, X, X.sum(1))
    found = fit(*data, "group=identity", "dataset.n_test=1")
    assert "test/r2" not in found.metrics
    assert all(map(np.isfinite, found.metrics.values()))
    selection = ("selection=hold_out", "selection.grid={kernel.lengthscale: [1, 2]}", "selection.metric=r2")
    line = refusal(*data, "group=identity", *selection, "selection.fraction=0.01")
    assert line == "selection.metric=r2 needs parts of at least two validation points, found one of 1"

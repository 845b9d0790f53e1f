"""Every pair of choices from two configuration groups either fits tiny data or raises an error of one line."""

import itertools

import numpy as np
import pytest
from command_line import quickly_composed

import orbit
from orbit import InputError, OperatorKernel
from runners.config.plan import Plan, plan
from runners.experiments.fitting import Fitted, fit_and_score
from runners.job.job import Stopwatch

# Points that each group acts on; images where the group does not say otherwise.
SHAPES = {
    "cyclic": (12,),
    "octahedral": (8, 8, 8),
    "orthogonal": (5, 3),
    "permutation": (5,),
    "pitch_tempo": (256,),
    "rotation3d": (8, 8, 8),
}
COMPONENT_PARAMS = {
    "approx": {name: {"n_components": 8} for name in orbit.available("approx") if name not in ("exact", "ovk")},
    "distribution": {"noisy_sort": {}},
    "hyper": {"gaussian": {"n_components": 8}},
    "learner": {name: {"regularization": [1e-3, 1e-2]} for name in ("kernel_svm", "logistic", "svm")},  # a short path
}
PAIRED = (
    *("group", "distribution", "encoder", "kernel", "approx"),
    *("frequencies", "landmarks", "hyper", "representation", "learner"),
)


def names(group: str) -> list[str]:
    if group == "learner":
        return orbit.available("classifier")
    return orbit.available(group)


PAIRS = [
    (first, a, second, b)
    for first, second in itertools.combinations(PAIRED, 2)
    for a in names(first)
    for b in names(second)
    if not (a == b == "product")
]


@pytest.fixture(scope="module")
def base() -> Plan:
    return plan(
        quickly_composed("dataset=digits", "group=identity", "approx=nystrom", "approx.n_components=8", "orbit.size=4")
    )


def data_for(group: str, rng: np.random.Generator) -> orbit.data.Dataset:
    shape = SHAPES.get(group, (6, 6))
    X = rng.random((14, *shape)).astype(np.float32)
    if len(shape) == 2 and shape[0] == shape[1]:
        X = 0.3 + (X + X.transpose(0, 2, 1)) / 4  # Coulomb matrices of hydrogens, 0.7 to 1.8 angstrom apart
        X[:, range(len(X[0])), range(len(X[0]))] = 0.5
    y = np.arange(14) % 2
    return orbit.data.Dataset("tiny", "classification", X[:10], y[:10], X[10:], y[10:], "random numbers")


def fitted(base: Plan, changes: dict) -> Fitted:
    """A fit to points that the group acts on."""
    group = changes.get("group", {"name": "identity"})["name"]
    return fit_and_score(base.variant(changes), data_for(group, np.random.default_rng(0)), Stopwatch())


@pytest.mark.slow
@pytest.mark.parametrize(("first", "a", "second", "b"), PAIRS, ids=lambda value: str(value))
def test_pair_fits_or_raises_an_error_that_names_it(base, first, a, second, b):
    changes = {first: section(first, a), second: section(second, b)}
    try:
        found = fitted(base, changes)
    except InputError as error:
        message = str(error)
        assert "\n" not in message
        expected = [named(first, a), named(second, b)]
        assert any(name in message for name in expected), f"none of {expected} is named: {message}"
        return
    assert np.isfinite(found.metrics["test/accuracy"])


def named(group: str, name: str) -> str:
    """How errors name a component: a product of groups, or several encoders, by the part that is wrong."""
    return {("group", "product"): "group.factors[", ("encoder", "union"): "encoder.parts["}.get((group, name), name)


def section(group: str, name: str) -> dict:
    return {"name": name} | COMPONENT_PARAMS.get(group, {}).get(name, {})


@pytest.mark.parametrize(
    ("changes", "sides"),
    [
        ({"group": {"name": "rotation"}, "distribution": {"name": "lognormal"}}, ("lognormal", "rotation")),
        ({"group": {"name": "cyclic"}, "distribution": {"name": "von_mises"}}, ("von_mises", "cyclic")),
        ({"kernel": {"name": "polynomial"}, "approx": {"name": "rf"}}, ("polynomial", "random Fourier")),
        (
            {"kernel": {"name": "laplacian"}, "approx": {"name": "rf"}, "frequencies": {"name": "orthogonal"}},
            ("laplacian", "orthogonal"),
        ),
        ({"group": {"name": "permutation"}, "distribution": {"name": "noisy_sort"}}, ("noisy_sort", "permutation")),
        ({"group": {"name": "product"}, "representation": {"name": "bag"}}, ("group.factors[0]", "group=rotation")),
    ],
)
def test_an_impossible_pair_names_both_sides(base, changes, sides):
    with pytest.raises(InputError) as error:
        fitted(base, changes)
    for side in sides:
        assert side in str(error.value)


def test_most_pairs_fit(base):
    """Without this test, the first one could pass by rejecting every pair."""
    for group in orbit.available("group"):
        fitted(base, {"group": {"name": group}})
    for kernel in orbit.available("kernel"):
        if not issubclass(orbit.get("kernel", kernel), OperatorKernel):
            fitted(base, {"kernel": {"name": kernel}})

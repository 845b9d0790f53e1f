"""Properties that hold for every input, with inputs drawn by Hypothesis: the same ones in every run."""

import math
import typing
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import torch
from command_line import quickly_composed
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies as st
from hypothesis.extra import numpy as arrays
from omegaconf import OmegaConf
from sklearn.base import clone

import orbit
from orbit import CumulativeDistribution, Gaussian, InputError, Matern, RationalQuadratic, Standardize, UnitNorm
from orbit.approx.bins import QuantileBins, UniformBins, trapezoid_widths, uniform_thresholds
from orbit.core.linalg import row_norms
from runners.config.plan import make_plan, plan
from runners.config.signatures import config_fields
from runners.tracking.record import RunFolder

# Without shrinking: a failing example is drawn within the time of a passing test.
PHASES = [Phase.explicit, Phase.generate]
settings.register_profile(
    "orbit", derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck), phases=PHASES
)
settings.load_profile("orbit")

SEEDS = st.integers(0, 2**32 - 1)


def points(n_features: int = 3) -> st.SearchStrategy[np.ndarray]:
    """Up to seven points, some equal, some zero, with entries of sizes 1e-3 to 1e3."""
    entries = st.one_of(st.just(0.0), st.floats(1e-3, 1e3), st.floats(-1e3, -1e-3), st.integers(-3, 3).map(float))
    return arrays.arrays(np.float64, st.tuples(st.integers(2, 7), st.just(n_features)), elements=entries)


KERNELS = {
    name: orbit.build("kernel", name)
    for name in ("arccos", "cdf", "gaussian", "laplacian", "matern", "rational_quadratic")
} | {
    "matern 0.5": orbit.build("kernel", "matern", nu=0.5),
    "matern 0.7": orbit.build("kernel", "matern", nu=0.7),
    "cubic": orbit.build("kernel", "polynomial", gamma=0.01),
    "alpha 0.01": orbit.build("kernel", "rational_quadratic", alpha=0.01),
}


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=15)
@given(X=points())
def test_kernels_are_positive_semi_definite_symmetric_and_bounded(name, X):
    kernel = clone(KERNELS[name]).fit(X)
    K = kernel.gram(X)
    size = max(float(K.diagonal().max()), 1e-300)
    np.testing.assert_allclose(K, K.T, atol=1e-9 * size)
    assert np.linalg.eigvalsh((K + K.T) / 2).min() >= -1e-9 * size * len(X)
    bound = np.sqrt(np.maximum(np.outer(K.diagonal(), K.diagonal()), 0))
    assert (np.abs(K) <= bound + 1e-9 * size).all()
    np.testing.assert_allclose(kernel.diagonal(X), K.diagonal(), atol=1e-9 * size)
    if kernel.has_spectrum:
        np.testing.assert_allclose(K.diagonal(), 1, atol=1e-12)
        np.testing.assert_allclose(kernel.gram(X + 5.0), K, atol=1e-6)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.7), Matern(1.7, 1.5), Matern(1.7, 2.5), RationalQuadratic(1.7, 0.6)], ids=str
)
@settings(max_examples=10)
@given(X=points())
def test_the_differentiable_form_of_a_kernel_is_its_value(kernel, X):
    fitted = clone(kernel).fit(X)
    difference = torch.from_numpy(X[0] - X[1]) / fitted.lengthscale_
    assert float(fitted.profile(difference.square().sum())) == pytest.approx(fitted.gram(X)[0, 1], abs=1e-7)


@settings(max_examples=40)
@given(n_bins=st.integers(1, 40), s=st.floats(1e-6, 1e6), seed=SEEDS)
def test_uniform_bins_are_those_of_their_thresholds(n_bins, s, seed):
    """Bin k holds what is above threshold k - 1 and not above threshold k."""
    thresholds, widths = uniform_thresholds(s, n_bins)
    assert len(thresholds) == 2 * n_bins + 1
    assert (np.diff(thresholds) > 0).all()
    assert thresholds[-1] == -thresholds[0] == pytest.approx(s)
    np.testing.assert_allclose(np.diff(thresholds), widths[1:], rtol=1e-6)
    projections = np.random.default_rng(seed).uniform(-1.5 * s, 1.5 * s, (20, 1))
    near = np.abs(projections - thresholds).min() < 1e-9 * s
    assume(not near)  # rounding may put a projection on a threshold on either side
    expected = np.searchsorted(thresholds, projections)
    found = UniformBins(n_bins, s)(torch.from_numpy(projections.copy()), slice(0, 1)).numpy()
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=40)
@given(values=arrays.arrays(np.float64, (2, 6), elements=st.floats(-100, 100)), projections=points(2))
def test_quantile_bins_and_widths(values, projections):
    thresholds = np.sort(values, axis=1)
    found = QuantileBins(torch.from_numpy(thresholds))(torch.from_numpy(projections), slice(0, 2)).numpy()
    for unit in range(2):
        np.testing.assert_array_equal(found[:, unit], (thresholds[unit] < projections[:, [unit]]).sum(1))
    widths = trapezoid_widths(thresholds)
    assert (widths >= 0).all()
    np.testing.assert_allclose(widths.sum(1), thresholds[:, -1] - thresholds[:, 0], atol=1e-9)


@settings(max_examples=15)
@given(X=points(), n_bins=st.integers(1, 20), thresholds=st.sampled_from(["uniform", "quantile"]), seed=SEEDS)
def test_features_of_distribution_functions_rise_with_the_threshold(X, n_bins, thresholds, seed):
    assume(np.abs(X).max() > 0)
    options = {"n_components": 3, "n_bins": n_bins, "random_state": seed}
    features = CumulativeDistribution(thresholds=thresholds, **options).fit(X)
    assert features.transform(X).min() >= 0
    inner = features.transform(X) @ features.transform(X).T
    assert np.linalg.eigvalsh(inner).min() >= -1e-9 * max(1.0, inner.max())


@settings(max_examples=30)
@given(X=points(4), exponent=st.integers(-1000, 1000))
def test_powers_of_two_do_not_change_represented_points(X, exponent):
    assume((np.abs(X).max(1) > 0).all())
    scaled = np.ldexp(X, exponent)
    np.testing.assert_array_equal(row_norms(scaled), np.ldexp(row_norms(X), exponent))
    for representation in (UnitNorm(), UnitNorm("each"), Standardize()):
        np.testing.assert_allclose(representation.fit_transform(scaled), representation.fit_transform(X), rtol=1e-13)


def valid(annotation: Any) -> st.SearchStrategy:
    """Values that an annotation of a constructor's parameter allows."""
    return (
        st.one_of([_valid_option(option) for option in typing.get_args(annotation) or (annotation,)])
        if (str(typing.get_origin(annotation)) in ("<class 'types.UnionType'>", "typing.Union"))
        else _valid_option(annotation)
    )


def _valid_option(option: Any) -> st.SearchStrategy:
    origin, low, high = typing.get_origin(option), -1e6, 1e6
    if origin is Annotated:
        option, bounds = typing.get_args(option)[:2]
        low, high = max(low, bounds.low), min(high, bounds.high)
        low, high = low + 1e-6 * bounds.open_low, high - 1e-6 * bounds.open_high
    if origin is Literal:
        return st.sampled_from(typing.get_args(option))
    if typing.get_origin(option) is list:
        return st.lists(valid(typing.get_args(option)[0]), max_size=3)
    if option is float:
        return st.floats(low, high, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-50)
    if option is int:
        return st.integers(math.ceil(low), math.floor(high))
    return {bool: st.booleans(), str: st.text("abc $}:'\"é#\n", max_size=6), type(None): st.none()}.get(
        option, st.none()
    )


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([-1, 0, 1, 2, 7, 10**30, -0.5, 0.0, 0.5, 1e-320, 1e300, math.nan, math.inf, "", "a", "median"]),
    st.lists(st.sampled_from([-1, 0, 1, 0.5, math.nan, 1e300, "a"]), max_size=3),
)
COMPONENTS = [(kind, name) for kind in orbit.available() for name in orbit.available(kind) if kind != "runner"]


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in COMPONENTS}))
@settings(max_examples=30)
@given(data=st.data())
def test_a_component_of_any_values_is_accepted_or_refused_in_one_line(kind, data):
    name = data.draw(st.sampled_from([name for k, name in COMPONENTS if k == kind]))
    cls = data.draw(st.sampled_from(orbit.registry.classes(kind, name)))
    fields = config_fields(cls)
    given_ = {key: data.draw(ANYTHING | valid(p.annotation)) for key, p in fields.items() if data.draw(st.booleans())}
    try:
        cls.from_config(**given_).check()
    except InputError as refused:
        line = str(refused)
    else:
        line = ""
    assert "\n" not in line


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in COMPONENTS}))
@settings(max_examples=20)
@given(data=st.data())
def test_the_section_of_a_component_survives_its_file(kind, data, tmp_path_factory):
    name = data.draw(st.sampled_from([name for k, name in COMPONENTS if k == kind]))
    cls = data.draw(st.sampled_from(orbit.registry.classes(kind, name)))
    section = {key: data.draw(valid(p.annotation)) for key, p in config_fields(cls).items()}
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    folder.write_config({kind: section}, [])
    assert folder.read_config() == {kind: section}


@settings(max_examples=12)
@given(
    group=st.sampled_from(["identity", "rotation", "translation", "dihedral", "scaling"]),
    approx=st.sampled_from(["rf", "nystrom", "cdf", "exact"]),
    kernel=st.sampled_from(["gaussian", "laplacian", "matern"]),
    seed=st.integers(0, 2**31),
    size=st.integers(1, 100),
    lengthscale=st.floats(1e-10, 1e10),
)
def test_the_configuration_of_a_run_gives_the_same_plan_again(group, approx, kernel, seed, size, lengthscale, tmp_path):
    choices = f"group={group}", f"approx={approx}", f"kernel={kernel}"
    values = f"seed={seed}", f"orbit.size={size}", f"kernel.lengthscale={lengthscale!r}"
    try:
        made = plan(quickly_composed(*choices, *values))
    except InputError:
        assume(False)
    RunFolder(tmp_path).write_config(made.config, made.defaults)
    again = make_plan(RunFolder(tmp_path).read_config())
    assert again.config == made.config
    assert again.config_hash == made.config_hash
    assert OmegaConf.to_yaml(OmegaConf.create(again.config)) == OmegaConf.to_yaml(OmegaConf.create(made.config))

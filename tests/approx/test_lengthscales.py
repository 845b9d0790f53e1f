"""lengthscale="evidence" and "ard": chosen by the marginal likelihood of a Gaussian process."""

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone

from orbit import (
    CurlFree,
    Cyclic,
    Decomposable,
    DivergenceFree,
    Exact,
    Gaussian,
    GaussianProcess,
    InputError,
    Laplacian,
    Matern,
    Nystrom,
    OperatorRandomFourier,
    Orbit,
    Orthogonal,
    RandomFourier,
    RationalQuadratic,
    Rotation,
)
from orbit.approx import OperatorExact, column_lengthscales
from orbit.approx.column_lengthscales import choose_columns
from orbit.approx.evidence import _covariance, choose_by_evidence
from orbit.approx.scales import ScaleChoice
from orbit.kernels.column_scales import ScaledColumns


@pytest.fixture
def table(rng):
    """Three columns, of which the last has no influence and the first the most."""
    X = rng.uniform(-1, 1, (120, 3))
    return X, np.sin(4 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.standard_normal(120)


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, Matern, RationalQuadratic])
def test_each_column_gets_a_lengthscale(table, kernel):
    X, y = table
    found = Exact(kernel("evidence"), random_state=0).fit(X, y)
    assert found.kernel_.lengthscale_.argsort().tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.chosen_scale_.value, found.kernel_.lengthscale_)
    assert "one for each of 3 columns" in str(found.chosen_scale_)
    fixed = kernel(float(found.kernel_.lengthscale_[0])).fit(X)
    scaled = X * found.kernel_.lengthscale_[0] / found.kernel_.lengthscale_
    np.testing.assert_allclose(found.gram(X), fixed.gram(scaled), atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "approx"),
    [
        *((kernel, Exact) for kernel in (Gaussian, Laplacian, Matern, RationalQuadratic)),
        (Gaussian, Nystrom),
        (Gaussian, RandomFourier),
    ],
)
def test_auto_takes_a_lengthscale_for_each_column_where_errors_fall(table, kernel, approx):
    X, y = table
    auto, ard = (approx(kernel(rule), random_state=0).fit(X, y).kernel_.lengthscale_ for rule in ("auto", "ard"))
    np.testing.assert_allclose(auto, ard)
    labels = np.where(y > 0, "up", "down")
    auto, ard = (approx(kernel(rule), random_state=0).fit(X, labels).kernel_.lengthscale_ for rule in ("auto", "ard"))
    np.testing.assert_allclose(auto, ard)


def test_auto_takes_one_lengthscale_where_columns_count_the_same_or_nothing_is_learned(rng):
    X = rng.standard_normal((150, 3))
    smooth = np.sin(X.sum(1)) + 0.1 * rng.standard_normal(150)
    for y in (smooth, rng.standard_normal(150), rng.integers(3, size=150), np.ones(150)):
        found = Exact(Gaussian("auto"), random_state=0).fit(X, y)
        assert isinstance(found.kernel_.lengthscale_, float)
        assert isinstance(found.chosen_scale_, ScaleChoice)


def test_auto_takes_one_lengthscale_for_few_points_other_vectors_and_averages(table, rng):
    X, y = table
    assert isinstance(Exact(Gaussian("auto")).fit(X[:49], y[:49]).chosen_scale_, ScaleChoice)
    assert isinstance(Exact(Gaussian("auto"), Orbit(Cyclic())).fit(X, y).chosen_scale_, ScaleChoice)
    wide = np.column_stack([X, rng.uniform(-1, 1, (120, 38))])
    assert isinstance(Exact(Gaussian("auto")).fit(wide, y).chosen_scale_, ScaleChoice)
    assert isinstance(Exact(Gaussian("auto")).fit(X[:, :, None], y).chosen_scale_, ScaleChoice)


@pytest.mark.parametrize("clustered", [False, True])
def test_points_of_a_cluster_and_equal_points_are_compared_together(rng, clustered):
    """Each of 60 places has a number of its own, which its other points tell, but no other place."""
    places = np.repeat(np.arange(60), 4)
    X = rng.standard_normal((60, 3))[places] + (1e-3 * rng.standard_normal((240, 3)) if clustered else 0)
    y = rng.standard_normal(60)[places]
    found = Exact(Gaussian("auto"), random_state=0).fit(X, y, clusters=places if clustered else None)
    assert isinstance(found.chosen_scale_, ScaleChoice)


def test_no_point_has_a_part_in_the_lengthscales_that_it_judges(table, monkeypatch):
    X, y = table
    fitted = []

    def recorded(kernel, points, targets, each):
        fitted.append(points)
        return choose_by_evidence(kernel, points, targets, each)

    monkeypatch.setattr(column_lengthscales, "choose_by_evidence", recorded)
    median = Gaussian("median").fit(X)
    choose_columns(median, median, X, y, None, 0)
    *folds, last = fitted
    np.testing.assert_array_equal(last, X)
    left_out = [row for fold in folds for row in map(tuple, X) if row not in {*map(tuple, fold)}]
    assert sorted(left_out) == sorted(map(tuple, X))  # each point in one fold


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, Matern, partial(Matern, nu=0.5), RationalQuadratic])
@pytest.mark.parametrize("n_parameters", [1, 3])
def test_the_kernel_matrix_of_a_search_and_its_gradient(rng, kernel, n_parameters):
    X, G, h = rng.standard_normal((8, 3)), rng.standard_normal((8, 8)), 1e-6
    np.fill_diagonal(G, 0)  # where the slope of a square root makes rounding large
    fitted, u = kernel(1.0).fit(X), np.array([0.7, -1.2, 0.4])[:n_parameters]
    of_parameters = _covariance(fitted, torch.from_numpy(X))
    K, gradient = of_parameters(u)
    np.testing.assert_allclose(K, fitted.gram(X * np.abs(u) ** (2 / fitted.distance_order)), atol=1e-6)
    change = [np.subtract(*(of_parameters(u + sign * step)[0] for sign in (1, -1))) for step in np.eye(len(u)) * h]
    np.testing.assert_allclose(gradient(G), [(G * each).sum() / (2 * h) for each in change], rtol=1e-5)


@pytest.mark.parametrize("kernel", [CurlFree, DivergenceFree])
def test_the_kernel_matrix_of_a_search_for_fields(rng, kernel):
    X, rates = rng.standard_normal((8, 3)), np.array([0.7, 1.2, 0.4])
    fitted = kernel(lengthscale=1.0).fit(X)
    K, _ = _covariance(fitted, torch.from_numpy(X))(rates)
    scaled = fitted.with_base(ScaledColumns(fitted.base_, rates))
    np.testing.assert_allclose(K * np.square(rates).mean(), scaled.gram(X), atol=1e-12)


@pytest.mark.parametrize(("kernel", "turn"), [(CurlFree, [[1, 0], [0, 1]]), (DivergenceFree, [[0, 1], [-1, 0]])])
@pytest.mark.parametrize("approx", [OperatorExact, OperatorRandomFourier])
def test_each_coordinate_of_a_field_gets_a_lengthscale(rng, kernel, turn, approx):
    X = rng.uniform(-2, 2, (120, 2))
    x, z = X.T * [[3], [0.5]]
    gradient = np.column_stack([3 * np.cos(x) * np.cos(z), -0.5 * np.sin(x) * np.sin(z)])  # of sin(3 x) cos(z / 2)
    Y = gradient @ np.array(turn) + 0.1 * rng.standard_normal((120, 2))
    found = approx(kernel(lengthscale="evidence"), random_state=0).fit(X, Y)
    ratio = np.divide(*found.kernel_.lengthscale_)
    assert 0.1 < ratio < 0.4
    assert "one for each of 2 columns" in str(found.chosen_scale_)


def test_a_field_that_turns_with_its_points_gets_one_lengthscale(rng):
    X = rng.uniform(-2, 2, (60, 2))
    Y = np.column_stack([-X[:, 1], X[:, 0]]) * np.exp(-np.square(X).sum(1))[:, None]
    turns = Orbit(Orthogonal(2), size=8)
    phi = OperatorRandomFourier(DivergenceFree(lengthscale="evidence"), turns, equivariant=True, random_state=0)
    assert isinstance(phi.fit(X, Y).kernel_.lengthscale_, float)
    with pytest.raises(InputError, match=r"kernel.lengthscale=ard needs group=identity"):
        clone(phi).set_params(kernel=DivergenceFree(lengthscale="ard")).fit(X, Y)


def test_the_evidence_is_the_largest_nearby(table):
    X, y = table
    found = Exact(Gaussian("ard"), random_state=0).fit(X, y)
    best = found.chosen_scale_.log_evidence
    for factors in np.vstack([np.exp(0.2 * np.eye(3)), np.exp(-0.2 * np.eye(3)[:2])]):
        phi = Exact(Gaussian(1.0), residual=True, precomputed=True, random_state=0)
        features = phi.fit_transform(X / (found.kernel_.lengthscale_ * factors), y)
        assert GaussianProcess().fit(features, y).log_marginal_likelihood_ < best + 1e-3


@pytest.mark.parametrize("approx", [RandomFourier, Nystrom])
def test_approximations_have_the_lengthscales_of_the_exact_kernel(table, approx):
    X, y = table
    exact = Exact(Gaussian("evidence"), random_state=0).fit(X, y)
    psi = approx(Gaussian("evidence"), n_components=1000, random_state=0)
    features = psi.fit_transform(X, y)
    np.testing.assert_array_equal(psi.kernel_.lengthscale_, exact.kernel_.lengthscale_)
    np.testing.assert_allclose(features @ features.T, exact.gram(X), atol=0.02)


def test_the_evidence_is_that_of_the_gaussian_process_and_larger_than_the_median_s(table):
    X, y = table
    median, chosen = (
        Exact(Gaussian(rule), residual=True, precomputed=True, random_state=0) for rule in ("median", "ard")
    )
    values = [GaussianProcess().fit(phi.fit_transform(X, y), y).log_marginal_likelihood_ for phi in (median, chosen)]
    assert values[0] + 10 < values[1] == pytest.approx(chosen.chosen_scale_.log_evidence, abs=0.01)


def test_points_of_many_columns_get_one_unless_they_are_asked_for(rng):
    X = rng.standard_normal((60, 45))
    y = X[:, 0]
    assert isinstance(Nystrom(Gaussian("evidence"), random_state=0).fit(X, y).kernel_, Gaussian)
    assert Nystrom(Gaussian("ard"), random_state=0).fit(X, y).kernel_.lengthscale_.argmin() == 0


def test_averaged_kernels_get_one(rng):
    X, turns = rng.random((60, 6, 6)), Orbit(Rotation(), size=4)
    y = np.square(X).sum((1, 2))
    phi = Exact(Gaussian("evidence"), turns, random_state=0).fit(X, y)
    assert "by marginal likelihood" in str(phi.chosen_scale_)
    assert phi.kernel_.lengthscale_ > Gaussian("median").fit(X).lengthscale_
    with pytest.raises(InputError, match=r"kernel.lengthscale=ard needs group=identity.*choose kernel.lengthscale=ev"):
        Exact(Gaussian("ard"), turns).fit(X, y)


def test_several_outputs_and_operator_valued_kernels(table):
    X, y = table
    phi = OperatorRandomFourier(Decomposable(lengthscale="evidence"), n_components=300, random_state=0)
    features = np.asarray(phi.fit_transform(X, np.column_stack([y, -y])))
    exact = phi.kernel_.base_.gram(X)
    np.testing.assert_allclose(features @ features.T, exact, atol=0.05)
    assert phi.kernel_.base_.lengthscale_.argmax() == 2


def test_equal_targets_keep_the_median(rng):
    X = rng.standard_normal((20, 3))
    phi = Nystrom(Gaussian("evidence")).fit(X, np.ones(20))
    assert phi.kernel_.lengthscale_ == Gaussian("median").fit(X).lengthscale_
    assert phi.chosen_scale_ is None


def test_scaled_columns_keep_what_their_kernel_is():
    kernel = ScaledColumns(Gaussian(2.0).fit(np.zeros((1, 2))), np.array([1.0, 0.5]))
    assert kernel.has_spectrum
    assert not kernel.is_isotropic
    assert kernel.metrics() == {"kernel/lengthscale": 2.0, "kernel/largest_lengthscale": 4.0}
    np.testing.assert_array_equal(kernel.rescaled(3.0).lengthscale_, [6.0, 12.0])


def test_an_equivariant_map_takes_the_evidence_without_the_group(rng):
    X = rng.uniform(-2, 2, (40, 2))
    Y = np.column_stack([-X[:, 1], X[:, 0]]) * np.exp(-np.square(X).sum(1))[:, None]
    kernel, turns = Decomposable(lengthscale="evidence"), Orbit(Orthogonal(2), size=8)
    found = OperatorRandomFourier(kernel, turns, n_components=20, equivariant=True, random_state=0).fit(X, Y)
    assert 0.3 < found.kernel_.lengthscale_ < 3
    assert isinstance(found.chosen_scale_.value, float)


@pytest.mark.parametrize("seed", [3, 4, 10])
def test_the_evidence_of_columns_that_agree_finds_the_signal(seed):
    rng = np.random.default_rng(seed)  # spectra of five substances, with scatter and a baseline
    at = np.linspace(0, 1, 80)
    bands = np.exp(-0.5 * ((at - rng.uniform(0, 1, (5, 1))) / rng.uniform(0.03, 0.1, (5, 1))) ** 2)
    amounts = rng.uniform(0.5, 1.5, (40, 5))
    X = amounts @ bands * rng.normal(1, 0.1, (40, 1)) + rng.normal(0, 0.3, (40, 1)) + rng.normal(0, 0.3, (40, 1)) * at
    X += 0.001 * rng.standard_normal((40, 80))
    X, y = ((X - X.mean(0)) / X.std(0))[:30], amounts[:30, 0]

    def log_evidence(lengthscale) -> float:
        psi = Exact(Gaussian(lengthscale), residual=True).fit_transform(X, y)
        return GaussianProcess().fit(psi, y).log_marginal_likelihood_

    assert log_evidence("evidence") > max(map(log_evidence, np.geomspace(1, 1000, 13))) - 0.5

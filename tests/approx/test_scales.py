"""lengthscale="auto": chosen by leave-one-out error of small models of the training points."""

import numpy as np
import pytest

from orbit import (
    CurlFree,
    Decomposable,
    Exact,
    Gaussian,
    GaussianLayer,
    Laplacian,
    Matern,
    Nystrom,
    OperatorRandomFourier,
    Orbit,
    RandomFourier,
    RationalQuadratic,
    Rotation,
)
from orbit.approx.scales import landmark_rows, sample_size
from orbit.encoders import Gradients, PrincipalComponents
from orbit.solvers.left_out import encoded_targets, left_out


@pytest.fixture
def waves(rng):
    """Points of the line and a function that changes in a hundredth of their range."""
    X = rng.uniform(0, 100, (300, 1))
    return X, np.sin(X[:, 0])


@pytest.mark.parametrize("approx", [RandomFourier, Nystrom, Exact])
def test_a_fast_function_gets_a_small_lengthscale(waves, approx):
    X, y = waves
    phi = approx(Gaussian("auto"), random_state=0).fit(X, y)
    assert phi.kernel_.lengthscale_ < Gaussian("median").fit(X).lengthscale_ / 8


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian, Matern])
@pytest.mark.parametrize("approx", [RandomFourier, Nystrom, Exact])
def test_the_choice_is_the_smallest_error_and_deterministic(waves, kernel, approx):
    X, y = waves
    phi, median = approx(kernel("auto"), random_state=0).fit(X, y), kernel("median").fit(X).lengthscale_
    errors, multiples = phi.chosen_scale_.errors, phi.chosen_scale_.multiples
    # the median if others are equally good
    assert errors[multiples == phi.chosen_scale_.multiple] == pytest.approx(errors.min(), rel=1e-2)
    assert phi.chosen_scale_.value == phi.kernel_.lengthscale_ == pytest.approx(phi.chosen_scale_.multiple * median)
    again = approx(kernel("auto"), random_state=0).fit(X, y)
    assert again.kernel_.lengthscale_ == phi.kernel_.lengthscale_


@pytest.mark.parametrize("kernel", [Gaussian, RationalQuadratic, Matern, Laplacian])
def test_errors_are_those_of_nystrom_features_averaged_over_the_orbit(rng, kernel):
    X, y = rng.random((60, 6, 6)), rng.integers(3, size=60)
    turns = Orbit(Rotation(), size=4)
    phi = Nystrom(kernel("auto"), turns, n_components=60, random_state=0).fit(X, y)
    targets, _ = encoded_targets(y)
    chosen = phi.chosen_scale_.multiples == phi.chosen_scale_.multiple
    fixed = Nystrom(kernel(phi.kernel_.lengthscale_), turns, n_components=60, random_state=0)
    predicted, _ = left_out(fixed.fit_transform(X), targets)  # all points are landmarks of both models
    assert phi.chosen_scale_.errors[chosen] == pytest.approx(np.square(predicted - targets).sum(1).mean(), rel=1e-6)


def test_of_classes_only_a_clearly_better_lengthscale_replaces_the_median(rng, waves):
    X, y = waves
    noise = Nystrom(Gaussian("auto"), random_state=0).fit(X, rng.integers(2, size=300)).chosen_scale_
    assert noise.multiple == 1
    assert noise.errors.min() <= noise.errors[noise.multiples == 1]
    assert Nystrom(Gaussian("auto"), random_state=0).fit(X, y > 0).chosen_scale_.multiple < 0.2


def test_without_targets_and_without_signal_it_is_the_median(rng):
    X = rng.standard_normal((50, 3))
    median = Gaussian("median").fit(X).lengthscale_
    assert Nystrom(Gaussian("auto")).fit(X).kernel_.lengthscale_ == median
    constant = Nystrom(Gaussian("auto")).fit(X, np.ones(50))
    assert constant.kernel_.lengthscale_ == median
    assert constant.chosen_scale_.multiple == 1
    assert Nystrom(Gaussian("auto")).fit(X[:1], np.ones(1)).kernel_.lengthscale_ == 1.0


def test_with_an_encoder_it_is_the_median_for_classes_and_chosen_for_numbers(rng):
    X, pooled = rng.random((60, 8, 8)), Nystrom(Gaussian("auto"), encoder=Gradients(), random_state=0)
    labels = X[:, 0, 0] > 0.5
    median = pooled.fit(X).kernel_.lengthscale_
    assert pooled.fit(X, labels).kernel_.lengthscale_ == median
    assert pooled.fit(X, labels).chosen_scale_ is None
    assert pooled.fit(X, X[:, 0, 0]).chosen_scale_ is not None
    components = Nystrom(Gaussian("auto"), encoder=PrincipalComponents(8), random_state=0)
    assert components.fit(X, labels).chosen_scale_ is not None


def test_clusters_are_left_out_together(rng):
    clusters = np.repeat(np.arange(30), 10)
    X = rng.standard_normal((30, 1))[clusters] + 1e-3 * rng.standard_normal((300, 1))
    y = rng.standard_normal(30)[clusters]  # nothing to learn but for points of one cluster
    alone, together = (
        Nystrom(Gaussian("auto"), random_state=0).fit(X, y, clusters=each).chosen_scale_.errors.min()
        for each in (None, clusters)
    )
    assert alone < 0.1 < 0.5 < together


@pytest.mark.parametrize("kernel", [CurlFree, Decomposable])
def test_operator_valued_kernels_and_second_layers(rng, kernel):
    X = rng.uniform(0, 20, (300, 2))
    Y = np.column_stack([np.cos(X[:, 0]), np.sin(X[:, 1])])  # a gradient
    phi = OperatorRandomFourier(kernel(lengthscale="auto"), random_state=0).fit(X, Y)
    assert phi.kernel_.lengthscale_ < 0.6 * Gaussian("median").fit(X).lengthscale_
    layer = GaussianLayer("auto", n_components=20, random_state=0).fit(X, Y)
    assert layer.map_.kernel_.lengthscale_ == layer.chosen_scale_.value


def test_text_names_the_end_of_the_range(waves):
    X, y = waves
    assert "times the median" in str(Nystrom(Gaussian("auto"), random_state=0).fit(X, y).chosen_scale_)
    smallest = Nystrom(Gaussian("auto"), random_state=0).fit(X, np.sin(10 * X[:, 0])).chosen_scale_
    assert (smallest.end is None) == ("smallest multiple tried" not in str(smallest))


def test_all_moved_points_of_the_sample_fit_the_memory():
    assert sample_size(10_000, 32, 10) == 1000
    assert sample_size(10_000, 32, 200_000) * 32 * 200_000 <= 2**27


def test_small_models_have_more_landmarks_where_kernel_values_are_few():
    assert len(landmark_rows(1000, 1, 64)) == 384
    assert len(landmark_rows(300, 1, 64)) == 300
    assert len(landmark_rows(sample_size(10_000, 512, 784), 512, 784)) == 100
    assert landmark_rows(1000, 1, 64)[-1] > 990  # of all points, which files may sort by class

"""Kernel ridge and Gaussian processes by linear learners: plain formulas, precomputed kernel values."""

from unittest.mock import Mock

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge

from orbit import Exact, InputError, OperatorExact, OperatorRandomFourier, Orbit, Orthogonal, Rotation, VonMises
from orbit.kernels import CurlFree, Decomposable, DivergenceFree, Gaussian
from orbit.learners import GaussianProcess, KernelRidgeRegressor, RidgeClassifier, RidgeRegressor
from orbit.testing import PathContract, RegressorContract
from orbit.testing.samples import signals


class TestKernelRidgeByGcv(PathContract, RegressorContract):
    component = KernelRidgeRegressor


class TestKernelRidgeByLoo(PathContract, RegressorContract):
    component, params = KernelRidgeRegressor, {"selection": "loo"}


class TestGaussianProcess(PathContract, RegressorContract):
    component = GaussianProcess
    fixed = {"noise": 0.1}


# ---- kernel machines by linear learners ------------------------------------------------------------------------------


@pytest.fixture
def kernel_problem(rng):
    """Turned signals: exact features with their residual, the kernel they stand for, and targets with noise."""
    X, Z = signals(rng, 40, (5, 6)), signals(rng, 15, (5, 6))
    exact = Exact(Gaussian(0.8), Orbit(Rotation(), VonMises(0.5), size=6), residual=True).fit(X)
    y = np.sin(4 * X.mean((1, 2))) + 0.1 * rng.standard_normal(40)
    return exact.transform(X), exact.transform(Z), exact.gram(X), exact.gram(Z), exact.diagonal(Z), y


def test_exact_features_with_their_residual_give_every_kernel_value(kernel_problem):
    psi, psi_new, K, K_new, prior, _ = kernel_problem
    np.testing.assert_allclose(psi @ psi.T, K, atol=1e-8)
    np.testing.assert_allclose(psi_new @ psi.T, K_new, atol=1e-8)
    np.testing.assert_allclose(np.square(psi_new).sum(1), prior, rtol=1e-8)
    assert np.all(psi[:, -1] == 0), "training points have none"
    assert psi_new[:, -1].max() > 0.1


def test_the_diagonal_is_that_of_the_kernel_matrix(rng):
    Z = signals(rng, 9, (5, 6))
    for orb in (None, Orbit(Rotation(), VonMises(0.5), size=6)):
        exact = Exact(Gaussian(0.8), orb).fit(signals(rng, 4, (5, 6)))
        np.testing.assert_allclose(exact.diagonal(Z), np.diag(exact.gram(Z, Z)), rtol=1e-10)


def test_krr_on_exact_features_is_scikit_learns_on_the_orbit_averaged_kernel(kernel_problem, rng):
    psi, psi_new, K, K_new, _, y = kernel_problem
    weights = rng.random(40)
    for regularization in (1e-4, 1e-1):
        for w in (None, weights / weights.mean()):
            theirs = KernelRidge(alpha=40 * regularization, kernel="precomputed")
            mean = np.average(y, weights=w)
            theirs.fit(K, y - mean, sample_weight=w)
            ours = KernelRidgeRegressor(regularization).fit(psi, y, sample_weight=w)
            np.testing.assert_allclose(ours.predict(psi_new), theirs.predict(K_new) + mean, atol=1e-8)


def test_krr_in_primal_and_dual(rng):
    X, y = rng.standard_normal((30, 8)) + 2, rng.standard_normal(30) + 5
    for d in (8, 3):
        theirs = KernelRidge(alpha=0.3, kernel="linear").fit(X[:, :d], y - y.mean())
        expected = theirs.predict(X[:, :d]) + y.mean()
        for zeros in (0, 40):  # columns of zeros turn the primal into the dual
            padded = np.hstack([X[:, :d], np.zeros((30, zeros))])
            np.testing.assert_allclose(KernelRidgeRegressor(0.01).fit(padded, y).predict(padded), expected, atol=1e-9)


def test_krr_scores_are_leaving_one_out_and_gcv_of_its_own_hat_matrix(rng):
    """The mean as given: residuals (I - H) y over 1 - diag H, with H = K (K + n lambda I)^-1."""
    X, y = rng.standard_normal((20, 5)), rng.standard_normal(20)
    y -= y.mean()
    K = X @ X.T
    for value in (1e-2, 1.0):
        H = K @ np.linalg.inv(K + 20 * value * np.eye(20))
        residual = y - H @ y
        loo = -np.square(residual / (1 - np.diag(H))).mean()
        gcv = -np.square(residual).mean() / (1 - np.trace(H) / 20) ** 2
        for selection, expected in (("loo", loo), ("gcv", gcv)):
            found = KernelRidgeRegressor([value, 1e3], selection).fit(X, y).path_scores_[0]
            assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("two_outputs", [False, True])
def test_gp_is_scikit_learns_gaussian_process(kernel_problem, rng, normalize, two_outputs):
    """On the plain kernel, which scikit-learn has: mean, deviation and marginal likelihood."""
    X, Z, y = rng.random((30, 3)), rng.random((12, 3)), rng.standard_normal(30) + 3
    y = np.column_stack([y, y**2]) if two_outputs else y
    exact = Exact(Gaussian(0.7), residual=True).fit(X)
    amplitude, noise = 1.7, 0.02
    theirs = GaussianProcessRegressor(
        ConstantKernel(amplitude) * RBF(0.7), alpha=amplitude * noise, normalize_y=normalize, optimizer=None
    ).fit(X, y)
    ours = GaussianProcess(noise, amplitude, normalize).fit(exact.transform(X), y)
    for found, expected in zip(
        ours.predict(exact.transform(Z), return_std=True), theirs.predict(Z, return_std=True), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-9)


@pytest.mark.parametrize("shape", [(40, 6), (15, 60)], ids=["primal", "dual"])
def test_gp_on_any_features_is_the_formula(rng, shape):
    X, Z = rng.standard_normal(shape), rng.standard_normal((5, shape[1]))
    y, noise = rng.standard_normal(len(X)), 0.3
    C = X @ X.T + noise * np.eye(len(X))
    gp = GaussianProcess(noise, 1.0, normalize=False).fit(X, y)
    mean, std = gp.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, Z @ X.T @ np.linalg.solve(C, y), atol=1e-9)
    np.testing.assert_allclose(std**2, np.diag(Z @ Z.T - Z @ X.T @ np.linalg.solve(C, X @ Z.T)), atol=1e-9)
    expected = stats.multivariate_normal(cov=C).logpdf(y)
    assert gp.log_marginal_likelihood_ == pytest.approx(expected, rel=1e-9)


def test_gp_maximises_the_marginal_likelihood_over_noise_and_amplitude(rng):
    X = rng.random((60, 2))
    y = np.sin(5 * X[:, 0]) + 0.2 * rng.standard_normal(60)
    psi = Exact(Gaussian(0.3), residual=True).fit_transform(X)
    ours = GaussianProcess(normalize=False).fit(psi, y)
    kernel = ConstantKernel(1.0) * RBF(0.3, length_scale_bounds="fixed") + WhiteKernel(0.1)
    theirs = GaussianProcessRegressor(kernel, alpha=1e-12, n_restarts_optimizer=2, random_state=0).fit(X, y)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)
    assert ours.noise_ * ours.amplitude_ == pytest.approx(theirs.kernel_.k2.noise_level, rel=0.02)


@pytest.mark.parametrize(
    "learner", [RidgeRegressor(1e-3), KernelRidgeRegressor(1e-3), GaussianProcess(1e-2)], ids=lambda one: one.name
)
def test_one_value_on_precomputed_kernel_values_takes_no_eigendecomposition(rng, monkeypatch, learner):
    X, Z = signals(rng, 40, (5, 6)), signals(rng, 15, (5, 6))
    y = np.sin(4 * X.mean((1, 2))) + 0.1 * rng.standard_normal(40)
    parts = Gaussian(0.8), Orbit(Rotation(), VonMises(0.5), size=6)
    coordinates = Exact(*parts, residual=True).fit(X)
    expected = clone(learner).fit(coordinates.transform(X), y)
    for module in ("orbit.core.linalg.eigh", "orbit.solvers.factorisations.eigh"):
        monkeypatch.setattr(module, Mock(side_effect=AssertionError("no eigendecomposition")))
    values = Exact(*parts, residual=True, precomputed=True).fit(X)
    fitted = clone(learner).fit(values.transform(X), y)
    found = fitted.predict(values.transform(Z))
    np.testing.assert_allclose(found, expected.predict(coordinates.transform(Z)), atol=1e-7)
    if isinstance(learner, GaussianProcess):
        std = fitted.predict(values.transform(Z), return_std=True)[1]
        np.testing.assert_allclose(std, expected.predict(coordinates.transform(Z), return_std=True)[1], atol=1e-7)
        assert fitted.log_marginal_likelihood_ == pytest.approx(expected.log_marginal_likelihood_, rel=1e-7)


@pytest.mark.parametrize("selection", ["gcv", "loo"])
@pytest.mark.parametrize("learner", [RidgeRegressor, KernelRidgeRegressor, RidgeClassifier])
def test_weights_and_paths_on_precomputed_kernel_values(rng, selection, learner):
    X, Z, targets = rng.random((40, 3)), rng.random((9, 3)), 5 + rng.standard_normal(40)
    X[7] = X[3]
    y = np.digitize(targets, [4.5, 5.5]) if learner is RidgeClassifier else targets
    maps = Exact(Gaussian(0.4)).fit(X), Exact(Gaussian(0.4), precomputed=True).fit(X)
    for weights in (None, rng.integers(0, 3, 40)):
        for regularization in (1e-2, [1e-4, 1e-2, 1.0]):
            expected, found = (learner(regularization, selection).fit(phi.transform(X), y, weights) for phi in maps)
            np.testing.assert_allclose(found.path_scores_, expected.path_scores_, rtol=1e-6)
            scores = [
                (fitted.decision_function if learner is RidgeClassifier else fitted.predict)(phi.transform(Z))
                for fitted, phi in zip((expected, found), maps, strict=True)
            ]
            np.testing.assert_allclose(scores[1], scores[0], atol=1e-7)


def test_a_path_is_predicted_from_precomputed_kernel_values(rng):
    X, Z, y = rng.random((30, 3)), rng.random((9, 3)), rng.standard_normal(30)
    phi = Exact(Gaussian(0.4), residual=True, precomputed=True).fit(X)
    for learner, name in (
        (RidgeRegressor(), "regularization"),
        (KernelRidgeRegressor(), "regularization"),
        (GaussianProcess(), "noise"),
    ):
        predicted = learner.path_predictions(phi.transform(X), y, np.array([1e-1, 1e-3]), phi.transform(Z))
        for value, found in zip((1e-1, 1e-3), predicted, strict=True):
            one = clone(learner).set_params(**{name: value}).fit(phi.transform(X), y)
            np.testing.assert_allclose(found, one.predict(phi.transform(Z)), atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"clusters": np.arange(30) % 7}], ids=["hold_out", "folds"])
def test_parts_of_kernel_values_are_scored_as_those_of_features(rng, options):
    X, y = rng.random((30, 3)), rng.standard_normal(30)
    krr = KernelRidgeRegressor([1e-3, 1e-2, 1e-1], selection="hold_out", random_state=0)
    by_values, by_features = (
        clone(krr).fit(Exact(Gaussian(0.4), precomputed=precomputed).fit_transform(X), y, **options)
        for precomputed in (True, False)
    )
    np.testing.assert_allclose(by_values.path_scores_, by_features.path_scores_, rtol=1e-8)


def test_kernel_values_are_those_of_all_training_points(rng):
    X, y = rng.random((30, 3)), rng.standard_normal(30)
    phi = Exact(Gaussian(0.4), precomputed=True).fit(X)
    with pytest.raises(ValueError, match="expected those of all 30 training points"):
        KernelRidgeRegressor(1e-2).fit(phi.transform(X)[:20], y[:20])


def test_standard_deviations_need_the_prior_variance(rng):
    X = rng.standard_normal((10, 2))
    exact = Exact(Gaussian(1.0), precomputed=True).fit(X)
    model = GaussianProcess(noise=0.1).fit(exact.transform(X), X[:, 0])
    with pytest.raises(InputError, match=r"^return_std=True: expected kernel values .*: set residual=True$"):
        model.predict(exact.transform(X), return_std=True)


FIELDS = [
    OperatorExact(DivergenceFree(lengthscale=1.0)),
    OperatorExact(Decomposable(lengthscale=1.0, output="covariance")),
    OperatorRandomFourier(CurlFree(lengthscale=1.0), n_components=20, random_state=0),
    OperatorRandomFourier(
        Decomposable(lengthscale=1.0), Orbit(Orthogonal(2), size=8), n_components=20, equivariant=True, random_state=0
    ),
]


@pytest.fixture
def field(rng):
    X = rng.uniform(-2, 2, (25, 2))
    return X, np.column_stack([-X[:, 1], X[:, 0]]) + 0.1 * rng.standard_normal((25, 2))


@pytest.mark.parametrize("features", FIELDS, ids=str)
@pytest.mark.parametrize("noise", [0.1, None])
def test_gp_of_coupled_outputs_is_the_formula_of_their_covariance(field, rng, features, noise):
    """Mean and covariance of all outputs of all points at once (Rasmussen and Williams, eqs. 2.25 and 2.26)."""
    (X, Y), Z = field, rng.uniform(-3, 3, (6, 2))
    psi = clone(features).fit(X, Y)
    gp = GaussianProcess(noise).fit(psi.transform(X), Y)
    mean, std = gp.predict(psi.transform(Z), return_std=True)
    both = np.concatenate([X, Z])
    K = _covariance(psi, both, Y)
    K /= np.trace(K[50:, 50:]) / 12 if isinstance(psi, OperatorExact) else np.trace(K[:50, :50]) / 50
    is_equivariant = isinstance(psi, OperatorRandomFourier) and psi.equivariant
    offset = 0 if is_equivariant else Y.mean(0)
    weights = np.linalg.solve(K[:50, :50] + gp.noise_ * np.eye(50), K[:50, 50:])
    expected = (weights.T @ (Y - offset).ravel()).reshape(6, 2) + offset
    np.testing.assert_allclose(mean, expected, atol=1e-6)
    scale = np.square(Y - offset).mean() * gp.amplitude_
    covariance = scale * (K[50:, 50:] - K[50:, :50] @ weights)
    blocks = np.stack([covariance[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] for i in range(6)])
    np.testing.assert_allclose(gp.output_covariance(psi.transform(Z)), blocks, atol=1e-6)
    np.testing.assert_allclose(std, np.sqrt(np.diagonal(blocks, axis1=1, axis2=2)), atol=1e-5)
    np.testing.assert_allclose(gp.noise_std(), np.sqrt(scale * gp.noise_))


def _covariance(psi, X, Y):
    """The prior covariance of the outputs of all points, a row for each output of a point."""
    if isinstance(psi, OperatorExact):
        if not isinstance(psi.kernel_, Decomposable):
            return psi.kernel_.gram(X)
        return np.kron(psi.kernel_.base_.gram(X), psi.kernel_.output_matrix(Y))
    features = psi.transform(X)
    if psi.equivariant:
        rows = np.asarray(features).reshape(2 * len(X), -1)
    else:
        rows = features.structure.operator(Y).dense(np.asarray(features))
    return rows @ rows.T


def test_gp_of_independent_outputs_by_an_operator_valued_kernel_knows_the_prior(field):
    X, Y = field
    psi = OperatorExact(Decomposable(lengthscale=1.0)).fit(X, Y)
    far = psi.transform(np.full((1, 2), 50.0))
    gp = GaussianProcess(noise=0.1).fit(psi.transform(X), Y)
    np.testing.assert_allclose(gp.predict(far, return_std=True)[1][0], np.sqrt(gp.amplitude_) * Y.std(0))
    np.testing.assert_allclose(gp.output_covariance(far)[0], np.diag(gp.amplitude_ * Y.var(0)))


def test_the_evidence_of_a_field_chooses_the_lengthscale(rng):
    X = rng.uniform(-2, 2, (60, 2))
    Y = np.column_stack([np.cos(X[:, 0]) * np.sin(X[:, 1]), -np.sin(X[:, 0]) * np.cos(X[:, 1])])
    Y += 0.1 * rng.standard_normal(Y.shape)
    fits = []
    for lengthscale in ("evidence", 0.3, 20.0):
        psi = OperatorExact(DivergenceFree(lengthscale=lengthscale), random_state=0)
        gp = GaussianProcess().fit(psi.fit_transform(X, Y), Y)
        fits.append(gp.log_marginal_likelihood_)
    assert fits[0] == max(fits)

"""Operator-valued kernels and features: closed forms, exact fits, fields without curl or divergence, equivariance."""

import pickle

import numpy as np
import oracles
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import orbit
from orbit import Engine, Haar, InputError, OperatorExact, OperatorRandomFourier, Orbit, Orthogonal, ParameterError
from orbit.approx.frequencies import MonteCarlo
from orbit.kernels import (
    CurlFree,
    Decomposable,
    DivergenceFree,
    Gaussian,
    Helmholtz,
    Laplacian,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from orbit.kernels.column_scales import ScaledColumns
from orbit.learners import AdaGradRegressor, CGRegressor, SteinRegressor
from orbit.solvers.structure import GramStructure, StructuredFeatures, structure_of
from orbit.testing import ComponentContract, KernelMapContract, OperatorKernelContract
from papers.bounds import operator_uniform_bound, operator_variance_bound

SIGMA = 1.3
FIELDS = [CurlFree(lengthscale=0.8), DivergenceFree(lengthscale=0.8), Helmholtz(lengthscale=0.8, curl_free_share=0.3)]


def k0(delta):
    return oracles.gaussian(delta, 0 * delta, SIGMA)


def curl_free(delta):
    return (np.eye(len(delta)) - np.outer(delta, delta) / SIGMA**2) / SIGMA**2 * k0(delta)


def divergence_free(delta):
    along, p = np.outer(delta, delta) / SIGMA**2, len(delta)
    return (along + (p - 1 - np.trace(along)) * np.eye(p)) / SIGMA**2 * k0(delta)


class TestDecomposable(OperatorKernelContract):
    component, params = Decomposable, {"lengthscale": SIGMA}

    def evaluate(self, delta):
        return k0(delta) * np.eye(len(delta))


class TestCurlFree(OperatorKernelContract):
    component, params = CurlFree, {"lengthscale": SIGMA}

    def evaluate(self, delta):
        return curl_free(delta)


class TestDivergenceFree(OperatorKernelContract):
    component, params = DivergenceFree, {"lengthscale": SIGMA}

    def evaluate(self, delta):
        return divergence_free(delta)


class TestDivergenceFreeInThePlane(TestDivergenceFree):
    n_features = 2


class TestHelmholtz(OperatorKernelContract):
    component, params = Helmholtz, {"lengthscale": SIGMA, "curl_free_share": 0.3}

    def evaluate(self, delta):
        return 0.3 * curl_free(delta) + 0.7 * divergence_free(delta)


class TestOperatorRandomFourier(KernelMapContract):
    component, params = OperatorRandomFourier, {"n_components": 40}
    gram_error = 0.35

    def evaluate(self, fitted, points, points_fit):
        return oracles.fourier_pairs(points, fitted.orbit_.weights_, fitted.frequencies_)


class TestOperatorExact(ComponentContract):
    """Of the contract of feature maps most is about orbits, over which this one does not average."""

    kind = "approx"
    component, params = OperatorExact, {"kernel": CurlFree(lengthscale=0.8)}


# ---- kernels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3, 5])
def test_factors_are_roots_of_the_spectral_matrices(rng, d):
    W = rng.standard_normal((7, d))
    along = W[:, :, None] * W[:, None]
    across = np.square(W).sum(1)[:, None, None] * np.eye(d) - along
    for kernel, expected in zip(FIELDS, (along, across, 0.3 * along + 0.7 * across), strict=True):
        np.testing.assert_allclose(kernel.spectral_matrices(W), expected, atol=1e-13)
    assert CurlFree().factors(W).shape[2] == 1
    assert DivergenceFree().factors(W).shape[2] == (1 if d == 2 else d)
    np.testing.assert_allclose(DivergenceFree().factors(0 * W), 0, atol=1e-200)


@pytest.mark.parametrize("base", [RationalQuadratic(alpha=2.0), Matern(nu=1.5), Matern(nu=2.5)], ids=repr)
@pytest.mark.parametrize("scales", [None, (1.0, 0.4)])
def test_differentiated_signatures_are_differences_of_the_kernel(rng, base, scales):
    """Central second differences of k0, at a step whose error is far below the tolerance."""
    kernel, delta, h = CurlFree(base, lengthscale=0.9).fit(np.zeros((1, 2))), rng.standard_normal((5, 2)), 1e-3
    if scales is not None:
        kernel = kernel.with_base(ScaledColumns(kernel.base_, np.array(scales)))
    value = lambda x: kernel.base_.gram(x, np.zeros((1, 2)))[:, 0]  # noqa: E731
    expected = np.empty((5, 2, 2))
    for i, e in enumerate(np.eye(2) * h):
        for j, f in enumerate(np.eye(2) * h):
            second = value(delta + e + f) - value(delta + e - f) - value(delta - e + f) + value(delta - e - f)
            expected[:, i, j] = -second / (4 * h**2)
    np.testing.assert_allclose(kernel.signatures(delta), expected, atol=2e-5)


@pytest.mark.parametrize(("base", "expected"), [(Gaussian(), 1.0), (Matern(nu=1.5), 3.0), (Matern(nu=2.5), 5 / 3)])
def test_signature_at_zero_is_the_second_moment(base, expected):
    """E w w^T: a square root must not spoil the second derivative there."""
    kernel = CurlFree(base, lengthscale=1.0).fit(np.zeros((1, 3)))
    np.testing.assert_allclose(kernel.signatures(np.zeros((1, 3)))[0], expected * np.eye(3), rtol=1e-6)


@pytest.mark.parametrize("kernel", [*FIELDS, Decomposable()], ids=lambda kernel: kernel.name)
def test_an_unfitted_kernel_is_fitted_by_gram_and_named_by_the_rest(rng, kernel):
    X = rng.standard_normal((5, 2))
    unfitted = clone(kernel).set_params(lengthscale="median")
    np.testing.assert_array_equal(unfitted.gram(X), clone(unfitted).fit(X).gram(X))
    for call in (lambda: unfitted.signatures(X), lambda: unfitted.lengthscale_):
        with pytest.raises(NotFittedError, match=f"This {type(kernel).__name__} instance is not fitted"):
            call()


@pytest.mark.parametrize("base", [Laplacian(), Matern(nu=0.5), Matern(nu=1.0)], ids=str)
@pytest.mark.parametrize("kernel", FIELDS, ids=lambda kernel: kernel.name)
def test_bases_without_second_moment_are_refused(kernel, base):
    with pytest.raises(InputError, match=rf"kernel={kernel.name} needs frequencies with a second moment"):
        type(kernel)(base=base).check()
    Decomposable(base=base).check()


def test_invalid_bases_are_rejected():
    with pytest.raises(ParameterError, match="^kernel.base: expected a section with the name of a kernel"):
        orbit.build("kernel", "curl_free", base={"nu": 2.5})
    with pytest.raises(InputError, match="^kernel.base: .*did you mean 'gaussian'"):
        orbit.build("kernel", "curl_free", base="gausian")
    with pytest.raises(ParameterError, match="^kernel.base: expected a Kernel or null, found 'gaussian'"):
        CurlFree(base="gaussian").check()
    with pytest.raises(ParameterError, match="^kernel.lengthscale: expected None, because kernel=polynomial has none"):
        CurlFree(Polynomial(), lengthscale=1.0).check()


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        (np.ones((2, 3)), r"expected a symmetric 4 x 4 matrix.*\(2, 3\)"),
        *(
            (
                np.where(np.arange(16).reshape(4, 4) == 1, entry, 1.0),
                "expected a symmetric 4 x 4 matrix.*, found another",
            )
            for entry in (np.nan, np.inf, -1, 2)
        ),
        (np.full((4, 4), "a"), r".* found another array, <U1 of shape \(4, 4\)"),
        ("0 1", ".* is not a readable .npy file"),
    ],
    ids=str,
)
def test_invalid_graphs_are_rejected(tmp_path, rng, graph, found):
    path = tmp_path / "graph.npy"
    path.write_text(graph) if isinstance(graph, str) else np.save(path, graph)
    with pytest.raises(InputError, match=f"^kernel.adjacency: {found}"):
        Decomposable(output="graph", adjacency=str(path)).output_matrix(rng.random((9, 4)))


class TestOutputMatrix:
    def test_covariance_and_low_rank(self, rng):
        Y = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 4))
        A = Decomposable(output="covariance").output_matrix(Y)
        np.testing.assert_allclose(A, np.cov(Y.T) / np.trace(np.cov(Y.T)) * 4)
        values, vectors = np.linalg.eigh(A)
        low = Decomposable(output="low_rank", rank=2).output_matrix(Y)
        np.testing.assert_allclose(low, vectors[:, 2:] * values[2:] @ vectors[:, 2:].T, atol=1e-12)

    def test_graph_is_the_pseudo_inverse_of_its_laplacian(self, rng, tmp_path):
        weights = np.array([[0.0, 1, 0], [1, 0, 2], [0, 2, 0]])
        np.save(tmp_path / "graph.npy", weights)
        A = Decomposable(output="graph", adjacency=str(tmp_path / "graph.npy")).output_matrix(rng.random((9, 3)))
        L = np.diag(weights.sum(1)) - weights
        np.testing.assert_allclose(L @ A @ L, L * (A[0, 0] / np.linalg.pinv(L)[0, 0]), atol=1e-12)
        np.testing.assert_allclose(A.sum(1), 0, atol=1e-12)

    def test_nearest_neighbours_join_outputs_that_move_together(self, rng):
        z = rng.standard_normal((200, 2))
        Y = np.column_stack([z[:, 0], z[:, 0], z[:, 1], z[:, 1]]) + 0.01 * rng.standard_normal((200, 4))
        A = Decomposable(output="graph", n_neighbors=1).output_matrix(Y)
        np.testing.assert_allclose(A[:2, 2:], 0, atol=1e-12)
        assert A[0, 1] < 0 < A[0, 0]

    def test_simplex_corners_are_equally_far_apart(self):
        A = Decomposable(output="simplex").output_matrix(np.eye(5))
        assert np.linalg.matrix_rank(A) == 4
        np.testing.assert_allclose(A - np.diag(np.diag(A)), -0.25 * (1 - np.eye(5)))


def fitted_map(kernel, X, n_components=15, **params):
    return OperatorRandomFourier(kernel, n_components=n_components, random_state=0, **params).fit(X)


def test_exact_features_give_kernel_ridge_regression(rng):
    X, Z, lam = rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (9, 2)), 1e-3
    Y = np.column_stack([X[:, 0] ** 2, np.sin(X[:, 1])])
    for kernel in FIELDS:
        ovk = OperatorExact(kernel).fit(X)
        K, cross = ovk.kernel_.gram(X), ovk.kernel_.gram(Z, X)
        expected = cross @ np.linalg.solve(K + 30 * lam * np.eye(60), Y.ravel())
        fitted = SteinRegressor(lam, fit_intercept=False).fit(ovk.transform(X), Y)
        np.testing.assert_allclose(fitted.predict(ovk.transform(Z)), expected.reshape(9, 2), atol=1e-7)


def test_the_exact_kernel_stops_with_a_message(rng):
    with pytest.raises(InputError, match=r"would have 60 rows.*fewer points.*max_size=50.*approx=orff"):
        OperatorExact(CurlFree(), max_size=50).fit(rng.random((30, 2)))
    OperatorExact(Decomposable(), max_size=50).fit(rng.random((30, 2)))
    with pytest.raises(InputError, match="approx=ovk does not average over group=orthogonal"):
        OperatorExact(orbit=Orbit(Orthogonal(2))).check()


# ---- fields ----------------------------------------------------------------------------------------------------------


def jacobians(phi, learner, points):
    """d f_a / d x_b of a fitted field by automatic differentiation, shape (n, p, d)."""
    W, C = torch.from_numpy(phi.frequencies_), torch.from_numpy(learner.coef_.T)

    def field(x):
        waves = torch.cat([(W @ x).cos(), (W @ x).sin()]) / len(W) ** 0.5
        return waves @ C

    x = torch.from_numpy(points)
    values = torch.func.vmap(field)(x).numpy() + learner.intercept_
    np.testing.assert_allclose(values, learner.predict(phi.transform(points)), atol=1e-10)
    return torch.func.vmap(torch.func.jacrev(field))(x).numpy()


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize(
    "learner", [SteinRegressor(1e-6), CGRegressor(1e-6, random_state=0), AdaGradRegressor(0.1, random_state=0)], ids=str
)
def test_fields_have_no_curl_or_no_divergence_to_rounding(rng, d, learner):
    X = rng.uniform(-1, 1, (60, d))
    Y = X**2 @ rng.standard_normal((d, d)) + rng.standard_normal((60, d))
    largest = {}
    for kernel in (*FIELDS[:2], Decomposable(lengthscale=0.8)):
        phi = fitted_map(kernel, X, 40)
        J = jacobians(phi, learner.fit(phi.transform(X), Y), rng.uniform(-1, 1, (20, d)))
        scale = np.abs(J).max()
        curl, divergence = np.abs(J - J.swapaxes(1, 2)).max() / scale, np.abs(J.trace(axis1=1, axis2=2)).max() / scale
        largest[kernel.name] = curl, divergence
    assert largest["curl_free"][0] < 1e-12 < 1e-2 < largest["curl_free"][1]
    assert largest["divergence_free"][1] < 1e-12 < 1e-2 < largest["divergence_free"][0]
    assert min(largest["decomposable"]) > 1e-2, "otherwise the test shows nothing"


def test_targets_must_match_the_coordinates(rng):
    psi = fitted_map(CurlFree(), rng.random((20, 2))).transform(rng.random((20, 2)))
    with pytest.raises(
        InputError, match="kernel=curl_free: targets must have one number for each coordinate.*2, found 3"
    ):
        SteinRegressor().fit(psi, rng.random((20, 3)))
    with pytest.raises(ValueError, match="30 columns, found 10"):
        SteinRegressor().fit(StructuredFeatures(psi.values[:, :10], psi.structure), rng.random((20, 2)))


class TestEquivariance:
    """f(g x) = g f(x) for the turns of the orbit; for others to the accuracy of the orbit."""

    def fitted(self, rng, kernel, group, rule="quadrature", size=12, learner=None):
        d = group.dim
        X, Y = rng.standard_normal((40, d)), rng.standard_normal((40, d))
        orb = Orbit(group, Haar(), size=size, rule=rule)
        phi = OperatorRandomFourier(kernel, orb, 20, equivariant=True, random_state=0)
        return make_pipeline(phi, learner or SteinRegressor(1e-3)).fit(X, Y), X

    @pytest.mark.parametrize("kernel", [*FIELDS, Decomposable(lengthscale=0.8)], ids=lambda kernel: kernel.name)
    def test_turns_of_the_orbit_are_exact(self, rng, kernel):
        model, X = self.fitted(rng, kernel, Orthogonal(2))
        elements = model[0].orbit_.elements_
        angle = 2 * np.pi * 5 / len(elements)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        np.testing.assert_allclose(model.predict(X @ turn.T), model.predict(X) @ turn.T, atol=1e-10)
        assert np.abs(model.predict(X)).max() > 0.05

    def test_any_turn_is_as_good_as_the_orbit(self):
        angle, errors = 1.0, []
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for size in (6, 64):
            model, X = self.fitted(np.random.default_rng(3), FIELDS[0], Orthogonal(2), size=size)
            errors.append(np.abs(model.predict(X @ turn.T) - model.predict(X) @ turn.T).max())
        assert errors[0] > 1e-3
        assert errors[1] < 1e-8  # the trapezoid rule converges faster than any power

    def test_features_are_the_plain_formula(self, rng):
        orb = Orbit(Orthogonal(2), Haar(), size=3, rule="monte_carlo")
        X = rng.standard_normal((4, 2))
        for kernel in FIELDS:
            phi = OperatorRandomFourier(kernel, orb, 5, equivariant=True, random_state=0).fit(X)
            B, W = phi.kernel_.factors(phi.frequencies_), phi.frequencies_
            expected = np.zeros((4, 2, 2, 5, B.shape[2]))
            for weight, g in zip(phi.orbit_.weights_, phi.orbit_.elements_, strict=True):
                for part, wave in enumerate((np.cos, np.sin)):
                    waves = wave(X @ g.T @ W.T) / np.sqrt(5)
                    expected[:, :, part] += weight * np.einsum("nj,jab->najb", waves, np.linalg.inv(g) @ B)
            np.testing.assert_allclose(phi.transform(X), expected.reshape(4, -1), atol=1e-12)

    def test_solvers_agree_and_tiles_do_not_matter(self):
        stein, X = self.fitted(np.random.default_rng(3), FIELDS[2], Orthogonal(2))
        cg, _ = self.fitted(
            np.random.default_rng(3), FIELDS[2], Orthogonal(2), learner=CGRegressor(1e-3, random_state=0)
        )
        np.testing.assert_allclose(cg.predict(X), stein.predict(X), atol=1e-8)
        small = OperatorRandomFourier(
            FIELDS[2], stein[0].orbit, 20, equivariant=True, engine=Engine(memory=1e-6, workers=2), random_state=0
        )
        np.testing.assert_allclose(small.fit_transform(X), stein[0].transform(X), atol=1e-12)

    def test_an_output_matrix_from_targets_is_refused(self, rng):
        with pytest.raises(InputError, match="kernel.output=covariance depends on the targets"):
            OperatorRandomFourier(Decomposable(output="covariance"), equivariant=True).fit(rng.random((5, 2)))

    def test_without_it_outputs_are_invariant(self, rng):
        orb = Orbit(Orthogonal(2), Haar(), size=12, rule="quadrature")
        X, Y = rng.standard_normal((40, 2)), rng.standard_normal((40, 2))
        model = make_pipeline(OperatorRandomFourier(Gaussian(1.0), orb, 20, random_state=0), SteinRegressor(1e-3))
        model.fit(X, Y)
        np.testing.assert_allclose(model.predict(X[:, ::-1] * [-1, 1]), model.predict(X), atol=1e-10)


def test_structure_goes_through_pipelines_searches_and_pickles(rng):
    X = rng.uniform(-1, 1, (60, 2))
    Y = np.column_stack([X[:, 0] ** 2, np.sin(X[:, 1])])
    model = make_pipeline(
        OperatorRandomFourier(CurlFree(lengthscale=0.5), n_components=30, random_state=0), SteinRegressor(1e-4)
    )
    search = GridSearchCV(model, {"operatorrandomfourier__kernel__lengthscale": [0.01, 1.0]}, cv=2).fit(X, Y)
    assert search.best_params_["operatorrandomfourier__kernel__lengthscale"] == 1.0
    fitted = search.best_estimator_
    J = jacobians(fitted[0], fitted[1], X[:5])
    np.testing.assert_allclose(J, J.swapaxes(1, 2), atol=1e-10)
    psi = fitted[0].transform(X)
    copied = pickle.loads(pickle.dumps(psi))
    assert structure_of(copied).kernel.name == "curl_free"
    assert structure_of(psi[3:7]) is structure_of(psi)


@pytest.mark.parametrize("has_prior", [False, True])
def test_kernel_values_are_those_of_the_training_points_with_one_another(has_prior):
    structure, K = GramStructure(3, has_prior), np.arange(12.0).reshape(3, 4)
    K[:, :3] += K[:, :3].T
    np.testing.assert_array_equal(structure.gram(K[:, : 3 + has_prior]), K[:, :3])
    for wrong in (K[:2, : 3 + has_prior], K[:, :2], K[:, : 4 - has_prior]):
        with pytest.raises(ValueError, match="^kernel values: expected those of all 3 training points"):
            structure.gram(wrong)
    with pytest.raises(ValueError, match="^kernel values: .* not symmetric: do not shuffle"):
        structure.gram(K[[1, 0, 2], : 3 + has_prior])


# ---- theory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [Decomposable(lengthscale=1.0), CurlFree(lengthscale=1.0), DivergenceFree(lengthscale=1.0)], ids=str
)
@pytest.mark.parametrize("d", [2, 4])
def test_variance_is_under_its_bound_and_not_far(kernel, d):
    rng, D = np.random.default_rng(0), 64
    kernel.fit(np.zeros((1, d)))
    for delta in (np.zeros(d), rng.uniform(-1, 1, d), rng.uniform(-2, 2, d)):
        exact = kernel.signatures(delta[None])[0]
        errors = np.array(
            [
                kernel.estimate(delta[None], MonteCarlo().draw(kernel.base_, D, d, np.random.default_rng(seed)))[0]
                - exact
                for seed in range(800)
            ]
        )
        empirical = np.linalg.norm((errors @ errors).mean(0), 2)
        bound = operator_variance_bound(kernel, delta, D)
        assert empirical <= 1.2 * bound + 1e-12  # 800 draws know a variance to some 5 to 10 percent
        assert empirical > 0.05 * bound - 1e-12


def test_bounds_reject_kernels_that_they_do_not_cover():
    with pytest.raises(ValueError, match="no closed form"):
        operator_variance_bound(Helmholtz(lengthscale=1.0).fit(np.zeros((1, 2))), np.zeros(2), 10)
    assert operator_uniform_bound(0.1, 10, 4, 4, 4.0, 6.0, 20.0, 5.0) == 1.0


def test_features_with_a_structure_are_not_changed_in_place(rng):
    features = OperatorRandomFourier(n_components=4, random_state=0).fit_transform(rng.random((6, 2)))
    before = np.array(features)
    with pytest.raises(TypeError, match="copy them"):
        features *= 2
    np.testing.assert_array_equal(np.asarray(features), before)
    np.testing.assert_array_equal(2 * features, 2 * before)
    total = np.zeros(before.shape)
    total += features
    np.testing.assert_array_equal(total, before)

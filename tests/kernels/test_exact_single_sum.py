"""The single sum of the exact kernel, over the differences of an orbit's elements, equals the double sum."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import orbit
from orbit import Exact, Gaussian, Laplacian

VALUES = {
    Gaussian: lambda a, b: np.exp(-cdist(a, b, "sqeuclidean") / 200),
    Laplacian: lambda a, b: np.exp(-cdist(a, b, "cityblock") / 10),
}


def double_sum(exact: Exact, X: np.ndarray, Z: np.ndarray, values) -> np.ndarray:
    """sum_ij v_i v_j k(g_i x, g_j z) in float64."""
    orb = exact.orbit_
    moved = [orb.group_.act(orb.elements_, points).reshape(len(orb.weights_), len(points), -1) for points in (X, Z)]
    rows = zip(orb.weights_, moved[0], strict=True)
    return sum(v * w * values(x, z) for v, x in rows for w, z in zip(orb.weights_, moved[1], strict=True))


def built(group: str, q: str = "haar", size: int | None = None, rule: str = "quadrature", **parameters) -> orbit.Orbit:
    options = {"sampling": "polar"} if group == "rotation" else {"dim": 2} if group == "orthogonal" else {}
    distribution = orbit.build("distribution", q, **parameters)
    return orbit.Orbit(orbit.build("group", group, **options), distribution, size, rule, random_state=0)


#: Orbits, the shape of their points, and the largest number of their differences.
ORBITS = {
    "a whole group": (built("dihedral"), (4, 4), 8),
    "a whole cyclic group": (built("cyclic"), (2, 12), 12),
    "some of a finite group, drawn": (built("cyclic", size=9, rule="monte_carlo"), (12,), 12),
    "a finite group with weights": (built("cyclic", "gaussian", sigma=1.5), (12,), 12),
    "steps of polar images, weights": (built("rotation", "von_mises", 12, concentration=0.2), (2, 12), 12),
    "every second step of polar images": (built("rotation", "von_mises", 6, concentration=0.2), (2, 12), 6),
}


@pytest.mark.parametrize("kernel", VALUES)
@pytest.mark.parametrize("case", ORBITS)
def test_equals_the_double_sum(rng, kernel, case):
    orb, shape, most = ORBITS[case]
    X, Z = rng.standard_normal((5, *shape)), rng.standard_normal((4, *shape))
    exact = Exact(kernel(10.0), orb).fit(X)
    assert 1 < len(exact._single.weights_) <= most
    np.testing.assert_allclose(exact.gram(X, Z), double_sum(exact, X, Z, VALUES[kernel]), rtol=1e-10)
    np.testing.assert_allclose(exact.diagonal(X), np.diag(double_sum(exact, X, X, VALUES[kernel])), rtol=1e-10)


@pytest.mark.parametrize(
    ("orb", "kernel", "shape"),
    [
        (built("dihedral"), orbit.build("kernel", "polynomial"), (3, 3)),  # a dot product is kept by a unitary action
        (built("orthogonal", size=16), Gaussian(3.0), (3, 2)),  # equispaced turns
        (built("rotation", size=8), Gaussian(3.0), (3, 5)),  # of an odd number of angles
    ],
)
def test_is_used_for_unitary_actions(rng, orb, kernel, shape):
    X = rng.standard_normal((5, *shape))
    exact = Exact(kernel, orb).fit(X)
    assert 1 < len(exact._single.weights_) <= len(exact.orbit_.weights_) + 1
    np.testing.assert_allclose(exact.gram(X), double_sum(exact, X, X, exact.kernel_.gram), rtol=1e-10)


FACTORS = [{"name": "reflection"}, {"name": "cyclic", "axis": 1}]
OF_FACTORS = orbit.build("distribution", "product", factors=[{"name": "haar"}, {"name": "gaussian", "sigma": 1.0}])


@pytest.mark.parametrize(
    ("orb", "kernel", "shape"),
    [
        (orbit.Orbit(orbit.build("group", "rotation"), size=8), Gaussian(3.0), (4, 4)),  # interpolates
        (built("rotation", size=7), Gaussian(3.0), (2, 12)),  # between the steps of the grid
        (built("orthogonal", size=8, rule="monte_carlo"), Gaussian(3.0), (3, 2)),  # no differences are equal
        (built("orthogonal", size=8), Laplacian(3.0), (3, 2)),
        (built("cyclic", "uniform", low=-1, high=1, unit="native"), Gaussian(3.0), (12,)),  # 3 elements, 5 differences
        # reflections and shifts of one axis do not commute
        (orbit.Orbit(orbit.build("group", "product", factors=FACTORS), OF_FACTORS), Gaussian(3.0), (5, 5)),
    ],
)
def test_is_used_only_where_it_is_valid_and_shorter(rng, orb, kernel, shape):
    X = rng.standard_normal((5, *shape))
    exact = Exact(kernel, orb).fit(X)
    assert exact._single is None
    np.testing.assert_allclose(exact.gram(X), double_sum(exact, X, X, exact.kernel_.gram), rtol=1e-10)

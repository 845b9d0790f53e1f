"""The single sum of the exact kernel over a whole finite group equals the double sum."""

import numpy as np
import pytest

import orbit
from orbit.approx import Exact
from orbit.kernels import Gaussian, Laplacian


@pytest.fixture
def X(rng):
    return rng.standard_normal((6, 4, 4))


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Laplacian(10.0)])
@pytest.mark.parametrize("group", ["dihedral", "reflection", "cyclic"])
def test_equals_the_double_sum(X, kernel, group, monkeypatch):
    orb = orbit.Orbit(orbit.build("group", group), rule="quadrature")
    exact = Exact(kernel=kernel, orbit=orb)
    single = exact.fit_gram(X)
    assert exact._has_single_sum()
    monkeypatch.setattr(Exact, "_has_single_sum", lambda self: False)
    np.testing.assert_allclose(single, Exact(kernel=kernel, orbit=orb).fit_gram(X), rtol=1e-12, atol=1e-14)


def test_is_used_only_where_it_is_valid(X):
    rotation = orbit.Orbit(orbit.build("group", "rotation"), size=8)
    part = orbit.Orbit(orbit.build("group", "dihedral"), size=5, rule="monte_carlo")
    polynomial = orbit.build("kernel", "polynomial")
    for orb, kernel in ((rotation, Gaussian(3.0)), (part, Gaussian(3.0))):
        exact = Exact(kernel=kernel, orbit=orb, random_state=0)
        exact.fit_gram(X)
        assert not exact._has_single_sum()
    whole = orbit.Orbit(orbit.build("group", "dihedral"))
    exact = Exact(kernel=polynomial, orbit=whole)
    exact.fit_gram(X)
    assert exact._has_single_sum()  # a dot product is kept by a unitary action

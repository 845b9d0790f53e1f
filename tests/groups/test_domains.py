"""Coordinate spaces."""

import numpy as np
import pytest

from orbit.groups.domains import Circle, Finite, Line, OrthogonalMatrices, Permutations, Torus, wrap


def test_wrap_is_half_open_and_changes_only_angles():
    angles = np.linspace(-20, 20, 401)
    wrapped = wrap(angles)
    assert np.all((wrapped >= -np.pi) & (wrapped < np.pi))
    turns = (angles - wrapped) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-12)
    assert wrap(np.pi) == -np.pi
    assert wrap(0.0) == 0.0


def test_wrap_takes_any_period():
    np.testing.assert_allclose(wrap(np.array([0.0, 0.6, 1.2]), period=1.0), [0.0, -0.4, 0.2])


@pytest.mark.parametrize(
    "make",
    [
        *(Circle, Permutations, Line),
        *(lambda: Line(2, "pixels", 1.0), lambda: Torus(1, "samples", 1.0), lambda: Finite(3)),
        lambda: OrthogonalMatrices(3),
    ],
)
def test_domains_are_described_and_equal_by_their_parameters(make):
    assert "object at" not in str(make())
    assert make() == make()


@pytest.mark.parametrize(
    ("domain", "dim"),
    [(Circle(), 1), (Line(2), 2), *((OrthogonalMatrices(d), n) for d, n in ((2, 1), (3, 3), (4, 6), (5, 10)))],
    ids=str,
)
def test_dimensions_are_those_of_tangent_spaces(domain, dim):
    """Of orthogonal matrices: as many as there are antisymmetric ones."""
    assert domain.dim == dim


def test_uniform_numbers_give_every_element_of_a_finite_group_equally_often():
    elements = Finite(5).haar((np.arange(1000) + 0.5)[:, None] / 1000)
    np.testing.assert_array_equal(np.unique(elements, return_counts=True)[1], 200)
    assert Finite(5).haar(np.array([[1 - 2**-53]])) == 4


@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("d", [2, 3])
def test_rules_of_orthogonal_matrices_have_at_most_the_nodes_asked_for(d, special):
    domain = OrthogonalMatrices(d, special)
    for size in range(1, 70):
        nodes, weights = domain.haar_rule(size, 0.3)
        assert len(nodes) == len(weights) <= size
        if d == 2:
            assert len(nodes) == (size if special or size == 1 else size // 2 * 2)
    assert len(domain.haar_rule(64, 0.0)[0]) > 30

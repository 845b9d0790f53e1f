"""The contract of finite groups, permutations, and quarter turns."""

import numpy as np
import pytest
from scipy import stats

from orbit import Delta, InputError, Nystrom, Orbit, RandomFourier
from orbit.groups import (
    Cyclic,
    Dihedral,
    Octahedral,
    Permutation,
    ProductGroup,
    Reflection,
    Rotation3D,
    Translation,
    volumes,
)
from orbit.testing import FiniteGroupContract


def test_permutations_of_any_number_of_items_have_one_list_for_each_element():
    group, turns = Permutation(), [[1, 2, 0], [2, 0, 1]]
    np.testing.assert_array_equal(group.inverse(turns), turns[::-1])
    np.testing.assert_array_equal(group.compose(turns, turns[::-1]), [[0, 1, 2]] * 2)
    for wrong in (0.0, turns[0], [turns]):
        with pytest.raises(InputError):
            group.inverse(wrong)


class TestOctahedral(FiniteGroupContract):
    component = Octahedral
    shape = (8, 8, 8)
    wrong_shapes = [(8, 8), (8, 8, 9), (16, 16, 3)]


class TestOctahedralWithReflections(FiniteGroupContract):
    component = Octahedral
    shape = (3, 3, 3, 2)
    params = {"mirror": True}


def test_quarter_turns_of_cubes_are_those_of_rotations_of_volumes(rng):
    X, cube = rng.random((2, 8, 8, 8, 2)), Octahedral()
    turned = Rotation3D().act(volumes._matrices(cube.elements()), X)
    np.testing.assert_allclose(cube.act(cube.elements(), X), turned, atol=1e-12)


class TestReflection(FiniteGroupContract):
    params = {"axis": 1}
    wrong_shapes = [(5,)]
    component = Reflection


class TestReflectionOfSignals(FiniteGroupContract):
    shape = (9,)
    component = Reflection
    params = {"axis": 0}


class TestReflectionOfVectors(FiniteGroupContract):
    shape = (5, 6, 2)
    wrong_shapes = [(5, 6), (5, 6, 3)]
    component = Reflection
    params = {"vectors": True}


class TestDihedral(FiniteGroupContract):
    shape = (5, 5)
    wrong_shapes = [(25,), (4, 5)]
    component = Dihedral


class TestDihedralOfVectors(FiniteGroupContract):
    shape = (5, 5, 2)
    wrong_shapes = [(5, 5), (5, 5, 3)]
    component = Dihedral
    params = {"vectors": True}


class TestQuarterTurnsOfColourImages(FiniteGroupContract):
    shape = (4, 4, 3)
    component = Dihedral
    params = {"mirror": False}


class TestCyclic(FiniteGroupContract):
    shape = (9,)
    wrong_shapes = [(8,)]
    component = Cyclic
    params = {"length": 9}


class TestCyclicAxis(FiniteGroupContract):
    shape = (6, 4)

    def create(self):
        return Cyclic(axis=0).for_shape(self.shape)


class TestWrappedPixelTranslation(FiniteGroupContract):
    shape = (4, 6)
    wrong_shapes = [(24,), (6, 4)]

    def create(self):
        return Translation("wrap", "pixel").for_shape(self.shape)


class TestPermutation(FiniteGroupContract):
    shape = (4,)
    wrong_shapes = [(5,), (4, 4)]
    component = Permutation
    params = {"n": 4}


class TestBlocks(FiniteGroupContract):
    shape = (5, 8)
    wrong_shapes = [(4, 8)]
    component = Permutation
    params = {"mode": "blocks", "n": 5}

    @pytest.mark.parametrize(
        "approx", [RandomFourier, Nystrom]
    )  # Exact: 120 x 120 kernel values for each pair of points take seconds
    def test_features_by_full_enumeration_are_exactly_invariant(self, rng, approx):
        super().test_features_by_full_enumeration_are_exactly_invariant(rng, approx)


class TestBlocksOfVectors(FiniteGroupContract):
    shape = (12,)
    wrong_shapes = [(13,)]
    component = Permutation
    params = {"mode": "blocks", "n": 3}


class TestRowsAndColumns(FiniteGroupContract):
    shape = (4, 4)
    wrong_shapes = [(4,), (4, 5), (5, 5)]
    component = Permutation
    params = {"mode": "rows_columns", "n": 4}


class TestFiniteProduct(FiniteGroupContract):
    shape = (4, 5)

    def create(self):
        return ProductGroup([{"name": "reflection"}, {"name": "cyclic", "axis": 0}]).for_shape(self.shape)


def test_dihedral_is_numpys_rot90_and_flip(rng):
    X = rng.random((2, 5, 5))
    moved = Dihedral().act(np.arange(8), X)
    for k in range(4):
        np.testing.assert_array_equal(moved[k], np.rot90(X, k, (1, 2)))
        np.testing.assert_array_equal(moved[4 + k], np.rot90(X[:, :, ::-1], k, (1, 2)))


# ---- permutations ----------------------------------------------------------------------------------------------------


def test_random_permutations_are_uniform():
    drawn = Orbit(Permutation(), size=24_000, rule="monte_carlo", random_state=0).fit(np.zeros((1, 4))).elements_
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-3


def test_orders_beyond_float64():
    with pytest.raises(InputError, match=r"has more than 1e\+300 elements"):
        Permutation(n=784).elements()
    assert Delta().density(Permutation(n=200).domain, np.arange(200)[None]) == np.inf


def test_too_many_permutations_are_not_listed():
    with pytest.raises(InputError, match=r"group=permutation.*3.63e\+06 elements.*monte_carlo"):
        Permutation(n=10).elements()
    with pytest.raises(InputError, match=r"distribution=haar on group=permutation has no quadrature.*monte_carlo"):
        Orbit(Permutation(), rule="quadrature").fit(np.zeros((1, 8)))
    assert len(Orbit(Permutation(), rule="quadrature").fit(np.zeros((1, 7))).weights_) == 5040


def test_rows_and_columns_keep_a_symmetric_matrix_spectrum(rng):
    C = rng.random((2, 6, 6))
    C = C + C.transpose(0, 2, 1)
    group = Permutation("rows_columns").for_shape((6, 6))
    p = rng.permutation(6)
    moved = group.act(p[None].astype(float), C)[0]
    np.testing.assert_array_equal(moved, C[:, p][:, :, p])
    np.testing.assert_allclose(np.linalg.eigvalsh(moved), np.linalg.eigvalsh(C), atol=1e-12)

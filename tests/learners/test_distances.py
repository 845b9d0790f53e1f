"""The kernel of all distances in one molecule: derivatives, permutations, and the plain formula."""

import numpy as np
import pytest
from ase.build import molecule

from orbit.learners.distances import BondedMolecule, Distances


def frames(name: str, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    atoms = molecule(name)
    moves = 0.05 * np.random.default_rng(seed).standard_normal((n, len(atoms), 3))
    return np.tile(atoms.numbers, (n, 1)), atoms.positions + moves


@pytest.fixture(scope="module")
def fitted() -> Distances:
    charges, R = frames("CH3OH", 12)
    return Distances(BondedMolecule.of(charges, R), 3.0).fit(R, 60, np.random.default_rng(0))


@pytest.mark.parametrize(("name", "order"), [("C6H6", 12), ("CH3CH2OH", 12), ("H2O", 2), ("CH4", 24), ("CH3OH", 6)])
def test_permutations_keep_elements_and_bonds(name, order):
    found = BondedMolecule.of(*frames(name, 5))
    assert len(found.permutations) == len({*map(tuple, found.permutations)}) == order
    charges, R = frames(name, 1, 1)
    r = np.linalg.norm(R[0][:, None] - R[0], axis=2)
    others = (charges[0][:, None] > 1) | (charges[0] > 1)
    bonded = others & (r < 1.7) & ~np.eye(len(r), dtype=bool)
    for g in found.permutations:
        assert (charges[0][g] == charges[0]).all()
        np.testing.assert_array_equal(bonded[g][:, g], bonded)


def test_frames_of_several_molecules_or_too_symmetric_ones_have_none():
    one, two = frames("H2O", 2), frames("NH3", 2)
    assert BondedMolecule.of(np.concatenate([np.pad(one[0], ((0, 0), (0, 1))), two[0]]), np.zeros((4, 4, 3))) is None
    assert BondedMolecule.of(*frames("isobutane", 3)) is None  # 6 orders of the methyl groups times 6^3


def test_derivatives_by_central_differences(fitted):
    _, R = frames("CH3OH", 3, 1)
    _, slopes = fitted.rows(R)
    w, step = np.random.default_rng(0).standard_normal(len(fitted)), 1e-4
    found = fitted.predict(R, w)[1]
    for i, k in np.ndindex(6, 3):
        moved = [R.copy(), R.copy()]
        moved[0][:, i, k] += step
        moved[1][:, i, k] -= step
        one, two = (fitted.rows(each, with_slopes=False)[0] for each in moved)
        np.testing.assert_allclose(slopes[:, 3 * i + k], (one - two) / (2 * step), atol=1e-6 * np.abs(slopes).max())
        np.testing.assert_allclose(found[:, i, k], (one - two) @ w / (2 * step), atol=1e-6 * np.abs(found).max())


def test_rows_are_predictions(fitted):
    _, R = frames("CH3OH", 4, 2)
    w = np.random.default_rng(0).standard_normal(len(fitted))
    values, slopes = fitted.rows(R)
    energies, found = fitted.predict(R, w)
    np.testing.assert_allclose(energies, values @ w, atol=1e-9)
    np.testing.assert_allclose(found.reshape(4, -1), slopes @ w, atol=1e-9)


def test_motions_and_permutations_of_the_molecule_change_nothing(fitted):
    _, R = frames("CH3OH", 4, 3)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    values, _ = fitted.rows(R)
    for g in fitted.molecule.permutations:
        np.testing.assert_allclose(fitted.rows(R[:, g] @ Q + 1.0)[0], values, atol=1e-10)


def test_functions_are_orthonormal_derivatives_of_the_plain_kernel():
    """Their inner products by the kernel itself, with central differences in place of both derivatives."""
    charges, R = frames("CH3OH", 4)
    fitted = Distances(BondedMolecule.of(charges, R), 3.0).fit(R, 12, np.random.default_rng(0))
    assert len(fitted) == 12
    i, j = np.triu_indices(6, 1)
    place = np.zeros((6, 6), int)
    place[i, j] = place[j, i] = np.arange(15)

    def kernel(x: np.ndarray, z: np.ndarray) -> float:
        moved = [x[place[g[i], g[j]]] for g in fitted.molecule.permutations]
        return sum(np.exp(-np.square(each - z).sum() / (2 * fitted.lengthscale_**2)) for each in moved)

    points, step = fitted._x[fitted._frame], 1e-3 * fitted._directions
    K = np.array(
        [
            [
                sum(a * b * kernel(points[c] + a * step[c], points[d] + b * step[d]) for a in (1, -1) for b in (1, -1))
                for d in range(12)
            ]
            for c in range(12)
        ]
    ) / (4 * 1e-6)
    np.testing.assert_allclose(fitted._root @ K @ fitted._root.T, np.eye(12), atol=1e-3)


def test_frames_in_another_order_are_recognised():
    charges, R = frames("CH3OH", 6)
    found, order = BondedMolecule.of(charges, R), [1, 0, 5, 3, 2, 4]
    assert (found.orders(charges, R) == np.arange(6)).all()
    places = found.orders(charges[:, order], R[:, order])
    np.testing.assert_array_equal(np.take_along_axis(charges[:, order], places, 1), charges)
    again = found.orders(
        *(
            np.take_along_axis(each, places.reshape(6, 6, *[1] * (each.ndim - 2)), 1)
            for each in (charges[:, order], R[:, order])
        )
    )
    assert (again == np.arange(6)).all()
    other, S = frames("NH3", 2)
    assert (found.orders(np.pad(other, ((0, 0), (0, 2))), np.pad(S, ((0, 0), (0, 2), (0, 0)))) == -1).all()

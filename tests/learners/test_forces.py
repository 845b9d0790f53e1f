"""Energies and forces of molecules: derivatives, symmetries, and the plain formula."""

import numpy as np
import pytest
import torch

from orbit.core.errors import InputError
from orbit.learners import ForceField

CHARGES = np.array([6, 8, 1, 1, 1, 1])
CORNERS = np.array([[0, 0, 0], [1.4, 0, 0], [-0.4, 1.0, 0], [-0.4, -0.5, 0.9], [-0.4, -0.5, -0.9], [1.7, 0.9, 0]])


def frames(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Methanol moved at random, with Morse potentials between all atoms, in shape (n, atoms, 4)."""
    R = CORNERS + 0.05 * np.random.default_rng(seed).standard_normal((n, 6, 3))
    vectors = R[:, :, None] - R[:, None]
    r = np.linalg.norm(vectors, axis=3) + np.eye(6)
    depth = np.sqrt(CHARGES[:, None] * CHARGES) * (1 - np.eye(6))
    decay = np.exp(1.4 - r)
    energies = (depth * ((1 - decay) ** 2 - 1)).sum((1, 2)) / 2
    slopes = 2 * depth * (1 - decay) * decay
    forces = -(slopes[..., None] * vectors / r[..., None]).sum(2)
    return np.concatenate([np.broadcast_to(CHARGES[:, None], (n, 6, 1)), R], 2), energies, forces


@pytest.fixture(scope="module")
def model():
    return ForceField(n_components=200, random_state=0).fit(*frames(40))


def padded(X: np.ndarray) -> np.ndarray:
    return np.concatenate([X, np.zeros((len(X), 2, 4))], 1)


def test_forces_are_minus_the_gradient_of_the_energy():
    """By central differences of the fourth order, whose rounding errors are those of energies / (12 step)."""
    model = ForceField(n_components=200, regularization=1e-8, random_state=0).fit(*frames(40))
    X, step = frames(1, 1)[0], 1e-3
    forces = np.zeros((6, 3))
    for i, k in np.ndindex(6, 3):
        moved = np.repeat(X, 4, 0)
        moved[:, i, 1 + k] += step * np.array([2, 1, -1, -2])
        forces[i, k] = -model.predict(moved)[0] @ [-1, 8, -8, 1] / (12 * step)
    np.testing.assert_allclose(model.predict(X)[1][0], forces, atol=1e-5 * np.abs(forces).max())


def test_it_learns_from_forces_what_energies_alone_do_not_tell(model):
    X, _, forces = frames(60, 2)
    errors = [
        np.abs(known.predict(X)[1] - forces).mean()
        for known in (model, ForceField(random_state=0).fit(*frames(40)[:2]))
    ]
    assert errors[0] < 0.1 * np.abs(forces).mean()
    assert errors[0] < 0.5 * errors[1]


def test_the_rows_of_training_are_the_prediction(model):
    """Two formulas: features of each landmark, and gradients through the environments of the molecule."""
    X, energies, _ = frames(3, 3)
    charges, positions = X[:, :, 0].astype(int), torch.from_numpy(X[:, :, 1:])
    rows, _ = model._equations(charges, positions, energies, np.zeros((3, 6, 3)))
    environments, distances = model._coefficients_with_distances
    roots = zip(model._roots.values(), environments, strict=True)
    w = np.concatenate([*(np.linalg.solve(root.T, c.numpy()) for root, c in roots), distances])
    predicted = model.predict(X)
    np.testing.assert_allclose(
        (rows @ w)[:3] / model.energy_weight + model._counts(charges) @ model.energies_, predicted[0], atol=1e-6
    )
    np.testing.assert_allclose(-(rows @ w)[3:], predicted[1].ravel(), atol=1e-6)


def test_turned_molecules_have_turned_forces_and_swapped_atoms_swapped_ones(model):
    X = frames(4, 4)[0]
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    order = [0, 1, 5, 3, 2, 4]
    moved = X.copy()
    moved[:, :, 1:] = X[:, :, 1:] @ Q.T + [1.0, 2.0, 3.0]
    energies, forces = model.predict(X)
    for other, expected in ((moved, forces @ Q.T), (X[:, order], forces[:, order])):
        found = model.predict(other)
        np.testing.assert_allclose(found[0], energies, atol=1e-9)
        np.testing.assert_allclose(found[1], expected, atol=1e-8)


def test_all_distances_of_one_molecule_lower_the_errors_and_others_are_predicted_without(model):
    X, _, forces = frames(60, 6)
    plain = ForceField(n_components=200, distances=0, random_state=0).fit(*frames(40))
    assert plain.distances_ is None
    assert model.distances_ is not None
    errors = [np.abs(known.predict(X)[1] - forces).mean() for known in (model, plain)]
    assert errors[0] < 0.7 * errors[1]
    water = np.array([[[8, 0, 0, 0], [1, 0, 0.76, 0.59], [1, 0, -0.76, 0.59]]])
    for found, expected in zip(model.predict(water), plain.predict(water), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    mixed = np.concatenate([padded(X[:2]), np.pad(water, ((0, 0), (0, 5), (0, 0)))])[[0, 2, 1]]
    np.testing.assert_allclose(model.predict(mixed)[0][[0, 2, 1]], [*model.predict(X[:2])[0], *model.predict(water)[0]])


def test_forces_add_up_to_zero_and_to_no_torque(model):
    X = frames(4, 5)[0]
    forces = model.predict(X)[1]
    np.testing.assert_allclose(forces.sum(1), 0, atol=1e-9)
    np.testing.assert_allclose(np.cross(X[:, :, 1:], forces).sum(1), 0, atol=1e-8)


def test_places_without_an_atom_change_nothing(model):
    X, energies, forces = frames(40)
    other = ForceField(n_components=200, random_state=0).fit(
        padded(X), energies, padded(forces[..., [0, 0, 1, 2]])[..., 1:]
    )
    found, expected = other.predict(padded(X)), model.predict(X)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6)
    np.testing.assert_allclose(found[1][:, :6], expected[1], atol=1e-5)
    assert not found[1][:, 6:].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, E, F: (X[..., :3], E, F), r"X: expected finite charges and positions of shape \(n, atoms, 4\)"),
        (lambda X, E, F: (X, E[:-1], F), r"energies: expected finite numbers of shape \(9,\), found shape \(8,\)"),
        (lambda X, E, F: (X, E, np.full_like(F, np.nan)), "forces: expected finite numbers"),
    ],
)
def test_wrong_arrays_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        ForceField().fit(*change(*frames(9)))


def test_new_elements_are_refused(model):
    X = frames(1)[0]
    X[:, 1, 0] = 16
    with pytest.raises(InputError, match=r"expected elements with the charges \[1, 6, 8\], found \[16\]"):
        model.predict(X)


def test_molecules_whose_derivatives_take_too_much_memory_are_refused():
    X = np.ones((2, 20_000, 4))
    with pytest.raises(InputError, match=r"^n_components: derivatives in a molecule of 20,000 atoms take at least"):
        ForceField().fit(X, np.zeros(2))
    with pytest.raises(InputError, match=r"^X: expected at least 2 molecules to learn from, found 1"):
        ForceField().fit(X[:1], np.zeros(1))

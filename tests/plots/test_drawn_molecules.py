"""Molecules drawn from their Coulomb matrices."""

import numpy as np
import pytest
from ase.build import molecule
from matplotlib.figure import Figure

from orbit import plots
from orbit.data.molecules import BOHR, coulomb_matrices
from orbit.plots.molecules import draw_molecule


def matrix_of(name: str, size: int) -> np.ndarray:
    atoms = molecule(name)
    more = size - len(atoms)
    charges = np.pad(atoms.numbers, (0, more))
    return coulomb_matrices(charges[None], np.pad(atoms.positions, ((0, more), (0, 0)))[None] / BOHR)[0]


def drawn(name: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """Centres of the circles, shape (atoms, 2), and the ends of the bonds, shape (bonds, 2, 2)."""
    ax = Figure().subplots()
    draw_molecule(ax, matrix_of(name, 15), matrix_of(name, 15))
    _, lines, circles = ax.collections
    return np.array([path.get_extents().get_points().mean(0) for path in circles.get_paths()]), lines.get_segments()


@pytest.mark.parametrize(("name", "atoms", "n_bonds"), [("C6H6", 12, 12), ("CH3CH2OH", 9, 8), ("H2O", 3, 2)])
def test_atoms_are_circles_and_bonds_lines(name, atoms, n_bonds):
    centres, bonds = drawn(name)
    assert len(centres) == atoms
    assert len(bonds) == n_bonds
    for end in np.concatenate(bonds):  # at atoms
        assert np.linalg.norm(centres - end, axis=1).min() == pytest.approx(0, abs=1e-6)


def test_flat_molecules_keep_their_distances():
    benzene = molecule("C6H6")
    centres, _ = drawn("C6H6")
    found = np.linalg.norm(centres[:, None] - centres, axis=2)
    np.testing.assert_allclose(np.sort(found, axis=None), np.sort(benzene.get_all_distances(), axis=None), atol=1e-5)


def test_errors_of_molecules_have_a_panel_for_each_and_name_elements():
    X = np.stack([matrix_of(name, 12) for name in ("C6H6", "H2O", "CH3Cl")])
    y = np.array([1.0, 2.0, 3.0])
    figure = plots.error_examples(X, y, y + [0.1, 0.3, 0.2], "regression", shown_as="molecule")
    (ax,) = figure.axes
    assert not ax.images
    assert [len(panel.collections[2].get_paths()) for panel in ax.child_axes] == [3, 5, 12]  # the worst first
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["H", "C", "O", "Cl"]


def test_a_matrix_without_atoms_is_an_empty_panel():
    ax = Figure().subplots()
    draw_molecule(ax, np.zeros((3, 3)), np.zeros((3, 3)))
    assert not ax.collections[2].get_paths()

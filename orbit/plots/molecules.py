"""Molecules, drawn from their Coulomb matrices, and crystals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orbit.learners.distances import bonds
from orbit.representations.molecules import ANGSTROM, SYMBOLS, charges_of, lengths_of
from orbit.representations.neighbours import CELL, has_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The usual colours of elements (Corey, Pauling and Koltun), and the map of those of all others, by their charges.
_COLOURS = {
    "H": "white", "C": "0.35", "N": "tab:blue", "O": "tab:red", "F": "yellowgreen", "P": "orange", "S": "gold",
    "Cl": "limegreen", "Br": "brown", "I": "purple",
}  # fmt: skip
_OTHERS = "tab20"
# Radii of circles in angstrom, of hydrogen and of others.
_RADIUS_OF_HYDROGEN, _RADIUS = 0.25, 0.38


def draw_molecule(ax: Axes, x: np.ndarray, reference: np.ndarray) -> None:
    """Draw atoms as circles and bonds as lines, in the plane of the first two principal axes of the atoms.

    ``x`` is a Coulomb matrix in atomic units, shape (atoms, atoms), or a crystal, shape (rows, 4), whose cell is drawn
    with the atoms in it; ``reference`` is not used. A molecule and its mirror image have the same matrix, and are drawn
    alike.
    """
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Circle

    charges, positions, r, edges = _of_crystal(x) if has_cells(x[None]) else _of_matrix(x)
    ends = positions[bonds(charges, r)][:, :, :2]
    radii = np.where(charges == 1, _RADIUS_OF_HYDROGEN, _RADIUS)
    ax.add_collection(LineCollection([*edges[:, :, :2]], colors="0.7", linewidths=0.6, zorder=0))
    ax.add_collection(LineCollection([*ends], colors="0.5", linewidths=1.0, zorder=1))
    near_last = np.argsort(positions[:, 2])
    circles = [Circle(tuple(positions[i, :2]), radii[i]) for i in near_last]
    colours = [_colour(charges[i]) for i in near_last]
    ax.add_collection(PatchCollection(circles, facecolors=colours, edgecolors="0.2", linewidths=0.4, zorder=2))
    half = 0.5 + float(abs(np.concatenate([positions, *edges])[:, :2]).max(initial=0.0))
    ax.set(xlim=(-half, half), ylim=(-half, half), aspect="equal")


def _of_matrix(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Charges, positions and distances of atoms from a Coulomb matrix, and no edges."""
    charges = charges_of(x[None])[0]
    is_atom = charges > 0
    r = lengths_of(x[None], charges[None])[0][np.ix_(is_atom, is_atom)] * ANGSTROM["bohr"]
    return charges[is_atom], _positions(r), r, np.zeros((0, 2, 3))


def _of_crystal(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Charges, positions and distances of the atoms in a cell, and its edges, shape (e, 2, 3)."""
    cell, is_atom = x[x[:, 0] == CELL, 1:], x[:, 0] > 0
    k = len(cell)
    corners = np.array([*np.ndindex(*k * (2,))]).reshape(-1, k)
    i, j = np.nonzero(abs(corners[:, None] - corners).sum(2) == 1)
    edges = (corners @ cell)[np.stack([i, j], 1)[i < j]]
    positions, middle = x[is_atom, 1:], cell.sum(0) / 2
    axes = np.linalg.svd(np.concatenate([positions - middle, corners @ cell - middle]), full_matrices=False)[2].T
    r = np.linalg.norm(positions[:, None] - positions, axis=2)
    np.fill_diagonal(r, np.inf)
    return x[is_atom, 0].astype(np.int64), (positions - middle) @ axes, r, (edges - middle) @ axes


def name_elements(ax: Axes, X: np.ndarray) -> None:
    """Name the colours of the elements in molecules, shape (n, atoms, atoms), or crystals, below the axes."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], ls="", marker="o", ms=5, mfc=_colour(z), mec="0.2", mew=0.4, label=SYMBOLS[z - 1])
        for z in np.unique(X[:, :, 0].astype(int) if has_cells(X) else charges_of(X))
        if z > 0
    ]
    style = {"frameon": False, "fontsize": 8, "handletextpad": 0.0, "columnspacing": 1.0}
    ax.legend(handles=handles, ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, 0.0), **style)


def _colour(charge: int) -> str:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return _COLOURS.get(SYMBOLS[charge - 1]) or to_hex(colormaps[_OTHERS](charge % 20))


def _positions(r: np.ndarray) -> np.ndarray:
    """Positions with distances ``r`` along their principal axes, shape (atoms, 3), by classical scaling."""
    n = len(r)
    squares = np.square(np.where(np.isfinite(r), r, 0))
    centred = np.eye(n) - 1 / max(n, 1)
    values, vectors = np.linalg.eigh(-0.5 * centred @ squares @ centred)
    positions = np.zeros((n, 3))
    k = min(3, n)
    positions[:, :k] = (vectors * np.sqrt(values.clip(0)))[:, ::-1][:, :k]
    return positions

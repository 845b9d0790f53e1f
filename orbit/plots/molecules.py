"""Molecules, drawn from their Coulomb matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from orbit.learners.distances import bonds
from orbit.representations.molecules import ANGSTROM, SYMBOLS, charges_of, lengths_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The usual colours of elements (Corey, Pauling and Koltun), and that of all others.
_COLOURS = {
    "H": "white", "C": "0.35", "N": "tab:blue", "O": "tab:red", "F": "yellowgreen", "P": "orange", "S": "gold",
    "Cl": "limegreen", "Br": "brown", "I": "purple",
}  # fmt: skip
_OTHER = "violet"
# Radii of circles in angstrom, of hydrogen and of others.
_RADIUS_OF_HYDROGEN, _RADIUS = 0.25, 0.38


def draw_molecule(ax: Axes, x: np.ndarray, reference: np.ndarray) -> None:
    """Draw atoms as circles and bonds as lines, in the plane of the first two principal axes of the atoms.

    ``x`` is a Coulomb matrix in atomic units, shape (atoms, atoms); ``reference`` is not used. A molecule and its
    mirror image have the same matrix, and are drawn alike.
    """
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Circle

    charges = charges_of(x[None])[0]
    is_atom = charges > 0
    r = lengths_of(x[None], charges[None])[0][np.ix_(is_atom, is_atom)] * ANGSTROM["bohr"]
    charges = charges[is_atom]
    positions = _positions(r)
    ends = positions[bonds(charges, r)][:, :, :2]
    radii = np.where(charges == 1, _RADIUS_OF_HYDROGEN, _RADIUS)
    ax.add_collection(LineCollection([*ends], colors="0.5", linewidths=1.0, zorder=1))
    near_last = np.argsort(positions[:, 2])
    circles = [Circle(tuple(positions[i, :2]), radii[i]) for i in near_last]
    colours = [_colour(charges[i]) for i in near_last]
    ax.add_collection(PatchCollection(circles, facecolors=colours, edgecolors="0.2", linewidths=0.4, zorder=2))
    half = 0.5 + (float(abs(positions[:, :2]).max()) if len(positions) else 0.0)
    ax.set(xlim=(-half, half), ylim=(-half, half), aspect="equal")


def name_elements(ax: Axes, X: np.ndarray) -> None:
    """Name the colours of the elements in molecules, shape (n, atoms, atoms), below the axes."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], ls="", marker="o", ms=5, mfc=_colour(z), mec="0.2", mew=0.4, label=SYMBOLS[z - 1])
        for z in np.unique(charges_of(X))
        if z > 0
    ]
    style = {"frameon": False, "fontsize": 8, "handletextpad": 0.0, "columnspacing": 1.0}
    ax.legend(handles=handles, ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, 0.0), **style)


def _colour(charge: int) -> str:
    return _COLOURS.get(SYMBOLS[charge - 1], _OTHER)


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

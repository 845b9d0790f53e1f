"""Neighbours of atoms, also in other cells of a crystal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orbit.core.errors import InputError

#: In place of a charge in points of shape (rows, 4): the row has a vector of the cell, in angstrom. There are as many
#: as there are directions in which the atoms repeat.
CELL = -1
_MAX_CHARGE = 118
# Volumes of flat cells, as shares of a cuboid with such edges, and the distance of atoms at one place in angstrom.
_FLAT, _SAME = 1e-6, 1e-3


def has_cells(X: np.ndarray) -> bool:
    """Whether points, shape (n, rows, 4), are atoms with charges and positions, some of them in cells.

    >>> cell = np.array([[13, 0, 0, 0], [CELL, 0, 2, 2], [CELL, 2, 0, 2], [CELL, 2, 2, 0]])
    >>> has_cells(cell[None]), has_cells(cell[None, :1])
    (True, False)
    """
    if X.ndim != 3 or X.shape[2] != 4:
        return False
    charges = X[:, :, 0]
    vectors = (charges == CELL).sum(1)
    possible = (charges >= CELL).all() and (charges == np.rint(charges)).all() and (charges[vectors > 0, 0] > 0).all()
    return bool(vectors.any() and possible and vectors.max() <= 3)


def charges_of_rows(X: np.ndarray, label: str) -> np.ndarray:
    """Nuclear charges in points of shape (n, rows, 4), ``CELL`` beside vectors of cells, 0 without an atom.

    Raises
    ------
    InputError
        If the first column has other numbers, naming the ``label`` of what they are for.
    """
    charges = np.rint(X[:, :, 0]).astype(np.int64)
    if not ((charges == X[:, :, 0]) & (charges >= CELL) & (charges <= _MAX_CHARGE)).all():
        raise InputError(
            f"{label}: expected nuclear charges up to {_MAX_CHARGE} in the first column, {CELL} beside vectors of the "
            "cell, 0 in all further rows"
        )
    return charges


@dataclass(frozen=True)
class Neighbours:
    """Pairs of a central atom and another one within a cutoff, in ascending order of molecule, centre and other.

    Attributes
    ----------
    molecule, centre, other : int arrays, shape (m,)
    r : array, shape (m,)
        Their distances.
    offsets : array, shape (m, 3), or None
        What leads from the position of the other one to its image that is meant; None where there are no images.
    """

    molecule: np.ndarray
    centre: np.ndarray
    other: np.ndarray
    r: np.ndarray
    offsets: np.ndarray | None = None

    def __getitem__(self, rows: np.ndarray) -> Neighbours:
        offsets = None if self.offsets is None else self.offsets[rows]
        return Neighbours(self.molecule[rows], self.centre[rows], self.other[rows], self.r[rows], offsets)

    @classmethod
    def of_distances(cls, distances: np.ndarray, cutoff: float) -> Neighbours:
        """Those in matrices of shape (n, atoms, atoms), infinite where there is no pair."""
        molecule, centre, other = np.nonzero(distances < cutoff)
        return cls(molecule, centre, other, distances[molecule, centre, other])

    @classmethod
    def in_cells(cls, charges: np.ndarray, positions: np.ndarray, cutoff: float) -> Neighbours:
        """Those of atoms in cells, with all images, by ASE; charges, shape (n, rows), are ``CELL`` in rows of vectors.

        Raises
        ------
        InputError
            If ASE is not installed, vectors of a cell span no volume, or atoms are at one place.
        """
        each = [_in_cell(z, x, cutoff) for z, x in zip(charges, positions, strict=True)]
        molecule = np.repeat(np.arange(len(each)), [len(one[0]) for one in each])
        return cls(molecule, *map(np.concatenate, zip(*each, strict=True)))

    def once(self) -> Neighbours:
        """Each pair in one direction."""
        is_one = self.centre < self.other
        if self.offsets is not None:  # an atom and its image, of which there is one to either side
            x, y, z = self.offsets.T
            ahead = np.where(x != 0, x, np.where(y != 0, y, z)) > 0
            is_one |= (self.centre == self.other) & ahead
        return self[is_one]

    def couples(self) -> tuple[np.ndarray, np.ndarray]:
        """The entries, shape (k,), of the first and the second of two neighbours of one atom, for all such two."""
        starts = np.flatnonzero(np.diff(self.molecule, prepend=-1) | np.diff(self.centre, prepend=-1))
        sizes = np.diff(starts, append=len(self.r))
        later = np.repeat(starts + sizes, sizes) - np.arange(len(self.r)) - 1
        first = np.repeat(np.arange(len(self.r)), later)
        return first, first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)


def _in_cell(
    charges: np.ndarray, positions: np.ndarray, cutoff: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of centres and others, distances and offsets of one cell."""
    try:
        from ase.geometry import complete_cell
        from ase.neighborlist import primitive_neighbor_list
    except ModuleNotFoundError as error:
        raise InputError("crystals need ASE: pip install 'orbit-kernels[chemistry]'") from error
    atoms, vectors = np.flatnonzero(charges > 0), positions[charges == CELL]
    cell, pbc = np.zeros((3, 3)), np.arange(3) < len(vectors)
    cell[: len(vectors)] = vectors
    cell = complete_cell(cell)
    if not abs(np.linalg.det(cell)) > _FLAT * np.linalg.norm(cell, axis=1).prod():
        raise InputError(f"expected vectors of a cell that span a volume, found {vectors.tolist()}")
    i, j, r, S = primitive_neighbor_list("ijdS", pbc, cell, positions[atoms], cutoff)
    if r.min(initial=np.inf) < _SAME:
        raise InputError(
            "two atoms of a crystal are at the same place: expected one at the boundary of the cell, not its images too"
        )
    order = np.lexsort((*S.T, j, i))
    return atoms[i][order], atoms[j][order], r[order], (S @ cell)[order]

"""Representations of molecules, from Coulomb matrices: bags of bonds, and the environment of each atom."""

from __future__ import annotations

import logging

import numpy as np

from orbit.core.errors import InputError
from orbit.registry import register
from orbit.representations.base import Representation

log = logging.getLogger(__name__)

_MAX_CHARGE = 118


class _Molecules(Representation):
    """A representation of Coulomb matrices: ``0.5 Z ** 2.4`` on the diagonal, ``Z Z' / distance`` elsewhere, 0 if there
    is no atom."""

    takes_vectors = False

    def _charges(self, X: np.ndarray) -> np.ndarray:
        """Nuclear charges, shape (n, atoms), 0 where there is no atom."""
        if X.ndim != 3 or X.shape[1] != X.shape[2]:
            raise self._refuse(X, "Coulomb matrices of shape (atoms, atoms)")
        if (X < 0).any():
            raise InputError(f"{self.label()}: a Coulomb matrix has no negative entries")
        diagonal = np.diagonal(X, axis1=1, axis2=2).astype(np.float64)
        charges = np.rint((2 * diagonal) ** (1 / 2.4))
        if (charges > _MAX_CHARGE).any():
            raise InputError(
                f"{self.label()}: the diagonal of a Coulomb matrix is 0.5 Z ** 2.4 with charges Z up to {_MAX_CHARGE}, "
                f"found {diagonal.max():g}"
            )
        return charges.astype(np.int64)


@register("representation", "bag_of_bonds")
class BagOfBonds(_Molecules):
    """Entries of a Coulomb matrix, sorted within each element and each pair of elements (Hansen et al. 2015).

    A bag holds the entries of all atoms of one element, or of all pairs of two elements, in descending order, filled
    with zeros to the largest number in the training points. Bags stand one after the other, those of single elements
    first. The nuclear charges are read off the diagonal, ``0.5 Z ** 2.4``.

    With the Laplacian kernel, this is a strong baseline for energies of molecules.

    Attributes
    ----------
    bags_ : dict of (int, int) to int
        Length of the bag of each pair of nuclear charges; ``(0, Z)`` are the atoms of charge Z themselves.

    Raises
    ------
    InputError
        If points are not square matrices, or have negative entries or charges above 118.

    Warns
    -----
    If a molecule has elements that no training molecule has, or more atoms of one: the bags have no place for some of
    its entries, which are left out, the smallest of a bag first.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import BagOfBonds
    >>> water = np.array([[73.52, 8.36, 8.36], [8.36, 0.5, 0.66], [8.36, 0.66, 0.5]])
    >>> bags = BagOfBonds().fit(water[None])
    >>> bags.transform(water[None])
    array([[ 0.5 ,  0.5 , 73.52,  0.66,  8.36,  8.36]])
    >>> bags.bags_
    {(0, 1): 2, (0, 8): 1, (1, 1): 1, (1, 8): 2}
    """

    def __init__(self) -> None:
        pass

    def _fit(self, X: np.ndarray) -> None:
        codes, _ = self._pairs(X)
        found = np.unique(codes[codes > 0])
        lengths = {divmod(int(code), _MAX_CHARGE + 1): int((codes == code).sum(1).max()) for code in found}
        self.bags_ = lengths or {(0, 1): 1}  # molecules without atoms keep one column of zeros

    def _transform(self, X: np.ndarray) -> np.ndarray:
        codes, values = self._pairs(X)
        bags, unknown, too_long = [], codes > 0, np.zeros(len(X), bool)
        for (light, heavy), length in self.bags_.items():
            members = codes == light * (_MAX_CHARGE + 1) + heavy
            falling = -np.sort(-np.where(members, values, 0), axis=1)
            bags.append(falling[:, :length])
            unknown &= ~members
            too_long |= members.sum(1) > length
        if (left_out := too_long | unknown.any(1)).any():
            log.warning(
                "representation=bag_of_bonds: %d of %d molecules have elements, or more atoms of an element, than any "
                "training molecule; the smallest entries of their bags are left out",
                left_out.sum(),
                len(X),
            )
        return np.concatenate(bags, axis=1)

    def _pairs(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A code of the charges of each atom and of each pair of atoms, 0 if there is none, and their entries."""
        charges = self._charges(X)
        i, j = np.triu_indices(X.shape[1], 1)
        light, heavy = np.minimum(charges[:, i], charges[:, j]), np.maximum(charges[:, i], charges[:, j])
        codes = np.where(light > 0, light * (_MAX_CHARGE + 1) + heavy, 0)
        diagonal = np.diagonal(X, axis1=1, axis2=2)
        return np.concatenate([charges, codes], 1), np.concatenate([diagonal, X[:, i, j]], 1)

"""Representations of molecules, from Coulomb matrices: bags of bonds, and smooth histograms of distances and angles."""

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from orbit.core.errors import InputError
from orbit.core.params import PositiveFloat
from orbit.registry import register
from orbit.representations.base import Representation
from orbit.representations.matrices import is_symmetric

#: Symbols of the elements in the order of their nuclear charges.
SYMBOLS = (
    "H", "He", "Li", "Be", "B", "C", "N", "O", "F", "Ne", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca",
    "Sc", "Ti", "V", "Cr", "Mn", "Fe", "Co", "Ni", "Cu", "Zn", "Ga", "Ge", "As", "Se", "Br", "Kr", "Rb", "Sr", "Y",
    "Zr", "Nb", "Mo", "Tc", "Ru", "Rh", "Pd", "Ag", "Cd", "In", "Sn", "Sb", "Te", "I", "Xe", "Cs", "Ba", "La", "Ce",
    "Pr", "Nd", "Pm", "Sm", "Eu", "Gd", "Tb", "Dy", "Ho", "Er", "Tm", "Yb", "Lu", "Hf", "Ta", "W", "Re", "Os", "Ir",
    "Pt", "Au", "Hg", "Tl", "Pb", "Bi", "Po", "At", "Rn", "Fr", "Ra", "Ac", "Th", "Pa", "U", "Np", "Pu", "Am", "Cm",
    "Bk", "Cf", "Es", "Fm", "Md", "No", "Lr", "Rf", "Db", "Sg", "Bh", "Hs", "Mt", "Ds", "Rg", "Cn", "Nh", "Fl", "Mc",
    "Lv", "Ts", "Og",
)  # fmt: skip
_MAX_CHARGE = len(SYMBOLS)

# Distances in angstrom that no two atoms of a molecule have: below these of hydrogen and of others, as of bonds in bohr
# that are taken for angstrom the other way round, and of a hydrogen from its neighbour above the last one.
_LEAST_OF_HYDROGEN, _LEAST_OF_OTHERS, _MOST_OF_HYDROGEN = 0.65, 0.95, 1.75

# The many-body representation, in angstrom: centres and widths of inverse distances and of mean distances, number of
# angular functions and weight of angles, chosen on training molecules of QM7, fold 0.
_IN_ANGSTROM = {"angstrom": 1.0, "bohr": 0.529177210903}
_INVERSE_DISTANCES, _INVERSE_WIDTH = np.linspace(0.1, 1.4, 53), 0.03
_SHORTEST, _MEAN_DISTANCES, _MEAN_WIDTH = 0.8, 8, 0.5
_ANGULAR, _ANGLE_WEIGHT = 4, 0.7
# Entries of an array (molecules, atoms, atoms, atoms): molecules are processed in blocks of at most this size.
_BLOCK = 2**19


def check_unit(charges: np.ndarray, lengths: np.ndarray, unit: str, key: str) -> None:
    """Raise ``InputError`` if most of the molecules have distances that none has, and not so in the other unit.

    Parameters
    ----------
    charges : int array, shape (n, atoms), 0 where there is no atom
    lengths : array, shape (n, atoms, atoms)
        Distances in ``unit``; infinite on the diagonal and where there is no atom.
    unit : {"angstrom", "bohr"}
    key : the configuration key of the unit

    Examples
    --------
    >>> import numpy as np
    >>> lengths = np.full((1, 2, 2), np.inf)
    >>> lengths[0, [0, 1], [1, 0]] = 0.74  # hydrogen
    >>> check_unit(np.ones((1, 2), int), lengths, "bohr", "dataset.unit")
    Traceback (most recent call last):
        ...
    orbit.core.errors.InputError: dataset.unit: expected lengths in bohr, but 1 of 1 molecules ...
    """
    (other,) = {*_IN_ANGSTROM} - {unit}
    problem = _implausible(charges, lengths * _IN_ANGSTROM[unit])
    if problem and not _implausible(charges, lengths * _IN_ANGSTROM[other]):
        raise InputError(f"{key}: expected lengths in {unit}, but {problem}; set {key}={other}")


def _implausible(charges: np.ndarray, distances: np.ndarray) -> str:
    """What is wrong with the distances, in angstrom, in more than half of the molecules."""
    is_light = charges == 1
    limits = np.where(is_light[:, :, None] | is_light[:, None], _LEAST_OF_HYDROGEN, _LEAST_OF_OTHERS)
    of_hydrogen = np.where(is_light, distances.min(2, initial=np.inf), np.inf).min(1, initial=np.inf)
    close = (distances < limits).any((1, 2))
    far = (of_hydrogen > _MOST_OF_HYDROGEN) & np.isfinite(of_hydrogen)
    for wrong, what in ((close, "atoms closer than any bond"), (far, "hydrogens farther from all atoms than any bond")):
        if wrong.sum() > len(charges) / 2:
            shortest = distances[wrong].min() if wrong is close else of_hydrogen[wrong].min()
            return f"{wrong.sum()} of {len(charges)} molecules have {what}, e.g. {shortest:.3g} angstrom"
    return ""


class _Molecules(Representation):
    """A representation of Coulomb matrices: ``0.5 Z ** 2.4`` on the diagonal, ``Z Z' / distance`` elsewhere, 0 if there
    is no atom."""

    takes_vectors = False

    def transform(self, X):
        """The represented molecules. ``X``: array, shape ``(n, atoms, atoms)``, of any number of atoms."""
        shape = np.shape(X)
        if len(shape) != 3 or shape[1] != shape[2]:
            return super().transform(X)  # which refuses them
        check_is_fitted(self)
        return self._transform(check_array(X, dtype=[np.float64, np.float32], allow_nd=True))

    def _charges(self, X: np.ndarray) -> np.ndarray:
        """Nuclear charges, shape (n, atoms), 0 where there is no atom."""
        if X.ndim != 3 or X.shape[1] != X.shape[2]:
            raise self._refuse(X, "Coulomb matrices of shape (atoms, atoms)")
        if not is_symmetric(X):
            raise InputError(f"{self.label()}: a Coulomb matrix is symmetric")
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

    def _new_elements(self, X: np.ndarray, known: Sequence[int] | np.ndarray) -> str:
        """The elements that are not known, in brackets."""
        new = np.setdiff1d(self._charges(X), [0, *known])
        return f" (new elements: {', '.join(SYMBOLS[z - 1] for z in new)})" if len(new) else ""


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
            warnings.warn(
                f"representation=bag_of_bonds: {left_out.sum()} of {len(X)} molecules have elements, or more atoms of "
                f"an element, than any training molecule{self._new_elements(X, [z for _, z in self.bags_])}; the "
                "smallest entries of their bags are left out",
                stacklevel=2,
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


@register("representation", "many_body")
@dataclass(eq=False, repr=False)
class ManyBody(_Molecules):
    """Smooth histograms of the elements, distances and angles in a molecule, after Huo and Rupp (2022).

    Three parts are concatenated. Lengths are in angstrom, and f(r) = (1 + cos(pi r / cutoff)) / 2 up to the cutoff:

    - for each element, the number of its atoms;
    - for each pair of elements, sums over their pairs of atoms of f(r) / r^2 exp(-(1/r - c)^2 / (2 0.03^2)), where r is
      the distance and c one of 53 values from 0.1 to 1.4;
    - for each element of a central atom and each pair of elements of two others, at distances r and r' from it and with
      an angle t between them, sums of 0.7 f(r) f(r') / (r r') exp(-((r + r') / 2 - c)^2 / (2 0.5^2)) cos(m t), for
      m from 0 to 3 and eight values c from 0.8 to 0.95 ``angle_cutoff``.

    They depend neither on the order of the atoms nor on position, orientation or reflection of the molecule. With the
    Gaussian kernel they have the smallest error of all rows of ``experiment=qm7``.

    Parameters
    ----------
    unit : {"bohr", "angstrom"}
        The unit of the distances in the Coulomb matrices; QM7 has bohr.
    cutoff : float > 0
        Angstrom; pairs of atoms at this distance or a larger one are left out.
    angle_cutoff : float > 0
        Angstrom; the same for the distances of two neighbours from the central atom.

    Attributes
    ----------
    elements_ : int array
        Nuclear charges of the training molecules, in ascending order.
    pairs_, triples_ : list of tuple of int
        Pairs, and triples with the central element first, that a training molecule has, in the order of the columns.

    Raises
    ------
    InputError
        If points are not square matrices, have negative entries or charges above 118, or if most have distances that no
        molecule has, as in another ``unit``.

    Warns
    -----
    If a molecule has elements, or pairs or triples of them, that no training molecule has: those are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import ManyBody
    >>> water = np.array([[73.52, 8.36, 8.36], [8.36, 0.5, 0.66], [8.36, 0.66, 0.5]])
    >>> many_body = ManyBody(unit="angstrom").fit(water[None])
    >>> many_body.pairs_, many_body.triples_
    ([(1, 1), (1, 8)], [(1, 1, 8), (8, 1, 1)])
    >>> many_body.transform(water[None]).shape
    (1, 172)
    """

    unit: Literal["bohr", "angstrom"] = "bohr"
    cutoff: PositiveFloat = 6.0
    angle_cutoff: PositiveFloat = 4.0

    def _fit(self, X: np.ndarray) -> None:
        charges = self._charges(X)
        check_unit(charges, self._lengths(X, charges), self.unit, "representation.unit")
        found = np.unique(charges[charges > 0])
        self.elements_ = found if len(found) else np.array([1])  # molecules without atoms keep one column of zeros
        counts = self._counts(charges)
        z = self.elements_.tolist()
        pairs = itertools.combinations_with_replacement(z, 2)
        self.pairs_ = [pair for pair in pairs if self._occurs(pair, counts)]
        triples = ((c, *pair) for c in z for pair in itertools.combinations_with_replacement(z, 2))
        self.triples_ = [triple for triple in triples if self._occurs(triple, counts)]

    def _transform(self, X: np.ndarray) -> np.ndarray:
        atoms = X.shape[1]
        step = max(1, _BLOCK // atoms**3)
        blocks = [self._columns(X[start : start + step]) for start in range(0, len(X), step)]
        if unknown := sum(block[1] for block in blocks):
            warnings.warn(
                f"representation=many_body: {unknown} of {len(X)} molecules have elements, or pairs or triples of "
                f"elements, that no training molecule has{self._new_elements(X, self.elements_)}; those are left out",
                stacklevel=2,
            )
        return np.concatenate([block[0] for block in blocks])

    def _columns(self, X: np.ndarray) -> tuple[np.ndarray, int]:
        """All columns for some molecules, and how many of them have what no training molecule has."""
        charges = self._charges(X)
        species = np.where(np.isin(charges, self.elements_), np.searchsorted(self.elements_, charges), -1)
        unknown = ((charges > 0) & (species < 0)).any(1)
        distances = self._lengths(X, charges) * _IN_ANGSTROM[self.unit]
        distances[(species < 0)[:, :, None] | (species < 0)[:, None]] = np.inf
        pairs, unknown_pairs = self._pair_sums(species, distances)
        triples, unknown_triples = self._triple_sums(species, distances)
        columns = [self._counts(charges), pairs, _ANGLE_WEIGHT * triples]
        return np.concatenate(columns, axis=1).astype(X.dtype), int((unknown | unknown_pairs | unknown_triples).sum())

    def _pair_sums(self, species: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The columns of pairs, shape (n, columns), and the molecules with pairs that no training molecule has."""
        i, j = np.triu_indices(species.shape[1], 1)
        molecule, pair = np.nonzero(distances[:, i, j] < self.cutoff)
        i, j = i[pair], j[pair]
        r = distances[molecule, i, j]
        values = _bumps(1 / r, _INVERSE_DISTANCES, _INVERSE_WIDTH) * (_falloff(r, self.cutoff) / r**2)[:, None]
        kinds = self._kinds(self.pairs_, np.sort([species[molecule, i], species[molecule, j]], axis=0))
        return _sums(values, molecule, kinds, len(species), len(self.pairs_))

    def _triple_sums(self, species: np.ndarray, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The columns of triples, not weighted, and the molecules with triples that no training molecule has."""
        i, j = np.triu_indices(species.shape[1], 1)
        near = distances < self.angle_cutoff
        molecule, centre, pair = np.nonzero(near[:, :, i] & near[:, :, j])
        i, j = i[pair], j[pair]
        r, s = distances[molecule, centre, i], distances[molecule, centre, j]
        cosine = (r**2 + s**2 - distances[molecule, i, j] ** 2) / (2 * r * s)
        angle = np.arccos(np.clip(cosine, -1, 1))  # a matrix without positions in space may exceed one
        means = np.linspace(_SHORTEST, 0.95 * self.angle_cutoff, _MEAN_DISTANCES)
        radial = _bumps((r + s) / 2, means, _MEAN_WIDTH)
        radial *= (_falloff(r, self.angle_cutoff) * _falloff(s, self.angle_cutoff) / (r * s))[:, None]
        values = radial[:, :, None] * np.cos(angle[:, None] * np.arange(_ANGULAR))[:, None]
        others = np.sort([species[molecule, i], species[molecule, j]], axis=0)
        kinds = self._kinds(self.triples_, np.stack([species[molecule, centre], *others]))
        return _sums(
            values.reshape(len(r), _MEAN_DISTANCES * _ANGULAR), molecule, kinds, len(species), len(self.triples_)
        )

    def _kinds(self, known: Sequence[tuple[int, ...]], species: np.ndarray) -> np.ndarray:
        """The position of each column of ``species`` among the known tuples of charges, -1 if it is none of them."""
        table = np.full((len(self.elements_),) * len(species), -1)
        for kind, charges in enumerate(known):
            table[tuple(np.searchsorted(self.elements_, charges))] = kind
        return table[tuple(species)]

    def _lengths(self, X: np.ndarray, charges: np.ndarray) -> np.ndarray:
        """Distances in ``unit``, shape (n, atoms, atoms); infinite on the diagonal and where there is no atom."""
        products = (charges[:, :, None] * charges[:, None]).astype(np.float64)
        products[:, range(X.shape[1]), range(X.shape[1])] = 0
        is_pair = (products > 0) & (X > 0)
        return np.divide(products, X, out=np.full(X.shape, np.inf), where=is_pair)

    def _counts(self, charges: np.ndarray) -> np.ndarray:
        """Atoms of each element, shape (n, elements)."""
        return np.stack([(charges == z).sum(1) for z in self.elements_], axis=1)

    def _occurs(self, charges: tuple[int, ...], counts: np.ndarray) -> bool:
        """Whether some molecule has atoms of these charges, given its number of atoms of each element."""
        needed = [charges.count(z) for z in self.elements_.tolist()]
        return bool((counts >= needed).all(1).any())


def _falloff(r: np.ndarray, cutoff: float) -> np.ndarray:
    """One at distance zero, zero at the cutoff."""
    return (1 + np.cos(np.pi * r / cutoff)) / 2


def _bumps(values: np.ndarray, centres: np.ndarray, width: float) -> np.ndarray:
    """Gaussian functions of each value, shape (values, centres)."""
    return np.exp(-0.5 * ((values[:, None] - centres) / width) ** 2)


def _sums(
    values: np.ndarray, molecule: np.ndarray, kinds: np.ndarray, n: int, n_kinds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of rows by molecule and kind, shape (n, n_kinds * columns), and the molecules with rows of no known kind."""
    known = kinds >= 0
    unknown = np.zeros(n, bool)
    unknown[molecule[~known]] = True
    rows = molecule[known] * n_kinds + kinds[known]
    which = sparse.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n * n_kinds, len(rows)))
    return (which @ values[known]).reshape(n, n_kinds * values.shape[1]), unknown

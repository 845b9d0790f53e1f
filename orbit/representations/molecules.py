"""Representations of molecules, from Coulomb matrices: bags of bonds, and smooth histograms of distances and angles."""

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from orbit.core.errors import InputError
from orbit.core.linalg import pivoted_root
from orbit.core.params import PositiveFloat
from orbit.registry import register
from orbit.representations.base import Representation
from orbit.representations.matrices import is_symmetric
from orbit.representations.neighbours import CELL, Neighbours, charges_of_rows, has_cells

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

# Covalent radii of the elements up to curium in picometre (Cordero et al. 2008).
_RADII = (
    31, 28, 128, 96, 84, 76, 71, 66, 57, 58, 166, 141, 121, 111, 107, 105, 102, 106, 203, 176, 170, 160, 153,
    139, 139, 132, 126, 124, 132, 122, 122, 120, 119, 120, 120, 116, 220, 195, 190, 175, 164, 154, 147, 146,
    142, 139, 145, 144, 142, 139, 139, 138, 139, 140, 244, 215, 207, 204, 203, 201, 199, 198, 198, 196, 194,
    192, 192, 189, 190, 187, 187, 175, 170, 162, 151, 144, 141, 136, 136, 132, 145, 146, 148, 140, 150, 150,
    260, 221, 215, 206, 200, 196, 190, 187, 180, 169,
)  # fmt: skip
# Distances are divided by the mean of these over the two atoms, so that bonds of one order have about the same numbers
# for all elements: radii in units of that of carbon, and 1 for hydrogen, which shares nothing with others. Elements
# beyond curium have its radius.
_RELATIVE_RADII = np.pad(np.array(_RADII) / _RADII[5], (1, _MAX_CHARGE - len(_RADII)), mode="edge")
_RELATIVE_RADII[:2] = 1

# Distances in angstrom that no two atoms of a molecule have: below these of hydrogen and of others, as of bonds in bohr
# that are taken for angstrom the other way round, and of a hydrogen from its neighbour above the last one.
_LEAST_OF_HYDROGEN, _LEAST_OF_OTHERS, _MOST_OF_HYDROGEN = 0.65, 0.95, 1.75

#: Units of length in angstrom.
ANGSTROM = {"angstrom": 1.0, "bohr": 0.529177210903}

# The many-body representation, in angstrom and radian: lengthscales of pairs and triples of atoms, the kernel of two
# elements that are not hydrogen, and the most of a kernel value that landmarks may miss. Chosen on training molecules
# of QM7, fold 0, by errors on others of them.
_PAIR_WIDTH, _TRIPLE_WIDTHS, _SIMILARITY, _MISSING = 0.042, (0.75, 0.42, 0.45), 0.5, {2: 0.05, 3: 0.05}
# Landmarks are chosen among at least 50 terms of the same elements, and 1,000 of a kind. Columns with a smaller share
# of the mean square, estimated from these, are left out. Both are finer for crystals, whose neighbours are farther: on
# 600 generated ones, a Lennard-Jones mixture, and with landmarks up to the shortest distances, whose energies are the
# largest, errors are 0.06 in place of 1.20 meV per atom.
_OF_ELEMENTS, _OF_KIND, _SHARE = 50, 1000, 1e-7
_MISSING_IN_CELLS, _SHARE_IN_CELLS = {2: 1e-4, 3: 0.05}, 1e-9
# Entries of an array (molecules, atoms, atoms, atoms): molecules are processed in blocks of at most this size.
_BLOCK = 2**20
# Couples of neighbours of an atom of a crystal, about.
_COUPLES = 300

#: Which atoms of a pair or a triple are not hydrogen; of a triple, the centre and two others in ascending order.
Kind = tuple[bool, ...]


@dataclass(frozen=True)
class _Terms:
    """Pairs or triples of one kind in some molecules: molecule, code of the elements, t and weight of each."""

    molecule: np.ndarray
    codes: np.ndarray
    t: np.ndarray
    weights: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> "_Terms":
        return _Terms(self.molecule[rows], self.codes[rows], self.t[rows], self.weights[rows])


#: Numbers t of some terms of each code, and the sum of all squared weights.
_Sample = dict[int, tuple[np.ndarray, float]]


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
    (other,) = {*ANGSTROM} - {unit}
    problem = _implausible(charges, lengths * ANGSTROM[unit])
    if problem and not _implausible(charges, lengths * ANGSTROM[other]):
        raise InputError(f"{key}: expected lengths in {unit}, but {problem}; set {key}={other}")


def charges_of(X: np.ndarray) -> np.ndarray:
    """Nuclear charges of Coulomb matrices, shape (n, atoms), 0 where there is no atom.

    >>> charges_of(np.array([[[73.52, 8.36], [8.36, 0.5]]]))
    array([[8, 1]])
    """
    return np.rint((2 * np.diagonal(X, axis1=1, axis2=2).astype(np.float64)) ** (1 / 2.4)).astype(np.int64)


def lengths_of(X: np.ndarray, charges: np.ndarray) -> np.ndarray:
    """Distances in Coulomb matrices, shape (n, atoms, atoms); infinite on the diagonal and without an atom.

    >>> lengths_of(np.array([[[0.5, 0.25], [0.25, 0.5]]]), np.array([[1, 1]]))
    array([[[inf,  4.],
            [ 4., inf]]])
    """
    products = (charges[:, :, None] * charges[:, None]).astype(np.float64)
    products[:, range(X.shape[1]), range(X.shape[1])] = 0
    is_pair = (products > 0) & (X > 0)
    return np.divide(products, X, out=np.full(X.shape, np.inf), where=is_pair)


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
    cells_ = False  # whether points are atoms in cells

    def transform(self, X):
        """The represented molecules. ``X``: array, shape ``(n, atoms, atoms)``, of any number of atoms."""
        check_is_fitted(self)
        shape = np.shape(X)
        if len(shape) != 3 or shape[2] != (4 if self.cells_ else shape[1]):
            return super().transform(X)  # which refuses them
        return self._transform(check_array(X, dtype=[np.float64, np.float32], allow_nd=True))

    def _charges(self, X: np.ndarray) -> np.ndarray:
        """Nuclear charges, shape (n, atoms), 0 where there is no atom."""
        if self.cells_:
            return charges_of_rows(X, self.label())
        if X.ndim != 3 or X.shape[1] != X.shape[2]:
            raise self._refuse(X, "Coulomb matrices of shape (atoms, atoms)")
        if not is_symmetric(X):
            raise InputError(f"{self.label()}: a Coulomb matrix is symmetric")
        if (X < 0).any():
            raise InputError(f"{self.label()}: a Coulomb matrix has no negative entries")
        charges = charges_of(X)
        if (charges > _MAX_CHARGE).any():
            largest = np.diagonal(X, axis1=1, axis2=2).max()
            raise InputError(
                f"{self.label()}: the diagonal of a Coulomb matrix is 0.5 Z ** 2.4 with charges Z up to {_MAX_CHARGE}, "
                f"found {largest:g}"
            )
        return charges

    def _new_elements(self, X: np.ndarray, known: Sequence[int] | np.ndarray) -> str:
        """The elements that are not known, in brackets."""
        new = np.setdiff1d(self._charges(X), [CELL, 0, *known])
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
    """Numbers of atoms, and smooth distributions of the pairs and triples of atoms in a molecule.

    Lengths are in angstrom, and f(r) = (1 + cos(pi r / cutoff)) / 2 up to the cutoff. A molecule has a term of weight w

    - for each pair of atoms, w = f(r) / r^3, where r is the distance, with t = (1/q) / 0.042;
    - for each central atom and each pair of others, at distances r and r' from it, u from each other and with an angle
      a between them, w = f(r) f(r') / (r r' u), with t = (q + q', 2 |q - q'|, a) / (0.75, 0.42, 0.45).

    q is the distance r divided by the mean relative radius of its two atoms: the covalent radius divided by that of
    carbon, and 1 for hydrogen. A single bond has about the same q between any two heavy elements, and so has a double
    bond.

    The columns are the number of the atoms of each element, and Nyström features: the inner product of these of two
    molecules is, up to their error, the sum of w w' e(Z, Z') exp(-|t - t'|^2 / 2) over all combinations of their pairs,
    and of their triples. e is the product, over the two or three atoms, of a kernel of two elements: 1 if they are the
    same, 0.5 if they are different and neither is hydrogen, and 0 otherwise. The two others of a triple are in
    ascending order. So what is learned of one element tells something of all but hydrogen.

    They depend neither on the order of the atoms nor on position, orientation or reflection of the molecule. With the
    Gaussian kernel they have the smallest error of all rows of ``experiment=qm7``.

    Points may also be crystals, shape (rows, 4): a charge and a position in angstrom in the row of each atom, and -1
    and a vector of the cell in one to three further rows. Pairs and triples are then those of the atoms of the cell
    with all images within the cutoffs, and columns are divided by the number of atoms in the cell, so that they do not
    depend on the choice of a cell.

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
    cells_ : bool
        Whether these are crystals.
    kinds_ : dict of tuple of bool
        Landmarks of each kind of pairs and triples that a training molecule has, in the order of the columns. A kind
        says which atoms are not hydrogen, of triples the central one first. Columns whose mean square is small are left
        out.

    Raises
    ------
    InputError
        If points are not square matrices, have negative entries or charges above 118, or if most have distances that no
        molecule has, as in another ``unit``.

    Warns
    -----
    If a molecule has elements, or pairs or triples of them, that no training molecule has: these have no columns of
    their own, and the kernel of elements says what they share with others.

    References
    ----------
    Huo and Rupp, "Unified Representation of Molecules and Crystals for Machine Learning", 2022, for distributions of
    pairs and triples by elements.
    Axilrod and Teller, "Interaction of the van der Waals Type Between Three Atoms", 1943, for triples weighted by all
    three distances.
    Faber et al., "Alchemical and structural distribution based representation for universal quantum machine learning",
    2018, for a kernel of elements.
    Cordero et al., "Covalent radii revisited", 2008.

    Examples
    --------
    >>> import numpy as np
    >>> water = np.array([[73.52, 8.36, 8.36], [8.36, 0.5, 0.66], [8.36, 0.66, 0.5]])
    >>> many_body = ManyBody(unit="angstrom").fit(water[None])
    >>> list(many_body.kinds_)
    [(False, False), (False, True), (False, False, True), (True, False, False)]
    >>> many_body.transform(water[None]).round(2)
    array([[2.  , 1.  , 0.24, 2.14, 0.86, 0.54]])
    """

    # the best lengthscale is many times the median, so that kernel values are near one, which float32 rounds too much
    precision = "float64"
    takes_cells = True

    unit: Literal["bohr", "angstrom"] = "bohr"
    cutoff: PositiveFloat = 6.0
    angle_cutoff: PositiveFloat = 4.0

    def _fit(self, X: np.ndarray) -> None:
        self.cells_ = has_cells(X)
        charges = self._charges(X)
        if not self.cells_:
            check_unit(charges, lengths_of(X, charges), self.unit, "representation.unit")
        found = np.unique(charges[charges > 0])
        self.elements_ = found if len(found) else np.array([1])  # molecules without atoms keep one column of zeros
        samples: dict[Kind, _Sample] = {}
        for block in self._blocks(X[np.random.default_rng(0).permutation(len(X))]):
            for kind, terms in self._terms(block):
                _extend(samples.setdefault(kind, {}), terms, self.cells_ and len(kind) == 2)
        pairs_first = sorted(samples, key=lambda kind: (len(kind), kind))
        missing, share = (_MISSING_IN_CELLS, _SHARE_IN_CELLS) if self.cells_ else (_MISSING, _SHARE)
        fitted = {
            kind: _KindFeatures.of(samples[kind], len(kind), missing[len(kind)], self.cells_ and len(kind) == 2)
            for kind in pairs_first
        }
        least = share * sum(each.squares.sum() for each in fitted.values())
        self.kinds_ = {kind: replace(each, kept=each.squares > least) for kind, each in fitted.items()}

    def _transform(self, X: np.ndarray) -> np.ndarray:
        columns, unknown = zip(*map(self._columns, self._blocks(X)), strict=True)
        if count := sum(unknown):
            warnings.warn(
                f"representation=many_body: {count} of {len(X)} molecules have elements, or pairs or triples of "
                f"elements, that no training molecule has{self._new_elements(X, self.elements_)}; those have "
                "only what they share with other elements",
                stacklevel=2,
            )
        return np.concatenate(columns)

    def _blocks(self, X: np.ndarray) -> list[np.ndarray]:
        each = X.shape[1] * _COUPLES if self.cells_ else X.shape[1] ** 3
        return np.array_split(X, min(len(X), -(-len(X) * each // _BLOCK)) or 1)

    def _columns(self, X: np.ndarray) -> tuple[np.ndarray, int]:
        """All columns for some molecules, and how many of them have what no training molecule has."""
        charges = self._charges(X)
        unknown: np.ndarray = np.any(~np.isin(charges, [CELL, 0, *self.elements_]), axis=1)
        sums = {kind: np.zeros((len(X), each.kept.sum())) for kind, each in self.kinds_.items()}
        for kind, terms in self._terms(X):
            known: Sequence[int] | np.ndarray = ()
            if kind in sums:
                sums[kind], known = self.kinds_[kind].sums(terms, len(X)), self.kinds_[kind].codes
            unknown[terms.molecule[~np.isin(terms.codes, known)]] = True
        counts = np.stack([(charges == z).sum(1) for z in self.elements_], axis=1)
        columns = np.concatenate([counts, *sums.values()], axis=1).astype(X.dtype)
        if self.cells_:
            columns /= np.maximum((charges > 0).sum(1, keepdims=True), 1)
        return columns, int(unknown.sum())

    def _terms(self, X: np.ndarray) -> Iterator[tuple[Kind, _Terms]]:
        """The pairs and the triples of the atoms of some molecules, by kind."""
        charges, farthest = self._charges(X), max(self.cutoff, self.angle_cutoff)
        if self.cells_:
            positions = X[:, :, 1:].astype(np.float64)
            found = Neighbours.in_cells(charges, positions, farthest)
        else:
            distances = lengths_of(X, charges) * ANGSTROM[self.unit]
            found = Neighbours.of_distances(distances, farthest)
        yield from self._pairs(charges, found[found.r < self.cutoff].once())
        near = found[found.r < self.angle_cutoff]
        first, second = map(near.__getitem__, near.couples())
        if self.cells_:
            ends = (positions[each.molecule, each.other] + each.offsets for each in (first, second))
            u = np.linalg.norm(np.subtract(*ends), axis=1)
        else:
            u = distances[first.molecule, first.other, second.other]
        yield from self._triples(charges, first, second, u)

    def _pairs(self, charges: np.ndarray, found: Neighbours) -> Iterator[tuple[Kind, _Terms]]:
        r, molecule = found.r, found.molecule
        elements = np.sort([charges[molecule, found.centre], charges[molecule, found.other]], axis=0)
        t = 1 / _relative(r, *elements)[:, None] / _PAIR_WIDTH
        return _by_kind(elements, molecule, t, _falloff(r, self.cutoff) / r**3)

    def _triples(
        self, charges: np.ndarray, one: Neighbours, two: Neighbours, u: np.ndarray
    ) -> Iterator[tuple[Kind, _Terms]]:
        molecule, r, s = one.molecule, one.r, two.r
        # a matrix without positions in space may exceed one
        angle = np.arccos(np.clip((r**2 + s**2 - u**2) / (2 * r * s), -1, 1))
        weights = _falloff(r, self.angle_cutoff) * _falloff(s, self.angle_cutoff) / (r * s * u)
        central, first, second = (charges[molecule, each] for each in (one.centre, one.other, two.other))
        r, s = _relative(r, central, first), _relative(s, central, second)
        t = np.stack([r + s, 2 * abs(r - s), angle], axis=1) / _TRIPLE_WIDTHS
        return _by_kind(np.stack([central, *np.sort([first, second], axis=0)]), molecule, t, weights)


@dataclass(frozen=True)
class _KindFeatures:
    """Features of the pairs or triples of one kind: products of k(t, t') and the kernel of their elements.

    Attributes
    ----------
    landmarks : array, shape (m, d), and root, shape (m, m): phi(t) = root @ k(landmarks, t)
    codes : ascending int array, shape (codes,)
        The elements in training molecules.
    size : 2 or 3
    lower : array, shape (codes, codes)
        Cholesky factor of the kernel of these.
    squares : array, shape (codes, m)
        Estimated sums of squares of all columns over the training molecules.
    kept : bool array of this shape
    """

    landmarks: np.ndarray
    root: np.ndarray
    codes: np.ndarray
    size: int
    lower: np.ndarray
    squares: np.ndarray
    kept: np.ndarray

    @classmethod
    def of(cls, sample: _Sample, size: int, missing: float, whole_range: bool) -> "_KindFeatures":
        """Those of landmarks in a sample; with ``whole_range`` it is sorted, and they reach its ends."""
        codes = np.array(sorted(sample))
        most = max(_OF_ELEMENTS, _OF_KIND // len(codes))
        numbers = [sample[code][0] for code in codes]
        parts = [t[_evenly(len(t), most)] if whole_range else t[:most] for t in numbers]
        t = np.concatenate(parts)
        K = np.exp(-0.5 * cdist(t, t, "sqeuclidean"))
        pivots, root = pivoted_root(K, precision=2 * missing / np.sqrt(len(K)))
        lower = np.linalg.cholesky(_element_kernel(codes, codes, size))
        features = np.split(np.square(K[:, pivots] @ root.T), np.cumsum([len(part) for part in parts])[:-1])
        squares = [sample[code][1] * each.mean(0) for code, each in zip(codes, features, strict=True)]
        mixed = np.square(lower.T) @ squares
        return cls(t[pivots], root, codes, size, lower, mixed, mixed > 0)

    def sums(self, terms: _Terms, n: int) -> np.ndarray:
        """Sums of the weighted features of terms by molecule, shape (n, columns)."""
        points, anchors = torch.from_numpy(terms.t), torch.from_numpy(self.landmarks)
        values = torch.cdist(points, anchors, compute_mode="donot_use_mm_for_euclid_dist").square_().mul_(-0.5).exp_()
        codes, which = np.unique(terms.codes, return_inverse=True)
        rows = terms.molecule * len(codes) + which
        by_kind = sparse.csr_array((terms.weights, (rows, np.arange(len(rows)))), shape=(n * len(codes), len(rows)))
        features = ((by_kind @ values.numpy()) @ self.root.T).reshape(n, len(codes), -1)
        return (np.linalg.solve(self.lower, _element_kernel(self.codes, codes, self.size)) @ features)[:, self.kept]


def _element_kernel(a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    """The kernel of the elements of pairs or triples of one kind, from their codes."""
    a, b = (np.stack(np.unravel_index(codes, (_MAX_CHARGE + 1,) * size), -1) for codes in (a, b))
    return np.where(a[:, None] == b, 1.0, _SIMILARITY).prod(-1)


def _relative(r: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Distances between atoms of these charges, as between atoms with the radius of carbon."""
    return 2 * r / (_RELATIVE_RADII[first] + _RELATIVE_RADII[second])


def _falloff(r: np.ndarray, cutoff: float) -> np.ndarray:
    """One at distance zero, zero at the cutoff."""
    return (1 + np.cos(np.pi * r / cutoff)) / 2


def _by_kind(
    elements: np.ndarray, molecule: np.ndarray, t: np.ndarray, weights: np.ndarray
) -> Iterator[tuple[Kind, _Terms]]:
    """The terms of each kind, from the elements of their atoms in rows."""
    size = len(elements)
    terms = _Terms(molecule, np.ravel_multi_index(tuple(elements), (_MAX_CHARGE + 1,) * size), t, weights)
    for kind in itertools.product((False, True), repeat=size):
        rows = np.flatnonzero(((elements > 1) == np.array(kind)[:, None]).all(0))
        if len(rows):
            yield kind, terms[rows]


def _evenly(n: int, most: int) -> np.ndarray:
    """At most this many of n indices, in even steps from the first to the last."""
    return np.linspace(0, n - 1, min(most, n)).astype(int)


def _extend(sample: _Sample, terms: _Terms, whole_range: bool) -> None:
    """Add numbers t to the sample of each code, in even steps, until it has enough.

    With ``whole_range`` the sample is sorted, and has the extreme numbers of all terms.
    """
    for code in np.unique(terms.codes):
        of_code = terms[np.flatnonzero(terms.codes == code)]
        held, total = sample.get(code, (of_code.t[:0], 0.0))
        squares = total + np.square(of_code.weights).sum()
        if whole_range:
            t = np.sort(np.concatenate([held, of_code.t]), axis=0)
            sample[code] = t[_evenly(len(t), _OF_KIND)], squares
            continue
        chosen = _evenly(len(of_code.t), _OF_KIND - len(held))
        sample[code] = np.concatenate([held, of_code.t[chosen]]), squares

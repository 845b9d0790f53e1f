"""The representation of single atoms by their environments."""

import math
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbit.registry import register
from orbit.representations.base import Representation
from orbit.representations.environments import Environments
from orbit.representations.molecules import SYMBOLS
from orbit.representations.neighbours import CELL, charges_of_rows

# Numbers of an array that is held at once.
_NUMBERS = 2**24


@register("representation", "atom_environment")
class AtomEnvironment(Representation):
    """The environment of one atom: smooth distributions of its distances and angles, apart for each element.

    A point is a molecule whose first atom is meant, with the charge and the position in angstrom of each atom, as
    ``dataset=molecules`` with ``per_atom`` has them, in crystals followed by -1 and a vector of the cell in each row;
    then neighbours are all images. For each element of first atoms there is a block of columns: 1, and the vector of
    :class:`~orbit.representations.environments.Environments`, scaled to a mean square of 1 in
    training. An atom has zeros in the blocks of other elements, so that it learns little from these.

    It changes neither when the molecule is moved, turned or reflected nor with the order of the other atoms.

    Attributes
    ----------
    elements_ : int array
        Charges of first atoms in training.
    neighbours_ : int array
        Charges of all atoms in training.

    Raises
    ------
    InputError
        If points are not of shape (atoms, 4), or do not begin with charges.

    Warns
    -----
    If atoms, or others of their molecule, are of elements that none of training is: these are left out.

    Examples
    --------
    >>> import numpy as np
    >>> water = np.array([[8, 0, 0, 0], [1, 0, 0.76, 0.59], [1, 0, -0.76, 0.59]])
    >>> atoms = np.stack([water, water[[1, 0, 2]], water[[2, 0, 1]]])
    >>> columns = AtomEnvironment().fit_transform(atoms)
    >>> bool((columns[1] == columns[2]).all()), float(columns[0] @ columns[1])
    (True, 0.0)
    """

    precision = "float64"
    takes_vectors = False
    takes_cells = True

    def transform(self, X):
        """The vectors, shape (n, columns). ``X``: array, shape ``(n, atoms, 4)``, of any number of atoms."""
        check_is_fitted(self)
        return self._transform(check_array(X, dtype=[np.float64, np.float32], allow_nd=True))

    def _fit(self, X: np.ndarray) -> None:
        charges = self._charges(X)
        self.neighbours_ = np.setdiff1d(charges, [CELL, 0])
        self.elements_ = np.setdiff1d(charges[:, 0], 0) if charges[:, 0].any() else np.array([1])  # keeps one column
        order = np.random.default_rng(0).permutation(len(X))
        self._environments = Environments().fit(self._blocks(X[order]), first_only=True)
        self._columns = {int(z): self._environments.columns_of(int(z)) for z in self.elements_}
        squares = [self._environments.of_first(*block).square().sum(1) for block in self._blocks(X)]
        self._scale = math.sqrt(float(torch.cat(squares).mean())) or 1.0

    def _transform(self, X: np.ndarray) -> np.ndarray:
        charges = self._charges(X)
        new = np.setdiff1d(charges, [CELL, 0, *self.neighbours_])
        others = np.setdiff1d(charges[:, 0], [0, *self.elements_])
        unknown = np.isin(charges, new).any(1) | np.isin(charges[:, 0], others)
        if count := unknown.sum():
            names = ", ".join(SYMBOLS[z - 1] for z in np.union1d(new, others))
            warnings.warn(
                f"representation=atom_environment: {count} of {len(X)} atoms are of elements, or have neighbours of "
                f"elements, that no atom in training has ({names}); those are left out",
                stacklevel=2,
            )
        vectors = torch.cat([self._environments.of_first(*block) for block in self._blocks(X)]).numpy()
        starts = np.cumsum([0, *(1 + len(columns) for columns in self._columns.values())])
        found = np.zeros((len(X), starts[-1]))
        for start, (z, columns) in zip(starts, self._columns.items(), strict=False):
            rows = np.flatnonzero(charges[:, 0] == z)
            found[rows, start] = 1
            found[rows[:, None], start + 1 + np.arange(len(columns))] = vectors[rows[:, None], columns] / self._scale
        return found.astype(X.dtype)

    def _charges(self, X: np.ndarray) -> np.ndarray:
        """Charges, shape (n, atoms)."""
        if X.ndim != 3 or X.shape[2] != 4:
            raise self._refuse(X, "charges and positions of the atoms of a molecule, shape (atoms, 4)")
        return charges_of_rows(X, self.label())

    def _blocks(self, X: np.ndarray) -> Iterator[tuple[np.ndarray, Tensor]]:
        """Charges and positions of points that are processed at once."""
        step = max(1, _NUMBERS // (X.shape[1] ** 2 * 200))
        for start in range(0, len(X), step):
            rows = X[start : start + step]
            yield self._charges(rows), torch.from_numpy(np.ascontiguousarray(rows[:, :, 1:], dtype=np.float64))

"""Representations of matrices: Coulomb matrices of molecules, and sums of rows."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from orbit.registry import register
from orbit.representations.base import Representation

# Largest difference, as a share of the largest entry, of two entries that are equal up to rounding.
_ROUNDING = 1e-4


def is_symmetric(X: np.ndarray) -> bool:
    """Whether all matrices ``X``, shape (n, m, m), are symmetric but for rounding.

    >>> is_symmetric(np.array([[[1.0, 2.0], [2.0, 5.0]]])), is_symmetric(np.array([[[1.0, 2.0], [0.0, 5.0]]]))
    (True, False)
    """
    return bool(np.abs(X - X.swapaxes(1, 2)).max(initial=0.0) <= _ROUNDING * np.abs(X).max(initial=0.0))


@register("representation", "coulomb")
@dataclass(eq=False, repr=False)
class Coulomb(Representation):
    """Coulomb matrices, or other symmetric matrices with one row per atom (Raj et al. 2017, section 4.1).

    Parameters
    ----------
    order : {"raw", "sorted"}
        ``sorted`` puts rows and columns in descending order of row norm: a fixed
        order for each molecule, which the distribution ``NoisySort`` randomises.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Coulomb
    >>> Coulomb(order="sorted").fit_transform(np.array([[[1.0, 2.0], [2.0, 5.0]]]))
    array([[[5., 2.],
            [2., 1.]]])
    """

    takes_vectors = False

    order: Literal["raw", "sorted"] = "raw"

    def _fit(self, X: np.ndarray) -> None:
        if X.ndim != 3 or X.shape[1] != X.shape[2]:
            raise self._refuse(X, "matrices of shape (atoms, atoms)")

    def _transform(self, X: np.ndarray) -> np.ndarray:
        if not is_symmetric(X):
            raise self._refuse(X, "symmetric matrices")
        if self.order == "raw":
            return X
        falling = np.argsort(-np.linalg.norm(X, axis=2), axis=1, kind="stable")
        return np.take_along_axis(np.take_along_axis(X, falling[:, :, None], 1), falling[:, None, :], 2)


@register("representation", "bag")
class Bag(Representation):
    """The sum of each point's rows: a bag of words for one-hot rows (Mroueh et al. 2015, appendix D.1).

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Bag
    >>> Bag().fit_transform(np.eye(3)[[[0, 2, 2]]])
    array([[1., 0., 2.]])
    """

    takes_vectors = False

    def _fit(self, X: np.ndarray) -> None:
        if X.ndim < 3:
            raise self._refuse(X, "points of shape (rows, columns)")

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return X.sum(1)

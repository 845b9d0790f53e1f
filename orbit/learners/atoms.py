"""A number for each atom of a molecule, such as its charge, from its environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from orbit.core.component import Estimator
from orbit.core.errors import InputError
from orbit.learners.forces import molecules
from orbit.representations.environments import Environments

# Molecules whose derivatives are held at once.
_BLOCK = 20


@dataclass(eq=False, repr=False)
class AtomRegressor(Estimator):
    """A regressor for each element, of the vectors of environments (``orbit.representations.environments``).

    Predictions do not change when a molecule is moved, turned or reflected, and change places with its atoms.

    Parameters
    ----------
    model : regressor of vectors
        Such as a pipeline of a feature map and a learner. Each element gets a copy.

    Attributes
    ----------
    models_ : dict of int to regressor
        The fitted copy of each charge.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> from sklearn.pipeline import make_pipeline
    >>> positions = np.random.default_rng(0).uniform(0.8, 1.2, (60, 2, 3)) * [[[0], [1]]]
    >>> X = np.concatenate([np.ones((60, 2, 1)), positions], 2)
    >>> y = 1 / np.linalg.norm(positions[:, 1], axis=1)[:, None].repeat(2, 1)
    >>> model = make_pipeline(orbit.Nystrom(n_components=50, random_state=0), orbit.RidgeRegressor())
    >>> model = AtomRegressor(model).fit(X[:40], y[:40])
    >>> bool(np.abs(model.predict(X[40:]) - y[40:]).max() < 0.01)
    True
    """

    model: BaseEstimator

    def fit(self, X, y):
        """Fit to molecules.

        Parameters
        ----------
        X : array, shape (n, atoms, 4)
            Charge and position in angstrom of each atom; charges of 0 where a molecule has no more atoms.
        y : array, shape (n, atoms)
            Values of atoms; NaN where one is not known.

        Raises
        ------
        InputError
            For arrays of other shapes, or without values.
        """
        charges, positions = molecules(X)
        y = np.asarray(y, dtype=np.float64)
        known = (charges > 0) & np.isfinite(y) if y.shape == charges.shape else np.zeros(1, bool)
        if not known.any():
            raise InputError(f"y: expected values of atoms, shape {charges.shape}, found shape {y.shape} or none known")
        self._environments = Environments().fit([(charges, positions)])
        vectors = self._vectors(charges, positions)
        self.models_: dict[int, Any] = {}
        for z in np.unique(charges[known]).tolist():
            of_element = known & (charges == z)
            self.models_[z] = clone(self.model).fit(vectors[of_element], y[of_element])
        return self

    def predict(self, X) -> np.ndarray:
        """Values, shape (n, atoms); NaN for no atom and for elements without values in training."""
        check_is_fitted(self, "models_")
        charges, positions = molecules(X)
        vectors, y = self._vectors(charges, positions), np.full(charges.shape, np.nan)
        for z, model in self.models_.items():
            if (of_element := charges == z).any():
                y[of_element] = model.predict(vectors[of_element])
        return y

    def _vectors(self, charges: np.ndarray, positions: Any) -> np.ndarray:
        blocks = [slice(start, start + _BLOCK) for start in range(0, len(charges), _BLOCK)]
        return np.concatenate([self._environments(charges[rows], positions[rows])[0].numpy() for rows in blocks])

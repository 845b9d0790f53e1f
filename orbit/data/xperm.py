"""X_perm: letters whose label does not depend on their order (Mroueh et al. 2015, section 6 and appendix D.1)."""

import itertools
from dataclasses import KW_ONLY, dataclass

import numpy as np

from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, generator
from orbit.data.base import Dataset, Loader
from orbit.data.splits import balanced
from orbit.registry import register

_LETTERS = "ABCDEFGH"
_LENGTH = 5
_TRAIN_PER_CLASS = 2000


@register("dataset", "xperm")
@dataclass(eq=False, repr=False)
class XPerm(Loader):
    """All 8^5 = 32,768 sequences of five letters; positive (1) if both target letters occur, anywhere.

    A point has shape (5, 8): one row per position, 1 in the column of its letter. The group ``permutation`` with
    ``mode="blocks"`` permutes the positions. 4,000 random sequences, half of them positive, are the training part,
    the other 28,768 the test part; 6,930 of all are positive.

    Parameters
    ----------
    targets : str
        Two different letters of ABCDEFGH. The paper draws them at random; all pairs are equivalent.
    per_class : int >= 1 or None
        Training points of each class, a part of the 2,000; None is all.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> from orbit.data import XPerm
    >>> data = XPerm().load(0)
    >>> data.X_train.shape, data.X_test.shape, int(data.y_train.sum())
    ((4000, 5, 8), (28768, 5, 8), 2000)
    """

    default_group = {"name": "permutation", "mode": "blocks"}

    targets: str = "AB"
    _: KW_ONLY
    per_class: PositiveInt | None = None

    def check(self) -> None:
        super().check()
        if len(set(self.targets)) != 2 or len(self.targets) != 2 or not set(self.targets) <= set(_LETTERS):
            raise self.wrong("targets", f"two different letters of {_LETTERS}, e.g. AB")

    def _load(self, random_state: RandomState) -> Dataset:
        sequences = np.array(list(itertools.product(range(len(_LETTERS)), repeat=_LENGTH)))
        first, second = (np.any(sequences == _LETTERS.index(letter), axis=1) for letter in self.targets)
        X, y = np.eye(len(_LETTERS), dtype=np.float32)[sequences], (first & second).astype(np.int64)
        rng = generator(random_state)
        train = balanced(y, _TRAIN_PER_CLASS, rng, "targets")
        test = np.setdiff1d(np.arange(len(y)), train)
        if self.per_class is not None:
            train = train[balanced(y[train], self.per_class, rng, "per_class")]
        source = f"all sequences of {_LENGTH} of {len(_LETTERS)} letters, positive with {' and '.join(self.targets)}"
        return Dataset(self.name, "classification", X[train], y[train], X[test], y[test], source)

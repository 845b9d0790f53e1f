"""scikit-learn's handwritten digits, which need no file and no network."""

import functools
from dataclasses import KW_ONLY, dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from orbit.core.random import RandomState, spawn
from orbit.data.base import Dataset, Loader
from orbit.data.move import rotate_randomly
from orbit.registry import register

_N_TRAIN = 1000


@register("dataset", "digits")
@dataclass(eq=False, repr=False)
class Digits(Loader):
    """1,797 images of 8 x 8 pixels, ten classes; 1,000 for training, 797 for testing, split by the seed.

    Parameters
    ----------
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> from orbit.data import Digits
    >>> Digits(n_train=100).load(0).X_train.shape
    (100, 8, 8)
    """

    ink = True
    default_group = {"name": "rotation"}
    source = "scikit-learn load_digits"

    def _load(self, random_state: RandomState) -> Dataset:
        (X, y), seed = self._images(), spawn(random_state, 1)[0]
        X = X.astype(np.float32)
        X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=_N_TRAIN, stratify=y, random_state=seed)
        return Dataset(self.name, "classification", X_train, y_train, X_test, y_test, self.source)

    def _images(self) -> tuple[np.ndarray, np.ndarray]:
        """All images, values in [0, 1], and their classes."""
        from sklearn.datasets import load_digits

        digits = load_digits()
        return digits.images / 16, digits.target


@register("dataset", "rotated_digits")
@dataclass(eq=False, repr=False)
class RotatedDigits(Digits):
    """The same digits, each rotated by an independent angle, uniform in [0, 2 pi).

    The rotated images depend on ``rotation_seed`` only; ``random_state`` splits
    them.

    Parameters
    ----------
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    rotation_seed : int
        Seed of the angles.

    Examples
    --------
    >>> from orbit.data import RotatedDigits
    >>> RotatedDigits().load(0).X_test.shape
    (797, 8, 8)
    """

    source = "scikit-learn load_digits, turned by random angles"
    _: KW_ONLY
    rotation_seed: int = 0

    def _images(self) -> tuple[np.ndarray, np.ndarray]:
        return _rotated(self.rotation_seed)


@functools.lru_cache(maxsize=1)  # jobs of a sweep use the same images
def _rotated(seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = Digits()._images()
    return rotate_randomly(X, seed), y

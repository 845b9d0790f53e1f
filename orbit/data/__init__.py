"""Data sets. See :class:`orbit.data.base.Loader` for the interface."""

from orbit.data.arrays import Arrays
from orbit.data.base import Dataset, Loader
from orbit.data.digits import Digits, RotatedDigits
from orbit.data.mnist import MNIST, RotatedMNIST

__all__ = ["MNIST", "Arrays", "Dataset", "Digits", "Loader", "RotatedDigits", "RotatedMNIST"]

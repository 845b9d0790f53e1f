"""Data sets. See :class:`orbit.data.base.Loader` for the interface."""

from orbit.data.arrays import Arrays
from orbit.data.base import Dataset, Loader
from orbit.data.digits import Digits, RotatedDigits
from orbit.data.fields import LowRankMultitask, VectorField
from orbit.data.mnist import MNIST, RotatedMNIST
from orbit.data.qm7 import QM7

__all__ = [
    "MNIST",
    "QM7",
    "Arrays",
    "Dataset",
    "Digits",
    "Loader",
    "LowRankMultitask",
    "RotatedDigits",
    "RotatedMNIST",
    "VectorField",
]

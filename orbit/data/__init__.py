"""Data sets. See :class:`orbit.data.base.Loader` for the interface."""

from orbit.data import validation
from orbit.data.arrays import Arrays
from orbit.data.base import Dataset, Loader, Points
from orbit.data.cifar10 import CIFAR10
from orbit.data.digits import Digits, RotatedDigits
from orbit.data.fields import Fields
from orbit.data.images import Images
from orbit.data.mnist import MNIST, MNISTLocal, RotatedMNIST
from orbit.data.molecules import Molecules
from orbit.data.multi_output import LowRankMultitask, VectorField
from orbit.data.openml import OpenML
from orbit.data.qm7 import QM7
from orbit.data.series import Series
from orbit.data.shapes import Shapes
from orbit.data.shards import Shards
from orbit.data.sounds import Sounds
from orbit.data.spoken_digits import SpokenDigits
from orbit.data.table import Table
from orbit.data.xperm import XPerm

__all__ = [
    "CIFAR10",
    "MNIST",
    "QM7",
    "Arrays",
    "Dataset",
    "Digits",
    "Fields",
    "Images",
    "Loader",
    "LowRankMultitask",
    "MNISTLocal",
    "Molecules",
    "OpenML",
    "Points",
    "RotatedDigits",
    "RotatedMNIST",
    "Series",
    "Shapes",
    "Shards",
    "Sounds",
    "SpokenDigits",
    "Table",
    "VectorField",
    "XPerm",
    "validation",
]

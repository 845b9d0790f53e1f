"""Data sets. See :class:`orbit.data.base.Loader` for the interface."""

from orbit.data.arrays import Arrays as Arrays
from orbit.data.base import Dataset as Dataset, Loader as Loader, Points as Points
from orbit.data.cifar10 import CIFAR10 as CIFAR10
from orbit.data.clouds import Clouds as Clouds
from orbit.data.digits import Digits as Digits, RotatedDigits as RotatedDigits
from orbit.data.fields import Fields as Fields
from orbit.data.images import Images as Images
from orbit.data.mnist import MNIST as MNIST, MNISTLocal as MNISTLocal, RotatedMNIST as RotatedMNIST
from orbit.data.molecules import Molecules as Molecules
from orbit.data.openml import OpenML as OpenML
from orbit.data.qm7 import QM7 as QM7
from orbit.data.series import Series as Series
from orbit.data.shapes import Shapes as Shapes
from orbit.data.shards import Shards as Shards
from orbit.data.sounds import Sounds as Sounds
from orbit.data.spoken_digits import SpokenDigits as SpokenDigits
from orbit.data.table import Table as Table
from orbit.data.vector_field import VectorField as VectorField
from orbit.data.xperm import XPerm as XPerm

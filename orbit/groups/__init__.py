"""Groups and their actions on inputs. See :class:`orbit.groups.base.Group` for the interface."""

from orbit.groups.affine import Affine
from orbit.groups.base import Group
from orbit.groups.cyclic import Cyclic
from orbit.groups.identity import Identity
from orbit.groups.orthogonal import Orthogonal
from orbit.groups.permutation import Permutation
from orbit.groups.pitch_tempo import PitchTempo
from orbit.groups.product import ProductGroup
from orbit.groups.reflection import Dihedral, Reflection
from orbit.groups.rotation import Rotation
from orbit.groups.scaling import Scaling
from orbit.groups.series import Amplitude, Offset, TimeWarp
from orbit.groups.shear import Shear
from orbit.groups.small_moves import SmallMoves
from orbit.groups.translation import Translation
from orbit.groups.volumes import Octahedral, Rotation3D

__all__ = [
    "Affine",
    "Amplitude",
    "Cyclic",
    "Dihedral",
    "Group",
    "Identity",
    "Octahedral",
    "Offset",
    "Orthogonal",
    "Permutation",
    "PitchTempo",
    "ProductGroup",
    "Reflection",
    "Rotation",
    "Rotation3D",
    "Scaling",
    "Shear",
    "SmallMoves",
    "TimeWarp",
    "Translation",
]

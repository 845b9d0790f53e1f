"""Groups and their actions on inputs. See :class:`orbit.groups.base.Group` for the interface."""

from orbit.groups.affine import Affine as Affine
from orbit.groups.base import Group as Group
from orbit.groups.cyclic import Cyclic as Cyclic
from orbit.groups.identity import Identity as Identity
from orbit.groups.orthogonal import Orthogonal as Orthogonal
from orbit.groups.permutation import Permutation as Permutation
from orbit.groups.pitch_tempo import PitchTempo as PitchTempo
from orbit.groups.product import ProductGroup as ProductGroup
from orbit.groups.reflection import Dihedral as Dihedral, Reflection as Reflection
from orbit.groups.rotation import Rotation as Rotation
from orbit.groups.scaling import Scaling as Scaling
from orbit.groups.series import Amplitude as Amplitude, Offset as Offset, TimeWarp as TimeWarp
from orbit.groups.shear import Shear as Shear
from orbit.groups.small_moves import SmallMoves as SmallMoves
from orbit.groups.translation import Translation as Translation
from orbit.groups.volumes import Octahedral as Octahedral, Rotation3D as Rotation3D

"""Actions on inputs: one file a family. See :class:`orbit.groups.base.Group` for the interface."""

from orbit.groups.base import Group
from orbit.groups.identity import Identity
from orbit.groups.rotation import Rotation

__all__ = ["Group", "Identity", "Rotation"]

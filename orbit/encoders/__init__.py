"""Encoders: what the kernel sees of a moved point."""

from orbit.encoders.base import Encoder, NoEncoder
from orbit.encoders.patches import Patches

__all__ = ["Encoder", "NoEncoder", "Patches"]

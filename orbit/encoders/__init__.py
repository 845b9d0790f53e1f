"""Encoders: maps from moved points to the vectors that the kernel takes."""

from orbit.encoders.base import Encoder, NoEncoder
from orbit.encoders.gradients import Gradients
from orbit.encoders.onnx import Onnx
from orbit.encoders.patches import Patches

__all__ = ["Encoder", "Gradients", "NoEncoder", "Onnx", "Patches"]

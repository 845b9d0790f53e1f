"""Encoders: maps from moved points to the vectors that the kernel takes."""

from orbit.encoders.base import Encoder, NoEncoder
from orbit.encoders.gradients import Gradients
from orbit.encoders.onnx import Onnx
from orbit.encoders.patches import Patches
from orbit.encoders.pca import PrincipalComponents
from orbit.encoders.spectrogram import MelSpectrogram
from orbit.encoders.triangle import UpperTriangle

__all__ = [
    "Encoder",
    "Gradients",
    "MelSpectrogram",
    "NoEncoder",
    "Onnx",
    "Patches",
    "PrincipalComponents",
    "UpperTriangle",
]

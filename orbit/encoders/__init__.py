"""Encoders: maps from moved points to the vectors that the kernel takes."""

from orbit.encoders.base import Encoder, NoEncoder
from orbit.encoders.by_size import BySize
from orbit.encoders.gradients import Gradients
from orbit.encoders.layer import Layer
from orbit.encoders.normalization import ContrastNormalization, MeanRemoval, Whitening
from orbit.encoders.onnx import Onnx
from orbit.encoders.patches import Patches
from orbit.encoders.pca import PrincipalComponents
from orbit.encoders.point_pairs import PointPairs
from orbit.encoders.pooling import GaussianPooling, GridPooling, MeanPooling, NoPooling, Pooling
from orbit.encoders.spectrogram import MelSpectrogram
from orbit.encoders.sphere import Rectified
from orbit.encoders.triangle import UpperTriangle

__all__ = [
    "BySize",
    "ContrastNormalization",
    "Encoder",
    "GaussianPooling",
    "Gradients",
    "GridPooling",
    "Layer",
    "MeanPooling",
    "MeanRemoval",
    "MelSpectrogram",
    "NoEncoder",
    "NoPooling",
    "Onnx",
    "Patches",
    "PointPairs",
    "Pooling",
    "PrincipalComponents",
    "Rectified",
    "UpperTriangle",
    "Whitening",
]

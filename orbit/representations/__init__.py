"""Representations of points, computed before any group acts on them, and augmentation of training points."""

from orbit.representations.augmentation import Augmentation, ImageAugmentation, NoAugmentation
from orbit.representations.base import ImageRepresentation, Representation, mean_norm, scale
from orbit.representations.gradients import Gradients
from orbit.representations.matrices import Bag, Coulomb, is_symmetric
from orbit.representations.molecules import BagOfBonds, ManyBody
from orbit.representations.outline import Outline
from orbit.representations.patches import Crop, PatchPCA
from orbit.representations.polar import Polar
from orbit.representations.spectrogram import mel_spectrogram
from orbit.representations.vectors import Centre, Raw, Standardize, UnitNorm

__all__ = [
    "Augmentation",
    "Bag",
    "BagOfBonds",
    "Centre",
    "Coulomb",
    "Crop",
    "Gradients",
    "ImageAugmentation",
    "ImageRepresentation",
    "ManyBody",
    "NoAugmentation",
    "Outline",
    "PatchPCA",
    "Polar",
    "Raw",
    "Representation",
    "Standardize",
    "UnitNorm",
    "is_symmetric",
    "mean_norm",
    "mel_spectrogram",
    "scale",
]

"""What is done to points before any group acts on them, and augmentation of training points."""

from orbit.representations import augmentation, gradients, patches
from orbit.representations.basic import (
    Bag,
    Coulomb,
    Polar,
    Raw,
    Representation,
    Standardize,
    UnitNorm,
    mean_norm,
    scale,
)

__all__ = [
    "Bag",
    "Coulomb",
    "Polar",
    "Raw",
    "Representation",
    "Standardize",
    "UnitNorm",
    "augmentation",
    "gradients",
    "mean_norm",
    "patches",
    "scale",
]

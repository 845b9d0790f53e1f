"""Representations of points, computed before any group acts on them, and augmentation of training points."""

from orbit.representations.atoms import AtomEnvironment as AtomEnvironment
from orbit.representations.augmentation import (
    Augmentation as Augmentation,
    ImageAugmentation as ImageAugmentation,
    NoAugmentation as NoAugmentation,
)
from orbit.representations.base import (
    ImageRepresentation as ImageRepresentation,
    Representation as Representation,
    mean_norm as mean_norm,
    scale as scale,
)
from orbit.representations.gradients import Gradients as Gradients
from orbit.representations.matrices import Bag as Bag, Coulomb as Coulomb, is_symmetric as is_symmetric
from orbit.representations.molecules import BagOfBonds as BagOfBonds, ManyBody as ManyBody
from orbit.representations.moments import Moments as Moments
from orbit.representations.outline import Outline as Outline
from orbit.representations.patches import Crop as Crop, PatchPCA as PatchPCA
from orbit.representations.polar import Polar as Polar
from orbit.representations.spectrogram import mel_spectrogram as mel_spectrogram
from orbit.representations.vectors import Centre as Centre, Raw as Raw, Standardize as Standardize, UnitNorm as UnitNorm

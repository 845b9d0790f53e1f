"""Encoders: maps from moved points to the vectors that the kernel takes."""

from orbit.encoders.base import Encoder as Encoder, NoEncoder as NoEncoder
from orbit.encoders.by_size import BySize as BySize
from orbit.encoders.fitted import FittedEncoder as FittedEncoder
from orbit.encoders.gradients import Gradients as Gradients
from orbit.encoders.layer import Layer as Layer
from orbit.encoders.normalization import (
    ContrastNormalization as ContrastNormalization,
    MeanRemoval as MeanRemoval,
    Whitening as Whitening,
)
from orbit.encoders.onnx import Onnx as Onnx
from orbit.encoders.patches import Patches as Patches
from orbit.encoders.pca import PrincipalComponents as PrincipalComponents
from orbit.encoders.point_pairs import PointPairs as PointPairs
from orbit.encoders.pooling import (
    GaussianPooling as GaussianPooling,
    GridPooling as GridPooling,
    MeanPooling as MeanPooling,
    NoPooling as NoPooling,
    Pooling as Pooling,
)
from orbit.encoders.quantiles import Quantiles as Quantiles
from orbit.encoders.slopes import Slopes as Slopes
from orbit.encoders.spectrogram import MelSpectrogram as MelSpectrogram
from orbit.encoders.sphere import Rectified as Rectified
from orbit.encoders.triangle import UpperTriangle as UpperTriangle
from orbit.encoders.union import UnionEncoder as UnionEncoder

"""The hyper layer: a kernel on top of orbit-averaged features (LGIKA remark 3)."""

from orbit.hyper.gaussian import Gaussian
from orbit.hyper.linear import Linear

__all__ = ["Gaussian", "Linear"]

"""The hyper layer: a kernel on top of orbit-averaged features (LGIKA remark 3)."""

from orbit.approx.hyper.gaussian import Gaussian
from orbit.approx.hyper.linear import Linear

__all__ = ["Gaussian", "Linear"]

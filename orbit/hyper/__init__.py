"""The hyper layer: a kernel on top of orbit-averaged features (LGIKA remark 3)."""

from orbit.hyper.linear import Linear

__all__ = ["Linear"]

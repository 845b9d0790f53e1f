"""Distributions q on groups. See :class:`orbit.distributions.base.Distribution` for the interface."""

from orbit.distributions.base import Distribution
from orbit.distributions.circular import Delta, Haar, Uniform, VonMises

__all__ = ["Delta", "Distribution", "Haar", "Uniform", "VonMises"]

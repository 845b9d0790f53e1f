"""Distributions q on groups. See :class:`orbit.distributions.base.Distribution` for the interface."""

from orbit.distributions.base import Distribution
from orbit.distributions.circular import VonMises
from orbit.distributions.invariant import Delta, Haar
from orbit.distributions.linear import GaussianDistribution, LogNormal, Uniform
from orbit.distributions.product import ProductDistribution
from orbit.distributions.sorting import NoisySort

__all__ = [
    "Delta",
    "Distribution",
    "GaussianDistribution",
    "Haar",
    "LogNormal",
    "NoisySort",
    "ProductDistribution",
    "Uniform",
    "VonMises",
]

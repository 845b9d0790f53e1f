"""Distributions q on groups. See :class:`orbit.distributions.base.Distribution` for the interface."""

from orbit.distributions.base import Distribution as Distribution
from orbit.distributions.circular import VonMises as VonMises
from orbit.distributions.invariant import Delta as Delta, Haar as Haar
from orbit.distributions.linear import (
    GaussianDistribution as GaussianDistribution,
    LogNormal as LogNormal,
    Uniform as Uniform,
)
from orbit.distributions.product import ProductDistribution as ProductDistribution
from orbit.distributions.sorting import NoisySort as NoisySort

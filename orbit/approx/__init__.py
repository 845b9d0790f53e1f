"""Feature maps. A new one subclasses :class:`orbit.approx.base.AveragedMap`."""

from orbit.approx import frequencies as frequencies, hyper as hyper, landmarks as landmarks
from orbit.approx.base import AveragedMap as AveragedMap, FeatureMap as FeatureMap
from orbit.approx.cdf import CumulativeDistribution as CumulativeDistribution
from orbit.approx.diagnosis import diagnose as diagnose
from orbit.approx.exact import Exact as Exact
from orbit.approx.hyper import GaussianLayer as GaussianLayer, LinearLayer as LinearLayer
from orbit.approx.nystrom import Nystrom as Nystrom
from orbit.approx.orbit_errors import (
    orbit_errors as orbit_errors,
    orbit_rules as orbit_rules,
    reference_map as reference_map,
)
from orbit.approx.orff import OperatorRandomFourier as OperatorRandomFourier
from orbit.approx.ovk import OperatorExact as OperatorExact
from orbit.approx.raw_points import RawPoints as RawPoints
from orbit.approx.rf import RandomFourier as RandomFourier
from orbit.approx.skeleton import RandomSkeleton as RandomSkeleton

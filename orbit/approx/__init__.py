"""Feature maps. A new one subclasses :class:`orbit.approx.base.AveragedMap`."""

from orbit.approx import frequencies, hyper, landmarks
from orbit.approx.base import AveragedMap, FeatureMap
from orbit.approx.cdf import CumulativeDistribution
from orbit.approx.diagnosis import diagnose
from orbit.approx.exact import Exact
from orbit.approx.hyper import GaussianLayer, LinearLayer
from orbit.approx.nystrom import Nystrom
from orbit.approx.orbit_errors import orbit_errors, orbit_rules, reference_map
from orbit.approx.orff import OperatorRandomFourier
from orbit.approx.ovk import OperatorExact
from orbit.approx.raw_points import RawPoints
from orbit.approx.rf import RandomFourier
from orbit.approx.skeleton import RandomSkeleton

__all__ = [
    "AveragedMap",
    "CumulativeDistribution",
    "Exact",
    "FeatureMap",
    "GaussianLayer",
    "LinearLayer",
    "Nystrom",
    "OperatorExact",
    "OperatorRandomFourier",
    "RandomFourier",
    "RandomSkeleton",
    "RawPoints",
    "diagnose",
    "frequencies",
    "hyper",
    "landmarks",
    "orbit_errors",
    "orbit_rules",
    "reference_map",
]

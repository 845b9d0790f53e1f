"""What ``runner=measure`` measures, by name."""

from papers.measures.base import Quantity
from papers.measures.kernels import KernelError, SkeletonError
from papers.measures.locality import SkeletonLocality
from papers.measures.operators import OperatorError
from papers.measures.orbits import OrbitError

#: ``runner.measure`` -> class.
MEASURES: dict[str, type[Quantity]] = {
    "kernel_error": KernelError,
    "orbit_error": OrbitError,
    "orff_error": OperatorError,
    "skeleton_error": SkeletonError,
    "skeleton_locality": SkeletonLocality,
}

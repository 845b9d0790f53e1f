"""Nyström features, averaged over the orbit (Raj et al. 2017, section 2.2.2)."""

from dataclasses import dataclass

import numpy as np

from orbit.approx.base import AveragedMap
from orbit.approx.kernel_sums import kernel_sums
from orbit.approx.landmarks import select
from orbit.core.linalg import pivoted_root
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState
from orbit.encoders import Encoder
from orbit.engine import Engine
from orbit.engine.embedding import Embedding
from orbit.kernels import Kernel
from orbit.kernels.landmarks import Landmarks, Uniform
from orbit.orbits import Orbit
from orbit.registry import register


@register("approx", "nystrom")
@dataclass(eq=False, repr=False)
class Nystrom(AveragedMap):
    """Orbit-averaged Nyström features of any kernel.

    With landmarks Z and L such that K_ZZ^-1 = L^T L,

        psi(x) = L sum_i v_i k(Z, g_i x)                                   (Raj et al. 2017, eq. 8)

    Landmarks z whose k(z, .) is in the span of others, up to rounding, are left out, so
    that smooth kernels give fewer features than ``n_components``.

    With all orbit points of all data as landmarks the approximation is exact.

    Parameters
    ----------
    kernel : Kernel or None
        None is Gaussian.
    orbit : Orbit or None
        The orbit to average over; None is no averaging.
    n_components : int >= 1
        Number of landmarks; fewer if there are fewer points.
    landmarks : Landmarks or None
        How landmarks are chosen; None is uniformly from the data.
    encoder : Encoder or None
        Maps a moved point to the vector that the kernel takes; None takes the point itself.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    landmarks_ : array, shape (rank, d)
        In the order of the pivots of K_ZZ.
    normalization_ : array L, shape (rank, rank), lower triangular, of the precision of the points of ``fit``
    orbit_, kernel_ : the fitted parts

    References
    ----------
    Raj et al., "Local Group Invariant Representations via Orbit Embeddings",
    2017, eq. 8. Williams and Seeger, 2001.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> X = np.random.default_rng(0).random((20, 8, 8))
    >>> orb = orbit.Orbit(orbit.build("group", "rotation"), size=16)
    >>> orbit.build("approx", "nystrom", orbit=orb, n_components=10, random_state=0).fit_transform(X).shape
    (20, 10)
    """

    kernel: Kernel | None = None
    orbit: Orbit | None = None
    n_components: PositiveInt = 1000
    landmarks: Landmarks | None = None
    encoder: Encoder | None = None
    engine: Engine | None = None
    random_state: RandomState = None

    def min_fit_points(self, n: int) -> int:
        return min(n, self.n_components * (self.landmarks or Uniform()).points_each)

    def fit_bytes(self, n: int, d: int) -> int:
        orbit_size = (self.orbit or Orbit()).resolved()[2]
        most = (self.landmarks or Uniform()).at_most(self.n_components, n, orbit_size)
        return 2 * 8 * most**2  # the kernel matrix of the landmarks, and its factor

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        rule = self.landmarks or Uniform()
        rng = np.random.default_rng(random_state)
        points, encode = self._encoded_points(X)
        landmarks = select(rule, points, self.kernel_, self.orbit_, self.engine_, self.n_components, rng, encode)
        K, precision = self.kernel_.gram(landmarks), float(np.finfo(X.dtype).eps)
        pivots, root = pivoted_root(K, precision)
        self.landmarks_, self.normalization_ = landmarks[pivots], root.astype(X.dtype)
        self._n_features_out = len(self.normalization_)

    def _embedding(self, dtype: np.dtype) -> Embedding:
        tensor = self.engine_.tensor
        columns, linear = self.kernel_.against(tensor(self.landmarks_, dtype)), tensor(self.normalization_, dtype)
        return kernel_sums([columns], len(self.landmarks_), linear)

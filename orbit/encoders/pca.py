"""Leading principal components of moved points."""

from __future__ import annotations

import math

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import Tensor

from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, generator
from orbit.core.work import Work
from orbit.encoders.base import Encoder, some_points
from orbit.registry import register

# Limit on the entries of the points to which components are fitted; more only take more time.
_NUMBERS = 2**26


@register("encoder", "pca")
class PrincipalComponents(Encoder):
    """Moved points, flattened, projected on the leading principal components of the training points.

    The kernel compares ``n_components`` numbers instead of all: of photographs, some hundreds of components hold all
    but a hundredth of the variance of thousands of pixels, and features of every orbit point cost less in proportion.
    Euclidean distances never grow, and their squares fall by the variance left out, on the average.

    Parameters
    ----------
    n_components : int >= 1
        Number of components; fewer if there are fewer points or entries.

    Attributes
    ----------
    components_ : array, shape (n_outputs_, entries of a point)
        Orthonormal rows.
    origin_ : array, shape (n_outputs_,)
        Projections of the mean, which are subtracted.
    explained_variance_ratio_ : array, shape (n_outputs_,)
        Share of the variance of the points in each component.

    References
    ----------
    Halko, Martinsson and Tropp, "Finding structure with randomness", 2011, for the
    computation by scikit-learn.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).random((20, 8, 8))
    >>> PrincipalComponents(n_components=5).fit(X, random_state=0).encode(torch.from_numpy(X)).shape
    torch.Size([20, 5])
    """

    def __init__(self, n_components: PositiveInt = 256) -> None:
        self.n_components = n_components

    def estimate(self, sample: np.ndarray) -> tuple[int, Work]:
        d = math.prod(sample.shape[1:])
        length = min(self.n_components, d)
        return length, Work.of(sample.dtype, float(d) * length)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        rng, d = generator(random_state), math.prod(self.shape_in_)
        points = some_points(X, max(self.n_components, _NUMBERS // d), rng).flatten(1).numpy()
        seed = int(rng.integers(2**31))
        with np.errstate(invalid="ignore"):  # shares of no variance, if all points are equal
            pca = PCA(min(self.n_components, *points.shape), random_state=seed).fit(points)
        self.components_, self.origin_ = pca.components_, pca.components_ @ pca.mean_
        self.explained_variance_ratio_ = np.nan_to_num(pca.explained_variance_ratio_)
        self.n_outputs_ = len(self.components_)

    def _encode(self, points: Tensor) -> Tensor:
        components, origin = (torch.as_tensor(each).to(points) for each in (self.components_, self.origin_))
        return torch.addmm(origin, points.flatten(1), components.T, beta=-1)

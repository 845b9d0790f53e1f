"""Leading principal components of moved points."""

import numpy as np
import torch
from torch import Tensor

from orbit.core.linalg import is_constant
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, generator
from orbit.encoders.base import Encoder
from orbit.registry import register


@register("encoder", "pca")
class PrincipalComponents(Encoder):
    """Moved points, flattened, projected on the leading principal components of such points.

    Feature maps fit it to at most 2,000 training points, each moved by a random element.
    The kernel then compares ``n_components`` numbers instead of all: of photographs, some
    hundreds of components hold all but a hundredth of the variance of thousands of pixels,
    and features of every orbit point cost less in proportion. Euclidean distances never
    grow, and their squares fall by the variance left out, on the average.

    Parameters
    ----------
    n_components : int >= 1
        Number of components; fewer if it is fitted to fewer points, or points have fewer entries.

    Attributes
    ----------
    components_ : array, shape (n_outputs_, entries of a point)
        Orthonormal rows; zero for components in which the points differ by rounding only.
    mean_ : array, shape (entries of a point,)
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

    is_linear = True

    def __init__(self, n_components: PositiveInt = 256) -> None:
        self.n_components = n_components

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        from sklearn.decomposition import PCA

        points, seed = X.reshape(len(X), -1), int(generator(random_state).integers(2**31))
        # scikit-learn may subtract the product of means from that of points, which leaves nothing of a small variance
        dtype = points.dtype if points.dtype.kind == "f" else np.float64
        self.mean_ = points.mean(0, dtype=np.float64).astype(dtype)
        with np.errstate(invalid="ignore"):  # shares of no variance, if all points are equal
            pca = PCA(min(self.n_components, *points.shape), random_state=seed).fit(points - self.mean_)
        # in float64, and not from the variances, which float32 may not hold
        deviations = pca.singular_values_.astype(np.float64) / np.sqrt(max(1, len(points) - 1))
        size = np.linalg.norm(self.mean_.astype(np.float64))
        self.components_ = np.where(is_constant(deviations, size, dtype)[:, None], 0, pca.components_)
        self.explained_variance_ratio_ = np.nan_to_num(pca.explained_variance_ratio_)
        self.n_outputs_ = len(self.components_)

    def _encode(self, points: Tensor) -> Tensor:
        components, mean = (torch.as_tensor(each).to(points) for each in (self.components_, self.mean_))
        return (points.flatten(1) - mean) @ components.T  # in this order: the mean may be far larger than the rest

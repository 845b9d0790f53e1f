"""Crops of images, and principal components of their patches (Daniely et al. 2017, section 6)."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from orbit.core.grid import middle
from orbit.core.linalg import is_constant
from orbit.core.params import PositiveInt
from orbit.registry import register
from orbit.representations.base import ImageRepresentation


@register("representation", "crop")
@dataclass(eq=False, repr=False)
class Crop(ImageRepresentation):
    """The central ``size`` x ``size`` pixels of an image.

    Parameters
    ----------
    size : int >= 1
        Side of the square that is kept, in pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import Crop
    >>> Crop(2).fit_transform(np.arange(16.0).reshape(1, 4, 4))
    array([[[ 5.,  6.],
            [ 9., 10.]]])
    """

    size: PositiveInt = 24

    def _fit(self, X: np.ndarray) -> None:
        self._check_images(X, self.size)

    def _transform(self, X: np.ndarray) -> np.ndarray:
        return middle(X, (self.size, self.size), 1)


@register("representation", "patch_pca")
@dataclass(eq=False, repr=False)
class PatchPCA(ImageRepresentation):
    """Grids of principal components of image patches; each image is centred and scaled first.

    Replaces a first convolution of the same size and stride: the skeleton then begins
    with ``{kind: conv, size: 1}``. Daniely et al. 2017, section 6 takes the central 24 x 24 pixels and
    10, 12 and 16 components of patches of size 4, 5 and 6.

    Parameters
    ----------
    size : int >= 1
        Side of the patches, in pixels.
    stride : int >= 1
        Distance between patches, in pixels.
    n_components : int >= 1
        At most the number of entries of a patch, ``size * size * channels``.
    crop : int >= 1 or None
        Side of the central square that is used, in pixels; None is the whole image.

    Attributes
    ----------
    components_ : array, shape (numbers in a patch, n_components)
        Scaled, so that every coordinate has variance one over the training patches.
    mean_ : array, shape (numbers in a patch,)

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.representations import PatchPCA
    >>> PatchPCA(size=4, stride=2, n_components=10, crop=None).fit_transform(
    ...     np.random.default_rng(0).random((5, 12, 12, 3))).shape
    (5, 5, 5, 10)
    """

    size: PositiveInt = 5
    stride: PositiveInt = 2
    n_components: PositiveInt = 12
    crop: PositiveInt | None = None

    def _fit(self, X: np.ndarray) -> None:
        self._check_images(X, max(self.size, self.crop or 1))
        channels = X.shape[3] if X.ndim == 4 else 1
        numbers = channels * self.size**2
        if self.n_components > numbers:
            raise self.wrong("n_components", f"at most {numbers}, the numbers in a patch")
        moments, total, count = np.zeros((numbers, numbers)), np.zeros(numbers), 0
        first = self._patches(X[:1]).astype(np.float64).reshape(-1, numbers)[0]
        for rows in self._batches(len(X)):
            # less the first one, so that equal patches have no variance
            patches = self._patches(X[rows]).astype(np.float64).reshape(-1, numbers) - first
            moments, total, count = moments + patches.T @ patches, total + patches.sum(0), count + len(patches)
        mean = total / count
        self.mean_ = first + mean
        covariance = moments / count - np.outer(mean, mean)
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = values[::-1][: self.n_components], vectors[:, ::-1][:, : self.n_components]
        scale = np.sqrt(np.maximum(values, 0))
        lost = (scale <= 1e-6 * scale[0]) | is_constant(scale, np.linalg.norm(self.mean_), X.dtype)
        self.components_ = vectors / np.where(lost, np.inf, scale)

    def _transform(self, X: np.ndarray) -> np.ndarray:
        """The components, computed as a convolution, without copies of overlapping patches."""
        channels = len(self.mean_) // self.size**2
        filters = np.ascontiguousarray(self.components_.T.reshape(-1, channels, self.size, self.size), dtype=X.dtype)
        shift = np.asarray(-self.mean_ @ self.components_, dtype=X.dtype)
        out = []
        for rows in self._batches(len(X)):
            images = torch.from_numpy(self._standardised(X[rows])).permute(0, 3, 1, 2)
            found = torch.conv2d(images, torch.from_numpy(filters), torch.from_numpy(shift), self.stride)
            out.append(found.permute(0, 2, 3, 1).numpy())
        return np.concatenate(out)

    def _batches(self, n: int) -> list[slice]:
        return [slice(start, start + 500) for start in range(0, n, 500)]

    def _patches(self, X: np.ndarray) -> np.ndarray:
        """Patches of centred and scaled images, shape ``(n, rows, columns, numbers in a patch)``."""
        windows = sliding_window_view(self._standardised(X), (self.size, self.size), axis=(1, 2))
        windows = windows[:, :: self.stride, :: self.stride]
        return windows.reshape(*windows.shape[:3], -1)

    def _standardised(self, X: np.ndarray) -> np.ndarray:
        """Centred and scaled images, shape ``(n, height, width, channels)``."""
        images = X if X.ndim == 4 else X[..., None]
        images = images if self.crop is None else middle(images, (self.crop, self.crop), 1)
        deviation, mean = images.std((1, 2, 3), keepdims=True), images.mean((1, 2, 3), keepdims=True)
        constant = is_constant(deviation, mean, images.dtype)
        return np.where(constant, 0, images - mean) / np.where(constant, 1, deviation)

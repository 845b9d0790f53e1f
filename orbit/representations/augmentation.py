"""Random augmentations of training points that keep their labels, drawn again for every pass over the data."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.core.params import NonNegativeFloat, Range
from orbit.core.threads import in_threads
from orbit.registry import register

# Pixels that a thread augments at once: those of 64 colour images of 32 x 32, in float32, fit a core's cache.
_TILE_PIXELS = 64 * 32 * 32


class Augmentation(Component):
    """Base class of augmentations. Test points are never augmented."""

    @abstractmethod
    def apply(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Augmented copies of points (n, *shape), of the same shape and dtype; ``X`` is not modified."""


@register("augmentation", "none")
class NoAugmentation(Augmentation):
    """Training points unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> NoAugmentation().apply(np.ones((1, 2)), np.random.default_rng(0))
    array([[1., 1.]])
    """

    def apply(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return X


@register("augmentation", "image")
@dataclass(eq=False, repr=False)
class ImageAugmentation(Augmentation):
    """Images shifted, mirrored, and changed in brightness, contrast and saturation (Daniely et al. 2017, section 6).

    A shift followed by the ``Crop`` representation is a random crop. The paper shifts
    images of 32 x 32 pixels by up to 4 and crops them to 24 x 24; it does not state the
    sizes of the other changes.

    Parameters
    ----------
    shift : int >= 0 or None
        Largest shift along each axis, in pixels; the border is repeated.
        None is an eighth of the shorter side, rounded down, but at least 1: 4 pixels
        of 32 x 32, 1 of 8 x 8.
    flip : bool
        Mirror left and right with probability 1/2.
    brightness : float >= 0
        Largest constant added to an image, in the unit of the pixels.
    contrast, saturation : float >= 0
        Largest relative change of the distances from a channel's mean, and
        from a pixel's grey value.

    Examples
    --------
    >>> import numpy as np
    >>> still = ImageAugmentation(shift=0, flip=True, brightness=0, contrast=0, saturation=0)
    >>> still.apply(np.array([[[0.0, 1.0]]] * 3), np.random.default_rng(0))[:, 0]
    array([[0., 1.],
           [1., 0.],
           [1., 0.]])
    """

    shift: Annotated[int, Range(low=0)] | None = None
    flip: bool = True
    brightness: NonNegativeFloat = 0.25
    contrast: NonNegativeFloat = 0.5
    saturation: NonNegativeFloat = 0.5

    def apply(self, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Augmented copies of images (n, *shape); raises ``InputError`` if the points are not images."""
        if X.ndim not in (3, 4):
            raise InputError(
                f"{self.label()} takes images, with or without channels, found points of shape {X.shape[1:]}: "
                "change dataset or augmentation"
            )
        X = X if X.dtype.kind == "f" else X.astype(np.float32)
        images = X if X.ndim == 4 else X[..., None]
        rows, columns = self._origins(images, rng)
        saturation, contrast = (_drawn(1, spread, images, rng) for spread in (self.saturation, self.contrast))
        brightness = _drawn(0, self.brightness, images, rng)
        result, at_once = np.empty_like(images), max(1, _TILE_PIXELS // (rows.shape[1] * columns.shape[1]))

        def change(start: int) -> None:
            tile = slice(start, start + at_once)
            changed = _taken(images[tile], rows[tile], columns[tile])
            if saturation is not None:
                _stretch(changed, _greys(changed), saturation[tile])
            if contrast is not None:
                _stretch(changed, _means(changed), contrast[tile])
            result[tile] = changed if brightness is None else changed + brightness[tile]

        in_threads(change, range(0, len(X), at_once))
        return result.reshape(X.shape)

    def _origins(self, images: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The rows (n, height) and columns (n, width) that the pixels of each image are taken from."""
        n, height, width = images.shape[:3]
        shift = max(1, min(height, width) // 8) if self.shift is None else self.shift
        down, right = rng.integers(-shift, shift + 1, (2, n, 1))
        rows = np.clip(np.arange(height) + down, 0, height - 1)
        columns = np.clip(np.arange(width) + right, 0, width - 1)
        if self.flip:
            columns = np.where(rng.random((n, 1)) < 0.5, columns[:, ::-1], columns)
        return rows, columns


def _drawn(middle: float, spread: float, images: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """A number for each image, shape (n, 1, 1, 1), at most ``spread`` from the middle; None if ``spread`` is 0."""
    if not spread:
        return None
    return rng.uniform(middle - spread, middle + spread, (len(images), 1, 1, 1)).astype(images.dtype)


def _taken(images: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Images (n, height, width, channels) of the given rows and columns of each."""
    n, height, width, channels = images.shape
    first = (np.arange(n)[:, None] * height + rows) * width  # of each row; 5 times as fast as indices of three axes
    return images.reshape(-1, channels).take(first[:, :, None] + columns[:, None, :], axis=0)


def _greys(images: np.ndarray) -> np.ndarray:
    """The mean of the channels of each pixel, shape (n, height, width, 1), 10 times as fast as ``mean``."""
    return (sum(images[..., i] for i in range(images.shape[3])) / images.dtype.type(images.shape[3]))[..., None]


def _means(images: np.ndarray) -> np.ndarray:
    """The mean of the pixels of each channel, shape (n, 1, 1, channels), by torch, 18 times as fast as NumPy's.

    As a matrix product, of large images, it would wait for the threads of BLAS, which all calls share.
    """
    return torch.from_numpy(images).mean((1, 2), keepdim=True).numpy()


def _stretch(images: np.ndarray, centre: np.ndarray, factors: np.ndarray) -> None:
    """Multiply the distances from a centre, in place."""
    images -= centre
    images *= factors
    images += centre

"""Shifts of series, images and volumes by whole samples or fractions."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from orbit.core.grid import grid_axes
from orbit.core.params import PositiveInt
from orbit.groups.base import AdditiveGroup
from orbit.groups.domains import Line, Torus
from orbit.groups.resampled import Resampled, warn_about_channels
from orbit.registry import register

# Points of two axes, the first as short as channels are and the other this long, are hardly images.
_FEW_CHANNELS, _LENGTH_OF_SERIES = 4, 16

_NAMES = {1: "series of shape (length,)", 2: "images of shape (height, width)", 3: "volumes (depth, height, width)"}


@register("group", "translation")
@dataclass(eq=False, repr=False)
class Translation(AdditiveGroup, Resampled):
    """Shifts of series, images and volumes, with or without channels as the last axis.

    Elements are samples for series, (rows down, columns right) in pixels for
    images, and one number for each axis for volumes.

    Parameters
    ----------
    fill : {"zero", "wrap", "edge", "reflect", "mean"}
        What is shifted in from outside: zeros, what is shifted out on the other
        side, the nearest sample, mirrored samples, or the mean of the point.
    step : {"subpixel", "pixel"}
        Any shift, by linear interpolation, or whole samples only. Wrapped whole
        samples are a finite group that only reorders them: exact.
    period : list of int or None
        Period of wrapped shifts on each axis, in samples; None is the size of the point.
    axes : {1, 2, 3} or None
        Number of axes that are shifted: 1 for series, 2 for images, 3 for volumes;
        an axis after them holds channels. None: from the shape of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Translation
    >>> X = np.arange(6.0).reshape(1, 2, 3)
    >>> Translation(fill="wrap").act([[0, 1]], X)[0, 0]
    array([[2., 0., 1.],
           [5., 3., 4.]])
    >>> Translation(fill="edge", axes=1).act([1.5], np.array([[1.0, 3.0, 5.0, 9.0]]))[0, 0]
    array([1., 1., 2., 4.])
    """

    fill: Literal["zero", "wrap", "edge", "reflect", "mean"] = "zero"
    step: Literal["subpixel", "pixel"] = "subpixel"
    period: list[PositiveInt] | None = None
    axes: Literal[1, 2, 3] | None = None

    default_distribution: ClassVar[dict[str, Any]] = {"name": "gaussian", "sigma": 1.0}
    # Linear interpolation has a kink at every whole sample, where Gauss rules with few nodes lose their accuracy.
    default_rule = "qmc"

    @property
    def _n_axes(self) -> int:
        return self.axes or (2 if self.period is None else len(self.period))

    @property
    def domain(self) -> Line:
        step = 1.0 if self.step == "pixel" else None
        if self.fill != "wrap":
            return Line(self._n_axes, "pixels", step)
        periods = None if self.period is None else tuple(float(p) for p in self.period)
        return Torus(self._n_axes, "pixels", step, periods)

    def for_shape(self, shape: tuple[int, ...]) -> Self:
        axes = self.axes or grid_axes(shape)
        fitted = self._with(axes=axes)
        fitted.check_shape(shape)
        if len(shape) == 2 == axes and shape[0] <= _FEW_CHANNELS and shape[1] >= _LENGTH_OF_SERIES:
            warnings.warn(
                f"{self.label()} shifts both axes of points of shape {shape}, as those of images; if they are series "
                "with channels, move the channels to the end: np.moveaxis(X, 1, -1)",
                stacklevel=2,
            )
        elif axes == 2:
            warn_about_channels(self, shape)
        return fitted._with(period=list(shape[:axes])) if self.fill == "wrap" else fitted

    def check_shape(self, shape: tuple[int, ...]) -> None:
        n = self._n_axes
        if len(shape) not in (n, n + 1):
            raise self._refuse(shape, f"{_NAMES[n]}, with or without channels (axes={n})")
        if self.fill == "wrap" and self.period is not None and tuple(self.period) != shape[:n]:
            raise self._refuse(shape, f"points of {' x '.join(map(str, self.period))} samples (period)")

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return self.permutes(shape)

    def permutes(self, shape: tuple[int, ...]) -> bool:
        return self.fill == "wrap" and self.step == "pixel"

    def cyclic_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(range(self._n_axes)) if self.fill == "wrap" else ()

    def describe(self, element: np.ndarray) -> str:
        return ", ".join(f"{shift:+.3g}" for shift in np.ravel(element)) + " px"

    def _grid(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[: self._n_axes]

    def _positions(self, element: np.ndarray, grid: tuple[int, ...]) -> list[np.ndarray]:
        return [axis - shift for axis, shift in zip(np.indices(grid), np.ravel(element), strict=True)]

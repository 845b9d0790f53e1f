"""Shifts of 2-D images by whole pixels or fractions, with zero fill or wrapping."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import numpy as np

from orbit.core.params import PositiveInt
from orbit.groups.base import AdditiveGroup
from orbit.groups.domains import Line, Torus
from orbit.groups.planar import PlanarMap, with_offset
from orbit.registry import register

# Points of two axes, one as short as channels are and the other this long, are hardly images.
_FEW_CHANNELS, _LENGTH_OF_SERIES = 4, 16


@register("group", "translation")
class Translation(AdditiveGroup, PlanarMap):
    """Shifts of images ``(h, w)`` or ``(h, w, channels)``; elements are (rows down, columns right) in pixels.

    Parameters
    ----------
    fill : {"zero", "wrap"}
        Pixels shifted in from outside: zeros, or those shifted out on the other side.
    step : {"subpixel", "pixel"}
        Any shift, by bilinear interpolation, or whole pixels only. Wrapped whole
        pixels are a finite group that only reorders pixels: exact.
    period : [rows, columns] or None
        Period of wrapped shifts, in pixels; None is the size of the image.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import Translation
    >>> X = np.arange(6.0).reshape(1, 2, 3)
    >>> Translation(fill="wrap").act([[0, 1]], X)[0, 0]
    array([[2., 0., 1.],
           [5., 3., 4.]])
    """

    default_distribution: ClassVar[dict[str, Any]] = {"name": "gaussian", "sigma": 1.0}
    # Bilinear interpolation has a kink at every whole pixel, where Gauss rules with few nodes lose their accuracy.
    default_rule = "qmc"

    def __init__(
        self,
        fill: Literal["zero", "wrap"] = "zero",
        step: Literal["subpixel", "pixel"] = "subpixel",
        period: list[PositiveInt] | None = None,
    ) -> None:
        self.fill = fill
        self.step = step
        self.period = period

    @property
    def domain(self) -> Line:
        step = 1.0 if self.step == "pixel" else None
        if self.fill == "zero":
            return Line(2, "pixels", step)
        return Torus(2, "pixels", step, None if self.period is None else tuple(float(p) for p in self.period))

    @property
    def wraps(self) -> bool:  # type: ignore[override]
        return self.fill == "wrap"

    def for_shape(self, shape: tuple[int, ...]) -> Translation:
        super().for_shape(shape)
        if len(shape) == 2 and min(shape) <= _FEW_CHANNELS and max(shape) >= _LENGTH_OF_SERIES:
            warnings.warn(
                f"{self.label()} shifts both axes of points of shape {shape}, as those of images; if they are series "
                f"with channels, choose the group cyclic with axis={int(shape[0] < shape[1])}",
                stacklevel=2,
            )
        return self._with(period=list(shape[:2])) if self.wraps else self

    def check_shape(self, shape: tuple[int, ...]) -> None:
        super().check_shape(shape)
        if self.wraps and self.period is not None and tuple(self.period) != shape[:2]:
            raise self._refuse(shape, f"images of {self.period[0]} x {self.period[1]} pixels (period)")

    def is_unitary(self, shape: tuple[int, ...]) -> bool:
        return self.permutes(shape)

    def permutes(self, shape: tuple[int, ...]) -> bool:
        return self.wraps and self.step == "pixel"

    def cyclic_axes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (0, 1) if self.wraps else ()

    def describe(self, element: np.ndarray) -> str:
        return f"{element[0]:+.3g}, {element[1]:+.3g} px"

    def _inverse_map(self, element: np.ndarray) -> np.ndarray:
        rows, columns = element
        return with_offset(np.eye(2), (-columns, rows))

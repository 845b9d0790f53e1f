"""The result of a comparison, and functions that several comparisons share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import ndimage

from orbit.core.errors import InputError
from orbit.engine import Engine
from runners.config.plan import Plan

_SIDE = 28


@dataclass(frozen=True)
class Comparison:
    """Cases to time, and the ratios between them.

    Attributes
    ----------
    cases : mapping of str to callable
        Name -> function that is timed.
    ratios : mapping of str to (str, str)
        Label -> names of the cases in the numerator and the denominator.
    metrics : dict of str to float
        Other measurements, such as errors, by flat names.
    """

    cases: Mapping[str, Callable[[], object]]
    ratios: Mapping[str, tuple[str, str]]
    metrics: dict[str, float] = field(default_factory=dict)


def images(plan: Plan, n_points: int, side: int = _SIDE) -> np.ndarray:
    """Images of the plan's data set, float32, shape (n_points, side, side).

    Images of another size are resized by cubic splines; a data set with fewer than ``n_points`` images is repeated.
    """
    X = plan.load().X_train[:n_points]
    if X.ndim != 3:
        raise InputError(
            f"this comparison needs images of one channel, found points of shape {X.shape[1:]}: change dataset"
        )
    factor = side / X.shape[1]
    if factor != 1:
        X = np.clip(ndimage.zoom(X, (1, factor, factor), order=3), 0, None)
    return X[np.arange(n_points) % len(X)].astype(np.float32)


def represented_images(plan: Plan, n_points: int, side: int = _SIDE) -> np.ndarray:
    """The images in the plan's representation."""
    return plan.component("representation").fit_transform(images(plan, n_points, side))


def engine(plan: Plan, **changes: Any) -> Engine:
    """The engine of the plan with some options changed."""
    return Engine(**(plan.config["engine"] | changes))


def slices(length: int, step: int) -> list[slice]:
    """Consecutive slices of size ``step`` that cover ``length``.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def relative_error(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Relative error in the Frobenius norm."""
    return float(np.linalg.norm(estimate - truth) / np.linalg.norm(truth))

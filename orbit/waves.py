"""Weighted sums of cosines and sines of many angles: in one pass by a compiled loop, or by torch.

The trigonometry is most of what a projection costs once the products are cheap. torch
takes three passes over a tile for the cosines, three for the sines, and writes both
to memory. Where numba is installed (``pip install 'orbit[fast]'``) one loop reads the
angles, evaluates two polynomials and adds to the sums. Its values are off by up to
5e-7 for angles of a few turns, which are rounded by as much; float64 and GPUs are torch's.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbit.engine import add_weighted

# Angles are brought to within half a turn by this whole turn in two pieces: the first has so few
# digits that its products with some ten thousand turns are exact.
_TURN_HIGH = 6.28125
_TURN_LOW = 2 * math.pi - _TURN_HIGH

# Degrees of the polynomials in the square of an angle within half a turn: off by 2e-8, less than rounding.
_DEGREE = 6


def add_waves(angles: Tensor, weights: Tensor, cosines: Tensor, sines: Tensor, spare: Tensor) -> None:
    """``cosines += sum_i weights[i] cos(angles[i])``, and ``sines`` likewise.

    Parameters
    ----------
    angles : tensor, shape (r, n, u), contiguous; may be overwritten
    weights : tensor, shape (r,)
    cosines, sines : tensors, shape (n, u)
    spare : tensor of the shape of ``angles``, overwritten
    """
    if loops := _loops(angles):
        loops[0](*(array.numpy() for array in (angles, weights, cosines, sines)))
        return
    torch.cos(angles, out=spare)
    add_weighted(cosines, spare, weights)
    add_weighted(sines, angles.sin_(), weights)


def add_damped_waves(
    angles: Tensor, others: Tensor, weights: Tensor, cosines: Tensor, sines: Tensor, spare: Tensor
) -> None:
    """:func:`add_waves` with every weight times ``cos(others[i])``; ``others`` may be overwritten too."""
    if loops := _loops(angles):
        loops[1](*(array.numpy() for array in (angles, others, weights, cosines, sines)))
        return
    torch.cos(angles, out=spare)
    common = others.cos_()
    add_weighted(cosines, spare.mul_(common), weights)
    add_weighted(sines, angles.sin_().mul_(common), weights)


def is_available() -> bool:
    """Whether the compiled loops can be used."""
    return importlib.util.find_spec("numba") is not None


Loops = tuple[Callable[..., None], Callable[..., None]]


def _loops(angles: Tensor) -> Loops | None:
    return _compiled() if angles.dtype == torch.float32 and angles.device.type == "cpu" else None


def _polynomials() -> tuple[tuple[np.float32, ...], tuple[np.float32, ...]]:
    """Coefficients of cos(y) and sin(y) / y in y^2 up to half a turn, the constant first."""
    domain = [0.0, math.pi**2]
    functions = (lambda u: np.cos(np.sqrt(u)), lambda u: np.sinc(np.sqrt(u) / math.pi))
    series = (
        np.polynomial.Chebyshev.interpolate(f, _DEGREE, domain).convert(kind=np.polynomial.Polynomial)
        for f in functions
    )
    cosine, sine = (tuple(p.coef.astype(np.float32)) for p in series)
    return cosine, sine


# What the loops below know. They are plain functions, compiled when they are first needed.
_COS, _SIN = _polynomials()
_PER_TURN, _HIGH, _LOW = np.float32(0.5 / math.pi), np.float32(_TURN_HIGH), np.float32(_TURN_LOW)


def _waves(angles, weights, cosines, sines):
    c0, c1, c2, c3, c4, c5, c6 = _COS
    s0, s1, s2, s3, s4, s5, s6 = _SIN
    r, n, columns = angles.shape
    first, second = np.empty(columns, np.float32), np.empty(columns, np.float32)
    for row in range(n):
        first[:] = 0
        second[:] = 0
        for i in range(r):
            for j in range(columns):
                turns = np.rint(angles[i, row, j] * _PER_TURN)
                y = (angles[i, row, j] - turns * _HIGH) - turns * _LOW
                u = y * y
                first[j] += weights[i] * (c0 + u * (c1 + u * (c2 + u * (c3 + u * (c4 + u * (c5 + u * c6))))))
                second[j] += weights[i] * y * (s0 + u * (s1 + u * (s2 + u * (s3 + u * (s4 + u * (s5 + u * s6))))))
        for j in range(columns):
            cosines[row, j] += first[j]
            sines[row, j] += second[j]


def _damped_waves(angles, others, weights, cosines, sines):
    c0, c1, c2, c3, c4, c5, c6 = _COS
    s0, s1, s2, s3, s4, s5, s6 = _SIN
    r, n, columns = angles.shape
    first, second = np.empty(columns, np.float32), np.empty(columns, np.float32)
    for row in range(n):
        first[:] = 0
        second[:] = 0
        for i in range(r):
            for j in range(columns):
                turns = np.rint(others[i, row, j] * _PER_TURN)
                y = (others[i, row, j] - turns * _HIGH) - turns * _LOW
                u = y * y
                common = weights[i] * (c0 + u * (c1 + u * (c2 + u * (c3 + u * (c4 + u * (c5 + u * c6))))))
                turns = np.rint(angles[i, row, j] * _PER_TURN)
                y = (angles[i, row, j] - turns * _HIGH) - turns * _LOW
                u = y * y
                first[j] += common * (c0 + u * (c1 + u * (c2 + u * (c3 + u * (c4 + u * (c5 + u * c6))))))
                second[j] += common * y * (s0 + u * (s1 + u * (s2 + u * (s3 + u * (s4 + u * (s5 + u * s6))))))
        for j in range(columns):
            cosines[row, j] += first[j]
            sines[row, j] += second[j]


@functools.cache
def _compiled() -> Loops | None:
    """The two loops compiled, or None without numba.

    That takes seconds, and is kept for the next process where numba finds a folder to write to.
    """
    if not is_available():
        return None
    import numba

    tile, sums, vector = numba.float32[:, :, ::1], numba.float32[:, :], numba.float32[::1]
    # products and sums may be fused, but not reordered: that would undo the two pieces of a turn
    options: dict[str, Any] = {"fastmath": {"contract", "nsz"}, "nogil": True}

    def compiled(function: Callable[..., None], *signature: Any) -> Callable[..., None]:
        try:
            return numba.njit(signature, cache=True, **options)(function)
        except RuntimeError:  # no folder to keep it in
            return numba.njit(signature, **options)(function)

    return compiled(_waves, tile, vector, sums, sums), compiled(_damped_waves, tile, tile, vector, sums, sums)

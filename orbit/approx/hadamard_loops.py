"""Products with signs and Walsh-Hadamard matrices, compiled by numba for float32 or float64 when first used.

All passes of a transform are the same (Pease 1968): each reads a few contiguous parts of
a vector and interleaves their sums and differences. Strided passes in place would have short
inner loops, which the compiler does not vectorise.
"""

import numpy as np

from orbit.core.compiled import compiled


@compiled()
def _two(x, y):
    step = len(x) // 2
    a, b = x[:step], x[step:]
    for j in range(step):
        y[2 * j], y[2 * j + 1] = a[j] + b[j], a[j] - b[j]


@compiled()
def _four(x, y):
    step = len(x) // 4
    a, b, c, d = x[:step], x[step : 2 * step], x[2 * step : 3 * step], x[3 * step :]
    for j in range(step):
        p, q, r, s = a[j] + b[j], a[j] - b[j], c[j] + d[j], c[j] - d[j]
        y[4 * j], y[4 * j + 1], y[4 * j + 2], y[4 * j + 3] = p + r, q + s, p - r, q - s


@compiled()
def _eight(x, y):
    step = len(x) // 8
    a, b, c, d = x[:step], x[step : 2 * step], x[2 * step : 3 * step], x[3 * step : 4 * step]
    e, f, g, h = x[4 * step : 5 * step], x[5 * step : 6 * step], x[6 * step : 7 * step], x[7 * step :]
    for j in range(step):
        p, q, r, s = a[j] + b[j], a[j] - b[j], c[j] + d[j], c[j] - d[j]
        t, u, v, w = e[j] + f[j], e[j] - f[j], g[j] + h[j], g[j] - h[j]
        p, q, r, s = p + r, q + s, p - r, q - s
        t, u, v, w = t + v, u + w, t - v, u - w
        i = 8 * j
        y[i], y[i + 1], y[i + 2], y[i + 3] = p + t, q + u, r + v, s + w
        y[i + 4], y[i + 5], y[i + 6], y[i + 7] = p - t, q - u, r - v, s - w


@compiled()
def _multiply(x, diagonal, y):
    for j in range(len(x)):
        y[j] = x[j] * diagonal[j]


@compiled()
def _transform(x, y):
    """The transform of ``x``, not normalised, and the array that does not hold it; both are overwritten."""
    left = len(x)
    while left >= 8:
        _eight(x, y)
        x, y, left = y, x, left // 8
    if left == 4:
        _four(x, y)
        x, y = y, x
    if left == 2:
        _two(x, y)
        x, y = y, x
    return x, y


@compiled()
def project(points, diagonals, lengths, out):
    """``out[i] = diag(lengths) H D1 H D2 H D3 points[i]``, the first rows, for H of entries -1 and 1.

    Parameters
    ----------
    points : array, shape (n, d), contiguous like diagonals and lengths; all have one type
    diagonals : array, shape (3, 2^k): those of D3, D2 and D1; points are padded with zeros
    lengths : array, shape (u,), with u <= 2^k
    out : array, shape (n, u)
    """
    (n, d), block, kept = points.shape, diagonals.shape[1], len(lengths)
    x, y = np.zeros(block, points.dtype), np.zeros(block, points.dtype)
    for i in range(n):
        _multiply(points[i], diagonals[0, :d], x[:d])
        x[d:] = 0
        for stage in (1, 2):
            x, y = _transform(x, y)
            _multiply(x, diagonals[stage], y)
            x, y = y, x
        x, y = _transform(x, y)
        _multiply(x[:kept], lengths, out[i])

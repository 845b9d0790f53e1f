"""L1 distances in float32 or float64, compiled by numba for either when it is first used.

Blocks of B stay in the cache while all rows of A pass; two rows and four coordinates at
once make two additions for each load. One loop over contiguous arguments in each
function: otherwise the compiler does not vectorise it.
"""

import numpy as np

from orbit.core.compiled import compiled

_COORDINATES, _POINTS = 16, 1024  # of a block of B: 64 KB in float32


@compiled()
def _add_four(b0, b1, b2, b3, x0, x1, x2, x3, y0, y1, y2, y3, of_x, of_y):
    for j in range(len(b0)):
        p, q, r, s = b0[j], b1[j], b2[j], b3[j]
        of_x[j] += (abs(x0 - p) + abs(x1 - q)) + (abs(x2 - r) + abs(x3 - s))
        of_y[j] += (abs(y0 - p) + abs(y1 - q)) + (abs(y2 - r) + abs(y3 - s))


@compiled()
def _add_one(b, x, y, of_x, of_y):
    for j in range(len(b)):
        of_x[j] += abs(x - b[j])
        of_y[j] += abs(y - b[j])


@compiled()
def l1_distances(A, B, first, out):
    """``out[i, j] = sum_k |A[i, k] - B[k, first + j]|``.

    Parameters
    ----------
    A : array, shape (n, d), contiguous like the others, and of their type
    B : array, shape (d, m): one column for each point
    first : int
    out : array, shape (n, m') with ``first + m' <= m``
    """
    (n, d), m = A.shape, out.shape[1]
    out[:] = 0
    spare = np.zeros(_POINTS, A.dtype)  # distances of the missing partner of the last of an odd number of rows
    for start in range(0, m, _POINTS):
        end = min(m, start + _POINTS)
        left, right = first + start, first + end
        for block in range(0, d, _COORDINATES):
            upto = min(d, block + _COORDINATES)
            fours = upto - (upto - block) % 4
            for i in range(0, n, 2):
                x, y = A[i], A[min(i + 1, n - 1)]
                of_x, of_y = out[i, start:end], out[i + 1, start:end] if i + 1 < n else spare[: end - start]
                for k in range(block, fours, 4):
                    b0, b1, b2, b3 = B[k, left:right], B[k + 1, left:right], B[k + 2, left:right], B[k + 3, left:right]
                    x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
                    y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
                    _add_four(b0, b1, b2, b3, x0, x1, x2, x3, y0, y1, y2, y3, of_x, of_y)
                for k in range(fours, upto):
                    _add_one(B[k, left:right], x[k], y[k], of_x, of_y)

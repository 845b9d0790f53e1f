"""Reference formulas in float64, written as loops without the library's code, to test fast code against."""

import numpy as np

# ---- actions ---------------------------------------------------------------------------------------------------------


def rotate(image: np.ndarray, angle: float) -> np.ndarray:
    """A counter-clockwise rotation of one image ``(h, w)`` about its centre, bilinear, zero outside."""
    height, width = image.shape
    out = np.zeros_like(image, dtype=np.float64)
    for i in range(height):
        for j in range(width):
            x, y = j - (width - 1) / 2, (height - 1) / 2 - i
            from_x = np.cos(angle) * x + np.sin(angle) * y  # R(-angle) (x, y)
            from_y = -np.sin(angle) * x + np.cos(angle) * y
            row, column = (height - 1) / 2 - from_y, from_x + (width - 1) / 2
            top, left = int(np.floor(row)), int(np.floor(column))
            for k, share_k in ((top, top + 1 - row), (top + 1, row - top)):
                for m, share_m in ((left, left + 1 - column), (left + 1, column - left)):
                    if 0 <= k < height and 0 <= m < width:
                        out[i, j] += share_k * share_m * image[k, m]
    return out


def turn(rings: np.ndarray, angle: float) -> np.ndarray:
    """A rotation of one polar image ``(radii, angles)``: the trigonometric polynomial through each ring's samples."""
    n = rings.shape[-1]
    out = np.zeros_like(rings, dtype=np.float64)
    grid = 2 * np.pi * np.arange(n) / n
    for m in range(n):
        distance = grid[m] - angle - grid
        kernel = 1 + 2 * sum(np.cos(k * distance) for k in range(1, (n - 1) // 2 + 1))
        if n % 2 == 0:  # the highest frequency has a cosine only: cos(n/2 t) at the grid is (-1)^j
            kernel = kernel + np.cos(n / 2 * (grid[m] - angle)) * np.cos(n / 2 * grid)
        out[..., m] = rings @ np.broadcast_to(kernel, n) / n
    return out


def orbit_points(move, elements: np.ndarray, X: np.ndarray) -> np.ndarray:
    """``move(x, g_i)`` for all elements and points, flattened, shape ``(r, n, d)``."""
    return np.array([[move(x, g).ravel() for x in X] for g in elements], dtype=np.float64)


# ---- kernels, from orbit points (r, n, d) ----------------------------------------------------------------------------


def gaussian(x: np.ndarray, z: np.ndarray, lengthscale: float) -> float:
    return float(np.exp(-np.sum((x - z) ** 2) / (2 * lengthscale**2)))


def exact_gram(points_x, points_z, weights: np.ndarray, lengthscale: float) -> np.ndarray:
    """sum_ij w_i w_j k(g_i x, g_j z) (Raj et al. 2017, eq. 3), shape ``(n, m)``."""
    out = np.zeros((points_x.shape[1], points_z.shape[1]))
    for a in range(out.shape[0]):
        for b in range(out.shape[1]):
            for i, w in enumerate(weights):
                for j, v in enumerate(weights):
                    out[a, b] += w * v * gaussian(points_x[i, a], points_z[j, b], lengthscale)
    return out

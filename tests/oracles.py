"""Formulas in float64, written as loops without the library's code, beside those that ``orbit.testing`` ships."""

import numpy as np
from scipy import special
from scipy.signal import ShortTimeFFT

from orbit.testing.oracles import exact_gram, gaussian, orbit_points, rotate, turn  # noqa: F401

# ---- features, from orbit points (r, n, d) ---------------------------------------------------------------------------


def fourier_pairs(points: np.ndarray, weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """s^(-1/2) [sum_i w_i cos<w_j, g_i x>; sum_i w_i sin<w_j, g_i x>] (Raj et al. 2017, eq. 7)."""
    s = len(frequencies)
    out = np.zeros((points.shape[1], 2 * s))
    for a in range(points.shape[1]):
        for j, frequency in enumerate(frequencies):
            for i, w in enumerate(weights):
                angle = frequency @ points[i, a]
                out[a, j] += w * np.cos(angle) / np.sqrt(s)
                out[a, s + j] += w * np.sin(angle) / np.sqrt(s)
    return out


def fourier_offset(points, weights: np.ndarray, frequencies: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """(2/s)^(1/2) sum_i w_i cos(<w_j, g_i x> + b_j)."""
    s = len(frequencies)
    out = np.zeros((points.shape[1], s))
    for a in range(points.shape[1]):
        for j, frequency in enumerate(frequencies):
            for i, w in enumerate(weights):
                out[a, j] += w * np.sqrt(2 / s) * np.cos(frequency @ points[i, a] + offsets[j])
    return out


def landmark_columns(points, weights: np.ndarray, landmarks: np.ndarray, lengthscale: float) -> np.ndarray:
    """sum_i w_i k(z_j, g_i x), which Nyström features map linearly (Raj et al. 2017, eq. 8), shape ``(n, m)``."""
    out = np.zeros((points.shape[1], len(landmarks)))
    for a in range(points.shape[1]):
        for j, z in enumerate(landmarks):
            for i, w in enumerate(weights):
                out[a, j] += w * gaussian(points[i, a], z, lengthscale)
    return out


# ---- regularised least squares -------------------------------------------------------------------------------------


def ridge(X: np.ndarray, Y: np.ndarray, regularization: float) -> tuple[np.ndarray, np.ndarray]:
    """The minimiser (W, b) of (1/n) |X W + b - Y|^2 + lambda |W|^2, by its normal equations with the intercept in."""
    n, d = X.shape
    A = np.hstack([X, np.ones((n, 1))])
    penalty = n * regularization * np.diag([1.0] * d + [0.0])
    solution = np.linalg.solve(A.T @ A + penalty, A.T @ Y)
    return solution[:d], solution[d]


def hat_matrix(X: np.ndarray, regularization: float) -> np.ndarray:
    """H with fitted values H Y, column by column from the definition."""
    n = len(X)
    columns = []
    for i in range(n):
        W, b = ridge(X, np.eye(n)[:, [i]], regularization)
        columns.append((X @ W + b)[:, 0])
    return np.array(columns).T


def gcv(X: np.ndarray, Y: np.ndarray, regularization: float) -> float:
    """(1/n) |(I - H) Y|^2 / (tr(I - H) / n)^2 (Golub, Heath and Wahba 1979)."""
    residual = np.eye(len(X)) - hat_matrix(X, regularization)
    return float(np.square(residual @ Y).sum() / len(X) / (np.trace(residual) / len(X)) ** 2)


def leave_one_out(X: np.ndarray, Y: np.ndarray, regularization: float) -> float:
    """Mean square error on each point of the solution for all others, with the weight n lambda of the full problem."""
    n = len(X)
    errors = []
    for i in range(n):
        rest = np.arange(n) != i
        W, b = ridge(X[rest], Y[rest], regularization * n / (n - 1))
        errors.append(np.square(X[i] @ W + b - Y[i]).mean())
    return float(np.mean(errors))


# ---- skeletons -------------------------------------------------------------------------------------------------------


def relu_dual(rho: float) -> float:
    """The arc-cosine kernel of order 1 between unit vectors at the angle arccos(rho) (Cho and Saul 2009, eq. 6)."""
    theta = np.arccos(np.clip(rho, -1, 1))
    return float((np.sin(theta) + (np.pi - theta) * np.cos(theta)) / np.pi)


def convolution_kernel(x: np.ndarray, z: np.ndarray, layers: list[tuple[int, int, str]]) -> float:
    """The compositional kernel of two images (height, width, channels), by loops over positions (RFS section 5).

    Base kernel cos(x - z) of single numbers; ``layers`` are (size, stride, activation) from the bottom up, and size 0
    stands for a fully connected layer.
    """
    values = np.cos(x - z)
    for size, stride, activation in layers:
        height, width = values.shape[:2]
        size_y, size_x = (size, size) if size else (height, width)
        tops, lefts = range(0, height - size_y + 1, stride), range(0, width - size_x + 1, stride)
        above = np.zeros((len(tops), len(lefts), 1))
        for i, top in enumerate(tops):
            for j, left in enumerate(lefts):
                rho = values[top : top + size_y, left : left + size_x].mean()
                above[i, j, 0] = relu_dual(rho) if activation == "relu" else np.exp((rho - 1) / 4)
        values = above
    return float(values[0, 0, 0])


# ---- cumulative distribution features -------------------------------------------------------------------------------


def distribution_functions(points, weights: np.ndarray, templates: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """sum_i w_i 1[<t_j, g_i x> <= tau_jk] (GICDF section 2), shape ``(n, m, thresholds)``, one comparison each."""
    out = np.zeros((points.shape[1], *thresholds.shape))
    for i, w in enumerate(weights):
        projections = points[i] @ templates.T
        for k in range(thresholds.shape[1]):
            out[:, :, k] += w * (projections <= thresholds[:, k])
    return out


_GAUSS = np.polynomial.legendre.leggauss(30)


def mean_maximum_on_the_sphere(x: np.ndarray, z: np.ndarray) -> float:
    """E max(<x, t>, <z, t>) over unit vectors t, from the plane of x and z.

    In it t has a length r with r^2 ~ Beta(1, d/2 - 1), independent of its angle, which is uniform.
    """
    d = len(x)
    u = x / np.linalg.norm(x)
    v = z - (z @ u) * u
    v /= np.linalg.norm(v) or 1.0
    length = special.beta(1.5, d / 2 - 1) / special.beta(1, d / 2 - 1)
    # <t, x> is the larger one on half a turn about the direction of x - z
    middle = np.arctan2(v @ (x - z), u @ (x - z))
    nodes, weights = _GAUSS
    angles = middle + np.pi / 2 * nodes
    near = np.outer(np.cos(angles), u) + np.outer(np.sin(angles), v)
    return float(length * (weights @ (near @ x) + weights @ (-near @ z)) / 4)


def cdf_gram(points, weights: np.ndarray, s: float, templates: str) -> np.ndarray:
    """sum_ij w_i w_j E_t (s - max(<g_i x, t>, <g_j z, t>)) with Gaussian lengths from a million draws."""
    n, d = points.shape[1:]
    length = 1.0
    if templates == "gaussian":
        squares = np.random.default_rng(0).chisquare(d, 1_000_000) / d
        length = np.sqrt(squares[squares < 1.1]).mean()
    out = np.full((n, n), s)
    for a in range(n):
        for b in range(n):
            for i, w in enumerate(weights):
                for j, v in enumerate(weights):
                    out[a, b] -= w * v * length * mean_maximum_on_the_sphere(points[i, a], points[j, b])
    return out


def count_sketch(columns: np.ndarray, buckets: np.ndarray, signs: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros((len(columns), size))
    for j, (bucket, sign) in enumerate(zip(buckets, signs, strict=True)):
        out[:, bucket] += sign * columns[:, j]
    return out


def network(image: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    """Logits of two convolutions (3 x 3, stride 2, padding 1; 2 x 1) and a full layer, rectified, by loops."""
    (first, b1), (second, b2), (full, b3), (last, b4) = zip(values[::2], values[1::2], strict=True)
    hidden = _convolved(np.pad(image, ((1, 1), (1, 1), (0, 0))), first, b1, 2)
    hidden = _convolved(hidden, second, b2, 1)
    hidden = np.maximum(full @ hidden.transpose(2, 0, 1).ravel() + b3, 0)
    return last @ hidden + b4


def _convolved(image: np.ndarray, filters: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    height, width = filters.shape[2:]
    tops, lefts = (range(0, n - s + 1, stride) for n, s in zip(image.shape, (height, width), strict=False))
    windows = [[image[i : i + height, j : j + width].transpose(2, 0, 1) for j in lefts] for i in tops]
    return np.maximum(np.array([[(filters * w).sum((1, 2, 3)) + bias for w in row] for row in windows]), 0)


# ---- signals ---------------------------------------------------------------------------------------------------------


def stretched(x: np.ndarray, factor: float, window: int) -> np.ndarray:
    """A signal stretched by a phase vocoder, frame by frame with SciPy's transform and phases of many turns."""
    hop = max(1, window // 4)
    weights = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(window) + 0.5) / window)
    transform = ShortTimeFFT(weights, hop, fs=1.0, mfft=window)
    S = transform.stft(x)  # (frequencies, frames)
    own = 2 * np.pi * transform.f * hop
    deviation = np.diff(np.angle(S), axis=1) - own[:, None]
    advance = own[:, None] + deviation - 2 * np.pi * np.round(deviation / (2 * np.pi))
    n_out = max(window, round(factor * len(x)))
    source = np.arange(transform.p_min, transform.p_max(n_out)) / factor - transform.p_min
    source = np.clip(source, 0, S.shape[1] - 1)
    before = np.minimum(source.astype(int), S.shape[1] - 2)
    share = source - before
    moved = (1 - share) * np.abs(S[:, before]) + share * np.abs(S[:, before + 1])
    power = (moved**2).sum(0)
    anchor = np.flatnonzero(power >= 0.999 * power.max())[0]
    phases = np.empty_like(moved)
    phases[:, anchor] = np.angle(S[:, before[anchor]]) + share[anchor] * advance[:, before[anchor]]
    for t in range(anchor + 1, len(source)):
        phases[:, t] = phases[:, t - 1] + advance[:, before[t - 1]]
    for t in range(anchor - 1, -1, -1):
        phases[:, t] = phases[:, t + 1] - advance[:, before[t]]
    return transform.istft(moved * np.exp(1j * phases), k1=n_out)[: max(1, round(factor * len(x)))]


def mel_spectrogram(x: np.ndarray, bands: int, frames: int, rate: float, window: int, floor: float) -> np.ndarray:
    """Log energy of one signal, frame by frame and band by band, shape (bands, frames)."""
    mel = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), bands + 2)
    corners = 700 * (10 ** (mel / 2595) - 1)
    energy = np.zeros((bands, frames))
    for t in range(frames):
        start = int(np.round(t * (len(x) - window) / max(1, frames - 1)))
        frame = x[start : start + window] * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window))
        power = np.abs(np.fft.rfft(np.append(frame, np.zeros(window)))) ** 2
        for i, (low, middle, high) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
            for k, f in enumerate(np.linspace(0, rate / 2, window + 1)):
                weight = min((f - low) / (middle - low), (high - f) / (high - middle))
                energy[bands - 1 - i, t] += max(0.0, weight) * power[k]
    if energy.max() == 0:
        return energy
    return 1 + np.maximum(10 * np.log10(np.maximum(energy / energy.max(), 1e-300)), -floor) / floor

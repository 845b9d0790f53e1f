"""Features from which nothing can be learned: constant ones, and those of a kernel matrix that is the identity."""

from collections.abc import Callable

import numpy as np

from orbit.approx.base import FeatureMap
from orbit.core.device_matrix import as_array
from orbit.solvers.structure import StructuredFeatures, unpacked

# Number of points whose features and kernel values are examined.
_SAMPLE = 64

# Kernel values between different points below this share of their diagonal count as zero.
_NO_SIMILARITY = 1e-6

# Features that vary by less than this many rounding errors count as constant.
_ROUNDINGS = 16

Features = np.ndarray | StructuredFeatures | Callable[[np.ndarray], np.ndarray | StructuredFeatures]

_ADVICE = "Check the kernel's lengthscale, the scale of the points and the width of the distribution"


def variation(features: np.ndarray) -> float:
    """Root mean square distance of the features (n, m) from their mean, over their root mean square norm.

    0 for constant features, 1 for features of mean zero.

    >>> variation(np.ones((5, 3)))
    0.0
    """
    features = np.asarray(features, dtype=np.float64)
    size = np.sqrt(np.square(features).sum(1).mean())
    return float(np.sqrt(features.var(0).sum()) / size) if size > 0 else 0.0


def similarity(feature_map: FeatureMap, X: np.ndarray) -> float:
    """The similarity ``k(x, z) / (k(x, x) k(z, z))^(1/2)`` of points (n, *shape) to the most similar other one.

    ``k`` is the map's kernel before the average over the orbit. The median over the points is returned; it is zero if
    the kernel matrix is the identity. Needs at least two points.
    """
    kernel = feature_map.kernel_
    K = np.abs(kernel.gram(feature_map.engine_.encoded(X, feature_map.encode)))
    diagonal = np.sqrt(K.diagonal())
    K /= np.maximum(diagonal[:, None] * diagonal, np.finfo(K.dtype).tiny)
    np.fill_diagonal(K, 0.0)
    return float(np.median(K.max(1)))


def diagnose(feature_map: FeatureMap, X: np.ndarray, features: Features) -> tuple[dict[str, float], str | None]:
    """Metrics of a sample of 64 points, and a sentence if nothing can be learned from their features.

    Parameters
    ----------
    feature_map : fitted FeatureMap
    X : array, shape (n, *shape)
    features : array or tensor, shape (n, m), or callable
        The features of ``X`` that a learner is fitted to, after a second layer if there is one; or the function that
        computes them for some points.

    Returns
    -------
    metrics : ``features/variation``, and for scalar kernels ``kernel/similarity``
    problem : str or None
    """
    rows = np.linspace(0, len(X) - 1, min(len(X), _SAMPLE)).astype(int)
    X, values = X[rows], as_array(unpacked(features(X[rows]) if callable(features) else features[rows])[1])
    metrics = {"features/variation": variation(values)}
    if len(X) < 2:
        return metrics, None
    if metrics["features/variation"] < _ROUNDINGS * np.finfo(values.dtype).eps:
        return metrics, f"the features of {len(X)} points are equal: nothing can be learned from them. {_ADVICE}"
    if not feature_map.operator_valued:
        metrics["kernel/similarity"] = similarity(feature_map, X)
        if metrics["kernel/similarity"] < _NO_SIMILARITY:
            similar = round(metrics["kernel/similarity"], 30)  # kernels have small numbers where they would underflow
            return metrics, (
                f"the kernel matrix of {len(X)} points is the identity up to {similar:.1g}: "
                f"points are similar only to themselves. {_ADVICE}"
            )
    return metrics, None

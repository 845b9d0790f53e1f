"""Predictions of points that a ridge fit has not seen, in closed form: how good features are, by training points alone.

With H the matrix from targets to fitted values, and r the residuals, the residuals of rows G that are left out of the
fit together are (I - H_GG)^-1 r_G. One eigendecomposition gives them for every lambda of a path.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from orbit.core.errors import InputError
from orbit.core.linalg import eigh
from orbit.solvers.output_rows import OutputRows
from orbit.solvers.repeats import equal_rows
from orbit.solvers.selection import DEFAULT_PATH
from orbit.solvers.structure import GramStructure, Structure, unpacked

# Integers of more different values are numbers, not class labels.
_MOST_CLASSES = 100

# What a fit has to leave over of the degrees of freedom of each row; the rest is rounding.
_LEAST_SHARE_LEFT = 1e-6


def are_classes(y: np.ndarray) -> bool:
    """Whether targets are class labels: strings, booleans and integers of at most 100 values.

    >>> are_classes(np.array([0, 1])), are_classes(np.array([0.0, 1.0]))
    (True, False)
    """
    is_number = y.dtype.kind == "f" or (y.dtype.kind in "iu" and len(np.unique(y)) > _MOST_CLASSES)
    return not is_number and y.ndim == 1


def encoded_targets(y: np.ndarray, task: str | None = None, together: bool = False) -> tuple[np.ndarray, bool]:
    """Targets as columns whose variances sum to 1, shape (n, p), and whether they are class labels.

    Several columns of numbers have equal variances unless they are scaled ``together``.

    Raises
    ------
    InputError
        For several columns of texts.

    Examples
    --------
    >>> encoded_targets(np.array(["a", "b"]))
    (array([[1.41421356, 0.        ],
           [0.        , 1.41421356]]), True)
    """
    if y.ndim > 1 and y.dtype.kind == "U":
        raise InputError(f"y: expected numbers, or one class for each point, found texts of shape {y.shape}")
    of_classes = are_classes(y) if task is None else task == "classification"
    Y = (y[:, None] == np.unique(y)).astype(np.float64) if of_classes else y.reshape(len(y), -1).astype(np.float64)
    variances = Y.var(0)
    if of_classes or together:
        variances = np.full(len(variances), variances.mean())
    deviations = np.sqrt(np.where(variances > 0, variances, 1.0))
    return Y / (deviations * np.sqrt(Y.shape[1])), of_classes


def left_out(features: Any, Y: np.ndarray, clusters: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Predictions by fits without each cluster, shape (n, p), for the lambda of the smallest mean square error.

    Values of lambda are those of ``DEFAULT_PATH`` times the mean square norm of the features. Outputs are independent
    but for operator-valued features with fixed factors.

    Parameters
    ----------
    features : array, shape (n, F), or StructuredFeatures
    Y : array, shape (n, p)
    clusters : array, shape (n,), or None
        None is one cluster for each different row.

    Returns
    -------
    predicted : array, shape (n, p)
        The mean of the targets if there is one cluster, or every lambda interpolates.
    regularization : float
    """
    structure, psi = unpacked(features)
    clusters = equal_rows(psi) if clusters is None else np.asarray(clusters)
    if len(np.unique(clusters)) < 2:
        return np.broadcast_to(Y.mean(0), Y.shape), float(DEFAULT_PATH[-1])
    rows, targets = rows_of(features, Y)
    clusters = np.repeat(clusters, len(rows) // len(Y))
    predicted, regularization = _best_of_path(rows, targets, clusters, fit_intercept=not _is_coupled(structure))
    return predicted.reshape(Y.shape), regularization


def rows_of(features: Any, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets, a row for each point; a row for each output of a point where a kernel couples them."""
    structure, psi = unpacked(features)
    psi = psi.astype(np.float64)
    if isinstance(structure, GramStructure):
        values, vectors = eigh(structure.gram(psi))
        psi = vectors * np.sqrt(np.maximum(values, 0.0))
    if not _is_coupled(structure):
        return psi, Y
    assert structure is not None
    rows = OutputRows.of(structure, psi, Y)
    return rows(psi), rows.targets(Y)


def _is_coupled(structure: Structure | GramStructure | None) -> bool:
    """Whether one fit predicts all outputs, by matrices that do not depend on the targets."""
    return isinstance(structure, Structure) and structure.n_outputs is not None


def _best_of_path(X: np.ndarray, Y: np.ndarray, clusters: np.ndarray, fit_intercept: bool) -> tuple[np.ndarray, float]:
    path = np.array(DEFAULT_PATH)[::-1] * np.square(X).sum() / len(X)  # the largest of equally good values
    offset = Y.mean(0) * fit_intercept
    if path[-1] < np.finfo(np.float64).tiny:  # features are zero but for underflow, and 1 / lambda would be infinite
        return np.broadcast_to(offset, Y.shape), float(path[0])
    rows, eigenvalues = _principal(X - X.mean(0) * fit_intercept)
    shrinkage = 1 / (eigenvalues[:, None] + len(X) * path)  # (F, values)
    fitted = rows @ (shrinkage[:, :, None] * (rows.T @ (Y - offset))[:, None]).reshape(len(shrinkage), -1)
    residuals = (Y - offset)[:, None] - fitted.reshape(len(X), len(path), -1)
    for group in _by_size(clusters):
        residuals[group] = _without_own_cluster(residuals[group], rows[group], shrinkage, fit_intercept / len(X))
    errors = np.nan_to_num(np.square(residuals).mean((0, 2)), nan=np.inf)
    best = int(errors.argmin())
    predicted = Y - residuals[:, best] if np.isfinite(errors[best]) else np.broadcast_to(offset, Y.shape)
    return predicted, float(path[best])


def _without_own_cluster(residuals: np.ndarray, rows: np.ndarray, shrinkage: np.ndarray, mean: float) -> np.ndarray:
    """(I - H_GG)^-1 r_G of clusters G for H = rows diag(shrinkage) rows^T + mean; infinite where one interpolates.

    Parameters
    ----------
    residuals : array, shape (clusters, size, values, p)
    rows : array, shape (clusters, size, F)
    shrinkage : array, shape (F, values)
    """
    if rows.shape[1] == 1:
        left = (1 - mean - np.square(rows) @ shrinkage)[..., None]  # (clusters, 1, values, 1)
        return np.divide(residuals, left, out=np.full_like(residuals, np.inf), where=left > _LEAST_SHARE_LEFT)
    found = np.full_like(residuals, np.inf)
    for i, of_value in enumerate(shrinkage.T):
        left = np.eye(rows.shape[1]) - mean - (rows * of_value) @ rows.swapaxes(1, 2)
        if np.linalg.eigvalsh(left).min() > _LEAST_SHARE_LEFT:
            found[:, :, i] = np.linalg.solve(left, residuals[:, :, i])
    return found


def _principal(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows P with P P^T = X X^T and orthogonal columns, and the squared lengths of these."""
    if len(X) < X.shape[1]:
        values, vectors = eigh(X @ X.T)
        values = np.maximum(values, 0.0)
        return vectors * np.sqrt(values), values
    values, vectors = eigh(X.T @ X)
    return X @ vectors, np.maximum(values, 0.0)


def _by_size(clusters: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of the clusters, shape (number of clusters, size), for each size."""
    _, inverse, counts = np.unique(clusters, return_inverse=True, return_counts=True)
    order, starts = np.argsort(inverse, kind="stable"), np.cumsum(counts) - counts
    for size in np.unique(counts):
        yield order[starts[counts == size, None] + np.arange(size)]

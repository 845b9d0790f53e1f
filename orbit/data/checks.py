"""What arrays of a data set have to be, whoever reads them."""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from orbit.core.errors import InputError
from orbit.core.linalg import check_target_size
from orbit.data.rows import Rows, is_rounded

Task = Literal["classification", "regression"]


def as_pixels(X: np.ndarray, dtype: np.dtype, path: str) -> np.ndarray:
    """Bytes as images in [0, 1], others as they are: those may be a little beyond [0, 1], by interpolation."""
    if dtype == np.uint8:
        return X / np.float32(255)
    if X.size and not (X.min() >= -1 and X.max() <= 2) and np.isfinite(X).all():
        raise InputError(f"{path}: expected pixels from 0 to 1, or bytes (uint8), found {X.min():g} to {X.max():g}")
    return X


def real_numbers(X: np.ndarray, where: str) -> np.ndarray:
    """``X`` in float32, or in float64 if it already is or has integers that float32 does not; others are converted.

    Raises
    ------
    InputError
        For other values; the message starts with ``where``.
    """
    dtype = real_dtype(X.dtype, where)
    return X.astype(np.float64 if is_rounded(X, dtype) else dtype, copy=False)


def real_dtype(dtype: np.dtype, where: str) -> np.dtype:
    """The floating-point type for numbers of ``dtype`` that are read by rows; integers are float32."""
    if dtype.kind not in "biuf":
        raise InputError(f"{where} must hold real numbers, found dtype {dtype}")
    return np.dtype(np.float64 if dtype.kind == "f" and dtype.itemsize > 4 else np.float32)


def check_arrays(X: np.ndarray, y: np.ndarray, task: Task, where: str) -> None:
    """Raise ``InputError`` for arrays that no learner accepts; the message names the array and ``where``."""
    if X.ndim < 2:
        raise InputError(f"{where}: X must have shape (n, ...) with at least 2 axes, found {X.shape}")
    if y.ndim not in (1, 2) or y.shape[1:] == (0,):
        raise InputError(f"{where}: y must have shape (n,) or (n, k), found {y.shape}")
    if X.size == 0:
        raise InputError(f"{where}: X is empty, its shape is {X.shape}")
    if len(X) != len(y):
        raise InputError(f"{where}: X has {len(X)} points, y has {len(y)} targets; they must agree")
    if not np.issubdtype(X.dtype, np.number) or np.issubdtype(X.dtype, np.complexfloating):
        raise InputError(f"{where}: X must hold real numbers, found dtype {X.dtype}")
    if not isinstance(X, Rows):
        check_finite(whole(X), f"{where}: X")
    if isinstance(y, Rows):
        return
    numeric = np.issubdtype(y.dtype, np.number)
    if y.dtype.kind not in "biufUO":
        raise InputError(f"{where}: y must hold real numbers or labels, found dtype {y.dtype}")
    if numeric:
        check_finite(whole(y), f"{where}: y")
    if task == "regression" and not numeric:
        raise InputError(
            f"{where}: regression needs numbers as targets, found dtype {y.dtype}; set dataset.task=classification"
        )
    if task == "classification" and y.ndim != 1:
        way = "give the class of each one-hot row, y.argmax(axis=1), or set" if are_one_hot(y) else "set"
        raise InputError(f"{where}: class labels must have shape (n,), found {y.shape}; {way} dataset.task=regression")
    if task == "classification" and np.issubdtype(y.dtype, np.floating) and not are_labels(y):
        found = "fractions" if np.any(y != np.round(y)) else f"{y[np.abs(y).argmax()]:g}"
        raise InputError(
            f"{where}: class labels must be integers or strings, found {found}; set dataset.task=regression"
        )
    if task == "regression":
        check_target_size(y, where)


def are_labels(y: np.ndarray) -> bool:
    """Whether floating-point numbers can be class labels: integers, all exact in their precision."""
    return bool(np.all((y == np.round(y)) & (np.abs(y) <= 1 / np.finfo(y.dtype).eps)))


def are_one_hot(y: np.ndarray) -> bool:
    """Whether rows of several numbers have one 1 each, and are 0 elsewhere."""
    return y.ndim == 2 and y.shape[1] > 1 and bool(np.isin(y, (0, 1)).all() and (y.sum(axis=1) == 1).all())


def check_finite(blocks: Iterable[tuple[Sequence[int] | np.ndarray, np.ndarray]], what: str) -> None:
    """Raise ``InputError`` if values are not finite. A block is a pair of row numbers and rows."""
    count = 0
    first: tuple[int, ...] = ()
    for numbers, values in blocks:
        with np.errstate(over="ignore"):
            total = values.sum(dtype=np.float64)
        if np.isfinite(total):  # one pass; entries are only searched on failure
            continue
        bad = np.argwhere(~np.isfinite(values))
        if len(bad) and not count:
            first = int(numbers[bad[0, 0]]), *map(int, bad[0, 1:])
        count += len(bad)
    if count:
        raise InputError(
            f"{what} has {count} values that are NaN or infinite, the first at index {first}; remove or impute them"
        )


def whole(array: np.ndarray) -> list[tuple[Sequence[int], np.ndarray]]:
    return [(range(len(array)), array)]

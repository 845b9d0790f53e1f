"""Matrices that stay on a device, in NumPy's notation: code for arrays is code for them.

What is as large as the features, such as a kernel matrix or its factor, is a :class:`DeviceMatrix`; what has a column
for each target is an array, and moves to the device and back for every product.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbit.core.memory import process_bytes
from orbit.core.tiled_matrix import TiledMatrix

_DTYPES: dict[torch.dtype, np.dtype] = {torch.float32: np.dtype(np.float32), torch.float64: np.dtype(np.float64)}
_TORCH_DTYPES = {dtype: own for own, dtype in _DTYPES.items()}


def _elementwise(operate: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: DeviceMatrix(operate(self.tensor, self.operand(other)))


class DeviceMatrix:
    """A matrix on a device whose operators are NumPy's: those with arrays take them to the device.

    Its products with arrays are arrays, on the processor; other results of its size are matrices on the device.

    Parameters
    ----------
    tensor : float32 or float64 tensor, shape (n, m)

    Examples
    --------
    >>> X = DeviceMatrix(torch.ones(3, 2))
    >>> (X - np.array([0.5, 0.0])) @ np.ones(2)
    array([1.5, 1.5, 1.5])
    >>> X.T @ X
    DeviceMatrix(float32 (2, 2) on cpu)
    """

    __array_ufunc__ = None  # so that arrays leave operators with a matrix to it

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"DeviceMatrix({self.dtype} {self.shape} on {self.tensor.device})"

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, index: Any) -> DeviceMatrix:
        return DeviceMatrix(self.tensor[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tensor[index] = self.operand(value)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype:
        return _DTYPES[self.tensor.dtype]

    @property
    def T(self) -> DeviceMatrix:  # noqa: N802  as NumPy has it
        return DeviceMatrix(self.tensor.T)

    __add__, __sub__, __mul__ = (_elementwise(each) for each in (operator.add, operator.sub, operator.mul))
    __truediv__, __pow__ = _elementwise(operator.truediv), _elementwise(operator.pow)
    __iadd__, __isub__, __imul__ = (_elementwise(each) for each in (operator.iadd, operator.isub, operator.imul))
    __itruediv__ = _elementwise(operator.itruediv)

    def __abs__(self) -> DeviceMatrix:
        return DeviceMatrix(self.tensor.abs())

    def __matmul__(self, other: Any) -> Any:
        return like(_product(self.tensor, self.operand(other)), other)

    def __rmatmul__(self, other: np.ndarray) -> np.ndarray:
        return _array(_product(self.operand(other), self.tensor))

    def operand(self, other: Any) -> Any:
        """A matrix as its tensor, an array as a tensor on this device, a number as itself."""
        if isinstance(other, np.ndarray):
            return torch.tensor(np.ascontiguousarray(other), device=self.tensor.device)
        return other.tensor if isinstance(other, DeviceMatrix) else other

    def astype(self, dtype: Any, copy: bool = True) -> DeviceMatrix:
        return DeviceMatrix(self.tensor.to(_TORCH_DTYPES[np.dtype(dtype)], copy=copy))

    def copy(self, order: str = "K") -> DeviceMatrix:
        return DeviceMatrix(self.tensor.clone())

    def mean(self, axis: int, dtype: Any) -> np.ndarray:
        return _array(self.tensor.mean(axis, dtype=_TORCH_DTYPES[np.dtype(dtype)]))

    def sum(self, axis: int) -> np.ndarray:
        return _array(self.tensor.sum(axis))

    def diagonal(self) -> np.ndarray:
        return _array(self.tensor.diagonal().clone())

    def trace(self) -> float:
        return float(self.tensor.trace())

    def max(self) -> float:
        return float(self.tensor.max())

    def min(self) -> float:
        return float(self.tensor.min())

    def device_bytes(self) -> int:
        """Bytes that this process can have on the device in all."""
        if self.tensor.device.type != "cuda":
            return process_bytes()
        return torch.cuda.mem_get_info(self.tensor.device)[0] + torch.cuda.memory_reserved(self.tensor.device)


def as_matrix(X: Any) -> Any:
    """A tensor as a matrix on its device; a matrix in tiles as it is; anything else as an array."""
    if isinstance(X, TiledMatrix):
        return X
    return DeviceMatrix(X.detach()) if isinstance(X, Tensor) else np.asarray(X)


def as_array(X: Any) -> np.ndarray:
    """A tensor or a matrix as an array, a copy unless it is on the processor; anything else as NumPy takes it."""
    X = X.tensor if isinstance(X, DeviceMatrix) else X
    return _array(X.detach()) if isinstance(X, Tensor) else np.asarray(X)


def as_tensor(X: Any) -> Tensor:
    """The memory of a matrix or of an array as a tensor."""
    return X.tensor if isinstance(X, DeviceMatrix) else torch.from_numpy(X)


def like(tensor: Tensor, given: Any) -> Any:
    """A result as a matrix on the device if what it was computed from is one, otherwise as an array."""
    return DeviceMatrix(tensor) if isinstance(given, DeviceMatrix) else _array(tensor)


def beside(matrix: Any, array: np.ndarray) -> Any:
    """An array on the device of a matrix; as it is if the matrix is an array too."""
    return DeviceMatrix(matrix.operand(array)) if isinstance(matrix, DeviceMatrix) else array


def zeros(shape: tuple[int, int], matrix: Any) -> Any:
    """A float64 matrix of zeros where another one is: an array, or a matrix on its device."""
    if not isinstance(matrix, DeviceMatrix):
        return np.zeros(shape)
    return DeviceMatrix(torch.zeros(shape, dtype=torch.float64, device=matrix.tensor.device))


def contiguous(matrix: Any) -> Any:
    """A matrix, or a copy whose rows follow one another in memory."""
    if isinstance(matrix, DeviceMatrix):
        return DeviceMatrix(matrix.tensor.contiguous())
    return np.ascontiguousarray(matrix)


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.cpu().numpy()


def _product(left: Tensor, right: Tensor) -> Tensor:
    """A product in the wider precision of both."""
    dtype = torch.promote_types(left.dtype, right.dtype)
    return left.to(dtype) @ right.to(dtype)

"""A device that is not there: tensors that refuse what a GPU's refuse, on a processor.

They compute on the processor, but say that they are on ``cuda:0``, mix with no tensor of the processor, are no arrays,
and note how large what is copied from them is.
"""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from orbit.core.device_matrix import DeviceMatrix
from orbit.core.threads import single_threaded

DEVICE = torch.device("cuda", 0)
_INDEXING = torch.Tensor.__getitem__, torch.Tensor.__setitem__


class OnGpu(torch.Tensor):
    """A tensor on the device."""

    copied: list[int] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func == torch.Tensor.device.__get__:
            return DEVICE
        if func is torch.Tensor.cpu:
            cls.copied.append(args[0].numel())
            return args[0].as_subclass(torch.Tensor)
        if func in (torch.Tensor.numpy, torch.Tensor.__array__):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if func not in _INDEXING:
            for other in _tensors([*args, *kwargs.values()]):
                assert isinstance(other, cls) or not other.ndim, f"{func}: two devices"
        return super().__torch_function__(func, types, args, kwargs)


class _Factories(TorchFunctionMode):
    """Puts new tensors of the device, and those copied to it, there."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.Tensor.to and len(args) > 1 and args[1] == DEVICE:
            return args[0].as_subclass(OnGpu)
        if kwargs.get("device") != DEVICE:
            return func(*args, **kwargs)
        kwargs = {key: value for key, value in kwargs.items() if key != "device"}
        return func(*args, **kwargs).as_subclass(OnGpu)


@contextlib.contextmanager
def pretended() -> Iterator[list[int]]:
    """Context manager in which the device exists; yields the numbers of entries of what has been copied from it."""
    OnGpu.copied.clear()
    room = mock.patch.object(DeviceMatrix, "device_bytes", return_value=2**33)
    with single_threaded(), _Factories(), room:  # the mode is that of a thread
        yield OnGpu.copied


def on_gpu(X: np.ndarray) -> torch.Tensor:
    """A copy of an array on the device."""
    return torch.from_numpy(X.copy()).as_subclass(OnGpu)


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)

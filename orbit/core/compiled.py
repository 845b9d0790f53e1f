"""Loops for which torch has no fast operation, compiled by numba, or by Triton for a GPU.

A module of such loops imports its compiler and compiles, or loads what the compiler keeps on disk,
which takes most of a second in a process; it is imported when its loops are first needed.
"""

import functools
import importlib
import importlib.util
import logging
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from orbit.core.environment import check_environment

log = logging.getLogger(__name__)


def loops(module: str, *arrays: Tensor, types: Collection[torch.dtype] = (torch.float32,)) -> ModuleType | None:
    """The named module of compiled loops; None for arrays of other ``types`` or not on a CPU."""
    if all(array.dtype in types and array.device.type == "cpu" for array in arrays):
        return _imported(module)
    return None


def gpu_loops(module: str, *arrays: Tensor) -> ModuleType | None:
    """The named module of loops for a GPU; None for arrays that are not float32 on one, or if Triton cannot compile."""
    if all(array.dtype == torch.float32 and array.device.type == "cuda" for array in arrays):
        return _compiled_for_gpu(module)
    return None


@functools.cache
def _imported(module: str) -> ModuleType:
    return importlib.import_module(module)


@functools.cache
def _compiled_for_gpu(module: str) -> ModuleType | None:
    if importlib.util.find_spec("triton") is None:  # torch brings it on Linux only
        return None
    try:
        loops = importlib.import_module(module)
        loops.check()
    except Exception as error:  # such as no C compiler, or a version of Triton that is not for this torch
        log.warning("Triton cannot compile %s, so torch is used, which is slower: %s", module, error)
        return None
    return loops


def compiled(*signature: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that compiles for these argument types, or those of each call."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        check_environment()
        import numba

        # products and sums may be fused, but not reordered, which would undo corrections of rounding
        options: dict[str, Any] = {"fastmath": {"contract", "nsz"}, "nogil": True}
        types = [f"void({', '.join(signature)})"] if signature else None
        try:
            return numba.njit(types, cache=True, **options)(function)
        except RuntimeError:  # no writable folder for the cache
            return numba.njit(types, **options)(function)

    return decorate

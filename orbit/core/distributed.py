"""One stream shared by several processes, on one or several machines, started by ``torchrun``.

Every process fits the representation and the feature map to the same sample of
the training points, with the same seeds, and so has the same map. Beyond the
sample it uses only the points of its own share (:func:`orbit.data.rows.own_rows`):
from a file that can be read in parts (an .npy file) it reads no others, and of a
data set that is loaded whole it keeps no others. The sums of a stream
(:class:`~orbit.solvers.moments.Moments`) are added over the processes; the first
process solves, predicts the test part, which only it reads, and logs. All
processes hold all targets and weights, except those of a data set in parts.

    torchrun --nproc-per-node 2 run.py engine.stream=true approx=rf
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import distributed

from orbit.core.errors import InputError
from orbit.core.ranks import ProcessLostError, ShareDone, rank as rank, world_size as world_size


@contextlib.contextmanager
def job(device: str = "cpu") -> Iterator[None]:
    """Context manager that connects this process to the others of the job; no effect for a single process.

    Each process on a machine uses a separate GPU; if there are fewer GPUs than processes,
    processes share GPUs, and sums are exchanged through main memory.
    """
    if world_size() == 1:
        yield
        return
    backend = "gloo"
    if device != "cpu" and torch.cuda.is_available():
        gpus = torch.cuda.device_count()
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % gpus)
        backend = "nccl" if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= gpus else "gloo"
    with _clear_errors():
        distributed.init_process_group(backend)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def broadcast(array: np.ndarray) -> np.ndarray:
    """The ``array`` of the first process, in all processes."""
    if world_size() == 1:
        return array
    shared = _tensor(array)
    with _clear_errors():
        distributed.broadcast(shared, src=0)
    return shared.cpu().numpy()


def of_the_first(answer: bool) -> bool:
    """The answer of the first process, in all processes."""
    return bool(broadcast(np.array([float(answer)]))[0])


def all_reduce(*arrays: Any) -> None:
    """Replace each array or tensor, in place, by its sum over all processes; with NCCL that is taken on the GPUs."""
    if world_size() == 1:
        return
    for array in arrays:
        shared = _tensor(array)
        with _clear_errors():
            distributed.all_reduce(shared)
        if isinstance(array, torch.Tensor):
            array.copy_(shared)  # nothing is done if they are one
        else:
            array[...] = shared.cpu().numpy()


def gather(value: Any) -> list[Any]:
    """The ``value`` of every process, by rank."""
    found: list[Any] = [value] * world_size()
    if len(found) > 1:
        with _clear_errors():
            distributed.all_gather_object(found, value)
    return found


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Context manager that ends every process if one finds bad input, and lets the first one say so.

    Raises
    ------
    InputError
        In the first process: its own, or that of another one.
    ShareDone
        In the others.
    """
    found: InputError | None = None
    try:
        yield
    except InputError as error:
        found = error
    problems = [problem for problem in gather(str(found) if found else "") if problem]
    if not problems:
        return
    end_other_processes()
    raise found or InputError(problems[0])


def share(rows: np.ndarray) -> np.ndarray:
    """The part of ``rows`` of this process: consecutive entries, so that rows of a file are read sequentially."""
    return np.array_split(rows, world_size())[rank()]


def end_other_processes() -> None:
    """Raise ``ShareDone`` in every process except the first."""
    if rank() > 0:
        raise ShareDone(f"process {rank()} has done its share")


def _tensor(array: Any) -> torch.Tensor:
    """An array or tensor where processes exchange it: on the GPU with NCCL, otherwise in main memory."""
    tensor = torch.as_tensor(array)
    return tensor.cuda() if distributed.get_backend() == "nccl" else tensor.cpu()


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # raised by torch for all lost connections and time-outs
        reason = str(error).splitlines()[0]
        raise ProcessLostError(
            f"process {rank()} of {world_size()} lost touch with another one, which died or cannot be reached "
            f"({reason}); the job was ended, start it again"
        ) from error

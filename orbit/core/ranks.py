"""The place of this process in a job of several, which ``torchrun`` starts. See :mod:`orbit.core.distributed`."""

import os


class ProcessLostError(RuntimeError):
    """Another process of the job died or cannot be reached."""


class ShareDone(Exception):  # noqa: N818  not an error
    """This process has finished its share; only the first process continues."""


def rank() -> int:
    """The index of this process in the job, from 0; 0 for a single process."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """The number of processes of the job."""
    return int(os.environ.get("WORLD_SIZE", "1"))

"""Environment variables of other libraries, set and checked before the import that reads them."""

import os

from orbit.core.errors import InputError

_NUMBA_THREADS = "NUMBA_NUM_THREADS"

# Threads of OpenMP, and after 2^4 cycles those of OpenBLAS, sleep while they wait for others. Otherwise they take the
# core that the others need, where other programs run or a container has fewer cores than the machine: the fit of an
# encoder of series took ten times the processor time.
_SLEEP_WHILE_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "4"}


def let_waiting_threads_sleep() -> None:
    """Set what OpenMP and OpenBLAS read when they are loaded, unless the user has.

    >>> let_waiting_threads_sleep()
    """
    for name, value in _SLEEP_WHILE_WAITING.items():
        os.environ.setdefault(name, value)


def check_environment() -> None:
    """Raise ``InputError`` if an environment variable has a value that numba does not take.

    >>> check_environment()
    """
    value = os.environ.get(_NUMBA_THREADS)
    if value is not None and not _is_positive_integer(value):
        raise InputError(f"environment variable {_NUMBA_THREADS}: expected an integer >= 1, or unset, found {value!r}")


def _is_positive_integer(text: str) -> bool:
    try:
        return int(text) >= 1
    except ValueError:
        return False

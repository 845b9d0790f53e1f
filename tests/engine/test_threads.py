"""Threads that take tiles: each tile once; errors, Ctrl-C and processes that end or fork."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

from orbit.approx.bins import BinCounts, QuantileBins
from orbit.core.threads import default_threads, in_threads, one_ahead, single_threaded
from orbit.engine.buffers import Reused
from orbit.engine.embedding import nbytes


@pytest.mark.parametrize("count", [1, 2, 3, None])
@pytest.mark.parametrize("n_tiles", [0, 1, 2, 57])
def test_every_tile_is_worked_on_once(count, n_tiles):
    seen: list[int] = []
    in_threads(seen.append, range(n_tiles), count)
    assert sorted(seen) == list(range(n_tiles))


@pytest.mark.parametrize(("count", "n_threads"), [(1, 1), (3, 3), (None, 2)])
def test_tiles_are_worked_on_by_as_many_threads_of_which_the_caller_is_one(count, n_threads):
    before, threads, together = torch.get_num_threads(), set[int](), threading.Barrier(n_threads)

    def work(tile: int) -> None:
        threads.add(threading.get_ident())
        together.wait(20)
        assert torch.get_num_threads() == 1

    torch.set_num_threads(2)
    try:
        in_threads(work, range(n_threads), count)
    finally:
        torch.set_num_threads(before)
    assert len(threads) == n_threads
    assert threading.get_ident() in threads


def test_threads_are_kept_for_the_next_call():
    """MKL keeps 64 bytes of every thread that has ever used it."""
    in_threads(lambda _: None, range(3), 3)
    before, names = threading.active_count(), set()
    for _ in range(50):
        meeting = threading.Barrier(3, timeout=10)
        in_threads(lambda _, meeting=meeting: (meeting.wait(), names.add(threading.get_ident())), range(3), 3)
    assert len(names) == 3
    assert threading.active_count() == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("broken", [0, 20])
def test_the_first_error_is_raised_and_no_tile_starts_after_it(error, broken):
    before, started = torch.get_num_threads(), []

    def work(tile: int) -> None:
        started.append(tile)
        if tile == broken:
            raise error("broken")
        time.sleep(0.001)

    with pytest.raises(error, match="broken"):
        in_threads(work, range(1000), 3)
    assert len(started) < 200
    assert torch.get_num_threads() == before


def test_the_error_raised_is_the_first_in_time():
    main = threading.get_ident()
    meeting, broken = threading.Barrier(2, timeout=10), threading.Event()

    def work(tile: int) -> None:
        meeting.wait()
        if threading.get_ident() == main:
            broken.wait(10)
            time.sleep(0.05)
            raise KeyError("second")
        broken.set()
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        in_threads(work, range(2), 2)


class Buffer:
    """An object of a tile, which a weak reference can follow."""


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("in_helper", [True, False])
def test_objects_of_a_failed_tile_are_freed_with_its_error(no_collector, in_helper):
    main, meeting, held = threading.get_ident(), threading.Barrier(2, timeout=10), []

    def work(tile: int) -> None:
        buffer = Buffer()
        held.append(weakref.ref(buffer))
        meeting.wait()
        if (threading.get_ident() != main) == in_helper:
            raise ValueError("broken")

    with contextlib.suppress(ValueError):
        in_threads(work, range(2), 2)
    assert [of_tile() for of_tile in held] == [None, None]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads")
def test_ctrl_c_waits_for_the_tiles_that_were_started():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    main, finished = threading.main_thread().ident, []
    meeting = threading.Barrier(2, timeout=10)

    def work(tile: int) -> None:
        meeting.wait()
        if threading.get_ident() == main:
            return
        time.sleep(0.1)  # until the caller waits
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.2)
        finished.append(tile)

    try:
        with pytest.raises(KeyboardInterrupt):
            in_threads(work, range(2), 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(finished) == 1


AT_THE_END = """
import atexit, threading, time
from orbit.core.threads import in_threads

def some(what):
    seen = []
    in_threads(lambda tile: (time.sleep(0.001), seen.append(tile)), range(50), 2)
    print(what, len(seen), flush=True)

def outlives():
    threading.main_thread().join()
    some("thread")

some("main")
atexit.register(some, "exit")
threading.Thread(target=in_threads, args=(lambda tile: time.sleep(0.01), range(10**5), 2), daemon=True).start()
threading.Thread(target=outlives).start()
"""


@pytest.mark.slow
def test_interpreter_exit_with_running_tiles():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_END], capture_output=True, text=True, timeout=100, cwd=root, check=False
    )
    assert (done.returncode, done.stdout.split("\n")[:3]) == (0, ["main 50", "thread 50", "exit 50"]), done.stderr


def test_a_thread_started_meanwhile_does_not_inherit_the_thread_limit():
    def of_new_thread() -> int:
        found: list[int] = []
        new = threading.Thread(target=lambda: found.append(default_threads()))
        new.start()
        new.join(10)
        return found[0]

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with single_threaded():
            assert of_new_thread() == 3
        assert of_new_thread() == 3
        in_threads(lambda _: torch.get_num_threads(), range(9), 3)
        assert of_new_thread() == torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_one_call_within_another_ends():
    seen: list[tuple[int, int]] = []
    in_threads(lambda i: in_threads(lambda j: seen.append((i, j)), range(5), 3), range(6), 3)
    assert sorted(seen) == [(i, j) for i in range(6) for j in range(5)]


def test_calls_from_several_threads_end():
    seen: list[int] = []
    callers = [threading.Thread(target=in_threads, args=(seen.append, range(50), 3)) for _ in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(10)
    assert len(seen) == 250


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    os.waitpid(os.fork() or os._exit(0), 0)  # ends idle threads
    before = threading.active_count()
    in_threads(lambda _: time.sleep(0.001), range(9), 3)
    assert threading.active_count() > before
    child = os.fork()
    if child == 0:
        seen: list[int] = []
        in_threads(seen.append, range(9), 3)
        os._exit(len(seen))
    for _ in range(1000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        pytest.fail("the forked process waits for threads that it does not have")
    assert os.waitstatus_to_exitcode(status) == 9


# ---- what is kept ----------------------------------------------------------------------------------------------------


def objects_of_two_threads(reused: Reused, at_most: int, fits=lambda kept: True) -> set[Buffer]:
    meeting, found = threading.Barrier(2, timeout=10), set()
    with reused.per_thread(Buffer, fits, at_most) as buffer:

        def work(tile: int) -> None:
            meeting.wait()
            assert buffer() is buffer()
            found.add(buffer())

        in_threads(work, range(2), 2)
    assert len(found) == 2, "each thread has its own"
    return found


def test_objects_of_threads_are_reused_by_the_next_call():
    reused = Reused[Buffer]()
    first = objects_of_two_threads(reused, at_most=2)
    assert objects_of_two_threads(reused, at_most=1) == first
    assert len(objects_of_two_threads(reused, at_most=2) & first) == 1, "no more are kept than allowed"
    before = objects_of_two_threads(reused, at_most=2)
    assert not objects_of_two_threads(reused, at_most=2, fits=lambda kept: False) & before


def test_objects_of_a_call_that_fails_are_not_kept():
    reused = Reused[Buffer]()
    found = []
    with contextlib.suppress(ValueError), reused.per_thread(Buffer, at_most=5) as buffer:
        found.append(buffer())
        raise ValueError("broken")
    assert not objects_of_two_threads(reused, at_most=5) & set(found)


def test_bytes_of_an_embedding_are_those_of_all_its_parts_once():
    templates, thresholds, scale = torch.zeros(10, 7), torch.zeros(10, 5), torch.zeros(10, 5)
    made = BinCounts(templates, QuantileBins(thresholds), scale, None, None)
    made.again = templates
    assert nbytes(made) == 4 * (70 + 50 + 50)


# ---- one ahead -------------------------------------------------------------------------------------------------------


def numbers(made: list[int], broken: int | None = None):
    for i in range(6):
        if i == broken:
            raise ValueError("item is broken")
        made.append(i)
        yield i


def test_one_ahead_makes_each_item_in_turn_and_at_most_one_too_many():
    made: list[int] = []
    items = one_ahead(numbers(made))
    assert next(items) == 0
    time.sleep(0.02)
    assert made == [0, 1]
    before = threading.active_count()
    items.close()
    assert threading.active_count() < before
    assert made == [0, 1]
    assert list(one_ahead(numbers([]))) == list(range(6))


def test_one_ahead_raises_the_error_of_an_item_after_those_before_it():
    items = one_ahead(numbers([], broken=3))
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="item is broken"):
        next(items)


def test_one_ahead_makes_items_with_the_settings_of_its_caller():
    with np.errstate(over="raise"):
        assert next(one_ahead(np.geterr() for _ in range(1)))["over"] == "raise"

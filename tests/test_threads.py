"""Threads that take tiles: each once, errors and all; and working memory that is handed on."""

from __future__ import annotations

import os
import threading
import time

import pytest
import torch

from orbit import embedding
from orbit.embedding import Scratch
from orbit.threads import in_threads


@pytest.mark.parametrize("count", [1, 2, 3, None])
@pytest.mark.parametrize("n_tiles", [0, 1, 2, 57])
def test_every_tile_is_worked_on_once(count, n_tiles):
    seen: list[int] = []
    in_threads(seen.append, range(n_tiles), count)
    assert sorted(seen) == list(range(n_tiles))


def test_tiles_are_shared_and_the_caller_helps():
    meeting, names = threading.Barrier(3, timeout=10), set()

    def work(tile: int) -> None:
        if tile < 3:
            meeting.wait()  # passes only if three threads are here at once
        names.add(threading.get_ident())
        assert torch.get_num_threads() == 1

    in_threads(work, range(30), 3)
    assert len(names) == 3
    assert threading.get_ident() in names


def test_threads_are_kept_for_the_next_call():
    def threads() -> set[int]:
        meeting, found = threading.Barrier(2, timeout=10), set()

        def work(tile: int) -> None:
            meeting.wait()
            found.add(threading.get_ident())

        in_threads(work, range(2), 2)
        return found

    assert threads() == threads()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("broken", [0, 20])
def test_the_first_error_comes_out_and_no_tile_starts_after_it(error, broken):
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
    in_threads(lambda _: time.sleep(0.001), range(9), 3)
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


# ---- working memory --------------------------------------------------------------------------------------------------


@pytest.fixture
def spare(monkeypatch):
    monkeypatch.setattr(embedding, "_SPARE", embedding._Spare())
    return embedding._SPARE


def where(scratch: Scratch) -> list[int]:
    return [buffer.data_ptr() for buffer in scratch._buffers]


def test_working_memory_is_handed_on_to_the_next(spare):
    like = torch.zeros(0)
    first = Scratch(2, 30, 40, like)
    places = where(first)
    other = Scratch(1, 30, 40, like)
    assert not set(where(other)) & set(places), "never to two at once"
    del first
    again = Scratch(2, 30, 35, like)
    assert sorted(where(again)) == sorted(places), "for a little less, too"
    assert again.matrix(1, 30, 35).shape == (30, 35)


def test_memory_of_another_kind_or_far_too_large_is_not(spare):
    first = Scratch(1, 100, 100, torch.zeros(0))
    place = where(first)
    del first
    for other in (Scratch(1, 100, 100, torch.zeros(0, dtype=torch.float64)), Scratch(1, 10, 10, torch.zeros(0))):
        assert where(other) != place
    assert Scratch(1, 10, 10, torch.zeros(0)).matrix(0, 10, 10).dtype == torch.float32


def test_no_more_memory_is_kept_than_the_bound(spare, monkeypatch):
    monkeypatch.setattr(embedding, "_SPARE_BYTES", 4 * 1000)
    scratches = [Scratch(1, 10, 40, torch.zeros(0)) for _ in range(5)]
    last = where(scratches[-1])
    while scratches:
        scratches.pop(0)
    assert sum(buffer.nbytes for buffer in spare._buffers) <= 4000
    assert where(Scratch(1, 10, 40, torch.zeros(0))) == last, "the latest is taken first: it is in the cache"

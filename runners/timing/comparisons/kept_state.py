"""Comparison of the engine with variants that keep less, or more, state between calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import cache, partial
from unittest.mock import patch

import torch

from orbit.core.threads import default_threads, single_threaded
from orbit.engine import memory
from orbit.engine.kept import Latest, Reused
from runners.app.plan import Plan
from runners.timing.comparisons.base import Comparison, represented_images


def state(plan: Plan, n_points: int, threads: int) -> Comparison:
    """The plan's features with less, and with more, state kept between calls.

    ``as shipped``: templates and buffers are kept, threads are started in every call. ``fresh buffers``: buffers are
    allocated in every call. ``nothing kept``: templates are also computed in every call. ``plain executor``: a
    ``ThreadPoolExecutor`` of ``concurrent.futures`` for each call. ``kept executor``: one for all calls.
    """
    X = represented_images(plan, n_points)
    features = plan.approx().fit(X)
    variants: dict[str, Callable[[], AbstractContextManager]] = {
        "as shipped": ExitStack,
        "fresh buffers": lambda: patch.object(Reused, "_take", lambda *_: None),
        "nothing kept": lambda: patch.object(Latest, "get", _make_again),
        "plain executor": lambda: patch.object(memory, "in_threads", _in_executor),
        "kept executor": lambda: patch.object(memory, "in_threads", partial(_in_executor, executor=_executor)),
    }

    def transform(variant: Callable[[], AbstractContextManager]) -> None:
        with variant():
            features.transform(X)

    cases = {name: partial(transform, variant) for name, variant in variants.items()}
    ratios = {f"{name}/as shipped": (name, "as shipped") for name in cases if name != "as shipped"}
    return Comparison(cases, ratios)


def _make_again(latest: Latest, key: object, make: Callable[[], object], worth: object = None) -> object:
    return make()


def _single_threaded_executor(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))


_executor = cache(_single_threaded_executor)


def _in_executor(
    work: Callable[[slice], object],
    tiles: Iterable[slice],
    count: int | None = None,
    executor: Callable[[int], ThreadPoolExecutor] = _single_threaded_executor,
) -> None:
    workers = executor(count or default_threads())
    with single_threaded():
        list(workers.map(work, tiles))
    if executor is not _executor:
        workers.shutdown()

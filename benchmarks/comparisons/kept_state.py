"""Comparison of the engine with variants that keep less, or more, state between calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from unittest.mock import patch

import torch

from benchmarks.comparisons.base import Comparison, represented_images
from orbit.core.lru import Lru
from orbit.core.threads import default_threads, single_threaded
from orbit.engine import memory
from orbit.engine.buffers import Reused
from runners.config.plan import Plan


def state(plan: Plan, n_points: int, threads: int) -> Comparison:
    """The plan's features with less, and with more, state kept between calls.

    ``as shipped``: templates, buffers and threads are kept. ``fresh buffers``: buffers are allocated in every call.
    ``nothing kept``: templates are also computed in every call. ``new threads``: a ``ThreadPoolExecutor`` of
    ``concurrent.futures`` for each call.
    """
    X = represented_images(plan, n_points)
    features = plan.approx().fit(X)
    variants: dict[str, Callable[[], AbstractContextManager]] = {
        "as shipped": ExitStack,
        "fresh buffers": lambda: patch.object(Reused, "_take", lambda *_: None),
        "nothing kept": lambda: patch.object(Lru, "get", _make_again),
        "new threads": lambda: patch.object(memory, "in_threads", _in_executor),
    }

    def transform(variant: Callable[[], AbstractContextManager]) -> None:
        with variant():
            features.transform(X)

    cases = {name: partial(transform, variant) for name, variant in variants.items()}
    ratios = {f"{name}/as shipped": (name, "as shipped") for name in cases if name != "as shipped"}
    return Comparison(cases, ratios)


def _make_again(cache: Lru, key: object, make: Callable[[], object], nbytes: object = None) -> object:
    return make()


def _in_executor(
    work: Callable[[slice], object], tiles: Iterable[slice], count: int | None, done: Callable[[], object]
) -> None:
    with (
        single_threaded(),
        ThreadPoolExecutor(count or default_threads(), initializer=torch.set_num_threads, initargs=(1,)) as workers,
    ):
        for _ in workers.map(work, tiles):
            done()

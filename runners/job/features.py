"""Features that are not computed again: by the jobs of a sweep that differ in what comes after them, and within a job.

Runners fit and apply feature maps by :func:`fit` and :func:`transform`, which ask the store in use, if a job has one.
Keys are derived from the map itself, whatever its components and their parameters are, and from the content of the
points, so they hold for a part of the data or a fold as well.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from orbit.approx import FeatureMap
from orbit.core import distributed
from orbit.core.warned import Warned, warn, with_warnings
from orbit.solvers.structure import StructuredFeatures, unpacked
from runners.config.plan import Plan
from runners.job import keys
from runners.job.job import Job
from runners.job.runner import Runner
from runners.job.stores import FileStore, Noted, RowStore, Store

log = logging.getLogger(__name__)

T = TypeVar("T")

#: GiB of features that are cached unless ``feature_cache`` says otherwise, by a sweep over learners and by one job.
DEFAULT_GIB = 10.0

# The share of the free disk space that the features of one job may take.
_FREE_SHARE = 0.5

_store: ContextVar[Store | None] = ContextVar("store", default=None)

# Fitted map -> the identities of its fitted attributes, which are replaced and never changed, and their digest.
_digests: WeakKeyDictionary[FeatureMap, tuple[tuple[int, ...], str | None]] = WeakKeyDictionary()


@contextlib.contextmanager
def storing(store: Store | None) -> Iterator[None]:
    """Context manager in which :func:`fit` and :func:`transform` use ``store``; None is no store."""
    token = _store.set(store)
    try:
        yield
    finally:
        _store.reset(token)


def in_use() -> Store | None:
    """The store in use; None if there is none."""
    return _store.get()


def takes(nbytes: float) -> bool:
    """Whether there is a store that takes a result of a size."""
    found = _store.get()
    return found is not None and nbytes <= found.limit_bytes


def fit(features: FeatureMap, X: np.ndarray, y: Any = None, clusters: np.ndarray | None = None) -> None:
    """``features.fit(X, y, clusters)``; from the store in use, if it has the map fitted to these points and targets."""
    if _store.get() is None:
        features.fit(X, y, clusters)
        return
    purpose = ["fit", keys.digest((y, clusters)) if features.uses_targets else None]
    fitted, parameters = cached(purpose, features, X, lambda: features.fit(X, y, clusters)), features.get_params(False)
    features.__dict__.update({name: value for name, value in vars(fitted).items() if name not in parameters})


def transform(features: FeatureMap, X: np.ndarray, on_device: bool = False) -> Any:
    """``features.transform(X)``; from the store in use, if any map that is fitted to the same content has them.

    With ``on_device``, those that are not from a store are on the device of the map.
    """
    in_tiles = features.gives_tiles(len(X), features.engine_.result_dtype(X))
    if _store.get() is None or not isinstance(X, np.ndarray) or X.dtype == object or in_tiles:
        return features.transform_on_device(X) if on_device else features.transform(X)
    X = X.astype(features.engine_.result_dtype(X), copy=False)
    if (part := features.part_of()) and takes(len(X) * part[0].n_columns(*X.shape[:2]) * X.itemsize):
        whole, factor = part
        values = transform(whole, X)[:, : features.n_columns(*X.shape[:2])]
        features.route_ = whole.route_
        return values * values.dtype.type(factor)
    content = _digest(features)
    key = _key(content and ["features", content], features, X)
    return features.transform(X) if key is None else _rows(key, features, X)


def cached(purpose: Any, features: FeatureMap, X: Any, make: Callable[[], T], small: bool = False) -> T:
    """The result of ``make`` for a map and all points ``X``, from the store in use if it has it; see :func:`keys.key`.

    Warnings of its computation are stored with a result, and given again every time. A ``small`` one is in memory.
    """
    store, key = _store.get(), _key(purpose, features, X)
    if store is None or key is None:
        return make()
    get = store.in_memory if small else store.get
    result, warned = get(keys.with_points(key, X), lambda: _alone(make))
    warn(warned)
    return result


def _key(purpose: Any, features: FeatureMap, X: Any) -> str | None:
    """None without a store, and for a stream, whose batches are never the same, if the store does not have rows."""
    store, streams = _store.get(), features.engine is not None and features.engine.stream
    return None if store is None or (streams and not store.by_row) else keys.key(purpose, features, X)


def _rows(key: str, features: FeatureMap, X: np.ndarray) -> Any:
    def make(rows: np.ndarray) -> Noted:
        (structure, values), warned = _alone(lambda: unpacked(features.transform(rows)))
        return values, (structure, features.route_), warned

    store = _store.get()
    assert store is not None
    values, (structure, features.route_), warned = store.rows(key, X, make)
    warn(warned)
    return values if structure is None else StructuredFeatures(values, structure)


def _alone(make: Callable[[], T]) -> tuple[T, Warned]:
    """The result of ``make``, which uses no store, so that locks are not nested; and its warnings."""
    with storing(None):
        return with_warnings(make)


def _digest(features: FeatureMap) -> str | None:
    """A digest of what features follow from besides the parameters: the fitted attributes but caches."""
    parameters = features.get_params(deep=False)
    content = {k: value for k, value in vars(features).items() if k not in parameters and not k.startswith("_cached")}
    identities = tuple(map(id, content.values()))
    if _digests.get(features, (None, None))[0] != identities:
        _digests[features] = identities, keys.digest(content)
    return _digests[features][1]


@contextlib.contextmanager
def features_cached(job: Job, runner: Runner, shared: bool) -> Iterator[None]:
    """Context manager in which features are cached in files of the outputs, where a job uses them at all.

    ``shared`` says whether it does by default, as in a sweep over learners; others, which would seldom find any, do if
    ``feature_cache`` is given. No job does whose results are times.
    """
    config = job.plan.config
    limit = config["feature_cache"]
    if limit is None:
        limit = DEFAULT_GIB if shared else 0.0
    if limit == 0 or not runner.reuses_features or "time/" in json.dumps(config["runner"], default=str):
        yield
        return
    store = FileStore(folder(job.plan), limit)
    with storing(store):
        yield
    if store.found:
        # among the times, which it explains: the other metrics of a job are the same with and without
        job.log_metrics({"time/features_from_disk": store.found})
        text = f"{store.found} of {store.found + store.made} fits and transforms were read from disk"
        job.row("feature cache", text)
        log.info("%s (%s); times of features are those of reading", text, store.folder)


def folder(plan: Plan) -> Path:
    """Where the features of a plan are cached."""
    return Path(plan.config["outputs"]) / "feature_cache"


def shared_in_job(plan: Plan) -> contextlib.AbstractContextManager[None]:
    """Context manager in which fits of a job share features by row, in files in its outputs that vanish with it.

    Without effect within another one, and with ``feature_cache=0``.
    """
    found, limit = in_use(), plan.config["feature_cache"]
    if limit == 0 or (found is not None and found.by_row):
        return contextlib.nullcontext()
    folder = Path(plan.config["outputs"])
    folder.mkdir(parents=True, exist_ok=True)
    room = _FREE_SHARE * shutil.disk_usage(folder).free
    limit = min((DEFAULT_GIB if limit is None else limit) * 2**30, room) / distributed.world_size()
    return storing(RowStore(limit, folder, beyond=found))


def shared_in_memory(plan: Plan) -> contextlib.AbstractContextManager[None]:
    """As :func:`shared_in_job`, in memory within ``engine.memory``; without effect within another one."""
    found = in_use()
    if found is not None and found.by_row:
        return contextlib.nullcontext()
    return storing(RowStore(plan.engine().budget, beyond=found))

"""The memory that a fit takes at least, from the shapes of its arrays, and a refusal before work if that cannot fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orbit.core.errors import InputError
from orbit.core.memory import LITTLE, process_bytes, size_text
from orbit.data import Dataset
from orbit.learners.protocols import Streams
from orbit.learners.streaming import takes_passes
from runners.config.plan import Plan


@dataclass(frozen=True)
class Part:
    """Arrays that are in memory together with the other parts of a stage.

    Attributes
    ----------
    what : what they hold, with its shape
    nbytes : their size in bytes, at least
    keys : configuration keys that it depends on
    """

    what: str
    nbytes: int
    keys: tuple[str, ...]


def check_fit(plan: Plan, data: Dataset, numbers: int = 1, columns: int = 0) -> None:
    """Raise InputError if a stage of the fit takes more memory than this process can have.

    Parameters
    ----------
    plan : Plan
    data : Dataset
        The training points; for a stream the sample counts, and features are in batches within ``engine.memory``.
    numbers : int
        Size of a point in its representation, once it is known.
    columns : int
        Columns of the features, once they are known.
    """
    for stage in stages(plan, data, numbers, columns):
        if (reason := refusal(stage)) is not None:
            raise InputError(reason)


def refusal(stage: list[Part]) -> str | None:
    """Why a fit with such a stage is refused; None if it fits into what this process can have."""
    needed = sum(part.nbytes for part in stage)
    if needed <= LITTLE or needed <= (limit := process_bytes()):
        return None
    largest = max(stage, key=lambda part: part.nbytes)
    listed = ", ".join(f"{part.what}: {size_text(part.nbytes)}" for part in stage if part.nbytes > needed / 1000)
    return (
        f"this fit takes at least {size_text(needed)} of memory ({listed}), this process can have {size_text(limit)}: "
        f"change {' or '.join(largest.keys)}"
    )


def stages(plan: Plan, data: Dataset, d: int, columns: int) -> list[list[Part]]:
    """The stages of a fit, with the parts that are in memory together in each; arguments as for :func:`check_fit`."""
    features, layer, learner, engine = plan.approx(), plan.hyper(), plan.learner(data.task), plan.engine()
    n = len(data.X_train)
    seen = len(plan.sample(n)) if engine.stream else n  # points that features and layer are fitted to
    dtype = engine.result_dtype(data.X_train)
    itemsize = dtype.itemsize
    width = columns or features.n_columns(n, d)
    last = layer.n_columns(seen, width)
    approx_keys, layer_keys = _size_keys(plan, "approx"), _size_keys(plan, "hyper")
    can_stream = isinstance(learner, Streams) and not engine.stream
    less = ("dataset.n_train", "engine.stream=true") if can_stream else ("dataset.n_train",)

    points = Part(f"{seen:,} points of {d:,} numbers", seen * d * itemsize, ("dataset.n_train",))
    drawn = Part(f"fit of approx={features.name}", features.fit_bytes(seen, _inputs(plan, d)), approx_keys)
    in_tiles = features.gives_tiles(n, dtype)
    bytes_of_psi = 0 if in_tiles else n * width * features.features_dtype(n, dtype).itemsize
    psi = Part(f"{n:,} x {width:,} features", bytes_of_psi, tuple(dict.fromkeys((*approx_keys, *less))))
    drawn_again = Part(f"fit of hyper={layer.name}", layer.fit_bytes(seen, width), layer_keys)
    mapped = Part(f"{n:,} x {last:,} features of hyper={layer.name}", n * last * itemsize, (*layer_keys, *less))
    own_keys = layer_keys if layer.name != "linear" else approx_keys
    rows = last if engine.stream else n  # the second moments of a stream have no other form
    in_place = in_tiles or (features.gives_gram and features.features_dtype(n, dtype) == np.float32)
    taken = 0 if in_place else learner.fit_bytes(rows, last)
    solver = Part(f"solver of learner={learner.name}", taken, own_keys)
    if engine.stream and not features.gives_gram:
        last_step = [] if takes_passes(learner, last, engine.budget) else [points, solver]
        return [[points, drawn], [points, drawn_again], last_step]
    if layer.name == "linear":
        return [[points, drawn], [points, psi], [points, psi, solver]]
    return [[points, drawn], [points, psi], [points, psi, drawn_again], [points, psi, mapped], [points, mapped, solver]]


def _inputs(plan: Plan, d: int) -> int:
    """Numbers that the kernel takes at least: those of an encoder are not known before its fit."""
    return d if plan.config["encoder"]["name"] == "none" else 1


def _size_keys(plan: Plan, section: str) -> tuple[str, ...]:
    key = "n_components"
    return (f"{section}.{key}",) if key in plan.config[section] else ("dataset.n_train",)

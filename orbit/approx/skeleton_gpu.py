"""Sums of a few angles for each feature of a skeleton, then their cosines and sines, compiled by Triton for a GPU."""

import torch
import triton
import triton.language as tl
from torch import Tensor

# Features and points of a program: the fastest of seven tiles on an H200 (docs/performance_notes.md).
_UNITS, _POINTS = 32, 32


def add_products(
    table: Tensor,
    starts: Tensor,
    rows: Tensor,
    values: Tensor,
    phases: Tensor,
    sizes: Tensor,
    total: Tensor,
    cosines: int,
    sines: int,
    is_zero: bool,
) -> None:
    """As :func:`orbit.approx.skeleton_loops.add_products`, on tensors of a GPU.

    Rows of ``table``, ``sizes`` and ``total`` have their numbers side by side in memory.
    """
    n, units = table.shape[1], len(starts) - 1
    if not n * units:
        return
    programs = triton.cdiv(units, _UNITS), triton.cdiv(n, _POINTS)
    of_points = sizes.stride(0) if len(sizes) > 1 else 0
    _add_products[programs](
        *(table, starts, rows, values, phases, sizes, total),
        *(n, units, table.stride(0), of_points, total.stride(0), cosines, sines),
        HAS_PHASES=len(phases) > 0,
        HAS_SINES=sines >= 0,
        IS_ZERO=is_zero,
        UNITS=_UNITS,
        POINTS=_POINTS,
    )


def check() -> None:
    """Compute one feature of one point; raises what Triton raises if it cannot compile."""
    one, starts = torch.ones(1, 1, device="cuda"), torch.arange(2, device="cuda")
    add_products(one, starts, starts[:1], one[0], one[0], one, one.clone(), 0, -1, False)


@triton.jit
def _add_products(
    table,
    starts,
    rows,
    values,
    phases,
    sizes,
    total,
    n,
    units,
    of_columns,
    of_points,
    of_rows,
    cosines,
    sines,
    HAS_PHASES: tl.constexpr,
    HAS_SINES: tl.constexpr,
    IS_ZERO: tl.constexpr,
    UNITS: tl.constexpr,
    POINTS: tl.constexpr,
):
    """Compute a tile. ``of_columns``, ``of_points`` and ``of_rows``: strides of ``table``, ``sizes`` and ``total``."""
    unit = tl.program_id(0) * UNITS + tl.arange(0, UNITS)
    point = tl.program_id(1) * POINTS + tl.arange(0, POINTS)
    is_unit, is_point = unit < units, point < n
    start = tl.load(starts + unit, mask=is_unit, other=0)
    count = tl.load(starts + unit + 1, mask=is_unit, other=0) - start
    angles = tl.zeros((UNITS, POINTS), dtype=tl.float32)
    if HAS_PHASES:
        angles += tl.load(phases + unit, mask=is_unit, other=0.0)[:, None]
    for i in range(tl.max(count)):
        has_entry = i < count
        row = tl.load(rows + start + i, mask=has_entry, other=0)
        value = tl.load(values + start + i, mask=has_entry, other=0.0)
        entry = table + row[:, None] * of_columns + point[None, :]
        angles += value[:, None] * tl.load(entry, mask=has_entry[:, None] & is_point[None, :], other=0.0)
    # points by units from here on: the result has the units of a point side by side
    angles, is_inside = tl.trans(angles), is_point[:, None] & is_unit[None, :]
    size = tl.load(sizes + point[:, None] * of_points + unit[None, :], mask=is_inside, other=0.0)
    out = total + point[:, None].to(tl.int64) * of_rows + unit[None, :]
    _put(out + cosines, size * tl.cos(angles), is_inside, IS_ZERO)
    if HAS_SINES:
        _put(out + sines, size * tl.sin(angles), is_inside, IS_ZERO)


@triton.jit
def _put(out, waves, is_inside, IS_ZERO: tl.constexpr):
    if not IS_ZERO:
        waves += tl.load(out, mask=is_inside, other=0.0)
    tl.store(out, waves, mask=is_inside)

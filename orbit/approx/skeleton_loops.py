"""Sums of a few angles for each feature of a skeleton, then their cosines and sines, compiled by numba.

Angles of a block of features are summed with points side by side, as vectors, and turned
within the first-level cache. Cosines and sines are computed once the angles of all features of a tile are in rows:
a run along a row of the result is then long enough for the processor to fetch it ahead.
"""

import numpy as np

# inlined: numba compiles this module again when this file changes, but not when that one does
from orbit.approx.loops import cosine, sine, within_half_a_turn
from orbit.core.compiled import compiled

# Features of a block: with 64 points their angles take 32 KB, a first-level cache. Twice as many take 3.5 times as long
# to turn, each.
_UNITS = 128

# One loop in each function: otherwise the compiler does not vectorise it. Rows of tables are passed by their index: an
# array for each row would take as long as the sum. Two rows at a time take less than one or four
# (docs/performance_notes.md).


@compiled()
def _fill(value, table, row):
    for j in range(table.shape[1]):
        table[row, j] = value


@compiled()
def _set_two(value, source, one, a, other, b, total, row):
    for j in range(source.shape[1]):
        total[row, j] = value + a * source[one, j] + b * source[other, j]


@compiled()
def _add_two(source, one, a, other, b, total, row):
    for j in range(source.shape[1]):
        total[row, j] += a * source[one, j] + b * source[other, j]


@compiled()
def _turn(table, i, count, out, first):
    for j in range(count):
        out[i, first + j] = table[j, i]


@compiled()
def _write_cosines(angles, sizes, cosines):
    for j in range(len(angles)):
        y = within_half_a_turn(angles[j])
        cosines[j] = sizes[j] * cosine(y * y)


@compiled()
def _write_waves(angles, sizes, cosines, sines):
    for j in range(len(angles)):
        y = within_half_a_turn(angles[j])
        cosines[j] = sizes[j] * cosine(y * y)
        sines[j] = sizes[j] * sine(y, y * y)


@compiled()
def _add_cosines(angles, sizes, cosines):
    for j in range(len(angles)):
        y = within_half_a_turn(angles[j])
        cosines[j] += sizes[j] * cosine(y * y)


@compiled()
def _add_waves(angles, sizes, cosines, sines):
    for j in range(len(angles)):
        y = within_half_a_turn(angles[j])
        cosines[j] += sizes[j] * cosine(y * y)
        sines[j] += sizes[j] * sine(y, y * y)


@compiled(
    "float32[:, ::1]",
    "int64[::1]",
    "int64[::1]",
    "float32[::1]",
    "float32[::1]",
    "float32[:, ::1]",
    "float32[:, ::1]",
    "intp",
    "intp",
    "boolean",
)
def add_products(table, starts, rows, values, phases, sizes, total, cosines, sines, is_zero):
    """Add ``sizes[i, j] cos(angle_ij)`` to ``total[i, cosines + j]``, and sines likewise from column ``sines`` on.

    Angle ij is ``phases[j]`` plus the sum of ``values[e] table[rows[e], i]`` over ``starts[j] <= e < starts[j + 1]``.

    Parameters
    ----------
    table : array, shape (d, n): one column for each point
    starts : array, shape (u + 1,)
    rows, values : arrays
    phases : array, shape (u,), or (0,) for none
    sizes : array, shape (n, u), or (1, u) if they are the same for all points
    total : array, shape (n, width)
    cosines, sines : first columns; ``sines`` is negative for no sines
    is_zero : whether ``total`` is zero, so that it is written without being read
    """
    n, units = table.shape[1], len(starts) - 1
    block, angles = np.empty((_UNITS, n), np.float32), np.empty((n, units), np.float32)
    for first in range(0, units, _UNITS):
        count = min(units - first, _UNITS)
        for j in range(count):
            phase = phases[first + j] if len(phases) > 0 else np.float32(0)
            start, end = starts[first + j], starts[first + j + 1]
            if start == end:
                _fill(phase, block, j)
            for entry in range(start, end, 2):
                after = min(entry + 1, end - 1)
                one, a, other, b = rows[entry], values[entry], rows[after], values[after]
                if after == entry:
                    b = np.float32(0)
                if entry == start:
                    _set_two(phase, table, one, a, other, b, block, j)
                else:
                    _add_two(table, one, a, other, b, block, j)
        for i in range(n):
            _turn(block, i, count, angles, first)
    for i in range(n):
        size, of_cosines = sizes[min(i, len(sizes) - 1)], total[i, cosines : cosines + units]
        if sines < 0 and is_zero:
            _write_cosines(angles[i], size, of_cosines)
        elif sines < 0:
            _add_cosines(angles[i], size, of_cosines)
        elif is_zero:
            _write_waves(angles[i], size, of_cosines, total[i, sines : sines + units])
        else:
            _add_waves(angles[i], size, of_cosines, total[i, sines : sines + units])

"""Sums of cosines and sines of many angles in one pass, compiled by numba."""

import math

import numpy as np

from orbit.core.compiled import compiled

# Angles are reduced to half a turn by subtracting whole turns in two parts (Cody and Waite 1980): the first part is
# short enough that its products with up to some ten thousand turns are exact.
_TURN_HIGH = 6.28125
_TURN_LOW = 2 * math.pi - _TURN_HIGH

# Degree of the polynomials in the square of an angle within half a turn: their error is 2e-8, below rounding.
_DEGREE = 6


def _polynomials() -> tuple[tuple[np.float32, ...], tuple[np.float32, ...]]:
    """Coefficients of polynomials in y^2 for cos(y) and sin(y) / y up to half a turn, the constant first."""
    domain = [0.0, math.pi**2]
    functions = (lambda u: np.cos(np.sqrt(u)), lambda u: np.sinc(np.sqrt(u) / math.pi))
    series = (
        np.polynomial.Chebyshev.interpolate(f, _DEGREE, domain).convert(kind=np.polynomial.Polynomial)
        for f in functions
    )
    cosine, sine = (tuple(p.coef.astype(np.float32)) for p in series)
    return cosine, sine


_COS, _SIN = _polynomials()
_PER_TURN, _HIGH, _LOW = np.float32(0.5 / math.pi), np.float32(_TURN_HIGH), np.float32(_TURN_LOW)
_HALF_TURN = np.float32(math.pi)


@compiled()
def within_half_a_turn(angle):
    """The angle modulo whole turns, within half a turn of zero.

    Beyond some ten million turns the rounding of an angle is many turns, and any value is as good as another, but the
    polynomials hold only within half a turn.
    """
    turns = np.rint(angle * _PER_TURN)
    y = (angle - turns * _HIGH) - turns * _LOW
    y = _HALF_TURN if y > _HALF_TURN else y  # NaN stays NaN
    return -_HALF_TURN if y < -_HALF_TURN else y


@compiled()
def cosine(square):
    c0, c1, c2, c3, c4, c5, c6 = _COS
    return c0 + square * (c1 + square * (c2 + square * (c3 + square * (c4 + square * (c5 + square * c6)))))


@compiled()
def sine(y, square):
    s0, s1, s2, s3, s4, s5, s6 = _SIN
    return y * (s0 + square * (s1 + square * (s2 + square * (s3 + square * (s4 + square * (s5 + square * s6))))))


# One loop in each function, over arrays passed as arguments: otherwise the compiler does not vectorise it.


@compiled()
def _add_wave(angles, weight, cosines, sines):
    for j in range(len(angles)):
        y = within_half_a_turn(angles[j])
        cosines[j] += weight * cosine(y * y)
        sines[j] += weight * sine(y, y * y)


@compiled()
def _add_damped_wave(angles, others, weight, cosines, sines):
    for j in range(len(angles)):
        other, y = within_half_a_turn(others[j]), within_half_a_turn(angles[j])
        damped = weight * cosine(other * other)
        cosines[j] += damped * cosine(y * y)
        sines[j] += damped * sine(y, y * y)


@compiled()
def _add(values, total):
    for j in range(len(values)):
        total[j] += values[j]


@compiled("float32[:, :, ::1]", "float32[:, :, ::1]", "float32[::1]", "float32[:, :]", "float32[:, :]")
def add_waves(angles, others, weights, cosines, sines):
    """``cosines += sum_i weights[i] cos(others[i]) cos(angles[i])``, and ``sines`` likewise with sin(angles[i]).

    Parameters
    ----------
    angles : array, shape (r, n, u)
    others : array of the same shape, or (0, n, u) for no second factor
    weights : array, shape (r,)
    cosines, sines : arrays, shape (n, u)
    """
    n, columns = angles.shape[1:]
    first, second = np.empty(columns, np.float32), np.empty(columns, np.float32)
    for row in range(n):
        first[:] = 0
        second[:] = 0
        for i in range(len(angles)):
            if len(others) > 0:
                _add_damped_wave(angles[i, row], others[i, row], weights[i], first, second)
            else:
                _add_wave(angles[i, row], weights[i], first, second)
        _add(first, cosines[row])
        _add(second, sines[row])

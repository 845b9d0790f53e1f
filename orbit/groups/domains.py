"""Coordinate spaces of groups, on which distributions q are defined.

A group declares the space of its elements; a distribution declares the spaces on
which it is defined. An incompatible pair raises an error that names both.

A space defines the geometry shared by all distributions on it: the shape of an
element, the number of uniforms from which an element is computed, Haar measure if
it is finite, and the list of elements of a finite group.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy import special
from scipy.spatial.transform import Rotation

from orbit.core.errors import InputError
from orbit.groups.quadrature import Rule, grid, share, tensor, trapezoid

#: The largest number of elements that can be listed.
MAX_ELEMENTS = 10_000

# Larger orders are not converted to float, which ends near 1.8e308.
_LARGEST_SHOWN = 1e300

_TINY = 2.0**-53  # keeps uniforms off 0 and 1, where inverse distribution functions are infinite


def wrap(angles, period=2 * math.pi):
    """Angles, or any coordinates of that period, reduced to ``[-period/2, period/2)``."""
    return (angles + period / 2) % period - period / 2


def interior(u: np.ndarray) -> np.ndarray:
    """Uniforms clipped to the interior of [0, 1]."""
    return np.clip(u, _TINY, 1 - _TINY)


@dataclass(frozen=True)
class Domain:
    """Base class of coordinate spaces.

    Attributes
    ----------
    shape : tuple of int
        Shape of one element; arrays of r elements have shape ``(r, *shape)``.
    uniforms : tuple of int
        Shape of the uniform numbers from which one element is computed.
    dim : int
        Number of dimensions; 0 if there are finitely many elements.
    compact : bool
        Whether Haar measure is finite, so that a uniform distribution exists.
    order : int or None
        Number of elements; None if infinite, or not known before the shape of
        the points is.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def uniforms(self) -> tuple[int, ...]:
        return self.shape

    @property
    def dim(self) -> int:
        return 0

    @property
    def compact(self) -> bool:
        return self.order is not None

    @property
    def order(self) -> int | None:
        return None

    def identity(self) -> np.ndarray:
        """The identity, shape ``(1, *shape)``."""
        return np.zeros((1, *self.shape))

    def wrapped(self, coordinates: np.ndarray) -> np.ndarray:
        """Coordinates in their standard range: modulo the period of those that have one, others unchanged."""
        return np.asarray(coordinates)

    def elements(self) -> np.ndarray:
        """All elements of a finite group, the identity first, shape ``(order, *shape)``.

        Raises
        ------
        InputError
            If there are infinitely or too many.
        """
        if self.order is None:
            raise InputError(f"{self} cannot be listed: draw elements with orbit.rule=monte_carlo or orbit.rule=qmc")
        if self.order > MAX_ELEMENTS:
            count = f"{self.order:.3g}" if self.order < _LARGEST_SHOWN else f"more than {_LARGEST_SHOWN:g}"
            raise InputError(
                f"{self} has {count} elements, more than the {MAX_ELEMENTS} that can be listed: "
                "draw elements with orbit.rule=monte_carlo or orbit.rule=qmc"
            )
        return self._elements()

    def _elements(self) -> np.ndarray:
        """All elements, shape ``(order, ...)``; implemented by domains of finite order."""
        raise InputError(f"{self} cannot be listed")

    def haar(self, u: np.ndarray) -> np.ndarray:
        """Elements distributed by normalised Haar measure, from uniforms of shape ``(r, *uniforms)``."""
        elements = self.elements()
        return elements[np.minimum((u * len(elements)).astype(int), len(elements) - 1)]

    @property
    def has_haar_rule(self) -> bool:
        """Whether a deterministic rule integrates against Haar measure."""
        return self.compact and (self.order is None or self.order <= MAX_ELEMENTS)

    def haar_rule(self, size: int, phase: float) -> Rule:
        """Nodes ``(m, *shape)`` and weights ``(m,)`` for Haar measure.

        All elements of a finite group, for every ``size``; otherwise at most
        ``size`` nodes, but at least one.
        """
        elements = self.elements()
        return elements, np.full(len(elements), 1 / len(elements))


@dataclass(frozen=True)
class Line(Domain):
    """Vectors under addition: shifts of the line, the plane and so on.

    Elements have shape ``(r,)`` in one dimension and ``(r, n_axes)`` otherwise.

    Parameters
    ----------
    n_axes : int >= 1
    unit : str
        Unit of the coordinates, used in messages.
    step : float or None
        Grid spacing if elements are the points of a grid; None: all real numbers.
    largest : float
        The largest coordinate, in ``unit``, for which the group's action can be computed.
    """

    n_axes: int = 1
    unit: str = "units"
    compact: ClassVar[bool] = False
    step: float | None = None
    largest: float = field(default=1e5, kw_only=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return () if self.n_axes == 1 else (self.n_axes,)

    @property
    def dim(self) -> int:
        return self.n_axes

    def __str__(self) -> str:
        kind = "whole" if self.step else "real"
        return f"{kind} numbers ({self.unit})" if self.n_axes == 1 else f"{kind} vectors ({self.unit})"


@dataclass(frozen=True)
class LogScale(Line):
    """Logarithms of positive factors, so that composition is addition."""

    unit: str = "log scale"
    largest: float = field(default=50.0, kw_only=True)


@dataclass(frozen=True)
class Torus(Line):
    """Vectors under addition modulo a period on each axis: circular shifts.

    Parameters
    ----------
    periods : tuple of float, one an axis, or None
        None: unknown before :meth:`Group.for_shape`. With a ``step`` every
        period is a whole number of steps, and the group is finite.
    """

    compact: ClassVar[bool] = True
    periods: tuple[float, ...] | None = None

    @property
    def dim(self) -> int:
        return 0 if self.step else self.n_axes

    @property
    def order(self) -> int | None:
        if not self.step or self.periods is None:
            return None
        return math.prod(round(period / self.step) for period in self.periods)

    def wrapped(self, coordinates: np.ndarray) -> np.ndarray:
        if self.periods is None:
            return np.asarray(coordinates)
        return wrap(np.asarray(coordinates), np.reshape(self.periods, self.shape))

    def _elements(self) -> np.ndarray:
        assert self.step
        axes = [np.arange(round(period / self.step)) * self.step for period in self.known_periods()]
        return self._join(grid(axes))

    def haar(self, u: np.ndarray) -> np.ndarray:
        periods = np.reshape(self.known_periods(), self.shape)
        if self.step:  # from the uniforms directly: a long signal has more shifts than can be listed
            return self.wrapped(np.floor(u * np.round(periods / self.step)) * self.step)
        return (np.asarray(u) - 0.5) * periods

    def haar_rule(self, size: int, phase: float) -> Rule:
        if self.step:
            return super().haar_rule(size, phase)
        (per_axis,) = share(size, [self.n_axes])
        nodes = self._join(grid([trapezoid(per_axis, phase, period) for period in self.known_periods()]))
        return nodes, np.full(len(nodes), 1 / len(nodes))

    def known_periods(self) -> tuple[float, ...]:
        """The periods.

        Raises
        ------
        InputError
            If they are not known.
        """
        if self.periods is None:
            raise InputError(f"{self}: the period is not known before Group.for_shape")
        return self.periods

    def _join(self, axes: list[np.ndarray]) -> np.ndarray:
        return self.wrapped(np.stack(axes, axis=-1).reshape(-1, *self.shape))

    def __str__(self) -> str:
        return f"{super().__str__()} modulo a period"


@dataclass(frozen=True)
class Circle(Torus):
    """Angles in radians, in ``[-pi, pi)``; Haar measure is ``dtheta / 2 pi``."""

    unit: str = "radians"
    periods: tuple[float, ...] | None = (2 * math.pi,)

    def __str__(self) -> str:
        return "a circle of angles"


@dataclass(frozen=True)
class Finite(Domain):
    """A finite group whose elements are numbered 0 (the identity) to ``size - 1``."""

    size: int

    @property
    def order(self) -> int:
        return self.size

    def _elements(self) -> np.ndarray:
        return np.arange(float(self.size))

    def __str__(self) -> str:
        return f"{self.size} elements"


@dataclass(frozen=True)
class Permutations(Domain):
    """Permutations of ``n`` items; an element is the list of their new order.

    Parameters
    ----------
    n : int >= 1, or None if not known before the shape of the points is
    of : str
        The kind of item; used in messages, and by distributions that are defined on one kind only.
    """

    compact: ClassVar[bool] = True
    n: int | None = None
    of: str = "entries"

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.known_n(),)

    @property
    def order(self) -> int | None:
        return None if self.n is None else math.factorial(self.n)

    def identity(self) -> np.ndarray:
        return np.arange(float(self.known_n()))[None]

    def _elements(self) -> np.ndarray:
        return np.array(list(itertools.permutations(range(self.known_n()))), dtype=float)

    def haar(self, u: np.ndarray) -> np.ndarray:
        return np.argsort(u, axis=1).astype(float)  # the order of independent uniforms is uniform

    def known_n(self) -> int:
        """The number of permuted items.

        Raises
        ------
        InputError
            If it is not known.
        """
        if self.n is None:
            raise InputError(f"{self}: their number is not known before Group.for_shape")
        return self.n

    def __str__(self) -> str:
        return f"permutations of {self.of}"


@dataclass(frozen=True)
class OrthogonalMatrices(Domain):
    """Orthogonal matrices of size ``d``: all of them, or with ``special`` only the rotations.

    Sampling: from one angle in the plane; from a uniform unit quaternion (three
    uniforms, Shoemake 1992) in space; otherwise from the QR decomposition of a
    normal matrix, signs fixed so that it is unique (Mezzadri 2007).
    """

    compact: ClassVar[bool] = True
    d: int
    special: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.d, self.d)

    @property
    def uniforms(self) -> tuple[int, ...]:
        if self.d > 3:
            return (self.d**2,)
        return ((1 if self.d == 2 else 3) + (not self.special),)

    @property
    def dim(self) -> int:
        return self.d * (self.d - 1) // 2

    def identity(self) -> np.ndarray:
        return np.eye(self.d)[None]

    def haar(self, u: np.ndarray) -> np.ndarray:
        if self.d > 3:
            return self._from_normal(special.ndtri(interior(u)).reshape(-1, self.d, self.d))
        rotations = _turns(2 * math.pi * u[:, 0]) if self.d == 2 else _random_rotations(u[:, :3])
        if self.special:
            return rotations
        return np.where(u[:, -1, None, None] < 0.5, rotations, rotations @ self._mirror())

    @property
    def has_haar_rule(self) -> bool:
        return self.d <= 3

    def haar_rule(self, size: int, phase: float) -> Rule:
        """Equispaced angles in the plane; in space z-y-z Euler angles, trapezoid x Gauss-Legendre x trapezoid.

        In space, L + 1 rotations about each axis and ceil((L + 1) / 2) inclinations
        integrate every polynomial of degree L in the matrix entries exactly.
        """
        mirrored = not self.special and size > 1
        size = size // 2 if mirrored else size
        if self.d == 2:
            nodes, weights = _turns(trapezoid(size, phase)), np.full(size, 1 / size)
        else:
            nodes, weights = _euler_rule(size, phase)
        if not mirrored:
            return nodes, weights
        return np.concatenate([nodes, nodes @ self._mirror()]), np.tile(weights / 2, 2)

    def _mirror(self) -> np.ndarray:
        return np.diag([1.0] * (self.d - 1) + [-1.0])

    def _from_normal(self, Z: np.ndarray) -> np.ndarray:
        Q, R = np.linalg.qr(Z)
        Q = Q * np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]
        if self.special:
            Q[:, :, -1] *= np.linalg.det(Q)[:, None].round()
        return Q

    def __str__(self) -> str:
        return f"{'rotation' if self.special else 'orthogonal'} matrices of size {self.d}"


def _turns(angles: np.ndarray) -> np.ndarray:
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([cos, -sin, sin, cos], axis=-1).reshape(*np.shape(angles), 2, 2)


def _random_rotations(u: np.ndarray) -> np.ndarray:
    """Uniform rotations of space, shape (r, 3, 3), from uniforms (r, 3), by unit quaternions (Shoemake, 1992)."""
    first, second = np.sqrt(1 - u[:, 0]), np.sqrt(u[:, 0])
    a, b = 2 * math.pi * u[:, 1], 2 * math.pi * u[:, 2]
    quaternions = np.stack([first * np.sin(a), first * np.cos(a), second * np.sin(b), second * np.cos(b)], axis=1)
    return Rotation.from_quat(quaternions).as_matrix()


def _euler_rule(size: int, phase: float) -> Rule:
    degree = 0
    while (degree + 2) ** 2 * -(-(degree + 2) // 2) <= size:
        degree += 1
    angles = trapezoid(degree + 1, phase)
    heights, weights = np.polynomial.legendre.leggauss(-(-(degree + 1) // 2))
    turns = Rotation.from_euler("ZYZ", np.stack(grid([angles, np.arccos(heights), angles]), axis=1))
    shared = grid([angles, weights, angles])[1]
    return turns.as_matrix(), shared / shared.sum()


@dataclass(frozen=True)
class ProductDomain(Domain):
    """The product of several spaces; an element is one row, the parts concatenated.

    Parameters
    ----------
    parts : tuple of Domain
    names : tuple of str
        Names of the parts in error messages.
    """

    parts: tuple[Domain, ...]
    names: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return (sum(math.prod(part.shape) for part in self.parts),)

    @property
    def uniforms(self) -> tuple[int, ...]:
        return (sum(math.prod(part.uniforms) for part in self.parts),)

    @property
    def dim(self) -> int:
        return sum(part.dim for part in self.parts)

    @property
    def compact(self) -> bool:
        return all(part.compact for part in self.parts)

    @property
    def order(self) -> int | None:
        orders = [part.order for part in self.parts]
        return None if None in orders else math.prod(order for order in orders if order is not None)

    def identity(self) -> np.ndarray:
        return self.join([part.identity() for part in self.parts])

    def _elements(self) -> np.ndarray:
        return self.join(grid([part.elements() for part in self.parts]))

    def split(self, elements: np.ndarray) -> list[np.ndarray]:
        """The parts of elements ``(r, width)``, each of shape ``(r, *part.shape)``."""
        return _cut(np.asarray(elements), [part.shape for part in self.parts])

    def split_uniforms(self, u: np.ndarray) -> list[np.ndarray]:
        """The uniforms of each part, shapes ``(r, *part.uniforms)``."""
        return _cut(np.asarray(u), [part.uniforms for part in self.parts])

    def join(self, parts: list[np.ndarray]) -> np.ndarray:
        """The inverse of :meth:`split`."""
        return np.concatenate([np.reshape(part, (len(part), -1)) for part in parts], axis=1).astype(np.float64)

    def haar(self, u: np.ndarray) -> np.ndarray:
        return self.join([part.haar(v) for part, v in zip(self.parts, self.split_uniforms(u), strict=True)])

    @property
    def has_haar_rule(self) -> bool:
        listed = math.prod(part.order or 1 for part in self.parts)
        return listed <= MAX_ELEMENTS and all(part.has_haar_rule for part in self.parts)

    def haar_rule(self, size: int, phase: float) -> Rule:
        listed = math.prod(part.order or 1 for part in self.parts)
        counts = share(max(1, size // listed), [part.dim for part in self.parts])
        rules = [part.haar_rule(n**part.dim, phase) for part, n in zip(self.parts, counts, strict=True)]
        nodes, weights = tensor(rules)
        return self.join(nodes), weights

    def __str__(self) -> str:
        return " with ".join(str(part) for part in self.parts)


def _cut(rows: np.ndarray, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [
        rows[:, end - math.prod(shape) : end].reshape(len(rows), *shape)
        for shape, end in zip(shapes, ends, strict=True)
    ]

"""Distributions on additive groups: shifts, angles, log scales; the same law on every axis.

Each law is defined on the real line. On a grid of whole steps it is discrete, a list of
atoms with probabilities; on a circle or torus it is wrapped.
"""

import math
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, cast

import numpy as np
from scipy import special
from sklearn.base import clone

from orbit.core.errors import InputError
from orbit.core.params import PositiveFloat
from orbit.distributions.base import Distribution
from orbit.groups.domains import MAX_ELEMENTS, Circle, Domain, Line, LogScale, Torus, interior
from orbit.groups.quadrature import Rule, share, tensor, trapezoid
from orbit.registry import register

Unit = Literal["native", "degrees"]

# A Gaussian on a grid is cut where one tail holds less than this.
_TAIL = 1e-6

# A quadrature that omits more mass than this issues a warning.
_LOST_MASS = 1e-4


class AxisLaw(Distribution):
    """One law on the real line, drawn independently on every axis.

    A subclass implements the density of the law, its inverse distribution function,
    atoms and Gauss rule, and the interval that holds its mass, all in native units.
    """

    domains = (Line,)

    @abstractmethod
    def _pdf(self, x: np.ndarray) -> np.ndarray:
        """Density on the real line."""

    @abstractmethod
    def _quantile(self, u: np.ndarray) -> np.ndarray:
        """Inverse distribution function on the real line."""

    @abstractmethod
    def _atoms(self, step: float) -> Rule:
        """The law on the whole multiples of ``step``: points and probabilities."""

    @abstractmethod
    def _gauss(self, size: int) -> Rule:
        """Gauss nodes and weights of the law."""

    @abstractmethod
    def _support(self) -> tuple[float, float]:
        """An interval that holds all mass, up to rounding."""

    @abstractmethod
    def _is_wide(self, size: int, period: float) -> bool:
        """Whether ``size`` equispaced nodes around a circle integrate better than Gauss nodes."""

    def atoms(self, domain: Domain) -> int | None:
        return None

    def check_domain(self, domain: Domain, owner: str) -> None:
        super().check_domain(domain, owner)
        low, high = self._support()
        largest = cast(Line, domain).largest
        if max(-low, high) > largest:
            raise InputError(
                f"{self.label()} has elements from {low:.3g} to {high:.3g}, but those of {owner}, {domain}, can be at "
                f"most {largest:g} in size: choose parameters nearer to 0"
            )

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        line = cast(Line, domain)
        rows = np.reshape(np.asarray(coordinates, dtype=float), (len(coordinates), -1))
        axes = [self._axis_density(x, period, line.step) for x, period in zip(rows.T, _periods(line), strict=True)]
        return np.prod(axes, axis=0)

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        line = cast(Line, domain)
        if not line.step:
            return line.wrapped(self._quantile(interior(np.asarray(u))))
        points, probabilities = self._atoms(line.step)
        index = np.searchsorted(np.cumsum(probabilities), u, side="right")
        return line.wrapped(points[np.minimum(index, len(points) - 1)])

    def quadrature(self, domain: Domain, size: int, phase: float) -> Rule:
        line = cast(Line, domain)
        (per_axis,) = share(size, [line.n_axes])
        if line.step:
            rules = self._grid_rules(line, per_axis)
        else:
            rules = [self._axis_rule(per_axis, phase, period) for period in _periods(line)]
        nodes, weights = tensor(rules)
        return line.wrapped(np.stack(nodes, axis=-1).reshape(-1, *line.shape)), weights

    def default_size(self, domain: Domain, size: int) -> int:
        """``size``; on whole steps at least the number of atoms, since fewer nodes would change the distribution."""
        line = cast(Line, domain)
        if not line.step:
            return size
        needed = max(len(mass) for _, mass in self._wrapped_atoms(line)) ** line.n_axes
        return max(size, min(needed, MAX_ELEMENTS))

    def _wrapped_atoms(self, line: Line) -> list[Rule]:
        """The law on the whole steps of each axis; steps that are the same element of a torus are merged."""
        assert line.step
        points, mass = self._atoms(line.step)
        return [_wrapped(points, mass, line.step, period) for period in _periods(line)]

    def _grid_rules(self, line: Line, size: int) -> list[Rule]:
        """For each axis all atoms, or the most probable ones within ``size`` nodes if the law has tails."""
        rules = self._wrapped_atoms(line)
        if self.atoms(line) is not None:
            return rules
        trimmed = [_most_probable(points, mass, size) for points, mass in rules]
        kept = math.prod(float(mass.sum()) for _, mass in trimmed)
        if 1 - kept > _LOST_MASS:
            needed = max(len(mass) for _, mass in rules) ** line.n_axes
            warnings.warn(
                f"{self.label()}: {math.prod(len(mass) for _, mass in trimmed)} elements hold {kept:.4g} of its mass, "
                f"the other {1 - kept:.2g} is left out and the weights are scaled up: the average is over another "
                f"distribution. orbit.size={needed} keeps all of it, orbit.rule=monte_carlo and orbit.rule=qmc draw "
                "from all of it",
                stacklevel=3,
            )
        return [(points, mass / mass.sum()) for points, mass in trimmed]

    def _axis_density(self, x: np.ndarray, period: float | None, step: float | None) -> np.ndarray:
        if period is None:
            return self._on_line(x, step)
        low, high = self._support()
        turns = np.arange(math.floor((low - period / 2) / period), math.ceil((high + period / 2) / period) + 1)
        wrapped = self._on_line(x[:, None] + turns * period, step).sum(1)
        return wrapped * (period / step if step else period)  # normalised Haar measure is 1/period dx, or 1/order

    def _on_line(self, x: np.ndarray, step: float | None) -> np.ndarray:
        if not step:
            return self._pdf(x)
        points, probabilities = self._atoms(step)
        index = np.clip(np.searchsorted(points, x - step / 2), 0, len(points) - 1)
        return np.where(np.abs(points[index] - x) < 1e-9 * step, probabilities[index], 0.0)

    def _axis_rule(self, size: int, phase: float, period: float | None) -> Rule:
        if period is None or not self._is_wide(size, period):
            return self._gauss(size)
        nodes = trapezoid(size, phase, period)
        weights = self._axis_density(nodes, period, None)
        return nodes, weights / weights.sum()


@register("distribution", "uniform")
class Uniform(AxisLaw):
    """Uniform on the range ``[low, high]`` of every axis: the truncated Haar measure of Mroueh et al. 2015, section 5.

    If only whole steps are elements (whole pixels), every step in the range is
    equally likely: ``low=-3, high=3`` are 7 x 7 shifts of an image.

    Parameters
    ----------
    low, high : float
        The ends of the range.
    unit : {"native", "degrees"}
        ``native`` is the unit of the group's elements: radians for angles,
        pixels for shifts, the logarithm for scales.

    Examples
    --------
    >>> from orbit.distributions import Uniform
    >>> from orbit.groups.domains import Circle, Line
    >>> nodes, weights = Uniform(-20, 20, unit="degrees").quadrature(Circle(), 3, 0.0)
    >>> weights.round(4)
    array([0.2778, 0.4444, 0.2778])
    >>> Uniform(-1, 1, unit="native").quadrature(Line(step=1.0), 3, 0.0)[0]
    array([-1.,  0.,  1.])
    """

    def __init__(self, low: float = -20.0, high: float = 20.0, unit: Unit = "degrees") -> None:
        self.low = low
        self.high = high
        self.unit = unit

    def scaled(self, factor: float, domain: Domain) -> Distribution | None:
        return type(self)(factor * self.low, factor * self.high, self.unit)

    def check(self) -> None:
        super().check()
        if self.low >= self.high:
            raise self.wrong("high", f"a number > {self.section}.low={self.low:g}")
        if self.unit == "degrees" and self.high - self.low > 360 * (1 + 1e-12):
            raise self.wrong("high", "a range of at most one full turn")

    def check_domain(self, domain: Domain, owner: str) -> None:
        super().check_domain(domain, owner)
        _check_unit(self, self.unit, domain, owner)
        assert isinstance(domain, Line)
        low, high = self._support()
        if isinstance(domain, Circle) and high - low > 2 * math.pi * (1 + 1e-12):
            raise self.wrong("high", "a range of at most one full turn")
        if domain.step and not len(self._atoms(domain.step)[0]):
            raise InputError(
                f"{self.label()} has no whole element of {owner} in [{low:g}, {high:g}]: widen "
                f"{self.section}.low, {self.section}.high"
            )
        if isinstance(domain, Torus) and domain.periods is not None:
            length = len(self._atoms(domain.step)[0]) * domain.step if domain.step else high - low
            if length > min(domain.periods) * (1 + 1e-12):
                raise InputError(
                    f"{self.label()} ranges over {length:g}, more than the period {min(domain.periods):g} of {owner}: "
                    f"narrow {self.section}.low, {self.section}.high, or choose distribution=haar"
                )

    def atoms(self, domain: Domain) -> int | None:
        line = cast(Line, domain)
        return len(self._atoms(line.step)[0]) ** line.n_axes if line.step else None

    def _support(self) -> tuple[float, float]:
        scale = _in_native(self.unit)
        return self.low * scale, self.high * scale

    def _pdf(self, x: np.ndarray) -> np.ndarray:
        low, high = self._support()
        slack = 1e-12 * (high - low)
        # half open, so that no end is counted twice around a circle
        return np.where((x >= low - slack) & (x < high - slack), 1 / (high - low), 0.0)

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        low, high = self._support()
        return low + u * (high - low)

    def _atoms(self, step: float) -> Rule:
        low, high = self._support()
        slack = 1e-9 * step
        points = np.arange(math.ceil((low - slack) / step), math.floor((high + slack) / step) + 1) * step
        return points, np.full(len(points), 1 / max(1, len(points)))

    def _gauss(self, size: int) -> Rule:
        low, high = self._support()
        nodes, weights = np.polynomial.legendre.leggauss(size)
        return low + (nodes + 1) / 2 * (high - low), weights / 2

    def _is_wide(self, size: int, period: float) -> bool:
        low, high = self._support()
        return high - low >= period * (1 - 1e-12)  # the whole circle

    def _axis_rule(self, size: int, phase: float, period: float | None) -> Rule:
        if period is not None and self._is_wide(size, period):
            return trapezoid(size, phase, period), np.full(size, 1 / size)
        return super()._axis_rule(size, phase, period)


@register("distribution", "gaussian")
class GaussianDistribution(AxisLaw):
    """Normal on every axis; wrapped around a circle, and rounded to the nearest element on a grid of whole steps.

    On a grid the quadrature lists the most probable elements, at most ``size``, with
    a warning if the others hold more than 1e-4 of the mass; without a size it
    lists all of them.

    Parameters
    ----------
    mean : float
        Centre, in ``unit``.
    sigma : float > 0
        Standard deviation on each axis.
    unit : {"native", "degrees"}
        Unit of both: ``native`` is the unit of the group's elements, radians for
        angles, pixels for shifts, the logarithm for scales.

    Examples
    --------
    >>> from orbit.distributions import GaussianDistribution
    >>> from orbit.groups.domains import Line
    >>> nodes, weights = GaussianDistribution(sigma=2.0).quadrature(Line(), 3, 0.0)
    >>> nodes.round(4), weights.round(4)
    (array([-3.4641,  0.    ,  3.4641]), array([0.1667, 0.6667, 0.1667]))
    """

    def __init__(self, mean: float = 0.0, sigma: PositiveFloat = 1.0, unit: Unit = "native") -> None:
        self.mean = mean
        self.sigma = sigma
        self.unit = unit

    def scaled(self, factor: float, domain: Domain) -> Distribution | None:
        return clone(self).set_params(sigma=factor * self.sigma)

    def check_domain(self, domain: Domain, owner: str) -> None:
        super().check_domain(domain, owner)
        _check_unit(self, self.unit, domain, owner)

    def _moments(self) -> tuple[float, float]:
        """Mean and standard deviation, in native units."""
        scale = _in_native(self.unit)
        return self.mean * scale, self.sigma * scale

    def _support(self) -> tuple[float, float]:
        mean, sigma = self._moments()
        return mean - 9 * sigma, mean + 9 * sigma

    def _pdf(self, x: np.ndarray) -> np.ndarray:
        mean, sigma = self._moments()
        return np.exp(-(((x - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))

    def _quantile(self, u: np.ndarray) -> np.ndarray:
        mean, sigma = self._moments()
        return mean + sigma * special.ndtri(u)

    def _atoms(self, step: float) -> Rule:
        mean, sigma = self._moments()
        reach = -special.ndtri(_TAIL) * sigma
        points = np.arange(round((mean - reach) / step), round((mean + reach) / step) + 1) * step
        mass = special.ndtr((points + step / 2 - mean) / sigma) - special.ndtr((points - step / 2 - mean) / sigma)
        return points, mass / mass.sum()

    def _gauss(self, size: int) -> Rule:
        mean, sigma = self._moments()
        nodes, weights = special.roots_hermitenorm(size)
        return mean + sigma * nodes, weights / weights.sum()

    def _is_wide(self, size: int, period: float) -> bool:
        return size * self._moments()[1] >= period  # the nodes then lie closer than one deviation


@register("distribution", "lognormal")
class LogNormal(GaussianDistribution):
    """A scale whose logarithm is normal (Raj et al. 2017, section 4.3: mean 0, sigma 0.3).

    The density is with respect to ``ds / s``, the invariant measure of scales.

    Parameters
    ----------
    mean, sigma : float, sigma > 0
        Mean and standard deviation of the natural logarithm of the scale.

    Examples
    --------
    >>> from orbit.distributions import LogNormal
    >>> from orbit.groups.domains import LogScale
    >>> LogNormal(0.0, 0.3).quadrature(LogScale(), 3, 0.0)[0].round(4)
    array([-0.5196,  0.    ,  0.5196])
    """

    domains = (LogScale,)

    unit: Unit = "native"

    def __init__(self, mean: float = 0.0, sigma: PositiveFloat = 0.3) -> None:
        self.mean = mean
        self.sigma = sigma


def _periods(line: Line) -> Sequence[float | None]:
    """The period of each axis, None where coordinates do not wrap."""
    return line.known_periods() if isinstance(line, Torus) else [None] * line.n_axes


def _wrapped(points: np.ndarray, mass: np.ndarray, step: float, period: float | None) -> Rule:
    """Atoms at whole multiples of ``step``, reduced to ``[-period/2, period/2)``, with equal atoms merged."""
    if period is None:
        return points, mass
    order = round(period / step)
    steps = (np.round(points / step).astype(int) + order // 2) % order
    merged = np.bincount(steps, mass, minlength=order)
    carried = np.flatnonzero(merged)
    return (carried - order // 2) * step, merged[carried]


def _most_probable(points: np.ndarray, mass: np.ndarray, size: int) -> Rule:
    """At most ``size`` most probable atoms; an odd number if some are dropped, to keep symmetry about the mean."""
    if size >= len(points):
        return points, mass
    kept = np.sort(np.argsort(-mass, kind="stable")[: size - 1 + size % 2])
    return points[kept], mass[kept]


def _in_native(unit: Unit) -> float:
    return math.pi / 180 if unit == "degrees" else 1.0


def _check_unit(q: Distribution, unit: Unit, domain: Domain, owner: str) -> None:
    if unit == "degrees" and isinstance(domain, Line) and not isinstance(domain, Circle):
        raise InputError(
            f"{q.label()} has {q.section}.unit=degrees, but the elements of {owner} are {domain}: "
            f"choose {q.section}.unit=native and give the other parameters in {domain.unit}"
        )

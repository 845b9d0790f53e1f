"""Which symmetry leaves the answer unchanged: groups compared by leave-one-out errors of averaged kernels.

These errors are closed form for regularised least squares, so that a group costs about a second, and the comparison
uses nothing but the given points.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils import check_X_y
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.core.grid import grid_axes
from orbit.core.linalg import pivoted_root
from orbit.core.params import parameters
from orbit.core.progress import Progress
from orbit.core.random import generator
from orbit.data.base import Task
from orbit.data.splits import guess_task
from orbit.distributions import ProductDistribution
from orbit.distributions.base import Distribution
from orbit.encoders import Encoder, NoEncoder
from orbit.groups import Group, ProductGroup
from orbit.kernels.base import median_distance
from orbit.orbits import Orbit, random_orbit_points
from orbit.plots.axes import short
from orbit.plots.ranking import ranking
from orbit.registry import available, get
from orbit.solvers.left_out import encoded_targets, left_out

_FEWEST = 10

# Of the moved points: the model takes so many principal components, and means of so many copies of each point as
# landmarks. On 300 rotated digits and 400 of MNIST, errors with all copies were at most a tenth lower, at 4 times the
# cost, and those with all components higher.
_COMPONENTS, _COPIES, _FITTED = 64, 4, 2000

# Lengthscales as multiples of the median distance.
_MULTIPLES = 2.0 ** np.arange(-4, 8)

# Finite groups up to this order are listed; of larger ones so many elements are drawn.
_LISTED = 128

# Widths of q that are tried, as multiples of the default one, and the steps of their refinement.
_WIDTHS, _STEPS = (0.5, 2.0), (0.7, 1.4)

_MOST_FACTORS = 3

# What helps lowers the error by more than chance and by more than this share: averages over slightly larger and smaller
# columns of a table, which smooth, lowered it by 2 % in seeds 0 to 2 of benchmarks/discover_trials.py.
_SIGNIFICANT, _RELEVANT = 0.05, 0.05


@dataclass(frozen=True)
class Trial:
    """One orbit and its leave-one-out errors.

    Attributes
    ----------
    orbit : Orbit
        Not fitted.
    errors : array, shape (n,)
        The squared leave-one-out errors of the points; 1 on average for a constant prediction.
    right : bool array, shape (n,), or None
        Which points are classified rightly; None for regression.
    multiple : float
        The lengthscale as a multiple of the median distance of the points.
    p : float
        The probability of a difference from the identity at least as large by chance, by the paired t test of the
        errors, after Holm's correction for the number of trials.
    """

    orbit: Orbit
    errors: np.ndarray = field(repr=False)
    right: np.ndarray | None = field(repr=False)
    multiple: float
    seconds: float
    p: float = 1.0

    @property
    def error(self) -> float:
        return float(self.errors.mean())

    @property
    def is_identity(self) -> bool:
        return self.orbit.group is None

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """Sections of a configuration with this orbit: its group and, if it is not the group's default, its q."""
        parts = {"group": self.orbit.group, "distribution": self.orbit.distribution}
        return {kind: _section(part) for kind, part in parts.items() if part is not None} or {
            "group": {"name": "identity"}
        }

    @property
    def label(self) -> str:
        """:attr:`settings` in a few words."""
        return ", ".join(map(_brief, self.settings.values()))


@dataclass(frozen=True, repr=False)
class Discovery:
    """The result of :func:`discover`; as text a table and a sentence.

    Attributes
    ----------
    trials : list of Trial
        In ascending order of error; one is the identity.
    example : array, shape (1, *shape)
        One of the points.
    """

    trials: list[Trial]
    example: np.ndarray

    @property
    def identity(self) -> Trial:
        return next(trial for trial in self.trials if trial.is_identity)

    @property
    def best(self) -> Trial:
        """The trial with the lowest error of those that help; the identity if none does."""
        return next(filter(self.helps, self.trials), self.identity)

    @property
    def orbit(self) -> Orbit:
        """The best orbit, not fitted, for a feature map."""
        return Orbit(self.best.orbit.group, self.best.orbit.distribution)

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The sections of a configuration with the best orbit: its group and, unless it is the default, its q."""
        return self.best.settings

    def helps(self, trial: Trial) -> bool:
        """Whether the error with the orbit is lower than without by more than chance (5 %), and by more than 5 %."""
        return trial.error < (1 - _RELEVANT) * self.identity.error and trial.p < _SIGNIFICANT

    def changes(self, trial: Trial) -> tuple[int, int]:
        """The number of points that are classified rightly only with the orbit, and only without."""
        with_it, without = trial.right, self.identity.right
        if with_it is None or without is None:
            return 0, 0
        return int((with_it & ~without).sum()), int((without & ~with_it).sum())

    @property
    def table(self) -> pd.DataFrame:
        """A row for each trial, in ascending order of error: an empty q is the group's default."""
        return pd.DataFrame([self._row(trial) for trial in self.trials])

    def _row(self, trial: Trial) -> dict[str, Any]:
        group, *q = map(_brief, trial.settings.values())
        row = {"group": group, "q": "".join(q), "error": trial.error}
        if trial.right is not None:
            gains, losses = self.changes(trial)
            row |= {"accuracy": trial.right.mean(), "gains": gains, "losses": losses}
        return row | {"p": trial.p, "seconds": trial.seconds}

    @property
    def sentence(self) -> str:
        """The result in words."""
        best, plain, lowest = self.best, self.identity, self.trials[0]
        if best.is_identity:
            closest = (
                "" if lowest.is_identity else f"; lowest: {lowest.error:.3g} with {lowest.label}, p {lowest.p:.2g}"
            )
            return (
                f"No group helps: of {len(self.trials) - 1} choices none lowers the error by 5 % and more than chance "
                f"({plain.error:.3g} without a group{closest})."
            )
        gains, losses = self.changes(best)
        points = f"; {gains} points are right only with it, {losses} only without" if gains + losses else ""
        return (
            f"Averaging over {best.label} helps: the leave-one-out error is {best.error:.3g} with it, "
            f"{plain.error:.3g} without (p {best.p:.1g}){points}."
        )

    def __repr__(self) -> str:
        return f"{self.table.to_string(index=False, float_format='{:.3g}'.format)}\n\n{self.sentence}"

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the best trial of each group as a bar, with an interval of 95 % for its difference from the identity.

        Without ``ax`` also the example, moved along the best orbit.
        """
        of_groups = {repr(type(trial.orbit.group)): trial for trial in reversed(self.trials)}
        shown = sorted(of_groups.values(), key=lambda trial: trial.error)
        differences = [trial.errors - self.identity.errors for trial in shown]
        return ranking(
            [trial.label for trial in shown],
            np.array([trial.error for trial in shown]),
            np.array([each.std(ddof=1) / np.sqrt(len(each)) for each in differences]),
            [self.helps(trial) for trial in shown],
            self.identity.error,
            self.orbit.set_params(random_state=0).fit(self.example),
            self.example,
            ax,
        )


def discover(
    X: Any,
    y: Any,
    *,
    task: Task | None = None,
    clusters: Any = None,
    encoder: Encoder | None = None,
    groups: Iterable[Group] | None = None,
    max_points: int = 500,
    refine: bool = True,
    random_state: int = 0,
    progress: bool = False,
) -> Discovery:
    """Compare all groups that act on points, by the error with which the others predict each point.

    The model is least squares with a Gaussian kernel of the main principal components, averaged over each group's
    orbit; its regularisation and lengthscale are chosen for each orbit, and for none, by the same leave-one-out error.
    An orbit helps if its errors are lower than those without, by more than 5 % and by a paired t test, after Holm's
    correction for all orbits tried.

    Parameters
    ----------
    X : array, shape (n, *shape)
        Training points.
    y : array, shape (n,) or (n, k)
        Labels or numbers.
    task : {"classification", "regression"} or None
        None: labels unless there are more than 100 different numbers, or some that are not whole.
    clusters : array, shape (n,), or None
        The cluster of each point, such as the patient it comes from: points of one are left out together.
    encoder : Encoder or None
        Maps a moved point to the vector that the kernel takes; None takes the point itself.
    groups : iterable of Group or None
        None: all registered groups that act on points of the shape, with :meth:`Group.variants`.
    max_points : int
        Of more points a random sample is used.
    refine : bool
        Whether to try several widths of each q, to refine those of the best, and to try products of groups.
    random_state : int
    progress : bool
        Whether to show it.

    Returns
    -------
    Discovery

    Raises
    ------
    InputError
        For fewer than ten points, or clusters.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=60)
    >>> waves = np.where(y[:, None] == 1, np.sin(np.arange(32)), np.sign(np.sin(np.arange(32) / 2)))
    >>> X = np.stack([np.roll(wave, rng.integers(32)) for wave in waves]) + rng.normal(size=(60, 32))
    >>> found = orbit.discover(X, y)
    >>> found.orbit.group
    Cyclic(axis=0)
    """
    points = _sampled(X, y, task, clusters, encoder, max_points, random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about settings that nobody has chosen
        orbits = candidates(points.X.shape[1:], groups, refine)
        trials = [points.trial(Orbit(), _MULTIPLES)]
        with Progress(len(orbits), "groups", progress) as shown:
            for orbit in orbits:
                trials.append(points.trial(orbit, trials[0].multiple))
                shown.step()
        if refine:
            _refine(trials, points)
            _multiply(trials, points)
    return Discovery(sorted(points.tested(trials), key=lambda trial: trial.error), points.X[:1])


def candidates(shape: tuple[int, ...], groups: Iterable[Group] | None = None, widths: bool = True) -> list[Orbit]:
    """The orbits of every group that acts on points of a shape, with several widths of q.

    >>> sorted({orbit.group.name for orbit in candidates((3,))})
    ['amplitude', 'cyclic', 'offset', 'orthogonal', 'permutation', 'reflection', 'time_warp']
    """
    if groups is None:
        classes: list[Any] = [get("group", name) for name in available("group")]
        compared = [cls for cls in classes if cls.compared_on in (None, grid_axes(shape))]
        groups = [group for cls in compared for group in cls.variants(shape) if _acts_on(group, shape)]
    orbits = [_orbit(group, None, shape) for group in groups]
    if not widths:
        return orbits
    return [each for orbit in orbits for each in (orbit, *(_scaled(orbit, shape, width) for width in _WIDTHS)) if each]


def _acts_on(group: Group, shape: tuple[int, ...]) -> bool:
    try:
        group.check_shape(shape)
    except InputError:
        return False
    return True


def _orbit(group: Group, q: Distribution | None, shape: tuple[int, ...]) -> Orbit:
    """The orbit of a group on points of a shape; small finite groups are listed, of large ones elements are drawn."""
    order = group.for_shape(shape).order
    if q is not None or order is None or order <= group.default_size:
        return Orbit(group, q)
    return Orbit(group, q, order) if order <= _LISTED else Orbit(group, q, _LISTED, "qmc")


def _scaled(orbit: Orbit, shape: tuple[int, ...], factor: float, only: int | None = None) -> Orbit | None:
    """An orbit with elements ``factor`` times as far from the identity, in all ways or one; None without a width."""
    group, q, _ = orbit.resolved()
    if group.limits:
        names = group.limits if only is None else group.limits[only : only + 1]
        changed = clone(group).set_params(**{name: factor * getattr(group, name) for name in names})
        return Orbit(changed) if _is_valid(changed) else None
    domain = group.for_shape(shape).domain
    scaled = q.scaled(factor, domain, only) if isinstance(q, ProductDistribution) else q.scaled(factor, domain)
    return None if scaled is None else _orbit(group, scaled, shape)


def _n_widths(orbit: Orbit) -> int:
    group, q, _ = orbit.resolved()
    return len(group.limits) or (len(q.parts()) if isinstance(q, ProductDistribution) else 1)


def _is_valid(component: Component) -> bool:
    try:
        component.check()
    except InputError:
        return False
    return True


@dataclass(frozen=True)
class _Points:
    """Points and their targets, which orbits are compared on.

    Attributes
    ----------
    X : float32 or float64 array, shape (n, *shape)
        Kernels are computed in its precision.
    targets : array, shape (n, p)
        Of variance 1 in sum; a column for each class of labels.
    clusters : int array, shape (n,)
        From 0; equal points are of one cluster.
    """

    X: np.ndarray
    targets: np.ndarray
    of_classes: bool
    clusters: np.ndarray
    encoder: Encoder
    seed: int

    def trial(self, orbit: Orbit, multiples: float | np.ndarray) -> Trial:
        """The errors with an orbit, at the best of given lengthscales, or of those in steps from a given one."""
        start = time.perf_counter()
        moved, weights, unit = self._moved(clone(orbit).set_params(random_state=self.seed))
        landmarks, shares = self._copies(moved, weights)
        tried: dict[float, np.ndarray] = {}
        waiting = set(np.atleast_1d(multiples))
        while waiting:
            for multiple in sorted(waiting):
                tried[multiple] = self._predicted(moved, weights, landmarks, shares, multiple * unit)
            best = min(tried, key=lambda multiple: self._errors(tried[multiple]).mean())
            waiting = {best / 2, best * 2} & set(_MULTIPLES) - set(tried)
        right = tried[best].argmax(1) == self.targets.argmax(1) if self.of_classes else None
        return Trial(orbit, self._errors(tried[best]), right, best, time.perf_counter() - start)

    def _errors(self, predicted: np.ndarray) -> np.ndarray:
        return np.square(predicted - self.targets).sum(1)

    def _moved(self, orbit: Orbit) -> tuple[Tensor, np.ndarray, float]:
        """Vectors of all moved points, shape (r, n, d), the weights of the elements, and the median distance."""
        orbit.fit(self.X)
        some = random_orbit_points(orbit, self.X, _FITTED, self.seed)
        encode = clone(self.encoder).fit(some, self.seed).encode
        vectors = encode(torch.from_numpy(some)).numpy()
        components = PCA(min(_COMPONENTS, *vectors.shape), random_state=self.seed).fit(vectors)
        points, elements = torch.from_numpy(self.X), range(len(orbit.weights_))
        moved = (encode(orbit.points(points, slice(i, i + 1))[0]).numpy() for i in elements)
        projected = np.stack([components.transform(each) for each in moved])
        return torch.from_numpy(projected), orbit.weights_, median_distance(components.transform(vectors))

    def _copies(self, moved: Tensor, weights: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """A few of the moved copies of each point, shape (c, n, d), and their weights."""
        if len(weights) <= _COPIES:
            return moved, weights
        n = moved.shape[1]
        drawn = generator(self.seed).choice(len(weights), (_COPIES, n), p=weights)
        return moved[torch.from_numpy(drawn), torch.arange(n)], np.full(_COPIES, 1 / _COPIES)

    def _predicted(
        self, moved: Tensor, weights: np.ndarray, landmarks: Tensor, shares: np.ndarray, lengthscale: float
    ) -> np.ndarray:
        gram = _mean_kernel(landmarks, shares, landmarks, shares, lengthscale)
        pivots, root = pivoted_root((gram + gram.T) / 2, precision=float(np.finfo(self.X.dtype).eps))
        sums = _mean_kernel(moved, weights, landmarks, shares, lengthscale)
        return left_out(sums[:, pivots] @ root.T, self.targets, self.clusters)[0]

    def p_value(self, one: Trial, two: Trial) -> float:
        """The two-sided p of the paired t test of errors, summed over clusters; 1 for equal errors."""
        differences = np.bincount(self.clusters, one.errors - two.errors)
        return float(np.nan_to_num(stats.ttest_1samp(differences, 0.0).pvalue, nan=1.0))

    def falls(self, trial: Trial, other: Trial) -> bool:
        """Whether the error of a trial is lower than that of another by more than chance, for these two alone."""
        return trial.error < other.error and self.p_value(trial, other) < _SIGNIFICANT

    def tested(self, trials: list[Trial]) -> list[Trial]:
        """Trials with their tests against the first, the identity."""
        plain, others = trials[0], trials[1:]
        p = _holm([self.p_value(trial, plain) for trial in others])
        return [plain, *(replace(trial, p=float(value)) for trial, value in zip(others, p, strict=True))]


def _mean_kernel(A: Tensor, v: np.ndarray, B: Tensor, w: np.ndarray, lengthscale: float) -> np.ndarray:
    """sum_ij v_i w_j exp(-|A_ix - B_jz|^2 / (2 lengthscale^2)), shape (n, m), for A (r, n, d) and B (c, m, d)."""
    A, B, total = A / lengthscale, B / lengthscale, A.new_zeros(A.shape[1], B.shape[1])
    squares, norms = A.square().sum(2, keepdim=True) / 2, B.square().sum(2) / 2
    for (i, points), (j, landmarks) in itertools.product(enumerate(A), enumerate(B)):
        exponents = torch.addmm(norms[j], points, landmarks.T, beta=-1).sub_(squares[i]).clamp_(max=0)
        total.add_(exponents.exp_(), alpha=float(v[i] * w[j]))
    return total.double().numpy()


def _sampled(
    X: Any, y: Any, task: Task | None, clusters: Any, encoder: Encoder | None, most: int, random_state: int
) -> _Points:
    """At most so many of the points, checked."""
    X, y = check_X_y(X, y, allow_nd=True, multi_output=True, dtype=[np.float32, np.float64])
    task = task or guess_task(y)
    clusters = X.reshape(len(X), -1) if clusters is None else np.asarray(clusters)
    if len(X) > most:
        rows = np.sort(generator(random_state).choice(len(X), most, replace=False))
        X, y, clusters = X[rows], y[rows], clusters[rows]
    found, numbers = np.unique(clusters, axis=0, return_inverse=True)
    if len(found) < _FEWEST:
        raise InputError(f"X: expected at least {_FEWEST} different points or clusters, found {len(found)}")
    targets, of_classes = encoded_targets(y, task)
    return _Points(X, targets, of_classes, numbers.reshape(-1), encoder or NoEncoder(), random_state)


def _refine(trials: list[Trial], points: _Points) -> None:
    """Add trials of other widths of the best orbit, one at a time, while the error falls."""
    best = min(trials, key=lambda trial: trial.error)
    if best.is_identity:
        return
    for only in range(_n_widths(best.orbit)):
        changed = [_scaled(best.orbit, points.X.shape[1:], factor, only) for factor in _STEPS]
        trials += [points.trial(orbit, best.multiple) for orbit in changed if orbit is not None]
        best = min(trials, key=lambda trial: trial.error)


def _multiply(trials: list[Trial], points: _Points) -> None:
    """Add products of the best groups, greedily, as long as the error falls by more than chance."""
    ranked = sorted(trials, key=lambda trial: trial.error, reverse=True)
    of_groups = {type(trial.orbit.group): trial for trial in ranked if points.falls(trial, trials[0])}
    factors = sorted(of_groups.values(), key=lambda trial: trial.error)[:_MOST_FACTORS]
    chosen, best = factors[:1], factors[0] if factors else trials[0]
    for other in factors[1:]:
        product = points.trial(_product([trial.orbit for trial in [*chosen, other]]), best.multiple)
        if points.falls(product, best):
            trials.append(product)
            chosen, best = [*chosen, other], product


def _product(orbits: list[Orbit]) -> Orbit:
    given = any(one.distribution is not None for one in orbits)
    groups, laws, _ = zip(*(one.resolved() for one in orbits), strict=True)
    return Orbit(ProductGroup([*groups]), ProductDistribution([*laws]) if given else None)


def _holm(p: list[float]) -> np.ndarray:
    """Probabilities corrected for their number (Holm 1979).

    >>> _holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p)
    corrected = np.maximum.accumulate(np.asarray(p)[order] * np.arange(len(p), 0, -1))
    found = np.empty(len(p))
    found[order] = np.minimum(corrected, 1.0)
    return found


def _section(component: Component) -> dict[str, Any]:
    """The name of a component, and its parameters that differ from their defaults, as a configuration has them."""
    values = {
        key: (_plain(getattr(component, key)), known.default) for key, known in parameters(type(component)).items()
    }
    return {"name": component.name} | {key: value for key, (value, default) in values.items() if value != default}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.3g}")
    return _section(value) if isinstance(value, Component) else value


def _brief(section: dict[str, Any]) -> str:
    """A section in a few words; of a product its factors.

    >>> _brief({"name": "product", "factors": [{"name": "rotation"}, {"name": "cyclic", "axis": 0}]})
    'rotation × cyclic axis=0'
    """
    return " × ".join(map(_brief, section["factors"])) if section.get("factors") else short(section)

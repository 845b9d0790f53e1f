"""The search for the orbit with the lowest error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from sklearn.base import clone

from orbit.core.grid import grid_axes
from orbit.core.progress import Progress
from orbit.data.base import Task
from orbit.discovery.candidates import candidates, invariant_encoders, n_widths, product_of, scaled, with_few_elements
from orbit.discovery.points import MULTIPLES, LabelledPoints, sampled
from orbit.discovery.result import Discovery, Trial, simplest
from orbit.discovery.sections import section
from orbit.encoders import BySize, Encoder, PrincipalComponents
from orbit.groups import Group
from orbit.orbits import Orbit

_MOST_FACTORS = 3

# The width of the best q is refined by these factors.
_STEPS = (0.7, 1.4)

# Where moved points are encoded, all elements of an orbit are taken if its error with a few is below this multiple of
# the lowest. In ten sets of pictures (seed 0) the error with 32 elements was at most 14 % lower than with 8; with
# seed 7, in these and five sets of series, the choices were the same as with all elements.
_HOPEFUL = 1.2


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
    orbit; their number, its regularisation and lengthscale are chosen for each orbit, and for none, by the same error.
    An orbit helps if its mean square error is lower than that without, by more than 5 %, and its absolute errors are by
    a paired t test, after Holm's correction for all orbits tried. Encoders that are invariant to a group of which no
    short orbit is an average are tried too, such as ``point_pairs`` for clouds. With an ``encoder``, orbits are tried
    with 8 elements, and only those near to the lowest error with up to 32.

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
        Maps a moved point to the vector that the kernel takes; None takes the point itself, or an invariant encoder.
        What :class:`~orbit.encoders.BySize` leaves open is compared too, before groups if it says nothing about places;
        for pictures and volumes, with nothing given, also principal components in its place.
    groups : iterable of Group or None
        None: all registered groups that act on points of the shape, with :meth:`Group.variants`, and invariant
        encoders. Points that are symmetric matrices are no images.
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
        For fewer than ten points, or three clusters.

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
    points = sampled(X, y, task, clusters, encoder, max_points, random_state)
    axes = points.encoder.axes
    first, *others = points.encoder.compared(points.X.shape[1:])
    is_found = first is not points.encoder
    is_open = _is_open(points.encoder, points.X.shape[1:])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about settings that nobody has chosen
        is_ranked = bool(others) and first.is_global(points.X.shape[1:])
        if is_ranked:
            first, *others = _ranked(points, [first, *others])
        points = replace(points, encoder=first)
        orbits = candidates(points.X, groups, refine, encoded=not points.encoder.is_identity, axes=axes)
        tried: list[tuple[Orbit, Encoder | None]] = [(orbit, None) for orbit in orbits]
        if groups is None and points.encoder.is_identity:
            others += invariant_encoders(points.X)
        tried += [(Orbit(), encoder) for encoder in others]
        trials = points.trials([(Orbit(), None)], MULTIPLES)
        with Progress(len(tried), "groups", progress) as shown:
            trials += _raced(points, tried, trials[0], shown.step)
        if is_open:
            trials += _of_single_values(points, trials)
        if not is_ranked:
            trials += points.trials(_still_open(trials, points), trials[0].multiple)
        if refine:
            _refine(trials, points)
            _multiply(trials, points)
    ranked = sorted(points.tested(trials), key=lambda trial: trial.error)
    return Discovery(ranked, points.X[:1], points.encoder, is_found)


def _raced(
    points: LabelledPoints, tried: list[tuple[Orbit, Encoder | None]], plain: Trial, done: Callable[[], object]
) -> list[Trial]:
    """Trials with few elements of each orbit, where moved points are encoded, and with all for those of low error.

    Encoding takes most of the time, and with an encoder the error changes little with the number of elements.
    """
    is_slow = not points.encoder.is_identity
    first = [with_few_elements(orbit, points.X.shape[1:]) if is_slow else None for orbit, _ in tried]
    few = [(short or orbit, encoder) for short, (orbit, encoder) in zip(first, tried, strict=True)]
    trials = points.trials(few, plain.multiple, done)
    bound = min([plain.error, *(_HOPEFUL * trial.error for trial in trials)])
    hopeful = [i for i, short in enumerate(first) if short and trials[i].error < bound]
    for i, trial in zip(hopeful, points.trials([tried[i] for i in hopeful], plain.multiple), strict=True):
        trials[i] = trial
    return trials


def _is_open(encoder: Encoder, shape: tuple[int, ...]) -> bool:
    """Whether an encoder of pictures or volumes decides all by itself; that of series compares samples, too."""
    is_whole = isinstance(encoder, BySize) and section(encoder).keys() <= {"name", "axes"}
    return is_whole and (encoder.axes or grid_axes(shape)) > 1


def _of_single_values(points: LabelledPoints, trials: list[Trial]) -> list[Trial]:
    """Trials of all values, by their principal components, with the best group of those tried with patches.

    Patches of points that are mostly noise say less. Zeros that come in from outside make edges in bright pictures,
    which change single values more than patches: filling with the mean of the point is tried, too.
    """
    if points.encoder.is_identity:
        return []
    best = min((trial for trial in trials if trial.encoder is None), key=lambda trial: trial.error)
    orbits, group = [best.orbit], best.orbit.group
    if group is not None and "fill" in group.get_params(deep=False):
        orbits.append(clone(best.orbit).set_params(group=clone(group).set_params(fill="mean")))
    return points.trials([(each, PrincipalComponents()) for each in orbits], best.multiple)


def _ranked(points: LabelledPoints, encoders: list[Encoder]) -> list[Encoder]:
    """Encoders and what the best of them leaves open, in the order of their errors without a group; the best is first.

    For encoders that say nothing about places: of others, the best without a group is seldom the best with one.
    """
    trials = points.trials([(Orbit(), encoder) for encoder in encoders], MULTIPLES)
    trials += points.trials(_still_open(trials, points), trials[0].multiple)
    ranked = sorted(points.tested(trials), key=lambda trial: trial.error)
    best = simplest(ranked)
    return [trial.encoder for trial in (best, *(other for other in ranked if other is not best)) if trial.encoder]


def _still_open(trials: list[Trial], points: LabelledPoints) -> list[tuple[Orbit, Encoder | None]]:
    """What the best encoder without a group that leaves anything open does leave, such as quantiles beside patches."""
    alone = points.tested([trial for trial in trials if trial.orbit.group is None])
    ranked = sorted(alone, key=lambda trial: trial.error)
    encoders = [trial.encoder or points.encoder for trial in (simplest(ranked), *ranked)]
    compared = [encoder.compared(points.X.shape[1:]) for encoder in encoders]
    _, *others = next((each for each in compared if len(each) > 1), [None])
    return [(Orbit(), encoder) for encoder in others]


def _refine(trials: list[Trial], points: LabelledPoints) -> None:
    """Add trials of other widths of the best orbit, one at a time, while the error falls."""
    best = min(trials, key=lambda trial: trial.error)
    if best.orbit.group is None:
        return
    for only in range(n_widths(best.orbit)):
        changed = [scaled(best.orbit, points.X.shape[1:], factor, only) for factor in _STEPS]
        trials += points.trials([(orbit, best.encoder) for orbit in changed if orbit is not None], best.multiple)
        best = min(trials, key=lambda trial: trial.error)


def _multiply(trials: list[Trial], points: LabelledPoints) -> None:
    """Add products of the best groups, greedily, as long as the error falls by more than chance."""
    averaged = [trial for trial in trials if trial.orbit.group is not None and trial.encoder is None]
    ranked = sorted(averaged, key=lambda trial: trial.error, reverse=True)
    of_groups = {type(trial.orbit.group): trial for trial in ranked if points.falls(trial, trials[0])}
    factors = sorted(of_groups.values(), key=lambda trial: trial.error)[:_MOST_FACTORS]
    chosen, best = factors[:1], factors[0] if factors else trials[0]
    for other in factors[1:]:
        orbit = product_of([trial.orbit for trial in [*chosen, other]])
        (product,) = points.trials([(orbit, None)], best.multiple)
        if points.falls(product, best):
            trials.append(product)
            chosen, best = [*chosen, other], product

"""The error of the average over an orbit against the number of its elements."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from sklearn.base import clone

from orbit.approx.base import FeatureMap
from orbit.core.errors import accepts
from orbit.core.random import RandomState, spawn
from orbit.orbits import Orbit, Rule

# Dimensions up to which a tensor rule of a few hundred nodes is a more accurate reference than qmc: in two, functions
# of interpolated pixels are not smooth enough for it.
_QUADRATURE_DIMS = 1


def orbit_errors(
    feature_map: FeatureMap,
    X: np.ndarray,
    sizes: Sequence[int] = (4, 8, 16, 32, 64),
    rules: Sequence[str] | None = None,
    reference: int | FeatureMap = 512,
    repeats: int = 5,
    random_state: RandomState = None,
) -> dict[str, np.ndarray]:
    """Mean square feature errors |psi_r(x) - psi(x)|^2 / |psi(x)|^2 for each rule and orbit size r.

    psi is the average over a fine rule. With an integer ``random_state`` of the feature map, frequencies and landmarks
    are the same for every r and rule, so the error is that of the orbit average alone (for random elements, the
    proposition on r of Raj et al. 2017 bounds it by 1/sqrt(r)).

    Parameters
    ----------
    feature_map : FeatureMap
        With an orbit, whose ``size`` and ``rule`` are not used. It is not changed.
    X : array, shape (n, *shape)
    sizes : sequence of int >= 1
    rules : sequence of str or None
        None is all rules that the group and its distribution have.
    reference : int >= 1 or FeatureMap
        Orbit size of the reference, see :func:`reference_map`, or such a map, fitted to ``X``.
    repeats : int >= 1
        Number of seeds; deterministic rules get a random phase where they have one.
    random_state : int, RandomState or None

    Returns
    -------
    dict
        Rule -> errors, shape (repeats, sizes).

    Raises
    ------
    InputError
        For a rule that the group or its distribution does not have.

    Examples
    --------
    >>> import orbit
    >>> X = np.random.default_rng(0).random((3, 8, 8))
    >>> phi = orbit.RandomFourier(orbit=orbit.Orbit(orbit.Rotation()), n_components=20, random_state=0)
    >>> errors = orbit_errors(phi, X, sizes=[2, 8], reference=64, repeats=2, random_state=0)
    >>> sorted(errors), errors["qmc"].shape
    (['monte_carlo', 'qmc', 'quadrature'], (2, 2))
    """
    orbit = feature_map.orbit or Orbit()
    names = orbit_rules(orbit) if rules is None else list(rules)
    for rule in names:
        _with(orbit, rule=rule).check()
    seeds = spawn(random_state, repeats + 1)  # no repeat of a rule is its own reference
    if feature_map.random_state is None:  # maps that are compared draw the same
        feature_map = _with(feature_map, random_state=seeds[-1])
    fine = reference if isinstance(reference, FeatureMap) else reference_map(feature_map, reference, seeds[-1]).fit(X)
    truth = fine.transform(X)

    def error(rule: str, size: int, seed: int) -> float:
        coarse = _with(orbit, rule=rule, size=size, random_phase=True, random_state=seed)
        difference = _with(feature_map, orbit=coarse).fit(X).transform(X) - truth
        return float(np.square(difference).sum() / np.square(truth).sum())

    return {rule: np.array([[error(rule, size, seed) for size in sizes] for seed in seeds[:-1]]) for rule in names}


def orbit_rules(orbit: Orbit) -> list[str]:
    """The rules that the group and the distribution of an orbit have.

    >>> orbit_rules(Orbit())
    ['monte_carlo', 'qmc', 'quadrature']
    """
    return [rule for rule in get_args(Rule) if _has(orbit, rule)]


def reference_map(feature_map: FeatureMap, size: int, random_state: RandomState = None) -> Any:
    """The unfitted map with a fine orbit: by quadrature in one dimension where it exists, else by qmc of 8 x size."""
    orbit = feature_map.orbit or Orbit()
    if _has(orbit, "quadrature") and orbit.resolved()[0].domain.dim <= _QUADRATURE_DIMS:
        fine = _with(orbit, size=size, rule="quadrature", random_phase=False)
    else:
        fine = _with(orbit, size=8 * size, rule="qmc", random_state=random_state)
    return _with(feature_map, orbit=fine)


def _has(orbit: Orbit, rule: str) -> bool:
    return accepts(_with(orbit, rule=rule).check)


def _with(estimator: Any, **params: Any) -> Any:
    return clone(estimator).set_params(**params)

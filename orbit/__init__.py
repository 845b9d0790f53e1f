"""orbit: learning with invariance by kernels.

>>> import numpy as np, orbit
>>> rng = np.random.default_rng(0)
>>> X = rng.random((20, 28, 28))
>>> q = orbit.build("distribution", "von_mises", concentration=0.2)
>>> orb = orbit.Orbit(orbit.build("group", "rotation"), q, size=32, rule="quadrature")
>>> k = orbit.build("kernel", "gaussian", lengthscale=6.0)
>>> phi = orbit.build("approx", "rf", kernel=k, orbit=orb, n_components=64, random_state=0)
>>> phi.fit_transform(X).shape
(20, 128)
"""

from orbit import (
    approx,
    augmentation,
    data,
    distributions,
    frequencies,
    gradients,
    groups,
    hyper,
    kernels,
    landmarks,
    learners,
    patches,
    representations,
    selection,
)
from orbit.engine import Engine
from orbit.errors import DataFileError, InputError, ParameterError, UnknownNameError
from orbit.orbits import Orbit
from orbit.registry import available, build, get, register
from orbit.version import __version__

__all__ = [
    "DataFileError",
    "Engine",
    "InputError",
    "Orbit",
    "ParameterError",
    "UnknownNameError",
    "__version__",
    "approx",
    "augmentation",
    "available",
    "build",
    "data",
    "distributions",
    "frequencies",
    "get",
    "gradients",
    "groups",
    "hyper",
    "kernels",
    "landmarks",
    "learners",
    "patches",
    "register",
    "representations",
    "selection",
]

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

from orbit import approx, data, distributions, encoders, engine, groups, kernels, learners, representations
from orbit.core.errors import DataFileError, InputError, ParameterError, UnknownNameError
from orbit.engine import Engine
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
    "available",
    "build",
    "data",
    "distributions",
    "encoders",
    "engine",
    "get",
    "groups",
    "kernels",
    "learners",
    "register",
    "representations",
]

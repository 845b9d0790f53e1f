"""orbit: learning with invariance by kernels.

>>> import numpy as np, orbit
>>> rng = np.random.default_rng(0)
>>> X = rng.random((20, 28, 28))
>>> turns = orbit.Orbit(orbit.Rotation(), orbit.VonMises(concentration=0.2), size=32, rule="quadrature")
>>> phi = orbit.RandomFourier(orbit.Gaussian(lengthscale=6.0), turns, n_components=64, random_state=0)
>>> phi.fit_transform(X).shape
(20, 128)

By name, as on the command line:

>>> "nystrom" in orbit.available("approx")
True
>>> orbit.build("kernel", "gaussian", lengthscale=6.0)
Gaussian(lengthscale=6.0)
"""

import importlib
from typing import TYPE_CHECKING, Any

from orbit.core.environment import let_waiting_threads_sleep
from orbit.core.errors import (
    DataFileError as DataFileError,
    InputError as InputError,
    ParameterError as ParameterError,
    UnknownNameError as UnknownNameError,
)
from orbit.registry import PACKAGES, available as available, build as build, get as get, register as register
from orbit.version import __version__ as __version__

if TYPE_CHECKING:  # for editors and type checkers; __getattr__ imports what is used
    from orbit import (
        approx as approx,
        data as data,
        distributions as distributions,
        encoders as encoders,
        engine as engine,
        groups as groups,
        kernels as kernels,
        learners as learners,
        plots as plots,
        representations as representations,
    )
    from orbit.approx import *  # noqa: F403
    from orbit.core.models import load as load, save as save
    from orbit.data import *  # noqa: F403
    from orbit.data.read import *  # noqa: F403
    from orbit.discovery import *  # noqa: F403
    from orbit.distributions import *  # noqa: F403
    from orbit.encoders import *  # noqa: F403
    from orbit.engine import Engine as Engine
    from orbit.groups import *  # noqa: F403
    from orbit.kernels import *  # noqa: F403
    from orbit.learners import *  # noqa: F403
    from orbit.learners.saved import predict as predict, read_points as read_points
    from orbit.orbits import Orbit as Orbit
    from orbit.representations import *  # noqa: F403

let_waiting_threads_sleep()

# Where the rest of this package's names are. A class of two packages, a representation and an encoder, has no place.
_MODULES = {"Discovery": "discovery", "discover": "discovery"}
_MODULES |= {"Engine": "engine", "Orbit": "orbits", "load": "core.models", "save": "core.models"}
_MODULES |= {"predict": "learners.saved", "read_points": "learners.saved"}
_FILES = "arrays", "clouds", "fields", "images", "molecules", "series", "sounds", "table", "volumes"
_MODULES |= dict.fromkeys(["as_dataset", *(f"read_{kind}" for kind in _FILES)], "data.read")
_PACKAGES = (*PACKAGES, "engine", "plots")
_TWICE = {"Gradients"}


def __getattr__(name: str) -> Any:
    """``orbit.Nystrom`` is ``orbit.approx.Nystrom``; packages and classes are imported when they are first used."""
    if name in _PACKAGES:
        return importlib.import_module(f"orbit.{name}")
    if name in _MODULES:
        found = getattr(importlib.import_module(f"orbit.{_MODULES[name]}"), name)
    else:
        found = next((classes[name] for classes in map(_classes, PACKAGES) if name in classes), None)
    if found is None:
        raise AttributeError(f"module 'orbit' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *_MODULES, *(name for package in PACKAGES for name in _classes(package))})


def _classes(package: str) -> dict[str, type]:
    """The public classes of a package by name."""
    public = vars(importlib.import_module(f"orbit.{package}"))
    return {name: found for name, found in public.items() if isinstance(found, type) and name not in _TWICE}

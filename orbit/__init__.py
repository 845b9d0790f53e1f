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

from orbit.core.errors import DataFileError, InputError, ParameterError, UnknownNameError
from orbit.registry import PACKAGES, available, build, get, register
from orbit.version import __version__

if TYPE_CHECKING:  # for editors and type checkers; __getattr__ imports what is used
    from orbit import approx, data, distributions, encoders, engine, groups, kernels, learners, representations
    from orbit.approx import *  # noqa: F403
    from orbit.approx.hyper import GaussianLayer, LinearLayer  # noqa: F401
    from orbit.core.models import load, save
    from orbit.data import *  # noqa: F403
    from orbit.distributions import *  # noqa: F403
    from orbit.encoders import Onnx, Patches  # noqa: F401
    from orbit.engine import Engine
    from orbit.groups import *  # noqa: F403
    from orbit.kernels import *  # noqa: F403
    from orbit.learners import *  # noqa: F403
    from orbit.orbits import Orbit
    from orbit.representations import *  # noqa: F403

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
    "load",
    "register",
    "representations",
    "save",
]

# Module -> its classes that are attributes of this package too, imported when they are first used. `Gradients` is a
# representation and an encoder, and has no place here.
_CLASSES = {
    "approx": (
        *("CumulativeDistribution", "Exact", "Nystrom", "OperatorExact", "OperatorRandomFourier", "RandomFourier"),
        *("RandomSkeleton", "RawPoints"),
    ),
    "approx.hyper": ("GaussianLayer", "LinearLayer"),
    "data": (
        *("Arrays", "CIFAR10", "Dataset", "Digits", "Images", "LowRankMultitask", "MNIST", "MNISTLocal", "QM7"),
        *("RotatedDigits", "RotatedMNIST", "Shards", "Sounds", "SpokenDigits", "Table", "VectorField", "XPerm"),
    ),
    "distributions": (
        *("Delta", "GaussianDistribution", "Haar", "LogNormal", "NoisySort", "ProductDistribution", "Uniform"),
        "VonMises",
    ),
    "encoders": ("MelSpectrogram", "NoEncoder", "Onnx", "Patches", "PrincipalComponents", "UpperTriangle"),
    "groups": (
        *("Affine", "Amplitude", "Cyclic", "Dihedral", "Identity", "Octahedral", "Offset", "Orthogonal", "Permutation"),
        *("PitchTempo", "ProductGroup", "Reflection", "Rotation", "Rotation3D", "Scaling", "Shear", "SmallMoves"),
        *("TimeWarp", "Translation"),
    ),
    "kernels": (
        *("ArcCos", "CDF", "CurlFree", "Decomposable", "DivergenceFree", "Exponential", "Gaussian", "Helmholtz"),
        *("Laplacian", "Matern", "Polynomial", "RationalQuadratic", "SkeletonKernel"),
    ),
    "learners": (
        *("AdaGradClassifier", "AdaGradRegressor", "CGRegressor", "GaussianProcess", "KernelRidgeRegressor"),
        *("KernelSVMClassifier", "KernelSVMRegressor", "LogisticClassifier", "NeighborsClassifier"),
        *("NeighborsRegressor", "NetworkClassifier", "RidgeClassifier", "RidgeRegressor", "SVMClassifier"),
        *("SteinClassifier", "SteinRegressor"),
    ),
    "representations": (
        *("Bag", "BagOfBonds", "Coulomb", "Crop", "ImageAugmentation", "ManyBody", "NoAugmentation", "PatchPCA"),
        *("Centre", "Polar", "Raw", "Standardize", "UnitNorm"),
    ),
}
_MODULES = {name: module for module, names in _CLASSES.items() for name in names}
_MODULES |= {"Engine": "engine", "Orbit": "orbits", "load": "core.models", "save": "core.models"}

_PACKAGES = (*PACKAGES, "engine", "plots")


def __getattr__(name: str) -> Any:
    """``orbit.Nystrom`` is ``orbit.approx.Nystrom``; packages and classes are imported when they are first used."""
    if name in _PACKAGES:
        return importlib.import_module(f"orbit.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'orbit' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"orbit.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PACKAGES, *_MODULES})

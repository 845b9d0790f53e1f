"""Contracts: tests that every component of a kind must pass. Subclass one in a test file and name the component.

A package that registers its own group, kernel, distribution, data set, representation, approximation or learner
tests it with pytest (``pip install orbit-kernels[test]``) in two lines:

>>> import orbit
>>> from orbit.testing import GroupContract
>>> class TestMirror(GroupContract):
...     component = orbit.groups.Reflection

pytest collects ``TestMirror`` with every test of the contract. A single test can be called by hand:

>>> TestMirror().test_inverses_cancel_on_both_sides()

Class attributes define the component's parameters (``params``), the shape of its inputs (``shape``) and which
properties hold (``composes_exactly``, ``has_density``, ...); each contract documents its attributes. A subclass
overrides tests that do not apply to its component. Contracts of kernels and approximations compare with formulas, the
methods ``evaluate`` and ``expected_gram``, which a subclass defines. ``oracles`` has reference formulas, ``samples``
small inputs.
"""

import pkgutil

import pytest

# Before the modules are imported, so that pytest reports the values of a failing assert.
pytest.register_assert_rewrite(*(f"orbit.testing.{module.name}" for module in pkgutil.iter_modules(__path__)))

from orbit.testing import oracles as oracles, samples as samples
from orbit.testing.approx import (
    FeatureMapContract as FeatureMapContract,
    FrequenciesContract as FrequenciesContract,
    HyperContract as HyperContract,
    KernelMapContract as KernelMapContract,
    LandmarksContract as LandmarksContract,
)
from orbit.testing.component import (
    FLOATS as FLOATS,
    ComponentContract as ComponentContract,
    TransformerContract as TransformerContract,
    no_warnings as no_warnings,
)
from orbit.testing.datasets import DatasetContract as DatasetContract
from orbit.testing.distributions import (
    AnyDomainContract as AnyDomainContract,
    DistributionContract as DistributionContract,
)
from orbit.testing.encoders import EncoderContract as EncoderContract
from orbit.testing.groups import FiniteGroupContract as FiniteGroupContract, GroupContract as GroupContract
from orbit.testing.kernels import (
    DotProductKernelContract as DotProductKernelContract,
    KernelContract as KernelContract,
    OperatorKernelContract as OperatorKernelContract,
)
from orbit.testing.learners import (
    ClassifierContract as ClassifierContract,
    LearnerContract as LearnerContract,
    PathContract as PathContract,
    RegressorContract as RegressorContract,
)
from orbit.testing.representations import (
    AugmentationContract as AugmentationContract,
    RepresentationContract as RepresentationContract,
)

"""The base class of the contracts of all kinds."""

from __future__ import annotations

import contextlib
import pickle
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import clone

import orbit
from orbit.core.errors import InputError
from orbit.core.params import parameters

FLOATS = (np.float32, np.float64)


@contextlib.contextmanager
def no_warnings():
    """Turn every warning into an error, also torch's warning about read-only memory, normally issued only once."""
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        torch.set_warn_always(before)


class ComponentContract:
    """A value object that is registered by name, can be cloned and pickled, and only stores its parameters.

    Contracts do not start with ``Test``, so pytest collects them only through subclasses that do.

    Attributes
    ----------
    component : the class under test
    params : its parameters, which override the defaults of the constructor

    Examples
    --------
    >>> import orbit
    >>> class TestMatern(ComponentContract):
    ...     kind = "kernel"
    ...     component = orbit.kernels.Matern
    ...     params = {"nu": 2.5}
    >>> TestMatern().create(lengthscale=2.0)
    Matern(lengthscale=2.0, nu=2.5)
    >>> TestMatern().test_clone_and_pickle_keep_the_parameters()
    """

    kind: ClassVar[str]
    component: ClassVar[type[Any]]
    params: ClassVar[dict[str, Any]] = {}

    def create(self, **params: Any) -> Any:
        """A new component; ``params`` override those of the class attribute."""
        return self.component(**{**self.params, **params})

    def lacks(self, method: str, what: str) -> NotImplementedError:
        """The error of a class of tests without a method that its contract needs."""
        return NotImplementedError(f"{type(self).__name__}.{method}: expected a method that gives {what}")

    @pytest.fixture
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(20170)

    @pytest.fixture(autouse=True)
    def _seed_global_generators(self) -> None:
        """Estimators whose ``random_state`` is None draw from NumPy's global generator, as scikit-learn's do."""
        np.random.seed(20170)
        torch.manual_seed(20170)

    def test_is_registered_under_its_name(self):
        component = self.create()
        assert component.kind == self.kind
        assert orbit.get(self.kind, component.name) is type(component)

    def test_constructor_only_stores_its_parameters(self):
        defaults = type(self.create())()
        for name, parameter in parameters(type(defaults)).items():
            assert getattr(defaults, name) is parameter.default

    def test_every_parameter_is_annotated(self):
        for name, parameter in parameters(type(self.create())).items():
            assert parameter.annotation is not Any, name

    def test_clone_and_pickle_keep_the_parameters(self):
        component = self.create()
        for copied in (clone(component), pickle.loads(pickle.dumps(component))):
            assert copied is not component
            assert repr(copied) == repr(component)

    def test_build_refuses_an_unknown_parameter(self):
        name = self.create().name
        with pytest.raises(InputError, match=f"{self.kind}={name} has no parameter 'nonsense'"):
            orbit.build(self.kind, name, nonsense=1)

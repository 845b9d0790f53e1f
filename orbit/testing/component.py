"""The base class of the contracts of all kinds."""

import contextlib
import pickle
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

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
        torch.default_generator.manual_seed(20170)  # torch.manual_seed formats three stacks for devices

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


class TransformerContract(ComponentContract):
    """A scikit-learn transformer that keeps precision and maps each point on its own once fitted.

    A subclass supplies the fixture ``X`` of points.

    Attributes
    ----------
    rounding : largest absolute difference of points that are mapped one by one
    """

    rounding: ClassVar[float] = 1e-12

    def fitted(self, X: np.ndarray) -> Any:
        return self.create().fit(X)

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_precision_is_kept(self, X, dtype):
        assert self.create().fit_transform(X.astype(dtype)).dtype == dtype

    def test_points_are_mapped_one_by_one(self, X):
        fitted = self.fitted(X)
        whole = fitted.transform(X)
        assert len(whole) == len(X)
        np.testing.assert_allclose(np.concatenate([fitted.transform(x[None]) for x in X]), whole, atol=self.rounding)
        np.testing.assert_allclose(fitted.transform(X[::-1])[::-1], whole, atol=self.rounding)

    def test_input_is_not_modified(self, X):
        X.flags.writeable = False
        before = X.copy()
        with no_warnings():
            self.fitted(X).transform(X)
        np.testing.assert_array_equal(X, before)

    def test_transform_before_fit_is_refused(self, X):
        with pytest.raises(NotFittedError):
            self.create().transform(X)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_values_that_are_not_finite_are_refused(self, X, bad):
        fitted = self.create().fit(X)
        X.flat[4] = bad
        for call in (self.create().fit, fitted.transform):
            with pytest.raises(ValueError, match=r"NaN|infinity"):
                call(X)

    def test_fitted_component_pickles(self, X):
        fitted = self.fitted(X)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).transform(X), fitted.transform(X))

"""The base class of all components: a value object with typed parameters."""

from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from orbit.core.errors import InputError, ParameterError
from orbit.core.fingerprint import Fingerprint
from orbit.core.params import Parameter, check_params, checked_values, named_parameters, parameters

# Characters of a parameter's value in a repr.
_LONGEST_VALUE = 60


class Estimator(BaseEstimator):
    """scikit-learn's base class of estimators, with a kind, a name and a repr of one line.

    ``section`` is where a configuration has its parameters, as errors name them: ``learner`` for both kinds of
    learners, ``group.factors[1]`` for a part of a component.
    """

    kind: ClassVar[str] = "component"
    name: ClassVar[str]
    section: str = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        registered = any("kind" in vars(base) for base in cls.__mro__ if base is not Estimator)
        if not registered and "name" not in vars(cls):  # classes of users need not be registered
            cls.name = cls.__name__

    @classmethod
    def from_config(cls, **values: Any) -> Self:
        """The component from the values of a configuration; a subclass builds parts from plain values and names here.

        Named parameters of the subclass's method are keys of the configuration, in place of the constructor's.
        """
        return cls(**values)

    @classmethod
    def configured(cls, **values: Any) -> Self:
        """:meth:`from_config` for values of its own parameters that their annotations allow.

        Raises
        ------
        ParameterError
            For the first other value.
        """
        own = named_parameters(cls.from_config)
        given = {key: values[key] for key in own if key in values}
        return cls.from_config(**values | checked_values(given, own, cls.section))

    @classmethod
    def config_parameters(cls) -> dict[str, Parameter]:
        """The parameters of :meth:`from_config` by name: its own, and those of the constructor that it passes on."""
        return {**parameters(cls), **named_parameters(cls.from_config)}

    def wrong(self, name: str, expected: str) -> ParameterError:
        """The error of a parameter of this component whose value is not as expected."""
        return ParameterError(name, expected, getattr(self, name), self.section)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also those of parts, by scikit-learn's nested names such as ``kernel__lengthscale``.

        Raises
        ------
        InputError
            For a parameter of a part that is None: the default part is made by ``fit``.
        """
        for name in params:
            part, _, rest = name.partition("__")
            if rest and part not in params and getattr(self, part, self) is None:
                raise InputError(f"{name}: {type(self).__name__} has {part}=None; give it a {part}, which has {rest}")
        return super().set_params(**params)

    def __sklearn_clone__(self) -> Self:
        made: Self = super().__sklearn_clone__()
        if made.section != self.section:  # that of a part
            made.section = self.section
        return made

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Class and parameters that differ from their defaults; arrays by dtype and shape, long values cut off."""
        values = {name: (getattr(self, name), known.default) for name, known in parameters(type(self)).items()}
        changed = {name: value for name, (value, default) in values.items() if repr(value) != repr(default)}
        return f"{type(self).__name__}({', '.join(f'{name}={brief(value)}' for name, value in changed.items())})"


def brief(value: object) -> str:
    """A value in a few words: an array by its dtype and shape, other long values by their beginning.

    >>> brief(np.zeros((3, 2))), brief("polar"), brief(list(range(40)))
    ('float64 (3, 2)', "'polar'", '[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16...')
    """
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    text = " ".join(repr(value).split())
    whole = isinstance(value, BaseEstimator) or len(text) <= _LONGEST_VALUE
    return text if whole else f"{text[: _LONGEST_VALUE - 3]}..."


def validated_points(estimator: Any, X: Any, reset: bool) -> np.ndarray:
    """Points (n, *shape) in float32 or float64, validated as by scikit-learn.

    Raises
    ------
    ValueError
        For texts. Unless ``reset``, which is for ``fit``, if they do not have the shape of the points of ``fit``,
        ``shape_in_``.
    """
    if not reset and len(estimator.shape_in_) > 1 and isinstance(X, np.ndarray):
        _check_shape(estimator, X)  # scikit-learn would call the rows of an image features
    try:
        X = validate_data(estimator, X, reset=reset, dtype=[np.float64, np.float32], allow_nd=True)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        advice = "leave texts out, or make columns of 0 and 1 of them, as OneHotEncoder and orbit.read_table do"
        raise InputError(f"{type(estimator).__name__}: expected numbers as points ({error}); {advice}") from error
    if not reset:
        _check_shape(estimator, X)
    return X


def _check_shape(estimator: Any, X: np.ndarray) -> None:
    found = X.shape[1:]
    if found != estimator.shape_in_:
        name = type(estimator).__name__
        raise ValueError(f"{name} was fitted on points of shape {estimator.shape_in_}, found {found}")


class Component(Estimator):
    """A value object whose constructor only stores its parameters.

    scikit-learn's ``BaseEstimator`` provides ``get_params``, ``set_params`` and ``clone``, so that ``GridSearchCV``
    can search over ``kernel__lengthscale``.
    """

    def check(self) -> None:
        """Raise ``ParameterError`` if a parameter, or one of a part, has the wrong type or range."""
        check_with_parts(self)

    def metrics(self) -> dict[str, float]:
        """Fitted values for the record of a run, by flat names such as ``kernel/lengthscale``."""
        return {}

    def check_finite(self, values: np.ndarray, what: str) -> None:
        """Raise ``InputError`` for NaN and infinite values, shape (n, m), that were computed with this component.

        The message lists the component's numeric parameters; ``what`` names the values.
        """
        from orbit.core.linalg import sum_is_finite  # imports torch, which a component may not need

        if sum_is_finite(values):  # one pass; entries are only searched on failure
            return
        wrong = np.flatnonzero(~np.isfinite(values).all(1))
        if not len(wrong):
            return
        numbers = {key: value for key, value in self.get_params(False).items() if type(value) in (int, float)}
        named = ", ".join(f"{self.section}.{key}={value:g}" for key, value in numbers.items())
        raise InputError(
            f"{what}: NaN or infinite for {len(wrong)} of {len(values)} points, the first is point {wrong[0]}; "
            f"change {self.label()}{f', which has {named}' if named else ''}, or scale the points with a "
            "representation such as UnitNorm or Standardize"
        )

    def input_files(self) -> list[Path]:
        """The existing files and folders that the component reads; their content is part of the digest of a result."""
        return []

    def input_parts(self) -> list[Fingerprint]:
        """The fingerprints of files that are too large to be read for a digest."""
        return []

    def label(self) -> str:
        """Name of this component in errors and figures, e.g. ``group=rotation``."""
        return f"{self.kind}={self.name}"


def check_with_parts(component: object) -> None:
    """Check the parameters of a component, and of components among its parameters.

    Raises
    ------
    ParameterError
        For the first invalid parameter.
    """
    check_params(component)
    for name in parameters(type(component)):
        part = getattr(component, name)
        if isinstance(part, Component):
            part.check()

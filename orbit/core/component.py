"""The base class of all components: a value object with typed parameters."""

from __future__ import annotations

from typing import ClassVar

from sklearn.base import BaseEstimator

from orbit.core.params import check_params, parameters


class Component(BaseEstimator):
    """A value object whose constructor only stores its parameters.

    scikit-learn's ``BaseEstimator`` provides ``get_params``, ``set_params``, ``clone``
    and a readable repr, so that ``GridSearchCV`` can search over ``kernel__lengthscale``.
    """

    kind: ClassVar[str]
    name: ClassVar[str]

    def check(self) -> None:
        """Raise ``ParameterError`` if a parameter, or one of a part, has the wrong type or range."""
        check_with_parts(self)

    def metrics(self) -> dict[str, float]:
        """Fitted values for the record of a run, by flat names such as ``kernel/lengthscale``."""
        return {}

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

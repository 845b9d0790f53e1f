"""Components as sections of a configuration, and these in a few words."""

from __future__ import annotations

from typing import Any

import numpy as np

from orbit.core.component import Component
from orbit.core.params import parameters
from orbit.distributions import ProductDistribution
from orbit.distributions.base import Distribution
from orbit.plots.axes import short


def section(component: Component) -> dict[str, Any]:
    """The name of a component, and its parameters that differ from their defaults, as a configuration has them."""
    values = {
        key: (_plain(getattr(component, key)), known.default) for key, known in parameters(type(component)).items()
    }
    return {"name": component.name} | {key: value for key, (value, default) in values.items() if value != default}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.3g}")
    return section(value) if isinstance(value, Component) else value


def brief(section: dict[str, Any]) -> str:
    """A section in a few words; of a product its factors.

    >>> brief({"name": "product", "factors": [{"name": "rotation"}, {"name": "cyclic", "axis": 0}]})
    'rotation × cyclic axis=0'
    """
    return " × ".join(map(brief, section["factors"])) if section.get("factors") else short(section)


def brief_q(q: Distribution, default: Distribution) -> str:
    """A distribution in a few words; of a product its factors, ``default`` for those that are the group's own.

    >>> from orbit.distributions import LogNormal, Uniform
    >>> product = [ProductDistribution([Uniform(), LogNormal(sigma=sigma)]) for sigma in (0.1, 0.4)]
    >>> brief_q(product[1], product[0])
    'default × lognormal sigma=0.4'
    """
    if isinstance(q, ProductDistribution) and isinstance(default, ProductDistribution):
        factors = [brief_q(*pair) for pair in zip(q.parts(), default.parts(), strict=True)]
        if set(factors) == {"default"}:
            return "default"
        return " × ".join(f"({each})" if " × " in each else each for each in factors)
    return "default" if section(q) == section(default) else brief(section(q))

"""Defaults that depend on the data set, the representation, the group, the features or the learner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orbit
from orbit.core.params import parameters
from runners.config.schema import config_parameters, kernel_is_a_choice, taken_from_kernel
from runners.config.settings import check_name
from runners.config.signatures import signature


@dataclass(frozen=True)
class Facts:
    """What defaults depend on that only the data tell.

    Attributes
    ----------
    exact_is_cheap : whether the exact kernel of all training points takes seconds
    needs_float64 : whether the targets are numbers, which may be known to more digits than float32 has
    """

    exact_is_cheap: bool = True
    needs_float64: bool = False


def fill_defaults(config: dict[str, Any], facts: Facts) -> list[str]:
    """Replace ``auto`` and null, in place, by the values that follow from other choices; return the keys filled in."""
    return [
        *_approx(config, facts),
        *_encoder(config),
        *_representation(config),
        *_precision(config, facts),
        *_group(config),
        *_distribution_and_orbit(config),
        *_kernel(config),
        *_learner(config),
    ]


def complete(kind: str, section: dict[str, Any]) -> dict[str, Any]:
    """A section with all other parameters of its component, at their defaults."""
    if section["name"] == "auto":
        return section
    check_name(kind, section)
    return {key: p.default for key, p in config_parameters(kind, section["name"]).items()} | section


def _class(config: dict[str, Any], kind: str) -> Any:
    return orbit.get(kind, config[kind]["name"])


def _approx(config: dict[str, Any], facts: Facts) -> list[str]:
    """``exact`` where it is cheap, for a learner of prior variances, which features of few columns underestimate.

    ``nystrom`` otherwise, and if a key of it is given.
    """
    if config["approx"]["name"] != "auto":
        return []
    given = {key: value for key, value in config["approx"].items() if value is not None} | {"name": "nystrom"}
    plain = len(given) == 1 and config["hyper"]["name"] == "linear" and not config["engine"]["stream"]
    if plain and facts.exact_is_cheap and signature("learner", config["learner"]["name"]).needs_norms:
        given = {"name": "exact"}
    config["approx"] = complete("approx", given)
    return ["approx"]


def _encoder(config: dict[str, Any]) -> list[str]:
    """That of the data set, if the features take one of points as the data set has them."""
    if config["encoder"]["name"] != "auto":
        return []
    loader = _class(config, "dataset")
    usual = loader.representation_for(config["dataset"])["name"]
    as_loaded = config["representation"]["name"] in ("auto", "raw", usual)
    takes_one = as_loaded and "encoder" in parameters(_class(config, "approx"))
    chosen = loader.default_encoder(config["dataset"]) if takes_one else {"name": "none"}
    config["encoder"] = complete("encoder", chosen)
    return ["encoder"]


def _representation(config: dict[str, Any]) -> list[str]:
    if config["representation"]["name"] != "auto":
        return []
    chosen = _class(config, "dataset").representation_for(config["dataset"])
    config["representation"] = complete("representation", chosen)
    return ["representation"]


def _precision(config: dict[str, Any], facts: Facts) -> list[str]:
    """float32, which is twice as fast, unless the representation or the targets ask for float64.

    In Python, features keep the precision of their data, as those of scikit-learn do.
    """
    if config["engine"]["dtype"] != "auto":
        return []
    config["engine"]["dtype"] = "float64" if facts.needs_float64 else _class(config, "representation").precision
    return ["engine.dtype"]


def _group(config: dict[str, Any]) -> list[str]:
    """The group and its distribution, and parameters that follow from the representation, such as polar samples."""
    chosen = []
    if config["group"]["name"] == "auto":
        moves = _class(config, "dataset").default_moves(config["dataset"])
        chosen = [kind for kind in moves if config[kind].get("name") == "auto"]
        config |= {kind: complete(kind, moves[kind]) for kind in chosen}
        chosen += _fill(config, "orbit", moves.get("orbit", {}))
    return chosen + _fill(config, "group", _class(config, "representation").group_params)


def _fill(config: dict[str, Any], kind: str, values: Mapping[str, Any]) -> list[str]:
    """Set what the section has and leaves open."""
    section = config[kind]
    filled = [key for key in values if key in section and section[key] is None]
    section |= {key: values[key] for key in filled}
    return [f"{kind}.{key}" for key in filled]


def _distribution_and_orbit(config: dict[str, Any]) -> list[str]:
    group, filled = _class(config, "group"), []
    if config["distribution"]["name"] == "auto":
        config["distribution"] = complete("distribution", group.default_distribution)
        filled.append("distribution")
    if config["orbit"]["size"] is None:
        config["orbit"]["size"] = group.default_size
        filled.append("orbit.size")
    return filled


def _kernel(config: dict[str, Any]) -> list[str]:
    if kernel_is_a_choice(*(config[kind]["name"] for kind in ("approx", "kernel", "learner"))):
        return []
    orbit.build("kernel", **config["kernel"]).check()  # has no effect, but a wrong value is an error
    features = orbit.build("approx", **config["approx"])
    features.check()
    kernel = features.implied_kernel()
    config["kernel"] = {"name": kernel.name, **kernel.get_params(deep=False)}
    return ["kernel"]


def _takes_gram(config: dict[str, Any]) -> bool:
    """Whether the learner solves with the kernel matrix: without a second layer or augmented points.

    In a stream only if no learner of the name needs prior variances, with which a kernel matrix is held.
    """
    learners: list[Any] = orbit.registry.classes("learner", config["learner"]["name"])
    if config["engine"]["stream"] and any(one.needs_norms for one in learners):
        return False
    plain = config["hyper"]["name"] == "linear" and config["augmentation"]["name"] == "none"
    plain = plain and config["runner"]["name"] in ("fit", "table", "compare")
    return plain and any(one.takes_gram for one in learners)


def _learner(config: dict[str, Any]) -> list[str]:
    """Parameters of the features that depend on the learner, and of the learner that come from the kernel."""
    name, filled = config["learner"]["name"], []
    if config["approx"].get("residual", False) is None:
        learners: list[Any] = orbit.registry.classes("learner", name)
        config["approx"]["residual"] = any(learner.needs_norms for learner in learners)
        filled.append("approx.residual")
    if config["approx"].get("precomputed", False) is None:
        config["approx"]["precomputed"] = _takes_gram(config)
        filled.append("approx.precomputed")
    if config["kernel"].get("lengthscale") == "auto":
        of_learner: Any = orbit.registry.classes("learner", name)[0]
        config["kernel"]["lengthscale"] = of_learner.auto_lengthscale
        filled.append("kernel.lengthscale")
    for key in taken_from_kernel(config["kernel"]["name"], name):
        if config["learner"][key] is None and config["kernel"][key] is not None:
            config["learner"][key] = config["kernel"][key]
            filled.append(f"learner.{key}")
    return filled

"""The parameters of a component that a configuration file can set."""

import types
import typing
from dataclasses import replace
from typing import Annotated, Any, Literal, Union

from orbit.core.params import Parameter, alternatives, build_parameters


def config_fields(cls: type) -> dict[str, Parameter]:
    """The parameters of ``cls`` that a configuration file can set.

    Parameters annotated with component classes (a kernel, an orbit) are set by the
    runner, and the seed comes from the run, so neither is a configuration key. Lists
    whose items may be sections or components have only sections there.
    """
    return {
        name: replace(parameter, annotation=_without_components(parameter.annotation))
        for name, parameter in build_parameters(cls).items()
        if name != "random_state" and _is_plain(parameter.annotation)
    }


def _without_components(annotation: Any) -> Any:
    """An annotation whose lists have only the items that a configuration file can hold."""
    given = alternatives(annotation)
    plain = tuple(_plain_items(option) if typing.get_origin(option) is list else option for option in given)
    return annotation if plain == given else Union[plain]  # noqa: UP007  Union may put choices in another order


def _plain_items(option: Any) -> Any:
    items = (item for item in alternatives(typing.get_args(option)[0]) if _is_plain(item))
    return types.GenericAlias(list, (Union[tuple(items)],))  # noqa: UP007


def _is_plain(annotation: Any) -> bool:
    for option in alternatives(annotation):
        origin = typing.get_origin(option)
        if origin is Annotated:
            option = typing.get_args(option)[0]
        if origin in (Literal, list, dict) or option in (int, float, str, bool, list, dict, type(None)):
            continue
        return False
    return True

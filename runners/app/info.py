"""``python run.py --info KIND=NAME``: the documentation of a component and its keys, from its class.

The constructor's signature gives the type, range and default of a key; the docstring
gives its unit and meaning.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orbit
from orbit.core.errors import UnknownNameError, suggestion
from orbit.core.params import Parameter, config_fields, describe
from runners.app.schema import KINDS, OWN_DEFAULTS, SECTIONS, Root, config_parameters

#: Topics of Hydra's own ``--info``.
_HYDRA = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")

_WIDTH = 100

_PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^(\w[^\n:]*?)(?: :[^\n]*)?\n((?:[ \t]+[^\n]*\n|\n)*)", re.MULTILINE)

_ROLE = re.compile(r":\w+:`~?(?:\w+\.)*(\w+)`")  # a cross-reference of Sphinx


def requested(arguments: list[str]) -> str | None:
    """The topic given to ``--info``; None without that option, and for Hydra's own topics."""
    for i, argument in enumerate(arguments):
        flag, _, topic = argument.partition("=")
        if flag == "--info":
            topic = topic or next(iter(arguments[i + 1 :]), "all")
            return None if topic in _HYDRA else topic
    return None


def describe_topic(topic: str, config_dir: Path) -> str:
    """The names of a kind, or one component, section or preset file with its keys.

    Raises
    ------
    UnknownNameError
        With the closest match and the list of topics or names.
    """
    kind, _, name = topic.partition("=")
    if kind in SECTIONS:
        own = OWN_DEFAULTS.get(kind, {})
        return _component(kind, [SECTIONS[kind]], _section_keys(SECTIONS[kind]), own, prefix=f"{kind}.")
    if kind == "run":
        return _component(kind, [Root], _section_keys(Root), {}, prefix="")
    if kind not in KINDS:
        topics = [*KINDS, *SECTIONS, "run"]
        raise UnknownNameError(
            f"--info {kind}: no such kind{suggestion(kind, topics)} Choose from {', '.join(topics)}."
        )
    presets = {path.stem: path for path in sorted((config_dir / kind).glob("*.yaml"))}
    if name in presets:
        return presets[name].read_text(encoding="utf-8").rstrip()
    if name:
        classes = orbit.registry.classes(kind, name)
        return _component(f"{kind}={name}", classes, config_parameters(kind, name), {}, prefix=f"{kind}.")
    lines = {name: _summary(orbit.registry.classes(kind, name)[0]) for name in orbit.available(kind)}
    lines |= {name: path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for name, path in presets.items()}
    width = max(map(len, lines))
    return "\n".join(f"{kind}={name:<{width}}  {line}" for name, line in lines.items())


def documented(classes: Iterable[type]) -> dict[str, str]:
    """Parameter -> its documentation, from the docstrings of the classes or of their bases."""
    found: dict[str, str] = {}
    for base in (base for cls in classes for base in reversed(cls.__mro__)):
        section = _PARAMETERS.search(inspect.cleandoc(vars(base).get("__doc__") or "") + "\n")
        for names, text in _ENTRY.findall(section[1]) if section else ():
            meaning = _ROLE.sub(r"\1", " ".join(text.split()))
            found |= {name.strip(): meaning for name in names.split(",") if meaning}
    return found


def _component(
    title: str, classes: list[type], keys: Mapping[str, Parameter], own: Mapping[str, Any], prefix: str
) -> str:
    texts = documented(classes)
    lines = [f"{title}: {_summary(classes[0])}"]
    for key, parameter in keys.items():
        default = own.get(key, parameter.default)
        note = f"  (in Python: {_plain(parameter.default)})" if key in own else ""
        lines += ["", f"{prefix}{key}={_plain(default)}{note}", f"    expects {describe(parameter.annotation)}"]
        lines += textwrap.wrap(texts.get(key, ""), _WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def _section_keys(cls: type) -> dict[str, Parameter]:
    keys = config_fields(cls)
    return {key: p for key, p in keys.items() if p.annotation is not Any and p.default is not dataclasses.MISSING}


def _summary(cls: type) -> str:
    paragraph = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def _plain(value: Any) -> str:
    """A value as written on the command line."""
    return value if isinstance(value, str) else json.dumps(value)

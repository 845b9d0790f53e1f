"""``python run.py --info KIND=NAME``: the documentation of a component and its keys, from its class.

The constructor's signature gives the type, range and default of a key; the docstring
gives its unit and meaning.
"""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

from orbit.core.errors import UnknownNameError, choose_from
from orbit.core.params import Parameter, describe, parameters
from orbit.registry import check_known
from runners.config.config_dirs import text_of
from runners.config.program import leading_comment
from runners.config.schema import FILE_GROUPS, KINDS, OWN_DEFAULTS, PLUGINS, SECTIONS, Root, section_signature
from runners.config.signatures import Signature, names, signature

#: Topics of Hydra's own ``--info``.
_HYDRA = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")

_EVERYTHING = "components"

_WIDTH = 100

# Values as Python writes them -> as on the command line; in quotes they are texts.
_LITERALS = {"None": "null", "True": "true", "False": "false"}
_VALUE = re.compile(rf"(?<!')\b({'|'.join(_LITERALS)})\b(?!')")


def requested(arguments: list[str]) -> str | None:
    """The topic given to ``--info`` or ``-i``; None without that option, and for Hydra's own topics."""
    for i, argument in enumerate(arguments):
        flag, _, topic = argument.partition("=")
        if flag in ("--info", "-i"):
            topic = topic or next(iter(arguments[i + 1 :]), "all")
            return None if topic in _HYDRA else topic
    return None


def describe_topic(topic: str, *config_dirs: Path) -> str:
    """The names of a kind, or one component, section or preset file of ``config_dirs`` with its keys.

    Raises
    ------
    UnknownNameError
        With the closest match and the list of topics or names.
    """
    kind, _, name = topic.partition("=")
    if kind == _EVERYTHING:
        every = (f"{kind}={name}" for kind in KINDS for name in names(kind))
        return "\n\n".join(describe_topic(each) for each in every)
    if kind in PLUGINS:
        return _plugin(kind, name)
    if kind in SECTIONS:
        return _component(kind, section_signature(kind), OWN_DEFAULTS.get(kind, {}), prefix=f"{kind}.")
    if kind == "run":
        return _component(kind, Signature.of(Root), {}, prefix="")
    if kind not in (*KINDS, *FILE_GROUPS):
        topics = [*KINDS, *FILE_GROUPS, *SECTIONS, *PLUGINS, "run", _EVERYTHING]
        raise UnknownNameError(f"--info {kind}: no such kind{choose_from(kind, topics)}")
    presets = {path.stem: path for folder in reversed(config_dirs) for path in sorted((folder / kind).glob("*.yaml"))}
    if name in presets:
        return text_of(presets[name]).rstrip()
    registered = [] if kind in FILE_GROUPS else names(kind)
    if name:
        check_known(kind, name, registered or list(presets))
        return _component(f"{kind}={name}", signature(kind, name), {}, prefix=f"{kind}.")
    lines = {name: _in_words(signature(kind, name).summary) for name in registered}
    lines |= {name: _comment(path) for name, path in presets.items()}
    width = max(map(len, lines))
    return "\n".join(f"{kind}={name:<{width}}  {line}".rstrip() for name, line in lines.items())


def _plugin(kind: str, name: str) -> str:
    """The launchers or sweepers, or one of them with its keys."""
    if not name:
        return "\n".join(_in_words(Signature.of(settings).summary) for settings in PLUGINS[kind].values())
    check_known(kind, name, list(PLUGINS[kind]))
    described, known = Signature.of(PLUGINS[kind][name]), parameters(PLUGINS[kind][name])
    keys = {key: _mapping_or(parameter) for key, parameter in known.items() if key in described.texts}
    return _component(f"{kind}={name}", replace(described, parameters=keys), {}, prefix=f"{kind.replace('/', '.')}.")


def _mapping_or(parameter: Parameter) -> Parameter:
    """A mapping in place of Any, by which OmegaConf takes one."""
    return replace(parameter, annotation=dict[str, Any] | None) if parameter.annotation is Any else parameter


def _comment(path: Path) -> str:
    """The beginning of a file's leading comment."""
    return textwrap.shorten(_in_words(leading_comment(path)[0]).removesuffix(":"), _WIDTH, placeholder=" ...")


def _in_words(text: str) -> str:
    """The text of a docstring for a terminal: without markup, values as on the command line.

    >>> _in_words("None is ``auto``, as in :class:`~orbit.approx.rf.RandomFourier`.")
    'null is auto, as in RandomFourier.'
    """
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"\1", text).replace("``", "")
    return _VALUE.sub(lambda found: _LITERALS[found[0]], text)


def _component(title: str, described: Signature, own: dict[str, Any], prefix: str) -> str:
    lines = [f"{title}: {_in_words(described.summary).removeprefix(f'{title}: ')}"]
    if described.source:
        lines += _indented(f"source: {described.source}")
    if described.default_choices:
        chosen = " ".join(_written(kind, choice) for kind, choice in described.default_choices.items())
        lines += _indented(f"by default with {chosen}")
    for key, parameter in described.parameters.items():
        default = own.get(key, parameter.default)
        note = f"  (in Python: {_plain(parameter.default)})" if key in own else ""
        lines += ["", f"{prefix}{key}={_plain(default)}{note}", f"    expects {describe(parameter.annotation)}"]
        lines += _indented(described.texts.get(key, ""))
    return "\n".join(lines)


def _written(kind: str, section: dict[str, Any]) -> str:
    """The choice of a component and its keys."""
    keys = [f"{kind}.{key}={_plain(value)}" for key, value in section.items() if key != "name"]
    return " ".join([f"{kind}={section['name']}", *keys])


def _indented(text: str) -> list[str]:
    return textwrap.wrap(_in_words(text), _WIDTH, initial_indent="    ", subsequent_indent="    ")


def _plain(value: Any) -> str:
    """A value as written on the command line."""
    return value if isinstance(value, str) else json.dumps(value)

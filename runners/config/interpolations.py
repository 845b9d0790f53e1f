"""A limit on the size of resolved interpolations: nested ones in a short file can stand for billions of values."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, DictKeyType, ListConfig, Node, OmegaConf
from omegaconf.base import Container

from orbit.core.errors import InputError
from runners.config.aliases import CHARACTERS, MOST_ENTRIES

_resolve = Container.resolve_parse_tree


class _Count(threading.local):
    """The number of entries counted in this thread; None while nothing is being resolved."""

    entries: int | None = None


_count = _Count()


def resolved(config: DictConfig | ListConfig) -> Any:
    """A configuration as plain dictionaries and lists, with all interpolations resolved.

    Raises
    ------
    InputError
        If interpolations stand for more than ``MOST_ENTRIES`` entries. An entry is a key, a value, or a list or mapping
        around them; a long text counts as several. Within another interpolation, OmegaConf replaces the error by an
        InterpolationResolutionError with the same message.
    omegaconf.errors.InterpolationResolutionError
        If an interpolation is wrong.

    >>> resolved(OmegaConf.create("{a: 3, b: '${a}${a}'}"))
    {'a': 3, 'b': '33'}
    """
    with _counting():
        return OmegaConf.to_container(config, resolve=True)


@contextlib.contextmanager
def _counting() -> Iterator[None]:
    outermost = _count.entries is None
    if outermost:
        _count.entries = 0
    try:
        yield
    finally:
        if outermost:
            _count.entries = None


def _resolve_counted(
    self: Container, parse_tree: Any, node: Node, memo: set[int] | None = None, key: DictKeyType | None = None
) -> Any:
    with _counting():
        _add(1, node)
        value = _resolve(self, parse_tree, node, memo, key)
        _add(_entries(value), node)
    return value


def _add(entries: int, node: Node) -> None:
    _count.entries = (_count.entries or 0) + entries
    if _count.entries > MOST_ENTRIES:
        raise InputError(
            f"{node._get_full_key(None)}: expected interpolations (${{...}}) that stand for at most {MOST_ENTRIES:,} "
            "entries, found more"
        )


def _entries(value: Any) -> int:
    """The number of entries in a value, without resolving any; a text counts one for each ``CHARACTERS`` characters."""
    if isinstance(value, str):
        return len(value) // CHARACTERS
    if not isinstance(value, Container) or value._is_none() or value._is_missing() or value._is_interpolation():
        return 0
    content: Any = value._content
    nodes = list(content.values() if isinstance(content, dict) else content)
    return len(nodes) + sum(_entries(node) for node in nodes)


# on import, because the workers of a launcher resolve configurations before they call anything
Container.resolve_parse_tree = _resolve_counted  # type: ignore[method-assign]

"""A bound on what the aliases of a YAML text stand for, which a text of some hundred bytes can make billions."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from orbit.core.errors import InputError

#: Entries that all aliases of a text may stand for; the most in a file of this project is 210.
MOST_ENTRIES = 10_000

#: Characters of a text that count as one entry.
CHARACTERS = 100

_ALIAS, _ANCHOR = re.compile(r"\*\S"), re.compile(r"&\S")


def check_aliases(text: str, path: Path) -> None:
    """Raise InputError if the aliases of a YAML text stand for more than ``MOST_ENTRIES`` entries.

    An entry is a key, a value, or a list or mapping around them; a long value counts as several. The text is read once,
    and nothing is built from it. Errors in it are left to whoever reads it.

    >>> check_aliases("a: &a [1, 2]\\nb: *a", Path("good.yaml"))
    >>> doubled = "\\n".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 30))
    >>> check_aliases(f"a0: &a0 [1]\\n{doubled}", Path("bad.yaml"))
    Traceback (most recent call last):
        ...
    orbit.core.errors.InputError: bad.yaml: expected aliases (*NAME) that stand for at most 10,000 entries, found more
    """
    if not (_ALIAS.search(text) and _ANCHOR.search(text)):
        return
    try:
        found = _entries_of_aliases(text)
    except (yaml.YAMLError, ValueError):
        return
    if found > MOST_ENTRIES:
        raise InputError(
            f"{path}: expected aliases (*NAME) that stand for at most {MOST_ENTRIES:,} entries, found more"
        )


def _entries_of_aliases(text: str) -> int:
    """The number of entries that the aliases of a text stand for, or one of more than ``MOST_ENTRIES``."""
    known: dict[str, int] = {}  # anchor -> entries
    open_anchors: list[tuple[str | None, int]] = []  # of lists and mappings around the event: entries before them
    entries = from_aliases = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            open_anchors.append((event.anchor, entries))
            entries += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_anchors.pop()
            if anchor is not None:
                known[anchor] = entries - before
        elif isinstance(event, yaml.ScalarEvent):
            size = 1 + len(event.value) // CHARACTERS
            entries += size
            if event.anchor is not None:
                known[event.anchor] = size
        elif isinstance(event, yaml.AliasEvent):
            size = known.get(event.anchor, 1)  # of one that is still open: the text leads back to itself
            entries += size
            from_aliases += size
            if from_aliases > MOST_ENTRIES:
                break
    return from_aliases

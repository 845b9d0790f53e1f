"""Names, keys and documentation of components, without their classes.

Help, the composition of a configuration and most errors need no more, and the classes import torch and scikit-learn,
which takes seconds. Signatures are read from the classes once, and then kept on disk until a file changes that they
come from. Once ``runners.components`` is imported, they are read from the classes again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import time
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import orbit
from orbit.core.models import read, write_model
from orbit.core.params import Parameter, alternatives, build_parameters
from orbit.registry import check_known, classes, plugins
from runners.config.imports import large_imports

#: The configuration groups whose choices are registered components.
KINDS = (
    *("group", "distribution", "kernel", "frequencies", "landmarks", "approx", "hyper", "representation", "encoder"),
    *("learner", "selection", "augmentation", "dataset", "runner"),
)

# Kinds with one component, of the same name.
_SINGLE = ("orbit", "engine")

_CLASSES = "runners.components"  # the module that imports them all

_PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.DOTALL | re.MULTILINE)
_ENTRY = re.compile(r"^(\w[^\n:]*?)(?: :[^\n]*)?\n((?:[ \t]+[^\n]*\n|\n)*)", re.MULTILINE)
_REFERENCES = re.compile(r"^References\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.DOTALL | re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:\w+\.)*(\w+)`")  # a cross-reference of Sphinx

_FILE = "signatures.pkl"


@dataclass(frozen=True)
class Signature:
    """What the command line knows of a component.

    Attributes
    ----------
    summary : str
        The first paragraph of its documentation.
    parameters : mapping of str to Parameter
        The keys of its section: the parameters of all classes of that name, which for a learner may be two.
    texts : mapping of str to str
        Parameter -> its documentation.
    source : str
        The papers that it comes from; empty if there is none.
    implied_kernel : bool
        Whether it is an approximation with a kernel of its own.
    takes_from_kernel : list of str
        Parameters of a learner that are those of the kernel where they are None.
    needs_norms : bool
        Whether it is a learner that needs prior variances.
    tracked, uses_data, takes_group : bool
        Whether it is a runner whose runs are logged in MLflow, that loads the data set, and that uses the group.
    reads : list of str
        What the path of a data set leads to: endings of files, or ``folder``.
    ignored_keys : list of str
        Keys of ``parameters`` that a data set accepts, but does not have: they are left out of the configuration.
    default_choices : dict of str to dict
        Kind -> the section that is used when none is given: the group and the representation of a data set.
    """

    summary: str
    parameters: Mapping[str, Parameter]
    texts: Mapping[str, str]
    source: str = ""
    implied_kernel: bool = False
    takes_from_kernel: list[str] = field(default_factory=list)
    needs_norms: bool = False
    tracked: bool = False
    uses_data: bool = False
    takes_group: bool = False
    reads: list[str] = field(default_factory=list)
    ignored_keys: list[str] = field(default_factory=list)
    default_choices: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, *described: Any) -> Signature:
        """The signature of classes. A value is allowed if one of them allows it."""
        parameters: dict[str, Parameter] = {}
        for key, known in (item for each in described for item in config_fields(each).items()):
            before = parameters.get(key, known).annotation
            parameters[key] = replace(known, annotation=Union[before, known.annotation])  # noqa: UP007
        return cls(_summary(described[0]), parameters, documented(described), _source(described[0]))


def names(kind: str) -> list[str]:
    """The names of the components of a kind, sorted."""
    kept = _kept()
    return orbit.available(kind) if kept is None else list(kept[kind])


def signature(kind: str, name: str) -> Signature:
    """The signature of a component; of the orbit and the engine, for the kinds and names ``orbit`` and ``engine``.

    Raises
    ------
    UnknownNameError
        With the closest match and the list of names.
    """
    kept = _kept()
    if kept is None:
        return _of_classes(kind, *_classes(kind, name))
    check_known(kind, name, kept[kind])
    return kept[kind][name]


def classes_are_imported() -> bool:
    """Whether this process has imported the classes of components."""
    return _CLASSES in sys.modules


def documented(described: Iterable[type]) -> dict[str, str]:
    """Parameter -> its documentation, from the docstrings of the classes, of their bases and of ``from_config``."""
    found: dict[str, str] = {}
    described = list(described)
    texts = [vars(base).get("__doc__") for cls in described for base in reversed(cls.__mro__)]
    texts += [getattr(cls, "from_config", cls).__doc__ for cls in described]
    for text in texts:
        section = _PARAMETERS.search(inspect.cleandoc(text or "") + "\n")
        for keys, text in _ENTRY.findall(section[1]) if section else ():
            meaning = _ROLE.sub(r"\1", " ".join(text.split()))
            found |= {key.strip(): meaning for key in keys.split(",") if meaning}
    return found


def _summary(cls: type) -> str:
    paragraph = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def _source(cls: type) -> str:
    """The section "References" of a class or of the nearest base that has one."""
    for base in cls.__mro__:
        if (found := _REFERENCES.search(inspect.cleandoc(vars(base).get("__doc__") or "") + "\n")) is not None:
            return " ".join(found[1].split())
    return ""


def _classes(kind: str, name: str) -> list[type]:
    return [orbit.Orbit if kind == "orbit" else orbit.Engine] if kind in _SINGLE else classes(kind, name)


@functools.cache
def _of_classes(kind: str, *described: Any) -> Signature:
    made = Signature.of(*described)
    if kind == "approx":
        return replace(made, implied_kernel=described[0].implied_kernel is not None)
    if kind == "learner":
        taken = [key for cls in described for key in cls.takes_from_kernel]
        return replace(made, takes_from_kernel=taken, needs_norms=any(cls.needs_norms for cls in described))
    if kind == "dataset":
        choices = {
            "group": described[0].default_group or {"name": "auto"},
            "representation": described[0].default_representation,
            "encoder": described[0].default_encoder({}),
        }
        made = replace(made, default_choices=choices, reads=list(described[0].reads))
        return _with_keys(made, described[0].ignored_keys)
    if kind == "runner":
        return replace(made, **{key: getattr(described[0], key) for key in ("tracked", "uses_data", "takes_group")})
    return made


def _with_keys(made: Signature, annotations: Mapping[str, Any]) -> Signature:
    """The signature with keys that are accepted without effect, for those that are no parameters."""
    added = {key: annotation for key, annotation in annotations.items() if key not in made.parameters}
    parameters = {key: Parameter(annotation, None) for key, annotation in added.items()}
    texts = dict.fromkeys(added, "Has no effect: this data set needs no files.")
    return replace(
        made, parameters={**made.parameters, **parameters}, texts={**texts, **made.texts}, ignored_keys=list(added)
    )


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


# ---- on disk


def _kept() -> dict[str, dict[str, Signature]] | None:
    """Kind -> name -> signature, from disk; None if the classes are imported, as they are if nothing is on disk."""
    if classes_are_imported():
        return None
    kept = _read()
    if kept is None:
        start = time.time_ns()
        with large_imports():
            importlib.import_module(_CLASSES)
        _write(start)
    return kept


@functools.cache
def _read() -> dict[str, dict[str, Signature]] | None:
    """What a process of this version wrote, if no file has changed since and there are no other packages."""
    try:
        found, stamps, kinds = read(_folder(), name=_FILE)
        return kinds if found == _plugins() and all(_stamp(file) == stamp for file, stamp in stamps.items()) else None
    except Exception:  # it is missing, damaged, or not of this user
        return None


def _write(since_ns: int) -> None:
    """Keep the signatures; not where that is impossible, nor if a file has changed since its import began."""
    known = {kind: [kind] if kind in _SINGLE else names(kind) for kind in (*KINDS, *_SINGLE)}
    kinds = {kind: {name: signature(kind, name) for name in known[kind]} for kind in known}
    with contextlib.suppress(OSError, RuntimeError):  # the last for a user without a home
        stamps = {file: _stamp(file) for file in _sources(known)}
        if all(changed_ns < since_ns or os.path.isdir(file) for file, (changed_ns, _) in stamps.items()):
            _folder().mkdir(parents=True, exist_ok=True)
            write_model(_folder(), (_plugins(), stamps, kinds), _FILE)


def _folder() -> Path:
    """The cache folder of this user for this Python, this orbit, and its docstrings, of which -OO has none."""
    key = repr([sys.version, sys.prefix, sys.flags.optimize, orbit.__file__, __file__])
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return folder / "orbit" / hashlib.sha256(key.encode()).hexdigest()[:16]


def _stamp(file: str) -> tuple[int, int]:
    """Time of modification in ns since the epoch, and size in bytes."""
    found = os.stat(file)
    return found.st_mtime_ns, found.st_size


def _plugins() -> list[str]:
    """The modules with components of other packages, and where they would be imported from."""
    return sorted(f"{entry.module} {_location(entry.module)}" for entry in plugins())


def _location(module: str) -> str:
    found = importlib.util.find_spec(module.partition(".")[0])
    return "" if found is None else f"{found.origin} {found.submodule_search_locations}"


def _sources(known: Mapping[str, list[str]]) -> set[str]:
    """The files of all packages that define components or bases of them, and the folders of these packages."""
    bases = (base for kind in known for name in known[kind] for cls in _classes(kind, name) for base in cls.__mro__)
    packages = {
        module.partition(".")[0]
        for module in (*(base.__module__ for base in bases), *(entry.module for entry in plugins()))
    }
    loaded = [module for name, module in sys.modules.items() if name.partition(".")[0] in packages]
    files = {str(module.__file__) for module in loaded if getattr(module, "__file__", None)}
    return files | {os.path.dirname(file) for file in files if os.path.basename(file) == "__init__.py"}

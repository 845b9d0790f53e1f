"""The registry of components: classes by kind and name.

A component is registered where it is defined::

    @register("group", "rotation")
    class Rotation(Group): ...

Other packages add components through the entry-point group ``orbit.components``: each entry names a module, and
importing it runs its ``register`` decorators. Modules with runners are those of the group ``orbit.runners``, which only
the command line imports, so that the library does not import Hydra.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from orbit.core.errors import InputError, ParameterError, UnknownNameError, choose_from, of_part, suggestion
from orbit.core.params import build_parameters

if TYPE_CHECKING:
    from orbit.core.component import Component

T = TypeVar("T", bound=type)

_classes: dict[str, dict[str, type]] = {}

#: Packages of orbit whose import registers their components, each before those that import it.
PACKAGES = ("groups", "distributions", "kernels", "representations", "encoders", "approx", "data", "learners")

#: Entry-point groups of other packages.
COMPONENTS, RUNNERS = "orbit.components", "orbit.runners"

# Only a clone has it; the wheel has its entry point alone.
_BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

#: Task -> kind of learner.
TASKS = {"classification": "classifier", "regression": "regressor"}


def register(kind: str, name: str) -> Callable[[T], T]:
    """Class decorator that registers the class as ``name`` among the components of ``kind``.

    Raises
    ------
    ValueError
        If another class already has that name. The same class defined again, as by a cell of a notebook, replaces it.
    TypeError
        If a parameter of the constructor has no type: it would silently be no key of the configuration.
    """

    def decorate(cls: T) -> T:
        known = _classes.setdefault(kind, {})
        if name in known and _definition(known[name]) != _definition(cls):
            raise ValueError(
                f"{kind} {name!r} is already registered by {known[name].__module__}.{known[name].__name__}"
            )
        _check_typed(kind, name, cls)
        known[name] = cls
        section = "learner" if kind in TASKS.values() else kind
        cls.kind, cls.name, cls.section = kind, name, section  # type: ignore[attr-defined]
        return cls

    return decorate


def _check_typed(kind: str, name: str, cls: type) -> None:
    found = [*inspect.signature(cls.__init__).parameters.values()][1:]  # type: ignore[misc]
    for parameter in found:
        if parameter.annotation is parameter.empty and parameter.kind.name not in ("VAR_POSITIONAL", "VAR_KEYWORD"):
            raise TypeError(
                f"{kind}={name}: expected a type for the parameter {parameter.name} of {cls.__name__}, such as "
                f"{parameter.name}: float = 1.0, found none"
            )


def _definition(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


@functools.cache
def _load_packages() -> None:
    for package in PACKAGES:
        importlib.import_module(f"orbit.{package}")


@functools.cache
def load_plugins(group: str = COMPONENTS) -> None:
    """Import the modules of an entry-point group, once.

    Raises
    ------
    InputError
        If one cannot be imported.
    """
    for entry in plugins(group):
        try:
            entry.load()
        except Exception as error:
            package = f"package {entry.dist.name}" if entry.dist else "a package"
            raise InputError(
                f"{package}: its components in {entry.module} cannot be imported ({type(error).__name__}: {error}): "
                "mend or uninstall it"
            ) from error


def plugins(*groups: str) -> list[metadata.EntryPoint]:
    """The entry points by which other packages add components: those of some groups, or of both."""
    found = [entry for group in groups or (COMPONENTS, RUNNERS) for entry in _entry_points(group)]
    return [entry for entry in found if entry.module != "benchmarks.components" or _BENCHMARKS.is_dir()]


@functools.cache
def _entry_points(group: str) -> metadata.EntryPoints:
    """Those of all installed packages, whose files are read once: that takes longer than the work on a small batch."""
    return metadata.entry_points(group=group)


def available(kind: str | None = None) -> list[str]:
    """The registered names of a kind, sorted; or the kinds, without an argument.

    The kind ``learner`` is ``classifier`` and ``regressor`` together.

    >>> import orbit
    >>> "rotation" in orbit.available("group"), "ridge" in orbit.available("learner")
    (True, True)

    Raises
    ------
    UnknownNameError
        If there is no such kind.
    InputError
        If the components of another package cannot be imported.
    """
    _load_packages()
    load_plugins()
    if kind is None:
        return sorted(_classes)
    names = sorted({name for part in _parts(kind) for name in _classes.get(part, {})})
    if not names:
        raise UnknownNameError(f"unknown kind of component {kind!r}{choose_from(kind, sorted(_classes))}")
    return names


def registered() -> set[type]:
    """The classes that are registered so far; those of packages that have not been imported are missing.

    >>> import orbit
    >>> orbit.groups.Rotation in orbit.registry.registered()
    True
    """
    return {cls for known in _classes.values() for cls in known.values()}


def classes(kind: str, name: str) -> list[type]:
    """All classes registered as ``name``: one, or for the kind ``learner`` one for each task.

    Raises
    ------
    UnknownNameError
        With the closest match and the list of names.
    """
    check_known(kind, name, available(kind))
    return [_classes[part][name] for part in _parts(kind) if name in _classes.get(part, {})]


def check_known(kind: str, name: str, names: Collection[str]) -> None:
    """Raise ``UnknownNameError``, with the closest match, unless ``name`` is one of the ``names`` of a kind."""
    if name not in names:
        raise UnknownNameError(f"{kind}={name}: no such {kind}{choose_from(name, names)}")


def get(kind: str, name: str, task: str | None = None) -> type:
    """The class registered as ``name`` among the components of ``kind``.

    Parameters
    ----------
    kind, name : str
    task : {"classification", "regression"} or None
        Selects one of two learners of the same name, for ``kind="learner"``.

    Raises
    ------
    UnknownNameError
        With the closest match and the list of names.
    InputError
        If two learners have the name, and ``task`` is None.
    """
    if kind == "learner" and task is not None:
        return _learner(name, task)
    found = classes(kind, name)
    if len(found) > 1:
        raise InputError(f"{kind}={name} is a classifier and a regressor: add task='classification' or 'regression'")
    return found[0]


def _parts(kind: str) -> tuple[str, ...]:
    return tuple(TASKS.values()) if kind == "learner" else (kind,)


def _learner(name: str, task: str) -> type:
    if task not in TASKS:
        raise ParameterError("task", "one of " + ", ".join(map(repr, TASKS)), task)
    known = [cls for cls in classes("learner", name) if cls.kind == TASKS[task]]  # type: ignore[attr-defined]
    if not known:
        raise UnknownNameError(f"learner={name} is not for {task}: choose from {', '.join(available(TASKS[task]))}")
    return known[0]


def build(kind: str, name: str, **params: Any) -> Any:
    """Construct the component ``name`` of ``kind`` from values as a configuration has them.

    They are the parameters of the constructor, except where the class method ``from_config`` of the component takes
    names and mappings in place of parts, such as a kernel or a layer of patches.

    >>> import orbit
    >>> orbit.build("kernel", "gaussian", lengthscale=2.0)
    Gaussian(lengthscale=2.0)
    >>> orbit.build("learner", "ridge", task="regression")
    RidgeRegressor()

    Raises
    ------
    UnknownNameError, InputError
        For an unknown name or parameter.
    """
    cls = get(kind, name, params.pop("task", None) if kind == "learner" else None)
    check_parameters(kind, name, params, build_parameters(cls))
    return getattr(cls, "configured", cls)(**params)


def check_parameters(kind: str, name: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise ``InputError`` for a parameter that a component does not have."""
    for key in given:
        if key not in known:
            raise InputError(
                f"{kind}={name} has no parameter {key!r}{suggestion(key, known)} It has {', '.join(known) or 'none'}."
            )


def build_sections(kind: str, key: str, sections: Sequence[Mapping[str, Any] | Component]) -> list[Any]:
    """Construct one component for each section of a list, as :func:`build_section`; errors name ``factors[1]``.

    >>> import orbit
    >>> orbit.registry.build_sections("group", "factors", [{"name": "identity"}])
    [Identity()]
    """
    return [build_section(kind, f"{key}[{i}]", section) for i, section in enumerate(sections)]


def build_section(kind: str, key: str, section: Mapping[str, Any] | Component) -> Any:
    """Construct the component of a section ``{name: ..., parameter: value, ...}``; a component stays.

    Raises
    ------
    InputError
        For an invalid section, named ``key``.
    """
    from orbit.core.component import Component  # imports scikit-learn, which a refused command line does not need

    if isinstance(section, Component):
        return section
    if not isinstance(section, Mapping) or "name" not in section:
        raise ParameterError(key, f"a section with the name of a {kind}, {{name: ...}}", section, kind)
    with of_part(kind, key):
        part = build(kind, **section)
    part.section = f"{kind}.{key}"  # which its sentences name
    return part

"""Checks of a configuration that involve several components."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

import orbit
from orbit.core.distributed import world_size
from orbit.core.errors import InputError, ParameterError, suggestion
from orbit.core.params import config_fields, parameters
from orbit.kernels import OperatorKernel
from orbit.learners.base import Learner
from orbit.learners.streaming import check_streams
from runners.app.messages import ConfigError, shown
from runners.app.schema import SECTIONS, Root, Tracking

if TYPE_CHECKING:
    from runners.app.plan import Plan

# Keys by which Hydra and Python's logging build objects, and the files of the project that have them.
_KEYS_OF_CODE = "_target_", "()"
_FILES_THAT_NAME_CODE = "config.yaml", "hydra/job_logging/orbit.yaml"

# A grid may change the model, never the data that it is evaluated on.
_SELECTABLE = (
    *("representation", "group", "distribution", "orbit", "encoder", "kernel"),
    *("frequencies", "landmarks", "approx", "hyper", "learner"),
)


def check_settings(config: dict[str, Any]) -> None:
    """Raise ConfigError for unknown sections and keys, and wrong values that belong to no component."""
    _check_keys("", config, parameters(Root))
    for section, cls in SECTIONS.items():
        if not isinstance(config[section], dict):
            raise ConfigError(f"{section}: expected settings {section}.KEY=VALUE, found {shown(config[section])}")
        _check_keys(f"{section}.", config[section], config_fields(cls))
    try:
        Root(**config).check()
    except ParameterError as error:
        raise ConfigError(str(error)) from error
    try:
        Tracking(**config["tracking"]).check()
    except ParameterError as error:
        raise ConfigError(str(error.prefixed("tracking"))) from error


def _check_keys(prefix: str, found: Mapping[str, Any], known: Collection[str]) -> None:
    for key in found:
        if key not in known:
            raise ConfigError(f"{prefix}{key}: no such key{suggestion(key, known)} Choose from {', '.join(known)}.")


def learner_classes(task: str) -> dict[str, type[Learner]]:
    """Every learner for a task, by name."""
    kind = orbit.registry.TASKS[task]
    return {name: orbit.get(kind, name) for name in orbit.available(kind)}


def check_kernel(cls: Any, kernel: object) -> None:
    """Raise InputError for an operator-valued kernel in a feature map of scalar kernels."""
    if isinstance(kernel, OperatorKernel) and not cls.operator_valued:
        raise InputError(f"{kernel.label()} is operator-valued, {cls.kind}={cls.name} is not: choose approx=orff")


def check_encoder(cls: Any, config: dict[str, Any]) -> None:
    """Raise InputError for an encoder in a feature map that takes none."""
    encoder = config["encoder"]["name"]
    if encoder != "none" and cls.kind == "approx" and "encoder" not in parameters(cls):
        able = [name for name in orbit.available("approx") if "encoder" in parameters(orbit.get("approx", name))]
        raise InputError(
            f"approx={cls.name} takes no encoder, found encoder={encoder}: choose approx={' or approx='.join(able)}"
        )


def check_learner(config: dict[str, Any], task: str) -> None:
    """Raise InputError unless the learner is for the task, and can use the features of approx and hyper."""
    name, approx, hyper = (config[kind]["name"] for kind in ("learner", "approx", "hyper"))
    known = learner_classes(task)
    if name not in known:
        raise InputError(
            f"learner={name} is not for {task}, which dataset={config['dataset']['name']} needs: "
            f"choose from {', '.join(known)}"
        )
    feature_map: Any = orbit.get("approx", approx)
    if feature_map.operator_valued:
        _check_operator_valued(config, task, [able for able, cls in known.items() if cls.operator_valued])
    if known[name].takes_points and (approx, hyper) != ("points", "linear"):
        raise InputError(
            f"learner={name} computes its own features, found approx={approx}, hyper={hyper}: "
            "choose approx=points hyper=linear"
        )


def _check_operator_valued(config: dict[str, Any], task: str, able: list[str]) -> None:
    learner, approx, hyper = (config[kind]["name"] for kind in ("learner", "approx", "hyper"))
    if task == "regression" and config["kernel"].get("output") == "simplex":
        raise InputError(
            f"kernel.output=simplex is for classes, the targets of dataset={config['dataset']['name']} are numbers: "
            "choose kernel.output=identity, covariance, low_rank, graph or learned"
        )
    if learner not in able:
        raise InputError(
            f"learner={learner} cannot use the operator-valued features of approx={approx}: "
            f"choose learner={' or learner='.join(able)}"
        )
    if hyper != "linear":
        raise InputError(f"hyper={hyper} mixes the features of approx={approx}: choose hyper=linear")


def check_selection(plan: Plan) -> None:
    """Raise InputError unless every point of the grid is a valid plan."""
    selection = plan.component("selection")
    points = selection.points()
    if selection.name == "none":
        return
    if not points:
        raise InputError(
            f"selection.grid: selection={selection.name} needs keys with values, e.g. {{kernel.lengthscale: [1, 2]}}"
        )
    if plan.config["engine"]["stream"]:
        raise InputError(
            f"engine.stream=true: selection={selection.name} needs all features at once; use selection=none"
        )
    for key in points[0]:
        section = key.partition(".")[0]
        if section not in _SELECTABLE:
            hint = suggestion(section, _SELECTABLE)
            raise InputError(f"selection.grid: {key} cannot be selected{hint} Choose from {', '.join(_SELECTABLE)}.")
    for point in points:
        plan.without_selection(point)


def check_augmentation(config: dict[str, Any]) -> None:
    """Raise InputError for augmentation without a stream, or with a learner that does not train in epochs."""
    name, learner = config["augmentation"]["name"], config["learner"]["name"]
    if name == "none":
        return
    if not config["engine"]["stream"]:
        raise InputError(
            f"augmentation={name} changes points in every pass over them: "
            "set engine.stream=true, or choose augmentation=none"
        )
    classes: list[Any] = orbit.registry.classes("learner", learner)
    if not any(cls.trains_in_epochs for cls in classes):
        raise InputError(
            f"augmentation={name}: learner={learner} makes only one pass over the points; "
            "choose learner=adagrad or learner=network"
        )


def check_stream(config: dict[str, Any], learner: Learner) -> None:
    """Raise InputError for a stream with a learner that cannot learn from batches."""
    if config["engine"]["stream"]:
        check_streams(learner)


def check_files(config_dir: Path, *added: Path) -> None:
    """Raise InputError if a configuration file names code to run, which two files of ``config_dir`` alone may.

    A file from somebody else may choose components and values. Hydra would also build any object that it names.
    """
    own = [config_dir / name for name in _FILES_THAT_NAME_CODE]
    for path in sorted(path for folder in (config_dir, *added) for path in folder.rglob("*.yaml")):
        text = path.read_text(encoding="utf-8", errors="replace")
        written = any(sign in text for sign in (*_KEYS_OF_CODE, "\\"))  # a backslash may spell one of them
        if written and path not in own and (key := _key_of_code(text)):
            raise InputError(
                f"{path.absolute()}: the key {key!r} names code to run, which a configuration file must not: remove it"
            )


def _key_of_code(text: str) -> str | None:
    """The first key of a YAML text by which Hydra or Python's logging builds objects; None if there is none."""
    try:
        remaining: list[Any] = [OmegaConf.to_container(OmegaConf.create(text))]
    except (OmegaConfBaseException, YAMLError):
        return None  # Hydra reports it, if the file is used
    while remaining:
        node = remaining.pop()
        if isinstance(node, dict):
            found = [str(key) for key in node if str(key).strip() in _KEYS_OF_CODE]
            if found:
                return found[0]
            remaining += node.values()
        elif isinstance(node, list):
            remaining += node
    return None


def check_processes(config: dict[str, Any]) -> None:
    """Raise InputError for several processes in a run that is not the fit of a stream."""
    if world_size() == 1:
        return
    if not config["engine"]["stream"]:
        raise InputError("several processes need a stream: set engine.stream=true, or start one process")
    if (runner := config["runner"]["name"]) != "fit":
        raise InputError(
            f"several processes need runner=fit, found runner={runner}; start one process for other runners"
        )

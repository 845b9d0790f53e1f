"""Checks of a configuration that involve several components."""

from __future__ import annotations

from typing import Any

import orbit
from orbit.core.errors import InputError, choose_from
from orbit.core.params import parameters
from orbit.core.ranks import world_size
from orbit.kernels import OperatorKernel
from orbit.learners.base import Learner
from orbit.learners.protocols import Epochs
from orbit.learners.streaming import check_streams

# A grid may change the model, never the data that it is evaluated on.
_SELECTABLE = (
    *("representation", "group", "distribution", "orbit", "encoder", "kernel"),
    *("frequencies", "landmarks", "approx", "hyper", "learner"),
)


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
        is_guess = task == "classification" and config["dataset"].get("task") == "auto"
        raise InputError(
            f"learner={name} is not for {task}, which dataset={config['dataset']['name']} needs: "
            f"choose from {', '.join(known)}{', or dataset.task=regression if the targets are numbers' * is_guess}"
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


def check_grid(config: dict[str, Any], points: list[dict[str, Any]]) -> None:
    """Raise InputError unless selection and runner fit each other, and every key of the grid may be selected."""
    selection, runner = config["selection"]["name"], config["runner"]["name"]
    runner_class: Any = orbit.get("runner", runner)
    if runner_class.validates:
        _check_validation(runner, selection, points)
    elif selection != "none" and not points:
        raise InputError(
            f"selection.grid: selection={selection} needs keys with values, e.g. {{kernel.lengthscale: [1, 2]}}"
        )
    if selection != "none" and config["engine"]["stream"]:
        raise InputError(f"engine.stream=true: selection={selection} needs all features at once; use selection=none")
    for key in points[0] if points else ():
        section = key.partition(".")[0]
        if section not in _SELECTABLE:
            raise InputError(f"selection.grid: {key} cannot be selected{choose_from(section, _SELECTABLE)}")


def _check_validation(runner: str, selection: str, points: list[dict[str, Any]]) -> None:
    if selection == "none":
        raise InputError(f"runner={runner} needs validation points: choose selection=k_fold, hold_out or given")
    if points:
        raise InputError(f"selection.grid: runner={runner} scores one setting; leave the grid out")


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
    if not any(issubclass(cls, Epochs) for cls in classes):
        raise InputError(
            f"augmentation={name}: learner={learner} makes only one pass over the points; "
            "choose learner=adagrad or learner=network"
        )


def check_stream(config: dict[str, Any], learner: Learner) -> None:
    """Raise InputError for a stream with a learner that cannot learn from batches, or not in the order of the data."""
    if not config["engine"]["stream"]:
        return
    check_streams(learner)
    dataset: Any = orbit.get("dataset", config["dataset"]["name"])
    if dataset.in_order and isinstance(learner, Epochs):
        raise InputError(
            f"learner={learner.name} takes points in random order, a stream of dataset={dataset.name} has that of its "
            "parts: choose learner=ridge"
        )


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

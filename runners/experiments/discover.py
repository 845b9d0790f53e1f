"""runner=discover: which group leaves the answer unchanged."""

from __future__ import annotations

import hashlib
import json
import logging
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from omegaconf import OmegaConf

import orbit
from orbit.core import distributed
from orbit.core.errors import InputError
from orbit.core.files import write_whole
from orbit.core.params import PositiveInt
from orbit.data import Dataset
from orbit.discovery import Discovery, discover
from orbit.discovery.result import UNEXPLAINED, simplest
from orbit.discovery.sections import brief, section
from orbit.encoders import Encoder
from orbit.registry import register
from runners.config.plan import Plan
from runners.job.job import Job
from runners.job.runner import Runner
from runners.measure.tables import number

log = logging.getLogger(__name__)

# The experiment file in a run folder, and the file of a finding in the folder of a sweep.
_EXPERIMENT = "conf/experiment/discovered.yaml"
_SWEEP_FILE = ".group-{}.json"

# Training points that groups are compared on: by this runner unless the user says otherwise, and for data that name no
# group. There, points with many numbers are fewer, but at least the last, so that two cores take about 15 s.
_POINTS, _FEW_POINTS, _FEWEST_POINTS = 500, 400, 100
_FEW_NUMBERS = 1_000_000

_GLOBAL = "the encoder takes means over all places, so that moves matter little; runner=discover compares groups"
_HINT = " Groups are not compared; runner=discover does."
_TOLERANCE = ", not clearly lower, so that the simplest is taken"
_NO_GROUP: dict[str, dict[str, Any]] = {"group": {"name": "identity"}}


@register("runner", "discover")
class Discover(Runner):
    """Which group leaves the answer unchanged? All groups that act on the points, compared on training points.

    The error of each is that of least squares with a kernel averaged over its orbit, for points left out of the fit.
    A group helps if the error is lower than without, by more than 5 % and by a paired t test, after Holm's correction
    for all that are tried. The group, approximation, kernel and learner of the command line are not used.

    Parameters
    ----------
    n_points : int >= 10
        Of more training points a random sample is used.
    refine : bool
        Try three widths of each group's distribution, refine those of the best, and try products of groups.
    """

    takes_group: ClassVar[bool] = False

    def __init__(self, n_points: PositiveInt = _POINTS, refine: bool = True) -> None:
        self.n_points = n_points
        self.refine = refine

    def run(self, job: Job) -> None:
        data = job.load()
        with job.stage("discover"):
            found = discovered(job.plan, data, self.n_points, self.refine)
        table = found.table
        rows = [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in table.to_numpy().tolist()]
        job.log_table("discover", [*table], rows)
        job.log_text("discover.csv", table.to_csv(index=False))
        job.log_figure("discover", found.plot)
        job.log_metrics({"discover/error": found.best.error, "discover/error_without": found.identity.error})
        job.log_text(_EXPERIMENT, experiment(found))
        job.row("data", data.describe())
        job.row("found", found.sentence)
        job.row("use it by", command_line(found.settings))
        folder = job.folder.path.absolute() / Path(_EXPERIMENT).parts[0]
        job.row("or by", f"--config-dir {shlex.quote(str(folder))} experiment={Path(_EXPERIMENT).stem}")


def discovered(
    plan: Plan, data: Dataset, n_points: int, refine: bool, groups: list[orbit.groups.Group] | None = None
) -> Discovery:
    """Groups compared on at most ``n_points`` training points of a plan's data, in its representation and encoder.

    Polar samples, which only turns move, are replaced by the pixels.
    """
    n, seed = len(data.X_train), plan.seed("selection")
    rows = np.sort(np.random.default_rng(seed).choice(n, min(n, n_points), replace=False))
    if plan.config["representation"]["name"] == "polar":
        plan = plan.variant({"representation": {"name": "unit_norm"}, "group": {"name": "identity"}})
    return discover(
        plan.engine().cast(plan.component("representation").fit_transform(data.X_train[rows])),
        data.y_train[rows],
        task=data.task,
        clusters=None if data.clusters is None else data.clusters[rows],
        encoder=plan.component("encoder"),
        groups=groups,
        max_points=n_points,
        refine=refine,
        random_state=seed,
        progress=plan.config["engine"]["progress"],
    )


def with_discovered_settings(plan: Plan, sweep: Path | None) -> tuple[Plan, tuple[str, str] | None]:
    """A plan with the settings that its training points decide; ``group`` or ``encoder`` and a sentence, or None.

    The group is decided if neither the user nor the data set names one, and what the encoder leaves open in any case.
    The jobs of a sweep with the same split of the data decide once: the first writes it into the sweep's folder.
    """
    runner: Any = orbit.get("runner", plan.config["runner"]["name"])
    is_open = plan.has_open_group or type(plan.component("encoder")).compared is not Encoder.compared
    if not (is_open and runner.uses_data and runner.takes_group):
        return plan, None
    plan.component("runner").plans(plan)  # a wrong row of a table is reported before groups are compared
    parts = {kind: plan.config[kind] for kind in ("dataset", "representation", "encoder", "seed")}
    parts["group"] = plan.composed["group"]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]
    written = None if sweep is None else sweep / _SWEEP_FILE.format(digest)
    if written is not None and written.exists():
        settings, sentence = json.loads(written.read_text())
    else:
        settings, sentence = distributed.gather(_finding(plan))[0]
    if written is not None:
        write_whole(written, json.dumps([settings, sentence]))
    if sentence is None:
        return plan, None
    kind = "group" if plan.has_open_group else "encoder"
    log.info("%s=%s: %s", kind, parts[kind]["name"], sentence)
    return plan.variant(settings), (kind, sentence)


def _finding(plan: Plan) -> tuple[dict[str, Any], str | None]:
    """The sections that the training points decide, and a sentence; no sentence if nothing is open."""
    loader, seed = plan.component("dataset"), plan.seed("dataset")
    data = loader.load(seed, lazy=True) if plan.config["engine"]["stream"] else plan.load()
    shape = data.X_train.shape[1:]
    encoder, *others = plan.component("encoder").compared(shape)
    comes_first = encoder.is_global(shape) or not plan.has_open_group
    settings, sentence = _encoder(plan, data) if others and comes_first else ({}, None)
    if not plan.has_open_group:
        return settings, sentence + _HINT if sentence and plan.has_default_identity else sentence
    plan = plan.variant(settings)
    if comes_first and plan.component("encoder").is_global(shape):
        return settings | _NO_GROUP, f"no group is compared, because {_GLOBAL}" + (f"; {sentence}" if sentence else "")
    try:
        found = discovered(plan, data, _few(data), refine=False)
    except InputError as error:
        return _NO_GROUP, f"no group is compared: {error}"
    return found.settings, found.sentence


def _few(data: Dataset) -> int:
    """The number of training points for a comparison before a fit."""
    return min(_FEW_POINTS, max(_FEWEST_POINTS, _FEW_NUMBERS // int(np.prod(data.X_train.shape[1:]))))


def _encoder(plan: Plan, data: Dataset) -> tuple[dict[str, Any], str | None]:
    """The section of the encoder with the lowest error, with the group of the plan or without, and a sentence."""
    groups = [] if plan.config["group"]["name"] == "identity" else [plan.component("group")]
    try:
        found = discovered(plan, data, _few(data), refine=False, groups=groups)
    except InputError as error:  # too few points
        return {}, f"kept, because its settings are not compared: {error}."
    best = simplest(found.trials)
    chosen, name = best.encoder or found.encoder, lambda trial: brief(section(trial.encoder or found.encoder))
    other = next(trial for trial in found.trials if (trial.encoder or found.encoder) is not chosen)
    errors = f"the {UNEXPLAINED}, is {best.error:.3g} with it, {other.error:.3g} with {name(other)}"
    return {"encoder": section(chosen)}, f"{name(best)}: {errors}{_TOLERANCE if other.error < best.error else ''}."


def command_line(settings: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections as arguments of a command line.

    >>> command_line({"group": {"name": "cyclic", "axis": 0}, "distribution": {"name": "haar"}})
    'group=cyclic group.axis=0 distribution=haar'
    """
    pairs = [(kind, key, value) for kind, section in settings.items() for key, value in section.items()]
    words = [f"{kind}={value}" if key == "name" else f"{kind}.{key}={_hydra(value)}" for kind, key, value in pairs]
    return " ".join(map(shlex.quote, words))


def experiment(found: Discovery) -> str:
    """An experiment file with the best orbit."""
    sections = {kind: dict(section) for kind, section in found.settings.items()}
    chosen = [{f"override /{kind}": section.pop("name")} for kind, section in sections.items()]
    values = {kind: section for kind, section in sections.items() if section}
    text = OmegaConf.to_yaml(OmegaConf.create({"defaults": chosen, **values}))
    return f"# @package _global_\n# {found.sentence}\n{text}"


def _hydra(value: Any) -> str:
    """A value in Hydra's grammar of overrides.

    >>> _hydra([{"name": "rotation"}, {"name": "cyclic", "axis": 0}]), _hydra(True)
    ('[{name:rotation},{name:cyclic,axis:0}]', 'true')
    """
    if isinstance(value, list):
        return f"[{','.join(map(_hydra, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_hydra(item)}" for key, item in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else str(value)

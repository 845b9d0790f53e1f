"""runner=compare: the configured fit and the same one without its group, with a paired test."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from orbit.core.errors import InputError
from orbit.core.progress import Progress
from orbit.registry import register
from runners.config.plan import Plan
from runners.experiments.estimate import estimated
from runners.experiments.fit import record_selection
from runners.experiments.fitting import Fitted, fit_and_score
from runners.experiments.references import log_references, references, what_next
from runners.experiments.trials import settings
from runners.experiments.without_group import without_group
from runners.job.estimate import Estimate
from runners.job.job import Job, Stopwatch
from runners.job.runner import Runner
from runners.measure import figures
from runners.measure.metrics import METRICS, evaluate, paired_test


@register("runner", "compare")
class Compare(Runner):
    """Does the group help? The configured fit and the same with ``group=identity``, on the same points.

    Both predict the test points and are compared there: by McNemar's test for classes,
    by the paired t test and Wilcoxon's test of squared errors for numbers. The table has the
    references of ``runner=fit`` too: two models that are not better than the first of them are not
    compared. A selection of settings is made for each of the two.

    Parameters
    ----------
    repeats : dict or None
        One key with its values, e.g. ``{dataset.fold: [0, 1, 2]}`` or ``{seed: [0, 1]}``:
        the comparison is made, and tested, for each of them.
    """

    reuses_features: ClassVar[bool] = True

    def __init__(self, repeats: dict[str, Any] | None = None) -> None:
        self.repeats = repeats

    def check(self) -> None:
        super().check()
        settings(self.repeats, "runner.repeats")

    def estimates(self, plan: Plan) -> list[Estimate]:
        group, repeats = plan.config["group"]["name"], len(settings(self.repeats, "runner.repeats"))
        pair = {f"group={group}": plan, "group=identity": without_group(plan)}
        return estimated({label: [(one, repeats)] for label, one in pair.items()})

    def plans(self, base: Plan) -> list[Plan]:
        """The plans of all repeats, with the group and without."""
        return [plan for pair in self._pairs(base) for plan in pair.values()]

    def _pairs(self, base: Plan) -> list[dict[str, Plan]]:
        group = base.config["group"]["name"]
        if group == "identity":
            raise InputError("group=identity: runner=compare compares another group with it; choose one")
        plans = [base.variant(repeat) for repeat in settings(self.repeats, "runner.repeats")]
        return [{f"group={group}": plan, "group=identity": without_group(plan)} for plan in plans]

    def run(self, job: Job) -> None:
        group, repeats = job.plan.config["group"]["name"], settings(self.repeats, "runner.repeats")
        pairs = self._pairs(job.plan)
        found: list[list[dict[str, Any]]] = []
        with job.plan.progress(2 * len(pairs), "compare") as progress:
            for repeat, pair in zip(repeats, pairs, strict=True):
                at = ", ".join(f"{key}={value}" for key, value in repeat.items())
                found.append(_compare(job, pair, at, progress))
        cells = [[v if isinstance(v, str) else f"{v:.4g}" for v in row.values()] for rows in found for row in rows]
        header = list(found[0][0])
        main = header[1]
        job.log_table("compare", header, cells)
        values = {label: [rows[i][main] for rows in found] for i, label in enumerate(pairs[0])}
        job.log_metrics({f"test/{main}": float(np.mean(values[f"group={group}"]))})
        job.log_figure("compare", figures.compared, values, f"test {main}")


def _compare(job: Job, pair: dict[str, Plan], at: str, progress: Progress) -> list[dict[str, Any]]:
    """Fit both plans of a pair, test the difference, and add rows of references. ``at`` names the repeat."""
    data = job.load(pair["group=identity"])
    fits: list[Fitted] = []
    seconds = []
    for role, plan in zip(("with_group", "without_group"), pair.values(), strict=True):
        clock = Stopwatch()
        with clock.stage("total"):
            fitted = fit_and_score(plan, data, clock)
        if fitted.selected:
            record_selection(job, fitted.selected, f"{role} {at}".strip())
        job.log_metrics({f"{at}/{role}/{key}".lstrip("/"): v for key, v in (fitted.metrics | clock.metrics).items()})
        fits.append(fitted)
        seconds.append(clock.metrics["time/total_s"])
        progress.step()
    tested = paired_test(data.task, data.y_test, *(fitted.predicted for fitted in fits))
    job.log_metrics({f"{at}/paired/{key}".lstrip("/"): value for key, value in tested.items()})
    text = ", ".join(f"{key.replace('_', ' ')} {value:.3g}" for key, value in tested.items())
    beside = references(pair["group=identity"], data, fits[1])
    log_references(job, beside, data, at)
    if not any(beside[0].is_beaten(data, fitted.predicted) for fitted in fits):
        text = f"neither is better than the {beside[0].name}"
        job.row("warning", f"{at}: {text}; try {what_next(job, data, fits[1])}".removeprefix(": "))

    def row(label: str, metrics: dict[str, float], time: str = "", said: str = "") -> dict[str, Any]:
        shown = {name: metrics[name] for name in METRICS[data.task] if name in metrics}
        return {"": f"{label}, {at}" if at else label, **shown, "seconds": time, "paired test": said}

    tests = [evaluate(data.task, data.y_test, fitted.predicted) for fitted in fits]
    rows = [row(*made) for made in zip(pair, tests, (f"{each:.1f}" for each in seconds), (text, ""), strict=True)]
    return rows + [row(reference.name, reference.metrics(data)) for reference in beside]

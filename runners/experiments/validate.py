"""runner=validate: the configured settings, scored on validation points."""

from __future__ import annotations

import functools
import json
import logging
import os
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from orbit.registry import register
from runners.config.plan import Plan
from runners.config.program import PRUNED, TRIAL_ENV
from runners.experiments.estimate import Measurements
from runners.experiments.pipeline import all_answers, evaluated
from runners.experiments.selection import fitted_to, metric_of
from runners.job.estimate import Estimate
from runners.job.job import Job
from runners.job.memory import check_fit
from runners.job.runner import Runner
from runners.measure.metrics import METRICS, METRICS_OF_MORE, score

log = logging.getLogger(__name__)


@register("runner", "validate")
class Validate(Runner):
    """Scores the settings on the validation parts of ``selection``; test points are not used.

    The metric is ``validation/`` and ``selection.metric``: the mean over the parts, each predicted by a fit to the
    other training points. It is what ``hydra/sweeper=optuna`` searches by. The summary also has the means of all other
    metrics of a fit, such as ``roc_auc``; of parts where one is not defined, such as those of one class, it takes none.
    """

    validates: ClassVar[bool] = True
    reuses_features: ClassVar[bool] = True

    def estimates(self, plan: Plan) -> list[Estimate]:
        return [Measurements().estimate_validation(plan, plan.load())]

    def run(self, job: Job) -> None:
        data = job.load()
        selection = job.plan.component("selection")
        metric, splits = metric_of(selection.metric, data.task), selection.splits(data, job.plan.seed("selection"))
        check_fit(job.plan, data)
        scores: list[float] = []
        found: list[dict[str, float]] = []
        with job.plan.progress(len(splits), "validation") as progress:
            for fit, validation in splits:
                part = data.split(fit, validation)
                model = fitted_to(job.plan, part)
                answers = all_answers(model, part.X_test, job.plan.engine())
                found.append(evaluated(model[-1], part, answers))
                scores.append(score(found[-1], metric))
                job.log_step(f"validation/part/{metric}", scores[-1])
                progress.step()
                if len(scores) < len(splits) and is_pruned(len(scores), float(np.mean(scores))):
                    job.record.params["pruned_after_part"] = len(scores)
                    log.info("ended after part %d of %d, worse than most trials", len(scores), len(splits))
                    return
        mean, deviation = float(np.mean(scores)), float(np.std(scores))
        job.log_metrics({f"validation/{metric}": mean, f"validation/{metric}_std": deviation})
        job.row(f"validation {metric}", f"{mean:.4g} ± {deviation:.2g} over {len(scores)} parts")
        others = pd.DataFrame(found).mean()
        # the main metric of a run is the first of several that it has
        kept = (*METRICS[data.task], *(METRICS_OF_MORE[data.task] if metric not in METRICS[data.task] else ()))
        job.log_metrics({f"validation/{name}": value for name, value in others.items() if name not in kept})
        job.row("validation", ", ".join(f"{name} {value:.4g}" for name, value in others.items() if name != metric))


def is_pruned(step: int, value: float) -> bool:
    """Report the value after a step, and return whether it is worse than the median of other trials at that step.

    False for a job that is no trial of a search with pruning.
    """
    if TRIAL_ENV not in os.environ:
        return False
    import optuna

    url, name, number = json.loads(os.environ[TRIAL_ENV])
    storage = _storage(url)
    trial = storage.get_trial_id_from_study_id_trial_number(storage.get_study_id_from_name(name), number)
    storage.set_trial_intermediate_value(trial, step, value)
    study = optuna.load_study(study_name=name, storage=storage)
    pruned = bool(optuna.pruners.MedianPruner(n_startup_trials=4).prune(study, storage.get_trial(trial)))
    if pruned:
        storage.set_trial_user_attr(trial, PRUNED, True)
    return pruned


@functools.lru_cache(maxsize=1)
def _storage(url: str) -> Any:
    import optuna

    return optuna.storages.RDBStorage(url)

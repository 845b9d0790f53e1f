"""The result of a search: the best trial, the importance of each setting, and a figure of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from runners.config.names import key_of
from runners.config.program import command
from runners.measure import figures
from runners.measure.tables import markdown_table
from runners.tracking.record import SweepFolder


def write_report(study: Any, metric: str, fixed: list[str], hydra: Any) -> None:
    """Write the result of a study, if a trial has finished, into the folder of the sweep.

    Parameters
    ----------
    study : optuna.study.Study
    metric : str
    fixed : list of str
        The settings that all trials have.
    hydra : DictConfig
        Hydra's section of the configuration of the sweep.
    """
    finished = study.get_trials(states=[TrialState.COMPLETE])
    if not finished:
        return
    folder = SweepFolder(Path(hydra.sweep.dir))
    best, importance = study.best_trial, importances(study)
    counts = {state.name.lower(): len(study.get_trials(states=[state])) for state in TrialState}
    states = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    settings = [f"{key}={value}" for key, value in best.params.items()]
    kept = [override for override in fixed if _section(override) not in ("runner", "selection")]
    to_fit = command(hydra, [*kept, *settings, "runner=fit", "selection=none"])
    rows = [[key, str(best.params[key]), f"{importance[key]:.2f}" if key in importance else ""] for key in best.params]
    table = markdown_table(["setting", "best value", "importance"], rows)
    text = (
        f"Best {metric} of study {study.study_name} ({states}): {best.value:.4g}, job {best.number}.\n\n{table}\n\n"
        f"To fit it to all training points and see its test points:\n\n    {to_fit}\n"
    )
    metrics = {f"best/{metric}": best.value} | {f"importance/{key}": value for key, value in importance.items()}
    folder.write_search(text, metrics)
    larger_is_better = study.direction.name == "MAXIMIZE"
    values = {trial.number: trial.value for trial in finished}
    folder.draw("search", figures.search_progress, values, importance, metric, larger_is_better)


def importances(study: Any) -> dict[str, float]:
    """The share of each setting in the variance of the metric, by functional ANOVA; empty if there is too little."""
    try:
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))
    except (RuntimeError, ValueError):  # fewer than two trials, or all with the same value
        return {}


def _section(override: str) -> str:
    return key_of(override).partition(".")[0]

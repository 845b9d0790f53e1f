"""The trial of a search that a job is: its values after each step, and whether it is worth going on."""

from __future__ import annotations

import functools
import json
import os
from typing import Any

from runners.config.program import TRIAL_ENV  # a JSON list: storage and name of the study, and the number of the trial

PRUNED = "pruned"


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

"""``runner=archive``: accuracy and seconds on published sets of series, beside the classifiers that are usual there."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from benchmarks.machine import describe_machine
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.data import Dataset
from orbit.registry import register
from runners.config.plan import Plan
from runners.experiments.trials import Trials
from runners.job.job import Job
from runners.job.runner import Runner, these
from runners.measure.tables import markdown_table

Comparator = Literal["minirocket", "multirocket", "dtw"]

# Names in tables, of the model of the plan first.
_OWN = "orbit"
_NAMES = {"minirocket": "MiniRocket", "multirocket": "MultiRocket", "dtw": "1-NN DTW"}

# Series of each class from which a comparator is fitted once before it is timed, because it compiles itself.
_WARM_UP = 2


@register("runner", "archive")
@dataclass(eq=False, repr=False)
class Archive(Runner):
    """Test accuracy and processor seconds on data sets that aeon ships, by their published splits.

    The plan is fitted to each set with several seeds. Beside it are classifiers of aeon with their defaults: MiniRocket
    and MultiRocket (each with ridge regression) with the same seeds, and the nearest neighbour by dynamic time warping.
    Seconds are those of a fit and its predictions, without loading and compiling. Needs ``pip install aeon``.

    Parameters
    ----------
    sets : list of str
        Names of data sets, ``dataset.bundled``.
    comparators : list of {"minirocket", "multirocket", "dtw"}, or None
        The classifiers of aeon; None is none.
    seeds : int >= 1
        Number of seeds, from that of the run on.
    """

    takes_group = False

    sets: list[str] = these("GunPoint")
    comparators: list[Comparator] | None = None
    seeds: PositiveInt = 5

    def plans(self, base: Plan) -> list[Plan]:
        if base.config["dataset"]["name"] != "series":
            raise InputError("runner=archive needs dataset=series: choose experiment=bench_series")
        return [self._variant(base, name, base.config["seed"]) for name in self.sets]

    def run(self, job: Job) -> None:
        job.say(describe_machine(torch.get_num_threads()))
        base = job.plan.variant({"dataset.bundled": self.sets[0]})
        trials, found = Trials(job, "test/accuracy"), dict[str, dict[str, np.ndarray]]()
        seeds = [base.config["seed"] + i for i in range(self.seeds)]
        for name in self.sets:
            data = trials.data(self._variant(base, name, seeds[0]))
            own = np.array([self._fit(trials, self._variant(base, name, seed)) for seed in seeds])
            found[name] = {_OWN: own}
            for comparator in self.comparators or []:
                found[name][_NAMES[comparator]] = _measured(comparator, data, seeds)
            for model, values in found[name].items():
                accuracy, seconds = values.mean(0)
                job.log_metrics({f"{name}/{model}/accuracy": accuracy, f"{name}/{model}/cpu_s": seconds})
            job.log_text("archive.md", _table(found) + "\n")
        job.say(_table(found))
        trials.end()

    @staticmethod
    def _variant(base: Plan, name: str, seed: int) -> Plan:
        return base.variant({"dataset.bundled": name, "seed": seed})

    @staticmethod
    def _fit(trials: Trials, plan: Plan) -> tuple[float, float]:
        trials.data(plan)  # before the fit, so that it is not timed with the loading
        start = time.process_time()
        accuracy = trials.fit(plan)["test/accuracy"]
        return accuracy, time.process_time() - start


def _measured(comparator: Comparator, data: Dataset, seeds: list[int]) -> np.ndarray:
    """Accuracy and processor seconds with each seed, shape (seeds, 2); one row if none is random."""
    X, X_test = (_channels_first(part) for part in (data.X_train, data.X_test))
    few = np.concatenate([np.flatnonzero(data.y_train == label)[:_WARM_UP] for label in np.unique(data.y_train)])
    _classifier(comparator, 0).fit(X[few], data.y_train[few]).predict(X[few])
    rows = []
    for seed in seeds if comparator != "dtw" else seeds[:1]:
        start = time.process_time()
        predicted = _classifier(comparator, seed).fit(X, data.y_train).predict(X_test)
        rows.append((float((predicted == data.y_test).mean()), time.process_time() - start))
    return np.array(rows)


def _classifier(comparator: Comparator, seed: int) -> Any:
    from aeon.classification.convolution_based import MiniRocketClassifier, MultiRocketClassifier
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    if comparator == "dtw":
        return KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1)
    return {"minirocket": MiniRocketClassifier, "multirocket": MultiRocketClassifier}[comparator](random_state=seed)


def _channels_first(X: np.ndarray) -> np.ndarray:
    """Series as aeon takes them, float64, shape (n, channels, length)."""
    return np.ascontiguousarray(np.moveaxis(X.reshape(*X.shape[:2], -1), 2, 1), dtype=np.float64)


def _table(found: dict[str, dict[str, np.ndarray]]) -> str:
    """Mean accuracy and seconds of each model on each set, and over all sets."""
    models = list(next(iter(found.values())))
    means = {name: np.array([values[model].mean(0) for model in models]) for name, values in found.items()}
    means["mean"] = np.mean([*means.values()], axis=0)
    rows = [
        [name, *(cell for accuracy, seconds in values for cell in (f"{accuracy:.1%}", f"{seconds:.2g} s"))]
        for name, values in means.items()
    ]
    return markdown_table(["set", *(head for model in models for head in (model, f"{model}, time"))], rows)

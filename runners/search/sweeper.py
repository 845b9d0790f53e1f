"""``hydra/sweeper=optuna``: the jobs of a sweep are the trials of a search by Optuna.

Every trial is a job, run by any launcher. The study is kept in ``outputs/search.db``; the same command continues it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
from filelock import FileLock, Timeout
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, open_dict, read_write
from optuna.distributions import distribution_to_json
from optuna.trial import TrialState

from orbit.core import interruption
from orbit.core.errors import InputError
from runners.config.names import key_of
from runners.config.program import PRUNED, TRIAL_ENV
from runners.config.settings import check_settings, resolved
from runners.measure.metrics import MAIN_METRICS, METRICS
from runners.search.report import write_report
from runners.search.space import first, others, split
from runners.tracking.record import Record, add_fingerprints, identity
from runners.tracking.sweep import nothing_left

log = logging.getLogger(__name__)


class OptunaSweeper(Sweeper):
    """Searches for the settings with the best validation metric, by Optuna's tree-structured Parzen estimator.

    See the settings of :class:`runners.config.schema.Search`.
    """

    def __init__(self, n_trials: int, n_jobs: int, prune: bool, params: dict[str, str] | None) -> None:
        self.n_trials, self.n_jobs, self.prune, self.params = n_trials, n_jobs, prune, params or {}
        self.config: Any = None
        self.hydra_context: Any = None
        self.launcher: Any = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        self.config, self.hydra_context = config, hydra_context
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> list[Sequence[JobReturn]]:
        """Run the trials that the study does not have yet."""
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        loader = self.hydra_context.config_loader
        given = set(map(key_of, arguments))
        preset = [f"{key}={sweep}" for key, sweep in self.params.items() if key not in given]
        space, fixed = split(OverridesParser.create(config_loader=loader), [*preset, *arguments])
        lowest = {key: first(key, distribution) for key, distribution in space.items()}
        for key, distribution in space.items():  # a choice that cannot be run would end the search when it is drawn
            for choice in others(key, distribution):
                check_settings(resolved(self._composed([*fixed, *(lowest | {key: choice}).values()])))
        metric, name = _objective(self._composed([*fixed, *lowest.values()]), space)
        outputs = Path(self.config.outputs).absolute()
        with _only_one(outputs, name), warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            url = f"sqlite:///{outputs / 'search.db'}"
            study = self._study(url, name, metric)
            try:
                return self._run(study, url, space, fixed)
            finally:
                write_report(study, metric, fixed, self.config.hydra)

    def _composed(self, overrides: list[str]) -> Any:
        """The configuration of a job, without Hydra's section, which has values for jobs only."""
        cfg = self.hydra_context.config_loader.load_sweep_config(self.config, overrides)
        with read_write(cfg), open_dict(cfg):
            del cfg["hydra"]
        return cfg

    def _study(self, url: str, name: str, metric: str) -> Any:
        """The study, with the trials of a process that died set to be run again."""
        study = optuna.create_study(
            study_name=name,
            storage=url,
            direction="maximize" if MAIN_METRICS[metric] else "minimize",
            load_if_exists=True,
        )
        # another seed than before, or its random draws would be those of earlier trials
        seed = int(self.config.seed) + len(study.trials)
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=self.n_jobs > 1)
        for trial in study.get_trials(states=[TrialState.RUNNING]):
            study.tell(trial.number, state=TrialState.FAIL)
            study.enqueue_trial(trial.params)
        return study

    def _run(self, study: Any, url: str, space: dict[str, Any], fixed: list[str]) -> list[Sequence[JobReturn]]:
        done = study.get_trials(states=[TrialState.COMPLETE, TrialState.PRUNED])
        missing, returned = self.n_trials - len(done), []
        log.info("search %s: %d trials finished, %d to run; %s", study.study_name, len(done), max(0, missing), url)
        if missing <= 0:
            nothing_left(f"the search is complete, with n_trials={self.n_trials}")
        while missing > 0:
            trials, repeated = _asked(study, space, min(self.n_jobs, missing))
            missing -= len(trials) + (repeated is not None)
            if trials:
                jobs = [[*fixed, *_settings(trial.params), *self._identity(study, url, trial)] for trial in trials]
                results = self.launcher.launch(jobs, initial_job_idx=trials[0].number)
                interruption.check()
                for trial, result in zip(trials, results, strict=True):
                    _tell(study, trial, result.return_value)
                returned.append(results)
            if repeated is not None:
                trial, earlier = repeated[0], study.trials[repeated[1]]
                study.tell(trial, earlier.value if earlier.state == TrialState.COMPLETE else None, earlier.state)
        return returned

    def _identity(self, study: Any, url: str, trial: Any) -> list[str]:
        if not self.prune:
            return []
        value = json.dumps([url, study.study_name, trial.number])
        quoted = value.replace("\\", "\\\\").replace("'", "\\'")
        return [f"+hydra.job.env_set.{TRIAL_ENV}='{quoted}'"]


def _objective(cfg: DictConfig, space: dict[str, Any]) -> tuple[str, str]:
    """The metric to optimise, and a name that is the same for the same search on the same data."""
    import runners.components  # noqa: F401
    from runners.config.plan import plan

    if (runner := cfg.runner.name) != "validate":
        raise InputError(
            f"runner={runner}: a search with it would choose settings by the test points; "
            "set runner=validate, whose metric is of training points alone"
        )
    made = plan(cfg)
    task, metric = made.component("dataset").known_task, made.config["selection"]["metric"]
    if task is None and metric is None:
        raise InputError(
            f"selection.metric: expected {' or '.join(names[0] for names in METRICS.values())}, because the task of "
            f"dataset={cfg.dataset.name} is not known before it is read"
        )
    record = Record("", config_hash=made.config_hash)
    add_fingerprints(record, made.fingerprints())
    described = {key: distribution_to_json(distribution) for key, distribution in space.items()}
    digest = hashlib.sha256(json.dumps([identity(record), described], sort_keys=True).encode()).hexdigest()[:12]
    return f"validation/{metric or METRICS[task][0]}", f"{cfg.dataset.name}-{digest}"


def _only_one(outputs: Path, name: str) -> Any:
    outputs.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(outputs / f".search-{name}.lock").acquire(timeout=0)
    except Timeout as error:
        raise InputError(f"hydra/sweeper=optuna: another process runs this search in {outputs}; wait for it") from error


def _asked(study: Any, space: dict[str, Any], most: int) -> tuple[list[Any], tuple[Any, int] | None]:
    """The next trials to run, whose numbers are consecutive, as are those of their jobs.

    The one after them is not run if an earlier one has its settings: it comes with the number of that one.
    """
    trials, complete = list[Any](), study.get_trials(states=[TrialState.COMPLETE])
    while len(trials) < most:
        trial = study.ask(space)
        same = next((other.number for other in (*complete, *trials) if other.params == trial.params), None)
        if same is not None:
            return trials, (trial, same)
        trials.append(trial)
    return trials, None


def _settings(params: dict[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in params.items()]


def _tell(study: Any, trial: Any, value: Any) -> None:
    if isinstance(value, float) and math.isfinite(value):
        study.tell(trial, value)
    elif study.trials[trial.number].user_attrs.get(PRUNED):
        study.tell(trial, state=TrialState.PRUNED)
    else:
        study.tell(trial, state=TrialState.FAIL)

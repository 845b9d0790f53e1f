"""hydra/sweeper=optuna and runner=validate: settings chosen by validation points alone, in studies that go on."""

import collections
import json
import shlex

import numpy as np
import psutil
import pytest
from command_line import SMALL, folders, mlflow_runs, write_experiment
from hydra.core.override_parser.overrides_parser import OverridesParser
from test_jobs import start, statuses, wait_for_job, wait_until_all_ended

from orbit.core.errors import InputError
from runners.config.program import TRIAL_ENV
from runners.experiments.validate import is_pruned
from runners.tracking.record import RunFolder, SweepFolder

VALIDATE = ("runner=validate", "selection=k_fold", "selection.folds=2", *SMALL[:-1], "engine.progress=false")
SEARCH = (
    "-m",
    "hydra/sweeper=optuna",
    *VALIDATE,
    "learner.regularization=tag(log,interval(1e-8,1))",
    "kernel=gaussian,matern",
)


class TestValidate:
    def test_scores_are_those_of_a_selection_of_one_setting(self, run, tmp_path):
        few = (*SMALL, "selection=k_fold", "selection.folds=2", "tracking.enabled=false")
        assert run(*VALIDATE, "tracking.enabled=false", "kernel.lengthscale=0.5", "run_name=a")[0] == 0
        assert run(*few, "selection.grid={kernel.lengthscale: [0.5]}", "run_name=b")[0] == 0
        validated, selected = map(RunFolder, folders(tmp_path))
        scores = json.loads((selected.path / "selection.json").read_text())["tried"][0]["scores"]
        assert validated.read_history() == {"validation/part/accuracy": scores}
        assert validated.read_metrics()["validation/accuracy"] == np.mean(scores)
        assert 0.5 < validated.read_metrics()["validation/roc_auc"] <= 1
        assert (
            "validation/balanced_accuracy" not in validated.read_metrics()
        )  # sweeps compare by the metric that is asked for
        assert not any(name.startswith("test/") for name in validated.read_metrics())


class TestSpace:
    @pytest.fixture
    def space(self):
        pytest.importorskip("optuna")
        from runners.search import space

        return space

    def test_has_ranges_logarithms_and_choices(self, space):
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        found, fixed = space.split(
            OverridesParser.create(),
            ["a=b,c", "n=range(10,50,step=10)", "m=tag(log,int(interval(1,64)))", "x=interval(0,1)", "y=3", "z=[1,2]"],
        )
        assert found == {
            "a": CategoricalDistribution(["b", "c"]),
            "n": IntDistribution(10, 40, step=10),
            "m": IntDistribution(1, 64, log=True),
            "x": FloatDistribution(0.0, 1.0),
        }
        assert fixed == ["y=3", "z=[1,2]"]
        assert [space.first(key, each) for key, each in found.items()] == ["a=b", "n=10", "m=1", "x=0.0"]

    @pytest.mark.parametrize(
        ("override", "expected"),
        [
            ("seed=0,1", "seed: a search over seeds finds the luckiest"),
            ("x=tag(log,interval(0,1))", "x: no such range to search"),
            ("x=range(5,1)", "x: no such range to search"),
            ("x=1", "nothing to search"),
        ],
    )
    def test_refuses(self, space, override, expected):
        with pytest.raises(InputError, match=expected):
            space.split(OverridesParser.create(), [override])


def test_a_trial_worse_than_the_median_is_pruned(tmp_path, monkeypatch):
    optuna = pytest.importorskip("optuna")
    monkeypatch.delenv(TRIAL_ENV, raising=False)
    assert not is_pruned(1, 0.0)
    url = f"sqlite:///{tmp_path / 'search.db'}"
    study = optuna.create_study(study_name="mine", storage=url, direction="maximize")
    for value in (0.5, 0.6, 0.7, 0.8):
        done = study.ask()
        done.report(value, 1)
        study.tell(done, value)
    for value, pruned in ((0.9, False), (0.55, True)):
        number = study.ask().number
        monkeypatch.setenv(TRIAL_ENV, json.dumps([url, "mine", number]))
        assert is_pruned(1, value) is pruned
        assert study.trials[number].intermediate_values == {1: value}
        assert study.trials[number].user_attrs == ({"pruned": True} if pruned else {})


class TestSearch:
    @pytest.fixture(autouse=True)
    def _optuna(self):
        pytest.importorskip("optuna")

    def test_by_the_test_points_is_refused(self, run):
        err = run.refused("-m", "hydra/sweeper=optuna", *SMALL, "kernel.lengthscale=interval(0.1,1)")
        assert (
            "error: runner=fit: a search with it would choose settings by the test points; set runner=validate" in err
        )

    def test_reads_its_space_from_a_configuration_file(self, run, tmp_path):
        sweeper = "defaults:\n  - override /hydra/sweeper: optuna\nhydra:\n  sweeper:\n    params:\n"
        write_experiment(tmp_path, f"{sweeper}      seed: range(0,5)\n")
        err = run.refused("--config-dir", str(tmp_path), "-m", "experiment=mine")
        assert err.splitlines()[-1] == "error: seed: a search over seeds finds the luckiest; give one seed"

    def test_the_same_command_goes_on(self, run, tmp_path):
        """Two trials; then one whose process died is run again with the same settings, and a new one."""
        import optuna

        assert run(*SEARCH, "hydra.sweeper.n_trials=2")[0] == 0
        storage = f"sqlite:///{tmp_path / 'out' / 'search.db'}"
        study = optuna.load_study(study_name=None, storage=storage)
        died = study.ask(study.trials[0].distributions).params
        out = run.ok(*SEARCH, "hydra.sweeper.n_trials=4")
        assert "2 trials finished, 2 to run" in run.said
        assert [t.state.name for t in study.trials] == ["COMPLETE", "COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
        assert study.trials[3].params == died

        logged = mlflow_runs(tmp_path)
        last, first = (r for r in logged if "job" not in r.data.tags)
        jobs = {r.data.tags["job"]: r for r in logged if "job" in r.data.tags}
        assert {number: r.data.tags["mlflow.parentRunId"] for number, r in jobs.items()} == {
            **dict.fromkeys(("0", "1"), first.info.run_id),
            **dict.fromkeys(("3", "4"), last.info.run_id),
        }
        values = {int(number): r.data.metrics["validation/accuracy"] for number, r in jobs.items()}
        assert values == {t.number: t.value for t in study.trials if t.value is not None}
        metrics = last.data.metrics
        assert metrics.pop("best/validation/accuracy") == max(values.values())
        assert set(metrics) == {"importance/learner.regularization", "importance/kernel"}
        assert sum(metrics.values()) == pytest.approx(1)
        best = study.best_trial
        note = last.data.tags["mlflow.note.content"]
        assert f"Best validation/accuracy of study {study.study_name} (4 complete, 1 fail): {best.value:.4g}" in note
        assert f"kernel={best.params['kernel']} runner=fit selection=none" in note
        assert "To fit it to all training points" in out
        (job,) = (tmp_path / "out").glob("*/*-sweep*/4-*")
        assert {path.name for path in (job.parent / "figures").iterdir()} == {"search.png", "summary.png"}

        out = run.ok(*SEARCH, "hydra.sweeper.n_trials=4")
        assert "the search is complete, with n_trials=4" in out
        assert "Best validation/accuracy of study" in out.partition("the search is complete")[2]

    def test_that_is_refused_leaves_no_trace(self, run, tmp_path):
        for setting, message in (
            ("kernel=gaussian,matem", "error: kernel=matem: no such kernel; did you mean 'matern'?"),
            ("approx.n_components=interval(4,8)", "found 4.0"),
        ):
            assert message in run.refused("-m", "hydra/sweeper=optuna", *VALIDATE, setting)
            assert run.out == ""
        assert mlflow_runs(tmp_path) == []
        kept = tmp_path / "kept" / "notes.txt"
        kept.parent.mkdir()
        kept.touch()
        command = ("-m", "hydra/sweeper=optuna", *VALIDATE, "kernel=gaussian,matem")
        assert run(*command, f"hydra.sweep.dir={kept.parent}")[0] == 2
        assert kept.is_file()
        assert list((tmp_path / "out").glob("*/*-sweep")) == list((tmp_path / "out" / "pending").glob("*.json")) == []

    @pytest.mark.parametrize("n_jobs", [1, 4])
    def test_equal_settings_are_run_once(self, run, n_jobs):
        command = ("-m", "hydra/sweeper=optuna", *VALIDATE, "approx.n_components=4,5", "hydra.sweeper.n_trials=6")
        out = run.ok(*command, f"hydra.sweeper.n_jobs={n_jobs}")
        assert "(6 complete)" in out
        assert "2 of 2 jobs finished" in out

    def test_the_commands_of_the_search_and_of_its_jobs_repeat_them(self, run, tmp_path):
        write_experiment(tmp_path / "mine", "approx: {n_components: 6}\n")
        options = ("--config-dir", str(tmp_path / "mine"), "-m", "hydra/sweeper=optuna", "hydra.sweeper.n_trials=2")
        few = [setting for setting in VALIDATE if not setting.startswith("approx.")]
        out = run.ok(*options, "experiment=mine", *few, "learner.regularization=tag(log,interval(1e-8,1))")
        assert f"python run.py --config-dir {tmp_path / 'mine'} experiment=mine" in out  # to fit the best settings
        (sweep,) = (SweepFolder(path.parent).read_record() for path in (tmp_path / "out").glob("*/*-sweep/sweep.json"))
        job = RunFolder(folders(tmp_path)[0])
        program, file, *words = shlex.split(sweep.command)
        assert (program, file) == ("python", "run.py")
        assert "the search is complete, with n_trials=2" in run.ok(*words)

        again = run.finished(*shlex.split(job.read_record().command)[2:])
        assert RunFolder(again).read_record().config_hash == job.read_record().config_hash
        assert RunFolder(again).read_metrics()["validation/accuracy"] == job.read_metrics()["validation/accuracy"]


@pytest.mark.slow
def test_a_search_that_is_killed_goes_on(tmp_path):
    """A search in parallel processes on a new database, killed during a trial: every trial is counted once."""
    optuna = pytest.importorskip("optuna")
    command = (*SEARCH, "hydra.sweeper.n_trials=6", "hydra.sweeper.n_jobs=2", "hydra/launcher=joblib")
    search = start(tmp_path, *command)
    wait_for_job(tmp_path, search)
    workers = psutil.Process(search.pid).children(recursive=True)
    search.kill()
    wait_until_all_ended(search, workers, seconds=60)
    again = start(tmp_path, *command)
    _, err = again.communicate(timeout=400)
    assert again.returncode == 0, err
    study = optuna.load_study(study_name=None, storage=f"sqlite:///{tmp_path / 'out' / 'search.db'}")
    states = collections.Counter(t.state.name for t in study.trials)
    assert states["COMPLETE"] + states["PRUNED"] == 6
    assert set(states) <= {"COMPLETE", "PRUNED", "FAIL"}
    assert "RUNNING" not in statuses(tmp_path)
    values = {int(r.data.tags["job"]): r.data.metrics.get("validation/accuracy") for r in finished_jobs(tmp_path)}
    assert values == {t.number: t.value for t in study.trials if t.state.name != "FAIL"}


def finished_jobs(tmp_path) -> list:
    return [r for r in mlflow_runs(tmp_path) if "job" in r.data.tags and r.info.status == "FINISHED"]

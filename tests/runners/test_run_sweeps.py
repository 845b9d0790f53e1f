"""Sweeps and failures of the command line, in this process: runs in MLflow, exit codes and messages."""

import json
import re
import warnings
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from command_line import SMALL, folders, mlflow_client, mlflow_runs
from sklearn.linear_model import LogisticRegression

import runners.experiments.fit
from runners.tracking.mlflow import Tracker
from runners.tracking.record import RunFolder

ROOT = Path(__file__).parents[2]


class TestSweep:
    def test_the_folder_of_a_sweep_is_used_again_to_resume_it_only(self, run, tmp_path):
        sweep = ("-m", *SMALL, "tracking.enabled=false", f"hydra.sweep.dir={tmp_path / 'mine'}")
        assert run(*sweep, "seed=0,1")[0] == 0
        message = "error: hydra.sweep.dir: expected a folder without a sweep, or resume=true, found"
        assert message in run.refused(*sweep, "seed=2")
        assert len(list((tmp_path / "mine").glob("*/run.json"))) == 2
        assert run(*sweep, "seed=2", "resume=true")[0] == 0

    def test_children_under_one_parent(self, run, tmp_path):
        out = run.ok("-m", *SMALL, "group=identity,rotation", "seed=0,1")
        assert "4 of 4 jobs finished" in out
        logged = mlflow_runs(tmp_path)
        (parent,) = [r for r in logged if "job" not in r.data.tags]
        assert re.fullmatch(r"rotated_digits group,seed \d\d:\d\d", parent.info.run_name)
        children = [r for r in logged if r.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
        assert {r.info.run_name for r in children} == {
            f"rotated_digits-{group}-nystrom-s{seed}" for group in ("identity", "rotation") for seed in (0, 1)
        }
        assert all(r.info.status == "FINISHED" and "test/accuracy" in r.data.metrics for r in children)
        assert parent.info.status == "FINISHED"
        assert parent.data.params["group"] == "identity,rotation"
        best = max(r.data.metrics["test/accuracy"] for r in children)
        assert parent.data.metrics == {"best/test/accuracy": best}
        tags = parent.data.tags
        assert tags["mlflow.source.name"].startswith(f"python run.py -m {SMALL[0]} ")
        assert f"Best test/accuracy of 4 jobs, chosen by the test part: {best:.4g}" in tags["mlflow.note.content"]
        client = mlflow_client(tmp_path)
        files = {item.path for item in client.list_artifacts(parent.info.run_id)}
        assert {"summary.md", "summary.tex", "summary.json", "figures"} <= files
        tables = [line.strip("|").split("|") for line in out.splitlines() if line.startswith("| ")]
        means, tests, jobs = ([cell.strip() for cell in table] for table in tables if "test/accuracy" in str(table))
        assert means[:3] == ["group", "seeds", "test/accuracy"]
        assert tests[:4] == ["setting", "first", "second", "seeds"]
        assert jobs[2:5] == ["group", "seed", "test/accuracy"]

        experiment = client.get_experiment_by_name("orbit")
        assert experiment.tags["mlflow.experimentKind"] == "custom_model_development"
        ((key, view),) = ((k, v) for k, v in experiment.tags.items() if k.startswith("mlflow.sharedViewState."))
        assert f"viewStateShareKey={key.rpartition('.')[2]}" in tags["mlflow.note.content"]
        state = json.loads(json.loads(view)["state"])
        assert f"runs?workflowType=machine_learning&viewStateShareKey={key.rpartition('.')[2]}" in out
        assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`test/accuracy`", False)
        assert state["selectedColumns"] == ["metrics.`test/accuracy`", "params.`group.name`", "params.`seed`"]
        shown = client.search_runs([experiment.experiment_id], state["searchFilter"])
        assert {r.info.run_id for r in shown} == {r.info.run_id for r in (parent, *children)}

        (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "sweep.md").read_text(), re.DOTALL)
        names: dict = {}
        exec(code.replace("outputs/mlflow.db", "out/mlflow.db"), names)
        means = {group: names["table"]["mean", group][20] for group in ("identity", "rotation")}
        for group, mean in means.items():
            values = [r.data.metrics["test/accuracy"] for r in children if r.data.params["group.name"] == group]
            assert mean == pytest.approx(np.mean(values))
        assert (tmp_path / "accuracy.png").stat().st_size > 0

    def test_failing_job_does_not_stop_the_others(self, run, tmp_path):
        assert "1 of 2 jobs finished" in run.ends(1, "-m", *SMALL, "dataset.n_train=5000,50")
        assert "FAILED job 0" in run.err
        assert "dataset.n_train: expected at most 1000" in run.err
        logged = mlflow_runs(tmp_path)
        failed = [r for r in logged if r.data.tags.get("job") == "0"]
        assert [r.info.status for r in failed] == ["FAILED"]
        kept = mlflow_client(tmp_path).list_artifacts(failed[0].info.run_id)
        assert "traceback.txt" in {item.path for item in kept}
        (parent,) = [r for r in logged if "job" not in r.data.tags]
        assert parent.info.status == "FAILED"

    @pytest.mark.parametrize("launcher", ["basic", pytest.param("joblib", marks=pytest.mark.slow)])
    def test_a_sweep_whose_jobs_are_all_refused_is_refused(self, run, launcher):
        parallel = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=2"] if launcher == "joblib" else []
        err = run.refused("-m", *SMALL, "dataset.n_train=5000,6000", *parallel)
        assert "0 of 2 jobs finished" in run.out
        assert err.count("dataset.n_train: expected at most 1000") >= 2

    def test_a_sweep_whose_jobs_are_refused_or_defect_exits_1(self, run, monkeypatch):
        monkeypatch.setattr(runners.experiments.fit.Fit, "run", lambda *args: 1 / 0)
        assert run("-m", *SMALL, "dataset.n_train=5000,50")[0] == 1

    def test_unknown_choice_stops_the_sweep_before_its_first_job(self, run, tmp_path):
        assert "did you mean 'rotation'?" in run.refused("-m", *SMALL, "group=identity,rotaton")
        assert not folders(tmp_path)
        assert "jobs finished" not in run.out

    def test_resume_skips_finished_jobs_of_equal_settings(self, run, tmp_path):
        assert run("-m", *SMALL, "seed=0", "resume=true")[0] == 0
        before = len(mlflow_runs(tmp_path))
        out = run.ok("-m", *SMALL, "seed=0,1", "resume=true")
        assert out.count("SKIPPED") == 1
        assert len(mlflow_runs(tmp_path)) == before + 2  # a parent and one new child
        rows = [line for line in out.splitlines() if line.startswith("| 0")]
        assert len(rows) == 1
        assert "SKIPPED" in rows[0]
        _, out, _ = run("-m", *SMALL, "seed=0", "resume=true", "approx.n_components=21", "tracking.enabled=false")
        assert "SKIPPED" not in out


class TestFailures:
    def test_sync_uploads_after_a_tracking_failure(self, run, tmp_path, monkeypatch):
        upload = Tracker._upload
        monkeypatch.setattr(Tracker, "_upload", Mock(side_effect=ConnectionError("cut off")))
        folder = run.finished(*SMALL)
        assert "Nothing is lost" in run.err
        assert RunFolder(folder).read_metrics()["test/accuracy"] > 0

        monkeypatch.setattr(Tracker, "_upload", upload)
        assert "uploaded       1" in run.ok("runner=sync")
        (logged,) = mlflow_runs(tmp_path)
        assert logged.info.status == "FINISHED"
        assert logged.data.metrics == RunFolder(folder).read_metrics()
        assert run("runner=sync")[1].count("uploaded       0") == 1

    def test_unexpected_error_exits_1_with_its_traceback(self, run, tmp_path, monkeypatch):
        monkeypatch.setattr(runners.experiments.fit.Fit, "run", lambda *args: 1 / 0)
        run.ends(1, *SMALL)
        assert "ZeroDivisionError" in run.err
        (folder,) = folders(tmp_path)
        assert "ZeroDivisionError" in (folder / "traceback.txt").read_text()
        assert [r.info.status for r in mlflow_runs(tmp_path)] == ["FAILED"]

    def test_a_warning_is_shown_once_and_counted(self, run, monkeypatch):
        fit = LogisticRegression.fit

        def fit_with_warning(*args, **more):
            for _ in range(21):
                warnings.warn("this default will change", FutureWarning, stacklevel=2)
            return fit(*args, **more)

        monkeypatch.setattr(LogisticRegression, "fit", fit_with_warning)
        folder = run.finished(*SMALL, "learner=logistic", "tracking.enabled=false")
        lines = [line for line in (folder / "run.log").read_text().splitlines() if "this default will change" in line]
        first, last = (line.partition("cli: ")[2] for line in lines)
        assert first == "FutureWarning: this default will change"
        assert re.fullmatch(rf"\d+ times: {first}", last)
        assert int(last.partition(" ")[0]) % 21 == 0

    @pytest.mark.parametrize("earlier", [True, False])
    def test_a_run_refused_before_it_has_results_leaves_nothing_but_files_of_others(self, run, tmp_path, earlier):
        np.savez(tmp_path / "mine.npz", X=np.zeros((40, 3)), y=np.arange(40) % 2)
        (tmp_path / "here").mkdir()
        if earlier:
            (tmp_path / "here" / "own.txt").touch()
        settings = ("dataset=arrays", "dataset.path=mine.npz", "group=rotation")
        err = run.refused(*settings, f"hydra.run.dir={tmp_path / 'here'}")
        assert "found vectors of length 3: change dataset, representation or group (cyclic for series, identity" in err
        assert [path.name for path in tmp_path.glob("here/*")] == ["own.txt"] * earlier
        assert (tmp_path / "here").exists() == earlier
        assert not mlflow_runs(tmp_path)
        assert not list((tmp_path / "out" / "pending").glob("*.json"))

"""Runners that compare: tables, kernel errors and invariance."""

import contextlib
import json
import re

import numpy as np
import pytest
from command_line import SMALL, fitted, folders, mlflow_runs
from scipy import stats

from orbit import FeatureMap, InputError, Nystrom
from orbit.core.progress import Progress
from runners.experiments.checkpoint import read_checkpoint, write_checkpoint
from runners.experiments.fitting import fit_and_score
from runners.experiments.result_table import ResultTable
from runners.job import stores
from runners.measure.results import Result
from runners.tracking.mlflow import Tracker
from runners.tracking.record import RunFolder

ROWS = "runner.rows={plain: {group: identity}, turned@rf: {approx: {name: rf, n_components: 30}}}"
UNTRACKED = "runner=table", *SMALL[:-1], "tracking.enabled=false"
TABLE = *UNTRACKED, ROWS


class TestTable:
    def test_means_deviations_and_published_figures(self, run, tmp_path):
        published = "runner.published={plain: 0.5}"
        folder = run.finished("runner=table", *SMALL[:-1], ROWS, "runner.repeats={seed: [0, 1]}", published)
        out = run.out
        metrics = RunFolder(folder).read_metrics()
        assert 0 < metrics["plain/test/accuracy"] < 1
        assert metrics["turned@rf/test/accuracy_std"] >= 0
        table = (folder / "table.md").read_text()
        assert "| plain " in table
        assert " ± " in table
        assert " 0.5 " in table
        assert "published" in table.splitlines()[0]
        assert table.splitlines()[0] in out
        latex = (folder / "table.tex").read_text()
        assert latex.startswith(r"\begin{tabular}")
        assert [line.split(" & ")[0] for line in latex.splitlines()[4:6]] == ["plain", "turned@rf"]
        assert (folder / "figures" / "table.png").is_file()
        (logged,) = mlflow_runs(tmp_path)
        assert "turnedrf/test/accuracy" in logged.data.metrics  # without what MLflow refuses

    def test_an_expensive_row_takes_the_first_repeats_only(self, run):
        folder = run.finished(*TABLE, "runner.repeats={seed: [1, 2, 0]}", "runner.few_repeats={plain: 2}")
        results = {result["label"]: len(result["values"]) for result in RunFolder(folder).read_results()}
        assert results == {"plain": 2, "turned@rf": 3}
        assert "published" not in (folder / "table.md").read_text()

    def test_rows_of_equal_landmarks_share_them(self, run, tmp_path, monkeypatch):
        fitted, fit_map = list[int](), Nystrom._fit_map

        def noted_map(self, X, random_state):
            fitted.append(random_state)
            fit_map(self, X, random_state)

        monkeypatch.setattr(Nystrom, "_fit_map", noted_map)
        monkeypatch.setattr(stores, "_BYTES_PER_S", 1e18)
        nystrom = "approx: {name: nystrom, n_components: 12}"
        second = "hyper: {name: gaussian, n_components: 8, lengthscale: 1}"
        turned = "turned: {group: {name: rotation}}"
        rows = f"first: {{{nystrom}}}, second: {{{nystrom}, {second}}}, {turned}, third: {{{second}}}"
        repeats = "runner.repeats={seed: [0, 1]}"
        run.ok(*UNTRACKED, f"runner.rows={{{rows}}}", repeats, "group=identity", "approx=rf")
        assert len(fitted) == len(set(fitted)) == 2
        (folder,) = folders(tmp_path)
        assert [r["label"] for r in RunFolder(folder).read_results()] == ["first", "second", "turned", "third"]

    def test_only_some_rows_and_curves_are_fitted(self, run):
        curves = "runner.curves={size: {along: {approx.n_components: [5]}, series: {turned: {}}}}"
        command = (*TABLE, curves, "runner.only=[size, plain]")
        assert "turned@rf" not in run.ok(*command, "dry_run=true")
        folder = run.finished(*command)
        results = [Result.unpacked(result) for result in RunFolder(folder).read_results()]
        assert [(result.part, result.label) for result in results] == [("table", "plain"), ("size", "turned")]
        tags = RunFolder(folder).read_record().tags
        assert json.loads(tags["rows"]) == ["plain", "turned@rf"]
        assert json.loads(tags["curves"]) == ["size"]

    def test_the_whole_table_takes_the_rows_of_a_run_of_some(self, run, tmp_path):
        command = (*TABLE, "resume=true")
        assert run(*command, "runner.only=[plain]", "run_name=a")[0] == 0
        for name, taken in (("b", True), ("c", False)):  # the whole table deletes the figures that it took
            run.ok(*command, f"run_name={name}")
            assert ("plain: taken from an earlier run" in run.said) == taken
        some, whole, again = (RunFolder(folder).read_metrics() for folder in folders(tmp_path))
        assert some["plain/test/accuracy"] == whole["plain/test/accuracy"] == again["plain/test/accuracy"]

    def test_a_fit_without_the_metric_is_kept(self, run):
        err = run.refused(*TABLE, "runner.metric=test/acuracy", "run_name=a")
        assert "runner.metric: no such metric 'test/acuracy'" in err
        run.ok(*TABLE, "resume=true", "run_name=b")
        assert "plain: taken from an earlier run" in run.said

    def test_a_row_equals_the_same_run_by_itself(self, run):
        table = run.metrics(*TABLE)
        single = fitted(*SMALL, "group=identity").metrics
        assert table["plain/test/accuracy"] == single["test/accuracy"]
        assert not any(key.endswith("_std") for key in table), "one fit has no deviation"

    def test_columns_change_every_row_and_are_compared_by_rank(self, run):
        rows = "runner.rows={a: {group: {name: identity}}, b: {orbit.size: 2}, c: {orbit.size: 4}}"
        columns = (
            "runner.columns={few: {approx: {name: rf, n_components: 1}}, many: {approx: {name: rf, n_components: 60}}}"
        )
        published = "runner.published={a few: 0.1, a many: 0.5, b few: 0.2}"
        folder = run.finished("runner=table", *SMALL[:2], rows, columns, published, "tracking.enabled=false")
        out = run.out
        metrics = RunFolder(folder).read_metrics()
        found = {c: [metrics[f"{r} {c}/test/accuracy"] for r in "abc"] for c in ("few", "many")}
        assert max(found["few"]) < min(found["many"])
        expected = stats.spearmanr(found["few"], found["many"]).statistic
        np.testing.assert_allclose(metrics["rank_correlation/few/many"], expected)
        assert (folder / "figures" / "few_many.png").is_file()
        assert "rank correlation" in out

    def test_only_a_row_in_one_column_is_fitted(self, run):
        rows = "runner.rows={a: {group: {name: identity}}, b: {orbit.size: 2}}"
        columns = "runner.columns={few: {approx: {name: rf, n_components: 3}}, more: {approx: {name: rf}}}"
        folder = run.finished(
            "runner=table", *SMALL[:2], rows, columns, "runner.only=[b few]", "tracking.enabled=false"
        )
        results = [Result.unpacked(result) for result in RunFolder(folder).read_results()]
        assert [(result.part, result.label) for result in results] == [("table", "b few")]
        assert json.loads(RunFolder(folder).read_record().tags["rows"]) == ["a few", "a more", "b few", "b more"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["?"], "runner.rows: expected labels with letters or digits"),
        ([".."], "runner.rows: expected labels with letters or digits"),
        (["A" * 81], "runner.rows: expected labels with letters or digits"),
        (["RF (a)", "RF [a]"], "runner.rows: 'RF (a)' and 'RF [a]' differ only in characters that metrics do not have"),
    ],
)
def test_labels_of_rows_are_names_of_metrics(labels, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        ResultTable(rows=dict.fromkeys(labels)).check()


@pytest.mark.parametrize("name", ["a?b", "e%20f"])
def test_outputs_are_a_path_that_a_uri_can_have(tmp_path, name):
    with pytest.raises(InputError, match=r"^outputs: expected a path without \? and %"):
        Tracker(tmp_path / name, None, "orbit")
    assert Tracker(tmp_path / name, "http://localhost:5000", "orbit").outputs == tmp_path / name


class TestResume:
    """A table that is stopped goes on with the fit that it was at."""

    TABLE = (*TABLE, "runner.repeats={seed: [0, 1]}")

    @pytest.fixture
    def fits(self, monkeypatch):
        """The groups of the fits so far, of which the third fails once."""
        done = []

        def fit(plan, *args):
            done.append(plan.config["group"]["name"])
            if len(done) == 3:
                raise RuntimeError("the power fails")
            return fit_and_score(plan, *args)

        monkeypatch.setattr("runners.experiments.trials.fit_and_score", fit)
        return done

    def test_the_rest_is_fitted_and_the_table_is_the_same(self, run, tmp_path, fits, monkeypatch):
        assert run(*self.TABLE, "run_name=a")[0] == 1
        assert len(list(tmp_path.rglob("checkpoints/*.fit.npz"))) == 2
        steps: list[bool] = []
        monkeypatch.setattr(
            Progress, "step", lambda self, earlier=False: self.description == "table" and steps.append(earlier)
        )
        run.ok(*self.TABLE, "run_name=b", "resume=true")
        assert steps == [True, True, False, False], "the time left is that of the rest"
        assert fits == ["identity", "identity", "rotation", "rotation", "rotation"]
        assert not list(tmp_path.rglob("checkpoints/*.fit.npz"))
        assert run(*self.TABLE, "run_name=c", "resume=true")[0] == 0
        assert not any(steps[4:])
        assert len(fits) == 9, "the fits of a table that is complete are not kept"
        _, resumed, whole = (RunFolder(folder) for folder in folders(tmp_path))
        found, expected = ([Result.unpacked(r).values for r in run.read_results()] for run in (resumed, whole))
        assert found == expected
        assert resumed.read_metrics()["time/earlier_s"] > 0

    def test_nothing_is_taken_without_resume_or_from_other_code(self, run, tmp_path, fits):
        assert run(*self.TABLE, "run_name=a")[0] == 1
        for path in tmp_path.rglob("checkpoints/*.fit.npz"):
            write_checkpoint(path, read_checkpoint(path) | {"code": np.array('{"version.orbit": "0"}')})
        run.ok(*self.TABLE, "run_name=b", "resume=true")
        assert "plain: computed again, because an earlier run has it by other code" in run.said
        assert run(*self.TABLE, "run_name=c")[0] == 0
        assert len(fits) == 3 + 4 + 4

    def test_retry_failed_takes_them_too(self, run, fits):
        assert run(*self.TABLE, "run_name=a")[0] == 1
        assert run(*self.TABLE, "run_name=b", "retry_failed=true")[0] == 0
        assert len(fits) == 3 + 2

    def test_a_row_with_other_data_than_before_is_fitted_again(self, run, tmp_path):
        def write(name: str, seed: int, n: int = 60) -> None:
            X = np.random.default_rng(seed).standard_normal((n, 4))
            np.savez(tmp_path / f"{name}.npz", X=X, y=(X[:, seed] > 0).astype(int))

        write("a", 0)
        write("b", 1)
        rows = f"runner.rows={{A: {{}}, B: {{dataset.path: {tmp_path}/b.npz}}}}"
        data = "dataset=arrays", f"dataset.path={tmp_path}/a.npz", "group=identity", "approx=points"
        command = ("runner=table", *data, rows, "resume=true")
        assert run(*command, "run_name=a")[0] == 0
        assert run(*command, "run_name=b")[0] == 0
        write("b", 2)
        assert run(*command, "run_name=c")[0] == 0
        statuses = [RunFolder(folder).read_record().status for folder in folders(tmp_path)]
        assert statuses == ["FINISHED", "SKIPPED", "FINISHED"]

    def test_a_damaged_file_is_one_line(self, run, tmp_path, fits):
        assert run(*self.TABLE, "run_name=a")[0] == 1
        for path in tmp_path.rglob("checkpoints/*.fit.npz"):
            path.write_text("{}")
        err = run.refused(*self.TABLE, "run_name=b", "resume=true")
        assert "is damaged" in err
        assert "delete it, or set resume=false" in err


class TestCurves:
    def test_features_are_shared_and_the_results_are_those_without(self, run, tmp_path, monkeypatch):
        """Templates are nested, and test points are the same for any number of training points."""
        computed: list[tuple[int, int, bytes]] = []

        def features(self, X):
            computed.extend((self.random_state, self.n_components, point.tobytes()) for point in X)
            return transform_alone(self, X)

        transform_alone = FeatureMap.transform
        monkeypatch.setattr(FeatureMap, "transform", features)
        monkeypatch.setattr(stores, "_BYTES_PER_S", 1e18)  # also what takes no time
        curves = (
            "templates: {along: {approx.n_components: [2, 5, 9]}, series: {all: {}}}",
            "training_size: {along: {dataset.n_train: [30, 50, 60]}, series: {all: {}}}",
        )
        command = ("runner=table", *SMALL[:2], "group=dihedral", "representation=raw", "tracking.enabled=false")
        command += ("approx=cdf", "approx.n_bins=3", "approx.n_components=9", "approx.drawn=9")
        command += ("runner.repeats={seed: [0, 1]}", f"runner.curves={{{', '.join(curves)}}}")
        run.ok(*command, "run_name=a")
        assert len(computed) == len(set(computed)), "no features of a point are computed twice"
        assert {n_components for _, n_components, _ in computed} == {9}
        once = len(computed)
        monkeypatch.setattr("runners.experiments.result_table._sharing", lambda plan, metric: contextlib.nullcontext())
        assert run(*command, "run_name=b")[0] == 0
        assert len(computed) > 3 * once
        shared, alone = ([Result.unpacked(r).values for r in RunFolder(f).read_results()] for f in folders(tmp_path))
        assert shared == alone

    CURVE = (
        "runner.curves={size: {along: {approx.n_components: [5, 40]}, series: {turned: {}}, "
        "references: {exact: {approx: {name: exact}}}}}"
    )

    def test_lines_and_levels(self, run):
        folder = run.finished("runner=table", *SMALL[:-1], self.CURVE, "runner.repeats={seed: [0, 1]}")
        out = run.out
        metrics = RunFolder(folder).read_metrics()
        few, many = (metrics[f"size/turned approx.n_components={s}"] for s in (5, 40))
        assert few < many <= 1
        assert metrics["size/exact"] > few
        assert metrics["size/turned approx.n_components=5 std"] > 0
        assert (folder / "figures" / "size.png").is_file()
        assert "| 40 " in (folder / "size.md").read_text()
        assert "| 40 " in out

    def test_a_curve_has_a_metric_of_its_own(self, run):
        curve = "{along: {approx.n_components: [5, 40]}, series: {turned: {}}, metric: %s}"
        assert "| 40                  | 40     |" in run.ok(
            *UNTRACKED, f"runner.curves={{c: {curve % 'features/dim'}}}"
        )
        assert run(*UNTRACKED, f"runner.curves={{c: {curve % 'time/total_s'}}}")[0] == 0
        err = run.refused(*UNTRACKED, f"runner.curves={{c: {curve % 'test/accuracies'}}}")
        assert "runner.curves.c.metric: no such metric 'test/accuracies'" in err

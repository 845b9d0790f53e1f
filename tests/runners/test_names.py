"""Names of runs, and the summary of a sweep as text, figure and view."""

import json
import re

import numpy as np
import pytest
from omegaconf import OmegaConf
from scipy import stats

from runners.config.names import VARIED_ENV, default_name, split_override, sweep_name
from runners.config.schema import HydraConfig, run_name
from runners.measure import figures
from runners.tracking import views
from runners.tracking.record import Record
from runners.tracking.summary import Summary


class TestNames:
    @pytest.fixture
    def named(self, monkeypatch):
        def name(*overrides: str, runner: str = "fit") -> str:
            cfg = OmegaConf.create({"hydra": {"overrides": {"task": list(overrides)}}})
            monkeypatch.setattr(HydraConfig.instance(), "cfg", cfg)
            values = dict(map(split_override, overrides))
            encoder = values.get("encoder", "auto")
            approx, learner = values.get("approx", "rf"), {"name": values.get("learner", "ridge")}
            sections = [{"name": name} for name in (runner, "digits", "rotation", encoder, approx)]
            sections[1] |= {key: values.get(f"dataset.{key}") for key in ("path", "manifest")}
            return run_name(*sections, 0, learner)

        return name

    @pytest.mark.parametrize(
        ("overrides", "expected"),
        [
            ((), "digits-rotation-rf-s0"),
            (("dataset=digits", "group=rotation", "seed=0"), "digits-rotation-rf-s0"),
            (("approx.n_components=300", "learner=krr"), "digits-rotation-rf-n_components_300-krr-s0"),
            (("outputs=/tmp/x", "tracking.uri=a://b", "engine.workers=2", "resume=true"), "digits-rotation-rf-s0"),
            (("group.max_angle=[1,2]", "~selection.grid.a"), "digits-rotation-rf-max_angle_1_2-no_a-s0"),
            (("experiment=qm7", "size=paper", "approx=rf"), "qm7-paper-rf-s0"),
            (("kernel=matern", "engine.path=direct"), "digits-rotation-rf-matern-path_direct-s0"),
            (("dataset.path=/a/tmp/s1.npz", "dataset.x_test_key=X", "kernel.nu=1"), "s1-rotation-rf-nu_1-s0"),
            (("dataset.path=.",), "of_mine-rotation-rf-s0"),
            (("dataset.path=parts/*.parquet",), "parts-rotation-rf-s0"),
            (("dataset.path=https://a.b/c/d.parquet",), "d-rotation-rf-s0"),
            (("dataset.manifest=/a/tmp/plants.csv",), "plants-rotation-rf-s0"),
            (("encoder=none",), "digits-rotation-none-rf-s0"),
            (("size=1,2",), "digits-rotation-rf-size_1_2-s0"),
            (("experiment=null",), "digits-rotation-rf-s0"),
            (("approx=auto",), "digits-rotation-nystrom-s0"),
            (("approx=auto", "learner=gp"), "digits-rotation-auto-gp-s0"),
        ],
    )
    def test_have_the_data_and_the_changes(self, named, overrides, expected, tmp_path, monkeypatch):
        (tmp_path / "of mine").mkdir()
        monkeypatch.chdir(tmp_path / "of mine")
        assert named(*overrides) == expected

    def test_have_the_runner_unless_it_fits_once(self, named):
        assert named(runner="compare") == "compare-digits-rotation-rf-s0"
        assert named("seed=3", runner="sync") == "sync"
        assert named("group=rotation", runner="discover") == "discover-digits-s0"

    def test_jobs_of_a_sweep_leave_out_what_they_have_in_common(self, named, monkeypatch):
        monkeypatch.setenv(VARIED_ENV, "kernel,seed")
        assert named("kernel=matern", "approx.n_components=300") == "digits-rotation-rf-matern-s0"

    def test_a_sweep_is_named_by_data_keys_and_time(self):
        assert (
            sweep_name("gunpoint", ["group=cyclic,identity", "approx=rf,cdf"], "10:09") == "gunpoint group,approx 10:09"
        )
        assert sweep_name("gunpoint", ["seed=0,1", "dataset.path=a/b,c/d,e"], "10:09") == "3 data sets seed 10:09"
        assert len(sweep_name("gunpoint", [f"group.parameter_{i}=0,1" for i in range(9)], "10:09")) <= 60

    def test_a_long_seed_leaves_the_name_short(self):
        assert len(default_name(["digits"], [], (), 10**400)) < 40

    def test_are_bounded_legal_and_still_different(self):
        overrides = [f"section.parameter_{i}={{a: [/ü {i}, 'b']}}" for i in range(40)]
        names = {default_name(["digits"], [*overrides, f"a.b={last}"], (), 0) for last in ("x", "y" * 500, "y" * 501)}
        assert len(names) == 3
        for name in names:
            assert re.fullmatch(r"[A-Za-z0-9.+_-]{1,60}", name)
            assert name.endswith("-s0")


def jobs(accuracies: dict[str, float]) -> list[tuple[Record, dict[str, float]]]:
    """Finished jobs by what they were given."""
    return [
        (Record("run", job=i, status="FINISHED", overrides=given.split()), {"test/accuracy": value})
        for i, (given, value) in enumerate(accuracies.items())
    ]


def rows(text: str) -> list[list[str]]:
    """The cells of tables."""
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


class TestSummary:
    def test_settings_with_two_values_are_tested_on_the_same_seeds(self):
        values = {"a": (0.5, 0.6, 0.7), "b": (0.6, 0.8, 0.8, 0.1)}
        found = {f"group={name} seed={i}": x for name in "ab" for i, x in enumerate(values[name])}
        text = Summary(jobs(found)).text()
        (row,) = (row for row in rows(text) if row[:2] == ["group", "a"])
        assert row == ["group", "a", "b", "3", "+0.1333", "0.0572", "0.25"]
        assert text.startswith("Best test/accuracy of 7 jobs, chosen by the test part: 0.8, job 4 (group=b, seed=1)")

    def test_cases_of_one_seed_are_one_pair(self):
        values = np.random.default_rng(0).random((3, 2, 2))
        given = {f"seed={i} width={j} depth={k}": value for (i, j, k), value in np.ndenumerate(values)}
        (row,) = (row for row in rows(Summary(jobs(given)).text()) if row[:3] == ["width", "0", "1"])
        expected = stats.ttest_rel(values[:, 1].mean(1), values[:, 0].mean(1))
        assert row[3:6] == ["3", f"{(values[:, 1] - values[:, 0]).mean():+.4g}", f"{expected.pvalue:.3g}"]

    def test_one_pair_is_not_tested(self):
        found = {"group=a seed=0": 0.5, "group=b seed=0": 0.6, "group=b seed=1": 0.6}
        assert "Wilcoxon" not in Summary(jobs(found)).text()

    def test_seeds_are_averaged(self):
        found = {"group=a seed=0": 0.5, "group=a seed=1": 0.7, "group=b seed=0": 0.9, "group=b seed=1": 0.9}
        table = rows(Summary(jobs(found)).text().split("\n\n")[1])
        assert [table[i] for i in (0, 2, 3)] == [
            ["group", "seeds", "test/accuracy"],
            ["a", "2", "0.6 ± 0.1"],
            ["b", "2", "0.9 ± 0"],
        ]

    def test_without_seeds_there_is_one_table(self):
        best, table = Summary(jobs({"group=a seed=0": 0.5, "group=b seed=0": 0.9})).text().split("\n\n")
        assert best.startswith("Best test/accuracy of 2 jobs, chosen by the test part: 0.9")
        assert table.startswith("| job | run")

    def test_figure_spans_the_values(self):
        settings = [{"approx.n_components": n, "group": group, "seed": "0"} for n in ("10", "100") for group in "ab"]
        figure = figures.setting_effects({"test/accuracy": (settings, [0.90, 0.91, 0.92, 0.93])})
        number, name = figure.axes
        for ax in (number, name):
            low, high = ax.get_ylim()
            assert 0.89 < low < 0.90
            assert 0.93 < high < 0.94
        assert [text.get_text() for text in number.get_legend().get_texts()] == ["group=a", "group=b"]
        assert [text.get_text() for text in name.get_xticklabels()] == ["a", "b"]
        np.testing.assert_allclose(number.lines[0].get_xdata(), [10, 100])

    def test_data_sets_have_a_best_job_and_a_row_of_panels_each(self):
        values = {("p", "a"): 0.5, ("p", "b"): 0.6, ("q", "a"): 0.9, ("q", "b"): 0.8}
        found = jobs({f"dataset.path=/a/{name}.npz group={group}": x for (name, group), x in values.items()})
        for _, metrics in found[2:]:
            metrics["test/rmse"] = metrics.pop("test/accuracy")
        first, second, *_ = Summary(found).text().split("\n\n")
        assert first == "Best test/accuracy of 2 jobs on p, chosen by the test part: 0.6, job 1 (group=b)"
        assert second.startswith("Best test/rmse of 2 jobs on q, chosen by the test part: 0.8, job 3 ")
        assert Summary(found).best_metrics() == {"best/p/test/accuracy": 0.6, "best/q/test/rmse": 0.8}
        axes = Summary(found).figure().axes
        assert [ax.get_ylabel() for ax in axes] == ["p: test/accuracy", "q: test/rmse"]
        assert axes[1].get_xlabel() == "group"

    def test_figure_of_many_settings_has_one_line_of_means(self):
        settings = [{"a": str(a), "b": str(b)} for a in range(10) for b in range(3)]
        figure = figures.setting_effects({"m": (settings, np.arange(30.0).tolist())})
        assert figure.axes[1].get_title() == "mean over all other settings"
        np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), [13.5, 14.5, 15.5])


class Experiment:
    """The tags of an experiment, as a client of MLflow."""

    def __init__(self) -> None:
        self.tags: dict[str, str] = {}

    def set_experiment_tag(self, experiment_id: str, key: str, value: str) -> None:
        self.tags[key] = value

    def delete_experiment_tag(self, experiment_id: str, key: str) -> None:
        del self.tags[key]

    def get_experiment(self, experiment_id: str) -> "Experiment":
        return self


class TestViews:
    def test_the_oldest_are_deleted_and_those_of_a_person_are_kept(self):
        client = Experiment()
        client.tags["mlflow.sharedViewState.mine"] = json.dumps({"name": "mine", "createdAt": 0, "state": "{}"})
        client.tags["mlflow.sharedViewState.other"] = "deflate;abc"
        for number in range(25):
            views.save(
                client, "1", f"key{number}", f"sweep {number}", float(number), {"searchFilter": "tags.sweep = ''"}
            )
        kept = {f"mlflow.sharedViewState.key{number}" for number in range(5, 25)}
        assert set(client.tags) == {"mlflow.sharedViewState.mine", "mlflow.sharedViewState.other", *kept}

    def test_a_long_description_is_cut_at_a_line(self):
        text = views.note("\n".join(f"| job {i} |" for i in range(2000)), "1", "key")
        assert len(text) < 8000
        assert text.startswith(
            "[Jobs of this sweep](#/experiments/1/runs?workflowType=machine_learning&viewStateShareKey=key)"
        )
        assert re.search(r"\| job \d+ \|\n\nThe rest is in summary.md", text)

"""dry_run=true says what a run would do: its fits, bytes and time, and writes nothing."""

import numpy as np
import pytest
from command_line import SMALL, folders, quickly_composed, write_experiment

from runners.config.plan import plan
from runners.experiments import estimate as estimates, fitting, selection
from runners.experiments.estimate import Measurements
from runners.experiments.fitting import fit_and_score
from runners.job import estimate as lines, memory as fits
from runners.job.estimate import Estimate, report
from runners.job.job import Stopwatch
from runners.tracking.record import RunFolder

QUIET = ("tracking.enabled=false", "runner.save_model=false", "engine.progress=false")


def rows(*overrides: str) -> list[Estimate]:
    made = plan(quickly_composed(*overrides))
    return made.component("runner").estimates(made)


def one(*overrides: str) -> Estimate:
    made = plan(quickly_composed(*overrides))
    return estimate_fit(made, made.load())


def estimate_fit(made, data) -> Estimate:
    return Measurements().estimate(made, data)


def part(estimate: Estimate, what: str) -> int:
    (found,) = (part.nbytes for part in estimate.parts if what in part.what)
    return found


@pytest.mark.parametrize("approx", ["rf", "nystrom", "cdf", "exact"])
@pytest.mark.parametrize("hyper", ["linear", "gaussian"])
def test_bytes_and_columns_are_those_of_the_arrays(approx, hyper):
    size = () if approx == "exact" else ("approx.n_components=60",)
    layer = ("hyper=gaussian", "hyper.n_components=70") if hyper == "gaussian" else ()
    overrides = (f"approx={approx}", *size, *layer, "dataset.n_train=120", "group=rotation", "orbit.size=8")
    made = plan(quickly_composed(*overrides))
    data = made.load()
    found = estimate_fit(made, data)
    features = made.approx().fit(made.component("representation").fit_transform(data.X_train).astype(np.float32))
    psi = features.transform(data.X_train.astype(np.float32))
    if hyper == "gaussian":
        assert part(found, "features of hyper") == made.hyper().fit_transform(psi).nbytes
    elif approx != "exact":
        assert part(found, "features") >= psi.nbytes
        assert part(found, "features") <= 1.5 * psi.nbytes
    assert found.seconds > 0


def test_landmarks_from_the_orbit_may_be_more_than_the_points():
    made = plan(
        quickly_composed(
            *("approx=nystrom", "approx.n_components=100", "landmarks.source=orbit", "dataset.n_train=40"),
            *("group=rotation", "orbit.size=8"),
        )
    )
    data = made.load()
    X = made.component("representation").fit_transform(data.X_train).astype(np.float32)
    width = made.approx().fit(X).transform(X).shape[1]
    assert 80 < width <= 100
    assert 4 * 40 * 80 < part(estimate_fit(made, data), "features") <= 4 * 40 * 100
    assert made.approx().fit_bytes(40, 784) == 2 * 8 * 100**2


def test_a_plan_on_streams_says_what_it_does_with_second_moments():
    stream = ("approx=rf", "engine.stream=true", "approx.n_components=600")
    kept = one(*stream).notes
    assert any("second moments 11 MiB, kept: one pass over them" in note for note in kept)
    (said,) = (note for note in one(*stream, "engine.memory=0.005").notes if "second moments" in note)
    assert said == "second moments 11 MiB: more than engine.memory=0.005 GiB, so many passes, of which one is timed"


@pytest.mark.parametrize(
    ("grid", "points"),
    [("{kernel.lengthscale: [1, 2]}", 2), ("{learner.regularization: [1e-4, 1e-2], kernel.lengthscale: [1, 2]}", 4)],
)
def test_inner_validation_is_counted(grid, points, monkeypatch):
    overrides = ("dataset.n_train=80", "approx=rf", "approx.n_components=20", "selection=k_fold", "selection.folds=4")
    made = plan(quickly_composed(*overrides, f"selection.grid={grid}"))
    data, calls = made.load(), []
    real = selection.predictions
    monkeypatch.setattr(selection, "predictions", lambda plans, *rest: calls.extend(plans) or real(plans, *rest))
    fit_and_score(made, data, Stopwatch())
    found = estimate_fit(made, data)
    assert found.fits == 1 + len(calls) == 1 + 4 * points


TABLE = (
    *("runner=table", "dataset.n_train=60", "dataset.n_test=40", "approx=rf", "approx.n_components=20", "orbit.size=4"),
    "runner.rows={A: {}, B: {approx: {name: nystrom, n_components: 10}}, C: {selection: {name: hold_out, grid: "
    "{kernel.lengthscale: [1, 2]}}}}",
    "runner.repeats={seed: [0, 1, 2]}",
    "runner.few_repeats={B: 1}",
    "runner.curves={by_points: {along: {dataset.n_train: [30, 60]}, series: {all: {}}, references: {same: {}}}}",
)


def test_a_table_has_a_row_for_each_row_and_line_with_all_its_fits(monkeypatch, run):
    made = {row.label: row.fits for row in rows(*TABLE)}
    assert made == {"A": 3, "B": 1, "C": 9, "by_points, all": 3, "by_points, same": 0}
    outer, inner = [], []
    real, real_inner = fitting.fit_and_score, selection.predictions
    monkeypatch.setattr("runners.experiments.trials.fit_and_score", lambda *args: outer.append(1) or real(*args))
    monkeypatch.setattr(selection, "predictions", lambda plans, *rest: inner.extend(plans) or real_inner(plans, *rest))
    run.ok(*TABLE, "tracking.enabled=false")
    assert len(outer) + len(inner) == sum(made.values())


def test_a_curve_with_more_repeats_than_the_table_has_those_that_the_table_has_not():
    curve = "{c: {along: {approx.n_components: [5, 9]}, series: {all: {}}, repeats: {seed: [0, 1, 2]}}}"
    table = ("runner=table", *SMALL[:-1], "runner.rows={A: {approx.n_components: 5}}", f"runner.curves={curve}")
    assert {row.label: row.fits for row in rows(*table)} == {"A": 1, "c, all": 5}


@pytest.mark.parametrize("experiment", ["orff_error", pytest.param("xperm", marks=pytest.mark.slow), "invariance"])
@pytest.mark.parametrize("size", ["small", "paper"])
def test_experiments_on_generated_data_are_estimated(experiment, size):
    text = report(experiment, rows(f"experiment={experiment}", f"size={size}"))
    lines = text.splitlines()
    assert lines[-1].startswith(experiment)
    if "not estimated" not in text:
        assert all(" fit" in line and ("about" in line or "same fits" in line) for line in lines)


@pytest.mark.parametrize(
    ("overrides", "code", "expected"),
    [
        (("runner=report",), 0, "report: the time of this runner is not estimated; nothing was run"),
        (("approx=rf", "kernel=polynomial"), 2, ""),
        (("dataset=arrays", "dataset.path=missing.npz"), 2, ""),
    ],
)
def test_other_runners_and_bad_input(overrides, code, expected, run_with_figures):
    found, out, error = run_with_figures(*overrides, "dry_run=true")
    assert found == code
    assert out.strip() == expected
    assert len(error.splitlines()) == (code == 2)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (("experiment=invariance",), "experiment=invariance has one size"),
        ((), "it is that of an experiment, and none is chosen"),
        (("experiment=orff_error",), None),
    ],
)
def test_a_size_without_effect_is_told(overrides, reason, run_with_figures, monkeypatch, log_messages):
    monkeypatch.setattr(Measurements, "estimate", lambda self, plan, data: Estimate("a fit", 1, 0.0))
    assert run_with_figures(*overrides, "size=paper", "dry_run=true")[0] == 0
    told = [message for message in log_messages if message.startswith("size=")]
    assert told == ([f"size=paper has no effect: {reason}"] if reason else [])


def test_a_fit_that_does_not_fit_is_named_with_its_row(run_with_figures, monkeypatch):
    for module in (fits, lines):
        monkeypatch.setattr(module, "process_bytes", lambda: 8 * 2**30)
    code, out, error = run_with_figures(*TABLE[:5], "approx.n_components=20000000", TABLE[6], "dry_run=true")
    assert code == 2
    assert [line.partition(":")[0] for line in out.splitlines()[:3]] == ["A", "B", "C"]
    assert error.startswith("error: A: this fit takes at least")
    assert "B: 1 fit;" in out
    assert "REFUSED" not in out.splitlines()[1]


def test_a_search_needs_results(run_with_figures):
    (line,) = run_with_figures.refused("-m", "hydra/sweeper=optuna", "dry_run=true", "seed=0,1").splitlines()
    assert line.startswith("error: dry_run=true: ")


class TestWhereItIsSet:
    """In a file or on the command line, where the last argument decides."""

    @pytest.fixture(autouse=True)
    def _files(self, tmp_path):
        for name in ("true", "false"):
            few = "dataset: {n_train: 60, n_test: 40}\napprox: {n_components: 20}\n"
            write_experiment(tmp_path / "mine", f"dry_run: {name}\n{few}", f"dry_{name}")

    @pytest.mark.parametrize(
        ("arguments", "names"),
        [
            (["experiment=dry_true"], ["s0"]),
            (["-m", "experiment=dry_true", "seed=0,1"], ["s0", "s1"]),
            pytest.param(
                ["-m", "hydra/launcher=joblib", "experiment=dry_true", "seed=0,1"], None, marks=pytest.mark.slow
            ),
            (["-m", "experiment=dry_true,dry_false", "dry_run=true"], ["s0", "s0"]),
            (["dry_run=false", "dry_run=True", "seed=1"], ["rotated_digits-rotation-nystrom-s1"]),
            (["dry_run=true", "hydra.run.dir=kept"], ["s0"]),
        ],
    )
    def test_nothing_is_written(self, arguments, names, run_with_figures, tmp_path):
        code, out, error = run_with_figures("--config-dir", str(tmp_path / "mine"), *arguments, *QUIET)
        assert (code, error) == (0, "")
        if names is not None:  # of processes of this one
            for line, name in zip(out.splitlines(), names, strict=True):
                assert f"{name}: 1 fit; " in line
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]

    @pytest.mark.parametrize("arguments", [["dry_run=true", "dry_run=false"], ["experiment=dry_true", "dry_run=false"]])
    def test_the_command_line_and_its_last_argument_decide(self, arguments, run, tmp_path):
        run.ok("--config-dir", str(tmp_path / "mine"), *SMALL, *arguments, *QUIET)
        assert len(folders(tmp_path)) == 1

    def test_a_sweep_of_dry_runs_and_others_is_refused_where_it_is_known(self, run, tmp_path):
        command = ("-m", "experiment=dry_false,dry_true", *SMALL, *QUIET)
        code, _, error = run("--config-dir", str(tmp_path / "mine"), *command)
        assert code == 1
        assert "dry_run: expected one value for all jobs of a sweep" in error
        assert [RunFolder(folder).read_record().status for folder in folders(tmp_path)] == ["FINISHED", "FAILED"]


def test_the_estimate_of_a_run_does_not_say_what_its_fit_warns_of(run, tmp_path, log_messages, rng):
    np.savez(tmp_path / "mine.npz", X=rng.random((60, 3, 9, 9)), y=np.arange(60) % 2)
    mine = ("dataset=arrays", "dataset.path=mine.npz", *SMALL[2:], "group=rotation", "approx=rf", *QUIET)
    assert run(*mine, "dry_run=true")[0] == 0
    assert not log_messages
    assert run(*mine)[0] == 0
    assert ["first axis holds channels" in message for message in log_messages].count(True) == 1


def test_the_line_of_an_estimate():
    line = Estimate("A", 3, 3.0, notes=["one pass over them"]).line()
    assert line == "A: 3 fits; one pass over them; about 3 s"


def test_times_are_those_of_small_fits_extrapolated(monkeypatch):
    """A row of features takes 1 ms and 1 us a component, a fit of landmarks 1 ns times their cube."""

    def timed(self, plan, data, size):
        s = min(size, plan.config["approx"]["n_components"])
        fit = 1e-9 * s**3 if plan.config["approx"]["name"] == "nystrom" else 0.0
        return estimates._Costs(fit, 1e-3 + 1e-6 * s, 0.0, s, s)

    monkeypatch.setattr(Measurements, "_small_fit", timed)
    monkeypatch.setattr(Measurements, "_learner_seconds", lambda self, plan, data, n, width: 0.0)
    sizes = ("approx.n_components=1000", "dataset.n_train=1000", "dataset.n_test=200")
    assert one("approx=rf", *sizes).seconds == pytest.approx(1200 * 2e-3)
    assert one("approx=nystrom", *sizes).seconds == pytest.approx(1200 * 2e-3 + 1)


def test_the_time_of_a_learner_grows_with_its_operations():
    made = plan(quickly_composed("learner=ridge", "approx=rf", "approx.n_components=20", "dataset.n_train=80"))
    data, measured = made.load(), Measurements()
    few, many = (measured._learner_seconds(made, data, 80, width) for width in (2000, 40_000))
    assert many == pytest.approx(20 * few)


@pytest.mark.parametrize(
    "overrides",
    [
        ("approx=exact", "learner=gp", "dataset=vector_field"),
        ("approx=orff", "kernel=curl_free", "learner=cg", "dataset=vector_field"),
        ("approx=points", "learner=network", "kernel=skeleton"),
        ("encoder=patches", "approx=nystrom", "group=rotation", "orbit.size=4", "encoder.n_components=8"),
        ("approx=points", "learner=knn"),
    ],
)
def test_every_kind_of_features_is_timed(overrides):
    assert 0 < one(*overrides, "dataset.n_train=80").seconds < np.inf

"""runner=timing: every comparison and a sweep at tiny sizes; no test depends on measured seconds."""

import numpy as np
import pytest
from command_line import composed

from benchmarks import sizes
from benchmarks.rounds import interleaved
from orbit import plots
from runners.config.plan import plan as make_plan
from runners.measure import figures
from runners.tracking.record import RunFolder

TINY = (
    "runner.rounds=1",
    "runner.n_points=24",
    "approx.n_components=16",
    "orbit.size=6",
    "engine.workers=2",
    "tracking.enabled=false",
)

CASES = {
    "scipy": {"scipy", "scipy float32", "orbit"},
    "direct": {"direct", "products and waves", "products"},
    "spectral": {"direct", "spectral"},
    "path": {"one", "path of 20"},
    "skeleton": {"features", "copy", "streaming", "new_copy", "waves"},
    "hadamard": {"hadamard", "matrix"},
    "laplacian": {"orbit", "torch", "scipy"},
    "encoder": {"encoder", "products", "encoder 96", "products 96"},
    "peers": {
        f"{library} {job}"
        for library in ("orbit", "sklearn")
        for job in ("rf", "rf path", "nystrom", "nystrom path", "exact")
    },
    "lbfgs": {"one lambda", "path", "lbfgs 100", "lbfgs", "one lambda from points", "path from points"},
}

SMALLER = {
    "peers": ["dataset=digits"],
    "scipy": ["dataset=digits", "orbit.size=16", "runner.n_points=8"],  # scipy: 32 rotations of each point
    "hadamard": ["hyper.n_components=32"],
    "skeleton": ["dataset=digits", "representation=raw", "kernel.layers=null"],
}


@pytest.fixture(autouse=True)
def _small_and_once(monkeypatch):
    monkeypatch.setattr("benchmarks.rounds.MIN_CASE_S", 0.0)
    monkeypatch.setattr("benchmarks.rounds.PAUSE_S", 0.0)
    monkeypatch.setattr("benchmarks.sizes._TILES", 2)  # of 32
    monkeypatch.setattr("benchmarks.comparisons.maps.LAYER_FEATURES", 1500)  # of 14,000
    monkeypatch.setattr("benchmarks.comparisons.orbit_average.REFERENCE_TURNS", 32)  # of 128


def test_bars_are_the_medians_of_the_table(run_with_figures, monkeypatch):
    drawn, draw = [], figures.compared
    monkeypatch.setattr(figures, "compared", lambda *args, **kwargs: drawn.append(draw(*args, **kwargs)) or drawn[-1])
    folder = run_with_figures.finished("experiment=bench_path", *TINY, "runner.rounds=5")
    medians = [value for key, value in RunFolder(folder).read_metrics().items() if key.startswith("time/")]
    assert [bar.get_width() for bar in drawn[0].axes[0].patches] == pytest.approx(medians[: len(CASES["path"])])


@pytest.mark.parametrize("name", CASES)
def test_a_comparison_leaves_seconds_ratios_a_table_and_a_figure(run, name):
    folder = run.finished(f"experiment=bench_{name}", *TINY, *SMALLER.get(name, []))
    metrics = RunFolder(folder).read_metrics()
    for kind in ("time", "cpu"):
        measured = {key.removeprefix(f"{kind}/").removesuffix("_s") for key in metrics if key.startswith(f"{kind}/")}
        assert measured - {"total", "processor", "gpytorch exact"} == CASES[name]
    assert any(key.startswith("ratio/") and value > 0 for key, value in metrics.items())
    assert (folder / "figures" / "timing.png").is_file()
    assert "| case " in (folder / "table.md").read_text()
    ratios = [key.removeprefix("ratio/") for key in metrics if key.startswith("ratio/")]
    assert all(f"| {label} " in (folder / "ratios.md").read_text() for label in ratios)
    assert "2 threads in use" in (folder / "machine.txt").read_text()
    if name == "spectral":
        assert metrics["error/spectral"] < 0.01
    if name == "laplacian":
        assert metrics["error/scipy"] < 1e-6
    if name == "hadamard":
        assert metrics["error/product"] < 1e-4
    if name == "lbfgs":  # the closed form is the least value there is
        least = metrics["objective/closed form"]
        assert least * (1 - 1e-6) <= metrics["objective/lbfgs"] <= metrics["objective/lbfgs 100"] <= 1.5 * least
    if name == "scipy":
        assert metrics["error/kernel/orbit"] < 1
        assert metrics["error/orbit/orbit"] < metrics["error/orbit/scipy"] + 0.05


def test_a_sweep_draws_each_path_and_its_operations_against_each_size(run_with_figures, monkeypatch):
    drawn, draw = [], plots.panels
    monkeypatch.setattr(plots, "panels", lambda *args: drawn.append(draw(*args)) or drawn[-1])
    sweep = "runner.sweep={N: [8, 16], s: [4, 8], r: [4, 8], side: [16, 28], D: [4, 8]}"
    folder = run_with_figures.finished("experiment=bench_sizes", *TINY, sweep)
    metrics = RunFolder(folder).read_metrics()
    assert {path.stem for path in (folder / "figures").iterdir()} == {"timing"}
    shown = {ax.get_title(): [line.get_xydata() for line in ax.lines] for ax in drawn[0].axes}
    assert list(shown) == list(sizes.SIZES.values())
    paths = ["direct", "template", "spectral"]
    for key, values in {"N": [8, 16], "s": [4, 8], "r": [4, 8], "side": [512, 896], "D": [4, 8]}.items():
        names = ["ridge"] if key == "D" else paths
        asked = [16, 28] if key == "side" else values
        kinds = [(kind, name) for kind in ("time", "floor") for name in names]
        for (kind, name), line in zip(kinds, shown[sizes.SIZES[key]], strict=True):
            expected = [metrics[f"{kind}/{key}{value}/{name}_s"] for value in asked]
            np.testing.assert_allclose(line, np.stack([values, expected], axis=1))
            assert min(expected) > 0


def test_operations_of_a_path_are_its_formula():
    """Of the direct path 2 d for each projection, n r s of them; of the spectral one with modes of r turns, fewer."""
    plan = make_plan(composed("experiment=bench_sizes", *TINY))
    d, projections = 14 * 64, 24 * 6 * 16
    for name in ("direct", "template", "spectral"):
        case = sizes._case(plan, "N", 24, name, 24)
        case.run()
        counted = case.operations()
        assert counted["waves"] == projections
        if name != "spectral":
            assert counted["products"] == 2 * d * projections
        assert 0 < counted["products"] <= 2 * d * projections
    counted = sizes._case(plan, "D", 40, "ridge", 24).operations()
    assert counted == {"products64": pytest.approx(40 * 24**2 + 4 / 3 * 24**3)}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (["runner.compare=scipy", "approx=rf"], "runner.compare=scipy needs a number as kernel.lengthscale"),
        (
            ["runner.compare=direct", "approx=rf", "dataset=low_rank_multitask", "group=identity"],
            "this comparison needs images of one",
        ),
    ],
)
def test_a_comparison_without_what_it_compares_is_refused(run, settings, expected):
    err = run.refused("runner=timing", *settings, "runner.n_points=20", "tracking.enabled=false")
    assert f"error: {expected}" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("learner.regularization=null", "needs one learner.regularization"),
        ("learner.fit_intercept=true", "learner.fit_intercept=false"),
        ("approx=rf kernel=gaussian", "choose approx=orff"),
    ],
    ids=str,
)
def test_solvers_are_compared_on_one_objective_only(run, change, message):
    assert message in run.refused("experiment=bench_lbfgs", *TINY, *change.split())


def test_short_cases_are_run_several_times_in_a_row(monkeypatch):
    calls, now, last = {"short": 0, "long": 0}, [0.0], [""]
    monkeypatch.setattr("benchmarks.rounds.MIN_CASE_S", 1.0)
    monkeypatch.setattr("benchmarks.rounds.time.perf_counter", lambda: now[0])

    def case(name: str, duration: float) -> None:
        calls[name] += 1
        cold = 1.5 if calls[name] == 1 else 0.25 * (last[0] != name)
        now[0] += duration + cold
        last[0] = name

    seconds = interleaved({"short": lambda: case("short", 0.5), "long": lambda: case("long", 30.0)}, rounds=2)
    expected = {"short": (1 + 2) + 2 * (1 + 2), "long": 1 + 2}
    assert calls == expected, "short ones as many times as take a second, after one that does not count"
    np.testing.assert_allclose(seconds["short"][:, 0], 0.5)  # of one call
    np.testing.assert_allclose(seconds["long"][:, 0], 30.25)


def test_cases_are_run_in_turn_after_a_round_that_does_not_count(monkeypatch):
    monkeypatch.setattr("benchmarks.rounds.MIN_CASE_S", 0.0)
    order: list[str] = []
    seconds = interleaved({name: (lambda name=name: order.append(name)) for name in "ab"}, rounds=3)
    assert "".join(order) == "ab" * 4
    assert {name: values.shape for name, values in seconds.items()} == {"a": (3, 2), "b": (3, 2)}
    assert all(np.all(values >= 0) for values in seconds.values())


def test_progress_counts_the_cases_of_all_rounds(monkeypatch, log_messages):
    monkeypatch.setattr("orbit.core.progress.LINE_EVERY_S", 0.0)
    interleaved(dict.fromkeys("ab", lambda: None), rounds=2, progress=True)
    assert [line.partition(",")[0] for line in log_messages] == [f"timing: {done} of 6" for done in range(1, 7)]

"""runner=measure, runner=invariance and runner=fields."""

import re

import numpy as np
import pytest
from command_line import folders

from orbit.approx import Exact
from papers.measures.kernels import kernel_errors
from runners.tracking.record import RunFolder


class TestKernelError:
    def test_error_falls_with_the_number_of_components(self, run, tmp_path):
        sizes = ("runner.sizes=[16,256]", "runner.n_points=30", "runner.repeats=4", "frequencies=monte_carlo")
        metrics = run.metrics("runner=measure", "approx=rf", "orbit.size=4", *sizes, "tracking.enabled=false")
        ratio = metrics["rel_fro_error/error/16"] / metrics["rel_fro_error/error/256"]
        assert 2 < ratio < 8  # 4 by theory
        assert {path.stem for path in (folders(tmp_path)[0] / "figures").iterdir()} == {
            "rel_fro_error",
            "rel_spectral_error",
        }

    def test_a_curve_for_each_orbit_size_and_rule(self, run):
        series = "runner.series={random: {orbit.rule: monte_carlo}, even: {orbit.rule: quadrature}}"
        panels = "runner.panels={r2: {orbit.size: 2}, r8: {orbit.size: 8}}"
        settings = (panels, series, "runner.options={reference: 32}")
        sizes = ("runner.sizes=[64]", "runner.n_points=20", "runner.repeats=2")
        folder = run.finished("runner=measure", "approx=rf", *settings, *sizes, "tracking.enabled=false")
        found = {(result["part"], result["label"]) for result in RunFolder(folder).read_results()}
        labels = {f"r{r}, {rule}" for r in (2, 8) for rule in ("random", "even")}
        assert found == {(part, label) for part in ("rel_fro_error", "rel_spectral_error") for label in labels}
        assert [path.stem for path in (folder / "figures").iterdir()] == ["panels"]

    def test_curves_share_the_exact_kernel_and_are_those_of_runs_by_themselves(self, run, monkeypatch):
        fits, fit_gram = [], Exact.fit_gram
        monkeypatch.setattr(Exact, "fit_gram", lambda self, X: fits.append(self) or fit_gram(self, X))
        settings = ("runner.options={reference: 16}", "runner.sizes=[32]", "runner.n_points=20", "runner.repeats=2")
        command = ("runner=measure", "approx=rf", *settings, "tracking.enabled=false")
        both = run.metrics(*command, "runner.series={r2: {orbit.size: 2}, r8: {orbit.size: 8}}")
        alone = run.metrics(*command, "runner.series={r8: {orbit.size: 8}}")
        assert len(fits) == 2 + 2
        key = "rel_fro_error/r8/32"
        assert both[key] == alone[key] != both["rel_fro_error/r2/32"]

    def test_errors_are_the_plain_formulas(self, rng):
        truth = rng.random((6, 6))
        estimate = truth + 0.1 * rng.standard_normal((6, 6))
        errors = kernel_errors(truth, estimate)
        singular = np.linalg.svd(estimate - truth, compute_uv=False)
        assert np.isclose(errors["rel_spectral_error"], singular[0] / np.linalg.svd(truth, compute_uv=False)[0])
        assert np.isclose(errors["rel_fro_error"], np.sqrt((singular**2).sum()) / np.sqrt((truth**2).sum()))
        assert np.isclose(errors["max_error"], np.abs(estimate - truth).max())
        assert np.isclose(errors["mean_error"], np.abs(estimate - truth).mean())
        assert np.isclose(errors["rms_error"], np.sqrt(np.mean((estimate - truth) ** 2)))
        off = ~np.eye(6, dtype=bool)
        assert np.isclose(errors["correlation"], np.corrcoef(truth[off], estimate[off])[0, 1])


def test_invariance_is_rounding_for_a_whole_group_and_not_for_a_part(run):
    cases = (
        "runner.cases={whole: {group: {name: dihedral}}, "
        "part: {group: {name: dihedral}, orbit: {size: 2, rule: monte_carlo}}}"
    )
    settings = ("runner=invariance", cases, "engine.dtype=float64", "runner.n_points=5", "tracking.enabled=false")
    metrics = run.metrics(*settings)
    for approx in ("rf", "nystrom", "exact"):
        assert metrics[f"invariance/whole/{approx}"] < 1e-10
        assert metrics[f"invariance/part/{approx}"] > 1e-3


def test_fields_are_compared_drawn_and_timed_until_the_exact_kernel_stops(run, tmp_path):
    smaller = (
        *("dataset.size=60", "dataset.test_size=60", "runner.components=[4,64]", "runner.repeats=1"),
        *("runner.sizes=[20,200]", "runner.timed_components=10", "selection.grid={kernel.lengthscale: [0.5, 1]}"),
        "runner.exact={curl-free OVK: {approx: {name: ovk, max_size: 150}}}",
    )
    metrics = run.metrics("experiment=orff_curl", "tracking.enabled=false", *smaller)
    (folder,) = folders(tmp_path)
    for label in ("curl-free ORFF", "independent RFF"):
        assert metrics[f"mse/{label} D64"] < metrics[f"mse/{label} D4"] / 4
    assert re.search(r"curl-free OVK, N=200 +stopped: approx=ovk: the exact kernel matrix would have 400 rows", run.out)
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert {"error.png", "time.png", "field curl-free ORFF.png", "grid-1_curl-free_ORFF_D_4_repeat_0.png"} <= figures


SKELETON = ("kernel=skeleton", "kernel.layers=[{kind: conv, size: 3}, {kind: full}]", "representation=raw")


@pytest.mark.slow
def test_errors_of_orbits_come_with_pictures_of_the_orbit_and_the_skeleton(run_with_figures, tmp_path):
    few = ("runner.n_points=10", "tracking.enabled=false", "engine.dtype=float64")
    measured = ("runner=measure", "runner.measure=orbit_error", "runner.options={reference: 8}", "runner.sizes=[2]")
    sizes = ("runner.repeats=1", "approx=skeleton", "approx.n_components=20")
    run_with_figures.ok(*measured, "run_name=a", *SKELETON, *few, *sizes)
    cases = "runner.cases={data: {group: {name: dihedral}}, noise: {group: {name: reflection}, shape: [4, 4]}}"
    run_with_figures.ok("runner=invariance", "run_name=b", *SKELETON, *few, cases, "runner.approximations=[exact]")
    drawn = [{path.name for path in (folder / "figures").iterdir()} for folder in folders(tmp_path)]
    assert drawn[0] == {"orbit_error.png", "orbit.png", "skeleton.png"}
    assert drawn[1] == {"orbit-data.png", "skeleton-data.png", "skeleton-noise.png"}

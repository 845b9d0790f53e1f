"""The command line, in this process: files, exit codes and messages of runs; test_run_sweeps.py has sweeps."""

import errno
import json
import os
import re
from pathlib import Path
from unittest.mock import Mock

import mlflow
import numpy as np
import pandas as pd
import pytest
import xarray
from command_line import SMALL, fitted, folders, mlflow_client, mlflow_runs

import orbit
from orbit import Engine, InputError, plots
from orbit.core.models import load_model
from runners.tracking.mlflow import Tracker
from runners.tracking.record import RunFolder

FIELD = ("dataset=vector_field", "group=identity", "approx=orff", "learner=stein")


class TestOneRun:
    def test_the_folder_of_a_finished_run_is_not_used_again(self, run, tmp_path):
        where = (*SMALL, "tracking.enabled=false", f"hydra.run.dir={tmp_path / 'mine'}")
        assert run(*where)[0] == 0
        before = (tmp_path / "mine" / "metrics.json").read_text()
        err = run.refused(*where, "approx.n_components=5")
        assert "error: hydra.run.dir: expected a folder without a finished run, found" in err
        assert (tmp_path / "mine" / "metrics.json").read_text() == before

    def test_a_folder_with_the_outputs_and_other_files(self, run, tmp_path):
        (tmp_path / "figures").mkdir()
        for name in ("own.txt", "figures/own.png"):
            (tmp_path / name).write_text("not of the run")
        assert run(*SMALL, "hydra.run.dir=.")[0] == 0
        (logged,) = mlflow_runs(tmp_path)
        artifacts = tmp_path / "out" / "artifacts" / "orbit" / logged.info.run_id / "artifacts"
        names = {path.relative_to(artifacts).as_posix() for path in artifacts.rglob("*") if path.is_file()}
        assert {"run.log", "config.yaml", "metrics.json", "figures/confusion.png"} < names
        assert not [name for name in names if "own" in name or "out" in name]
        for path in tmp_path.glob("*.json"):
            path.unlink()
        err = run.refused(*SMALL, "hydra.run.dir=.", "tracking.enabled=false")
        assert f"hydra.run.dir: expected a folder without files of others, found {tmp_path / 'config.yaml'}" in err

    def test_paths_are_relative_to_the_folder_of_the_command(self, run, tmp_path, rng):
        np.savez(tmp_path / "mine.npz", X=rng.random((60, 2)), y=rng.random(60))
        mine = ("dataset=arrays", "dataset.path=mine.npz", "group=identity", "runner.save_model=false")
        assert run(*mine, "tracking.enabled=false", "hydra.job.chdir=true")[0] == 0
        assert Path.cwd() == tmp_path

    def test_settings_on_both_sides_of_an_option(self, run):
        out = run.ok("tracking.enabled=false", "-m", *SMALL, "seed=0,1", "dry_run=true")
        assert [line.partition(":")[0][-3:] for line in out.splitlines()] == ["-s0", "-s1"]

    @pytest.mark.parametrize(
        "argument", ["dataset.path=\udcff.csv", "run_name=\udcff", "\udcff", "--config-dir=\udcff"]
    )
    def test_arguments_that_are_no_utf_8_are_refused(self, run, argument):
        err = run.refused(argument)
        found = argument.replace("\udcff", r"\udcff")
        assert err.startswith(f"error: '{found}': expected text in UTF-8; rename the file")
        assert err.count("\n") == 1

    def test_a_folder_whose_name_is_no_utf_8(self, run, tmp_path, monkeypatch):
        (tmp_path / "\udcff").mkdir()
        monkeypatch.chdir(tmp_path / "\udcff")
        assert run(*SMALL, "tracking.enabled=false", "hydra.run.dir=mine")[0] == 0
        assert "finished" in (tmp_path / "\udcff" / "mine" / "run.log").read_text(encoding="utf-8")
        with pytest.raises(InputError, match=r"outputs: expected a path in UTF-8, found .*\\udcff"):
            Tracker(Path("out"), None, "orbit")

    def test_run_folder_is_complete(self, run_with_figures):
        folder = run_with_figures.finished(*SMALL[:-1], "seed=3")
        out = run_with_figures.out
        assert folder.name.endswith("-s3")
        for name in ("config.yaml", "overrides.yaml", "run.log", "metrics.json", "run.json", "model.pkl"):
            assert (folder / name).stat().st_size > 0, name
        figures = {"orbit.png", "confusion.png", "errors.png", "selection.png"}
        assert {path.name for path in (folder / "figures").iterdir()} == figures
        metrics = json.loads((folder / "metrics.json").read_text())
        with np.load(folder / "input_example.npz", allow_pickle=False) as example:
            np.testing.assert_array_equal(orbit.load(str(folder)).predict(example["X"]), example["y"])
        assert metrics["test/accuracy"] > 0.3
        assert metrics["features/dim"] <= 20
        assert metrics["time/total_s"] > 0
        assert "test accuracy" in out
        assert str(folder) in out
        assert "mlflow ui" in out

    def test_figures_of_a_vector_field(self, run_with_figures):
        folder = run_with_figures.finished(*FIELD, *SMALL, "tracking.enabled=false")
        assert {path.stem for path in (folder / "figures").iterdir()} == {"field", "predictions", "selection"}

    def test_a_table_of_places_and_vectors_is_a_field_to_an_operator_valued_kernel(self, run_with_figures, tmp_path):
        places = np.random.default_rng(0).uniform(-40, 60, (40, 2))
        wind = pd.DataFrame({"x": places[:, 0], "z": places[:, 1], "u": -places[:, 1], "v": places[:, 0]})
        wind.to_csv(tmp_path / "wind.csv", index=False)
        given = "dataset=table", f"dataset.path={tmp_path / 'wind.csv'}", "dataset.target=[u, v]", "group=identity"
        kernel = "approx=ovk", "kernel=divergence_free", "learner=stein", "tracking.enabled=false"
        with_structure = run_with_figures.finished(*given, *kernel)
        assert (with_structure / "figures" / "field.png").is_file()
        without = run_with_figures.finished(*given, "approx=exact", "learner=ridge", "tracking.enabled=false", "seed=1")
        assert not (without / "figures" / "field.png").exists()

    def test_currents_are_drawn_in_the_coordinates_of_their_file(self, run_with_figures, tmp_path, monkeypatch):
        lat, lon = np.linspace(40, 47, 7), np.linspace(5, 15, 9)
        u, v = np.meshgrid(43.5 - lat, lon - 10, indexing="ij")
        currents = {"u": (("lat", "lon"), u), "v": (("lat", "lon"), v)}
        xarray.Dataset(currents, {"lat": lat, "lon": lon}).to_netcdf(tmp_path / "mine.nc", engine="h5netcdf")
        drawn, draw = [], plots.field
        monkeypatch.setattr(plots, "field", lambda *given: drawn.append(given) or draw(*given))
        given = "dataset=fields", f"dataset.path={tmp_path / 'mine.nc'}", "dataset.target=[u,v]", "group=identity"
        kernel = "approx=ovk", "kernel=divergence_free", "learner=gp", "tracking.enabled=false"
        out = run_with_figures.ok(*given, *kernel)
        assert "u along lat, v along lon, by the order of dataset.target and dataset.features" in out
        assert re.search(r"noise std +[\d.e-]+, [\d.e-]+, in units of the target", out)
        ((points, *_, names),) = drawn
        assert names == ["lat", "lon"]
        assert {*points[:, 0].round(6)} <= {*lat.round(6)}
        assert {*points[:, 1].round(6)} <= {*lon.round(6)}

    @pytest.mark.parametrize("target", ["label", "cost_$_per_$"])
    def test_dollar_signs_in_a_table_are_drawn(self, run_with_figures, tmp_path, log_messages, target):
        rows = [f"{x % 9},{'$$' if x % 2 else '$5 to $x^$'},{x % 7}" for x in range(60)]
        (tmp_path / "mine.csv").write_text("\n".join(["$_$,label,cost_$_per_$", *rows]))
        table = "dataset=table", f"dataset.path={tmp_path / 'mine.csv'}", f"dataset.target='{target}'"
        folder = run_with_figures.finished(*table, "approx.n_components=5", "tracking.enabled=false")
        assert {"errors", "importance"} < {path.stem for path in (folder / "figures").iterdir()}
        assert not [line for line in log_messages if "is missing" in line]

    def test_a_figure_that_fails_is_a_warning_and_comes_after_the_model(self, run, tmp_path, monkeypatch, log_messages):
        def fail(*args):
            (folder,) = folders(tmp_path)
            assert (folder / "metrics.json").is_file()
            assert (folder / "model.pkl").is_file()
            raise MemoryError("too large")

        monkeypatch.setattr(plots, "confusion", fail)
        assert RunFolder(run.finished(*SMALL[:-1], "tracking.enabled=false")).read_record().status == "FINISHED"
        assert [line for line in log_messages if "confusion" in line] == [
            "the figure confusion is missing: MemoryError: too large"
        ]

    def test_a_user_without_a_home_keeps_the_model(self, run, monkeypatch):
        for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "USER", "LOGNAME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr("pwd.getpwuid", Mock(side_effect=KeyError("uid not found: 12345")))
        folder = run.finished(*SMALL[:-1], "tracking.enabled=false")
        assert os.environ["HOME"] == os.devnull
        assert load_model(folder, trust=True)

    def test_a_small_error_is_not_logged_as_zero(self, run, tmp_path):
        X = np.linspace(0, 3, 60)[:, None]
        np.savez(tmp_path / "mine.npz", X=X, y=np.sin(X[:, 0]))
        mine = ("dataset=arrays", f"dataset.path={tmp_path / 'mine.npz'}", "group=identity")
        folder = run.finished(*mine, "runner.save_model=false", "tracking.enabled=false")
        (line,) = (line for line in (folder / "run.log").read_text().splitlines() if " finished: " in line)
        assert 0 < float(line.rpartition(" ")[2]) < 1e-3

    @pytest.mark.filterwarnings("default")
    def test_warning_is_logged_and_shown_once(self, run):
        hurried = ("learner=cg", "learner.max_iter=1", "learner.rank=1", "learner.regularization=1e-9")
        folder = run.finished(*FIELD[:-1], *hurried, *SMALL, "tracking.enabled=false")
        for text in (run.said, (folder / "run.log").read_text()):
            (line,) = (line for line in text.splitlines() if "conjugate gradients stopped after" in line)
            assert "ConvergenceWarning: " in line
            assert line.endswith("or use SteinRegressor")

    def test_names_the_features_that_the_number_of_points_decides(self, run):
        field = "dataset=vector_field", "dataset.size=60", "group=identity", "learner=gp"
        folder = RunFolder(run.finished(*field, "runner.save_model=false", "tracking.enabled=false"))
        assert (
            folder.read_record().name == folder.read_config()["run_name"] == "vector_field-identity-exact-size_60-gp-s0"
        )
        assert folder.read_record().params["approx.name"] == "exact"
        assert folder.read_record().name in run.said

    def test_mlflow_has_the_whole_run(self, run, tmp_path):
        out = run.ok(*SMALL[:-1])
        client = mlflow_client(tmp_path)
        key = re.search(r"viewStateShareKey=(\w+)", out)[1]
        view = client.get_experiment_by_name("orbit").tags[f"mlflow.sharedViewState.{key}"]
        columns = json.loads(json.loads(view)["state"])["selectedColumns"]
        assert columns[:2] == ["metrics.`test/accuracy`", "metrics.`reference/majority_class/accuracy`"]
        assert columns[-6] == "params.`data`"
        assert columns[-1] == "params.`learner.name`"
        (folder,) = folders(tmp_path)
        (logged,) = mlflow_runs(tmp_path)
        assert logged.info.status == "FINISHED"
        assert re.fullmatch(r"rotated_digits-rotation-nystrom-n_train_60-n_test[.]\w{6}-s0", logged.info.run_name)
        assert logged.data.tags["mlflow.source.name"] == " ".join(
            ["python run.py", *SMALL[:-1], f"outputs={tmp_path / 'out'}"]
        )
        assert logged.data.tags["mlflow.source.git.commit"] == logged.data.tags["git.commit"]
        assert logged.data.metrics == RunFolder(folder).read_metrics()
        assert logged.data.params["distribution.name"] == "haar"
        assert logged.data.params["data"] == "rotated_digits"
        assert {"config_hash", "seed", "launcher", "git.commit", "version.torch"} <= set(logged.data.tags)
        assert logged.data.tags["device"] == Engine().device_name()
        assert logged.inputs.dataset_inputs[0].dataset.name == "rotated_digits"
        artifacts = {item.path for item in client.list_artifacts(logged.info.run_id)}
        assert {"config.yaml", "overrides.yaml", "metrics.json", "run.log", "figures"} <= artifacts

        mlflow.set_tracking_uri(client.tracking_uri)
        model = mlflow.pyfunc.load_model(f"runs:/{logged.info.run_id}/model")
        example = np.load(folder / "input_example.npz")
        np.testing.assert_array_equal(model.predict(example["X"]), example["y"])

    def test_same_config_and_seed_give_identical_metrics(self):
        found = [fitted(*SMALL, f"engine.workers={workers}").metrics for workers in (1, 1, 2)]
        first, *others = ({k: m[k] for k in m if k.startswith(("test/", "train/", "kernel/"))} for m in found)
        assert others == [first, first]

    def test_config_marks_defaults(self, run):
        text = (run.finished(*SMALL, "tracking.enabled=false", "distribution=von_mises") / "config.yaml").read_text()
        assert "# representation was not given" in text
        assert "# orbit.rule was not given" in text
        assert "# distribution was not given" not in text
        assert "# orbit.size was not given" not in text

    def test_error_of_the_spectral_path_is_reported(self, run):
        settings = ("approx=rf", "representation=polar", "orbit.size=32", "tracking.enabled=false")
        spectral = run.metrics(*SMALL, *settings, "engine.spectral_tolerance=0.05")
        assert "spectral path (" in run.out
        direct = run.metrics(*SMALL, *settings, "engine.path=direct")
        assert spectral["engine/modes"] <= spectral["engine/all_modes"]
        assert spectral["engine/coefficients"] < spectral["engine/all_coefficients"]
        assert 0 < spectral["engine/spectral_error"] <= 0.05
        assert not any(key.startswith("engine/") for key in direct)

    @pytest.mark.parametrize(
        "overrides",
        [
            ("approx=rf", "approx.variant=offset", "learner.selection=hold_out"),
            ("approx=exact", "learner.selection=loo"),
            ("landmarks.source=orbit", "learner=svm", "learner.regularization=1e-4"),
            ("dataset=digits", "distribution=uniform", "representation=unit_norm", "engine.dtype=float64"),
            ("group=identity", "representation=raw", "kernel.lengthscale=2", "orbit.rule=monte_carlo"),
            ("distribution=delta", "orbit.random_phase=true"),
        ],
    )
    def test_other_choices_run(self, run, overrides):
        size = [key for key in SMALL if not (key.startswith("approx.") and "approx=exact" in overrides)]
        assert run(*size, "tracking.enabled=false", *overrides)[0] == 0

    def test_orbit_error_of_quadrature_is_smaller(self, run, tmp_path):
        sizes = ("runner.sizes=[4,16]", "runner.n_points=20", "runner.repeats=2", "approx.n_components=50")
        metrics = run.metrics("experiment=orbit_quadrature", "tracking.enabled=false", *sizes)
        assert metrics["error/quadrature/16"] < metrics["error/monte_carlo/16"] / 5
        assert (folders(tmp_path)[0] / "figures" / "orbit_error.png").is_file()


class TestBadInput:
    """One line, exit code 2, no traceback on the terminal, no computation; tests/test_bad_input.py has most cases."""

    def test_a_store_that_cannot_be_used(self, run):
        """test_tracking.py has all kinds."""
        err = run.refused("tracking.uri=nonsense://x")
        assert err.startswith("error: tracking.uri: cannot use nonsense://x")
        assert err.count("\n") == 1
        assert "accuracy" not in run.out

    def test_data_that_may_not_be_read(self, run, tmp_path, monkeypatch):
        denied = PermissionError(errno.EACCES, "Permission denied", str(tmp_path))  # root is never refused
        (tmp_path / "cat").mkdir()
        monkeypatch.setattr(Path, "iterdir", Mock(side_effect=denied))
        err = run.refused(f"dataset.path={tmp_path}", "dataset=images", "tracking.enabled=false")
        assert err == f"error: {tmp_path}: expected a path that this process may use, found Permission denied\n"

    @pytest.mark.parametrize("sweep", [(), ("-m", "seed=0,1")], ids=["run", "sweep"])
    def test_unwritable_outputs(self, run, tmp_path, sweep):
        (tmp_path / "out").write_text("a file where the folder should be")
        assert f"outputs: cannot write to {tmp_path / 'out'} (it is a file)" in run.refused(*sweep, *SMALL)

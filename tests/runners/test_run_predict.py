"""runner=predict: new points of every kind, models from a folder and from MLflow, and errors."""

import pickle
from pathlib import Path

import ase.io
import mlflow
import numpy as np
import pandas as pd
import pytest
import soundfile
import tifffile
import xarray
from ase.build import molecule
from command_line import new_job, ran
from program import folders
from samples import draw, draw_classes
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline

import orbit
from orbit import Digits, Exact, GaussianProcess, InputError, Raw, UnitNorm
from orbit.learners.answers import answer_table
from orbit.learners.base import Learner
from orbit.learners.saved import data_of
from runners.experiments.predict import Predict
from runners.job.job import Job
from runners.tracking.record import RunFolder


def small(*overrides: str) -> tuple[str, ...]:
    """Settings of a small fit; an exact kernel has no components."""
    size = () if "approx=exact" in overrides else ("approx.n_components=20",)
    return (*size, "orbit.size=4", *overrides)


def job_in(folder: Path, *overrides: str) -> Job:
    return new_job(folder, *small(*overrides))


def fitted(folder: Path, *overrides: str) -> Path:
    """A run folder as ``runner=fit`` writes it."""
    return ran(folder, *small(*overrides)).folder.path


def predicted(job: Job, model: object, points: object) -> pd.DataFrame:
    runner = Predict(str(model), str(points))
    runner.check()
    runner.run(job)
    return pd.read_csv(job.folder.path / "predictions.csv")


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Path:
    return fitted(tmp_path_factory.mktemp("runs") / "digits", "dataset=digits", "dataset.n_train=100")


def test_arrays_are_predicted_as_the_model_does(digits, tmp_path):
    X = Digits().load(5).X_test[:50]
    np.savez(tmp_path / "new.npz", X=X)
    job = job_in(tmp_path / "job", "runner=predict", "dataset=table", "engine.memory=1e-6")  # no file, small batches
    table = predicted(job, digits, tmp_path / "new.npz")
    model = pickle.loads((digits / "model.pkl").read_bytes())
    np.testing.assert_array_equal(table["prediction"], model.predict(X))
    np.testing.assert_array_equal(table["point"], np.arange(50))


def test_a_model_that_lacks_what_this_version_needs_is_one_line(digits, tmp_path, monkeypatch):
    def transform(self, X):
        return self.gone_

    monkeypatch.setattr(UnitNorm, "transform", transform)
    np.save(tmp_path / "new.npy", Digits().load(5).X_test[:5])
    with pytest.raises(InputError, match="its UnitNorm was fitted by another version of orbit; fit it again"):
        predicted(job_in(tmp_path / "job", "runner=predict"), digits, tmp_path / "new.npy")


@pytest.mark.parametrize(
    "model",
    [
        ("approx=exact", "learner=ridge"),
        ("approx=exact", "learner=gp"),
        ("approx=orff", "learner=stein", "learner.regularization=0.01"),
    ],
    ids=str,
)
def test_features_with_a_structure_are_predicted(model, tmp_path):
    """Kernel values with the training points, and operator-valued features."""
    folder = fitted(tmp_path / "fitted", "dataset=vector_field", "dataset.size=60", "group=identity", *model)
    X = np.random.default_rng(0).random((12, 2))
    np.save(tmp_path / "new.npy", X)
    table = predicted(job_in(tmp_path / "job", "runner=predict", "engine.memory=1e-6"), folder, tmp_path / "new.npy")
    expected = pickle.loads((folder / "model.pkl").read_bytes()).predict(X)
    np.testing.assert_allclose(table.filter(like="prediction"), expected, atol=1e-5)


def test_tables_are_predicted_under_their_targets_names(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    table = table.assign(up=table["a"] + table["b"], down=-table["a"])
    table.to_csv(tmp_path / "mine.csv", index=False)
    folder = fitted(
        tmp_path / "fitted", "dataset=table", f"dataset.path={tmp_path / 'mine.csv'}", "dataset.target=[up,down]",
        "group=identity", "kernel.lengthscale=8", "approx.n_components=60", "dataset.missing=mean",
    )  # fmt: skip
    new = table[["c", "b", "a"]].iloc[:10].copy()
    new.loc[3, "c"] = np.nan
    new.to_parquet(tmp_path / "new.parquet")
    found = predicted(job_in(tmp_path / "job"), folder, tmp_path / "new.parquet")
    assert found.columns.tolist() == ["point", "prediction_up", "prediction_down"]
    assert np.abs(found["prediction_up"] - table["up"][:10]).max() < 0.5
    assert np.abs(found["prediction_down"] - table["down"][:10]).max() < 0.5


def test_pictures_are_predicted_by_name(tmp_path):
    draw_classes(tmp_path / "zoo")
    draw_classes(tmp_path / "new", 2)
    folder = fitted(tmp_path / "fitted", "dataset=images", f"dataset.path={tmp_path / 'zoo'}")
    table = predicted(job_in(tmp_path / "job"), folder, tmp_path / "new")
    assert table["point"].tolist() == ["cat/1.png", "cat/3.png", "owl/0.png", "owl/2.png"]
    assert set(table["prediction"]) <= {"cat", "owl"}
    pd.testing.assert_frame_equal(orbit.predict(folder, tmp_path / "new"), table)
    points = orbit.read_points(folder, tmp_path / "new")
    assert (points.ids, orbit.load(folder).predict(points.X).tolist()) == tuple(map(list, table.to_numpy().T))


def test_new_rows_of_a_table_are_predicted_from_python(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"case": [f"c{i}" for i in range(40)], "ward": ["7", "8"] * 20, "dose": rng.random(40)})
    rows.assign(ill=2 * rows["dose"] + (rows["ward"] == "7")).to_csv(tmp_path / "old.csv", sep=";", index=False)
    settings = "dataset.target=ill", "dataset.exclude=[case]", "dataset.categories=[ward]", "approx=exact", "learner=gp"
    about = ("dataset=table", f"dataset.path={tmp_path / 'old.csv'}", *settings, "group=identity", "orbit.size=1")
    folder = ran(tmp_path / "fit", *about).folder.path
    rows[:5].to_csv(tmp_path / "new.csv", sep=";", index=False)
    table = orbit.predict(folder, tmp_path / "new.csv", id_column="case")
    assert [*table] == ["point", "prediction", "std", "std_observed", "lower", "upper"]
    assert table["point"].tolist() == ["c0", "c1", "c2", "c3", "c4"]
    expected = orbit.load(folder).predict(rows[:5].astype({"ward": str}))
    np.testing.assert_allclose(table["prediction"], expected, rtol=1e-10)
    with pytest.raises(InputError, match=r"new\.csv: the model of a table .* orbit\.predict reads and predicts it"):
        orbit.read_points(folder, tmp_path / "new.csv")


@pytest.mark.parametrize(
    ("learner", "columns"),
    [
        ("ridge", ["score_no", "score_yes"]),
        ("logistic", ["probability_no", "probability_yes"]),
        ("gp", ["std", "std_observed"]),
    ],
)
def test_a_fit_of_rows_has_the_predictions_of_all_test_rows(tmp_path, monkeypatch, learner, columns):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X[:, 0] if learner == "gp" else np.where(X[:, 0] > 0.3, "yes", "no")
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y).to_csv("rows.csv", index=False)
    np.savez("rows.npz", X=X, y=y)
    about = ("dataset=arrays", "dataset.path=rows.npz"), ("dataset=table", "dataset.path=rows.csv", "dataset.target=y")
    for end, settings in zip(("", " y"), about, strict=True):
        fixed = f"learner={learner}", "group=identity", "orbit.size=1"
        job = ran(tmp_path / f"a{end}", *settings, *fixed, figures=True)
        table = pd.read_csv(job.folder.path / "predictions.csv")
        true, guess = table[f"true{end}"].tolist(), table[f"predicted{end}"]
        assert {"row", *columns} < {*table}
        assert (len(table), [y[row] for row in table["row"]]) == (20, true if learner != "gp" else pytest.approx(true))
        if learner == "ridge":
            assert ((table["score_yes"] > 0) == (guess == "yes")).all()
            expected = roc_auc_score(table[f"true{end}"] == "yes", table["score_yes"])
            assert job.metrics["test/roc_auc"] == pytest.approx(expected)


def test_a_fit_of_files_names_those_of_its_test_part(tmp_path):
    draw_classes(tmp_path / "zoo", 12)
    about = ("dataset=images", f"dataset.path={tmp_path / 'zoo'}", "learner=logistic")
    job = ran(tmp_path / "fit", *small(*about), figures=True)
    table = pd.read_csv(tmp_path / "fit" / "predictions.csv")
    assert [*table] == ["file", "true", "predicted", "probability_cat", "probability_owl"]
    assert [name.split("/")[0] for name in table["file"]] == table["true"].tolist()
    assert (table["true"] == table["predicted"]).mean() == pytest.approx(job.metrics["test/accuracy"])
    assert all((tmp_path / "zoo" / name).is_file() for name in table["file"])


def write_images(folder: Path, volumes: bool = False) -> None:
    for name, picture in zip(NAMES, np.random.default_rng(0).random((8, 5, 6, 8)), strict=True):
        draw(folder / f"{name}.png", np.uint8(255 * picture[0]))
        if volumes:
            (folder / f"{name}.png").unlink()
            tifffile.imwrite(folder / f"{name}.tif", np.uint8(255 * picture))


def write_sounds(folder: Path) -> None:
    for i, name in enumerate(NAMES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(folder / f"{name}.flac", np.sin(np.arange(3000 + i) / (2 + i % 2)), 8000)


def write_series(folder: Path) -> None:
    values = pd.DataFrame(np.random.default_rng(0).random((8, 20)), columns=[f"t{i}" for i in range(20)])
    values.assign(label=["cat", "owl"] * 4).to_csv(folder / "all.csv", index=False)
    values[:3].to_csv(folder / "new.csv", index=False)


def write_molecules(folder: Path) -> None:
    for i, name in enumerate(NAMES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        atoms = molecule(["H2O", "CH4", "C6H6", "CH3Cl"][i % 4], info={"label": name[:3]})
        ase.io.write(folder / f"{name}.extxyz", atoms)


def write_fields(folder: Path) -> None:
    heat = np.random.default_rng(0).random((8, 5, 6))
    values = {"heat": (("time", "lat", "lon"), heat), "label": ("time", np.array(["cat", "owl"] * 4))}
    whole = xarray.Dataset(values, {"time": pd.date_range("2026-01-01", periods=8)})
    whole.to_netcdf(folder / "all.nc", engine="h5netcdf")
    whole[["heat"]].isel(time=slice(3)).to_netcdf(folder / "new.nc", engine="h5netcdf")


def write_table(folder: Path) -> None:
    rows = [f"{i};{i % 3},5;{'red' if i % 4 else ''};{('cat', 'owl')[i % 2]}" for i in range(8)]
    (folder / "all.csv").write_text("\n".join(["case;size;colour;label", *rows]))
    (folder / "new.csv").write_text("colour;size;note\nred;1,5;a\npink;;b\n;2,0;c\n")


NAMES = [f"{('cat', 'owl')[i % 2]}/{i}" for i in range(8)]

#: Of every kind: what writes the training files, their place, new files, and the names of their points.
EVERY_KIND = {
    "images": (write_images, "", "cat", ["0.png", "2.png", "4.png", "6.png"]),
    "volumes": (lambda folder: write_images(folder, True), "", "cat", ["0.tif", "2.tif", "4.tif", "6.tif"]),
    "sounds": (write_sounds, "", "owl", ["1.flac", "3.flac", "5.flac", "7.flac"]),
    "series": (write_series, "all.csv", "new.csv", ["0", "1", "2"]),
    "molecules": (write_molecules, "", "owl", ["1.extxyz", "3.extxyz", "5.extxyz", "7.extxyz"]),
    "fields": (write_fields, "all.nc", "new.nc", [f"time=2026-01-0{i}T00:00:00.000000000" for i in (1, 2, 3)]),
    "table": (write_table, "all.csv", "new.csv", ["0", "1", "2"]),
}


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.filterwarnings("ignore")
def test_new_files_of_every_kind_are_read_as_those_of_training(kind, tmp_path):
    write, place, new, names = EVERY_KIND[kind]
    (tmp_path / "data").mkdir()
    write(tmp_path / "data")
    settings = [f"dataset.path={tmp_path / 'data' / place}"]
    settings += ["dataset.target=label"] if kind not in ("images", "volumes", "sounds") else []
    settings += ["encoder=none", "group=identity", "dataset.test_fraction=0.5"]
    folder = fitted(tmp_path / "fitted", f"dataset={kind}", *settings)
    found = predicted(job_in(tmp_path / "job"), folder, tmp_path / "data" / new)
    assert found["point"].astype(str).tolist() == names
    assert {*found["prediction"]} <= {"cat", "owl"}
    if kind in ("images", "sounds", "molecules"):  # which can be listed in a table
        suffix = names[0].partition(".")[2]
        (tmp_path / "data" / "list.csv").write_text(f"file;by\nowl/3.{suffix};me\ncat/2.{suffix};you\n")
        listed = predicted(job_in(tmp_path / "again"), folder, tmp_path / "data" / "list.csv")
        assert len(listed) == 2
        if f"3.{suffix}" in names:
            assert listed["prediction"][0] == found["prediction"][names.index(f"3.{suffix}")]


def test_molecules_of_any_size_are_warned_of_once_and_served(run, tmp_path):
    (tmp_path / "data").mkdir()
    write_molecules(tmp_path / "data")
    new = [molecule("NH3"), molecule("NF3"), molecule("C3H8")]
    ase.io.write(tmp_path / "new.extxyz", new)
    run.ok(
        "dataset=molecules",
        f"dataset.path={tmp_path / 'data'}",
        "dataset.target=label",
        "runner.check_group=false",
        "run_name=a",
    )
    (folder,) = folders(tmp_path)
    run.ok("runner=predict", f"runner.model={folder}", f"runner.input={tmp_path / 'new.extxyz'}", "run_name=b")
    assert run.err.count("that no training molecule has") == 1
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}")
    served = mlflow.pyfunc.load_model(f"runs:/{RunFolder(folder).read_record().run_id}/model")
    loader, form = data_of(folder)
    for i, name in enumerate(
        pd.read_csv(folders(tmp_path)[1] / "predictions.csv")["prediction"]
    ):  # each in an array of its own size
        ase.io.write(tmp_path / "one.extxyz", new[i])
        X = loader.read_points(str(tmp_path / "one.extxyz"), form | {"shape": [1, 1]}).X
        assert X.shape[1] == len(new[i])
        assert served.predict(X).tolist() == [name]


def test_a_run_that_mlflow_does_not_have_is_one_line(run, tmp_path):
    np.save(tmp_path / "new.npy", np.zeros((5, 8, 8)))
    missing = ("runner.model=runs:/nonsense/model", f"runner.input={tmp_path / 'new.npy'}", "runner.trust=true")
    assert "has no run nonsense with a model" in run.refused("runner=predict", *missing)


@pytest.mark.parametrize(
    "setting",
    ["group=reflection", "approx.n_components=7", "orbit.size=3", "dataset=mnist", "architecture=full", "size=small"],
)
def test_components_are_those_of_the_model(run, digits, tmp_path, setting):
    key = setting.partition("=")[0]
    np.save(tmp_path / "new.npy", np.zeros((3, 8, 8)))
    err = run.refused("runner=predict", f"runner.model={digits}", f"runner.input={tmp_path / 'new.npy'}", setting)
    assert f"error: {key}: runner=predict takes the components of its model: leave {key} out" in err


@pytest.mark.parametrize(("factor", "warns"), [(16, True), (0.01, True), (1, False), (5, False), (0.05, False)])
def test_new_points_on_another_scale_are_warned_of(run, digits, tmp_path, factor, warns):
    np.save(
        tmp_path / "new.npy", factor * RunFolder(digits).read_record().dataset["form"]["largest"] * np.ones((3, 8, 8))
    )
    run.ok("runner=predict", f"runner.model={digits}", f"runner.input={tmp_path / 'new.npy'}")
    assert ("if the new points are scaled differently, predictions are wrong" in run.err) is warns


def test_errors_are_one_line_on_the_command_line(run, digits, tmp_path):
    np.save(tmp_path / "other.npy", np.ones((2, 7, 7)))
    err = run.refused("runner=predict", f"runner.model={digits}", f"runner.input={tmp_path / 'other.npy'}")
    assert err == (f"error: runner.input: {tmp_path / 'other.npy'}: expected points of shape (8, 8), found (7, 7)\n")


def test_output_is_written_where_it_is_wanted(digits, tmp_path):
    np.save(tmp_path / "new.npy", np.ones((2, 8, 8)))
    Predict(str(digits), str(tmp_path / "new.npy"), str(tmp_path / "mine.csv")).run(job_in(tmp_path / "job"))
    assert len(pd.read_csv(tmp_path / "mine.csv")) == 2
    with pytest.raises(InputError, match=r"runner\.output: cannot write to"):
        Predict(str(digits), str(tmp_path / "new.npy"), str(tmp_path)).run(job_in(tmp_path / "job2"))


class Deviating(Learner):
    """Predicts row numbers, with standard deviations; the noise of observations is not known."""

    def __init__(self, outputs=0):
        self.outputs = outputs

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict(self, X, return_std=False):
        value = np.arange(len(X) * max(1, self.outputs), dtype=float)
        value = value.reshape(len(X), -1) if self.outputs else value
        return (value, value / 10) if return_std else value

    def noise_std(self):
        return None


class Probable(Learner):
    def __init__(self, classes):
        self.classes = classes

    def fit(self, X, y=None):
        self.fitted_, self.classes_ = True, np.array(self.classes)
        return self

    def predict(self, X):
        return self.classes_[np.zeros(len(X), int)]

    def predict_proba(self, X):
        return np.tile([0.75, 0.25], (len(X), 1))


@pytest.mark.parametrize(
    ("learner", "targets", "columns"),
    [
        (Deviating(), None, ["prediction", "std"]),
        (Deviating(outputs=2), ["up", "down"], ["prediction_up", "prediction_down", "std_up", "std_down"]),
        (Deviating(outputs=2), None, ["prediction_0", "prediction_1", "std_0", "std_1"]),
        (Probable(classes=["cat", "owl"]), None, ["prediction", "probability_cat", "probability_owl"]),
    ],
)
def test_deviations_and_probabilities_are_columns(learner, targets, columns):
    X = np.ones((3, 2))
    table = answer_table(Pipeline([("features", Raw()), ("learner", learner)]).fit(X), X, targets)
    assert table.columns.tolist() == columns
    assert len(table) == 3
    if "std" in table:
        np.testing.assert_allclose(table["std"], table["prediction"] / 10)


@pytest.mark.parametrize("scale", [1.0, np.array([1.0, 100.0])])
def test_deviations_of_the_function_and_of_an_observation_are_different_columns(scale, rng):
    X = rng.uniform(0, 3, (300, 1))
    y = np.sin(X) + 0.3 * rng.standard_normal((300, np.size(scale)))
    y = y[:, 0] if np.isscalar(scale) else y * scale
    model = Pipeline([("features", Exact(residual=True)), ("learner", GaussianProcess())]).fit(X, y)
    table = answer_table(model, X)
    for k, each in enumerate(np.atleast_1d(scale)):
        suffix = "" if np.isscalar(scale) else f"_{k}"
        function, observed = table[f"std{suffix}"] / each, table[f"std_observed{suffix}"] / each
        assert (function < 0.15).all()
        middle, half = table[f"prediction{suffix}"], 1.96 * table[f"std_observed{suffix}"]
        np.testing.assert_allclose(table[f"lower{suffix}"], middle - half, rtol=1e-3, atol=1e-3 * each)
        np.testing.assert_allclose(table[f"upper{suffix}"], middle + half, rtol=1e-3, atol=1e-3 * each)
        np.testing.assert_allclose(observed, np.hypot(0.3, function), rtol=0.2)

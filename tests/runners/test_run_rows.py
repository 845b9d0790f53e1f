"""Runs on tables: categories, groups, metrics of classes and targets, the files and figures of rows."""

import csv
import json
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import mlflow
import numpy as np
import pandas as pd
import pytest
from command_line import folders, mlflow_runs, quickly_composed
from matplotlib.figure import Figure
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import scoring_server
from scipy.stats import norm
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import Pipeline

import orbit
from orbit import InputError, plots
from orbit.plots.predictions import predicted_against_true
from runners.config.plan import plan
from runners.experiments.fitting import Fitted, fit_and_score
from runners.experiments.importance import importance, is_cheap
from runners.job.job import Stopwatch
from runners.measure import figures
from runners.measure.figures import error_rows, importance as importance_figure
from runners.tracking.record import RunFolder

TABLE = ("dataset=table", "dataset.path=mine.csv", "group=identity", "approx=points", "runner.save_model=false")


def write(n: int = 120) -> pd.DataFrame:
    """Rows whose prices follow from colour and width; the noise column is about nothing."""
    rng = np.random.default_rng(0)
    colour, width = rng.choice(["red", "blue", "green"], n), rng.standard_normal(n)
    price = 3.0 * (colour == "red") + width
    table = pd.DataFrame({"colour": colour, "width": width, "noise": rng.standard_normal(n), "price": price})
    table = table.assign(**{"cost/EUR": 1e4 * width, "dear": np.where(price > 2.5, "yes", "no")})
    table.to_csv("mine.csv", index=False)
    return table


@pytest.fixture
def table(tmp_path, monkeypatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    return write()


def fitted(*overrides: str) -> tuple:
    made = plan(quickly_composed(*TABLE, "dataset.categories=onehot", *overrides))
    data = made.load()
    return made, data, fit_and_score(made, data, Stopwatch())


COLUMNS = "dataset.features=[colour,width,noise]"
CLASSES = (*TABLE[:-1], "dataset.categories=onehot", COLUMNS, "dataset.target=dear")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_classes_of_a_table_from_fit_to_prediction(table, run, tmp_path):
    """Metrics of rare classes and probabilities, rows with errors, importance, and predictions of new categories."""
    learner = "learner=logistic", "learner.regularization=0.01"
    folder = run.finished(*CLASSES, *learner, "tracking.enabled=false", "run_name=a")
    out = run.out
    metrics = RunFolder(folder).read_metrics()
    for name in ("balanced_accuracy", "macro_f1", "log_loss", "calibration_error"):
        assert 0 <= metrics[f"test/{name}"] < 1
        assert f"{name} {metrics[f'test/{name}']:.4g}" in out
    assert {"confusion", "reliability", "errors", "importance"} <= {p.stem for p in (folder / "figures").iterdir()}

    assert metrics["test/accuracy"] < 1
    wrong = rows_of(folder / "errors.csv")
    assert len(wrong) == round(30 * (1 - metrics["test/accuracy"]))
    for row in wrong:
        expected = table.loc[int(row["row"])]
        assert row["true dear"] == expected["dear"] != row["predicted dear"]
        assert (row["colour"], float(row["width"])) == (expected["colour"], expected["width"])

    ranked = rows_of(folder / "importance.csv")
    assert [row["column"] for row in ranked][-1] == "noise"
    assert float(ranked[0]["decrease of accuracy"]) > 0.05

    new = table.drop(columns=["price", "cost/EUR", "dear"]).assign(colour="pink")
    new.to_csv("new.csv", index=False)
    run.ok("runner=predict", f"runner.model={folder}", "runner.input=new.csv", "run_name=b")
    assert run.err.count("values that the training part does not have: colour (120 rows, e.g. 'pink')") == 1
    predictions = rows_of(folders(tmp_path)[1] / "predictions.csv")
    assert {row["prediction"] for row in predictions} <= {"yes", "no"}
    assert float(predictions[0]["probability_no"]) + float(predictions[0]["probability_yes"]) == pytest.approx(1)


def served(tmp_path: Path) -> tuple[str, mlflow.pyfunc.PyFuncModel]:
    """The URI of the model of the only run in MLflow, and the model as its server has it."""
    (logged,) = mlflow_runs(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}")
    uri = f"runs:/{logged.info.run_id}/model"
    return uri, mlflow.pyfunc.load_model(uri)


def test_a_model_in_mlflow_takes_the_columns_of_a_table_by_name(table, run, tmp_path):
    run.ok(*CLASSES, "dataset.missing=mean", "run_name=a")
    uri, model = served(tmp_path)
    new = table[["noise", "price", "colour", "width"]].assign(colour=[None, "pink"] + list(table["colour"][2:]))
    new.loc[5:9, "width"] = np.nan
    new.to_csv("new.csv", index=False)
    run.ok("runner=predict", f"runner.model={uri}", "runner.input=new.csv", "runner.trust=true", "run_name=b")
    expected = [row["prediction"] for row in rows_of(folders(tmp_path)[1] / "predictions.csv")]

    assert [(column.name, str(column.type)) for column in model.metadata.signature.inputs.inputs] == [
        ("colour", "DataType.string"),
        ("width", "DataType.double"),
        ("noise", "DataType.double"),
    ]
    with pytest.warns(UserWarning, match=r"the training part does not have: colour \(1 row, e.g. 'pink'\)"):
        np.testing.assert_array_equal(model.predict(new), expected)
    split = {"dataframe_split": new.replace({np.nan: None}).to_dict(orient="split", index=False)}
    with pytest.warns(UserWarning, match="pink"):
        np.testing.assert_array_equal(score(model, split), expected)
    with pytest.raises(MlflowException, match="width"):
        model.predict(new.drop(columns="width"))


def test_a_model_in_mlflow_takes_numbers_with_their_units_or_without(table, run, tmp_path):
    new = table.assign(width=[f"{width:.3f} mm" for width in table["width"]])
    new.to_csv("mine.csv", index=False)
    run.ok(*TABLE[:-1], "dataset.features=[width,noise]", "dataset.target=dear", "run_name=a")
    expected = orbit.load(folders(tmp_path)[0]).predict(new)
    _, model = served(tmp_path)
    np.testing.assert_array_equal(model.predict(new), expected)
    for width in (new["width"], table["width"].round(3)):
        records = new.assign(width=width)[["noise", "width"]].to_dict(orient="records")
        np.testing.assert_array_equal(score(model, {"dataframe_records": records}), expected)


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        (
            ("dataset.target=dear", "dataset.exclude=[case,colour,price]", "learner=logistic"),
            ["prediction", "probability_no", "probability_yes"],
        ),
        (
            ("dataset.target=price", "dataset.exclude=[case,colour,dear,cost/EUR]", "learner=gp"),
            ["prediction", "std", "std_observed", "lower", "upper"],
        ),
    ],
    ids=["logistic", "gp"],
)
def test_a_model_in_mlflow_answers_with_what_its_learner_knows(table, run, tmp_path, settings, columns):
    table.assign(case=[f"c{i}" for i in range(len(table))]).to_csv("mine.csv", index=False)
    run.ok(*TABLE[:-1], *settings, "run_name=a")
    uri, model = served(tmp_path)
    predict = ("runner=predict", f"runner.model={uri}", "runner.input=mine.csv", "runner.trust=true", "run_name=b")
    assert "runner.id_column: expected a column of mine.csv, found 'name'" in run(*predict, "runner.id_column=name")[2]
    run.ok(*predict, "runner.id_column=case")
    expected = pd.read_csv(folders(tmp_path)[-1] / "predictions.csv")
    assert expected.pop("point").tolist() == [f"c{i}" for i in range(len(table))]
    assert expected.columns.tolist() == columns
    assert model.metadata.signature.outputs.input_names() == columns
    pd.testing.assert_frame_equal(model.predict(table), expected, rtol=1e-4, check_dtype=False)
    rows = pd.DataFrame(score(model, {"dataframe_split": table.to_dict(orient="split", index=False)}))
    pd.testing.assert_frame_equal(rows, expected, rtol=1e-4, check_dtype=False)


def test_classes_that_are_numbers_are_no_reason_for_a_hint_of_mlflow(run):
    X = np.random.default_rng(0).standard_normal((60, 4))
    np.savez("mine.npz", X=X, y=(X[:, 0] > 0).astype(int))
    _, out, err = run("dataset=arrays", "dataset.path=mine.npz", "group=identity", "learner=logistic")
    assert "test accuracy" in out
    assert "integer column" not in out + err


def test_a_model_from_its_run_folder_takes_the_columns_of_a_table_by_name(table, run, tmp_path):
    folder = run.finished(*CLASSES, "dataset.missing=mean", "tracking.enabled=false", "run_name=a")
    new = table.loc[:20, ["noise", "colour", "width", "price"]]
    new.loc[5:9, "width"] = np.nan
    new.drop(columns="price").to_csv("new.csv", index=False)
    run.ok("runner=predict", f"runner.model={folder}", "runner.input=new.csv", "run_name=b")
    model = orbit.load(folder)
    predicted = [row["prediction"] for row in rows_of(folders(tmp_path)[1] / "predictions.csv")]
    assert {*predicted} == {"yes", "no"}
    np.testing.assert_array_equal(model.predict(new), predicted)
    assert model.feature_names_in_.tolist() == ["colour", "width", "noise"]
    assert model.n_features_in_ == 3
    assert model[:1].get_feature_names_out().tolist()[-2:] == ["width", "noise"]
    framed = model[:1].set_output(transform="pandas").transform(new)
    assert framed.columns.tolist() == model[:1].get_feature_names_out().tolist()
    with pytest.raises(InputError, match="the table has no column width"):
        model.predict(new.drop(columns="width"))


def score(model: mlflow.pyfunc.PyFuncModel, request: dict) -> list:
    """The answer of MLflow's server to a request, without the server."""
    schema = model.metadata.get_input_schema()
    answer = scoring_server.invocations(json.dumps(request), "application/json", model, schema)
    return json.loads(answer.response)["predictions"]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("learner", ["logistic", "knn"])
def test_probabilities_are_those_of_the_model(learner):
    _, data, found = fitted(COLUMNS, "dataset.target=dear", f"learner={learner}")
    shares = found.model.predict_proba(data.X_test)
    np.testing.assert_allclose(found.answers["probability"], shares, rtol=1e-6)
    np.testing.assert_array_equal(found.predicted, found.model.predict(data.X_test))
    assert found.metrics["test/log_loss"] == pytest.approx(log_loss(data.y_test, shares), rel=1e-5)


@pytest.mark.usefixtures("table")
def test_a_learner_without_probabilities_has_metrics_of_its_scores():
    _, data, found = fitted(COLUMNS, "dataset.target=dear")
    assert "probability" not in found.answers
    assert not {"test/log_loss", "test/calibration_error"} & set(found.metrics)
    scores = found.model.decision_function(data.X_test)
    assert found.metrics["test/roc_auc"] == pytest.approx(roc_auc_score(data.y_test == "yes", scores))


def test_a_flag_that_is_rare_is_found_by_balanced_classes(table):
    x = np.random.default_rng(0).standard_normal(400)
    pd.DataFrame({"x": x, "flag": np.where(x + 2 * np.cos(np.arange(400)) > 2.8, "yes", "no")}).to_csv("mine.csv")
    rare = ("dataset.features=[x]", "dataset.target=flag", "learner.regularization=0.1")
    with pytest.warns(UserWarning, match="nothing was learned. Most .* one class: set learner.class_weight=balanced$"):
        _, _, found = fitted(*rare)
    assert found.metrics["test/balanced_accuracy"] == 0.5
    with warnings.catch_warnings(action="error"):
        _, _, found = fitted(*rare, "learner.class_weight=balanced")
    assert found.metrics["test/balanced_accuracy"] > 0.6


def test_classes_on_a_line_are_decided_by_discriminant_analysis(table, run, tmp_path):
    rng = np.random.default_rng(0)
    size, n = np.arange(180) % 3, 180
    pd.DataFrame({"length": 3.0 * size + rng.standard_normal(n), "width": rng.standard_normal(n), "size": size}).to_csv(
        "sizes.csv", index=False
    )
    given = ("dataset=table", "dataset.path=sizes.csv", "dataset.target=size", "dataset.task=classification")
    printed = run.ok(*given, "group=identity", "approx=points", "runner.save_model=false")
    assert "by discriminant analysis of leave-one-out predictions" in printed


@pytest.mark.usefixtures("table")
def test_standard_deviations_of_a_regression_are_scored():
    _, data, found = fitted(COLUMNS, "dataset.target=price", "learner=gp", "approx=exact")
    mean, std = found.model[-1].predict(found.model[:-1].transform(data.X_test), return_std=True)
    observed = np.hypot(std, found.model[-1].noise_std())
    assert found.metrics["test/nlpd"] == pytest.approx(-norm.logpdf(data.y_test, mean, observed).mean())
    assert 0.8 < found.metrics["test/coverage"] <= 1


@pytest.mark.usefixtures("table")
def test_each_target_has_metrics_and_a_panel_with_its_name(run, monkeypatch):
    drawn = {}
    for place, draw in ((plots, predicted_against_true), (figures, error_rows), (figures, importance_figure)):
        monkeypatch.setattr(place, draw.__name__, remembered(drawn, draw))
    targets = "dataset.target=[price,cost/EUR]"
    folder = run.finished(*TABLE, "dataset.categories=onehot", COLUMNS, targets, "tracking.enabled=false")
    out = run.out
    metrics = RunFolder(folder).read_metrics()
    for metric in ("rmse", "mae", "r2"):
        mean = (metrics[f"test/price/{metric}"] + metrics[f"test/cost_EUR/{metric}"]) / 2
        assert metrics[f"test/{metric}"] == pytest.approx(mean)
    assert re.search(rf"test cost_EUR +rmse {metrics['test/cost_EUR/rmse']:.4g}, mae", out)
    assert [ax.get_title() for ax in drawn["predicted_against_true"].axes] == ["price", "cost/EUR"]
    errors = rows_of(folder / "errors.csv")
    assert len(errors) == 30
    cells = drawn["error_rows"].axes[0].tables[0].get_celld()
    assert [cells[i, 0].get_text().get_text() for i in (1, 2, 3)] == [row["row"] for row in errors[:3]]
    assert list(rows_of(folder / "importance.csv")[0]) == ["column", "decrease of r2", "standard deviation"]
    assert drawn["importance"].axes[0].get_yticklabels()[0].get_text() == "width"


def remembered(drawn: dict, draw):
    """``draw``, whose figure is kept, and not rendered."""

    def call(*args, **kwargs) -> Figure:
        drawn[draw.__name__] = draw(*args, **kwargs)
        return Figure((1, 1))

    return call


# ---- importance ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("table")
def test_importance_permutes_a_category_as_a_whole_in_rows_of_the_test_part():
    made, data, found = fitted(COLUMNS, "dataset.target=price", "dataset.task=regression")
    seen = []

    class Watched:
        def transform(self, X):
            seen.append(X)
            return X

    ranked = importance(Pipeline([("watched", Watched()), *found.model.steps]), data, made.engine(), 0)
    assert ranked.names == ["colour", "width", "noise"]
    assert ranked.change == "increase of rmse"
    mean = ranked.values.mean(1)
    assert mean[0] > 1
    assert mean[1] > 0.5
    assert abs(mean[2]) < 0.2
    assert len(seen) == 1 + 3 * 5
    for X in seen:
        np.testing.assert_array_equal(X[:, :3].sum(1), 1)  # one colour in each row
        np.testing.assert_allclose(np.sort(X[:, 3]), np.sort(data.X_test[:, 3]))


@pytest.mark.usefixtures("table")
def test_importance_is_bounded_and_asked_for():
    _, data, found = fitted(COLUMNS, "dataset.target=dear")
    assert is_cheap(found.model, data)
    orbit_of = [SimpleNamespace(orbit_=SimpleNamespace(weights_=np.ones(r))) for r in (44, 45)]
    assert [is_cheap({"features": features}, data) for features in orbit_of] == [True, False]  # 5 x 3 x 30 r > 20,000
    made = plan(quickly_composed("dataset=digits", "dataset.n_train=60", "group=identity", "representation=bag"))
    images = made.load()
    assert not is_cheap(found.model, images)
    with pytest.raises(InputError, match=r"runner.importance: points of shape \(8, 8\) have no columns"):
        importance(None, images, made.engine(), 0)


# ---- groups ----------------------------------------------------------------------------------------------------------


def test_a_rule_that_knows_no_groups_says_so(table):
    table.assign(patient=np.arange(len(table)) % 10).to_csv("mine.csv", index=False)
    of_groups = (COLUMNS, "dataset.target=price", "dataset.group_column=patient")
    with pytest.warns(UserWarning, match=r"^learner.noise=\S+ was chosen by marginal_likelihood, which knows no"):
        fitted(*of_groups, "learner=gp")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*knows no groups")
        fitted(*of_groups, "learner=gp", "learner.noise=0.1")
        _, _, found = fitted(*of_groups)
    assert found.model["learner"].selection_curve().criterion == "k_fold"


def test_a_selection_keeps_groups_together(table):
    table.assign(patient=np.arange(len(table)) % 10).to_csv("mine.csv", index=False)
    made, data, found = fitted(
        *(COLUMNS, "dataset.target=dear", "dataset.group_column=patient", "selection=k_fold", "selection.folds=4"),
        *("selection.grid={learner.regularization: [0.1, 0.001]}", "selection.metric=balanced_accuracy"),
    )
    assert isinstance(found, Fitted)
    assert set(data.clusters) | set(map(str, data.test_rows % 10)) == set(map(str, range(10)))
    splits = made.component("selection").splits(data, made.seed("selection"))
    assert [len(set(data.clusters[validation])) for _, validation in splits] == [2] * 4
    assert found.metrics["selection/balanced_accuracy"] > 0.5
    assert json.loads(found.selected.json())["metric"] == "balanced_accuracy"

"""Columns of categories, and labels, in tables."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from samples import frame, new_rows
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from orbit import InputError, Table
from orbit.data.frames import TableEncoder


def with_categories(n: int = 40) -> pd.DataFrame:
    colours = np.array(["red", "blue", "07"])[np.arange(n) % 3]
    return frame(n).assign(colour=colours, size=pd.Categorical(np.where(np.arange(n) % 2, "L", "S")))


WITH_COLOUR = ["height", "colour", "legs", "size"]


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
@pytest.mark.parametrize("categories", ["onehot", ["size", "colour"]])
def test_categories_are_one_column_for_each_value(save, name, categories):
    table = with_categories()
    data = Table(save(table, name), target="price", features=WITH_COLOUR, categories=categories).load(0)
    assert data.columns == {"height": 1, "colour": 3, "legs": 1, "size": 2}
    expected = pd.get_dummies(table[WITH_COLOUR], columns=["colour", "size"], dtype=float)
    order = ["height", "colour_07", "colour_blue", "colour_red", "legs", "size_L", "size_S"]
    np.testing.assert_allclose(data.X_test, expected.loc[data.test_rows, order])
    assert data.encoder.get_feature_names_out().tolist() == order
    back = data.encoder.inverse_transform(data.X_test).to_numpy()
    assert back.tolist() == table.loc[data.test_rows, WITH_COLOUR].to_numpy().tolist()
    assert len(data.X_train) == 30
    json.dumps(data.form)


def test_the_encoder_is_a_transformer_as_those_of_scikit_learn():
    table = with_categories()[WITH_COLOUR].assign(legs=0)
    encoder = TableEncoder(categories=["colour", "size"]).fit(table)
    assert encoder.feature_names_in_.tolist() == WITH_COLOUR
    assert encoder.n_features_in_ == 4
    framed = clone(encoder).set_output(transform="pandas").fit_transform(table)
    assert framed.columns.tolist() == encoder.get_feature_names_out().tolist()
    np.testing.assert_array_equal(framed, encoder.transform(table[WITH_COLOUR[::-1]]))
    with pytest.raises(InputError, match="expected a data frame with the columns height, colour, legs, size, found"):
        encoder.transform(table.to_numpy())
    with pytest.raises(NotFittedError):
        clone(encoder).transform(table)


@pytest.mark.parametrize("names", [[0, 1], [("a", 0), ("b", 1)], pd.date_range("2026", periods=2), ["x", 3]])
def test_names_of_columns_are_compared_as_texts(names):
    table = pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=pd.Index(names, tupleize_cols=False))
    encoder = TableEncoder().fit(table.rename(columns=str))
    np.testing.assert_array_equal(encoder.transform(table), table)
    with pytest.raises(InputError, match=rf"the table has no column {re.escape(str(names[1]))}.* the model was fitted"):
        encoder.transform(table.iloc[:, :1])


def test_other_values_are_zeros_and_said_once(save):
    train = with_categories()
    test = with_categories(9).assign(colour=["pink", "pink", "red"] * 3, size=["S"] * 8 + ["XXL"])
    path, test_path = save(train), save(test, "test.csv")
    loader = Table(path, target="price", features=WITH_COLOUR, test_path=test_path)
    message = (
        r"that the training part does not have: colour \(6 rows, e.g. 'pink'\), size \(1 row, e.g. 'XXL'\); .* zeros"
    )
    with pytest.warns(UserWarning, match=message) as caught:
        data = loader.load(0)
    assert len(caught) == 1
    np.testing.assert_array_equal(data.X_test[:, 1:4], [[0, 0, 0], [0, 0, 0], [0, 0, 1]] * 3)
    with pytest.warns(UserWarning, match=message):
        points = new_rows(loader, data, save(test.drop(columns="price"), "new.csv"))
    np.testing.assert_array_equal(points, data.X_test)
    assert data.encoder.inverse_transform(points)["colour"].tolist() == ["", "", "red"] * 3


def test_digits_in_new_rows_are_the_category_and_not_a_number(save):
    loader = Table(save(with_categories()), target="price", features=["colour"])
    data = loader.load(0)
    points = new_rows(loader, data, save(pd.DataFrame({"colour": ["07", "07"]}), "new.csv"))
    np.testing.assert_array_equal(points, [[1, 0, 0]] * 2)


@pytest.mark.parametrize("values", [[1, 2, 10], [1.0, 2.0, 10.0], [True, False, True]])
def test_numbers_are_categories_where_the_user_lists_them(save, values):
    table = frame(60).assign(ward=np.array(values)[np.arange(60) % 3])
    known = sorted({str(value).removesuffix(".0") for value in values})
    data = Table(save(table, "mine.parquet"), target="kind", features=["ward"], categories=["ward"]).load(0)
    assert data.encoder.categories_ == {"ward": known}
    gaps = table[["ward"]].astype(object).where(np.arange(60)[:, None] > 0).convert_dtypes()
    encoder = TableEncoder("mean", ["ward"]).fit(table[["ward"]])
    assert encoder.transform(gaps).sum() == 59


@pytest.mark.parametrize("words", [("true", "false"), ("True", "False"), ("TRUE", "FALSE")])
def test_truth_values_are_numbers_also_with_missing_ones(save, words):
    fed = np.array([words[i % 2] for i in range(40)], dtype=object)
    fed[5] = None
    path = save(pd.DataFrame({"fed": fed, "ill": np.arange(40) % 2}))
    with pytest.raises(InputError, match=r"^dataset.path: .* has missing values: fed \(1 row\); remove those rows, or"):
        Table(path, target="ill", missing="refuse").load(0)
    loader = Table(path, target="ill")
    data = loader.load(0)
    assert {*data.X_train[:, 0]} <= {0.0, 0.5, 1.0}
    points = new_rows(loader, data, save(pd.DataFrame({"fed": [words[0], words[1]]}), "new.csv"))
    np.testing.assert_array_equal(points, [[1], [0]])


def test_several_targets_of_strings_are_refused_with_what_is_possible(save):
    with pytest.raises(InputError, match="expected numbers; several targets are numbers, and classes a single target"):
        Table(save(frame()), target=["kind", "price"]).load(0)


@pytest.mark.filterwarnings("error")  # a missing value is not another value
def test_missing_categories_are_zeros_where_numbers_are_imputed(save):
    table = with_categories()
    table.loc[[3, 4], "colour"] = None
    path = save(table)
    with pytest.raises(InputError, match=r"missing values: colour \(2 rows\)"):
        Table(path, target="price", features=WITH_COLOUR, missing="refuse").load(0)
    data = Table(path, target="price", features=WITH_COLOUR, missing="mean").load(0)
    assert data.encoder.categories_["colour"] == ["07", "blue", "red"]
    assert (data.X_train[:, 1:4].sum(1) == 0).sum() + (data.X_test[:, 1:4].sum(1) == 0).sum() == 2


DAYS = pd.date_range("2026-01-01", periods=60)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (
            [f"{i / 10} {'kg' if i % 4 else 't'}" for i in range(60)],
            "numbers with several units, e.g. '0.1 kg' and '0.0 t'",
        ),
        ([f"0.{i:02d}D+00" for i in range(60)], "60 different texts"),
        ([f"{i % 25}-{i % 25 + 1}" for i in range(60)], "25 different texts with digits"),
        ([hex(i) for i in range(60)], "60 different texts"),
        ([f"name {'abcdefghij'[i % 10]}{'uvwxyz'[i // 10]}" for i in range(60)], "60 different texts"),
        ([f"{i},5" if i % 2 else f"{i}.5" for i in range(60)], "numbers and texts, e.g. '1,5': dataset.decimal=comma."),
        ([f"{i}+" if i % 2 else f"{i}" for i in range(60)], "numbers and texts, e.g. '1\\+'"),
        *((DAYS.strftime(how), "60 different texts") for how in ("%Y-%m-%d", "%d.%m.%y", "%m/%d/%Y %H:%M")),
    ],
)
def test_numbers_dates_and_names_are_no_categories_unless_the_user_says_so(save, values, found):
    path = save(frame(60).assign(colour=values), sep=";")
    advice = (
        r"leave it out with dataset.exclude, write numbers .*, or name columns of categories in dataset.categories$"
    )
    with pytest.raises(InputError, match=f"^dataset.path: .*column colour holds {found}.*{advice}"):
        Table(path, "legs", ["colour"]).load(0)
    data = Table(path, "legs").load(0)
    assert "colour" not in data.reading["features"]
    assert re.search(rf"left out: .*colour \({found}", data.notes[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories that the training part does not have
        assert list(Table(path, "legs", ["colour"], categories=["colour"]).load(0).encoder.categories_) == ["colour"]


@pytest.mark.parametrize(
    "values",
    [
        ["1", "A", "3+"],
        ["2021-01-31", "2021-02-28"],
        ["123 45", "100 05"],
        ["<50K", ">50K"],
        ["36-38", "XL"],
        ["1.2.3"],
        ["1.5", "2", "n/a?"],
    ],
)
@pytest.mark.filterwarnings("error")
def test_few_different_texts_are_categories_whatever_they_look_like(save, values):
    path = save(frame(60).assign(colour=(values * 60)[:60]))
    data = Table(path, target="kind", features=["colour"]).load(0)
    assert data.encoder.categories_ == {"colour": sorted(values)}


def test_a_thousand_categories_are_the_most(save):
    table = pd.DataFrame({"name": [f"n{i}" for i in range(1500)], "y": np.arange(1500.0)})
    with pytest.raises(InputError, match="column name has 1,1.. different values, expected at most 1,000 categories"):
        Table(save(table), target="y", task="regression", categories=["name"]).load(0)


@pytest.mark.parametrize("values", [["1,5", "2.25"], [f"{i}-{i + 1}" for i in range(60)], DAYS.strftime("%Y-%m-%d")])
def test_strings_that_are_rather_numbers_are_no_classes_unless_the_user_says_so(save, values):
    path = save(frame(60).assign(kind=(list(values) * 60)[:60]), sep=";")
    use = {"target": "kind", "features": ["legs"], "separator": ";"}
    with pytest.raises(InputError, match="column kind holds .*set dataset.task=classification if these are classes"):
        Table(path, **use).load(0)
    with pytest.raises(InputError, match="column kind holds .* in row 0, expected numbers; .*targets of a regression"):
        Table(path, **use, task="regression").load(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that the training part does not have
        assert Table(path, **use, task="classification").load(0).y_train.dtype.kind == "U"


@pytest.mark.parametrize(
    ("task", "labels", "found"),
    [
        ("classification", ["0101", "101", "7"], ["0101", "101", "7"]),
        ("auto", ["007", "07", "x"], ["007", "07", "x"]),
        ("auto", ["10", "0", "-7"], [-7, 0, 10]),
        ("regression", ["010", "9", "8"], [8, 9, 10]),
    ],
)
def test_labels_with_leading_zeros_stay_different(save, task, labels, found):
    table = frame(60).assign(kind=np.array(labels)[np.arange(60) % 3])
    data = Table(save(table), target="kind", features=["height"], task=task).load(0)
    assert np.unique(data.y_train).tolist() == found
    of_groups = save(table.assign(of=table["kind"]))
    data = Table(of_groups, target="price", features=["height"], group_column="of").load(0)
    assert len({*data.clusters}) == 2  # the third is the test part


def test_the_test_part_has_labels_of_the_kind_of_the_training_part(save):
    table = frame(60).assign(kind=np.array(["1", "2", "x"])[np.arange(60) % 3])
    train, test = save(table), save(table[table["kind"] != "x"], "test.csv")
    data = Table(train, target="kind", features=["height"], test_path=test).load(0)
    assert {*data.y_test} == {"1", "2"} < {*data.y_train}
    train, test = save(table.assign(kind=np.arange(60) % 2 + 1)), save(table.assign(kind=["01", "2"] * 30), "test.csv")
    data = Table(train, target="kind", features=["height"], test_path=test).load(0)
    assert {*data.y_test} == {1, 2} == {*data.y_train}


def test_texts_for_missing_values_are_the_users_choice(save):
    path = save(frame(60).assign(kind=np.array(["None", "NA", "mild"])[np.arange(60) % 3]))
    with pytest.raises(InputError, match=r"missing values: kind \(40 rows\).*or set dataset.missing_texts if texts"):
        Table(path, target="kind", features=["height"], missing="refuse").load(0)
    with pytest.raises(InputError, match="one class only"):
        Table(path, target="kind", features=["height"]).load(0)
    data = Table(path, target="kind", features=["height"], missing_texts=[""]).load(0)
    assert {*data.y_train} == {"None", "NA", "mild"}


def test_names_of_columns_of_several_levels_are_texts(tmp_path):
    path = tmp_path / "levels.parquet"
    frame(60).set_axis(pd.MultiIndex.from_product([["a"], frame(60).columns]), axis=1).to_parquet(path)
    with pytest.raises(InputError, match=r"has no column price.* It has \('a', '"):
        Table(str(path), target="price").load(0)
    assert Table(str(path), target="('a', 'price')", features=["('a', 'height')"]).load(0).X_train.shape == (45, 1)

"""A user's own tables and images: reading data and new points, and errors for invalid files."""

from __future__ import annotations

import json
import os
import re
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bad_data import claiming
from samples import draw, draw_classes
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import orbit
from orbit.core.errors import InputError
from orbit.core.fingerprint import digest, fingerprint, of_listing
from orbit.data import MNIST, Arrays, Dataset, Digits, Images, Table
from orbit.data.frames import TableEncoder
from orbit.data.splits import guess_task, split_groups
from orbit.data.validation import HoldOut, KFolds
from orbit.testing import DatasetContract

# ---- tables ----------------------------------------------------------------------------------------------------------


def frame(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {"height": rng.normal(size=n), "width": rng.normal(size=n), "legs": rng.integers(0, 9, n)}
    return pd.DataFrame(
        columns
        | {"kind": np.array(["owl", "cat"])[np.arange(n) % 2], "price": rng.normal(size=n), "trust": rng.random(n)}
    )


FEATURES = ["height", "width", "legs"]


@pytest.fixture
def save(tmp_path):
    """``save(frame, "mine.csv")`` -> its path."""

    def write(table: pd.DataFrame, name: str = "mine.csv", **how) -> str:
        path = tmp_path / name
        table.to_parquet(path) if path.suffix == ".parquet" else table.to_csv(path, index=False, **how)
        return str(path)

    return write


def new_rows(loader: Table, data: Dataset, path: str) -> np.ndarray:
    """The numbers of the rows of a new file, for a model of this data; its form is kept as JSON."""
    return loader.read_points(path, json.loads(json.dumps(data.form)), data.encoder).X


class TestTable(DatasetContract):
    sizes = (30, 10)
    path: str | None = None

    @pytest.fixture(autouse=True)
    def _file(self, save):
        self.path = save(frame())

    def create(self, **params):
        return Table(self.path, target="kind", features=FEATURES, **params)


def test_settings_after_the_features_are_given_by_name():
    assert Table("mine.csv", "kind", ["legs"], weight="trust").features == ["legs"]
    with pytest.raises(TypeError):
        Table("mine.csv", "kind", ["legs"], "trust")


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_a_table_is_read_by_its_names(save, name):
    table = frame()
    data = Table(save(table, name), target="kind", features=["width", "height"], weight="trust").load(0)
    expected = {tuple(row[["width", "height"]]): (row["kind"], row["trust"]) for _, row in table.iterrows()}
    for x, y, weight in zip(data.X_train, data.y_train, data.sample_weight, strict=True):
        assert expected[tuple(x)] == (y, weight)
    assert data.task == "classification"
    form = {"shape": [2], "features": ["width", "height"], "targets": ["kind"], "categories": []}
    assert data.form == form | {"largest": float(np.abs(data.X_train).max())}


def test_features_are_all_other_columns(save):
    path = save(frame().drop(columns="price"))
    assert Table(path, target="kind").load(0).reading["features"] == [*FEATURES, "trust"]
    assert Table(path, target="kind", weight="trust").load(0).reading["features"] == FEATURES


def test_several_targets_are_a_regression(save):
    table = frame()
    data = Table(save(table), target=["price", "legs"], features=["height"]).load(0)
    assert data.task == "regression"
    assert data.y_train.shape == (30, 2)
    price = dict(zip(table["height"], table[["price", "legs"]].to_numpy().tolist(), strict=True))
    assert [price[x] for x in data.X_test[:, 0]] == data.y_test.tolist()


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["owl", "cat"] * 20, "classification"),
        ([True, False] * 20, "classification"),
        ([3, 4] * 20, "classification"),
        ([3.0, 4.0] * 20, "classification"),
        (np.linspace(0, 1, 40), "regression"),
    ],
)
def test_the_task_follows_the_target(save, values, task):
    path = save(frame().assign(y=values))
    assert Table(path, target="y", features=FEATURES).load(0).task == task


def test_many_different_integers_are_not_classes():
    assert guess_task(np.arange(100)) == "classification"
    assert guess_task(np.arange(101)) == "regression"
    assert guess_task(np.arange(101).astype(str)) == "classification"


def test_a_test_part_of_its_own(save):
    train, test = frame(40), frame(50).iloc[40:]
    data = Table(save(train), target="kind", features=FEATURES, test_path=save(test, "test.parquet")).load(0)
    np.testing.assert_allclose(data.X_train, train[FEATURES])
    np.testing.assert_allclose(data.X_test, test[FEATURES])
    assert data.y_test.tolist() == test["kind"].tolist()


def with_holes() -> pd.DataFrame:
    table = frame()
    table.loc[[1, 5, 7], "height"] = np.nan
    table.loc[[2], "width"] = np.nan
    return table


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_missing_values_are_refused_by_name(save, name):
    with pytest.raises(InputError) as error:
        Table(save(with_holes(), name), target="kind", features=FEATURES).load(0)
    assert "height (3 rows), width (1 row); remove those rows, or impute them with missing=" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_missing_values_are_filled_in_from_the_training_part_alone(save, statistic):
    train, test = with_holes(), with_holes().assign(height=lambda t: t["height"] + 100)
    path, test_path = save(train), save(test, "test.csv")
    data = Table(path, target="kind", features=FEATURES, missing=statistic, test_path=test_path).load(0)
    expected = train[FEATURES].agg(statistic)
    np.testing.assert_allclose(data.X_train, train[FEATURES].fillna(expected))
    np.testing.assert_allclose(data.X_test, test[FEATURES].fillna(expected))

    split = Table(path, target="kind", features=FEATURES, missing=statistic).load(0)
    whole = {tuple(row): True for row in train[FEATURES].dropna().to_numpy()}
    known = np.array([x for x in split.X_train if tuple(x) in whole])
    (imputer,) = split.encoder.encoder_.named_transformers_.values()
    assert imputer.statistics_[2] == getattr(np, statistic)(split.X_train[:, 2])
    assert 25 < len(known) < 30


def test_a_column_without_any_value_cannot_be_filled_in(save):
    path = save(frame().assign(height=np.nan))
    with pytest.raises(InputError, match=r"features: height has no value in the training part"):
        Table(path, target="kind", features=FEATURES, missing="mean").load(0)


# ---- categories ------------------------------------------------------------------------------------------------------


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
    encoder = TableEncoder(categories="onehot").fit(table)
    assert encoder.feature_names_in_.tolist() == WITH_COLOUR
    assert encoder.n_features_in_ == 4
    framed = clone(encoder).set_output(transform="pandas").fit_transform(table)
    assert framed.columns.tolist() == encoder.get_feature_names_out().tolist()
    np.testing.assert_array_equal(framed, encoder.transform(table[WITH_COLOUR[::-1]]))
    with pytest.raises(
        InputError, match="expected a data frame with the columns height, colour, legs, size, found ndar"
    ):
        encoder.transform(table.to_numpy())
    with pytest.raises(NotFittedError):
        clone(encoder).transform(table)


@pytest.mark.parametrize("names", [[0, 1], [("a", 0), ("b", 1)], pd.date_range("2026", periods=2), ["x", 3]])
def test_names_of_columns_are_compared_as_texts(names):
    table = pd.DataFrame(np.arange(6.0).reshape(3, 2), columns=pd.Index(names, tupleize_cols=False))
    encoder = TableEncoder().fit(table.rename(columns=str))
    np.testing.assert_array_equal(encoder.transform(table), table)
    with pytest.raises(
        InputError, match=rf"the table has no column {re.escape(str(names[1]))}.* the model was fitted to"
    ):
        encoder.transform(table.iloc[:, :1])


def test_categories_are_refused_by_default_and_the_key_is_named(save):
    with pytest.raises(InputError) as error:
        Table(save(with_categories()), target="price", features=WITH_COLOUR).load(0)
    assert "column colour holds" in str(error.value)
    assert "e.g. 'red' in row 0, expected numbers" in str(error.value)
    assert "or encode columns of strings with categories='onehot'" in str(error.value)


def test_other_values_are_zeros_and_said_once(save):
    train = with_categories()
    test = with_categories(9).assign(colour=["pink", "pink", "red"] * 3, size=["S"] * 8 + ["XXL"])
    path, test_path = save(train), save(test, "test.csv")
    loader = Table(path, target="price", features=WITH_COLOUR, categories="onehot", test_path=test_path)
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
    loader = Table(save(with_categories()), target="price", features=["colour"], categories="onehot")
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
@pytest.mark.parametrize("categories", ["refuse", "onehot"])
def test_truth_values_are_numbers_also_with_missing_ones(save, words, categories):
    fed = np.array([words[i % 2] for i in range(40)], dtype=object)
    fed[5] = None
    path = save(pd.DataFrame({"fed": fed, "ill": np.arange(40) % 2}))
    with pytest.raises(InputError, match=r"^path: .* has missing values: fed \(1 row\); remove those rows, or impute"):
        Table(path, target="ill", categories=categories).load(0)
    loader = Table(path, target="ill", missing="median", categories=categories)
    data = loader.load(0)
    assert {*data.X_train[:, 0]} <= {0.0, 0.5, 1.0}
    points = new_rows(loader, data, save(pd.DataFrame({"fed": [words[0], words[1]]}), "new.csv"))
    np.testing.assert_array_equal(points, [[1], [0]])


def test_several_targets_of_strings_are_refused_with_what_is_possible(save):
    with pytest.raises(InputError, match="expected numbers; several targets are numbers, and classes a single target"):
        Table(save(frame()), target=["kind", "price"]).load(0)


def test_missing_categories_are_zeros_where_numbers_are_imputed(save):
    table = with_categories()
    table.loc[[3, 4], "colour"] = None
    path = save(table)
    with pytest.raises(InputError, match=r"missing values: colour \(2 rows\)"):
        Table(path, target="price", features=WITH_COLOUR, categories="onehot").load(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a missing value is not another value
        data = Table(path, target="price", features=WITH_COLOUR, categories="onehot", missing="mean").load(0)
    assert data.encoder.categories_["colour"] == ["07", "blue", "red"]
    assert (data.X_train[:, 1:4].sum(1) == 0).sum() + (data.X_test[:, 1:4].sum(1) == 0).sum() == 2


DAYS = pd.date_range("2026-01-01", periods=60)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([f"{i / 10}%" for i in range(60)], "60 different texts in 60 rows, e.g. '0.0%' in row 0"),
        ([f"${1000 + i}.94" for i in range(60)], "60 different texts in 60 rows"),
        ([f"0.{i:02d}D+00" for i in range(60)], "60 different texts in 60 rows"),
        ([f"{i % 25} kg" for i in range(60)], "25 different texts with digits"),
        ([hex(i) for i in range(60)], "60 different texts in 60 rows"),
        ([f"name {'abcdefghij'[i % 10]}{'uvwxyz'[i // 10]}" for i in range(60)], "60 different texts in 60 rows"),
        (["1.5", "2", "n/a?"] + ["3"] * 57, "numbers as texts, e.g. 'n/a.' in row 2"),
        (
            ["1,5", "2", "3"] * 20,
            "numbers as texts, e.g. '1,5' in row 0, .*; set decimal='comma' if decimals begin with a comma, or ",
        ),
        (["1,234.56", "7.5", "12"] * 20, "numbers as texts, e.g. '1,234.56'"),
        ([f"1'234.{i % 30}" for i in range(60)], "30 different texts with digits"),
        *((DAYS.strftime(how), "60 different texts in 60 rows") for how in ("%Y-%m-%d", "%d.%m.%y", "%m/%d/%Y %H:%M")),
    ],
)
def test_numbers_dates_and_names_are_no_categories_unless_the_user_says_so(save, values, found):
    path = save(frame(60).assign(colour=values), sep=";")
    use = {"target": "legs", "features": ["colour"], "separator": ";"}
    advice = r"write numbers .*, leave it out with exclude, or name columns of categories as in categories=\[colour\]$"
    with pytest.raises(InputError, match=f"^path: .*column colour holds {found}.*{advice}"):
        Table(path, **use, categories="onehot").load(0)
    with pytest.raises(InputError, match="column colour holds .*, expected numbers; .*leave it out with exclude"):
        Table(path, **use).load(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of categories that the training part does not have
        assert list(Table(path, **use, categories=["colour"]).load(0).encoder.categories_) == ["colour"]


@pytest.mark.parametrize(
    "values",
    [
        ["1", "A", "3+"],
        ["2021-01-31", "2021-02-28"],
        ["123 45", "100 05"],
        ["<50K", ">50K"],
        ["36-38", "XL"],
        ["1.2.3"],
    ],
)
@pytest.mark.filterwarnings("error")
def test_few_different_texts_are_categories_whatever_they_look_like(save, values):
    path = save(frame(60).assign(colour=(values * 60)[:60]))
    data = Table(path, target="kind", features=["colour"], categories="onehot").load(0)
    assert data.encoder.categories_ == {"colour": sorted(values)}


@pytest.mark.parametrize("categories", ["refuse", "onehot"])
@pytest.mark.parametrize("values", [DAYS, [[1]] * 60, [b"x"] * 60], ids=["dates", "lists", "bytes"])
def test_columns_that_are_neither_numbers_nor_strings_are_refused(save, values, categories):
    path = save(frame(60).assign(colour=values), "mine.parquet")
    with pytest.raises(
        InputError, match="column colour holds (datetime64|object).* in row 0, expected numbers; leave it"
    ):
        Table(path, target="price", features=["colour"], categories=categories).load(0)


def test_a_thousand_categories_are_the_most(save):
    table = pd.DataFrame({"name": [f"n{i}" for i in range(1500)], "y": np.arange(1500.0)})
    with pytest.raises(InputError, match="column name has 1,500 different values, expected at most 1,000 categories"):
        Table(save(table), target="y", task="regression", categories=["name"]).load(0)


@pytest.mark.parametrize("values", [["1,5", "2,25"], [f"{i} kg" for i in range(60)], DAYS.strftime("%Y-%m-%d")])
def test_strings_that_are_rather_numbers_are_no_classes_unless_the_user_says_so(save, values):
    path = save(frame(60).assign(kind=(list(values) * 60)[:60]), sep=";")
    use = {"target": "kind", "features": ["legs"], "separator": ";"}
    with pytest.raises(
        InputError, match="column kind holds .*set task='classification' if these are classes, else write"
    ):
        Table(path, **use).load(0)
    with pytest.raises(
        InputError, match="column kind holds .* in row 0, expected numbers; .*targets of a regression are"
    ):
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
    assert len({*data.groups}) == 2  # the third is the test part


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
    with pytest.raises(InputError, match=r"missing values: kind \(40 rows\).*or set missing_texts if texts such as NA"):
        Table(path, target="kind", features=["height"]).load(0)
    data = Table(path, target="kind", features=["height"], missing_texts=[""]).load(0)
    assert {*data.y_train} == {"None", "NA", "mild"}


def test_texts_in_a_column_of_weights_are_refused_as_weights(save):
    path = save(frame(60).assign(w="a"))
    with pytest.raises(InputError, match=r"column w holds .*, expected numbers; weights are numbers >= 0$"):
        Table(path, target="price", features=["height"], weight="w").load(0)


def test_names_of_columns_of_several_levels_are_texts(tmp_path):
    path = tmp_path / "levels.parquet"
    frame(60).set_axis(pd.MultiIndex.from_product([["a"], frame(60).columns]), axis=1).to_parquet(path)
    with pytest.raises(InputError, match=r"has no column price.* It has \('a', '"):
        Table(str(path), target="price").load(0)
    assert Table(str(path), target="('a', 'price')", features=["('a', 'height')"]).load(0).X_train.shape == (45, 1)


# ---- CSV files as they are written elsewhere -------------------------------------------------------------------------


def test_a_first_line_of_equal_numbers_is_no_line_of_names(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("0,0,a\n1,2,b\n")
    with pytest.raises(InputError, match=r"of one name: 0; the first line of a file names its columns$"):
        Table(str(path), target="kind").load(0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_is_asked_for(save, separator):
    path = save(frame(), sep=separator)
    with pytest.raises(InputError, match="has no column kind.*; set target, or separator if these are several$"):
        Table(path, target="kind", features=FEATURES).load(0)
    for given in [separator, *({"\t": (r"\t", r"\s+")}.get(separator, ()))]:
        assert Table(path, target="kind", features=FEATURES, separator=given).load(0).X_train.shape == (30, 3)
    Path(path).write_text(Path(path).read_text().replace(separator, "::"))
    assert Table(path, target="kind", features=["height"], separator="::").load(0).X_train.shape == (30, 1)


@pytest.mark.parametrize("missing_texts", [None, ["NA"]])
def test_columns_without_names_and_values_are_left_out(save, tmp_path, missing_texts):
    table = frame()[["height", "kind", "width"]]
    lines = Path(save(table, sep=";")).read_text().splitlines()
    path = tmp_path / "ends.csv"
    path.write_text("".join(f"{line.replace(';', ';;', 1)};\n" for line in lines))
    data = Table(str(path), target="kind", separator=";", missing_texts=missing_texts).load(0)
    assert data.reading["features"] == ["height", "width"]


EUROPEAN = {"sep": ";", "decimal": ","}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
def test_european_files_are_those_with_points_and_commas(save, encoding):
    table = frame().rename(columns={"height": "Höhe"})
    table["kind"] = table["kind"].replace("cat", "Kätzchen")
    how = {"target": "kind", "features": ["Höhe", "width"]}
    expected = Table(save(table), **how).load(0)
    path = save(table, "europe.csv", **EUROPEAN, encoding=encoding)
    given = {} if encoding.startswith("utf-8") else {"encoding": encoding}
    loader = Table(path, **how, separator=";", decimal="comma", **given)
    data = loader.load(0)
    np.testing.assert_array_equal(data.X_train, expected.X_train)
    np.testing.assert_array_equal(data.y_test, expected.y_test)
    new = save(table[how["features"]], "new.csv", **EUROPEAN, encoding=encoding)
    np.testing.assert_array_equal(new_rows(loader, data, new), table[how["features"]])


@pytest.mark.parametrize(("encoding", "reason"), [("latin-1", "byte 0xf6"), ("utf-16", "byte 0xff")])
def test_other_encodings_are_asked_for(save, encoding, reason):
    path = save(frame().rename(columns={"height": "Höhe"}), encoding=encoding)
    advice = "separator is ',', encoding is 'utf-8': set those of the file, such as encoding='latin-1'"
    with pytest.raises(InputError, match=rf"mine.csv: expected a readable CSV file \(.*{reason}.*\); {advice}$"):
        Table(path, target="kind", features=["width"]).load(0)
    with pytest.raises(InputError, match=r"\(unknown encoding: latin-one\)"):
        Table(path, target="kind", encoding="latin-one").load(0)


@pytest.mark.parametrize(
    ("name", "start"), [("mine.xlsx", b"PK\3\4\x14\0"), ("mine.xls", b"\xd0\xcf\x11\xe0"), ("mine.csv", b"PAR1\x15\4")]
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_files_that_are_no_text_are_refused(tmp_path, name, start, encoding):
    (tmp_path / name).write_bytes(start + bytes(100))
    found = "is a spreadsheet; save it as CSV" if "xls" in name else "the table has no rows"
    with pytest.raises(InputError, match=f"^path: .*{name}: .*({found})"):
        Table(str(tmp_path / name), target="kind", encoding=encoding).load(0)


@pytest.mark.parametrize("categories", ["refuse", "onehot"])
def test_decimals_and_integers_beyond_64_bits_are_numbers(save, categories):
    table = frame()
    table["price"] = [None, *(Decimal(i) / 4 for i in range(1, 40))]
    settings = {"target": "kind", "features": ["price"], "missing": "mean", "categories": categories}
    X = Table(save(table, "mine.parquet"), **settings).load(0).X_train
    assert set(np.sort(X[:, 0] * 4).astype(int)) <= {*range(1, 40)}
    table["price"] = [i * 10**25 for i in range(40)]
    X = Table(save(table), **settings).load(0).X_train
    assert X.shape == (30, 1)
    assert X.max() > 1e25


def test_decimals_of_a_parquet_file_are_targets(save):
    table = frame().assign(price=[Decimal(i) / 4 for i in range(40)])
    data = Table(save(table, "mine.parquet"), target="price", features=["legs"]).load(0)
    assert data.task == "regression"
    assert {*(4 * np.concatenate([data.y_train, data.y_test]))} == {*range(40)}


def test_a_csv_file_in_an_archive_is_read(save):
    path = save(frame(), "mine.zip")
    assert Table(path, target="kind", features=["width"]).load(0).X_train.shape == (30, 1)


@pytest.mark.parametrize(
    "use",
    [
        {"target": "kind", "features": ["height"]},
        {"target": "kind", "features": ["height"], "categories": "onehot"},
        {"target": "height", "features": ["legs"]},
        {"target": "height", "features": ["legs"], "task": "regression"},
        {"target": ["height", "width"], "features": ["legs"]},
        {"target": "kind", "features": ["legs"], "weight": "trust"},
    ],
)
@pytest.mark.parametrize("decimal", ["comma", "point"])
def test_the_other_decimal_sign_is_asked_about(save, use, decimal):
    path = save(frame(), sep=";", decimal="," if decimal == "comma" else ".")
    other = "point" if decimal == "comma" else "comma"
    with pytest.raises(InputError, match=rf"column \w+ holds .*; set decimal='{decimal}' if decimals begin"):
        Table(path, **use, separator=";", decimal=other).load(0)
    Table(path, **use, separator=";", decimal=decimal).load(0)


# ---- columns to leave out --------------------------------------------------------------------------------------------


def test_excluded_columns_are_no_features_and_may_be_in_new_rows(save):
    table = frame().assign(name=[f"n{i}" for i in range(40)])
    loader = Table(save(table), target="kind", exclude=["name", "trust", "price"])
    data = loader.load(0)
    assert data.reading["features"] == FEATURES
    for new in (table, table[FEATURES]):
        np.testing.assert_array_equal(new_rows(loader, data, save(new, "new.csv")), table[FEATURES])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"exclude": ["nam"]}, r"has no column nam.* It has .*; set exclude"),
        ({"exclude": ["price"], "features": ["width"]}, "^exclude: expected null where features names the columns"),
        ({"exclude": ["kind"]}, r"^exclude: expected columns that are not the target, .*, found \['kind'\]"),
        ({"exclude": ["trust"], "weight": "trust"}, "^exclude: expected columns that are not the target, the weight"),
        (
            {"exclude": [*FEATURES, "price", "trust"]},
            "no columns besides targets, weight and group, and those left out",
        ),
    ],
)
def test_columns_that_cannot_be_left_out_are_named(save, params, message):
    with pytest.raises(InputError, match=message):
        Table(save(frame()), target="kind", **params).load(0)


# ---- groups of points ------------------------------------------------------------------------------------------------


def with_patients(n: int = 60) -> pd.DataFrame:
    return frame(n).assign(patient=[f"p{i % 12}" for i in range(n)])


class TestTableOfGroups(DatasetContract):
    sizes = (45, 15)
    path: str | None = None

    @pytest.fixture(autouse=True)
    def _file(self, save):
        self.path = save(with_patients())

    def create(self, **params):
        features = ["height", "kind"]
        return Table(self.path, target="legs", features=features, categories="onehot", group_column="patient", **params)

    def test_task_and_representation_are_as_declared(self):
        """Classes of the test part may all be in other groups than those of the training part."""
        data = self.create(task="regression").load(0)
        orbit.build("representation", self.component.default_representation["name"]).fit(data.X_train)

    component = Table


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_a_group_are_in_one_part(save, seed):
    table = with_patients()
    data = Table(save(table), target="price", features=["height"], group_column="patient").load(seed)
    found = {"train": set(data.groups), "test": set(table["patient"][data.test_rows])}
    assert not found["train"] & found["test"]
    assert found["train"] | found["test"] == set(table["patient"])
    assert len(data.X_test) == 15
    np.testing.assert_array_equal(table["height"][table["patient"].isin(found["train"])], data.X_train[:, 0])
    for folds in (KFolds(folds=3), HoldOut(fraction=0.3)):
        splits = folds.splits(data, seed)
        assert not any(set(data.groups[fit]) & set(data.groups[validation]) for fit, validation in splits)
        part = data.split(*splits[0])
        assert set(part.groups) == set(data.groups[splits[0][0]])


def test_a_group_is_no_feature_and_may_be_left_out_of_new_rows(save):
    table = with_patients().drop(columns=["kind", "trust"])
    loader = Table(save(table), target="price", group_column="patient")
    data = loader.load(0)
    assert data.reading["features"] == FEATURES
    for new in (table, table.drop(columns="patient")):
        assert new_rows(loader, data, save(new, "new.csv")).shape == (60, 3)


def test_groups_of_unequal_sizes_give_a_test_part_of_about_the_asked_size(save):
    table = with_patients(100).assign(patient=["big"] * 50 + [f"p{i}" for i in range(50)])
    for seed in range(10):
        data = Table(save(table), target="price", features=["height"], group_column="patient").load(seed)
        assert len(data.X_test) <= 25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group_column": "patent"}, "has no column patent; did you mean 'patient'"),
        ({"group_column": "price"}, "group_column: expected another column than the target and the weight"),
        ({"features": ["patient", "height"]}, "features: patient is a target, the weight or the group as well"),
        ({"test_path": "test.csv"}, "group_column: expected all points of a group in one part, found 12 groups"),
    ],
)
def test_groups_that_divide_nothing_are_refused(save, monkeypatch, tmp_path, change, message):
    monkeypatch.chdir(tmp_path)
    path = save(with_patients())
    save(with_patients(), "test.csv")
    with pytest.raises(InputError, match=message):
        Table(path, **{"target": "price", "features": ["height"], "group_column": "patient"} | change).load(0)


def test_groups_are_split_so_that_no_part_lacks_a_class():
    groups, y = np.repeat(np.arange(12), 5), np.repeat(["often"] * 10 + ["rare"] * 2, 5)
    shares = [np.mean(y[two] == "rare") for two in (split_groups(groups, 0.3, seed, y)[1] for seed in range(20))]
    assert np.mean(shares) == pytest.approx(1 / 6, abs=0.1)
    assert max(shares) < 0.5, "never both groups"


def test_one_group_cannot_be_split(save):
    path = save(with_patients().assign(patient="p0"))
    with pytest.raises(InputError, match="all 60 points are of one group"):
        Table(path, target="price", features=["height"], group_column="patient").load(0)


def test_more_folds_than_groups_are_refused(save):
    data = Table(save(with_patients()), target="price", features=["height"], group_column="patient").load(0)
    with pytest.raises(InputError, match="folds: expected at most 9, the number of groups, found 10"):
        KFolds(folds=10).splits(data, 0)


# ---- the split of arrays ---------------------------------------------------------------------------------------------


@pytest.fixture
def arrays(tmp_path):
    """``arrays(split=...)`` -> the path of an .npz with 20 points, whose X are their numbers."""

    def write(**more) -> str:
        np.savez(tmp_path / "mine.npz", X=np.arange(20.0)[:, None], y=np.arange(20) % 2, **more)
        return str(tmp_path / "mine.npz")

    return write


SPLITS = {
    "strings": {"split": ["train", "test", "train", "train"] * 5},
    "numbers": {"split": np.array([0, 1, 0, 0] * 5)},
    "booleans": {"split": np.array([False, True, False, False] * 5)},
}


@pytest.mark.parametrize("how", SPLITS)
def test_a_file_says_which_points_are_the_test_part(arrays, how):
    data = Arrays(arrays(**SPLITS[how])).load(0)
    assert data.X_test[:, 0].tolist() == [1, 5, 9, 13, 17]
    assert data.X_train[:, 0].tolist() == [i for i in range(20) if i % 4 != 1]
    assert data.y_test.tolist() == [1] * 5
    named = Arrays(arrays(part=SPLITS[how]["split"]), split_key="part").load(0)
    np.testing.assert_array_equal(named.X_test, data.X_test)


def test_arrays_that_are_not_read_are_warned_of(arrays):
    path = arrays(X_test=np.ones((4, 1)), y_test=np.arange(4) % 2)
    with pytest.warns(UserWarning, match="2 arrays are left out, X_test, y_test; x_test_key=NAME"):
        Arrays(path).load(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Arrays(path, x_test_key="X_test", y_test_key="y_test").load(0)
        Arrays(arrays(n_train=14, groups=np.arange(20), **SPLITS["strings"])).load(0)


def test_the_first_points_are_the_training_part(arrays):
    data = Arrays(arrays(n_train=14)).load(0)
    assert data.X_train[:, 0].tolist() == list(range(14))
    assert data.X_test[:, 0].tolist() == list(range(14, 20))
    both = Arrays(arrays(n_train=14, **SPLITS["strings"])).load(0)
    assert len(both.X_test) == 5, "split comes first"
    assert len(Arrays(arrays(n_train=14), n_train=6).load(0).X_train) == 6, "a subset of the training part"


@pytest.mark.parametrize(
    ("arrays_", "params", "message"),
    [
        ({"split": ["train", "tst"] * 10}, {}, "split_key: expected 'train' or 'test', or 0 .* found 'tst'"),
        ({"split": ["test"] * 20}, {}, "split_key: expected points of both parts, found all 20 in one"),
        ({"split": [0, 1]}, {}, r"expected 'split' to have an integer or a string for each of the 20 points"),
        ({"splt": [0, 1] * 10}, {"split_key": "split"}, "no array named 'split'; did you mean 'splt'"),
        ({"n_train": 20}, {}, "expected 'n_train' to be an integer from 1 to 19, found 20"),
        ({"n_train": [3, 4]}, {}, "expected 'n_train' to be an integer from 1 to 19"),
        ({"groups": np.linspace(0, 1, 20)}, {}, "expected 'groups' to have an integer or a string"),
        (
            {"groups": np.arange(20) // 2, "split": ["train", "test"] * 10},
            {},
            "group_key: expected all points of a group in one part, found 10 groups",
        ),
    ],
)
def test_wrong_splits_are_refused(arrays, arrays_, params, message):
    with pytest.raises(InputError, match=message):
        Arrays(arrays(**arrays_), **params).load(0)


def test_points_of_a_group_are_in_one_part(arrays):
    groups = np.arange(20) // 4
    for params in ({"groups": groups}, {"patients": groups.astype(str)}):
        key = next(iter(params))
        data = Arrays(arrays(**params), group_key=None if key == "groups" else key).load(1)
        assert not set(data.X_train[:, 0] // 4) & set(data.X_test[:, 0] // 4)
        np.testing.assert_array_equal(data.groups.astype(int), data.X_train[:, 0] // 4)
        splits = KFolds(folds=2).splits(data, 0)
        assert all(not set(data.groups[fit]) & set(data.groups[rest]) for fit, rest in splits)


def test_targets_split_and_groups_of_points_that_are_streamed(arrays, tmp_path):
    np.save(tmp_path / "X.npy", np.arange(20.0)[:, None])
    loader = Arrays(str(tmp_path / "X.npy"), arrays(groups=np.arange(20) % 4, **SPLITS["strings"]))
    data = loader.load(0, lazy=True)
    assert data.X_test[:][:, 0].tolist() == [1, 5, 9, 13, 17]
    assert set(data.groups) == {0, 2, 3}


# ---- new rows --------------------------------------------------------------------------------------------------------


class TestNewRows:
    @pytest.fixture
    def fitted(self, save):
        table = with_holes()[[*FEATURES, "kind", "trust"]]
        loader = Table(save(table), target="kind", weight="trust", missing="median")
        return loader, loader.load(0)

    def test_are_the_features_in_their_order_with_holes_filled_in(self, fitted, save):
        loader, data = fitted
        new = with_holes().iloc[:6][["legs", "width", "height", "kind"]]
        points = loader.read_points(save(new, "new.parquet"), data.form, data.encoder)
        (numbers,) = data.encoder.encoder_.named_transformers_.values()
        np.testing.assert_allclose(
            points.X, new[FEATURES].fillna(dict(zip(FEATURES, numbers.statistics_, strict=True)))
        )
        assert points.ids == [str(i) for i in range(6)]

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            (["height", "legs"], "has no column width. It has height, legs; the model was fitted to it"),
            ([*FEATURES, "price"], "has columns that the model was not fitted to: price; leave them out"),
        ],
    )
    def test_of_other_columns_are_refused_by_name(self, fitted, save, columns, message):
        with pytest.raises(InputError) as error:
            new_rows(*fitted, save(frame()[columns], "new.csv"))
        assert message in str(error.value)

    def test_may_have_other_columns_where_features_were_named(self, save):
        loader = Table(save(frame()), target="kind", features=FEATURES)
        assert new_rows(loader, loader.load(0), save(frame(), "new.csv")).shape == (40, 3)

    def test_with_holes_are_refused_where_the_training_part_refused_them(self, save):
        loader = Table(save(frame()), target="kind", features=FEATURES)
        with pytest.raises(InputError, match=r"height \(3 rows\), width \(1 row\)"):
            new_rows(loader, loader.load(0), save(with_holes(), "new.csv"))

    def test_need_the_encoder_of_the_model(self, fitted, save):
        loader, data = fitted
        with pytest.raises(InputError, match="expected a model that takes the columns of a table by name"):
            loader.read_points(save(frame()[FEATURES], "new.csv"), data.form)


# ---- pictures --------------------------------------------------------------------------------------------------------


class TestImages(DatasetContract):
    sizes = (30, 10)
    path: str | None = None

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        draw_classes(tmp_path / "zoo")
        self.path = str(tmp_path / "zoo")

    def create(self, **params):
        return Images(self.path, **params)


@pytest.mark.parametrize(("channels", "shape"), [("grey", (6, 8)), ("rgb", (6, 8, 3))])
def test_pictures_are_their_pixels_under_their_folders_names(tmp_path, channels, shape):
    pictures = draw_classes(tmp_path, shape=shape)
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    (tmp_path / ".hidden").mkdir()
    data = Images(str(tmp_path), channels=channels).load(0)
    assert data.source.endswith(", in grey" if channels == "grey" else ", in colour")
    assert data.X_train.shape == (30, *shape)
    by_pixels = {(values / np.float32(255)).tobytes(): name.split("/")[0] for name, values in pictures.items()}
    for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test)):
        assert [by_pixels[x.tobytes()] for x in X] == y.tolist()


def test_train_and_test_folders_are_the_parts(tmp_path):
    draw_classes(tmp_path / "train", 6)
    draw_classes(tmp_path / "test", 2)
    data = Images(str(tmp_path)).load(0)
    assert (len(data.X_train), len(data.X_test)) == (12, 4)
    (tmp_path / "test").rename(tmp_path / "testing")
    with pytest.raises(InputError, match="has a folder train; expected both of train, test"):
        Images(str(tmp_path)).check_files()


def test_unequal_sizes_are_refused_by_name_or_resized(tmp_path):
    draw_classes(tmp_path)
    draw(tmp_path / "cat" / "odd.png", np.full((5, 7), 128, np.uint8))
    with pytest.raises(InputError) as error:
        Images(str(tmp_path)).load(0)
    assert "odd.png has 5 x 7 pixels, 1.png has 6 x 8; set resize=[6,8]" in str(error.value)
    data = Images(str(tmp_path), resize=[4, 5]).load(0)
    assert data.X_train.shape == (31, 4, 5)
    assert 0 <= data.X_train.min() < data.X_train.max() <= 1


def one_picture(tmp_path: Path, name: str, values: np.ndarray, channels: str = "grey", **how) -> np.ndarray:
    draw(tmp_path / "new" / name, values, **how)
    form = {"shape": [*values.shape[:2], *([3] if channels == "rgb" else [])]}
    return Images(channels=channels).read_points(str(tmp_path / "new" / name), form).X[0]  # type: ignore[arg-type]


def test_names_that_are_not_utf8_are_escaped(tmp_path):
    zoo = tmp_path / "zoo"
    draw_classes(zoo, 4)
    for name in (zoo / "cat" / "1.png", zoo / "cat"):
        name.rename(os.fsdecode(os.fsencode(name) + (b"\xe9" if name.is_dir() else b"\xff.png")))
    data = Images(str(zoo)).load(0)
    assert {*data.y_train} == {"cat\\udce9", "owl"}
    assert "cat\\udce9/1.png\\udcff.png" in Images().read_points(str(zoo), {"shape": [6, 8]}).ids
    prints = [fingerprint(path, path.name) for path in sorted(zoo.rglob("*.png"))]
    assert json.dumps([each.path + each.name for each in prints], ensure_ascii=False).encode()
    (zoo / "owl" / os.fsdecode(b"\xff.png")).touch()
    with pytest.raises(InputError, match=r"owl/\\udcff.png is not a readable picture"):
        Images(str(zoo)).load(0)
    assert len(digest([*prints, of_listing("a\ud800.npy", 1, 2)])) == 16


def test_sixteen_bits_keep_their_values(tmp_path):
    deep = np.linspace(0, 65535, 48).reshape(6, 8).astype(np.uint16)
    np.testing.assert_allclose(one_picture(tmp_path, "deep.png", deep), deep / 65535, atol=1e-6)
    colour = one_picture(tmp_path, "deep.png", deep, "rgb")
    np.testing.assert_allclose(colour, np.repeat(deep[..., None], 3, 2) / 65535, atol=0.5 / 255 + 1e-6)


def test_transparent_pixels_are_black(tmp_path):
    picture = np.full((4, 4, 4), 200, np.uint8)
    picture[:2, :, 3] = 0
    shown = one_picture(tmp_path, "clear.png", picture, "rgb")
    assert not shown[:2].any()
    assert np.all(shown[2:] > 0.5)


def test_jpeg_in_colour_and_grey(tmp_path):
    red = np.zeros((16, 16, 3), np.uint8)
    red[..., 0] = 255
    np.testing.assert_allclose(one_picture(tmp_path, "red.jpg", red, "rgb"), red / 255, atol=0.02)
    np.testing.assert_allclose(one_picture(tmp_path, "red.JPEG", red), 0.299, atol=0.02)


def test_what_lies_beside_train_and_test_is_left_out_with_a_warning(tmp_path):
    for part in ("train", "test", "val"):
        draw_classes(tmp_path / "new" / part, 3)
    with pytest.warns(UserWarning, match="1 files and folders are left out, e.g. val; only the folders train and test"):
        Images(str(tmp_path / "new")).load(0)


def test_new_pictures_are_read_by_their_names(tmp_path):
    pictures = draw_classes(tmp_path / "new", 3)
    points = Images().read_points(str(tmp_path / "new"), {"shape": [6, 8]})
    assert points.ids == sorted(pictures)
    for x, name in zip(points.X, points.ids, strict=True):
        np.testing.assert_allclose(x, pictures[name] / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "message"),
    [([6, 9], "has 6 x 8 pixels, the model was fitted to 6 x 9"), ([6, 8, 3], "expected points of shape (6, 8, 3)")],
)
def test_new_pictures_of_another_size_are_refused(tmp_path, shape, message):
    draw_classes(tmp_path / "new", 3)
    with pytest.raises(InputError) as error:
        Images().read_points(str(tmp_path / "new"), {"shape": shape})
    assert message in str(error.value)


def test_a_new_picture_that_claims_a_size_that_no_memory_holds_is_refused(tmp_path):
    draw_classes(tmp_path / "new", 3)
    claiming(60_000, 60_000, str(tmp_path / "new" / "bomb.png"))()
    with pytest.raises(InputError, match=r"bomb\.png is not a readable picture \(Image size \(3600000000 pixels\)"):
        Images().read_points(str(tmp_path / "new"), {"shape": [6, 8]})


# ---- new points of other loaders -------------------------------------------------------------------------------------


def test_new_arrays_are_read_by_the_loaders_own_key(tmp_path):
    X = np.random.default_rng(0).random((5, 3))
    np.savez(tmp_path / "new.npz", inputs=X)
    np.save(tmp_path / "new.npy", X)
    for name in ("new.npz", "new.npy"):
        points = Arrays(x_key="inputs").read_points(str(tmp_path / name), {"shape": [3]})
        np.testing.assert_array_equal(points.X, X)
        assert points.ids == ["0", "1", "2", "3", "4"]


def test_bytes_of_pixels_are_divided_as_the_data_was(tmp_path):
    X = np.random.default_rng(0).integers(0, 256, (4, 28, 28), dtype=np.uint8)
    np.save(tmp_path / "new.npy", X)
    points = MNIST().read_points(str(tmp_path / "new.npy"), {"shape": [28, 28]})
    np.testing.assert_allclose(points.X, X / 255, rtol=1e-6)
    assert points.X.dtype == np.float32


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((2, 7, 7)), r"expected points of shape \(8, 8\), found \(7, 7\)"),
        (np.ones((8, 8)), r"expected points of shape \(8, 8\), found \(8,\)"),
        (np.array(1.0), r"expected points of shape \(8, 8\), found \(\)"),
        (np.ones((0, 8, 8)), "expected at least one point"),
        (np.full((2, 8, 8), np.nan), "NaN or infinite"),
        (np.full((2, 8, 8), "a"), "must hold real numbers"),
    ],
)
def test_new_points_of_another_form_are_rejected(tmp_path, X, message):
    np.savez(tmp_path / "new.npz", X=X)
    with pytest.raises(InputError, match=message):
        Digits().read_points(str(tmp_path / "new.npz"), {"shape": [8, 8]})


def test_an_npz_without_points_names_what_it_has(tmp_path):
    np.savez(tmp_path / "new.npz", x=np.ones((2, 8, 8)))
    with pytest.raises(InputError, match="no array named 'X'; did you mean 'x'?"):
        Digits().read_points(str(tmp_path / "new.npz"), {"shape": [8, 8]})


def test_a_column_of_row_numbers_is_warned_of(tmp_path):
    pd.DataFrame({"a": [1.5, 2, 3, 4], "y": list("nmnm")}).to_csv(tmp_path / "t.csv")
    with pytest.warns(UserWarning, match="the first column has no name and is used as a feature"):
        assert Table(path=str(tmp_path / "t.csv"), target="y").load(0).X_train.shape == (3, 2)


@pytest.mark.parametrize(("values", "warned"), [(30, True), (10, False)])
def test_whole_numbers_with_few_points_each_are_warned_of(values, warned):
    y = np.arange(90) % values
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert guess_task(y) == "classification"
    assert [str(each.message).partition(",")[0] for each in found] == (
        [f"the targets are {values} different whole numbers"] if warned else []
    )

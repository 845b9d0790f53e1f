"""A user's own tables: columns, parts and new rows; of categories in test_categories.py."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from samples import FEATURES, frame, new_rows

import orbit
from orbit import InputError, Table
from orbit.data.splits import split_clusters
from orbit.testing import DatasetContract
from runners.experiments.validation import HoldOut, KFolds


class TestTable(DatasetContract):
    component, sizes = Table, (30, 10)

    @pytest.fixture(autouse=True)
    def _file(self, save):
        self.params = {"path": save(frame()), "target": "kind", "features": FEATURES}


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
    form = {
        "shape": [2],
        "features": ["width", "height"],
        "targets": ["kind"],
        "categories": [],
        "csv": data.form["csv"],
    }
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
    with pytest.raises(InputError, match=r"dataset.features: column height holds no value"):
        Table(path, target="kind", features=FEATURES).load(0)
    data = Table(path, target="kind").load(0)
    assert "height" not in data.reading["features"]
    assert data.notes == ["left out: height (no value); dataset.features names columns to use"]


#: What is in a file, what it is read as, and what the notes say.
FILES = {
    "row numbers": (",a,y\n0,1.5,n\n1,2.5,m\n2,3.5,n\n3,1.5,m\n", ["a"], "left out: Unnamed: 0 (the numbers of"),
    "ids": ("patientId,a,y\n17,1,n\n5,2,m\n9,1,n\n8,2,m\n", ["a"], "left out: patientId (a different number in each"),
    "semicolons": ("a;b;y\n1,5;2,5;n\n1;3;m\n2;-,5;n\n0;1e-3;m\n", ["a", "b"], "separator ';', decimals after ','"),
    "thousands": ('a,b,y\n"1,200",1.5,n\n300,2,m\n"9,000",.5,n\n1,2,m\n', ["a", "b"], "thousands before ','"),
    "blanks between thousands": ("a;y\n1\xa0200,5;n\n300;m\n9\xa0000;n\n1;m\n", ["a"], "thousands before '\\xa0'"),
    "apostrophes": ("a,y\n1'200.5,n\n300,m\n9'000,n\n1,m\n", ["a"], 'thousands before "\'"'),
    "points between thousands": ("a;y\n1.200.500;n\n1.300,5;m\n9.000;n\n1;m\n", ["a"], "',', thousands before '.'"),
    "dollars": ('a,y\n"$1,200.50",n\n-$3,m\n0,n\n$1,m\n', ["a"], "units removed: a ($)"),
    "euros": ("a;y\n1.200,50 €;n\n-3 €;m\n7 €;n\n?;m\n", ["a"], "units removed: a (€)"),
    "percent": ("a,y\n47.6%,n\n5 %,m\n.5%,n\n0,m\n", ["a"], "units removed: a (%)"),
    "rates": ("a,y\n3 mg/l,n\n1e-3 mg/l,m\nn/a,n\n4mg/l,m\n", ["a"], "units removed: a (mg/l)"),
    "typeset": ("a,y\n\u22123,n\n1,m\n2,n\n4,m\n", ["a"], "units removed: a;"),
    "limits": ("a,y\n<0.5,n\n1,m\n2.5,n\n> 40,m\n", ["a"], "limits read as numbers: a ('<0.5' and the like in 2 rows)"),
    "limits with units": ("a,y\n<0.5 mg/l,n\n1 mg/l,m\n2.5 mg/l,n\n4 mg/l,m\n", ["a"], "units removed: a (mg/l)"),
    "bands": ("a,y\n<18,n\n<18,m\n18,n\n>65,m\n", ["a"], ""),
    "patients": (
        "patient_id,a,y\n1,3,n\n1,2,m\n2,7,n\n2,4,m\n",
        ["patient_id", "a"],
        "patient_id (2 different in 4 rows)",
    ),
    "-999": ("a,y\n3,n\n-999,m\n-999,n\n4,m\n", ["a"], "a (-999 in 2 rows); if so, dataset.missing_texts=['-999','']"),
    "tabs": ("a\tb c\ty\n?\tx\tn\n2\tz\tm\n3\tx\tn\n4\tz\tm\n", ["a", "b c"], "missing: a (1 row); imputed by the"),
    "blanks": ("  a b y\n 1  2 n\n10 20 m\n 3  4 n\n 4  5 m\n", ["a", "b"], "separator '\\\\s+'"),
    "no label": ("a|y\n1|+\n2|-\n3|\n1|+\n2|-\n2|+\n", ["a"], "left out: 1 of 6 rows, where y is missing"),
    "Windows": ("größe,y\n1,ä\n2,ö\n2,ä\n3,ö\n", ["größe"], "encoding 'cp1252'"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore:.*imputed as in training", "error::pandas.errors.ParserWarning")
def test_files_of_strangers_are_read_with_a_note(tmp_path, name):
    text, features, note = FILES[name]
    (tmp_path / "mine.csv").write_text(text, encoding="cp1252" if name == "Windows" else "utf-8")
    loader = Table(str(tmp_path / "mine.csv"), target="y")
    data = loader.load(0)
    assert data.reading["features"] == features
    assert note in "\n".join(data.notes)
    rows = new_rows(loader, data, str(tmp_path / "mine.csv"))  # as a new file they are the same numbers
    np.testing.assert_array_equal(rows[data.test_rows], data.X_test)


def test_units_are_those_of_the_training_part(save):
    table = frame().assign(dose=[f"{i / 4} mg" for i in range(40)], price=[f"${i}" for i in range(40)])
    loader = Table(save(table), target="price", features=["dose"])
    data = loader.load(0)
    assert (data.task, data.y_test.tolist()) == ("regression", data.test_rows.tolist())
    np.testing.assert_array_equal(data.X_test[:, 0] * 4, data.test_rows)
    new = new_rows(loader, data, save(pd.DataFrame({"dose": ["2.5 mg", "3", None]}), "new.csv"))
    assert new[:2, 0].tolist() == [2.5, 3]
    with pytest.raises(InputError, match="column dose holds .*'3 g'"):
        new_rows(loader, data, save(pd.DataFrame({"dose": ["2.5 mg", "3 g"]}), "new.csv"))
    kinds = save(frame().assign(kind=[f"{i % 4} kg" for i in range(40)]))
    assert {*Table(kinds, target="kind", features=["legs"]).load(0).y_train} == {"0 kg", "1 kg", "2 kg", "3 kg"}


def test_a_column_of_smiles_names_the_data_set_that_reads_it(tmp_path):
    (tmp_path / "mine.csv").write_text("SMILES,y\n" + "".join(f"{'C' * (i + 1)}O,{i}\n" for i in range(40)))
    with pytest.raises(InputError, match="left out: SMILES .40 different texts.*; dataset=molecules reads SMILES$"):
        Table(str(tmp_path / "mine.csv"), target="y").load(0)


def test_dates_with_points_are_no_numbers_with_thousands(tmp_path):
    rows = "".join(f"{i}.200,5;{i % 28 + 1:02d}.02.2025;{i}.5 kg;{'nm'[i % 2]}\n" for i in range(1, 60))
    (tmp_path / "mine.csv").write_text("a;d;w;y\n" + rows)
    data = Table(str(tmp_path / "mine.csv"), target="y").load(0)
    assert data.reading["features"] == ["a"]  # and 12.5 kg is not 125
    assert "left out: d (28 different texts with digits, e.g. '02.02.2025'), w (59 different" in "\n".join(data.notes)


def test_points_between_thousands_are_no_decimals_elsewhere(tmp_path):
    (tmp_path / "mine.csv").write_text('a,b,y\n0.126,"1.200,50 €",n\n1.5,"2.000,10 €",m\n0.13,"3,50 €",n\n1,"4 €",m\n')
    data = Table(str(tmp_path / "mine.csv"), target="y").load(0)
    assert {*np.concatenate([data.X_train, data.X_test])[:, 0]} == {0.126, 1.5, 0.13, 1}


def test_words_among_numbers_are_missing(save):
    table = frame(60).assign(dose=[*np.round(np.random.default_rng(1).normal(size=58), 3), "unknown", "-"])
    loader = Table(save(table), target="kind", features=["dose"])
    data = loader.load(0)
    assert data.notes == ["missing: dose (2 rows); imputed by the median (dataset.missing)"]
    new = new_rows(loader, data, save(pd.DataFrame({"dose": ["2.5", "?"]}), "new.csv"))
    (imputer,) = data.encoder.encoder_.named_transformers_.values()
    assert new.ravel().tolist() == [2.5, imputer.statistics_[0]]
    with pytest.raises(InputError, match="column dose holds .*'3 mg'"):
        new_rows(loader, data, save(pd.DataFrame({"dose": ["2.5", "3 mg"]}), "new.csv"))


# ---- CSV files as they are written elsewhere -------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_is_found_or_given(save, separator):
    path = save(frame(), sep=separator)
    for given in [None, separator, *({"\t": (r"\t", r"\s+")}.get(separator, ()))]:
        assert Table(path, target="kind", features=FEATURES, separator=given).load(0).X_train.shape == (30, 3)
    Path(path).write_text(Path(path).read_text().replace(separator, "::"))
    with pytest.raises(InputError, match="has no column kind.*; set dataset.target, or dataset.separator if"):
        Table(path, target="kind", features=FEATURES).load(0)
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
    new = save(table[how["features"]], "new.csv", **EUROPEAN, encoding=encoding)
    for given in ({"separator": ";", "decimal": "comma", "encoding": encoding}, {}):
        if given or encoding != "utf-16-le":  # which has no mark
            loader = Table(path, **how, **given)
            data = loader.load(0)
            np.testing.assert_array_equal(data.X_train, expected.X_train)
            np.testing.assert_array_equal(data.y_test, expected.y_test)
            np.testing.assert_array_equal(new_rows(loader, data, new), table[how["features"]])


@pytest.mark.parametrize(
    ("name", "start"), [("mine.xlsx", b"PK\3\4\x14\0"), ("mine.xls", b"\xd0\xcf\x11\xe0"), ("mine.csv", b"PAR1\x15\4")]
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_files_that_are_no_text_are_refused(tmp_path, name, start, encoding):
    (tmp_path / name).write_bytes(start + bytes(100))
    found = "is a spreadsheet; save it as CSV" if "xls" in name else "the table has no rows"
    with pytest.raises(InputError, match=f"^dataset.path: .*{name}: .*({found})"):
        Table(str(tmp_path / name), target="kind", encoding=encoding).load(0)


def test_decimals_and_integers_beyond_64_bits_are_numbers(save):
    table = frame()
    table["price"] = [None, *(Decimal(i) / 4 for i in range(1, 40))]
    settings = {"target": "kind", "features": ["price"], "missing": "mean"}
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
    with pytest.raises(InputError, match=rf"column \w+ holds .*; set dataset.decimal={decimal} if decimals begin"):
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


# ---- groups of points ------------------------------------------------------------------------------------------------


def with_patients(n: int = 60) -> pd.DataFrame:
    return frame(n).assign(patient=[f"p{i % 12}" for i in range(n)])


class TestTableOfGroups(DatasetContract):
    component, sizes = Table, (45, 15)

    @pytest.fixture(autouse=True)
    def _file(self, save):
        columns = {"target": "legs", "features": ["height", "kind"], "group_column": "patient"}
        self.params = {"path": save(with_patients()), **columns}

    def test_task_and_representation_are_as_declared(self):
        """Classes of the test part may all be in other groups than those of the training part."""
        data = self.create(task="regression").load(0)
        orbit.build("representation", self.component.default_representation["name"]).fit(data.X_train)


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_a_group_are_in_one_part(save, seed):
    table = with_patients()
    data = Table(save(table), target="price", features=["height"], group_column="patient").load(seed)
    found = {"train": set(data.clusters), "test": set(table["patient"][data.test_rows])}
    assert not found["train"] & found["test"]
    assert found["train"] | found["test"] == set(table["patient"])
    assert len(data.X_test) == 15
    np.testing.assert_array_equal(table["height"][table["patient"].isin(found["train"])], data.X_train[:, 0])
    for folds in (KFolds(folds=3), HoldOut(fraction=0.3)):
        splits = folds.splits(data, seed)
        assert not any(set(data.clusters[fit]) & set(data.clusters[validation]) for fit, validation in splits)
        part = data.split(*splits[0])
        assert set(part.clusters) == set(data.clusters[splits[0][0]])


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


def test_groups_are_split_so_that_no_part_lacks_a_class():
    groups, y = np.repeat(np.arange(12), 5), np.repeat(["often"] * 10 + ["rare"] * 2, 5)
    shares = [np.mean(y[two] == "rare") for two in (split_clusters(groups, 0.3, seed, y)[1] for seed in range(20))]
    assert np.mean(shares) == pytest.approx(1 / 6, abs=0.1)
    assert max(shares) < 0.5, "never both groups"


def test_more_folds_than_groups_are_refused(save):
    data = Table(save(with_patients()), target="price", features=["height"], group_column="patient").load(0)
    with pytest.raises(InputError, match="folds: expected at most 9, the number of groups, found 10"):
        KFolds(folds=10).splits(data, 0)


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

    def test_may_have_other_columns_where_features_were_named(self, save):
        loader = Table(save(frame()), target="kind", features=FEATURES)
        assert new_rows(loader, loader.load(0), save(frame(), "new.csv")).shape == (40, 3)

    def test_need_the_encoder_of_the_model(self, fitted, save):
        loader, data = fitted
        with pytest.raises(InputError, match="expected a model that takes the columns of a table by name"):
            loader.read_points(save(frame()[FEATURES], "new.csv"), data.form)


@pytest.mark.parametrize(
    ("name", "correlated", "is_series"),
    [("{}", True, True), ("X{}.5 nm", True, True), ("{}", False, False), ("a{}b1", True, False)],
)
def test_columns_that_are_samples_of_spectra_are_noted(tmp_path, rng, name, correlated, is_series):
    values = rng.standard_normal((40, 20))
    table = pd.DataFrame(
        values.cumsum(1) if correlated else values, columns=[name.format(900 + 4 * i) for i in range(20)]
    )
    table.assign(sample=[f"s{i}" for i in range(40)], y=rng.random(40)).to_csv(tmp_path / "a.csv", index=False)
    notes = "\n".join(orbit.read_table(str(tmp_path / "a.csv"), "y").notes)
    first, last = name.format(900), name.format(976)
    assert (f"columns {first} to {last} are like the samples of spectra" in notes) == is_series

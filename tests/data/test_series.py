"""A user's own time series."""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io

from orbit import InputError, Series
from orbit.data.series_files import of_length
from orbit.testing import DatasetContract

RNG = np.random.default_rng(0)
TRAIN, TEST = RNG.normal(size=(12, 2, 9)).round(3), RNG.normal(size=(8, 2, 9)).round(3)  # (n, channels, length)


def kinds(n: int) -> list[str]:
    return ["Up" if i % 2 else "Down" for i in range(n)]


def ts(X, labels, header: str = "@classLabel true Up Down") -> str:
    rows = [
        ":".join([*(",".join(map(str, channel)) for channel in x), label]) for x, label in zip(X, labels, strict=True)
    ]
    return "\n".join(["# a comment", "@problemName Made", "@timeStamps false", header, "@data", *rows]) + "\n"


def written(folder: Path, text: str, name: str = "a.ts") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def pair(tmp_path: Path, **options) -> Path:
    folder = tmp_path / "Made"
    folder.mkdir(exist_ok=True)
    written(folder, ts(TRAIN, kinds(12), **options), "Made_TRAIN.ts")
    written(folder, ts(TEST, kinds(8), **options), "Made_TEST.ts")
    return folder


def everything(path: str, **params) -> tuple[np.ndarray, np.ndarray]:
    data = Series(path, **params).load(0)
    return np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])


class TestSeries(DatasetContract):
    component, sizes = Series, (12, 8)

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path):
        self.params = {"path": str(pair(tmp_path))}


@pytest.mark.parametrize("place", ["", "Made_TRAIN.ts"])
def test_the_published_parts_are_a_pair_of_files(tmp_path, place):
    data = Series(str(pair(tmp_path) / place)).load(0)
    np.testing.assert_array_equal(data.X_train, TRAIN.transpose(0, 2, 1).astype(np.float32))
    np.testing.assert_array_equal(data.X_test, TEST.transpose(0, 2, 1).astype(np.float32))
    assert data.y_train.tolist() == kinds(12)
    assert data.task == "classification"
    assert data.source == "series in Made_TRAIN.ts and Made_TEST.ts"
    assert len(Series(str(tmp_path / "Made" / place)).input_files()) == 2


def test_a_test_file_and_numbers_as_targets(tmp_path):
    one = written(tmp_path, ts(TRAIN, map(str, range(12)), "@targetLabel true"), "one.ts")
    two = written(tmp_path, ts(TEST, map(str, range(8)), "@targetLabel true"), "two.ts")
    data = Series(one, test_path=two).load(0)
    assert data.task == "regression"
    assert data.y_test.tolist() == [*range(8)]


def test_time_stamps_and_missing_values(tmp_path):
    rows = "(2007-01-01 00:00:00,1.5),(2007-01-01 00:01:00,?),(2007-01-01 00:02:00,-2e1):Up\n" * 4
    path = written(tmp_path, "@timeStamps true\n@classLabel true Up Down\n@data\n" + rows + rows.replace("Up", "Down"))
    with pytest.raises(InputError, match=r"a.ts: series 0 lacks 1 of 3 values; set dataset.missing=interpolate"):
        Series(path).load(0)
    X, _ = everything(path, missing="interpolate")
    np.testing.assert_array_equal(X, np.tile([1.5, -9.25, -20.0], (8, 1)))


def arff(X, labels) -> str:
    """As Weka writes one channel, or several as one relational attribute."""
    names = "".join(f"@attribute att{i} numeric\n" for i in range(X.shape[-1]))
    if X.shape[1] > 1:
        names = f"@attribute relationalAtt relational\n{names}@end relationalAtt\n"
    rows = [r"\n".join(",".join(map(str, channel)) for channel in x) for x in X]
    rows = [f'"{row}"' if X.shape[1] > 1 else row for row in rows]
    data = "".join(f"{row},{label}\n" for row, label in zip(rows, labels, strict=True))
    return f"@relation Made\n{names}@attribute target {{Up,Down}}\n@data\n{data}"


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("form", ["arff", "ts", "tsv"])
def test_formats_of_the_archives_have_the_same_series(tmp_path, form, channels):
    X, labels = TRAIN[:, :channels], kinds(12)
    if form == "tsv":
        if channels > 1:
            return
        text = "".join("\t".join([label, *map(str, x[0])]) + "\n" for x, label in zip(X, labels, strict=True))
    else:
        text = arff(X, labels) if form == "arff" else ts(X, labels)
    data = Series(written(tmp_path, text, f"a.{form}")).load(0)
    expected = X.transpose(0, 2, 1).astype(np.float32).squeeze(2 if channels == 1 else ())
    order = {x.tobytes(): label for x, label in zip(expected, labels, strict=True)}
    assert data.X_train.shape == (9, 9, 2)[: 2 + (channels > 1)]
    assert [order[x.tobytes()] for x in data.X_train] == data.y_train.tolist()


def long(X, labels) -> pd.DataFrame:
    """Rows of all series, in random order."""
    rows = [
        {"case": f"c{i}", "time": t, "a": x[0, t], "b": x[1, t], "label": label}
        for i, (x, label) in enumerate(zip(X, labels, strict=True))
        for t in range(x.shape[1])
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=0)


def test_a_table_in_long_form(tmp_path):
    long(TRAIN, kinds(12)).to_csv(tmp_path / "a.csv", index=False)
    options = {"id_column": "case", "time_column": "time"}
    data = Series(str(tmp_path / "a.csv"), **options).load(0)
    order = {x.T.astype(np.float32).tobytes(): label for x, label in zip(TRAIN, kinds(12), strict=True)}
    assert data.X_train.shape == (9, 9, 2)
    assert [order[np.ascontiguousarray(x).tobytes()] for x in data.X_train] == data.y_train.tolist()
    one = Series(str(tmp_path / "a.csv"), channels=["b"], **options).load(0)
    np.testing.assert_array_equal(one.X_train, data.X_train[..., 1])
    new = long(TEST, kinds(8)).drop(columns="label")
    new.to_csv(tmp_path / "new.csv", index=False)
    points = Series(str(tmp_path / "a.csv"), **options).read_points(str(tmp_path / "new.csv"), data.form)
    order = [int(name.removeprefix("c")) for name in points.ids]
    np.testing.assert_array_equal(points.X, TEST[order].transpose(0, 2, 1).astype(np.float32))


def test_times_that_are_not_named_are_warned_of(tmp_path):
    long(TRAIN, kinds(12)).sort_values("time").to_csv(tmp_path / "a.csv", index=False)
    with pytest.warns(UserWarning, match="column time grows from row to row in every series, .* dataset.time_column"):
        assert Series(str(tmp_path / "a.csv"), id_column="case").load(0).X_train.shape == (9, 9, 3)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_series_in_arrays(tmp_path, suffix):
    def save(name, **arrays):
        path = str(tmp_path / (name + suffix))
        np.savez(path, **arrays) if suffix == ".npz" else scipy.io.savemat(path, arrays)
        return path

    y, patients = np.array(kinds(12)), np.arange(12) // 2
    first = save("first", X=TRAIN, y=y.astype(object if suffix == ".mat" else str), groups=patients)
    data = Series(first).load(0)
    assert data.X_train.shape[1:] == data.X_test.shape[1:] == (9, 2)
    assert len(set(data.clusters)) == len(data.X_train) / 2
    assert {*Series.reading} <= data.form.keys()  # or predictions refuse the model
    points = Series(first).read_points(first, data.form)
    np.testing.assert_array_equal(points.X, TRAIN.swapaxes(1, 2))
    whole = Series(first, channels_first=False).load(0)  # 2 samples of 9 channels
    assert whole.X_train.shape[1:] == (2, 9)
    for X, shape in ((TRAIN.swapaxes(1, 2), (9, 2)), (TRAIN[:, 0], (9,))):
        assert Series(save("other", X=X, z=np.arange(12) % 2), y_key="z").load(0).X_train.shape[1:] == shape
    with pytest.raises(InputError, match=r"x_key: expected series of shape \(length,\) or .*, found \(2, 9, 2\)"):
        Series(save("pictures", X=np.stack([TRAIN] * 2, -1), y=y.astype(object) if suffix == ".mat" else y)).load(0)


def test_a_column_of_one_value_in_each_series_is_warned_of(tmp_path):
    table = long(TRAIN, kinds(12)).assign(person=lambda rows: rows["case"].str.removeprefix("c").astype(int) // 2)
    table.to_csv(tmp_path / "a.csv", index=False)
    named = {"id_column": "case", "time_column": "time"}
    with pytest.warns(UserWarning, match=r"column person has one value in each series, .* dataset.group_column=person"):
        assert Series(str(tmp_path / "a.csv"), **named).load(0).X_train.shape == (9, 9, 3)
    assert Series(str(tmp_path / "a.csv"), group_column="person", **named).load(0).X_train.shape[2] == 2


def test_missing_values_in_arrays_are_after_the_end_of_shorter_series(tmp_path):
    path, shorter = str(tmp_path / "a.npz"), TRAIN.astype(float)
    shorter[::2, :, 7:] = np.nan
    np.savez(path, X=shorter, y=kinds(12))
    data = Series(path).load(0)
    points = Series(path).read_points(path, data.form).X
    expected = TRAIN.swapaxes(1, 2).copy()
    expected[::2, 7:] = expected[::2, 6:7]
    np.testing.assert_allclose(points, expected, rtol=1e-6)
    assert np.isfinite(data.X_train).all()
    assert np.isfinite(data.X_test).all()
    shorter[3, 0, 2] = np.nan
    np.savez(path, X=shorter, y=kinds(12))
    with pytest.raises(InputError, match=r"a\.npz: series 3 lacks 1 of 18 values; set dataset.missing=interpolate"):
        Series(path).load(0)
    assert Series(path, missing="interpolate").load(0).X_train.shape == (9, 9, 2)


def uneven(lengths=(6, 9, 12, 14)) -> pd.DataFrame:
    """Lines a = 3 t + i and b = t at random times from 0, two of them in two rows with a mean on the line; in rows."""
    rng, rows = np.random.default_rng(0), []
    for i, length in enumerate(lengths * 3):
        times = np.sort(rng.uniform(0, length, 5 * length))
        times[0], times[-1] = 0, length
        for t, off in [*((t, 0) for t in times[1:]), (0, 1), (0, -1)]:
            rows.append({"case": i, "time": t, "a": 3 * t + i + off, "b": t + off, "label": "ud"[i % 2]})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("dates", [False, True])
def test_uneven_times_are_interpolated_at_equal_steps(tmp_path, dates):
    table = uneven()
    if dates:
        table["time"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(60 * table["time"], unit="s")
    table.to_csv(tmp_path / "a.csv", index=False)
    step = 30 if dates else 0.5
    loader = Series(str(tmp_path / "a.csv"), id_column="case", time_column="time", step=step, n_train=9, length=29)
    data = loader.load(0)
    points = loader.read_points(str(tmp_path / "a.csv"), data.form)
    for i, x in enumerate(points.X):
        end = 2 * (6, 9, 12, 14)[i % 4] + 1
        np.testing.assert_allclose(x[:end, 1], np.arange(end) / 2, atol=1e-4)
        np.testing.assert_allclose(x[:end, 0], 3 * x[:end, 1] + i, atol=1e-4)


def test_uneven_times_are_warned_of(tmp_path):
    table = uneven()[lambda rows: ~rows.duplicated(["case", "time"])]
    table.to_csv(tmp_path / "a.csv", index=False)
    loader = Series(str(tmp_path / "a.csv"), id_column="case", time_column="time", length=70)
    with pytest.warns(UserWarning, match=r"6\d % of the times between samples, .* median 0.1\d+ .*; dataset.step=0.1"):
        loader.load(0)


def test_even_times_are_not_warned_of(tmp_path, recwarn):
    long(TRAIN, kinds(12)).to_csv(tmp_path / "a.csv", index=False)
    Series(str(tmp_path / "a.csv"), id_column="case", time_column="time").load(0)
    assert not recwarn.list


def test_the_only_column_of_text_is_the_class(tmp_path):
    table = pd.DataFrame(TRAIN[:, 0]).assign(kind=kinds(12))
    table.to_csv(tmp_path / "a.csv", index=False, sep=";")
    found = Series(str(tmp_path / "a.csv"), "kind").load(0)
    guessed = Series(str(tmp_path / "a.csv")).load(0)
    assert guessed.task == "classification"
    np.testing.assert_array_equal(guessed.X_train, found.X_train)
    np.testing.assert_array_equal(guessed.y_train, found.y_train)


def test_a_table_in_wide_form_with_groups(tmp_path):
    frame = pd.DataFrame(TRAIN[:, 0], columns=[f"t{i}" for i in range(9)])
    frame = frame.assign(label=kinds(12), patient=np.arange(12) // 3, note="x")
    frame.loc[0, ["t7", "t8"]] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    loader = Series(str(tmp_path / "a.csv"), group_column="patient", exclude=["note"])
    data = loader.load(0)
    assert data.X_train.shape == (9, 9)
    assert len(set(data.clusters)) == 3
    frame.drop(columns=["label", "patient"]).iloc[:, ::-1].to_csv(tmp_path / "new.csv", index=False)
    points = loader.read_points(str(tmp_path / "new.csv"), data.form)
    np.testing.assert_array_equal(points.X[1:], TRAIN[1:, 0].astype(np.float32))
    np.testing.assert_array_equal(points.X[0], TRAIN[0, 0, [*range(7), 6, 6]].astype(np.float32))


def test_series_of_unequal_lengths(tmp_path):
    X = [x[:, : 9 - i % 3] for i, x in enumerate(TRAIN)]
    path = written(tmp_path, ts(X, kinds(12)))
    padded, _ = everything(path)
    assert padded.shape == (12, 9, 2)
    assert sorted((np.diff(padded, axis=1)[..., 0] == 0).sum(1)) == [0] * 4 + [1] * 4 + [2] * 4
    stretched, _ = everything(path, unequal="stretch")
    assert not (np.diff(stretched, axis=1) == 0).any()
    assert {*stretched[:, -1].ravel()} == {*np.float32([x[:, -1] for x in X]).ravel()}
    with pytest.raises(InputError, match=r"a.ts: expected series of 9 samples, found [78]; set dataset.unequal=pad or"):
        everything(path, unequal="refuse")
    with pytest.warns(UserWarning, match=r"series are cut to 8 samples, the longest has 9; dataset.length=9 keeps all"):
        everything(path, length=8)


def test_stretched_lines_stay_lines():
    X = of_length([np.linspace(0, 1, n)[:, None] for n in (2, 5, 50)], 20, "stretch")
    np.testing.assert_allclose(X, np.tile(np.linspace(0, 1, 20), (3, 1)), atol=1e-6)


@pytest.mark.parametrize(
    ("text", "name", "options", "message"),
    [
        ("1,2:Up\n", "a.ts", {}, "expected @data before the first series, found '1,2:Up'"),
        ("@classLabel true Up\n@data\n", "a.ts", {}, "a.ts has no series"),
        ("@classLabel true Up\n@data\n1,x:Up\n", "a.ts", {}, "series 1: expected numbers .* 'x'"),
        ("@classLabel true Up\n@data\n1,2:1,2,3:Up\n", "a.ts", {}, "series 1: expected channels of one length"),
        ("@classLabel true Up\n@data\n1,2:3,4:Up\n1,2:Up\n", "a.ts", {}, "same number of channels"),
        ("@classLabel false\n@data\n1,2\n1,3\n", "a.ts", {}, "target: a.ts has no classes"),
        ("@classLabel true Up\n@data\n?,?:Up\n", "a.ts", {}, "series 0 has infinite values, or a channel without"),
        ("nonsense", "a.arff", {}, "is not a readable .arff file"),
        ("Up\tx\n", "a.tsv", {}, "is not a readable .tsv file"),
        ("a,b\n1,2\n", "a.csv", {}, "target: a.csv has no column 'label'"),
        ("a,b,c\n1,x,Up\n", "a.csv", {}, "column b holds .*set dataset.target if it is the class"),
        ("a,b,label\n1,x,Up\n", "a.csv", {}, r"column b holds .*dataset.id_column if a series has many rows"),
        ("a,label\n1,Up\n", "a.csv", {"id_column": "case"}, "has no column case"),
        ("a,label\n1,Up\n", "a.csv", {"time_column": "t"}, "id_column: expected the column that names the series"),
        ("i,a,label\n1,1,Up\n1,2,Down\n", "a.csv", {"id_column": "i"}, "label has several values in the rows of"),
        ("i,t,a,label\n1,1,1,Up\n1,1,2,Up\n", "a.csv", {"id_column": "i", "time_column": "t"}, "series 1 has two rows"),
        ("i,t,a,label\n1,1,1,Up\n", "a.csv", {"id_column": "i", "step": 1}, "time_column: expected the column with"),
        ("", "a.npz", {"group_column": "patient"}, "group_column: is for tables; of an .npz or .mat file"),
        ("i,t,a,label\n1,x,1,Up\n", "a.csv", {"id_column": "i", "time_column": "t"}, r"column t \(time\) expected"),
        ("", "a.txt", {}, "path: expected a .ts, .arff, .tsv, .csv"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Could not infer format")
def test_what_cannot_be_read_is_one_line(tmp_path, text, name, options, message):
    loader = Series(written(tmp_path, text, name), **options)
    with pytest.raises(InputError, match=message) as found:
        loader.load(0)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "path: expected a .ts"),
        ({"path": "Made"}, r"path: expected Made_TRAIN.ts and Made_TEST.ts \(or .arff, .tsv\)"),
        ({"path": "none.ts"}, "path: expected a file at"),
        ({"path": "a.ts", "bundled": "OSULeaf"}, "bundled: expected null where path is given"),
    ],
)
def test_places_without_series(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Made").mkdir()
    with pytest.raises(InputError, match=message):
        Series(**options).load(0)


def test_new_series_have_the_channels_of_the_training_series(tmp_path):
    loader = Series(str(pair(tmp_path)))
    data = loader.load(0)
    new = written(tmp_path, ts(TEST[..., :5], [""] * 8).replace(":\n", "\n"), "new.ts")
    new = written(tmp_path, Path(new).read_text().replace("classLabel true Up Down", "classLabel false"), "new.ts")
    assert loader.read_points(new, data.form).X.shape == (8, 9, 2)
    one = written(tmp_path, ts(TEST[:, :1], kinds(8)), "one.ts")
    with pytest.raises(InputError, match=r"one.ts: expected series of 2 channels, found 1"):
        loader.read_points(one, data.form)


@pytest.mark.skipif(importlib.util.find_spec("aeon") is None, reason="needs aeon")
@pytest.mark.parametrize("name", ["OSULeaf", "BasicMotions", "PickupGestureWiimoteZ"])
def test_bundled_series_are_those_of_aeon(name):
    from aeon.datasets import load_classification

    data = Series(bundled=name).load(0)
    for part in ("train", "test"):
        X, y = load_classification(name, split=part)
        found = getattr(data, f"X_{part}").reshape(len(y), data.X_train.shape[1], -1)
        for mine, theirs in zip(found, X, strict=True):
            np.testing.assert_array_equal(mine[: theirs.shape[1]], theirs.T.astype(np.float32))
        assert [each.lower() for each in getattr(data, f"y_{part}")] == y.tolist()
    with pytest.raises(InputError, match=r"bundled: expected a data set that aeon ships, found 'OSULeef'; did you"):
        Series(bundled="OSULeef").check_files()


def listed(folder: Path, suffix: str) -> Path:
    """Ten recordings of two channels and unequal lengths, in files of their own, and the table that lists them."""
    rows = []
    for i in range(10):
        values = pd.DataFrame(np.arange(2 * (20 + i)).reshape(-1, 2) + 100.0 * i, columns=["a", "b"])
        name = f"r{i}{suffix}"
        if suffix == ".csv":
            shuffled = values.assign(time=np.arange(len(values))).sample(frac=1, random_state=i)
            shuffled.to_csv(folder / name, index=False, sep=";")
        elif suffix == ".txt":
            values.to_csv(folder / name, index=False, header=False, sep="\t")
        elif suffix == ".mat":
            scipy.io.savemat(folder / name, {"sensor": values.to_numpy().T, "rpm": 1200.0 + i})
        else:
            np.save(folder / name, values.to_numpy())
        rows.append({"name": name, "fault": "inner" if i % 2 else "none", "machine": i // 2, "part": "train"})
    table = pd.DataFrame(rows)
    table.loc[table["machine"] == 4, "part"] = "test"
    table.to_csv(folder / "list.csv", index=False)
    return folder / "list.csv"


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".mat", ".npy"])
def test_series_in_files_of_their_own(tmp_path, suffix):
    options = {"target": "fault", "file_column": "name", "group_column": "machine", "split_column": "part"}
    loader = Series(str(listed(tmp_path, suffix)), **options, time_column="time" if suffix == ".csv" else None)
    data = loader.load(0)
    assert data.X_train.shape == (8, 27, 2)
    assert data.X_test[1, :, 0].tolist() == [*np.arange(900, 954, 2)]
    assert data.y_train.tolist() == ["none", "inner"] * 4
    assert data.clusters.tolist() == ["0", "0", "1", "1", "2", "2", "3", "3"]
    assert {name: values.tolist() for name, values in data.test_names.items()} == {
        "series": [f"r8{suffix}", f"r9{suffix}"],
        "machine": ["4", "4"],
    }
    pd.DataFrame({"name": [f"r9{suffix}"]}).to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "records").mkdir()
    (tmp_path / f"r9{suffix}").rename(tmp_path / "records" / f"r9{suffix}")
    for where in (f"records/r9{suffix}", "records"):
        points = loader.read_points(str(tmp_path / where), data.form)
        np.testing.assert_array_equal(points.X, data.X_test[1:])
        assert points.ids == [f"r9{suffix}"]
    with pytest.raises(InputError, match=rf"1 of 1 files of column name do not exist.*r9{suffix}"):
        loader.read_points(str(tmp_path / "new.csv"), data.form)


def test_long_series_are_cut_into_windows_of_one_part(tmp_path):
    loader = Series(str(listed(tmp_path, ".npy")), target="fault", file_column="name", window=7)
    data = loader.load(0)
    points = loader.read_points(str(tmp_path / "list.csv"), data.form)
    assert points.X.shape == (31, 7, 2)  # 20 samples are two windows, 28 are four
    assert points.ids[:3] == ["r0.npy", "r0.npy", "r1.npy"]
    assert points.names["start"][:5].tolist() == [0, 7, 0, 7, 14]
    assert points.X[1, :, 0].tolist() == [*np.arange(14, 28, 2)]
    assert not {*data.clusters} & {*data.test_names["series"]}
    assert len(data.X_train) + len(data.X_test) == 31
    assert data.notes[0].startswith("columns not used: machine, part; dataset.split_column names one of training")


def test_a_split_column_of_a_table_of_series(tmp_path):
    rows = pd.DataFrame(RNG.normal(size=(6, 4))).assign(label=["a", "b"] * 3, part=["train", "test", "val"] * 2)
    rows.to_csv(tmp_path / "wide.csv", index=False)
    data = Series(str(tmp_path / "wide.csv"), split_column="part").load(0)
    assert (data.X_train.shape, data.test_names["series"].tolist()) == ((4, 4), ["1", "4"])
    assert data.folds.tolist() == [-1, 0, -1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: np.savez(folder / "r3.npz", p=np.ones(20), q=np.ones(20)),
            "r3.npz: has no array 'X', but p, q",
        ),
        (
            lambda folder: np.savez(folder / "r3.npz", X=np.ones((20, 3))),
            "r3.npz: expected columns 0, 1, found 0, 1, 2",
        ),
        (lambda folder: np.savez(folder / "r3.npz", X=np.ones((20, 3, 2))), r"r3.npz: expected one series, shape"),
    ],
)
def test_files_of_series_that_differ_are_named(tmp_path, change, message):
    table = pd.read_csv(listed(tmp_path, ".npy"))
    table.replace("r3.npy", "r3.npz").to_csv(tmp_path / "list.csv", index=False)
    change(tmp_path)
    with pytest.raises(InputError, match=message):
        Series(str(tmp_path / "list.csv"), target="fault", file_column="name").load(0)

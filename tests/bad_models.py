"""Damaged folders of models, new points, and a part of the line that answers each, for tests/test_bad_input.py."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bad_data import claiming
from samples import draw
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler


def text(name: str, content: str | bytes) -> Callable[[Path], None]:
    """Replaces a file of the folder."""
    value = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(value)  # type: ignore[return-value,func-returns-value]


def form(**values: object) -> Callable[[Path], None]:
    """Changes the record of the data set."""

    def change(folder: Path) -> None:
        record = json.loads((folder / "run.json").read_text())
        record["dataset"] |= values
        (folder / "run.json").write_text(json.dumps(record))

    return change


def cut(name: str, size: int) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])  # type: ignore[return-value]


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


NO_RECORD = "run.json has no record of the data that the run was fitted to"
NO_NAME = "run.json has no name of the data set that the run was fitted to"
NO_MODEL = "model.pkl is no model of runner=fit: expected a pipeline that ends in a learner, found"

#: What damages the folder of a fitted model, and a part of the line.
FOLDERS: list[tuple[Callable[[Path], object], str]] = [
    (cut("run.json", 100), "run.json is damaged ("),
    (cut("run.json", 0), "run.json is damaged (Expecting value"),
    (text("run.json", "{'a"), "run.json is damaged (Expecting property name"),
    (text("run.json", b"\xff\xfe\0"), "run.json is damaged ("),
    (text("run.json", "[1, 2]"), "run.json is not the record of a run: expected a name and others of name"),
    (text("run.json", "[" * 100_000), "run.json is damaged (maximum recursion depth exceeded"),
    (text("run.json", "{}"), "run.json is not the record of a run: expected a name and others of"),
    (text("run.json", '{"name": "x", "shape": 3}'), "run.json is not the record of a run"),
    (text("run.json", "null"), NO_RECORD),
    (text("run.json", '{"name": "x", "dataset": [1]}'), NO_RECORD),
    (text("run.json", '{"name": "x"}'), NO_RECORD),
    (without("run.json"), NO_RECORD),
    (form(form={}), NO_RECORD),
    (form(form=[8, 8]), NO_RECORD),
    (form(form={"shape": "ab"}), NO_RECORD),
    (form(form={"shape": [8, "8"]}), NO_RECORD),
    (form(form={"shape": [7, 7]}), "new.npy: expected points of shape (7, 7), found (8, 8)"),
    (form(form={"shape": [8, 8, 1]}), "new.npy: expected points of shape (8, 8, 1), found (8, 8)"),
    (form(loader=None), NO_NAME),
    (form(loader=[1]), NO_NAME),
    (form(loader={"n_train": 3}), NO_NAME),
    (form(loader={"name": "digitz"}), "run.json: dataset=digitz: no such dataset; did you mean"),
    (form(loader={"name": "digits", "zz": 3}), "run.json: dataset=digits has no parameter 'zz'"),
    (form(loader={"name": "${oc.env:HOME}"}), "run.json: dataset=${oc.env:HOME}: no such dataset"),
    (form(loader={"name": "table"}), "form of another one: it lacks features, targets"),
    (without("model.pkl"), "expected a run folder with a model.pkl at"),
    (text("model.pkl", b""), "model.pkl cannot be loaded (Ran out of input)"),
    (text("model.pkl", b"no pickle"), "model.pkl cannot be loaded ("),
    (cut("model.pkl", 1000), "model.pkl cannot be loaded ("),
    (text("model.pkl", pickle.dumps({"a": 1})), f"{NO_MODEL} dict"),
    (text("model.pkl", pickle.dumps(LinearRegression())), f"{NO_MODEL} LinearRegression"),
    (text("model.pkl", pickle.dumps(Pipeline([("a", StandardScaler())]))), f"{NO_MODEL} Pipeline"),
]


def array(values: object, name: str = "new.npy") -> Callable[[], object]:
    return lambda: np.save(name, np.asarray(values))


def rows(content: str) -> Callable[[], object]:
    return lambda: Path("new.csv").write_text(content)


ONES = np.ones((3, 8, 8))

#: The data set of a model, what writes new points, their file, and a part of the line.
POINTS: list[tuple[str, Callable[[], object], str, str]] = [
    *(
        ("digits", array(values), "new.npy", f"runner.input: new.npy{found}")
        for values, found in (
            (np.full((3, 8, 8), np.nan), " has 192 values that are NaN or infinite, the first at index (0, 0, 0)"),
            (np.full((3, 8, 8), -np.inf), " has 192 values that are NaN or infinite"),
            (ONES.astype(complex), ", 'X' must hold real numbers, found dtype complex128"),
            (ONES.astype("M8[D]"), ", 'X' must hold real numbers, found dtype datetime64[D]"),
            (ONES.astype(str), ", 'X' must hold real numbers, found dtype <U32"),
            (ONES[:0], ": expected at least one point, found none"),
            (ONES[0], ": expected points of shape (8, 8), found (8,)"),
            (1.0, ": expected points of shape (8, 8), found ()"),
            (ONES[:, :7], ": expected points of shape (8, 8), found (7, 8)"),
        )
    ),
    ("digits", array(ONES * 1e308), "new.npy", "runner.input: features: NaN or infinite for 1 of 1 points"),
    (
        "digits",
        array(ONES.astype(object)),
        "new.npy",
        "new.npy is not a readable .npz, .npy or .mat file without objects",
    ),
    (
        "digits",
        rows("a,b\n1,2\n"),
        "new.csv",
        "new.csv is not a readable .npz, .npy or .mat file without objects: it is of",
    ),
    ("digits", lambda: Path("new.npy").mkdir(), "new.npy", "new.npy, found a folder"),
    ("digits", array(ONES * np.nan, "a\nb.npy"), "a\nb.npy", "runner.input: a\\nb.npy has 192 values that are NaN"),
    *(
        ("table", rows(content), "new.csv", f"runner.input: new.csv{found}")
        for content, found in (
            ("a,b,c\n", ": the table has no rows, expected at least one"),
            ("", ": expected a readable CSV file (No columns to parse from file)"),
            ("a,b\n1,2\n", ": the table has no column c. It has a, b; the model was fitted to it"),
            ("a,b,c\n1,2,u,9\n", ": expected a readable CSV file (its rows have more entries than"),
            ("a,a,b,c\n1,1,2,u\n", ": the table has several columns of one name: a"),
            ("a,b,c\n1,,u\n", ": the table has missing values: b (1 row)"),
            (
                "a,b,c\n1,,u\n",
                ": the table has missing values: b (1 row); remove those rows, or impute them with "
                "dataset.missing=mean or dataset.missing=median (settings are those of the model, given when it is "
                "fitted)",
            ),
            ("a,b,c\n1,2,\n", ": the table has missing values: c (1 row)"),
            ("a,b,c\n1,x,u\n", ": column b holds str, e.g. 'x' in row 0, expected numbers"),
            ("a,b,c\n1,inf,u\n", ": the table has infinite values: b; remove those rows"),
        )
    ),
    ("table", lambda: Path("new.csv").write_bytes(b"a,b,c\n1,2,\x81\n"), "new.csv", "dataset.encoding such as latin-1"),
    ("table", rows("a,b,c\n1,1e300,u\n"), "new.csv", "runner.input: features: NaN or infinite for 1 of 1 points"),
    *(
        (
            "images",
            array(np.full((2, 6, 8), value)),
            "new.npy",
            f"new.npy: expected pixels from 0 to 1, or bytes{found}",
        )
        for value, found in ((200, " (uint8), found 200 to 200"), (-5.0, " (uint8), found -5 to -5"))
    ),
    ("digits", lambda: np.savez("new.npz", x=ONES), "new.npz", "new.npz has no array named 'X'; did you mean 'x'"),
    ("images", array(np.zeros((2, 6, 8, 3))), "new.npy", "new.npy: expected points of shape (6, 8), found (6, 8, 3)"),
    ("images", lambda: draw(Path("new.png"), np.zeros((5, 7), np.uint8)), "new.png", "new.png has 5 x 7 pixels, the"),
    ("images", claiming(60_000, 60_000, "new.png"), "new.png", "new.png is not a readable picture (Image size (36000"),
    ("images", lambda: Path("new.png").write_bytes(b""), "new.png", "new.png is not a readable picture"),
    ("images", lambda: Path("new").mkdir(), "new", "new: expected a folder with picture"),
]

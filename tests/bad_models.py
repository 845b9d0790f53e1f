"""Damaged folders of models and a part of the line that answers each, for tests/test_bad_input.py."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

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
NO_MODEL = "model.pkl is no model of runner=fit: expected a pipeline that ends in a learner, found"

#: What damages the folder of a fitted model, and a part of the line.
FOLDERS: list[tuple[Callable[[Path], object], str]] = [
    (cut("run.json", 100), "run.json is damaged ("),
    (cut("run.json", 0), "run.json is damaged (Expecting value"),
    (text("run.json", "{'a"), "run.json is damaged (Expecting property name"),
    (text("run.json", b"\xff\xfe\0"), "run.json is damaged ("),
    (
        text("run.json", "[1, 2]"),
        "run.json is not the record of a run: expected a name and others of name, config_hash",
    ),
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
    (without("config.yaml"), "config.yaml cannot be read ([Errno 2] No such file or directory"),
    (text("config.yaml", "seed: 0"), "config.yaml has no section dataset with a name"),
    (text("config.yaml", ""), "config.yaml has no section dataset with a name"),
    (text("config.yaml", "dataset: digits"), "config.yaml has no section dataset with a name"),
    (text("config.yaml", "dataset: {n_train: 3}"), "config.yaml has no section dataset with a name"),
    (
        text("config.yaml", "- a\n- b"),
        "config.yaml is not the configuration of a run: expected sections, found ['a', 'b']",
    ),
    (text("config.yaml", "a: [1\n b: {"), "config.yaml cannot be read (while parsing"),
    (text("config.yaml", b"\xff\xfe\0"), "config.yaml cannot be read ("),
    (
        text("config.yaml", "dataset: {name: digitz}"),
        "config.yaml: dataset=digitz: no such dataset; did you mean 'digits'?",
    ),
    (text("config.yaml", "dataset: {name: digits, zz: 3}"), "config.yaml: dataset=digits has no parameter 'zz'"),
    (text("config.yaml", "dataset: {name: '${oc.env:HOME}'}"), "config.yaml: dataset=${oc.env:HOME}: no such dataset"),
    (text("config.yaml", "dataset: {name: table}"), "run.json another data set: it lacks features, targets, fill"),
    (without("model.pkl"), "expected a run folder with a model.pkl at"),
    (text("model.pkl", b""), "model.pkl cannot be loaded (Ran out of input)"),
    (text("model.pkl", b"no pickle"), "model.pkl cannot be loaded ("),
    (cut("model.pkl", 1000), "model.pkl cannot be loaded ("),
    (text("model.pkl", pickle.dumps({"a": 1})), f"{NO_MODEL} dict"),
    (text("model.pkl", pickle.dumps(LinearRegression())), f"{NO_MODEL} LinearRegression"),
    (text("model.pkl", pickle.dumps(Pipeline([("a", StandardScaler())]))), f"{NO_MODEL} Pipeline"),
]

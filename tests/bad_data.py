"""Data of a user and a part of the line that answers each, for tests/test_bad_input.py."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
from bad_command_lines import TABLE
from samples import draw, draw_classes, npy_shards

N = 40
X, Y = np.random.default_rng(0).normal(size=(N, 3)), np.arange(N) % 2
VECTORS = ("dataset=arrays", "dataset.path=mine.npz", "group=identity")
SHARDS = ("dataset=shards", "dataset.path=parts/X", "dataset.y_path=parts/y", "group=identity")
PARTS = ("dataset=shards", "dataset.path=parts", "dataset.target=y", "group=identity")
PICTURES = ("dataset=images", "dataset.path=zoo", "group=identity")


def arrays(**values: object) -> Callable[[], None]:
    """Writes ``mine.npz``."""
    return lambda: np.savez("mine.npz", **({"X": X, "y": Y} | values))


def table(**columns: object) -> Callable[[], None]:
    """Writes ``mine.parquet``, and as CSV ``mine.csv``."""

    def write() -> None:
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y} | columns)
        frame.to_parquet("mine.parquet")
        frame.to_csv("mine.csv", index=False)

    return write


def csv(text: str) -> Callable[[], None]:
    return lambda: Path("mine.csv").write_text(text)  # type: ignore[return-value,func-returns-value]


def pictures(*more: Callable[[], None]) -> Callable[[], None]:
    def write() -> None:
        draw_classes(Path("zoo"))
        for each in more:
            each()

    return write


def link(path: str, to: str) -> Callable[[], None]:
    return lambda: Path(path).symlink_to(to)


def claiming(width: int, height: int, path: str = "zoo/cat/bomb.png") -> Callable[[], None]:
    """Writes a PNG of some bytes that claims a size."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    content = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    return lambda: Path(path).write_bytes(content)  # type: ignore[return-value,func-returns-value]


def npy_parts(X: np.ndarray = X, y: np.ndarray = Y, then: Callable[[], object] = lambda: None) -> Callable[[], None]:
    """Writes four parts to ``parts/X`` and ``parts/y``, and what comes then."""

    def write() -> None:
        npy_shards(Path("parts"), X, y, (10, 10, 10, 10))
        then()

    return write


def parquet_parts(**columns: object) -> Callable[[], None]:
    """Writes two parts to ``parts``; the given columns are those of the second."""

    def write() -> None:
        Path("parts").mkdir()
        frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": Y})
        frame.to_parquet("parts/p0.parquet")
        frame.assign(**columns).drop(columns=[name for name, value in columns.items() if value is None]).to_parquet(
            "parts/p1.parquet"
        )

    return write


def holes(at: object, value: float) -> np.ndarray:
    changed = X.copy()
    changed[at] = value
    return changed


def csv_table(*more: str) -> tuple[str, ...]:
    return (*TABLE, "dataset.path=mine.csv", *more)


def parquet(*more: str) -> tuple[str, ...]:
    return (*TABLE, "dataset.path=mine.parquet", *more)


#: The arrays of ``cifar10.npz``.
CIFAR10 = {f"x_{part}": np.zeros((20, 32, 32, 3), np.uint8) for part in ("train", "test")}
CIFAR10 |= {f"y_{part}": np.arange(20) % 10 for part in ("train", "test")}

LISTS, DICTS = [[1, 2]] * N, [{"k": 1}] * N

#: What writes the files, what is on the command line, and a part of the line.
DATA: list[tuple[Callable[[], object], tuple[str, ...], str]] = [
    # ---- arrays
    (
        arrays(X=np.ones((N, 4, 4))),
        ("dataset=arrays", "dataset.path=mine.npz", "dataset.x_key=x"),
        "no array named 'x'; did",
    ),
    (
        lambda: (arrays()(), Path("y.npy").write_bytes(b"\x93NUMPY")),
        (*VECTORS, "dataset.y_path=y.npy"),
        "dataset.y_path: /",
    ),
    (
        lambda: (arrays()(), np.savez("y.npz", t=Y)),
        (*VECTORS, "dataset.y_path=y.npz"),
        "dataset.y_path: y.npz has no array named 'y'. It has t; set dataset.x_key=NAME and dataset.y_key=NAME",
    ),
    (
        arrays(),
        (*VECTORS, "dataset.y_key=Y"),
        "no array named 'Y'; did you mean 'y'? It has X, y; set dataset.x_key=NAME",
    ),
    (arrays(), (*VECTORS, "dataset.x_test_key=T", "dataset.y_test_key=y"), "no array named 'T'."),
    (arrays(T=X), (*VECTORS, "dataset.x_test_key=T", "dataset.y_test_key=t"), "no array named 't'"),
    (
        lambda: np.savez("mine.npz"),
        VECTORS,
        "no array named 'X'. It has none; set dataset.x_key=NAME and dataset.y_key=NAME",
    ),
    (arrays(X=np.array(3.0)), VECTORS, "X must have shape (n, ...) with at least 2 axes, found ()"),
    (
        arrays(X=holes(slice(7, 9), np.nan)),
        VECTORS,
        "X has 6 values that are NaN or infinite, the first at index (7, 0)",
    ),
    (
        lambda: Path("mine.npz").write_bytes(b"PK\x03\x04broken"),
        VECTORS,
        "mine.npz is not a readable .npz or .npy file",
    ),
    (arrays(y=np.ones(3)), VECTORS, "dataset=arrays, mine.npz: X has 40 points, y has 3 targets; they must agree"),
    (arrays(y=np.ones((N, 2, 2))), VECTORS, "mine.npz: y must have shape (n,) or (n, k), found (40, 2, 2)"),
    (arrays(y=np.ones((N, 0))), VECTORS, "mine.npz: y must have shape (n,) or (n, k), found (40, 0)"),
    (arrays(y=np.array(1.0)), VECTORS, "mine.npz: y must have shape (n,) or (n, k), found ()"),
    (arrays(X=np.ones(N)), VECTORS, "mine.npz: X must have shape (n, ...) with at least 2 axes, found (40,)"),
    (arrays(X=np.ones((0, 3)), y=np.ones(0)), VECTORS, "mine.npz: X is empty, its shape is (0, 3)"),
    (arrays(X=np.ones((N, 0))), VECTORS, "mine.npz: X is empty, its shape is (40, 0)"),
    (arrays(X=np.ones((1, 3)), y=np.ones(1)), VECTORS, "mine.npz has 1 points, too few to split; expected at least 2"),
    (arrays(X=np.full((N, 3), "a")), VECTORS, "x_key: 'X' must hold real numbers, found dtype <U1"),
    (arrays(X=np.ones((N, 3), complex)), VECTORS, "must hold real numbers, found dtype complex128"),
    (arrays(y=np.ones(N, complex)), VECTORS, "y must hold real numbers or labels, found dtype complex128"),
    (
        arrays(X=holes((3, 1), np.nan)),
        VECTORS,
        "mine.npz: X has 1 values that are NaN or infinite, the first at index (3, 1)",
    ),
    (
        arrays(X=holes((3, 1), np.inf)),
        VECTORS,
        "mine.npz: X has 1 values that are NaN or infinite, the first at index (3, 1)",
    ),
    (arrays(y=np.where(Y, 0.5, np.inf)), VECTORS, "mine.npz: y has 20 values that are NaN or infinite, the first at"),
    (
        arrays(Xt=holes((0, 0), np.inf), yt=Y),
        (*VECTORS, "dataset.x_test_key=Xt", "dataset.y_test_key=yt"),
        "arrays (file mine.npz), test part: X has 1 values that are NaN or infinite, the first at index (0, 0)",
    ),
    (
        arrays(Xt=np.ones((5, 4)), yt=np.arange(5)),
        (*VECTORS, "dataset.x_test_key=Xt", "dataset.y_test_key=yt"),
        "training points have shape (3,), test points (4,); they must agree",
    ),
    (
        arrays(),
        (*VECTORS, "dataset.x_test_key=Xt"),
        "x_test_key: expected both or neither of x_test_key and y_test_key",
    ),
    (arrays(y=np.ones(N)), VECTORS, "the training part has one class only"),
    (
        arrays(y=np.full(N, 7)),
        VECTORS,
        "the training part has one class only, 7, in 30 points; more points, or another",
    ),
    *(
        (arrays(y=Y.astype(dtype)), VECTORS, f"y must hold real numbers or labels, found dtype {np.dtype(dtype)}")
        for dtype in ("S1", "M8[D]", "m8[s]", "i4,f8")
    ),
    *(
        (arrays(X=X.astype(dtype)), VECTORS, f"must hold real numbers, found dtype {np.dtype(dtype)}")
        for dtype in ("m8[s]", "S8", "i4,f8")
    ),
    (
        arrays(y=X, Xt=X[:5], yt=X[:5, :2]),
        (*VECTORS, "dataset.x_test_key=Xt", "dataset.y_test_key=yt"),
        "training targets have shape (40, 3), test targets (5, 2); they must agree",
    ),
    (
        arrays(y=X, Xt=X[:5], yt=X[:5, 0]),
        (*VECTORS, "dataset.x_test_key=Xt", "dataset.y_test_key=yt"),
        "training targets have shape (40, 3), test targets (5,); they must agree",
    ),
    (
        arrays(Xt=X[:5], yt=np.array(list("abcde"))),
        (*VECTORS, "dataset.x_test_key=Xt", "dataset.y_test_key=yt"),
        "training targets have dtype int64, test targets <U1: expected numbers in both parts, or strings",
    ),
    (
        lambda: Path("mine.npz").write_text("a,b"),
        VECTORS,
        "mine.npz is not a readable .npz or .npy file without objects: it is",
    ),
    (
        arrays(y=Y + 0.5),
        (*VECTORS, "dataset.task=classification"),
        "class labels must be integers or strings, found fractions",
    ),
    (
        arrays(y=np.full(N, "owl")),
        (*VECTORS, "dataset.task=regression"),
        "regression needs numbers as targets, found dtype <U3",
    ),
    (
        arrays(y=np.ones((N, 2))),
        (*VECTORS, "dataset.task=classification"),
        "class labels must have shape (n,), found (40, 2); set dataset.task=regression",
    ),
    (
        arrays(y=np.eye(2)[np.arange(N) % 2]),
        VECTORS,
        "give the class of each one-hot row, y.argmax(axis=1), or set dataset.task=regression",
    ),
    (
        arrays(),
        (*VECTORS, "dataset.n_train=31"),
        "dataset.n_train: expected at most 30, the number of points in dataset=arrays",
    ),
    (lambda: Path("mine.npz").write_bytes(b"no archive"), VECTORS, "mine.npz is not a readable .npz or .npy file"),
    (lambda: Path("mine.npz").write_bytes(b""), VECTORS, "mine.npz is not a readable .npz or .npy file"),
    (arrays(X=np.array([{"a": 1}] * N)), VECTORS, "mine.npz is not a readable .npz or .npy file without objects"),
    (
        arrays(X=np.ones((N, 2)), y=np.array(["u", "v"] * (N // 2), dtype=object)),
        VECTORS,
        "without objects: an array in it holds Python objects; save texts by astype(str) and numbers by astype(float)",
    ),
    (
        lambda: np.save("X.npy", X),
        ("dataset=arrays", "dataset.path=X.npy"),
        "dataset.y_path: expected an .npy file with the targets",
    ),
    (
        lambda: np.save("X.npy", X),
        ("dataset=arrays", "dataset.path=X.npy", "dataset.y_path=gone.npy"),
        "dataset.y_path: expected a file at",
    ),
    *(
        (
            lambda labels=labels: np.savez("cifar10.npz", **(CIFAR10 | {"y_train": labels})),
            ("dataset=cifar10", "dataset.root=."),
            "cifar10.npz, y_train: expected classes from 0 to 9, found others",
        )
        for labels in (np.arange(20), np.arange(20) / 4, np.full(20, np.nan), np.full(20, "cat"))
    ),
    # ---- tables
    (
        table(c=LISTS),
        parquet(),
        "dataset.path: mine.parquet: column c holds object, e.g. array([1, 2]) in row 0, expected numbers",
    ),
    (
        table(c=DICTS),
        parquet(),
        "dataset.path: mine.parquet: column c holds object, e.g. {'k': 1} in row 0, expected numbers",
    ),
    (
        table(c=LISTS),
        parquet("dataset.categories=onehot"),
        "mine.parquet: column c holds object, e.g. array([1, 2]) in row 0, expected numbers",
    ),
    (
        table(c=["red", "blue"] * 20),
        csv_table(),
        "in place of dates), or encode columns of strings with dataset.categories=onehot",
    ),
    (
        table(),
        csv_table("dataset.categories=ordinal"),
        "dataset.categories: expected one of 'refuse', 'onehot' or a list, each item a string",
    ),
    (table(), csv_table("dataset.group_column=who"), "has no column who. It has a, b, y; set group_column"),
    (
        table(),
        csv_table("dataset.group_column=y"),
        "dataset.group_column: expected another column than the target and the weight, found 'y'",
    ),
    (table(who="p"), csv_table("dataset.group_column=who"), "all 40 points are of one group: expected at least 2"),
    (table(who=["p", None] * 20), csv_table("dataset.group_column=who"), "missing values: who (20 rows)"),
    (
        arrays(split=["train", "valid"] * 20),
        VECTORS,
        "dataset.split_key: expected 'train' or 'test', or 0 for",
    ),
    (
        arrays(groups=Y, split=["train", "train", "test", "test"] * 10),
        VECTORS,
        "dataset.group_key: expected all points of a group in one part, found 2 groups",
    ),
    (table(c=[b"x"] * N), parquet(), "dataset.path: mine.parquet: column c holds object, e.g. b'x' in row 0"),
    (
        table(y=LISTS),
        parquet(),
        "mine.parquet: column y holds array([1, 2]), expected one number or string in each row",
    ),
    (
        table(y=DICTS),
        parquet(),
        "mine.parquet: column y holds {'k': 1}, expected one number or string in each row as target",
    ),
    (table(w=LISTS), parquet("dataset.weight=w"), "mine.parquet: column w holds object, e.g. array([1, 2]) in row 0"),
    (table(c=[["x" * 999]] * N), parquet(), "mine.parquet: column c holds object, e.g. array(['xxxx"),
    (
        table(w=0.0),
        csv_table("dataset.weight=w"),
        "expected some sample weights above 0 in the training part, all 30 are 0",
    ),
    (table(w=-1.0), csv_table("dataset.weight=w"), "column w (weight) expected numbers >= 0"),
    (
        table(w=np.inf),
        csv_table("dataset.weight=w"),
        "dataset.path: mine.csv: the table has infinite values: w; remove those rows",
    ),
    (table(b=np.inf), csv_table(), "dataset.path: mine.csv: the table has infinite values: b; remove those rows"),
    (table(b=np.inf), csv_table("dataset.missing=mean"), "dataset.path: mine.csv: the table has infinite values: b"),
    (table(y=np.inf), csv_table(), "dataset.path: mine.csv: the table has infinite values: y"),
    (table(y=["owl", None] * 20), csv_table(), "missing values: y (20 rows); targets are not imputed"),
    (
        table(b=[1.0, None] * 20),
        csv_table(),
        "missing values: b (20 rows); remove those rows, or impute them with dataset.missing=",
    ),
    (
        table(w=[1.0, None] * 20),
        csv_table("dataset.weight=w"),
        "missing values: w (20 rows); weights",
    ),
    (table(b=["two"] + ["2"] * 39), csv_table(), "column b holds str, e.g. 'two' in row 0, expected numbers"),
    (table(), csv_table("dataset.target=kind"), "has no column kind. It has a, b, y; set target"),
    (table(), csv_table("dataset.target=''"), "has no column . It has a, b, y; set target"),
    (table(), csv_table("dataset.features=[a,depth,age]"), "has no column depth, age. It has a, b, y; set features"),
    (table(), csv_table("dataset.features=[a,y]"), "features: y is a target, the weight or the group as well"),
    (table(), csv_table("dataset.weight=trust"), "has no column trust"),
    (table(), csv_table("dataset.separator=';'"), "has no column y. It has a,b,y; set target"),
    (
        csv("a,b;y\n" + "1,2;0\n3,4;1\n" * 20),
        csv_table(),
        "the table has no column y. It has a, b;y; set target, or separator if these are several",
    ),
    (
        csv("a;b;y\n" + "1,5;2;0\n3;4;1\n" * 20),
        csv_table("dataset.separator=';'"),
        "column a holds str, e.g. '1,5' in row 0, expected numbers; set dataset.decimal=comma if decimals begin with a",
    ),
    (
        csv("a,b,y\n" + "1.5,2,0\n3,4,1\n" * 20),
        csv_table("dataset.decimal=comma"),
        "set dataset.decimal=point if decimals",
    ),
    (
        lambda: Path("mine.csv").write_bytes(b"a,b,y\n1,2,\xe4\n"),
        csv_table(),
        "separator is ',', encoding is 'utf-8': set those of the file, such as dataset.encoding=latin-1",
    ),
    (table(), csv_table("dataset.encoding=latin-one"), "expected a readable CSV file (unknown encoding: latin-one)"),
    (
        table(b=["2026-01-31"] * 40),
        csv_table(),
        "leave it out with exclude, write numbers (such as days since a first day in place of dates), or encode",
    ),
    (
        table(),
        csv_table("dataset.exclude=[y]"),
        "dataset.exclude: expected columns that are not the target, the weight",
    ),
    (table(), csv_table("dataset.exclude=[d]"), "has no column d. It has a, b, y; set exclude"),
    (table(), csv_table("dataset.separator=''"), "dataset.separator: expected at least one character, found ''"),
    (
        csv("a,a,y\n" + "1,2,0\n3,4,1\n" * 20),
        csv_table(),
        "dataset.path: mine.csv: the table has several columns of one name: a",
    ),
    (
        csv("a,y,y\n" + "1,2,0\n3,4,1\n" * 20),
        csv_table(),
        "dataset.path: mine.csv: the table has several columns of one name: y",
    ),
    (
        csv(""),
        csv_table(),
        "dataset.path: mine.csv: expected a readable CSV file (No columns to parse from file)",
    ),
    (
        csv("a,y\n" + "1,1,5\n2,0,5\n" * 20),
        csv_table(),
        "mine.csv: expected a readable CSV file (its rows have more entries than the line of column names)",
    ),
    (csv('"a\nb",y\n' + "x,1\n2,0\n" * 20), csv_table(), "column a\\nb holds str, e.g. 'x' in row 0, expected numbers"),
    *(
        (table(y=values), parquet(), f"mine.parquet: column y holds {found}, expected one number or string in each row")
        for values, found in (
            ([b"x", b"y"] * 20, "b'x'"),
            (pd.date_range("2020", periods=N), "Timestamp('2020-01-01 00:00:00')"),
            (pd.to_timedelta(np.arange(N), unit="s"), "Timedelta('0 days 00:00:00')"),
            ([date(2020, 1, 1)] * N, "datetime.date(2020, 1, 1)"),
        )
    ),
    (
        lambda: (table()(), Path("t.csv").write_text("a,b,y\n1,0,cat\n2,1,dog\n")),
        csv_table("dataset.test_path=t.csv"),
        "training targets have dtype int64, test targets <U3: expected numbers in both parts, or strings",
    ),
    (
        lambda: (table(c=["u", "v"] * 20)(), Path("t.csv").write_text("a,b,c,y\n")),
        csv_table("dataset.test_path=t.csv", "dataset.categories=onehot"),
        "dataset.test_path: t.csv: the table has no rows, expected at least one",
    ),
    (csv("y\n" + "1\n0\n" * 20), csv_table(), "mine.csv: the table has no columns besides targets, weight and group"),
    (
        lambda: Path("mine.csv").write_bytes(b"\xff\xfe\x00\xd8"),
        csv_table(),
        "mine.csv: expected a readable CSV file",
    ),
    (
        lambda: Path("mine.parquet").write_bytes(b"PAR1"),
        parquet(),
        "mine.parquet: expected a readable Parquet file",
    ),
    # ---- shards
    (npy_parts(), SHARDS[:1], "dataset.path: expected a folder or URL of .npy or .parquet parts, found none"),
    (
        npy_parts(),
        ("dataset=shards", "dataset.path=gone"),
        "dataset.path: expected parts of one kind, .npy or .parquet (.pq), in gone, found none",
    ),
    (lambda: Path("parts").mkdir(), PARTS, "expected parts of one kind, .npy or .parquet (.pq), in parts, found none"),
    (
        npy_parts(then=lambda: Path("parts/X/p4.csv").touch()),
        SHARDS,
        "expected parts of one kind, .npy or .parquet (.pq), in parts/X, found p3.npy and p4.csv",
    ),
    (
        npy_parts(then=lambda: Path("parts/X/p4.parquet").touch()),
        SHARDS,
        "expected parts of one kind, .npy or .parquet (.pq), in parts/X, found p3.npy and p4.parquet",
    ),
    (
        npy_parts(then=lambda: Path("parts/X/p4.npy").symlink_to("/gone/p4.npy")),
        SHARDS,
        "dataset.path: link p4.npy leads to /gone/p4.npy: expected a part or a folder there, found none",
    ),
    (
        npy_parts(
            then=lambda: Path("parts/y/p2.npy").rename("parts/y/p5.npy").with_name("p2.npy").symlink_to("p2.npy")
        ),
        SHARDS,
        "dataset.y_path: link p2.npy leads to p2.npy: expected a part or a folder there, found none",
    ),
    (
        npy_parts(then=lambda: Path("parts/X/more").symlink_to("../../gone")),
        SHARDS,
        "dataset.path: link more leads to ../../gone: expected a part or a folder there, found none",
    ),
    (
        npy_parts(then=lambda: Path("parts/X/more").symlink_to("..")),
        (*SHARDS, "dataset.path=parts"),
        "dataset.path: link X/more leads to ..: expected a part or another folder, found one that the link is in",
    ),
    (
        npy_parts(),
        ("dataset=shards", "dataset.path=nope://here/X"),
        "dataset.path: nope://here/X cannot be read (Unrecognized filesystem type in URI: nope://here/X)",
    ),
    (
        npy_parts(),
        ("dataset=shards", "dataset.path='s3://me:***@here/X'"),
        "dataset.path: expected a URL without credentials, which are read from the environment",
    ),
    (npy_parts(), SHARDS[:2], "dataset.y_path: expected a folder with the targets of .npy parts, found none"),
    (
        npy_parts(),
        (*SHARDS, "dataset.target=y"),
        "dataset.path: target, features and shape are for Parquet, found .npy",
    ),
    (
        npy_parts(then=lambda: Path("parts/y/p2.npy").unlink()),
        SHARDS,
        "dataset.y_path: expected parts of the same names as in path, found p2.npy in one only",
    ),
    (
        npy_parts(then=lambda: np.save("parts/X/p2.npy", np.ones((10, 4)))),
        SHARDS,
        "expected parts of one form, found X float64 of shape (3,), y <i8 of shape () in p0.npy and X float64",
    ),
    (
        npy_parts(then=lambda: np.save("parts/X/p2.npy", np.ones(10))),
        SHARDS,
        "dataset.path: part p2.npy: expected an array of shape (n, ...) with at least 2 axes, found (10,)",
    ),
    (
        npy_parts(then=lambda: np.save("parts/y/p2.npy", np.ones(9, int))),
        SHARDS,
        "dataset.y_path: part p2.npy: expected a number or string, or several numbers, as target of each of 10 points",
    ),
    (
        npy_parts(then=lambda: Path("parts/X/p1.npy").write_bytes(b"no array")),
        SHARDS,
        "p1.npy is not a readable .npz or .npy file without objects: it is of another kind",
    ),
    (
        npy_parts(then=lambda: os.truncate("parts/X/p1.npy", 200)),
        SHARDS,
        "p1.npy is not a readable .npz or .npy file without objects: mmap length is greater than file size",
    ),
    (
        npy_parts(X=holes((23, 1), np.nan)),
        SHARDS,
        "dataset=shards: part p2.npy: X has 1 values that are NaN or infinite, the first at index (3, 1)",
    ),
    (
        npy_parts(y=np.where(np.arange(N) == 31, np.inf, 0.5)),
        SHARDS,
        "dataset=shards: part p3.npy: y has 1 values that are NaN or infinite, the first at index (1,)",
    ),
    (
        npy_parts(y=Y + 0.5),
        (*SHARDS, "dataset.task=classification"),
        "dataset=shards, parts/X: class labels must be integers or strings, found fractions",
    ),
    (
        npy_parts(y=np.full(N, "owl")),
        (*SHARDS, "dataset.task=regression"),
        "regression needs numbers as targets, found",
    ),
    (npy_parts(y=np.full(N, "owl")), SHARDS, "shards: the training part has one class only"),
    (npy_parts(), (*SHARDS, "dataset.n_train=31"), "dataset.n_train: expected at most 30, the number of points in"),
    (
        npy_parts(),
        (*SHARDS, "engine.stream=true", "learner=adagrad"),
        "learner=adagrad takes points in random order, a stream of dataset=shards has that of its parts",
    ),
    (parquet_parts(), PARTS[:2], "dataset.target: expected the column of Parquet parts to predict, found none"),
    (parquet_parts(), (*PARTS, "dataset.y_path=y"), "dataset.y_path: expected none for Parquet parts"),
    (
        parquet_parts(),
        (*PARTS[:2], "dataset.target=kind"),
        "dataset.target: part p0.parquet has no column kind. It has a, b, y",
    ),
    (
        parquet_parts(),
        (*PARTS, "dataset.features=[a,B]"),
        "dataset.features: part p0.parquet has no column B; did you mean 'b'? It has a, b, y",
    ),
    (
        parquet_parts(),
        (*PARTS, "dataset.features=[a,y]"),
        "dataset.features: expected at least one column that is no target, or null for all, found ['a', 'y']",
    ),
    (
        parquet_parts(),
        (*PARTS, "dataset.shape=[3]"),
        "dataset.shape: expected 2 numbers, those of part p0.parquet, found",
    ),
    (parquet_parts(y=None), PARTS, "dataset.target: part p1.parquet has no column y"),
    (
        parquet_parts(b=None),
        PARTS,
        "expected parts of one form, found a double, b double, y int64, points of 2 in p0.parquet and a double, y int",
    ),
    (parquet_parts(b="x"), PARTS, "dataset.features: part p1.parquet: column b holds"),
    (
        parquet_parts(b=[1.0, None] * 20),
        PARTS,
        "dataset.features: part p1.parquet: column b has ",
    ),
    (
        parquet_parts(b=holes((3, 1), np.inf)[:, 1]),
        PARTS,
        "dataset=shards: part p1.parquet: X has 1 values that are NaN or infinite, the first at index (3, 1)",
    ),
    (
        lambda: (parquet_parts()(), Path("parts/p1.parquet").write_bytes(b"PAR1 no table PAR1")),
        PARTS,
        "dataset.path: part p1.parquet cannot be read (",
    ),
    # ---- pictures
    (
        pictures(claiming(60_000, 60_000)),
        PICTURES,
        "bomb.png is not a readable picture (Image size (3600000000 pixels) exceeds",
    ),
    (pictures(claiming(10, 10)), PICTURES, "bomb.png is not a readable picture"),
    (
        pictures(lambda: draw(Path("zoo/cat/odd.png"), np.zeros((5, 7), np.uint8))),
        PICTURES,
        "odd.png has 5 x 7 pixels, 1.png has",
    ),
    (pictures(lambda: Path("zoo/owl/x.png").write_bytes(b"no picture")), PICTURES, "x.png is not a readable picture"),
    (pictures(lambda: Path("zoo/owl/x.jpg").write_bytes(b"")), PICTURES, "x.jpg is not a readable picture"),
    *(
        (pictures(link("zoo/" + name, to)), PICTURES, f"/zoo/{name}, found a link to {to}, which does not exist or is")
        for name, to in (("ape", "gone"), ("ape", "ape"), ("train", "/gone"), ("cat/x.png", "x.png"), ("cat/y", "gone"))
    ),
    (pictures(link("zoo/ape", "bee"), link("zoo/bee", "ape")), PICTURES, "/zoo/ape, found a link to bee, which does"),
    (link("zoo", "gone"), PICTURES, "dataset.path: expected a folder at "),
    (
        link("zoo", "zoo"),
        PICTURES,
        "dataset.path: expected a path that can be read (Too many levels of symbolic links)",
    ),
    (lambda: Path("zoo").mkdir(), PICTURES, "dataset.path: expected a folder for each class with .png or .jpg files"),
    (lambda: Path("zoo/cat/young").mkdir(parents=True), PICTURES, "zoo, found none directly in cat"),
    (lambda: draw_classes(Path("zoo/train"), 2), PICTURES, "has a folder train; expected both of train, test"),
]

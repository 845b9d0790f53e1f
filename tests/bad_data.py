"""Data of a user and a part of the line that answers each, for tests/test_bad_input.py."""

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bad_command_lines import TABLE
from samples import draw, draw_classes, npy_shards

Case = tuple[Callable[[], object], tuple[str, ...], str]
N = 40
X, Y = np.random.default_rng(0).normal(size=(N, 3)), np.arange(N) % 2
VECTORS = ("dataset=arrays", "dataset.path=mine.npz", "group=identity")
SHARDS = ("dataset=shards", "dataset.path=parts/X", "dataset.y_path=parts/y", "group=identity")
PARTS = ("dataset=shards", "dataset.path=parts", "dataset.target=y", "group=identity")
CSV = (*TABLE, "dataset.path=mine.csv")
PARQUET = (*TABLE, "dataset.path=mine.parquet")
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


def tested(content: str, **columns: object) -> Callable[[], object]:
    """Writes ``mine.csv``, and a test part to ``t.csv``."""
    return lambda: (table(**columns)(), Path("t.csv").write_text(content))


def write(path: str, content: bytes) -> Callable[[], object]:
    return lambda: Path(path).write_bytes(content)


def save(path: str, values: np.ndarray) -> Callable[[], None]:
    return lambda: np.save(path, values)


def csv(names: str, *rows: str) -> Callable[[], object]:
    """Writes ``mine.csv``, with these rows twenty times."""
    return write("mine.csv", "\n".join([names, *rows * 20, ""]).encode())


def pictures(*more: Callable[[], object]) -> Callable[[], None]:
    def write() -> None:
        draw_classes(Path("zoo"))
        for each in more:
            each()

    return write


def link(path: str, to: str) -> Callable[[], None]:
    return lambda: Path(path).symlink_to(to)


def claiming(width: int, height: int, path: str = "zoo/cat/bomb.png") -> Callable[[], object]:
    """Writes a PNG of some bytes that claims a size."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    content = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    return write(path, content)


def npy_parts(*more: Callable[[], object], X: np.ndarray = X, y: np.ndarray = Y) -> Callable[[], None]:
    """Writes four parts to ``parts/X`` and ``parts/y``, and more."""

    def write() -> None:
        npy_shards(Path("parts"), X, y, (10, 10, 10, 10))
        for each in more:
            each()

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


def cases(settings: tuple[str, ...], *given: tuple[Any, ...]) -> Iterator[Case]:
    """What writes the files, what else is on the command line, and a part of the line -> cases."""
    return ((write, (*settings, *more), part) for write, *more, part in given)


#: The arrays of ``cifar10.npz``.
CIFAR10 = {f"x_{part}": np.zeros((20, 32, 32, 3), np.uint8) for part in ("train", "test")}
CIFAR10 |= {f"y_{part}": np.arange(20) % 10 for part in ("train", "test")}

LISTS, DICTS = [[1, 2]] * N, [{"k": 1}] * N
NOT_FINITE = "values that are NaN or infinite, the first at index"
NOT_READABLE = "mine.npz is not a readable .npz, .npy or .mat file"
NO_NUMBERS = "must hold real numbers, found dtype"
ONE_VALUE = "expected one number or string in each row"
TEST = ("dataset.x_test_key=Xt", "dataset.y_test_key=yt")
TESTED = ("dataset.test_path=t.csv",)
STRICT = "dataset.missing=refuse"
ONE_KIND = "expected parts of one kind, .npy or .parquet (.pq), in"

#: What writes the files, what is on the command line, and a part of the line.
DATA: list[Case] = [
    # ---- arrays
    *cases(
        ("dataset=arrays",),
        (arrays(X=np.ones((N, 4, 4))), "dataset.path=mine.npz", "dataset.x_key=x", "no array named 'x'; did"),
        (save("X.npy", X), "dataset.path=X.npy", "dataset.y_path: expected an .npy file with the targets, found none"),
        (save("X.npy", X), "dataset.path=X.npy", "dataset.y_path=gone.npy", "dataset.y_path: expected a file at"),
    ),
    *cases(
        ("dataset=cifar10", "dataset.root=."),
        *(
            (lambda labels=labels: np.savez("cifar10.npz", **(CIFAR10 | {"y_train": labels})), "cifar10.npz, y_train:")
            for labels in (np.arange(20), np.arange(20) / 4, np.full(20, np.nan), np.full(20, "cat"))
        ),
    ),
    *cases(
        VECTORS,
        (lambda: (arrays()(), Path("y.npy").write_bytes(b"\x93NUMPY")), "dataset.y_path=y.npy", "dataset.y_path: /"),
        (lambda: (arrays()(), np.savez("y.npz", t=Y)), "dataset.y_path=y.npz", "dataset.y_path: y.npz has no array"),
        (arrays(), "dataset.y_key=Y", "no array named 'Y'; did you mean 'y'? It has X, y; set dataset.x_key=NAME"),
        (arrays(), "dataset.x_test_key=T", "dataset.y_test_key=y", "no array named 'T'."),
        (arrays(T=X), "dataset.x_test_key=T", "dataset.y_test_key=t", "no array named 't'"),
        (lambda: np.savez("mine.npz"), "no array named 'X'. It has none; set dataset.x_key=NAME and dataset.y_key="),
        (arrays(X=np.array(3.0)), "X must have shape (n, ...) with at least 2 axes, found ()"),
        (arrays(X=np.ones(N)), "mine.npz: X must have shape (n, ...) with at least 2 axes, found (40,)"),
        (arrays(y=np.ones(3)), "dataset=arrays, mine.npz: X has 40 points, y has 3 targets; they must agree"),
        *(
            (arrays(y=np.ones(shape)), f"mine.npz: y must have shape (n,) or (n, k), found {shape}")
            for shape in ((N, 2, 2), (N, 0), ())
        ),
        (arrays(X=np.ones((0, 3)), y=np.ones(0)), "mine.npz: X is empty, its shape is (0, 3)"),
        (arrays(X=np.ones((N, 0))), "mine.npz: X is empty, its shape is (40, 0)"),
        (arrays(X=np.ones((1, 3)), y=np.ones(1)), "mine.npz has 1 points, too few to split; expected at least 2"),
        (arrays(X=np.full((N, 3), "a")), f"x_key: 'X' {NO_NUMBERS} <U1"),
        *(
            (arrays(X=X.astype(dtype)), f"{NO_NUMBERS} {np.dtype(dtype)}")
            for dtype in (complex, "m8[s]", "S8", "i4,f8")
        ),
        *(
            (arrays(y=Y.astype(dtype)), f"y must hold real numbers or labels, found dtype {np.dtype(dtype)}")
            for dtype in (complex, "S1", "M8[D]", "m8[s]", "i4,f8")
        ),
        (arrays(X=holes(slice(7, 9), np.nan)), f"mine.npz: X has 6 {NOT_FINITE} (7, 0)"),
        (arrays(X=holes((3, 1), np.inf)), f"mine.npz: X has 1 {NOT_FINITE} (3, 1)"),
        (arrays(y=np.where(Y, 0.5, np.inf)), f"mine.npz: y has 20 {NOT_FINITE}"),
        (arrays(Xt=holes((0, 0), np.inf), yt=Y), *TEST, f"arrays (file mine.npz), test part: X has 1 {NOT_FINITE} (0"),
        (arrays(Xt=np.ones((5, 4)), yt=np.arange(5)), *TEST, "training points have shape (3,), test points (4,); they"),
        *(
            (arrays(y=X, Xt=X[:5], yt=yt), *TEST, f"training targets have shape (3,), test targets {yt.shape[1:]}; ")
            for yt in (X[:5, :2], X[:5, 0])
        ),
        (arrays(Xt=X[:5], yt=np.array(list("abcde"))), *TEST, "training targets have dtype int64, test targets <U1:"),
        (arrays(), TEST[0], "x_test_key: expected both or neither of x_test_key and y_test_key"),
        (arrays(y=np.full(N, 7)), "the training part has one class only, 7, in 30 points; more points, or another"),
        (arrays(y=Y + 0.5), "dataset.task=classification", "class labels must be integers or strings, found fractions"),
        (arrays(y=np.full(N, "owl")), "dataset.task=regression", "regression needs numbers as targets, found dtype <U"),
        (arrays(y=np.ones((N, 2))), "dataset.task=classification", "class labels must have shape (n,), found (40, 2)"),
        (arrays(y=np.eye(2)[np.arange(N) % 2]), "give the class of each one-hot row, y.argmax(axis=1), or set"),
        (arrays(), "dataset.n_train=31", "dataset.n_train: expected at most 30, the number of points in dataset=a"),
        *((write("mine.npz", content), NOT_READABLE) for content in (b"PK\x03\x04broken", b"no archive", b"")),
        (write("mine.npz", b"a,b"), f"{NOT_READABLE} without objects: it is"),
        (arrays(X=np.array([{"a": 1}] * N)), f"{NOT_READABLE} without objects"),
        (arrays(y=Y.astype(str).astype(object)), "an array in it holds Python objects; save texts by astype(str), num"),
        (
            arrays(split=["train", "rest"] * 20),
            "dataset.path: array 'split': expected the parts train and test, perhaps",
        ),
        (arrays(split=["test"] * N), "array 'split': expected the parts train and test, perhaps val, found test"),
        (arrays(split=[0, 1]), "expected 'split' to have an integer or a string for each of the 40 points"),
        (arrays(n_train=N), "expected 'n_train' to be an integer from 1 to 39, found 40"),
        (arrays(n_train=[3, 4]), "expected 'n_train' to be an integer from 1 to 39"),
        (arrays(groups=X[:, 0]), "expected 'groups' to have an integer or a string"),
        (arrays(groups=Y, split=["train", "train", "test", "test"] * 10), "dataset.path: array 'groups': expected all"),
    ),
    # ---- tables
    *cases(
        PARQUET,
        *(
            (
                table(c=values),
                "dataset.features=[a,c]",
                f"dataset.features: column c holds {found}, expected numbers or",
            )
            for values, found in (
                (LISTS, "object, e.g. array([1, 2])"),
                (DICTS, "object, e.g. {'k': 1}"),
                ([b"x"] * N, "object, e.g. b'x'"),
                (pd.date_range("2020", periods=N), "datetime64[us], e.g. Timestamp('2020-01-01 00:00:00')"),
            )
        ),
        (table(a=LISTS, b=DICTS), "expected a column to learn from, found none: left out: a (object, e.g. array([1"),
        (table(w=LISTS), "dataset.weight=w", "mine.parquet: column w holds object, e.g. array([1, 2]) in row 0"),
        (table(c=[["x" * 999]] * N), "dataset.features=[c]", "column c holds object, e.g. array(['xxxx"),
        *(
            (table(y=values), f"mine.parquet: column y holds {found}, {ONE_VALUE}")
            for values, found in (
                (LISTS, "array([1, 2])"),
                (DICTS, "{'k': 1}"),
                ([b"x", b"y"] * 20, "b'x'"),
                (pd.date_range("2020", periods=N), "Timestamp('2020-01-01 00:00:00')"),
                (pd.to_timedelta(np.arange(N), unit="s"), "Timedelta('0 days 00:00:00')"),
                ([date(2020, 1, 1)] * N, "datetime.date(2020, 1, 1)"),
            )
        ),
        (write("mine.parquet", b"PAR1"), "mine.parquet: expected a readable Parquet file"),
    ),
    *cases(
        CSV,
        (table(), "dataset.categories=ordinal", "dataset.categories: expected 'onehot' or a list, ea"),
        (table(), "dataset.group_column=who", "has no column who. It has a, b, y; set dataset.group_column"),
        (table(), "dataset.group_column=y", "dataset.group_column: expected another column than the target and the w"),
        (table(who=Y), "dataset.group_column=wo", "has no column wo; did you mean 'who'"),
        (table(who=Y), "dataset.group_column=who", "dataset.features=[a,who]", "features: who is a target, the weight"),
        (table(who=Y), "dataset.group_column=who", "dataset.test_path=mine.csv", "group_column: expected all points"),
        (table(who="p"), "dataset.group_column=who", "all 40 points are of one group: expected at least 2"),
        (table(who=["p", None] * 20), "dataset.group_column=who", "missing values: who (20 rows)"),
        (table(w=0.0), "dataset.weight=w", "expected some sample weights above 0 in the training part, all 30 are 0"),
        (table(w="a"), "dataset.weight=w", "column w holds str, e.g. 'a' in row 0, expected numbers; weights are"),
        (table(w=-1.0), "dataset.weight=w", "column w (weight) expected numbers >= 0"),
        (table(w=np.inf), "dataset.weight=w", "path: mine.csv: the table has infinite values: w; remove those rows"),
        (table(b=np.inf), "dataset.path: mine.csv: the table has infinite values: b; remove those rows"),
        (table(b=np.inf), "dataset.missing=mean", "dataset.path: mine.csv: the table has infinite values: b"),
        (table(y=np.inf), "dataset.path: mine.csv: the table has infinite values: y"),
        (table(y=["owl", None] * 20), STRICT, "missing values: y (20 rows); targets are not imputed"),
        (
            table(b=[1.0, None] * 20),
            STRICT,
            "missing values: b (20 rows); remove those rows, or impute them with datas",
        ),
        (table(y=None), "the table has no rows with a value of y"),
        (table(w=[1.0, None] * 20), "dataset.weight=w", "missing values: w (20 rows); weights"),
        (table(), "dataset.target=kind", "has no column kind. It has a, b, y; set dataset.target"),
        (table(), "dataset.target=''", "has no column . It has a, b, y; set dataset.target"),
        (table(), "dataset.features=[a,depth,age]", "has no column depth, age. It has a, b, y; set dataset.features"),
        (table(), "dataset.features=[a,y]", "features: y is a target, the weight or the group as well"),
        (table(), "dataset.weight=trust", "has no column trust"),
        (table(), "dataset.separator=';'", "has no column y. It has a,b,y; set dataset.target"),
        (csv("a,b::y", "1,2::0", "3,4::1"), "has no column y. It has a, b::y; set dataset.target, or dataset.sep"),
        (
            csv("a,b,y", "1.5,2,0", "3,4,1"),
            "dataset.decimal=comma",
            "dataset.target=[a,b]",
            "decimal=point if decimals",
        ),
        (write("mine.csv", b"a,b,y\n1,2,\x81\n"), "read with separator ',' and encoding 'cp1252': set dataset.sep"),
        (table(), "dataset.encoding=latin-one", "expected a readable CSV file (unknown encoding: latin-one)"),
        (
            table(b=[f"2026-01-{i}" for i in range(40)]),
            "dataset.features=[b]",
            "column b holds 40 different texts, e.g. '2026-01-0', expected numbers or few categories; leave",
        ),
        (table(), "dataset.exclude=[y]", "dataset.exclude: expected columns that are not the target, the weight"),
        (table(), "dataset.exclude=[a]", "dataset.features=[b]", "dataset.exclude: expected null where features names"),
        (table(), "dataset.exclude=[b]", "dataset.weight=b", "dataset.exclude: expected columns that are not the"),
        (table(), "dataset.exclude=[a,b]", "no columns besides targets, weight and group, and those left out"),
        (table(), "dataset.exclude=[d]", "has no column d. It has a, b, y; set dataset.exclude"),
        (table(), "dataset.separator=''", "dataset.separator: expected at least one character, found ''"),
        (csv("a,a,y", "1,2,0", "3,4,1"), "dataset.path: mine.csv: the table has several columns of one name: a"),
        (csv("0,0,y", "1,2,0", "3,4,1"), "several columns of one name: 0; the first line of a file names its columns"),
        (csv("a,y,y", "1,2,0", "3,4,1"), "dataset.path: mine.csv: the table has several columns of one name: y"),
        (write("mine.csv", b""), "path: mine.csv: expected a readable CSV file (No columns to parse from file)"),
        (csv("a,y", "1,1,5", "2,0,5"), "mine.csv: expected a readable CSV file (its rows have more entries than the"),
        (csv('"a\nb",z', "x,1", "2,0"), "the table has no column y. It has a\\nb, z"),
        (tested("a,b,y\n1,0,cat\n2,1,dog\n"), *TESTED, "training targets have dtype int64, test targets <U3: expected"),
        (tested("a,b,c,y\n", c=["u", "v"] * 20), *TESTED, "dataset.test_path: t.csv: the table has no rows"),
        (csv("y", "1", "0"), "mine.csv: the table has no columns besides targets, weight and group"),
        (write("mine.csv", b"\xff\xfe\x00\xd8"), "mine.csv: expected a readable CSV file"),
        (write("mine.csv", "a,b,y".encode("utf-16")), "mine.csv: the table has no rows"),
    ),
    # ---- shards
    *cases(
        ("dataset=shards",),
        (npy_parts(), "dataset.path: expected a folder or URL of .npy or .parquet parts, found none"),
        (npy_parts(), "dataset.path=gone", f"dataset.path: {ONE_KIND} gone, found none"),
        (npy_parts(), "dataset.path=nope://here/X", "path: nope://here/X cannot be read (Unrecognized filesystem type"),
        (npy_parts(), "dataset.path='s3://me:***@here/X'", "dataset.path: expected a URL without credentials, which"),
        (npy_parts(), SHARDS[1], "dataset.y_path: expected a folder with the targets of .npy parts, found none"),
        (parquet_parts(), PARTS[1], "dataset.target: expected the column of Parquet parts to predict, found none"),
        (parquet_parts(), PARTS[1], "dataset.target=kind", "target: part p0.parquet has no column kind. It has a, b"),
    ),
    *cases(
        PARTS,
        (Path("parts").mkdir, f"{ONE_KIND} parts, found none"),
        (parquet_parts(), "dataset.y_path=y", "dataset.y_path: expected none for Parquet parts"),
        (parquet_parts(), "dataset.features=[a,B]", "features: part p0.parquet has no column B; did you mean 'b'? It"),
        (parquet_parts(), "dataset.features=[a,y]", "dataset.features: expected at least one column that is no"),
        (parquet_parts(), "dataset.shape=[3]", "dataset.shape: expected 2 numbers, those of part p0.parquet, found"),
        (parquet_parts(y=None), "dataset.target: part p1.parquet has no column y"),
        (parquet_parts(b=None), "parts of one form, found a double, b double, y int64, points of 2 in p0.parquet and"),
        (parquet_parts(b="x"), "dataset.features: part p1.parquet: column b holds"),
        (parquet_parts(b=[1.0, None] * 20), "dataset.features: part p1.parquet: column b has "),
        (parquet_parts(b=holes((3, 1), np.inf)[:, 1]), f"shards: part p1.parquet: X has 1 {NOT_FINITE} (3, 1)"),
        (lambda: (parquet_parts()(), write("parts/p1.parquet", b"PAR1")()), "path: part p1.parquet cannot be read ("),
    ),
    *cases(
        SHARDS,
        (npy_parts(Path("parts/X/p4.csv").touch), f"{ONE_KIND} parts/X, found p3.npy and p4.csv"),
        (npy_parts(Path("parts/X/p4.parquet").touch), f"{ONE_KIND} parts/X, found p3.npy and p4.parquet"),
        (npy_parts(link("parts/X/p4.npy", "/gone/p4.npy")), "/X/p4.npy leads to /gone/p4.npy: expected a file or"),
        (npy_parts(Path("parts/y/p2.npy").unlink, link("parts/y/p2.npy", "p2.npy")), "dataset.y_path: link "),
        (npy_parts(link("parts/X/more", "../../gone")), "/more leads to ../../gone: expected a file"),
        (npy_parts(link("parts/X/more", "..")), "dataset.path=parts", "/X/more leads to ..: expected another"),
        (npy_parts(), "dataset.target=y", "dataset.path: dataset.target, features and shape are for Parquet"),
        (npy_parts(Path("parts/y/p2.npy").unlink), "dataset.y_path: expected parts of the same names as in data"),
        (npy_parts(save("parts/X/p2.npy", np.ones((10, 4)))), "expected parts of one form, found X float64 of shape"),
        (npy_parts(save("parts/X/p2.npy", np.ones(10))), "part p2.npy: expected an array of shape (n, ...) with at le"),
        (npy_parts(save("parts/y/p2.npy", np.ones(9, int))), "y_path: part p2.npy: expected a number or string, or"),
        (npy_parts(write("parts/X/p1.npy", b"no array")), "p1.npy is not a readable .npz, .npy or .mat file without"),
        (
            npy_parts(lambda: os.truncate("parts/X/p1.npy", 200)),
            "p1.npy is not a readable .npz, .npy or .mat file without",
        ),
        (npy_parts(X=holes((23, 1), np.nan)), f"dataset=shards: part p2.npy: X has 1 {NOT_FINITE} (3, 1)"),
        (npy_parts(y=np.where(np.arange(N) == 31, np.inf, 0.5)), f"part p3.npy: y has 1 {NOT_FINITE} (1,)"),
        (npy_parts(y=Y + 0.5), "dataset.task=classification", "dataset=shards, parts/X: class labels must be integers"),
        (npy_parts(y=np.full(N, "owl")), "dataset.task=regression", "regression needs numbers as targets, found"),
        (npy_parts(y=np.full(N, "owl")), "shards: the training part has one class only"),
        (npy_parts(), "dataset.n_train=31", "dataset.n_train: expected at most 30, the number of points in"),
        (npy_parts(), "engine.stream=true", "learner=adagrad", "learner=adagrad takes points in random order, a"),
    ),
    # ---- pictures
    *cases(
        PICTURES,
        (pictures(claiming(60_000, 60_000)), "bomb.png is not a readable picture (Image size (3600000000 pixels) exce"),
        (pictures(claiming(10, 10)), "bomb.png is not a readable picture"),
        (pictures(lambda: draw(Path("zoo/cat/odd.png"), np.zeros((5, 7), np.uint8))), "odd.png has 5 x 7 pixels"),
        (pictures(write("zoo/owl/x.png", b"no picture")), "x.png is not a readable picture"),
        (pictures(write("zoo/owl/x.jpg", b"")), "x.jpg is not a readable picture"),
        *(
            (
                pictures(link(f"zoo/{name}", to)),
                f"/zoo/{name} leads to {to}: expected a file or folder there, found none",
            )
            for name, to in zip(
                ("ape", "ape", "train", "cat/x.png", "cat/y"), ("gone", "ape", "/gone", "x.png", "gone"), strict=True
            )
        ),
        (pictures(link("zoo/ape", "bee"), link("zoo/bee", "ape")), "/zoo/ape leads to bee: expected a file or folder"),
        (link("zoo", "gone"), "dataset.path: expected a folder at "),
        (link("zoo", "zoo"), "dataset.path: expected a path that can be read (Too many levels of symbolic links)"),
        (Path("zoo").mkdir, "dataset.path: expected a folder for each class with picture"),
        (lambda: Path("zoo/cat/young").mkdir(parents=True), "zoo, found none directly in cat"),
        (
            lambda: (Path("zoo/cat").mkdir(parents=True), Path("zoo/cat/scan.dcm").write_bytes(b"DICM")),
            "zoo, found only .dcm in cat",
        ),
        (lambda: draw_classes(Path("zoo/train"), 2), "has a folder train; expected train and test"),
    ),
]

"""A user's own data in parts: more than fits on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orbit.core.errors import InputError
from orbit.core.fingerprint import Fingerprint
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, generator, part_size, spawn
from orbit.data.base import Dataset, OwnData, Points, names_of
from orbit.data.checks import Task
from orbit.data.rows import AllBut, Rows
from orbit.registry import register

if TYPE_CHECKING:  # pyarrow is imported when parts are listed
    from orbit.data.formats import Format


@register("dataset", "shards")
@dataclass(eq=False, repr=False)
class Shards(OwnData):
    """Parts in a folder or at a URL, .npy or Parquet files, of which each process of a job opens its own only.

    Rows are numbered from 0 through the parts in the order of their names. The test part are ``test_fraction`` of them,
    at most ``most_test``, drawn at random by the seed of the run; training points are the others, and the sample that
    maps of a stream are fitted to is drawn at random from those. All three depend on the names of the parts, their
    numbers of rows, and the seed; not on the number of processes, of which each has consecutive parts. The sample and
    the test part are sent to all processes, other points to none.

    Some MB of an .npy file, or a row group of a Parquet file, are read at a time, and with ``engine.stream=true`` all
    three times: targets, to find classes and bad values; everything, to find bad values, the sample and the test part;
    and everything to learn, in order.

    Parameters
    ----------
    path : str or None
        Folder or file: a path, or for Parquet a URL of a file system of pyarrow, such as ``s3://bucket/folder`` or
        ``gs://bucket/folder``, with credentials from the environment. Names that begin with a dot or an underscore are
        not read. Required.
    y_path : str or None
        For .npy parts with X, shape (n, *shape): the folder of their targets, with the same names. Required for them.
    target : str, list of str, or None
        For Parquet: column to predict, of numbers or strings; several columns make a multi-output regression. Required
        for it.
    features : list of str or None
        For Parquet: columns to learn from, of numbers or lists of numbers of equal length, side by side; None: all
        others.
    shape : list of int or None
        For Parquet: shape of a point, such as [28, 28] of 784 numbers; None: a vector.
    task : {"auto", "classification", "regression"}
        ``auto``: classification for strings, booleans and at most 100 distinct integers, else regression.
    test_fraction : float in (0, 1)
        Share of the rows in the test part.
    most_test : int >= 1
        Largest number of rows in the test part, which the first process keeps in memory.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from orbit.data import Shards
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("X", "y"):
    ...     (folder / name).mkdir()
    >>> for part in range(3):
    ...     np.save(folder / "X" / f"{part}.npy", np.random.default_rng(part).random((20, 4)))
    ...     np.save(folder / "y" / f"{part}.npy", np.arange(20) % 2)
    >>> Shards(f"{folder}/X", y_path=f"{folder}/y").load(0).describe()
    'shards: 45 train, 15 test, points of shape (4,)'
    """

    default_group = {"name": "identity"}
    in_order = True
    reading = ("features",)

    path: str | None = None
    y_path: str | None = None
    target: str | list[str] | None = None
    features: list[str] | None = None
    shape: list[PositiveInt] | None = None
    most_test: PositiveInt = 10_000

    def check(self) -> None:
        super().check()
        for key, names in (("features", self.features), ("target", names_of(self.target))):
            if names is not None and len(set(names)) < len(names):
                raise self.wrong(key, "columns named once each")
        if self.features is not None and (not self.features or {*self.features} & {*names_of(self.target)}):
            raise self.wrong("features", "at least one column that is no target, or null for all")
        if self.shape is not None and not self.shape:
            raise self.wrong("shape", "at least one number, or null for a vector")

    def check_files(self) -> None:
        from orbit.data.parts import check_enough

        check_enough(list(self._form().folder.files), "dataset.path")

    def input_parts(self) -> list[Fingerprint]:
        return [] if self.path is None else self._form().fingerprints()

    def _load(self, random_state: RandomState) -> Dataset:
        data = self._load_lazily(random_state)
        X_train, y_train = data.X_train[:], data.y_train[:]  # the latter were read with the former
        return replace(data, X_train=X_train, y_train=y_train, X_test=data.X_test[:], y_test=data.y_test[:])

    def _load_lazily(self, random_state: RandomState) -> Dataset:
        from orbit.data.parts import Parts

        form = self._form()
        parts = Parts(form)
        n = parts.shape[0]
        task: Task = parts.targets.guess_task() if self.task == "auto" else self.task
        parts.targets.check(task, f"{self.label()}, {self.path}")
        n_test = min(part_size(n, self.test_fraction), self.most_test)
        test = np.sort(generator(spawn(random_state, 1)[0]).choice(n, n_test, replace=False, shuffle=False))
        train: Any = AllBut(n, test)
        return Dataset(
            self.name,
            task,
            Rows(parts, train),  # type: ignore[arg-type]
            Rows(parts.targets, train),  # type: ignore[arg-type]
            Rows(parts, test),  # type: ignore[arg-type]
            Rows(parts.targets, test),  # type: ignore[arg-type]
            f"{len(parts.names)} {form.folder.suffix} parts of {Path(str(self.path)).name}",
            reading={"features": parts.features} | ({"targets": targets} if (targets := names_of(self.target)) else {}),
        )

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        from orbit.data.formats import Folder, NpyFormat, ParquetFormat

        folder = Folder(path, self.label())
        points: Format = (
            NpyFormat(folder, self.label(), None)
            if folder.suffix == ".npy"
            else ParquetFormat(folder, self.label(), [], form["features"], self.shape)
        )
        blocks = []
        for name in folder.files:
            header = points.header(name)
            blocks += [points.read(name, header, block)[0] for block in header.blocks]
        return Points(np.concatenate(blocks) if blocks else np.empty((0, *form["shape"])))

    def _form(self) -> Format:
        from orbit.data.formats import Folder, NpyFormat, ParquetFormat

        folder = Folder(self._required("path", "a folder or URL of .npy or .parquet parts"), "dataset.path")
        if folder.suffix == ".npy":
            y_path = self._required("y_path", "a folder with the targets of .npy parts")
            if self.target or self.features or self.shape:
                raise InputError(
                    "dataset.path: dataset.target, features and shape are for Parquet, found .npy parts; leave them out"
                )
            return NpyFormat(folder, self.label(), Folder(y_path, "dataset.y_path"))
        columns = names_of(self._required("target", "the column of Parquet parts to predict"))
        if self.y_path is not None:
            raise InputError("dataset.y_path: expected none for Parquet parts, whose targets are the column target")
        return ParquetFormat(folder, self.label(), columns, self.features, self.shape)

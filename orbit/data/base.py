"""Data sets in memory or in files, and the base classes of their loaders."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from orbit.core import distributed
from orbit.core.component import Component
from orbit.core.errors import InputError, ParameterError, located, shortened
from orbit.core.params import Fraction, PositiveInt, check_value, parameters
from orbit.core.random import RandomState, generator
from orbit.data.checks import Task, as_pixels, check_arrays, check_finite, real_numbers, whole
from orbit.data.files import DataFile, existing, existing_file, find, named, places, read_arrays
from orbit.data.rows import Rows, SharedSource, distinct, own_rows, subset
from orbit.data.splits import check_clusters, divided, guess_task, split_off_test

# New points whose largest value is this many times larger, or smaller, are taken to be scaled differently. A few points
# may well lack the largest values of the training points.
_LARGER, _SMALLER = 10.0, 50.0

#: How figures draw points.
ShownAs = Literal["image", "series", "molecule", "cloud"]

# The attributes of a data set with an entry for each training point, and for each test point.
_OF_TRAIN = "X_train", "y_train", "folds", "sample_weight", "clusters"
_OF_TEST = "X_test", "y_test", "test_rows", "test_names"


@dataclass(frozen=True, repr=False)
class Dataset:
    """A data set, split into training and test parts.

    Attributes
    ----------
    X_train, X_test : arrays, shape (n, *shape), float32 or float64
        Or :class:`~orbit.data.rows.Rows`, whose values are not checked before :meth:`own`.
    y_train, y_test : arrays, shape (n,) or (n, k)
        Or Rows, whose values the loader has checked.
    task : {"classification", "regression"}
    source : origin of the data in one line, shown with every result
    folds : int array, shape (n_train,), or None
        The published folds of the training part, for ``selection=given``; -1 for points that are in no validation
        part.
    sample_weight : array, shape (n_train,), or None
        Weights of the training points.
    clusters : array, shape (n_train,), or None
        The cluster of each training point, such as its patient: loaders and ``selection=k_fold`` do not divide the
        points of one between two parts. Learners that read a stream, and ``gp``, choose without regard to them.
    encoder : TableEncoder or None
        The fitted step that turns the columns of a table into X; None for other data.
    test_rows : int array, shape (n_test,), or None
        The rows of a table, or of an array, that are the test part.
    test_names : dict of str to array, shape (n_test,)
        What names the test points in tables of predictions, such as the molecule and the place there of each atom.
    kinds : str or None
        The one of ``test_names`` by which errors are also given, such as the element of each atom.
    reading : dict, serialisable as JSON
        Values determined by the loader from the files, and needed to read new points in the same way.
    notes : list of str
        What the loader decided about the files, such as columns that are left out.
    """

    name: str
    task: Task
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    source: str
    folds: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    clusters: np.ndarray | None = None
    encoder: Any = None
    test_rows: np.ndarray | None = None
    test_names: dict[str, np.ndarray] = field(default_factory=dict)
    kinds: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            where = f"{self.name} ({self.source}), {part} part"
            check_arrays(getattr(self, f"X_{part}"), getattr(self, f"y_{part}"), self.task, where)
        for values in (self.folds, self.sample_weight, self.clusters):
            if values is not None and values.shape != (len(self.X_train),):
                raise InputError(
                    f"{self.name}: folds, sample weights and clusters must have shape ({len(self.X_train)},), one for "
                    f"each training point, found {values.shape}"
                )
        if self.sample_weight is not None and not np.any(self.sample_weight > 0):
            raise InputError(
                f"{self.name} ({self.source}): expected some sample weights above 0 in the training part, "
                f"all {len(self.sample_weight)} are 0"
            )
        for what, fitted, tested in (("points", self.X_train, self.X_test), ("targets", self.y_train, self.y_test)):
            if fitted.shape[1:] != tested.shape[1:]:
                sizes = f"training {what} have shape {fitted.shape[1:]}, test {what} {tested.shape[1:]}"
                raise InputError(f"{self.name}: {sizes}; they must agree")
        kinds = self.y_train.dtype.kind, self.y_test.dtype.kind
        if "O" not in kinds and kinds.count("U") == 1:
            raise InputError(
                f"{self.name}: training targets have dtype {self.y_train.dtype}, test targets {self.y_test.dtype}: "
                "expected numbers in both parts, or strings"
            )
        if self.task == "classification" and len(found := distinct(self.y_train)) < 2:
            raise InputError(
                f"{self.name}: the training part has one class only, {shortened(repr(found[0].item()))}, in "
                f"{len(self.y_train)} points; more points, or another split, are needed"
            )

    @classmethod
    def of_parts(cls, name: str, task: Task, X: Any, y: Any, train: Any, test: Any, source: str, **more: Any) -> Self:
        """The data set whose training and test part are points of ``X`` and ``y``, by index; ``more`` are attributes.

        Of these, ``clusters`` are those of all points.
        """
        clusters = _part(more.pop("clusters", None), train)
        parts = subset(X, train), y[train], subset(X, test), y[test]
        return cls(name, task, *parts, source, clusters=clusters, **more)

    def __repr__(self) -> str:
        """Name, task, and arrays by dtype and shape, on one line."""
        return f"Dataset({self.name}, {self.task}, {_arrays(self)})"

    def split(self, fit: np.ndarray, validation: np.ndarray) -> Dataset:
        """A data set of the training points ``fit``, with the training points ``validation`` as test part, by index."""
        X_test, y_test = subset(self.X_train, validation), subset(self.y_train, validation)
        return replace(self.take(fit), X_test=X_test, y_test=y_test, test_rows=None, test_names={}, kinds=None)

    def take(self, train: Any = slice(None), test: Any = slice(None)) -> Dataset:
        """A subset of the training and test points, by index."""
        rows = dict.fromkeys(_OF_TRAIN, train) | dict.fromkeys(_OF_TEST, test)
        return replace(self, **{name: _part(getattr(self, name), part) for name, part in rows.items()})

    def own(self, sample: np.ndarray) -> Dataset:
        """The points that this process of a distributed job needs: its shard of the training points, and ``sample``.

        Process 0 also keeps the test part. Other points are dropped from arrays, and never read from files; points
        read from files are checked block by block. Sizes, targets and weights stay those of the whole data set.

        Parameters
        ----------
        sample : int array
            Indices of training points that every process needs.

        Raises
        ------
        InputError
            If points of this process that are read from a file are not finite, or it has none to train.
        """
        if isinstance(self.X_train, Rows) and isinstance(self.X_train.source, SharedSource):
            return self._own_of(self.X_train, sample)
        train = np.union1d(own_rows(self.X_train), sample)
        test = np.arange(len(self.X_test) if distributed.rank() == 0 else 0)
        return replace(self, X_train=self._only(self.X_train, train), X_test=self._only(self.X_test, test))

    def _own_of(self, train: Rows, sample: np.ndarray) -> Dataset:
        """:meth:`own` where each process reads its own share of the rows only: the test part is read into memory."""
        test: Any = self.X_test
        with distributed.together():
            if not len(own_rows(train)):
                raise InputError(
                    f"{self.name}: process {distributed.rank()} has no training points; start fewer processes"
                )
        train.source.keep(np.union1d(train.indices[sample], test.indices[:]))  # type: ignore[union-attr]
        return replace(self, X_test=test[:], y_test=self.y_test[:])

    def _only(self, X: Any, rows: np.ndarray) -> Any:
        if isinstance(X, Rows):
            check_finite(X.blocks(rows), f"{self.name} ({self.source}): X, by rows of the file,")
            return X
        return Rows.keeping(X, rows) if len(rows) < len(X) else X

    @property
    def test_kinds(self) -> np.ndarray | None:
        """The kind of each test point, shape (n_test,), or None."""
        return None if self.kinds is None else self.test_names[self.kinds]

    @property
    def targets(self) -> list[str]:
        """The names of the columns of ``y``: those of a table, else 0, 1 and so on; one for ``y`` of shape (n,)."""
        count = self.y_train.shape[1] if self.y_train.ndim == 2 else 1
        return list(self.reading.get("targets", map(str, range(count))))

    @property
    def columns(self) -> dict[str, int]:
        """How many columns of X each column of a table is, in their order; empty for other data."""
        return {} if self.encoder is None else self.encoder.widths()

    @property
    def form(self) -> dict[str, Any]:
        """The form of points, serialisable as JSON: ``shape``, ``reading``, and ``largest``.

        ``largest`` is the largest absolute value of the training points; it is left out if they are not in memory.
        """
        form = {"shape": list(self.X_train.shape[1:]), **self.reading}
        if isinstance(self.X_train, np.ndarray) and self.X_train.size:
            form["largest"] = _largest(self.X_train)
        return form

    def describe(self) -> str:
        return (
            f"{self.name}: {len(self.X_train)} train, {len(self.X_test)} test, points of shape {self.X_train.shape[1:]}"
        )


@dataclass(frozen=True, repr=False)
class Points:
    """New points, without targets.

    Attributes
    ----------
    X : array, shape (n, *shape); a data frame where an encoder is still to be applied
    ids : the names of the points, such as those of files; their numbers if there are none
    names : more columns that name them, shape (n,)
    """

    X: Any
    ids: list[str] = field(default_factory=list)
    names: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ids.extend(map(str, range(len(self.ids), len(self.X) if np.ndim(self.X) else 0)))

    def __repr__(self) -> str:
        return f"Points({_arrays(self)})"


def _largest(X: np.ndarray) -> float:
    return max(float(X.max()), -float(X.min()))


def _warn_of_scale(X: np.ndarray, largest: float | None, path: str) -> None:
    """Warn if new points seem to be scaled differently than those that a model was fitted to."""
    found = _largest(X)
    if largest and not largest / _SMALLER <= found <= largest * _LARGER:
        warnings.warn(
            f"{path}: the largest value has size {found:.3g}, but {largest:.3g} in the points that the model was "
            "fitted to; if the new points are scaled differently, predictions are wrong",
            stacklevel=2,
        )


@dataclass(eq=False, repr=False)
class Loader(Component):
    """Loads a :class:`Dataset`. A subclass implements ``_load``, and defines the defaults that suit its data.

    Attributes
    ----------
    default_representation : dict
        The representation used when none is given.
    default_group : dict or None
        The group that a run uses when none is given: its name, and parameters that differ from its defaults. None is
        the one that :func:`orbit.discover` finds on training points.
    fixed_task, known_task : {"classification", "regression"} or None
        The task of all loaders of the class, and of this one; None if it depends on the data.
    pixels : bool
        Whether points are images with values in [0, 1], so that arrays of bytes are divided by 255.
    ink : bool
        Whether large values of images are drawn dark, as those of digits written in ink, and spectrograms.
    shown_as : {"image", "series", "molecule", "cloud"}
        How figures draw points: images and volumes, and others by their shape; series, shape (length,) or (length,
        channels), as lines; Coulomb matrices in atomic units as molecules; and clouds as points.
    reads : tuple of str
        What its ``path`` leads to: endings of files, or ``folder``; empty if it has none, or several kinds.
    x_key : str
        Name of the array of points in an .npz file with new points.
    reading : tuple of str
        Keys of ``Dataset.reading`` that new points are read by.
    ignored_keys : mapping of str to type
        Keys of the command line that a data set without a parameter of that name ignores. Data that is generated or
        bundled needs no folder, but takes one, so that one command line serves all experiments.
    in_order : bool
        Whether the points of a stream are read in the order of their files only.
    any_size : bool
        Whether new points may have other sizes than those of training; the representation refuses what it does not
        take.
    """

    default_representation: ClassVar[dict[str, Any]] = {"name": "unit_norm"}
    default_group: ClassVar[dict[str, Any] | None] = None
    fixed_task: ClassVar[Task | None] = "classification"
    pixels: ClassVar[bool] = False
    ink: ClassVar[bool] = False
    shown_as: ClassVar[ShownAs] = "image"
    reads: ClassVar[tuple[str, ...]] = ()
    x_key = "X"
    reading: ClassVar[tuple[str, ...]] = ()
    ignored_keys: ClassVar[Mapping[str, Any]] = {"root": str | None}
    in_order: ClassVar[bool] = False
    any_size: ClassVar[bool] = False

    _: KW_ONLY
    n_train: PositiveInt | None = None
    n_test: PositiveInt | None = None

    @property
    def known_task(self) -> Task | None:
        return self.fixed_task

    @classmethod
    def representation_for(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The representation that a run uses when none is given, for a loader with these parameters."""
        return cls.default_representation

    @classmethod
    def default_encoder(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The encoder that a run uses when none is given, for a loader with these parameters."""
        return {"name": "none"}

    @classmethod
    def default_moves(cls, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Sections of a run without a given group: ``group``, ``distribution`` and ``orbit``, if not its own."""
        return {"group": cls.default_group or {"name": "identity"}}

    def load(self, random_state: RandomState = None, lazy: bool = False) -> Dataset:
        """Read or generate the data and cut it to ``n_train`` and ``n_test`` random points.

        Parameters
        ----------
        random_state : int, RandomState or None
        lazy : bool
            Leave points in files that can be read in parts, as :class:`~orbit.data.rows.Rows`; see :meth:`Dataset.own`.

        Raises
        ------
        InputError
            For wrong parameters, missing or corrupt files, and arrays that are
            empty, not finite or of unequal lengths.
        """
        check_value("random_state", random_state, RandomState, self.section)
        self.check()
        self.check_memory()
        try:
            full = self._load_lazily(random_state) if lazy else self._load(random_state)
        except InputError as error:
            place = next((key for key in ("path", "root") if key in parameters(type(self))), None)
            if place is None or str(error).startswith("dataset."):
                raise
            raise type(error)(f"dataset.{place}: {error}") from error
        train_rng, test_rng = generator(random_state).spawn(2)
        train = self._subset(len(full.X_train), self.n_train, train_rng, "n_train")
        test = self._subset(len(full.X_test), self.n_test, test_rng, "n_test")
        data = full.take(train, test)
        if data.task == "classification":
            _warn_about_new_classes(data)
        return data

    def check_files(self) -> None:
        """Raise ``InputError`` if a file that this loader needs is missing, without reading any."""

    def check_memory(self) -> None:
        """Raise ``InputError`` if data whose size follows from parameters cannot fit in memory."""

    def in_units_of_files(self, X: np.ndarray, reading: Mapping[str, Any]) -> np.ndarray:
        """Points as they are in the files, of a data set with that ``reading``, which may scale them."""
        return X

    def read_points(
        self, path: str, form: Mapping[str, Any], encoder: Any = None, id_column: str | None = None
    ) -> Points:
        """New points from a file or folder, in the form of the data that this loader loaded.

        Parameters
        ----------
        path : str
            An .npz or .npy file, or another format that the loader reads.
        form : mapping
            :attr:`Dataset.form` of the data that the model was fitted to.
        encoder : TableEncoder or None
            :attr:`Dataset.encoder` of that data.
        id_column : str or None
            The column of a table that names the points; None numbers its rows.

        Raises
        ------
        InputError
            If they cannot be read, are not finite, or have another shape.
        """
        points = self._read_points(path, form)
        if id_column is not None:
            columns = [] if isinstance(points.X, np.ndarray) else list(points.X)
            if id_column not in columns:
                raise InputError(f"runner.id_column: expected a column of {path}, found {id_column!r}")
            points = replace(points, ids=[str(each) for each in points.X[id_column]])
        if encoder is not None:
            with located(path):
                counts = encoder.count_missing(points.X)
                points = replace(points, X=np.asarray(encoder.transform(points.X)))
            if counts:
                found = ", ".join(f"{name} ({count})" for name, count in counts.items())
                warnings.warn(f"{path}: missing, or no numbers: {found}; imputed as in training", stacklevel=2)
        elif not isinstance(points.X, np.ndarray):
            raise InputError(f"{path}: expected a model that takes the columns of a table by name; fit it again")
        expected = tuple(form["shape"])
        same = points.X.ndim == len(expected) + 1 if self.any_size else points.X.shape[1:] == expected
        if points.X.ndim < 1 or not same:
            raise InputError(f"{path}: expected points of shape {expected}, found {points.X.shape[1:]}")
        if len(points.X) == 0:
            raise InputError(f"{path}: expected at least one point, found none")
        check_finite(whole(points.X), path)
        if "features" not in form:  # columns of a table have their own scales
            _warn_of_scale(points.X, form.get("largest"), path)
        return points

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        found = named(read_arrays(existing_file(path, self.label()), self.x_key), self.x_key, path)
        X = real_numbers(found, f"{path}, {self.x_key!r}")
        return Points(as_pixels(X, found.dtype, path) if self.pixels else X)

    @abstractmethod
    def _load(self, random_state: RandomState) -> Dataset:
        """The whole data set."""

    def _load_lazily(self, random_state: RandomState) -> Dataset:
        """The whole data set, points in files that can be read in parts as :class:`~orbit.data.rows.Rows`."""
        return self._load(random_state)

    def _subset(self, n: int, size: int | None, rng: np.random.Generator, key: str) -> np.ndarray | slice:
        if size is None or size == n:
            return slice(None)
        if size > n:
            raise ParameterError(key, f"at most {n}, the number of points in {self.label()}", size, self.section)
        return np.sort(rng.choice(n, size, replace=False))


@dataclass(eq=False, repr=False)
class OwnData(Loader):
    """A loader of a user's own data, whose task is guessed, and of which a random part is for testing.

    Parameters
    ----------
    task : {"auto", "classification", "regression"}
        ``auto``: classification for strings, booleans and at most 100 distinct integers, else regression.
    test_fraction : float in (0, 1)
        Share of the points in the random test part.
    """

    fixed_task = None
    ignored_keys: ClassVar[Mapping[str, Any]] = {}
    _: KW_ONLY
    task: Literal["auto", "classification", "regression"] = "auto"
    test_fraction: Fraction = 0.25

    @property
    def known_task(self) -> Task | None:
        return None if self.task == "auto" else self.task

    def _required(self, key: str, what: str) -> Any:
        """The value of a parameter; raises ``InputError`` if it is not given, saying what it is."""
        if (value := getattr(self, key)) in (None, []):
            raise InputError(f"dataset.{key}: expected {what}, found none")
        return value

    def _task(self, y: np.ndarray) -> Task:
        return guess_task(y) if self.task == "auto" else self.task

    def _divide(
        self,
        y: np.ndarray,
        task: Task,
        random_state: RandomState,
        path: str,
        clusters: np.ndarray | None,
        parts: np.ndarray | None = None,
        key: str = "group_column",
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Indices of a training and a test part, and folds: of given parts, or random ones where they are None.

        Raises
        ------
        InputError
            If a cluster is in both, naming the parameter ``key``.
        """
        if parts is None:
            return (*split_off_test(y, task, self.test_fraction, random_state, path, clusters), None)
        train, test, folds = divided(parts)
        if clusters is not None:
            check_clusters(clusters[train], clusters[test], f"dataset.{key}")
        return train, test, folds


@dataclass(eq=False, repr=False)
class FileLoader(Loader):
    """A loader of published files: found in the data folder, or downloaded into it on request.

    Attributes
    ----------
    folder : subfolder of the data folder
    """

    folder: ClassVar[str]
    ignored_keys: ClassVar[Mapping[str, Any]] = {}

    root: str | None = None
    _: KW_ONLY
    download: bool = False

    @abstractmethod
    def files(self) -> list[DataFile]:
        """The files that are needed."""

    def instead(self) -> list[Path]:
        """What is in the data folder and read in place of these files; none by default."""
        return []

    def check_files(self) -> None:
        for file in self.files() if not self.instead() else []:
            if not (self.download and file.url):
                find(self.root, self.folder, file)

    def input_files(self) -> list[Path]:
        if found := self.instead():
            return found
        candidates = ([place / file.name for place in places(self.root, self.folder)] for file in self.files())
        return [path for paths in candidates for path in existing(paths)[:1]]

    def path(self, file: DataFile) -> Path:
        """The path of ``file``, which is downloaded first if it is missing and ``download`` is set."""
        return find(self.root, self.folder, file, self.download)


def names_of(names: str | list[str] | None) -> list[str]:
    """The names of one or several columns or variables; none for None."""
    return [names] if isinstance(names, str) else list(names or [])


def _part(values: Any, rows: Any) -> Any:
    if isinstance(values, dict):
        return {name: each[rows] for name, each in values.items()}
    return None if values is None else subset(values, rows)


def _arrays(data: Dataset | Points) -> str:
    """The arrays of a data class by dtype and shape: ``X_train=float32 (100, 8, 8)``."""
    values = [(part.name, getattr(data, part.name)) for part in fields(data)]
    return ", ".join(
        f"{name}={value.dtype} {value.shape}" for name, value in values if isinstance(value, (np.ndarray, Rows))
    )


def _warn_about_new_classes(data: Dataset) -> None:
    """Warn about test points that no classifier can get right."""
    if isinstance(data.y_train, Rows) or isinstance(data.y_test, Rows):
        return
    found = np.setdiff1d(data.y_test, data.y_train)
    if len(found):
        warnings.warn(
            f"{np.isin(data.y_test, found).sum()} of {len(data.y_test)} test points of {data.name} have classes that "
            f"no training point has, e.g. {shortened(repr(found[0].item()))}",
            stacklevel=2,
        )

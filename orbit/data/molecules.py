"""A user's own molecules: charges and positions of atoms, in files that ASE reads, as Coulomb matrices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from orbit.core.errors import DataFileError, InputError, shortened, suggestion
from orbit.core.memory import check_fits
from orbit.core.params import Fraction, PositiveInt
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.base import Dataset, Loader, Points, Task
from orbit.data.files import existing
from orbit.data.splits import guess_task, split_off_test
from orbit.registry import register

if TYPE_CHECKING:  # ASE is imported when a file is read
    from ase import Atoms

BOHR = 0.529177210903  # angstrom
_SUFFIXES = (".xyz", ".extxyz", ".sdf", ".mol", ".db", ".json", ".cif", ".pdb", ".traj", ".vasp")
_NEEDS = "needs the package ase: pip install 'orbit-kernels[chemistry]'"


def coulomb_matrices(charges: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Coulomb matrices (Rupp et al. 2012): 0.5 Z^2.4 on the diagonal, Z Z' / distance elsewhere, 0 without an atom.

    Parameters
    ----------
    charges : array, shape (n, atoms)
        Nuclear charges Z; 0 where a molecule has no more atoms.
    positions : array, shape (n, atoms, 3)
        In the unit that the matrices shall have, bohr for those of QM7.

    Returns
    -------
    float64 array, shape (n, atoms, atoms)

    Examples
    --------
    >>> import numpy as np
    >>> hydrogen = coulomb_matrices(np.ones((1, 2)), np.array([[[0, 0, 0], [0, 0, 2.0]]]))
    >>> hydrogen
    array([[[0.5, 0.5],
            [0.5, 0.5]]])
    """
    Z = np.asarray(charges, dtype=np.float64)
    products = Z[:, :, None] * Z[:, None]
    distances = np.linalg.norm(positions[:, :, None] - positions[:, None], axis=-1)
    C = np.divide(products, distances, out=np.zeros_like(products), where=(products > 0) & (distances > 0))
    i = np.arange(Z.shape[1])
    C[:, i, i] = 0.5 * Z**2.4
    return C


@register("dataset", "molecules")
class Molecules(Loader):
    """Molecules in a file, or in the files of a folder, that ASE reads (``pip install 'orbit-kernels[chemistry]'``).

    Points are Coulomb matrices in atomic units, shape (atoms, atoms), with zeros after the atoms of smaller molecules.

    Parameters
    ----------
    path : str or None
        A file with one or more molecules (.extxyz, .xyz, .sdf, .db ...), a folder of such files, or a CSV file with a
        column of paths, which start from its folder. Required.
    target : str or list of str
        What to predict, by its name in the file: a key of the comment line of an extended XYZ file, ``energy`` of a
        calculation, a key of a database; or a column of the CSV file. Several make a multi-output regression.
    file_column : str
        Column of the CSV file with the paths.
    format : str or None
        ASE's name of the format; None: as the suffix says.
    task : {"auto", "classification", "regression"}
        ``auto``: classification for strings, booleans and at most 100 distinct integers, else regression.
    test_fraction : float in (0, 1)
        Share of the molecules in the random test part.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    """

    default_representation = {"name": "many_body"}
    default_group = {"name": "identity"}
    fixed_task = None
    ignored_keys = {}

    def __init__(
        self,
        path: str | None = None,
        target: str | list[str] = "energy",
        file_column: str = "file",
        format: str | None = None,
        task: Literal["auto", "classification", "regression"] = "auto",
        test_fraction: Fraction = 0.25,
        n_train: PositiveInt | None = None,
        n_test: PositiveInt | None = None,
    ) -> None:
        self.path = path
        self.target = target
        self.file_column = file_column
        self.format = format
        self.task = task
        self.test_fraction = test_fraction
        self.n_train = n_train
        self.n_test = n_test

    def input_files(self) -> list[Path]:
        return existing([self.path])

    def check_files(self) -> None:
        if self.path is None:
            raise InputError(
                "dataset.path: expected a file with molecules, a folder of them, or a CSV file, found none"
            )
        self._files(user_path(self.path, "dataset.path"))

    def _load(self, random_state: RandomState) -> Dataset:
        self.check_files()
        assert self.path is not None
        path = user_path(self.path, "dataset.path")
        targets = [self.target] if isinstance(self.target, str) else self.target
        if path.suffix.lower() == ".csv":
            molecules, y = self._of_table(path, targets)
        else:
            molecules = [atoms for file in self._files(path) for atoms in self._read(file)]
            columns = [np.array([_value(atoms, name, i) for i, atoms in enumerate(molecules)]) for name in targets]
            y = np.column_stack(columns) if len(columns) > 1 else columns[0]
        task: Task = guess_task(y) if self.task == "auto" else self.task
        X = _matrices(molecules, max(map(len, molecules)))
        train, test = split_off_test(y, task, self.test_fraction, random_state, path.name)
        source = f"{len(molecules):,} molecules in {path.name}"
        reading = {"targets": targets}
        return Dataset(self.name, task, X[train], y[train], X[test], y[test], source, reading=reading)

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        place = user_path(path, self.label())
        if place.suffix.lower() in (".npz", ".npy"):
            return super()._read_points(path, form)
        found = [(file, self._read(file)) for file in self._files(place)]
        molecules = [atoms for _, several in found for atoms in several]
        most, size = max(map(len, molecules)), form["shape"][0]
        if most > size:
            raise InputError(
                f"{path}: expected molecules of at most {size} atoms, the most of the training molecules, found {most}"
            )
        ids = [
            f"{file.name}:{i}" if len(several) > 1 else file.name
            for file, several in found
            for i in range(len(several))
        ]
        return Points(_matrices(molecules, size), ids)

    def _files(self, path: Path) -> list[Path]:
        if path.is_file():
            return [path]
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in _SUFFIXES) if path.is_dir() else []
        if not files:
            kinds = f"a folder of such files ({', '.join(_SUFFIXES)})"
            raise DataFileError(
                f"dataset.path: expected a file with molecules or {kinds} at {path.absolute()}, found none"
            )
        return files

    def _read(self, file: Path) -> list[Atoms]:
        try:
            import ase.db
            import ase.io
        except ModuleNotFoundError:
            raise DataFileError(f"{file.absolute()} {_NEEDS}") from None
        try:
            if file.suffix.lower() == ".db":
                return [_with_values(row) for row in ase.db.connect(file).select()]
            found = list(ase.io.iread(file, index=":", format=self.format))
        except Exception as error:  # ASE raises many kinds
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            raise DataFileError(f"{file.absolute()} is not a file of molecules that ASE reads ({reason})") from error
        if not found:
            raise DataFileError(f"{file.absolute()} has no molecules")
        return found

    def _of_table(self, path: Path, targets: list[str]) -> tuple[list[Atoms], np.ndarray]:
        import pandas as pd  # here, because it takes half a second

        table = pd.read_csv(path, dtype={self.file_column: str})
        for key, column in [("file_column", self.file_column), *(("target", name) for name in targets)]:
            if column not in table:
                raise InputError(
                    f"dataset.{key}: {path.name} has no column {column!r}{suggestion(column, table.columns)}"
                )
            if len(empty := np.flatnonzero(table[column].isna())):
                raise InputError(f"dataset.{key}: column {column!r} of {path.name} has no value in row {empty[0] + 1}")
        molecules = []
        for name in table[self.file_column]:
            several = self._read(path.parent / name)
            if len(several) > 1:
                raise DataFileError(
                    f"{name} has {len(several)} molecules, expected one in each file that {path.name} lists"
                )
            molecules += several
        return molecules, table[targets if len(targets) > 1 else targets[0]].to_numpy()


def _with_values(row: Any) -> Atoms:
    atoms = row.toatoms()
    atoms.info |= row.key_value_pairs
    return atoms


def _value(atoms: Atoms, name: str, number: int) -> Any:
    """The value of a molecule by its name, from the file's own keys or from a calculation."""
    values = dict(getattr(atoms.calc, "results", {})) | atoms.info
    if name not in values:
        has = shortened(", ".join(map(str, values))) or "none"
        raise InputError(
            f"dataset.target: molecule {number} has no value {name!r}{suggestion(name, values)} It has {has}"
        )
    if np.ndim(values[name]):
        raise InputError(
            f"dataset.target: expected one number or name for a molecule, {name!r} has shape {np.shape(values[name])}"
        )
    return values[name]


def _matrices(molecules: list[Atoms], size: int) -> np.ndarray:
    """Coulomb matrices in atomic units, float32, shape (n, size, size)."""
    check_fits("dataset.path", f"{len(molecules):,} molecules of {size:,} atoms", 4 * len(molecules) * size**2)
    X = np.zeros((len(molecules), size, size), np.float32)
    for row, atoms in zip(X, molecules, strict=True):
        n = len(atoms)
        row[:n, :n] = coulomb_matrices(atoms.numbers[None], atoms.positions[None] / BOHR)[0]
    return X

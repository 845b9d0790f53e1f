"""A user's own molecules: charges and positions of atoms, in files that ASE and RDKit read, as Coulomb matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from orbit.core.errors import DataFileError, InputError, shortened, suggestion
from orbit.core.memory import check_fits
from orbit.core.paths import user_path
from orbit.core.random import RandomState, generator
from orbit.data.base import Dataset, OwnData, Points, names_of
from orbit.data.files import existing, read_each
from orbit.data.molecule_files import EMBEDDING, SUFFIXES, Molecule, of_smiles, read_molecules
from orbit.data.splits import TRAIN, folders_of_parts, given_parts
from orbit.registry import register
from orbit.representations.molecules import check_unit

BOHR = 0.529177210903  # angstrom
if TYPE_CHECKING:  # pandas is imported when a table is read
    import pandas as pd

_CHECKED = 1000  # molecules whose lengths are checked


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


@dataclass(frozen=True)
class Frames:
    """Molecules with energies and forces.

    Attributes
    ----------
    X : float64 array, shape (n, atoms, 4)
        Charge and position of each atom; charges of 0 where a molecule has no more atoms.
    energies : float64 array, shape (n,), or None
    forces : float64 array, shape (n, atoms, 3), or None
    train, test : int arrays
        Frames of the training and the test part.
    """

    X: np.ndarray
    energies: np.ndarray | None
    forces: np.ndarray | None
    train: np.ndarray
    test: np.ndarray


@register("dataset", "molecules")
@dataclass(eq=False, repr=False)
class Molecules(OwnData):
    """Molecules in a file, or in the files of a folder, or as SMILES (``pip install 'orbit-kernels[chemistry]'``).

    SDF files and SMILES are read by RDKit, which places the atoms of SMILES and of drawings: one conformer by ETKDGv3
    with the seed 0, relaxed by MMFF94 where it has parameters. The XYZ files of QM9 have their values by the names of
    its table 2 (``U0``, ``gap`` ...), in hartree. All others are read by ASE.

    Points are Coulomb matrices in atomic units, shape (atoms, atoms), with zeros after the atoms of smaller molecules.

    Parameters
    ----------
    path : str or None
        A file with one or more molecules (.extxyz, .xyz, .sdf, .db ...), a folder of such files, perhaps in folders
        ``train`` and ``test`` (and ``val``), spelled as those of ``dataset=images``, or a CSV file with a column of
        paths, which start from its folder, or of SMILES. Required.
    target : str or list of str
        What to predict, by its name in the file: a key of the comment line of an extended XYZ file, ``energy`` of a
        calculation, a key of a database, a field of an SDF file; or a column of the CSV file. Several make a
        multi-output regression.
    file_column : str
        Column of the CSV file with the paths.
    smiles_column : str
        Column of a CSV file with SMILES, where it has no column of paths; also in capitals.
    split_column : str or None
        Column of the CSV file, or value of the molecules, with the part of each: train, test or val.
    group_column : str or None
        The same with what says which molecules belong together, e.g. conformers: they are in one part, training or
        test, and in one fold of ``selection=k_fold``.
    on_error : {"refuse", "skip"}
        ``skip`` leaves out files, entries of SDF files and SMILES that cannot be read; a warning counts and names them.
    unit : {"angstrom", "bohr"}
        The unit of lengths in the files.
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
    ignored_keys = {}
    any_size: ClassVar[bool] = True

    path: str | None = None
    target: str | list[str] = "energy"
    file_column: str = "file"
    smiles_column: str = "smiles"
    unit: Literal["angstrom", "bohr"] = "angstrom"
    format: str | None = None
    _: KW_ONLY
    split_column: str | None = None
    group_column: str | None = None
    on_error: Literal["refuse", "skip"] = "refuse"

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
        targets, how, parts = names_of(self.target), "", None
        if path.suffix.lower() == ".csv":
            table = self._table(path, targets)
            molecules, read, how = self._of_table(table, path)
            values = {name: table[name].to_numpy()[read] for name in self._about()}
            y = self._of_column(table, targets)[read]
        else:
            molecules, parts = self._of_files(path)
            values = {name: _values(molecules, name) for name in (*targets, *self._about())}
            y = np.column_stack([values[name] for name in targets]) if len(targets) > 1 else values[targets[0]]
        task = self._task(y)
        self._check_unit(molecules)
        X = self._matrices(molecules, max(map(len, molecules)))
        parts = given_parts(values[self.split_column], "split_column") if self.split_column else parts
        clusters = values[self.group_column].astype(str) if self.group_column else None
        train, test, folds = self._divide(y, task, random_state, path.name, clusters, parts)
        source = f"{len(molecules):,} molecules in {path.name}{how}"
        more = {"clusters": clusters, "folds": folds, "reading": {"targets": targets}}
        return Dataset.of_parts(self.name, task, X, y, train, test, source, **more)

    def load_frames(self, random_state: RandomState = None, forces: str | None = "forces") -> Frames:
        """Charges, positions, energies (``target``) and forces of frames, for :class:`~orbit.learners.ForceField`.

        Parameters
        ----------
        random_state : int, RandomState or None
            Draws the test part, if none is given, and subsets.
        forces : str or None
            The name of the forces in the file; None reads charges and positions alone.

        Raises
        ------
        InputError
            For files that cannot be read, or that lack a value.
        """
        self.check()
        self.check_files()
        path = user_path(str(self.path), "dataset.path")
        if path.suffix.lower() == ".csv" or self.unit != "angstrom":
            raise InputError("dataset: forces are read from files of ASE with lengths in angstrom, not from CSV files")
        molecules, parts = self._of_files(path)
        self._check_unit(molecules)
        size = max(map(len, molecules))
        check_fits("dataset.path", f"{len(molecules):,} frames of {size:,} atoms", 56 * len(molecules) * size)
        X = np.stack([_padded(np.column_stack([one.charges, one.positions]), size) for one in molecules])
        everything = np.arange(len(X))
        if forces is None:
            return Frames(X, None, None, everything[:0], everything)
        (target,) = names_of(self.target) if len(names_of(self.target)) == 1 else ("energy",)
        values = {name: _values(molecules, name) for name in (target, *self._about())}
        parts = given_parts(values[self.split_column], "split_column") if self.split_column else parts
        clusters = values[self.group_column].astype(str) if self.group_column else None
        y = values[target].astype(np.float64)
        train, test, _ = self._divide(y, "regression", random_state, path.name, clusters, parts)
        train_rng, test_rng = generator(random_state).spawn(2)
        train = train[self._subset(len(train), self.n_train, train_rng, "n_train")]
        test = test[self._subset(len(test), self.n_test, test_rng, "n_test")]
        pulls = [_padded(_of_atoms(one, forces, i), size) for i, one in enumerate(molecules)]
        return Frames(X, y, np.stack(pulls), train, test)

    def _of_files(self, path: Path) -> tuple[list[Molecule], np.ndarray | None]:
        """The molecules of a file, or of those of a folder, and the parts that folders say."""
        files = self._files(path)
        found, read = self._read_files(files)
        molecules = [one for several in found for one in several]
        if not (path.is_dir() and (folders := folders_of_parts(path))):
            return molecules, None
        of_files = [_part_of(files[i], folders) for i in read]
        return molecules, given_parts(np.repeat(of_files, [*map(len, found)]), "path")

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        place = user_path(path, self.label())
        if place.suffix.lower() in (".npz", ".npy"):
            return super()._read_points(path, form)
        if place.suffix.lower() == ".csv":
            table = self._table(place, [])
            molecules, read, _ = self._of_table(table, place)
            ids = [*map(str, read)]
        else:
            files = self._files(place)
            found, read = self._read_files(files)
            molecules = [one for several in found for one in several]
            names = [files[i].name for i in read]
            ids = [
                f"{name}:{i}" if len(several) > 1 else name
                for name, several in zip(names, found, strict=True)
                for i in range(len(several))
            ]
        return Points(self._matrices(molecules, max(form["shape"][0], *map(len, molecules))), ids)

    def _files(self, path: Path) -> list[Path]:
        if path.is_file():
            return [path]
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES) if path.is_dir() else []
        if not files:
            kinds = f"a folder of such files ({', '.join(SUFFIXES)})"
            raise DataFileError(
                f"dataset.path: expected a file with molecules or {kinds} at {path.absolute()}, found none"
            )
        return files

    def _table(self, path: Path, targets: list[str]) -> pd.DataFrame:
        from orbit.data.frames import require_values
        from orbit.data.table_files import csv_options, read_table  # here, because pandas takes half a second
        from orbit.data.units import units_of, without_units

        others = [self.smiles_column.upper(), self.smiles_column.capitalize()]
        texts = [self.file_column, self.smiles_column, *others, *filter(None, [self.group_column])]
        for column in (self.smiles_column, self.file_column, *others):
            options = csv_options(path, [*targets, column], texts, {}, {})
            table = read_table(path, texts, [], options)
            if column in table:
                table = table.rename(columns=dict.fromkeys({column} & {*others}, self.smiles_column))
                break
        else:
            raise InputError(
                f"dataset.file_column: {path.name} has no column {self.file_column!r} of paths, nor "
                f"{self.smiles_column!r} of SMILES (dataset.smiles_column); it has {', '.join(table.columns)}"
            )
        columns = [("file_column", self.file_column), ("smiles_column", self.smiles_column)]
        has = [each for each in columns if each[1] in table]
        about = [] if not targets else [("split_column", self.split_column), ("group_column", self.group_column)]
        given = [*has, *((key, name) for key, name in about if name), *(("target", name) for name in targets)]
        require_values(table, given, path)
        return without_units(table, units_of(table[targets], options), options)

    def _of_column(self, table: pd.DataFrame, names: list[str]) -> np.ndarray:
        """Targets of a table."""
        from orbit.data.frames import targets

        return targets(table, names, self.task)

    def _about(self) -> list[str]:
        """The columns or values with parts and groups."""
        return [name for name in (self.split_column, self.group_column) if name is not None]

    def _of_table(self, table: pd.DataFrame, path: Path) -> tuple[list[Molecule], np.ndarray, str]:
        """The molecules of a table that could be read, their rows, and how SMILES got their positions."""
        if self.file_column not in table:
            smiles, found = table[self.smiles_column].tolist(), dict[int, Molecule]()

            def embed(i: int) -> None:
                found[i] = of_smiles(smiles[i], path.name, i)

            read = read_each(len(smiles), embed, "molecules", self.on_error == "skip")
            return [found[i] for i in read], read, f", {EMBEDDING}"
        files = [path.parent / name for name in table[self.file_column]]
        several, read = self._read_files(files, f"expected one in each file that {path.name} lists")
        return [one for (one,) in several], read, ""

    def _read_files(self, files: list[Path], only_one: str = "") -> tuple[list[list[Molecule]], np.ndarray]:
        """The molecules of each file that could be read, and the indices of these files."""
        found: dict[int, list[Molecule]] = {}

        def read(i: int) -> None:
            found[i] = read_molecules(files[i], self.format, self.on_error == "skip")
            if only_one and len(found[i]) > 1:
                raise DataFileError(f"{files[i].name} has {len(found[i])} molecules, {only_one}")

        kept = read_each(len(files), read, "files", self.on_error == "skip")
        return [found[i] for i in kept], kept

    def _check_unit(self, molecules: list[Molecule]) -> None:
        """Raise ``InputError`` if most of the molecules have lengths as in the other unit."""
        some = molecules[:_CHECKED]
        size = max(map(len, some))
        charges, lengths = np.zeros((len(some), size), int), np.full((len(some), size, size), np.inf)
        for i, one in enumerate(some):
            n = len(one)
            charges[i, :n] = one.charges
            lengths[i, :n, :n] = np.linalg.norm(one.positions[:, None] - one.positions, axis=-1)
            lengths[i, range(n), range(n)] = np.inf
        check_unit(charges, lengths, self.unit, "dataset.unit")

    def _matrices(self, molecules: list[Molecule], size: int) -> np.ndarray:
        """Coulomb matrices in atomic units, float64, which energies need, shape (n, size, size)."""
        check_fits("dataset.path", f"{len(molecules):,} molecules of {size:,} atoms", 8 * len(molecules) * size**2)
        X = np.zeros((len(molecules), size, size))
        for row, one in zip(X, molecules, strict=True):
            n, positions = len(one), one.positions / (BOHR if self.unit == "angstrom" else 1)
            row[:n, :n] = coulomb_matrices(one.charges[None], positions[None])[0]
        return X


def _part_of(file: Path, folders: Mapping[str, Path]) -> str:
    """The part whose folder has a file; training where it is in none."""
    return next((part for part, folder in folders.items() if folder in file.parents), TRAIN)


def _padded(values: np.ndarray, size: int) -> np.ndarray:
    """Rows of atoms, with zeros up to a number of atoms."""
    return np.pad(values, ((0, size - len(values)), (0, 0)))


def _of_atoms(molecule: Molecule, name: str, number: int) -> np.ndarray:
    """The vectors of its atoms, shape (atoms, 3)."""
    found = np.asarray(_named(molecule, name, number, "runner.forces"))
    if found.shape != (len(molecule), 3):
        raise InputError(f"runner.forces: expected three numbers for each atom, {name!r} has shape {found.shape}")
    return found


def _values(molecules: list[Molecule], name: str) -> np.ndarray:
    return np.array([_value(one, name, i) for i, one in enumerate(molecules)])


def _value(molecule: Molecule, name: str, number: int) -> Any:
    """One value of a molecule by its name."""
    value = _named(molecule, name, number, "dataset.target")
    if np.ndim(value):
        raise InputError(
            f"dataset.target: expected one number or name for a molecule, {name!r} has shape {np.shape(value)}"
        )
    return value


def _named(molecule: Molecule, name: str, number: int, key: str) -> Any:
    """What a molecule has under a name, from the file's own keys or from a calculation."""
    values = molecule.values
    if name not in values:
        has = shortened(", ".join(map(str, values))) or "none"
        raise InputError(f"{key}: molecule {number} has no value {name!r}{suggestion(name, values)} It has {has}")
    return values[name]

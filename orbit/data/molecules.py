"""A user's own molecules: charges and positions of atoms, in files that ASE and RDKit read, as Coulomb matrices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np

from orbit.core.errors import DataFileError, InputError
from orbit.core.memory import check_fits
from orbit.core.paths import user_path
from orbit.core.random import RandomState, generator
from orbit.data.base import Dataset, OwnData, Points, ShownAs, names_of
from orbit.data.checks import check_finite, whole
from orbit.data.files import existing, read_each
from orbit.data.molecule_files import (
    EMBEDDING,
    FINGERPRINT,
    SUFFIXES,
    Molecule,
    fingerprint_of_smiles,
    is_frames,
    of_smiles,
    read_molecules,
)
from orbit.data.molecule_values import Atoms, ReadMolecules, forces_of, padded, values_of_atoms
from orbit.data.splits import TRAIN, folders_of_parts, given_parts
from orbit.registry import register
from orbit.representations.molecules import ANGSTROM, SYMBOLS, check_unit

T = TypeVar("T")
BOHR = ANGSTROM["bohr"]
if TYPE_CHECKING:  # pandas is imported when a table is read
    import pandas as pd

_CHECKED = 1000  # molecules whose lengths are checked
# What ASE calls the energies of a whole cell.
_TOTALS = "energy", "free_energy"
# Correlation with the number of atoms above which a number is taken for one of the whole cell.
_CORRELATED = 0.9


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
        Charge and position in angstrom of each atom, in crystals then -1 and a vector of the cell in each row; charges
        of 0 in further rows.
    energies : float64 array, shape (n,), or None
        In the unit of the file.
    forces : float64 array, shape (n, atoms, 3), or None
        In the unit of energies per angstrom.
    train, test : int arrays
        Frames of the training and the test part.
    length, per : float
        Angstrom in the file's unit of positions, and in the unit of length of its forces.
    """

    X: np.ndarray
    energies: np.ndarray | None
    forces: np.ndarray | None
    train: np.ndarray
    test: np.ndarray
    length: float = 1.0
    per: float = 1.0


@register("dataset", "molecules")
@dataclass(eq=False, repr=False)
class Molecules(OwnData):
    """Molecules in a file, or in the files of a folder, or as SMILES (``pip install 'orbit-kernels[chemistry]'``).

    SDF files and SMILES are read by RDKit, which places the atoms of SMILES and of drawings: one conformer by ETKDGv3
    with the seed 0, relaxed by MMFF94 where it has parameters. The XYZ files of QM9 have their values by the names of
    its table 2 (``U0``, ``gap`` ...), in hartree. All others are read by ASE.

    Points are Coulomb matrices in atomic units, shape (atoms, atoms), with zeros after the atoms of smaller molecules,
    or fingerprints, shape (2048,). Where atoms see images in other cells within 6 angstrom, they are crystals, shape
    (rows, 4): charge and position of each atom in angstrom, then -1 and a vector of the cell in each row.

    Parameters
    ----------
    path : str or None
        A file with one or more molecules (.extxyz, .xyz, .sdf, .db ..., or an .npz like those of MD17, with arrays
        ``z`` or ``nuclear_charges``, ``R`` or ``coords``, ``E`` or ``energies``, ``F`` or ``forces``, the last two read
        as ``energy`` and ``forces``), a folder of such files but .npz, perhaps in folders ``train`` and ``test`` (and
        ``val``), spelled as those of ``dataset=images``, or a CSV file with a column of paths, which start from its
        folder, or of SMILES. Required.
    target : str or list of str
        What to predict, by its name in the file: a key of the comment line of an extended XYZ file, ``energy`` of a
        calculation, a key of a database, a field of an SDF file; or a column of the CSV file. Several make a
        multi-output regression.
    per_atom : bool
        Whether ``target`` has a value for each atom, such as a partial charge or a chemical shift: a column of an
        extended XYZ file, an array of ASE, or ``charges`` of QM9. Points are then atoms, in the form of
        ``representation=atom_environment``, and those of one molecule are in one part; atoms without a finite value
        are left out.
    file_column : str
        Column of the CSV file with the paths.
    smiles_column : str
        Column of a CSV file with SMILES, where it has no column of paths; also in capitals.
    form : {"positions", "fingerprint"}
        ``fingerprint``: log(1 + count) of the fragments of a molecule, those of at most two bonds about each atom
        (Morgan), folded into 2,048 entries. It needs SMILES and no positions.
    divide : str, list of str or None
        Targets that are divided by the number of atoms; None are ``energy`` and ``free_energy`` of crystals, which ASE
        reads as those of the whole cell, whose size is a choice. [] divides none.
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
        Random subsets, of atoms with ``per_atom``; None is all.
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
    per_atom: bool = False
    form: Literal["positions", "fingerprint"] = "positions"
    divide: str | list[str] | None = None
    split_column: str | None = None
    group_column: str | None = None
    on_error: Literal["refuse", "skip"] = "refuse"

    @classmethod
    def representation_for(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        if parameters.get("form") == "fingerprint":
            return {"name": "raw"}
        return {"name": "atom_environment"} if parameters.get("per_atom") else cls.default_representation

    @property
    def shown_as(self) -> ShownAs:  # type: ignore[override]
        return "molecule" if self.form == "positions" else "image"

    def check(self) -> None:
        super().check()
        if self.per_atom and self.form == "fingerprint":
            raise self.wrong("form", "'positions' with dataset.per_atom")

    def input_files(self) -> list[Path]:
        return existing([self.path])

    def check_files(self) -> None:
        path = self._required("path", "a file with molecules, a folder of them, or a CSV file")
        self._files(user_path(path, "dataset.path"))

    def _load(self, random_state: RandomState) -> Dataset:
        self.check_files()
        path, targets = user_path(str(self.path), "dataset.path"), names_of(self.target)
        read = self._read(path, [] if self.per_atom else targets)
        if self.form == "positions":
            self._check_unit(read.molecules)
        parts, clusters = self._parts(read, path)
        if self.per_atom:
            return self._of_single_atoms(read, targets, path, parts, clusters, random_state)
        if read.table is not None:
            from orbit.data.frames import targets as targets_of  # here, because pandas takes half a second

            y = targets_of(read.table, targets, self.task)
        else:
            values = read.values(targets)
            columns = [values[name] for name in targets]
            y = np.column_stack(columns) if len(columns) > 1 else columns[0]
        y, names = self._per_atom_of(y, targets, read)
        task, X = self._task(y), self._points(read, read.cells)
        train, test, folds = self._divide(y, task, random_state, path.name, clusters, parts)
        source = f"{len(X):,} {'crystals' if read.cells else 'molecules'} in {path.name}{read.how}"
        more = {"clusters": clusters, "folds": folds, "reading": {"targets": names, "cells": read.cells}}
        return Dataset.of_parts(self.name, task, X, y, train, test, source, **more)

    def _of_single_atoms(
        self,
        read: ReadMolecules,
        targets: list[str],
        path: Path,
        parts: np.ndarray | None,
        clusters: np.ndarray | None,
        random_state: RandomState,
    ) -> Dataset:
        """The data set whose points are the atoms with known values; parts and clusters are those of molecules."""
        if read.how:
            raise InputError(f"dataset.per_atom: {path.name} has SMILES, expected files of atoms with {targets[0]!r}")
        each = [values_of_atoms(one, targets, i) for i, one in enumerate(read.molecules)]
        y, atoms = np.concatenate(each), Atoms.of(read)
        known = np.isfinite(y).all(1) if y.dtype.kind == "f" else np.ones(len(y), bool)
        if not known.any():
            raise InputError(f"dataset.target: expected finite numbers {targets} of some atoms, found none")
        notes = [] if known.all() else [atoms.unknown(known, targets)]
        y, atoms = y[known], atoms.take(known)
        y = y if len(targets) > 1 else y[:, 0]
        task, X = self._task(y), self._points_of(read, atoms, read.rows)
        clusters = atoms.molecule if clusters is None else clusters[atoms.molecule]
        parts = None if parts is None else parts[atoms.molecule]
        train, test, folds = self._divide(y, task, random_state, path.name, clusters, parts)
        source = f"{len(X):,} atoms of {len(read.molecules):,} molecules in {path.name}"
        reading = {"targets": targets, "elements": np.unique(atoms.charges[train]).tolist()}
        names = {key: values[test] for key, values in atoms.names(read).items()}
        more = {"clusters": clusters, "folds": folds, "reading": reading, "notes": notes}
        more |= {"test_names": names, "kinds": "element"}
        return Dataset.of_parts(self.name, task, X, y, train, test, source, **more)

    def load_frames(
        self,
        random_state: RandomState = None,
        forces: str | None = "forces",
        per: Literal["angstrom", "bohr"] | None = None,
    ) -> Frames:
        """Charges, positions, energies (``target``) and forces of frames, for :class:`~orbit.learners.ForceField`.

        Parameters
        ----------
        random_state : int, RandomState or None
            Draws the test part, if none is given, and subsets.
        forces : str or None
            The name of the forces in the file; None reads charges and positions alone.
        per : {"angstrom", "bohr"} or None
            Forces are in the unit of energies per this one; None is ``unit``.

        Raises
        ------
        InputError
            For files that cannot be read, or that lack a value.
        """
        self.check()
        self.check_files()
        path = user_path(str(self.path), "dataset.path")
        (target,) = names_of(self.target) if len(names_of(self.target)) == 1 else ("energy",)
        read = self._read(path, [] if forces is None else [target], in_files=True)
        if read.how:
            raise InputError(
                f"dataset.path: {path.name} has SMILES, expected files of frames with positions and forces"
            )
        self._check_unit(read.molecules)
        size, n = read.rows, len(read.molecules)
        check_fits("dataset.path", f"{n:,} frames of {size:,} atoms", 56 * n * size)
        length, unit_of_forces = ANGSTROM[self.unit], ANGSTROM[per or self.unit]
        X = np.stack([one.rows(size, length) for one in read.molecules])
        everything = np.arange(n)
        if forces is None:
            return Frames(X, None, None, everything[:0], everything, length, unit_of_forces)
        parts, clusters = self._parts(read, path)
        y = read.values([target])[target].astype(np.float64)
        pulls = np.stack([padded(forces_of(one, forces, i), size) for i, one in enumerate(read.molecules)])
        for name, values in ((target, y), (forces, pulls)):
            check_finite(whole(values), f"dataset.path: {name!r} of {path.name}")
        train, test, _ = self._divide(y, "regression", random_state, path.name, clusters, parts)
        train_rng, test_rng = generator(random_state).spawn(2)
        train = train[self._subset(len(train), self.n_train, train_rng, "n_train")]
        test = test[self._subset(len(test), self.n_test, test_rng, "n_test")]
        return Frames(X, y, pulls / unit_of_forces, train, test, length, unit_of_forces)

    def _read(self, path: Path, targets: list[str], in_files: bool = False) -> ReadMolecules:
        """The molecules of a file, of those of a folder, or of a CSV file with the columns ``targets``.

        With ``in_files`` the files that a CSV file lists have the targets that it lacks.
        """
        if path.suffix.lower() == ".csv":
            if in_files:
                targets = [name for name in targets if name in self._table(path, [])]
            table = self._table(path, targets, about=in_files or bool(targets))
            if self.form == "fingerprint" and self.smiles_column in table:
                made, rows = self._of_smiles(table, path, fingerprint_of_smiles)
                return ReadMolecules([], [*map(str, rows)], [], table.iloc[rows], f", {FINGERPRINT}", np.stack(made))
            molecules, rows, how = self._of_table(table, path)
            return ReadMolecules(molecules, [*map(str, rows)], [], table.iloc[rows], how)
        if self.form == "fingerprint":
            raise InputError(f"dataset.form: fingerprint needs a CSV file with SMILES, found {path.name}")
        files = self._files(path)
        found, read = self._read_files(files)
        names = [
            f"{files[k].name}:{i}" if len(several) > 1 else files[k].name
            for k, several in zip(read, found, strict=True)
            for i in range(len(several))
        ]
        of_files = [files[k] for k, several in zip(read, found, strict=True) for _ in several]
        return ReadMolecules([one for several in found for one in several], names, of_files)

    def _parts(self, read: ReadMolecules, path: Path) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The parts and the groups of molecules, that are given by values or folders."""
        values = read.values(name for name in (self.split_column, self.group_column) if name is not None)
        clusters = values[self.group_column].astype(str) if self.group_column else None
        if self.split_column:
            return given_parts(values[self.split_column], "split_column"), clusters
        if read.files and path.is_dir() and (folders := folders_of_parts(path)):
            return given_parts([_part_of(file, folders) for file in read.files], "path"), clusters
        return None, clusters

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        place = user_path(path, self.label())
        suffix = place.suffix.lower()
        if suffix == ".npy" or (suffix == ".npz" and not (place.is_file() and is_frames(place))):
            return super()._read_points(path, form)
        read = self._read(place, [])
        if not self.per_atom:
            cells = form.get("cells", False)
            if read.cells and not cells:
                raise InputError(f"{path}: expected molecules, as the model was fitted to, found crystals")
            if cells and not read.cells:
                warnings.warn(
                    f"{path}: the model was fitted to crystals, and no molecule has a cell: each is predicted as "
                    "atoms in a vacuum",
                    stacklevel=2,
                )
            return Points(self._points(read, cells, form["shape"][0]), read.names)
        atoms = Atoms.of(read)
        known = np.isin(atoms.charges, form["elements"])
        if not known.all():
            new = ", ".join(SYMBOLS[z - 1] for z in np.unique(atoms.charges[~known]))
            warnings.warn(
                f"{path}: {(~known).sum()} of {len(known)} atoms are left out, of elements that no atom of training is "
                f"({new})",
                stacklevel=2,
            )
        atoms = atoms.take(known)
        names = atoms.names(read)
        size = max(form["shape"][0], read.rows)
        return Points(self._points_of(read, atoms, size), names.pop("molecule").tolist(), names)

    def _points_of(self, read: ReadMolecules, atoms: Atoms, size: int) -> np.ndarray:
        """Charges and positions in angstrom of the molecules of atoms, each atom first, shape (n, size, 4)."""
        n = len(atoms.atom)
        check_fits("dataset.path", f"the {size:,} neighbours of {n:,} atoms", 32 * n * size)
        X, length = np.zeros((n, size, 4)), ANGSTROM[self.unit]
        for row, i, a in zip(X, atoms.molecule, atoms.atom, strict=True):
            one = read.molecules[i]
            order = np.concatenate([[a], np.delete(np.arange(size), a)])
            row[:] = one.rows(size, length)[order]
        return X

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

    def _table(self, path: Path, targets: list[str], about: bool = False) -> pd.DataFrame:
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
        others_given = [("split_column", self.split_column), ("group_column", self.group_column)] if about else []
        given = [*has, *((key, name) for key, name in others_given if name), *(("target", name) for name in targets)]
        require_values(table, given, path)
        return without_units(table, units_of(table[targets], options), options)

    def _of_table(self, table: pd.DataFrame, path: Path) -> tuple[list[Molecule], np.ndarray, str]:
        """The molecules of a table that could be read, their rows, and how SMILES got their positions."""
        if self.file_column not in table:
            molecules, rows = self._of_smiles(table, path, of_smiles)
            return molecules, rows, f", {EMBEDDING}"
        files = [path.parent / name for name in table[self.file_column]]
        several, read = self._read_files(files, f"expected one in each file that {path.name} lists")
        return [one for (one,) in several], read, ""

    def _of_smiles(
        self, table: pd.DataFrame, path: Path, make: Callable[[str, str, int], T]
    ) -> tuple[list[T], np.ndarray]:
        """What ``make`` makes of the SMILES of a table that could be read, and their rows."""
        smiles, found = table[self.smiles_column].tolist(), dict[int, T]()

        def one(i: int) -> None:
            found[i] = make(smiles[i], path.name, i)

        read = read_each(len(smiles), one, "molecules", self.on_error == "skip")
        return [found[i] for i in read], read

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
        """Raise ``InputError`` if most of the molecules have lengths as in the other unit; not of crystals.

        Hydrogens in metals have no bonds, or some across the boundary of the cell.
        """
        if not (some := [one for one in molecules[:_CHECKED] if not len(one.cell)]):
            return
        size = max(map(len, some))
        charges, lengths = np.zeros((len(some), size), int), np.full((len(some), size, size), np.inf)
        for i, one in enumerate(some):
            n = len(one)
            charges[i, :n] = one.charges
            lengths[i, :n, :n] = np.linalg.norm(one.positions[:, None] - one.positions, axis=-1)
            lengths[i, range(n), range(n)] = np.inf
        check_unit(charges, lengths, self.unit, "dataset.unit")

    def _points(self, read: ReadMolecules, cells: bool, size: int = 0) -> np.ndarray:
        """Fingerprints, atoms with cells, or Coulomb matrices; the last two of at least ``size`` rows."""
        if read.fingerprints is not None:
            return read.fingerprints
        if not cells:
            return self._matrices(read.molecules, max(size, read.size))
        size, length = max(size, read.rows), ANGSTROM[self.unit]
        check_fits(
            "dataset.path", f"{len(read.molecules):,} crystals of {size:,} rows", 32 * len(read.molecules) * size
        )
        return np.stack([one.rows(size, length) for one in read.molecules])

    def _per_atom_of(self, y: np.ndarray, targets: list[str], read: ReadMolecules) -> tuple[np.ndarray, list[str]]:
        """Targets, those divided by the numbers of atoms that ``divide`` says, and their names."""
        totals = names_of(self.divide) if self.divide is not None else [*_TOTALS] if read.cells else []
        names = [f"{name} per atom" if name in totals else name for name in targets]
        sizes = np.array([*map(len, read.molecules)])
        if self.divide is None and read.cells and y.dtype.kind in "iuf":
            _warn_about_totals(y, sizes, targets, totals)
        if names == targets:
            return y, targets
        if y.dtype.kind not in "iuf":
            raise InputError(f"dataset.divide: expected names of numbers, found {targets} of type {y.dtype}")
        divisors = np.stack([sizes if name in totals else np.ones_like(sizes) for name in targets], -1)
        return y / divisors.reshape(y.shape), names

    def _matrices(self, molecules: list[Molecule], size: int) -> np.ndarray:
        """Coulomb matrices in atomic units, float64, which energies need, shape (n, size, size)."""
        check_fits("dataset.path", f"{len(molecules):,} molecules of {size:,} atoms", 8 * len(molecules) * size**2)
        X = np.zeros((len(molecules), size, size))
        for row, one in zip(X, molecules, strict=True):
            n, positions = len(one), one.positions / (BOHR / ANGSTROM[self.unit])
            row[:n, :n] = coulomb_matrices(one.charges[None], positions[None])[0]
        return X


def _warn_about_totals(y: np.ndarray, sizes: np.ndarray, names: list[str], totals: list[str]) -> None:
    """Warn of numbers that grow with the cell of a crystal, and are not among ``totals``, which are divided."""
    for name, values in zip(names, y.reshape(len(y), -1).T, strict=True):
        if name in totals or not values.std() or not sizes.std():
            continue
        correlation = float(np.corrcoef(values, sizes)[0, 1])
        if abs(correlation) > _CORRELATED:
            warnings.warn(
                f"dataset.target: {name} grows with the number of atoms in the cell (correlation {correlation:.2f}), "
                f"which representations of crystals do not see; dataset.divide={name} learns it per atom, "
                "dataset.divide=[] keeps it",
                stacklevel=2,
            )


def _part_of(file: Path, folders: Mapping[str, Path]) -> str:
    """The part whose folder has a file; training where it is in none."""
    return next((part for part, folder in folders.items() if folder in file.parents), TRAIN)

"""Molecules that were read, and values of them and of their atoms by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orbit.core.errors import InputError, shortened, suggestion
from orbit.data.molecule_files import Molecule
from orbit.representations.molecules import SYMBOLS

if TYPE_CHECKING:  # pandas is imported when a table is read
    import pandas as pd


@dataclass(frozen=True)
class ReadMolecules:
    """Molecules with the name and the file of each, the rows of the table that lists them, and how they were made."""

    molecules: list[Molecule]
    names: list[str]
    files: list[Path] = field(default_factory=list)
    table: pd.DataFrame | None = None
    how: str = ""
    fingerprints: np.ndarray | None = None  # shape (n, entries), in place of molecules

    @property
    def size(self) -> int:
        return max(map(len, self.molecules))

    @property
    def rows(self) -> int:
        """Rows of atoms and of vectors of cells."""
        return max(len(one) + len(one.cell) for one in self.molecules)

    @property
    def cells(self) -> bool:
        """Whether some are crystals."""
        return any(len(one.cell) for one in self.molecules)

    def values(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Values of each molecule, of the table or of the files."""
        table = self.table if self.table is not None else {}

        def of(name: str) -> Any:
            return table[name] if name in table else [_value(one, name, i) for i, one in enumerate(self.molecules)]

        return {name: np.asarray(of(name)) for name in names}


@dataclass(frozen=True)
class Atoms:
    """Atoms of several molecules: the molecule of each, its place there, and its charge, all of shape (n,)."""

    molecule: np.ndarray
    atom: np.ndarray
    charges: np.ndarray

    @classmethod
    def of(cls, read: ReadMolecules) -> Atoms:
        sizes = [*map(len, read.molecules)]
        charges = np.concatenate([one.charges for one in read.molecules]).astype(int)
        return cls(np.repeat(np.arange(len(sizes)), sizes), np.concatenate([*map(np.arange, sizes)]), charges)

    def take(self, rows: np.ndarray) -> Atoms:
        return Atoms(self.molecule[rows], self.atom[rows], self.charges[rows])

    def names(self, read: ReadMolecules) -> dict[str, np.ndarray]:
        """Columns that name them in tables."""
        symbols = np.array(SYMBOLS)[self.charges - 1]
        return {"molecule": np.array(read.names)[self.molecule], "atom": self.atom, "element": symbols}

    def unknown(self, known: np.ndarray, targets: list[str]) -> str:
        """A sentence about those whose values are not known."""
        counts = [
            f"{(~known[self.charges == z]).sum()} of {(self.charges == z).sum()} {SYMBOLS[z - 1]}"
            for z in np.unique(self.charges[~known])
        ]
        return f"atoms without a finite value of {', '.join(targets)} are left out: {', '.join(counts)}"


def padded(values: np.ndarray, size: int) -> np.ndarray:
    """Rows of atoms, with zeros up to a number of atoms."""
    return np.pad(values, ((0, size - len(values)), (0, 0)))


def forces_of(molecule: Molecule, name: str, number: int) -> np.ndarray:
    """The vectors of its atoms, shape (atoms, 3)."""
    found = np.asarray(_named(molecule, name, number, "runner.forces"))
    if found.shape != (len(molecule), 3):
        raise InputError(f"runner.forces: expected three numbers for each atom, {name!r} has shape {found.shape}")
    return found


def values_of_atoms(molecule: Molecule, names: list[str], number: int) -> np.ndarray:
    """Values of its atoms, shape (atoms, len(names))."""
    columns = [np.asarray(_named(molecule, name, number, "dataset.target")) for name in names]
    for name, found in zip(names, columns, strict=True):
        if found.shape != (len(molecule),):
            raise InputError(
                f"dataset.target: expected a value for each of the {len(molecule)} atoms of molecule {number} "
                f"(dataset.per_atom=true), {name!r} has shape {found.shape}"
            )
    return np.column_stack(columns)


def _value(molecule: Molecule, name: str, number: int) -> Any:
    """One value of a molecule by its name."""
    value = _named(molecule, name, number, "dataset.target")
    if np.ndim(value):
        is_of_atoms = np.shape(value) == (len(molecule),)
        way = "; values of atoms are read with dataset.per_atom=true" if is_of_atoms else ""
        raise InputError(
            f"dataset.target: expected one number or name for a molecule, {name!r} has shape {np.shape(value)}{way}"
        )
    return value


def _named(molecule: Molecule, name: str, number: int, key: str) -> Any:
    """What a molecule has under a name, from the file's own keys or from a calculation."""
    values = molecule.values
    if name not in values:
        has = shortened(", ".join(map(str, values))) or "none"
        raise InputError(f"{key}: molecule {number} has no value {name!r}{suggestion(name, values)} It has {has}")
    return values[name]

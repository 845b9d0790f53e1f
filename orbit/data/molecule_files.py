"""Charges, positions and values of molecules in files: what ASE and RDKit read, and the files of QM9."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from orbit.core.errors import DataFileError, shortened
from orbit.data.files import read_arrays, read_each, readable
from orbit.representations.molecules import SYMBOLS
from orbit.representations.neighbours import CELL

_SDF, _XYZ = (".sdf", ".sd", ".mol"), (".xyz", ".extxyz")
#: Suffixes of the files that are read from a folder, in lower case.
SUFFIXES = (*_XYZ, *_SDF, ".db", ".json", ".cif", ".pdb", ".traj", ".vasp")

# The comment line of QM9 (Ramakrishnan et al. 2014, table 2), after "gdb"; energies in hartree, lengths in bohr.
_QM9 = ["index", "A", "B", "C", "mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "U0", "U", "H", "G", "Cv"]

# Arrays of the .npz files of MD17, sGDML and rMD17: charges, shape (atoms,) or (frames, atoms), positions in angstrom,
# and other names of what is energy and forces here.
_CHARGES, _POSITIONS = ("nuclear_charges", "z"), ("coords", "R")
_RENAMED = {"energies": "energy", "E": "energy", "F": "forces"}

# Distance of neighbours across the boundary of a cell, in angstrom.
_FARTHEST = 6.0

# A line that is an atom: a symbol or an atomic number, and three coordinates.
_ATOM = re.compile(r"^(\s*)([A-Za-z]{1,3}|\d{1,3})(?=(?:\s+[-+]?\.?\d\S*){3})", re.MULTILINE)

#: How conformers of SMILES are made.
EMBEDDING, _SEED = "conformers by RDKit (ETKDGv3 of seed 0, MMFF94)", 0

#: What fingerprints are, and the number of their entries.
FINGERPRINT, _ENTRIES = "fingerprints of fragments (Morgan, radius 2)", 2048


@dataclass(frozen=True)
class Molecule:
    """Nuclear charges, shape (atoms,), positions, shape (atoms, 3), in the unit of the file, and values by name.

    Values are of the molecule or, in arrays, of each atom, such as ``forces``. ``cell`` has the vectors along which it
    repeats, shape (0 to 3, 3); none where no atoms are closer than 6 angstrom across the boundary of the cell.
    """

    charges: np.ndarray
    positions: np.ndarray
    values: dict[str, Any]
    cell: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    def __len__(self) -> int:
        return len(self.charges)

    def rows(self, size: int, length: float) -> np.ndarray:
        """Charges and positions of atoms, then :data:`CELL` and vectors of the cell, in angstrom, shape (size, 4).

        ``length`` is the unit of the file in angstrom; further rows are 0.
        """
        found, n = np.zeros((size, 4)), len(self)
        found[:n] = np.column_stack([self.charges, length * self.positions])
        found[n : n + len(self.cell)] = np.column_stack([np.full(len(self.cell), CELL), length * self.cell])
        return found


def read_molecules(file: Path, form: str | None = None, skip: bool = False) -> list[Molecule]:
    """The molecules of a file, one or more, in the format that its suffix or ASE's name ``form`` says.

    With ``skip`` entries of SDF files that cannot be read are left out, and a warning counts them.

    Raises
    ------
    DataFileError
        If it cannot be read, has no molecules, or positions that are not finite, or needs a package that is not
        installed.
    """
    with readable(file.absolute(), "is not a file of molecules that can be read"):
        found = list(_reader(file, form, skip))
    if not found:
        raise DataFileError(f"{file.absolute()} has no molecules")
    for i, one in enumerate(found):
        if not (np.isfinite(one.positions).all() and np.isfinite(one.cell).all()):
            raise DataFileError(f"{file.absolute()}: molecule {i} has positions that are NaN or infinite")
    return found


def of_smiles(smiles: str, where: str, row: int) -> Molecule:
    """A molecule with hydrogens and the positions of one conformer, which the same SMILES gives again.

    Raises
    ------
    DataFileError
        For what is no SMILES, or has no conformer, naming its row in ``where``.
    """
    molecule, place = _of_smiles(smiles, where, row)
    return _embedded(molecule, place, {})


def fingerprint_of_smiles(smiles: str, where: str, row: int) -> np.ndarray:
    """log(1 + count) of each circular fragment of a molecule (Morgan, radius 2, folded), float32, shape (2048,).

    Raises
    ------
    DataFileError
        For what is no SMILES, naming its row in ``where``.
    """
    molecule, _ = _of_smiles(smiles, where, row)
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=_ENTRIES)
    return np.log1p(generator.GetCountFingerprintAsNumPy(molecule).astype(np.float32))


def _of_smiles(smiles: str, where: str, row: int) -> tuple[Any, str]:
    """The molecule of RDKit, and where it is."""
    with readable(where, "cannot be read"):
        from rdkit import Chem, rdBase
    place = f"{where}: row {row + 1}, {smiles!r},"
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise DataFileError(f"{place} is no SMILES that RDKit reads")
    return molecule, place


def _reader(file: Path, form: str | None, skip: bool) -> Iterator[Molecule]:
    suffix = file.suffix.lower()
    if suffix == ".npz":
        return _of_arrays(read_arrays(file, ""), str(file.absolute()))
    if form is None and suffix in _SDF:
        return _by_rdkit(file, skip)
    if form is None and suffix == ".db":
        return _of_database(file)
    if form is None and suffix in _XYZ and _is_qm9(file):
        return _of_qm9(file.read_text().splitlines())
    return _by_ase(file, form)


def _by_ase(file: Path, form: str | None) -> Iterator[Molecule]:
    import ase.io

    try:
        yield from map(_of_atoms, list(ase.io.iread(file, index=":", format=form)))
    except KeyError:  # a symbol that is not written as ASE writes it
        if file.suffix.lower() not in _XYZ:
            raise
        text = _ATOM.sub(lambda atom: atom[1] + _symbol(atom[2]), file.read_text())
        yield from map(_of_atoms, ase.io.read(io.StringIO(text), index=":", format=form or "extxyz"))


def _symbol(written: str) -> str:
    """The symbol of an element, given in any case or as its atomic number."""
    if written.isdigit() and 0 < int(written) <= len(SYMBOLS):
        return SYMBOLS[int(written) - 1]
    if written.capitalize() not in SYMBOLS:
        raise KeyError(written)
    return written.capitalize()


def _of_atoms(atoms: Any) -> Molecule:
    of_atoms = {name: values for name, values in atoms.arrays.items() if name not in ("numbers", "positions")}
    values = of_atoms | dict(getattr(atoms.calc, "results", {})) | atoms.info
    molecule = Molecule(atoms.numbers, atoms.positions, values)
    return replace(molecule, cell=atoms.cell[atoms.pbc]) if atoms.pbc.any() and _meets_itself(atoms) else molecule


def _meets_itself(atoms: Any) -> bool:
    from ase.neighborlist import neighbor_list

    is_short = (atoms.cell.lengths()[atoms.pbc] < _FARTHEST).any()
    return bool(is_short or neighbor_list("S", atoms, _FARTHEST).any())


def _of_database(file: Path) -> Iterator[Molecule]:
    import ase.db

    for row in ase.db.connect(file).select():
        molecule = _of_atoms(row.toatoms())
        yield replace(molecule, values=molecule.values | dict(row.data) | row.key_value_pairs)


def _is_qm9(file: Path) -> bool:
    with file.open(errors="replace") as opened:
        return opened.readline().strip().isdigit() and opened.readline().startswith("gdb")


def _of_qm9(lines: Sequence[str]) -> Iterator[Molecule]:
    """Frames of atoms, and three lines of frequencies, SMILES and InChI; 2.*^-6 is 2e-6 as Mathematica writes it."""
    start = 0
    while start < len(lines) and lines[start].strip():
        n = int(lines[start])
        atoms = [line.replace("*^", "e").split() for line in lines[start + 2 : start + 2 + n]]
        values: dict[str, Any] = dict(
            zip(_QM9, map(float, lines[start + 1].replace("*^", "e").split()[1:]), strict=True)
        )
        if all(len(atom) > 4 for atom in atoms):
            values["charges"] = np.array([atom[4] for atom in atoms], float)  # of Mulliken
        charges = np.array([SYMBOLS.index(atom[0]) + 1 for atom in atoms])
        yield Molecule(charges, np.array([atom[1:4] for atom in atoms], float).reshape(n, 3), values)
        start += n + 5


def is_frames(file: Path) -> bool:
    """Whether an .npz file has charges and positions of frames, as those of MD17."""
    with np.load(file, allow_pickle=False) as found:
        return all(any(name in found for name in names) for names in (_CHARGES, _POSITIONS))


def _of_arrays(arrays: dict[str, np.ndarray], where: str) -> Iterator[Molecule]:
    """Frames with their energies and forces, and all other arrays that have a value for each."""
    found = [next((arrays.pop(name) for name in names if name in arrays), None) for names in (_CHARGES, _POSITIONS)]
    for one, names in zip(found, (_CHARGES, _POSITIONS), strict=True):
        if one is None:
            has = shortened(", ".join(arrays)) or "none"
            raise DataFileError(f"{where}: expected an array {' or '.join(names)}, found {has}")
    charges, positions = (np.asarray(one) for one in found)
    n = len(positions)
    if (
        positions.ndim != 3
        or positions.shape[2] != 3
        or charges.shape not in (positions.shape[1:2], positions.shape[:2])
    ):
        raise DataFileError(
            f"{where}: expected positions of shape (frames, atoms, 3) and charges of shape (atoms,) or (frames, "
            f"atoms), found {positions.shape} and {charges.shape}"
        )
    values = {_RENAMED.get(name, name): each for name, each in arrays.items() if each.shape[:1] == (n,)}
    values = {name: each[:, 0] if each.shape == (n, 1) else each for name, each in values.items()}
    for i, z in enumerate(np.broadcast_to(charges, positions.shape[:2]).astype(int)):
        is_atom, own = z > 0, {name: each[i] for name, each in values.items()}
        own |= {name: each[is_atom] for name, each in own.items() if np.shape(each)[:1] == z.shape}
        yield Molecule(z[is_atom], positions[i, is_atom].astype(np.float64), own)


def _by_rdkit(file: Path, skip: bool) -> Iterator[Molecule]:
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs(), file.open("rb") as opened:
        entries = list(Chem.ForwardSDMolSupplier(opened, sanitize=False, removeHs=False))
    found: dict[int, Molecule] = {}

    def read(i: int) -> None:
        found[i] = _of_entry(entries[i], f"{file.absolute()}: molecule {i}")

    yield from (found[i] for i in read_each(len(entries), read, f"molecules of {file.name}", skip))


def _of_entry(entry: Any, where: str) -> Molecule:
    from rdkit import Chem

    if entry is None:
        raise DataFileError(f"{where} is not an entry of an SDF file that RDKit reads")
    values = entry.GetPropsAsDict()
    if entry.GetConformer().Is3D():
        charges = np.array([atom.GetAtomicNum() for atom in entry.GetAtoms()])
        return Molecule(charges, entry.GetConformer().GetPositions(), values)
    try:
        Chem.SanitizeMol(entry)  # a drawing
    except ValueError as error:
        raise DataFileError(f"{where} is no molecule that RDKit takes ({error})") from error
    return _embedded(entry, where, values)


def _embedded(molecule: Any, where: str, values: dict[str, Any]) -> Molecule:
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

    with rdBase.BlockLogs():
        whole = Chem.AddHs(molecule)
        how: Any = rdDistGeom.ETKDGv3()
        how.randomSeed = _SEED
        if rdDistGeom.EmbedMolecule(whole, how) != 0:
            how.useRandomCoords = True  # for large rings
            if rdDistGeom.EmbedMolecule(whole, how) != 0:
                raise DataFileError(f"{where} has no conformer that RDKit finds; dataset.form=fingerprint needs none")
        if rdForceFieldHelpers.MMFFHasAllMoleculeParams(whole):
            rdForceFieldHelpers.MMFFOptimizeMolecule(whole)
    charges = np.array([atom.GetAtomicNum() for atom in whole.GetAtoms()])
    return Molecule(charges, whole.GetConformer().GetPositions(), values)


def frames_text(X: np.ndarray, energies: np.ndarray, forces: np.ndarray) -> str:
    """An extended XYZ file of frames, shape (n, atoms, 4), with energies, shape (n,), and forces, (n, atoms, 3).

    >>> print(frames_text(np.array([[[1, 0, 0, 0.5]]]), np.array([-13.6]), np.zeros((1, 1, 3))))
    1
    Properties=species:S:1:pos:R:3:forces:R:3 energy=-13.6 pbc="F F F"
    H 0.00000000 0.00000000 0.50000000 0.00000000 0.00000000 0.00000000
    <BLANKLINE>
    """
    lines = []
    for atoms, energy, pulls in zip(X, energies, forces, strict=True):
        is_atom, cell = atoms[:, 0] > 0, atoms[atoms[:, 0] == CELL, 1:]
        vectors = " ".join(f"{number:.8f}" for number in np.pad(cell, ((0, 3 - len(cell)), (0, 0))).ravel())
        lattice = f'Lattice="{vectors}" ' if len(cell) else ""
        pbc = " ".join("T" if k < len(cell) else "F" for k in range(3))
        properties = f'Properties=species:S:1:pos:R:3:forces:R:3 energy={float(energy)} pbc="{pbc}"'
        lines += [str(is_atom.sum()), lattice + properties]
        for (charge, *position), pull in zip(atoms[is_atom], pulls[is_atom], strict=True):
            lines.append(" ".join([SYMBOLS[int(charge) - 1], *(f"{number:.8f}" for number in (*position, *pull))]))
    return "\n".join([*lines, ""])

"""A user's own molecules."""

from __future__ import annotations

import ase.db
import ase.io
import numpy as np
import pytest
from ase.build import molecule

from orbit.core.errors import InputError
from orbit.data import Molecules
from orbit.data.molecules import BOHR, coulomb_matrices
from orbit.testing import DatasetContract

NAMES = ["H2O", "CH4", "C6H6", "CH3Cl", "NH3", "C2H6", "CO2", "HCN"]


def molecules(count: int = 32) -> list[ase.Atoms]:
    rng = np.random.default_rng(0)
    found = []
    for i in range(count):
        atoms = molecule(NAMES[i % len(NAMES)])
        atoms.rattle(0.1, rng=rng)
        atoms.info = {"heat": float(i) / 3, "kind": "odd" if i % 2 else "even", "both": [1.0, 2.0]}
        found.append(atoms)
    return found


class TestMolecules(DatasetContract):
    sizes = (24, 8)
    path: str | None = None

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path):
        ase.io.write(tmp_path / "all.extxyz", molecules())
        self.path = str(tmp_path / "all.extxyz")

    def create(self, **params):
        return Molecules(self.path, target="heat", **params)


def matrix_of(atoms: ase.Atoms) -> np.ndarray:
    """By the definition, entry by entry."""
    Z, R = atoms.numbers, atoms.positions / BOHR
    return np.array(
        [
            [0.5 * Z[i] ** 2.4 if i == j else Z[i] * Z[j] / np.linalg.norm(R[i] - R[j]) for j in range(len(Z))]
            for i in range(len(Z))
        ]
    )


@pytest.mark.parametrize("form", ["a.extxyz", "a.xyz", "a.traj", "a.json", "a.db", "folder", "table.csv"])
def test_files_are_read_as_coulomb_matrices_with_their_values(tmp_path, form):
    written = molecules(8)
    target = "heat"
    if form == "a.db":
        database = ase.db.connect(tmp_path / form)
        for atoms in written:
            database.write(atoms, heat=atoms.info["heat"])
    elif form in ("folder", "table.csv"):
        (tmp_path / "folder").mkdir()
        for i, atoms in enumerate(written):
            ase.io.write(tmp_path / "folder" / f"{i}.extxyz", atoms)
        rows = "".join(f"folder/{i}.extxyz,{atoms.info['heat']}\n" for i, atoms in enumerate(written))
        (tmp_path / "table.csv").write_text("file,heat\n" + rows)
    else:
        for atoms in written:
            if form in ("a.traj", "a.json"):  # which keep what a calculator found, and not info
                atoms.calc = ase.calculators.singlepoint.SinglePointCalculator(atoms, energy=atoms.info["heat"])
                target = "energy"
        ase.io.write(tmp_path / form, written)
    data = Molecules(str(tmp_path / form), target=target, task="regression").load(0)
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    assert X.shape == (8, 12, 12)
    assert data.task == "regression"
    for atoms in written:
        (row,) = np.flatnonzero(np.isclose(y, atoms.info["heat"]))
        n = len(atoms)
        np.testing.assert_allclose(X[row, :n, :n], matrix_of(atoms), rtol=2e-6)
        assert not X[row, n:].any()
        assert not X[row, :, n:].any()


def test_classes_and_several_targets(tmp_path):
    ase.io.write(tmp_path / "a.extxyz", molecules(8))
    assert Molecules(str(tmp_path / "a.extxyz"), target="kind").load(0).task == "classification"
    both = Molecules(str(tmp_path / "a.extxyz"), target=["heat", "heat"], task="regression").load(0)
    assert both.y_train.shape == (6, 2)


def test_new_molecules_are_padded_to_the_size_of_the_training_molecules(tmp_path):
    ase.io.write(tmp_path / "a.extxyz", molecules(8))
    loader = Molecules(str(tmp_path / "a.extxyz"), target="heat", task="regression")
    ase.io.write(tmp_path / "new.xyz", molecules(2))
    points = loader.read_points(str(tmp_path / "new.xyz"), loader.load(0).form)
    assert points.ids == ["new.xyz:0", "new.xyz:1"]
    assert points.X.shape == (2, 12, 12)
    ase.io.write(tmp_path / "large.xyz", molecule("C60"))
    with pytest.raises(InputError, match="molecules of at most 12 atoms, the most of the training molecules, found 60"):
        loader.read_points(str(tmp_path / "large.xyz"), {"shape": [12, 12]})


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (None, {}, "path: expected a file with molecules or a folder of such files"),
        ("no molecule", {}, "is not a file of molecules that ASE reads"),
        ("1\nheat=1\nHe 0 0 0\n1\n\nH 0 0 0\n", {"target": "heat"}, "target: molecule 1 has no value 'heat'"),
        ("1\nheat=1\nQq 0 0 0\n", {"target": "heat"}, r"is not a file of molecules that ASE reads \(KeyError: 'Qq'\)"),
        ("1\nheta=1\nH 0 0 0\n", {"target": "heat"}, "target: molecule 0 has no value 'heat'.*heta"),
        ('1\nboth="1 2"\nH 0 0 0\n', {"target": "both"}, r"target: expected one number or name .* has shape \(2,\)"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, content, settings, message):
    if content is not None:
        (tmp_path / "a.xyz").write_text(content)
    with pytest.raises(InputError, match=message):
        Molecules(str(tmp_path / "a.xyz"), **settings).load(0)


def test_equal_positions_do_not_divide_by_zero():
    assert np.isfinite(coulomb_matrices(np.ones((1, 2)), np.zeros((1, 2, 3)))).all()

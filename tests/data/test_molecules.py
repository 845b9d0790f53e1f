"""A user's own molecules."""

import ase.db
import ase.io
import numpy as np
import pytest
from ase.build import molecule
from rdkit import Chem
from rdkit.Chem import AllChem

from orbit.core.errors import InputError
from orbit.data import Molecules
from orbit.data.molecule_files import read_molecules
from orbit.data.molecules import BOHR, coulomb_matrices
from orbit.representations import ManyBody
from orbit.representations.molecules import SYMBOLS
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
    component, sizes = Molecules, (24, 8)

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path):
        ase.io.write(tmp_path / "all.extxyz", molecules())
        self.params = {"path": str(tmp_path / "all.extxyz"), "target": "heat"}


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
    assert loader.read_points(str(tmp_path / "large.xyz"), {"shape": [12, 12]}).X.shape == (1, 60, 60)


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (None, {}, "path: expected a file with molecules or a folder of such files"),
        ("no molecule", {}, "is not a file of molecules that can be read"),
        ("1\nheat=1\nH 0 0 0\n1\nheat=1\nH 0 nan 0\n", {"target": "heat"}, "molecule 1 has positions that are NaN"),
        ("1\nheat=1\nHe 0 0 0\n1\n\nH 0 0 0\n", {"target": "heat"}, "target: molecule 1 has no value 'heat'"),
        ("1\nheta=1\nH 0 0 0\n", {"target": "heat"}, "target: molecule 0 has no value 'heat'.*heta"),
        ('1\nboth="1 2"\nH 0 0 0\n', {"target": "both"}, r"target: expected one number or name .* has shape \(2,\)"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, content, settings, message):
    if content is not None:
        (tmp_path / "a.xyz").write_text(content)
    with pytest.raises(InputError, match=message):
        Molecules(str(tmp_path / "a.xyz"), **settings).load(0)


def test_damaged_files_entries_and_smiles_are_left_out_on_request(tmp_path):
    (tmp_path / "some").mkdir()
    for i, atoms in enumerate(molecules(8)):
        ase.io.write(tmp_path / "some" / f"{i}.extxyz", atoms)
    (tmp_path / "some" / "3.extxyz").write_text("no molecule")
    entries = [Chem.MolToMolBlock(Chem.MolFromSmiles("C" * n)) + f">  <heat>\n{n}.5\n\n$$$$\n" for n in range(1, 7)]
    (tmp_path / "all.sdf").write_text("".join([*entries[:3], "\n\n\n 99 99\n$$$$\n", *entries[3:]]))
    (tmp_path / "all.csv").write_text("smiles,heat\nC,1.5\nC(C,2.5\nCC,3.5\nCCC,4.5\nCCCC,5.5\n")
    for name, kept, left_out in (("some", 7, "1 of 8 files"), ("all.sdf", 5, "1 of 6"), ("all.csv", 4, "1 of 5 mol")):
        settings = {"path": str(tmp_path / name), "target": "heat", "task": "regression"}
        with pytest.raises(InputError):
            Molecules(**settings).load(0)
        with pytest.warns(UserWarning, match=f"{left_out}.* left out, e.g. "):
            data = Molecules(**settings, on_error="skip").load(0)
        assert len(data.X_train) + len(data.X_test) == kept
        with pytest.warns(UserWarning, match=f"{left_out}.* left out, e.g. "):
            points = Molecules(**settings, on_error="skip").read_points(settings["path"], data.form)
        assert len(points.ids) == len(points.X) == kept


@pytest.mark.parametrize("form", ["folders", "values", "table.csv"])
def test_parts_and_groups_are_given_as_those_of_pictures(tmp_path, form):
    written, parts = molecules(12), ["train", "test", "Valid", "training"] * 3
    for i, atoms in enumerate(written):
        atoms.info |= {"part": parts[i], "parent": f"m{i % 4}"}
        (tmp_path / "folders" / parts[i]).mkdir(parents=True, exist_ok=True)
        ase.io.write(tmp_path / "folders" / parts[i] / f"{i}.extxyz", atoms)
    columns = {"split_column": "part"}
    if form == "folders":
        (tmp_path / "folders" / "training").rename(tmp_path / "folders" / "train2")  # in no part: training points
        columns = {}
    elif form == "values":
        ase.io.write(tmp_path / "values", written, format="extxyz")
        columns |= {"format": "extxyz"}
    else:
        rows = [f"folders/{parts[i]}/{i}.extxyz,{i / 3},{parts[i]},m{i % 4}" for i in range(12)]
        (tmp_path / form).write_text("\n".join(["file,heat,part,parent", *rows]))
    settings = {"path": str(tmp_path / form), "target": "heat", "task": "regression", "group_column": "parent"}
    data = Molecules(**settings, **columns).load(0)
    assert sorted(np.round(3 * data.y_test)) == [1, 5, 9]
    assert sorted(np.round(3 * data.y_train[data.folds == 0])) == [2, 6, 10]
    assert {*data.clusters} == {"m0", "m2", "m3"}
    if form == "table.csv":
        data = Molecules(**settings).load(0)
        assert len(data.X_test) == 3  # a quarter of the groups


def test_equal_positions_do_not_divide_by_zero():
    assert np.isfinite(coulomb_matrices(np.ones((1, 2)), np.zeros((1, 2, 3)))).all()


QM9 = """5
gdb 1\t157.7\t157.7\t157.7\t0.\t13.21\t-0.3877\t0.1171\t0.5048\t35.3\t0.04\t-40.47893\t-40.4\t-40.4\t-40.4\t6.4\t
C\t-0.0126981359\t 1.0858041578\t 0.0080009958\t-0.535689
H\t 2.1504159*^-3\t-6.0313176*^-3\t 1.9761204*^-3\t 0.133921
H\t 1.0117308433\t 1.4637511618\t 2.765748*^-4\t 0.133922
H\t-0.540815069\t 1.4475266138\t-0.8766437152\t 0.133923
H\t-0.5238136345\t 1.4379326443\t 0.9063972942\t 0.133923
1341.307\t1341.3284\t1341.365
C\tC\t
InChI=1S/CH4/h1H4\tInChI=1S/CH4/h1H4
"""


def test_files_of_qm9_have_its_numbers_and_names(tmp_path):
    (tmp_path / "dsgdb9nsd.xyz").write_text(QM9 + QM9.replace("-40.47893", "-4.2*^1"))
    first, second = read_molecules(tmp_path / "dsgdb9nsd.xyz")
    assert first.values["U0"] == -40.47893
    assert second.values["U0"] == -42
    assert second.values["gap"] == 0.5048
    assert first.charges.tolist() == [6, 1, 1, 1, 1]
    np.testing.assert_allclose(first.positions[1], [2.1504159e-3, -6.0313176e-3, 1.9761204e-3])


@pytest.mark.parametrize("symbols", [["cl", "H"], ["17", "1"], ["CL", "h"]])
def test_symbols_are_read_in_any_case_and_as_numbers(tmp_path, symbols):
    (tmp_path / "a.xyz").write_text(f"2\nheat=1.5\n{symbols[0]} 0 0 0\n{symbols[1]} 0 0 1.27\n")
    (one,) = read_molecules(tmp_path / "a.xyz")
    assert one.charges.tolist() == [17, 1]
    assert one.values["heat"] == 1.5


SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CN", "C", "CCl", "O", "N"]


def test_smiles_get_the_same_conformer_every_time(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,heat\n" + "".join(f"{s},{i / 3}\n" for i, s in enumerate(SMILES)))
    loader = Molecules(str(tmp_path / "a.csv"), target="heat")
    one, two = loader.load(0), loader.load(0)
    np.testing.assert_array_equal(one.X_train, two.X_train)
    assert one.X_train.shape == (6, 12, 12)
    assert "ETKDGv3 of seed 0" in one.source
    (tmp_path / "new.csv").write_text("smiles\nCCO\nCCCCCC\n")
    points = loader.read_points(str(tmp_path / "new.csv"), one.form)
    assert points.X.shape == (2, 20, 20)
    (tmp_path / "capitals.csv").write_text(
        (tmp_path / "a.csv").read_text().replace("smiles", "SMILES").replace(",", ";").replace("\n", " eV\n")
    )
    capitals = Molecules(str(tmp_path / "capitals.csv"), target="heat eV").load(0)
    assert capitals.task == "regression"
    np.testing.assert_array_equal(capitals.X_train, Molecules(str(tmp_path / "a.csv"), target="heat").load(0).X_train)
    (tmp_path / "bad.csv").write_text("smiles,heat\nCCO,1\nC(C,2\n")
    with pytest.raises(InputError, match=r"bad\.csv: row 2, 'C\(C', is no SMILES that RDKit reads"):
        Molecules(str(tmp_path / "bad.csv"), target="heat").load(0)


def test_fingerprints_of_smiles_count_fragments(tmp_path):
    same = ["CCO", "OCC", "CCCCCO"]
    table = "smiles,kind\n" + "".join(f"{s},{'ab'[i % 2]}\n" for i, s in enumerate([*SMILES, *same, "OCCCCC"]))
    (tmp_path / "a.csv").write_text(table)
    loader = Molecules(str(tmp_path / "a.csv"), target="kind", form="fingerprint")
    data = loader.load(0)
    assert data.X_train.shape == (9, 2048)
    assert loader.shown_as == "image"
    assert loader.representation_for({"form": "fingerprint"}) == {"name": "raw"}
    X = loader.read_points(str(tmp_path / "a.csv"), data.form).X
    np.testing.assert_array_equal(X[0], X[8])  # CCO in both orders
    np.testing.assert_array_equal(X[0], X[9])
    np.testing.assert_allclose(np.expm1(X[0]).sum(), 3 + 3, rtol=1e-5)  # an environment of each atom at radius 0 and 1
    ase.io.write(tmp_path / "all.extxyz", molecules())
    with pytest.raises(InputError, match="form: fingerprint needs a CSV file with SMILES, found all.extxyz"):
        Molecules(str(tmp_path / "all.extxyz"), form="fingerprint").load(0)
    with pytest.raises(InputError, match="form: expected 'positions' with dataset.per_atom"):
        Molecules(str(tmp_path / "a.csv"), form="fingerprint", per_atom=True).load(0)


def test_sdf_files_have_positions_and_fields_and_drawings_are_embedded(tmp_path):
    with Chem.SDWriter(str(tmp_path / "a.sdf")) as file:
        for i, text in enumerate(["CCO", "C"]):
            whole = Chem.AddHs(Chem.MolFromSmiles(text))
            AllChem.EmbedMolecule(whole, randomSeed=1)
            whole.SetDoubleProp("heat", i + 0.5)
            file.write(whole)
            expected = whole.GetConformer().GetPositions()
        drawing = Chem.MolFromSmiles("CCN")
        AllChem.Compute2DCoords(drawing)
        file.write(drawing)
    ethanol, methane, drawn = read_molecules(tmp_path / "a.sdf")
    assert (ethanol.values["heat"], methane.values["heat"]) == (0.5, 1.5)
    np.testing.assert_allclose(methane.positions, expected, atol=1e-4)
    assert sorted(drawn.charges) == [1] * 7 + [6, 6, 7]
    (tmp_path / "a.sdf").write_text((tmp_path / "a.sdf").read_text().replace("  9  8  0", "  9 88  0"))
    with pytest.raises(InputError, match=r"a\.sdf: molecule 0 is not an entry of an SDF file"):
        read_molecules(tmp_path / "a.sdf")


def test_lengths_in_the_other_unit_are_refused_with_the_key_to_set(tmp_path):
    ase.io.write(tmp_path / "a.extxyz", molecules(8))
    with pytest.raises(InputError, match=r"unit: expected lengths in bohr, but .*; set dataset\.unit=angstrom"):
        Molecules(str(tmp_path / "a.extxyz"), target="heat", unit="bohr").load(0)
    X = Molecules(str(tmp_path / "a.extxyz"), target="heat").load(0).X_train
    ManyBody().fit(X)
    with pytest.raises(InputError, match=r"expected lengths in angstrom, but .*; set representation\.unit=bohr"):
        ManyBody(unit="angstrom").fit(X)


def test_many_body_of_larger_molecules_and_new_elements(tmp_path):
    ase.io.write(tmp_path / "a.extxyz", molecules(8))
    loader = Molecules(str(tmp_path / "a.extxyz"), target="heat")
    data = loader.load(0)
    fitted = ManyBody().fit(data.X_train)
    padded = np.zeros((len(data.X_test), 30, 30))
    padded[:, :12, :12] = data.X_test
    np.testing.assert_allclose(fitted.transform(padded), fitted.transform(data.X_test), rtol=1e-6)
    ase.io.write(tmp_path / "new.xyz", molecule("SiH3"))
    points = loader.read_points(str(tmp_path / "new.xyz"), data.form)
    with pytest.warns(UserWarning, match=r"1 of 1 molecules have elements.* \(new elements: Si\); those have only"):
        fitted.transform(points.X)


def charged(count: int = 16) -> list[ase.Atoms]:
    """Molecules with a value for each atom, of which those of carbon and of the first atom of each are not known."""
    found = molecules(count)
    for atoms in found:
        r = atoms.get_all_distances() + 1e9 * np.eye(len(atoms))
        shifts = (atoms.numbers / r).sum(1)
        shifts[0] = shifts[atoms.numbers == 6] = np.nan
        atoms.arrays["shift"] = shifts
    return found


def test_atoms_are_points_of_whole_molecules(tmp_path):
    written = charged()
    ase.io.write(tmp_path / "a.extxyz", written)
    data = Molecules(str(tmp_path / "a.extxyz"), target="shift", per_atom=True).load(0)
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    known = np.concatenate([np.isfinite(atoms.arrays["shift"]) for atoms in written])
    assert (X.shape, y.shape) == ((known.sum(), 12, 4), (known.sum(),))
    assert [SYMBOLS[int(z) - 1] for z in data.X_test[:, 0, 0]] == data.test_names["element"].tolist()
    for x, value, name, atom in zip(data.X_test, data.y_test, *[*data.test_names.values()][:2], strict=True):
        atoms = written[int(name.removeprefix("a.extxyz:"))]
        assert value == pytest.approx(atoms.arrays["shift"][atom])
        order = [atom, *(k for k in range(len(atoms)) if k != atom)]
        np.testing.assert_allclose(x[: len(atoms)], np.column_stack([atoms.numbers, atoms.positions])[order], atol=1e-7)
        assert not x[len(atoms) :].any()
    in_training = {int(i) for i in data.clusters}
    assert not in_training & {int(name.removeprefix("a.extxyz:")) for name in data.test_names["molecule"]}
    carbon = sum((atoms.numbers == 6).sum() for atoms in written)
    assert "atoms without a finite value of shift are left out: " in data.notes[0]
    assert f"{carbon} of {carbon} C" in data.notes[0]
    assert 6 not in data.form["elements"]


def test_new_atoms_are_those_of_elements_with_values(tmp_path):
    ase.io.write(tmp_path / "a.extxyz", charged(64))
    loader = Molecules(str(tmp_path / "a.extxyz"), target="shift", per_atom=True)
    form = loader.load(0).form
    ase.io.write(tmp_path / "new.xyz", molecule("CH3CH2OH"))
    with pytest.warns(UserWarning, match=r"2 of 9 atoms are left out, of elements that no atom of training is \(C\)"):
        points = loader.read_points(str(tmp_path / "new.xyz"), form)
    assert points.ids == ["new.xyz"] * 7
    assert points.names["atom"].tolist() == [2, *range(3, 9)]
    assert set(points.names["element"]) == {"O", "H"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "heat"}, r"target: expected a value for each of the 3 atoms of molecule 0 .*'heat' has shape \(\)"),
        ({"target": "none"}, r"target: expected finite numbers \['none'\] of some atoms, found none"),
        ({"target": "shift", "per_atom": False}, r"'shift' has shape \(3,\); values of atoms .* dataset.per_atom=true"),
    ],
)
def test_what_is_no_value_of_atoms_is_one_line(tmp_path, settings, message):
    written = charged()
    for atoms in written:
        atoms.arrays["none"] = np.full(len(atoms), np.nan)
    ase.io.write(tmp_path / "a.extxyz", written)
    with pytest.raises(InputError, match=message):
        Molecules(**{"path": str(tmp_path / "a.extxyz"), "per_atom": True, **settings}).load(0)
    (tmp_path / "a.csv").write_text("smiles,shift\nC,1.5\nCC,2.5\n")
    with pytest.raises(InputError, match=r"^dataset.per_atom: a.csv has SMILES, expected files of atoms with 'shift'"):
        Molecules(str(tmp_path / "a.csv"), target="shift", per_atom=True).load(0)


def frames_of_md17(path, names: dict[str, str], **more: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays of six frames of water, and the file that has them by other names."""
    rng = np.random.default_rng(0)
    water = molecule("H2O")
    arrays = {
        "z": water.numbers,
        "R": water.positions + 0.05 * rng.standard_normal((6, 3, 3)),
        "E": rng.standard_normal((6, 1)),
        "F": rng.standard_normal((6, 3, 3)),
    }
    np.savez(path, **{names.get(name, name): values for name, values in arrays.items()}, **more)
    return arrays


MD17 = {"theory": np.array("PBE"), "md5": np.array("0")}
RMD17 = {"z": "nuclear_charges", "R": "coords", "E": "energies", "F": "forces"}


@pytest.mark.parametrize(("names", "more"), [({}, MD17), (RMD17, {"old_energies": np.arange(6.0)})])
def test_frames_of_md17_are_read_with_energies_and_forces(tmp_path, names, more):
    path = tmp_path / "md17.npz"
    arrays = frames_of_md17(path, names, **more)
    frames = Molecules(str(path)).load_frames(0)
    np.testing.assert_array_equal(frames.X, [np.column_stack([arrays["z"], r]) for r in arrays["R"]])
    np.testing.assert_array_equal(frames.energies, arrays["E"][:, 0])
    np.testing.assert_array_equal(frames.forces, arrays["F"])
    loader = Molecules(str(path), task="regression")
    data = loader.load(0)
    assert sorted([*data.y_train, *data.y_test]) == sorted(arrays["E"][:, 0])
    points = loader.read_points(str(path), data.form)  # new frames, in a file of the same kind
    assert len(points.X) == 6
    np.savez(tmp_path / "points.npz", X=points.X)  # and points themselves
    np.testing.assert_array_equal(loader.read_points(str(tmp_path / "points.npz"), data.form).X, points.X)
    if "old_energies" in more:
        old = Molecules(str(path), target="old_energies", task="regression").load(0)
        assert sorted([*old.y_train, *old.y_test]) == [*range(6)]


def test_frames_of_several_molecules_have_charges_of_zero_after_their_atoms(tmp_path):
    z = np.array([[8, 1, 1], [1, 1, 0]])
    R = np.zeros((2, 3, 3))
    R[:, 1, 0] = R[:, 2, 1] = 0.96
    np.savez(tmp_path / "a.npz", z=z, R=R, E=np.ones(2), F=np.ones((2, 3, 3)), charges=z / 10)
    water, hydrogen = read_molecules(tmp_path / "a.npz")
    assert (len(water), len(hydrogen)) == (3, 2)
    assert hydrogen.values["forces"].shape == (2, 3)
    np.testing.assert_array_equal(hydrogen.values["charges"], [0.1, 0.1])


@pytest.mark.parametrize("name", ["E", "F"])
def test_frames_without_finite_energies_or_forces_are_refused(tmp_path, name):
    values = {"z": [1, 1], "R": np.arange(12.0).reshape(2, 2, 3), "E": np.ones(2), "F": np.ones((2, 2, 3))}
    values[name][1] = np.nan
    np.savez(tmp_path / "a.npz", **values)
    with pytest.raises(InputError, match=r"'(energy|forces)' of a.npz has . values that are NaN .* at index \(1"):
        Molecules(str(tmp_path / "a.npz"), unit="bohr").load_frames(0)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"R": np.zeros((2, 3, 3)), "E": np.ones(2)}, "expected an array nuclear_charges or z, found E"),
        ({"z": np.ones(3), "X": np.ones(3)}, "expected an array coords or R, found X"),
        ({"z": np.ones(4), "R": np.zeros((2, 3, 3))}, r"expected positions of shape .* found \(2, 3, 3\) and \(4,\)"),
    ],
)
def test_arrays_that_are_no_frames_are_refused(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=message):
        Molecules(str(tmp_path / "a.npz")).load(0)

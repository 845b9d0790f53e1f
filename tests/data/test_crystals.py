"""Crystals: neighbours in other cells, and properties that do not depend on the choice of a cell."""

import itertools

import ase.io
import numpy as np
import pytest
from ase import Atoms
from ase.build import bulk, fcc111, molecule
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline

from orbit import Gaussian, Nystrom, RidgeRegressor
from orbit.core.errors import InputError
from orbit.data import Molecules
from orbit.data.molecule_files import frames_text, read_molecules
from orbit.learners import ForceField
from orbit.plots.molecules import draw_molecule
from orbit.representations import AtomEnvironment, BagOfBonds, Coulomb, ManyBody, Raw
from orbit.representations.neighbours import CELL, Neighbours, charges_of_rows


def crystals(count: int, seed: int = 0) -> list[Atoms]:
    """Strained and displaced cells of four atoms, copper and gold, with energies and forces of EMT."""
    rng, found = np.random.default_rng(seed), []
    for i in range(count):
        atoms = bulk("Cu", "fcc", a=3.8, cubic=True)
        atoms.symbols = rng.choice(["Cu", "Au"], 4) if i else ["Cu", "Au", "Cu", "Au"]
        atoms.set_cell(atoms.cell @ (np.eye(3) + 0.02 * rng.standard_normal((3, 3))), scale_atoms=True)
        atoms.rattle(0.05, rng=rng)
        found.append(computed(atoms))
    return found


def computed(atoms: Atoms) -> Atoms:
    atoms.calc = EMT()
    atoms.calc = SinglePointCalculator(atoms, energy=atoms.get_potential_energy(), forces=atoms.get_forces())
    return atoms


def rows(*several: Atoms) -> np.ndarray:
    """Points by their definition."""
    points = [np.column_stack([atoms.numbers, atoms.positions]) for atoms in several]
    cells = [np.column_stack([np.full(atoms.pbc.sum(), CELL), atoms.cell[atoms.pbc]]) for atoms in several]
    size = max(map(len, several)) + 3
    X = np.zeros((len(several), size, 4))
    for row, of_atoms, of_cell in zip(X, points, cells, strict=True):
        both = np.concatenate([of_atoms, of_cell])
        row[: len(both)] = both
    return X


def wrapped(atoms: Atoms) -> Atoms:
    moved = atoms.copy()
    moved.translate([1.3, -0.7, 2.1])
    moved.wrap()
    return moved


def rotated(atoms: Atoms) -> Atoms:
    moved = atoms.copy()
    moved.rotate(35, (1, 2, 3), rotate_cell=True)
    return moved


def skewed(atoms: Atoms) -> Atoms:
    """Another cell of the same lattice."""
    moved = atoms.copy()
    moved.set_cell(np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1]]) @ atoms.cell)
    return moved


def larger(atoms: Atoms) -> Atoms:
    return atoms.repeat(2)


SAME = [larger, wrapped, rotated, skewed, lambda atoms: atoms[[3, 1, 0, 2]]]


@pytest.fixture(scope="module")
def fitted() -> ManyBody:
    return ManyBody().fit(rows(*crystals(6)))


@pytest.mark.parametrize("change", SAME)
def test_columns_do_not_depend_on_the_choice_of_a_cell(fitted, change):
    first = crystals(1)[0]
    np.testing.assert_allclose(fitted.transform(rows(change(first))), fitted.transform(rows(first)), atol=1e-9)


def test_primitive_and_conventional_cells_are_the_same_crystal(fitted):
    both = [bulk("Cu", "fcc", a=3.7, cubic=cubic) for cubic in (True, False)]
    one, other = (fitted.transform(rows(atoms)) for atoms in both)
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_layers_repeat_in_two_directions(fitted):
    layers = fcc111("Cu", (1, 1, 3), a=3.7, vacuum=4.0)
    layers.pbc = [True, True, False]
    apart = layers.copy()
    apart.set_cell(layers.cell * [[1], [1], [9]])  # images of the third direction are far away
    apart.pbc = True
    np.testing.assert_allclose(fitted.transform(rows(layers)), fitted.transform(rows(apart)), atol=1e-9)


def test_the_environment_of_an_atom_is_that_in_a_large_cluster():
    first = crystals(1)[0]
    steps = np.array([*itertools.product(range(-3, 4), repeat=3)]) @ first.cell.array
    positions = (first.positions + steps[:, None]).reshape(-1, 3)
    apart = np.linalg.norm(positions - first.positions[0], axis=1)
    near = np.argsort(apart)[: (apart < 6.01).sum()]
    cluster = np.column_stack([np.tile(first.numbers, len(steps)), positions])[near]
    environment = AtomEnvironment().fit(rows(*crystals(6)))
    np.testing.assert_allclose(environment.transform(rows(first)), environment.transform(cluster[None]), atol=1e-9)


def test_a_pair_of_an_atom_and_its_image_counts_once():
    X = rows(bulk("Cu", "sc", a=2.5))
    found = Neighbours.in_cells(charges_of_rows(X, ""), X[:, :, 1:], 2.6)
    assert len(found.r) == 6
    assert len(found.once().r) == 3
    assert len(found.couples()[0]) == 15


def test_energies_of_cells_are_learned_per_atom(tmp_path):
    written = crystals(40)
    for i in range(0, 40, 2):
        written[i] = computed(written[i].repeat((2, 1, 1)))
    ase.io.write(tmp_path / "a.extxyz", written)
    loader = Molecules(str(tmp_path / "a.extxyz"), test_fraction=0.2)
    data = loader.load(0)
    assert data.targets == ["energy per atom"]
    model = make_pipeline(ManyBody(), Nystrom(Gaussian(), n_components=32), RidgeRegressor())
    model.fit(data.X_train, data.y_train)
    assert np.abs(model.predict(data.X_test) - data.y_test).mean() < 0.2 * data.y_test.std()
    first = written[1]
    ase.io.write(tmp_path / "new.extxyz", [first, computed(first.repeat(2))])
    small, large = read_molecules(tmp_path / "new.extxyz")
    assert large.values["energy"] == pytest.approx(8 * small.values["energy"])
    points = loader.read_points(str(tmp_path / "new.extxyz"), data.form)
    assert points.X.shape == (2, 35, 4)
    per_atom = model.predict(points.X)
    assert per_atom[0] == pytest.approx(per_atom[1], abs=1e-8)


def test_a_total_of_another_name_is_warned_of(tmp_path, recwarn):
    written = [cell.repeat((1 + i % 3, 1, 1)) for i, cell in enumerate(crystals(30))]
    rng = np.random.default_rng(0)
    for atoms in written:
        atoms.info |= {"E_total": -3.5 * len(atoms) + rng.standard_normal(), "gap": rng.random()}
    ase.io.write(tmp_path / "a.extxyz", written)
    for target, divide in [("gap", None), ("E_total", "E_total"), ("E_total", [])]:
        Molecules(str(tmp_path / "a.extxyz"), target=target, divide=divide).load(0)
    assert not recwarn
    with pytest.warns(UserWarning, match="E_total grows with .*; dataset.divide=E_total learns it per atom"):
        Molecules(str(tmp_path / "a.extxyz"), target=["gap", "E_total"]).load(0)


def test_the_reader_keeps_cells_in_which_atoms_see_images(tmp_path):
    near, far = (Atoms("Cu2", [[0, 0, 0], [0, 0, 2.5]], cell=[length] * 3, pbc=True) for length in (5.5, 30))
    for atoms in (near, far):
        atoms.info = {"gap": 1.5, "energy": 3.0}
    ase.io.write(tmp_path / "both.extxyz", [near, far] * 4)
    ase.io.write(tmp_path / "far.extxyz", [far] * 8)
    settings = {"target": ["energy", "gap"], "task": "regression"}
    data = Molecules(str(tmp_path / "both.extxyz"), **settings).load(0)
    assert data.X_train.shape[1:] == (5, 4)
    assert data.y_train[0].tolist() == [1.5, 1.5]  # energies are divided by two atoms, gaps are not
    assert Molecules(str(tmp_path / "both.extxyz"), divide=[], **settings).load(0).y_train[0].tolist() == [3.0, 1.5]
    loader = Molecules(str(tmp_path / "far.extxyz"), **settings)
    data = loader.load(0)
    assert data.X_train.shape[1:] == (2, 2)
    with pytest.raises(InputError, match="expected molecules, as the model was fitted to, found crystals"):
        loader.read_points(str(tmp_path / "both.extxyz"), data.form)
    loader = Molecules(str(tmp_path / "both.extxyz"), **settings)
    with pytest.warns(UserWarning, match="fitted to crystals, and no molecule has a cell"):
        loader.read_points(str(tmp_path / "far.extxyz"), loader.load(0).form)
    near.info["kind"] = "metal"
    ase.io.write(tmp_path / "kinds.extxyz", [near, near])
    with pytest.raises(InputError, match=r"^dataset.divide: expected names of numbers, found \['kind'\]"):
        Molecules(str(tmp_path / "kinds.extxyz"), target="kind", divide="kind").load(0)


@pytest.mark.parametrize("representation", [Coulomb(), BagOfBonds(), Raw()], ids=str)
def test_representations_without_images_refuse_crystals(representation):
    for X in (rows(*crystals(2)), rows(bulk("Cu", "fcc", a=3.7))):
        with pytest.raises(InputError, match=r"no neighbours in other cells.* expected representation=many_body"):
            representation.fit(X)


def test_vectors_that_span_no_volume_are_refused():
    X = rows(bulk("Cu", "fcc", a=3.7))
    X[0, 3] = X[0, 2]
    with pytest.raises(InputError, match="expected vectors of a cell that span a volume"):
        ManyBody().fit(X)
    both = Atoms("Cu2", [[0, 0, 0], [0, 0, 4]], cell=[4, 4, 4], pbc=True)
    with pytest.raises(InputError, match="two atoms of a crystal are at the same place"):
        ManyBody().fit(rows(both))


def test_values_of_atoms_in_crystals(tmp_path):
    written = crystals(8)
    for atoms in written:
        atoms.arrays["pull"] = np.linalg.norm(atoms.get_forces(), axis=1)
    ase.io.write(tmp_path / "a.extxyz", written)
    data = Molecules(str(tmp_path / "a.extxyz"), target="pull", per_atom=True).load(0)
    assert data.X_train.shape == (24, 7, 4)
    assert (data.X_train[:, 4:, 0] == CELL).all()
    assert np.ptp(AtomEnvironment().fit_transform(data.X_train), axis=0).any()


class TestForces:
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, tmp_path_factory):
        path = tmp_path_factory.mktemp("forces") / "a.extxyz"
        ase.io.write(path, crystals(40))
        frames = Molecules(str(path)).load_frames(0)
        return ForceField(n_components=100, regularization=1e-8, random_state=0).fit(
            frames.X, frames.energies, frames.forces
        )

    def test_they_are_learned(self, model):
        new = crystals(6, 1)
        energies, forces = model.predict(rows(*new))
        true = np.stack([atoms.get_forces() for atoms in new])
        assert np.abs(forces[:, :4] - true).mean() < 0.15 * np.abs(true).mean()
        assert not forces[:, 4:].any()
        known = np.array([atoms.get_potential_energy() for atoms in new])
        assert np.abs(energies - known).mean() < 0.2 * known.std()

    def test_they_are_minus_the_gradient_of_the_energy(self, model):
        X, step = rows(crystals(1, 1)[0]), 1e-3
        forces = np.zeros((4, 3))
        for i, k in np.ndindex(4, 3):
            moved = np.repeat(X, 4, 0)
            moved[:, i, 1 + k] += step * np.array([2, 1, -1, -2])
            forces[i, k] = -model.predict(moved)[0] @ [-1, 8, -8, 1] / (12 * step)
        np.testing.assert_allclose(model.predict(X)[1][0, :4], forces, atol=1e-5 * np.abs(forces).max())

    def test_a_supercell_has_eight_times_the_energy_and_the_same_forces(self, model):
        first = crystals(1, 1)[0]
        energy, forces = model.predict(rows(first))
        energy_of_all, forces_of_all = model.predict(rows(first.repeat(2)))
        assert energy_of_all[0] == pytest.approx(8 * energy[0])
        np.testing.assert_allclose(forces_of_all[0, :32], np.tile(forces[0, :4], (8, 1)), atol=1e-9)

    def test_predicted_frames_are_written_with_their_cells(self, tmp_path):
        first = crystals(1)[0]
        (tmp_path / "a.extxyz").write_text(frames_text(rows(first), np.ones(1), np.zeros((1, 7, 3))))
        found = ase.io.read(tmp_path / "a.extxyz")
        assert found.pbc.all()
        np.testing.assert_allclose(found.cell, first.cell, atol=1e-8)


def test_a_molecule_is_no_crystal_of_the_same_atoms():
    water = molecule("H2O")
    molecules = np.stack([np.column_stack([water.numbers, water.positions])] * 4)
    molecules[:, :, 1:] += 0.05 * np.random.default_rng(0).standard_normal((4, 3, 3))
    model = ForceField(n_components=10, random_state=0).fit(molecules, np.arange(4.0), np.zeros((4, 3, 3)))
    water.set_cell([4, 4, 4])
    water.pbc = True
    assert np.isfinite(model.predict(rows(water))[0]).all()


def test_a_crystal_is_drawn_with_its_cell():
    first = crystals(1)[0]
    ax = Figure().subplots()
    draw_molecule(ax, rows(first)[0], rows(first)[0])
    edges, _, circles = ax.collections
    assert len(edges.get_segments()) == 12
    assert len(circles.get_paths()) == 4
    assert len({tuple(colour) for colour in circles.get_facecolors()}) == 2

"""runner=forces: from a file of frames to a model, its errors and its predictions in a file."""

from pathlib import Path

import ase.io
import numpy as np
import pytest
from ase.build import molecule
from ase.calculators.emt import EMT
from ase.calculators.singlepoint import SinglePointCalculator
from ase.units import Bohr, Hartree
from command_line import ran

import orbit
from orbit.core.errors import InputError
from orbit.data import Molecules
from runners.measure.metrics import MAIN_METRICS

NAMES = "H2O", "CH3OH", "NH3"
FORCES = "runner=forces", "dataset=molecules"


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    rng, frames = np.random.default_rng(0), []
    for i in range(48):
        atoms = molecule(NAMES[i % 3])
        atoms.rattle(0.03, rng=rng)
        atoms.calc = EMT()
        energy, forces = atoms.get_potential_energy(), atoms.get_forces()
        atoms.calc = SinglePointCalculator(atoms, energy=energy, forces=forces)
        frames.append(atoms)
    path = tmp_path_factory.mktemp("frames") / "frames.extxyz"
    ase.io.write(path, frames)
    return path


def test_frames_of_several_molecules_are_learned_and_predicted(tmp_path, file, monkeypatch, log_messages):
    monkeypatch.setattr("orbit.core.progress.LINE_EVERY_S", 0.0)
    job = ran(tmp_path / "fit", *FORCES, f"dataset.path={file}", "runner.n_components=150")
    assert any(line.startswith("equations: 1 of ") for line in log_messages)
    written = ase.io.read(tmp_path / "fit" / "predictions.extxyz", ":")
    assert len(written) == 12
    frames = Molecules(str(file)).load_frames(job.plan.seed("dataset"))
    errors = [
        np.abs(one.get_forces() - frames.forces[i, : len(one)]) for one, i in zip(written, frames.test, strict=True)
    ]
    assert job.metrics["test/forces/mae"] == pytest.approx(np.concatenate(errors).mean(), abs=1e-7)
    true = [frames.forces[i, : len(one)] for one, i in zip(written, frames.test, strict=True)]
    assert job.metrics["test/forces/mae"] < 0.3 * np.abs(np.concatenate(true)).mean()
    assert next(key for key in MAIN_METRICS if key in job.metrics) == "test/forces/mae"  # what sweeps compare
    energies = [one.get_potential_energy() for one in written]
    assert job.metrics["test/energy/mae"] == pytest.approx(np.abs(energies - frames.energies[frames.test]).mean())

    ase.io.write(tmp_path / "new.xyz", molecule("CH3OH"), format="xyz")  # without energies
    new_job = ran(tmp_path / "new", *FORCES, f"dataset.path={tmp_path / 'new.xyz'}", f"runner.model={tmp_path / 'fit'}")
    assert "1 frames, 6 atoms" in new_job.summary()
    new = ase.io.read(tmp_path / "new" / "predictions.extxyz")
    X = Molecules(str(tmp_path / "new.xyz")).load_frames(forces=None).X
    energy, forces = orbit.load(tmp_path / "fit" / "force_field").predict(X)
    np.testing.assert_allclose(new.get_potential_energy(), energy[0])
    np.testing.assert_allclose(new.get_forces(), forces[0], atol=1e-7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["runner.forces=force"], r"^runner.forces: molecule 0 has no value 'force'; did you mean 'forces'"),
        (["runner.forces=energy"], r"^runner.forces: expected three numbers for each atom, 'energy' has shape \(\)"),
        (["dataset.unit=bohr"], "^dataset.unit: expected lengths in bohr, but 48 of 48 molecules"),
        (["runner.model=nowhere"], "^runner.model: expected a run folder"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path, file, settings, message):
    with pytest.raises(InputError, match=message):
        ran(tmp_path / "run", *FORCES, f"dataset.path={file}", *settings)


def test_a_table_of_files_in_bohr_and_hartree_gives_the_same_in_its_units(tmp_path, file):
    """Of energies in the table or in the files; and forces per bohr beside positions in angstrom."""
    frames, lines = ase.io.read(file, ":"), ["file,energy"]
    for i, one in enumerate(frames):
        atoms = one.copy()
        atoms.positions /= Bohr
        results = {"energy": one.get_potential_energy() / Hartree, "forces": one.get_forces() * Bohr / Hartree}
        atoms.calc = SinglePointCalculator(atoms, **results)
        ase.io.write(tmp_path / f"{i}.extxyz", atoms)
        lines.append(f"{i}.extxyz,{results['energy']}")
        one.calc = SinglePointCalculator(one, **results)
    (tmp_path / "with.csv").write_text("\n".join(lines))
    (tmp_path / "without.csv").write_text("\n".join(line.partition(",")[0] for line in lines))
    ase.io.write(tmp_path / "mixed.extxyz", frames)
    usual = Molecules(str(file)).load_frames(0)
    cases = [("with.csv", "bohr", None), ("without.csv", "bohr", None), ("mixed.extxyz", "angstrom", "bohr")]
    for name, unit, per in cases:
        found = Molecules(str(tmp_path / name), unit=unit).load_frames(0, per=per)
        np.testing.assert_array_equal(found.train, usual.train)
        np.testing.assert_allclose(found.X, usual.X, atol=1e-7)
        np.testing.assert_allclose(found.energies * Hartree, usual.energies, atol=1e-7)
        np.testing.assert_allclose(found.forces * Hartree, usual.forces, atol=1e-5)
    job = ran(
        tmp_path / "fit",
        *FORCES,
        f"dataset.path={tmp_path / 'with.csv'}",
        "dataset.unit=bohr",
        "runner.n_components=60",
    )
    written = ase.io.read(tmp_path / "fit" / "predictions.extxyz", ":")
    test = Molecules(str(tmp_path / "with.csv"), unit="bohr").load_frames(job.plan.seed("dataset")).test
    for one, i in zip(written, test, strict=True):
        np.testing.assert_allclose(one.positions * Bohr, frames[i].positions, atol=1e-6)
    errors = [np.abs(one.get_forces() - frames[i].get_forces()).ravel() for one, i in zip(written, test, strict=True)]
    assert job.metrics["test/forces/mae"] == pytest.approx(np.concatenate(errors).mean(), abs=1e-7)


def test_other_data_are_refused(tmp_path):
    with pytest.raises(InputError, match="^dataset: runner=forces takes dataset=molecules, found dataset=digits"):
        ran(tmp_path / "run", "runner=forces", "dataset=digits")

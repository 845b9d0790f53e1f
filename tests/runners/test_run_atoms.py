"""dataset.per_atom: values of atoms, from a file of molecules to errors by element and predictions of new ones."""

from pathlib import Path

import ase.io
import numpy as np
import pandas as pd
import pytest
from ase.build import molecule
from command_line import ran


def written(path: Path, count: int, seed: int) -> list:
    rng, found = np.random.default_rng(seed), []
    for i in range(count):
        atoms = molecule(("H2O", "CH3OH", "NH3")[i % 3])
        atoms.rattle(0.05, rng=rng)
        atoms.arrays["shift"] = (atoms.numbers / (atoms.get_all_distances() + 1e9 * np.eye(len(atoms)))).sum(1)
        found.append(atoms)
    ase.io.write(path, found)
    return found


@pytest.mark.filterwarnings("ignore:the chosen regularization")
def test_values_of_atoms_are_learned_and_predicted(tmp_path):
    written(tmp_path / "all.extxyz", 60, 0)
    about = (
        "dataset=molecules",
        f"dataset.path={tmp_path / 'all.extxyz'}",
        "dataset.target=shift",
        "dataset.per_atom=true",
    )
    job = ran(tmp_path / "fit", *about, figures=True)
    table = pd.read_csv(tmp_path / "fit" / "predictions.csv")
    assert [*table] == ["molecule", "atom", "element", "true shift", "predicted shift"]
    errors = (table["predicted shift"] - table["true shift"]).abs().groupby(table["element"]).mean()
    assert set(errors.index) == {"H", "C", "N", "O"}
    for element, error in errors.items():
        assert job.metrics[f"test/{element}/mae"] == pytest.approx(error)
        assert f"test {element} " in job.summary()
    spread = table.groupby("element")["true shift"].std().mean()
    assert job.metrics["test/mae"] < 0.2 * spread
    assert (tmp_path / "fit" / "figures" / "predictions.png").exists()

    new = written(tmp_path / "new.extxyz", 6, 1)
    ran(
        tmp_path / "new",
        "runner=predict",
        f"runner.model={tmp_path / 'fit'}",
        f"runner.input={tmp_path / 'new.extxyz'}",
    )
    table = pd.read_csv(tmp_path / "new" / "predictions.csv")
    assert [*table] == ["point", "atom", "element", "prediction"]
    assert len(table) == sum(map(len, new))
    true = [
        new[int(name.rpartition(":")[2])].arrays["shift"][k] for name, k in zip(table.point, table.atom, strict=True)
    ]
    assert np.abs(table.prediction - true).mean() < 0.3 * spread

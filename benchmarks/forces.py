"""``ForceField`` with forces and with energies alone, and sGDML: errors on frames of a molecule, and processor seconds.

    python -m benchmarks.forces FRAMES.extxyz [--sizes 100 300 1000] [--draws 5] [--first 0] [--test 300]

Prints Markdown, in meV and meV per angstrom for frames in eV. sGDML (if it is installed; 1.0.3 needs a NumPy below 2.4)
gets the symmetries of the molecule, a lengthscale of the smallest error on 50 training frames, and up to 300 frames,
because its matrix has a row for each component of a force.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from orbit import ForceField, Molecules
from orbit.data.molecules import Frames

#: Energies, shape (n,), and forces, shape (n, atoms, 3), or flattened.
Predicted = tuple[np.ndarray, np.ndarray]

_SIGMAS, _VALIDATION, _MOST = (5, 10, 20, 40, 80), 50, 300


def own(
    frames: Frames, train: np.ndarray, test: np.ndarray, with_forces: bool = True, distances: float = 10.0
) -> Predicted:
    assert frames.energies is not None
    assert frames.forces is not None
    forces = frames.forces[train] if with_forces else None
    model = ForceField(distances=distances, random_state=0).fit(frames.X[train], frames.energies[train], forces)
    return model.predict(frames.X[test])


def sgdml(frames: Frames, train: np.ndarray, test: np.ndarray) -> Predicted:
    from sgdml.predict import GDMLPredict
    from sgdml.train import GDMLTrain
    from sgdml.utils import io

    energies, forces = frames.energies, frames.forces
    assert energies is not None
    assert forces is not None

    def data(rows: np.ndarray) -> dict[str, Any]:
        found = {"type": "d", "code_version": "1", "name": np.array("frames"), "theory": np.array("none")}
        found |= {"z": frames.X[0, :, 0].astype(int), "R": frames.X[rows][:, :, 1:], "E": energies[rows]}
        found |= {"F": forces[rows], "r_unit": "Ang", "e_unit": "eV"}
        return found | {"md5": io.dataset_md5(found)}

    def predicted(fit: np.ndarray, new: np.ndarray, sigma: int) -> Predicted:
        task = trainer.create_task(data(fit), len(fit), data(new), len(new), sigma, lam=1e-10, use_sym=True)
        positions = frames.X[new][:, :, 1:].reshape(len(new), -1)
        return GDMLPredict(trainer.train(task), max_processes=1).predict(positions)

    trainer, held = GDMLTrain(max_processes=1), min(_VALIDATION, len(train) // 5)
    true = forces[train[:held]].reshape(held, -1)
    errors = [np.abs(predicted(train[held:], train[:held], sigma)[1] - true).mean() for sigma in _SIGMAS]
    return predicted(train, test, _SIGMAS[int(np.argmin(errors))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the number of the first draw")
    parser.add_argument("--test", type=int, default=300)
    args = parser.parse_args()
    frames = Molecules(args.file).load_frames(0)
    assert frames.energies is not None
    assert frames.forces is not None
    has_sgdml = importlib.util.find_spec("sgdml") is not None
    print("| frames | | energies | forces | processor seconds |\n|---:|---|---:|---:|---:|")
    for n in args.sizes:
        fits: dict[str, Callable[..., Predicted]] = {
            "energies and forces": own,
            "without distances": partial(own, distances=0.0),
            "energies alone": partial(own, with_forces=False),
        }
        if has_sgdml and n <= _MOST:
            fits["sGDML"] = sgdml
        for name, fit in fits.items():
            found = []
            for draw in range(args.first, args.first + args.draws):
                order = np.random.default_rng(draw).permutation(len(frames.X))[: n + args.test]
                start = time.process_time()
                energies, forces = fit(frames, order[:n], order[n:])
                errors = [energies - frames.energies[order[n:]], forces.ravel() - frames.forces[order[n:]].ravel()]
                found.append([*(1e3 * np.abs(each).mean() for each in errors), time.process_time() - start])
            (E, F, seconds), (E_std, F_std, _) = np.mean(found, 0), np.std(found, 0)
            print(f"| {n} | {name} | {E:.1f} ± {E_std:.1f} | {F:.1f} ± {F_std:.1f} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()

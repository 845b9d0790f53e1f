"""``many_body`` with default settings beside SOAP on generated crystals: errors in meV per atom and processor seconds.

    python -m benchmarks.crystals [--sizes 100 300 1000] [--draws 2] [--methods many_body SOAP]

Prints Markdown. 1,500 strained and displaced cells of two to sixteen atoms, fcc and hcp, of two to four metals with
energies of EMT, and of a Lennard-Jones mixture of neon, argon and krypton; 375 of them are for testing. SOAP is that
of dscribe (2.1 needs ``ase<3.26``): means over the atoms (``inner`` or ``outer``), a least-squares fit to the shares of
the elements, and kernel ridge regression with the cutoff, the width, the mean, the kernel (Gaussian or Laplacian), its
lengthscale and lambda of the smallest absolute error over five folds. Its seconds are those of the whole choice.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

LATTICE = {"Cu": 3.61, "Au": 4.08, "Ag": 4.09, "Al": 4.05, "Ni": 3.52, "Pd": 3.89, "Pt": 3.92}
#: Epsilon in eV and sigma in angstrom.
GASES = {18: (0.0103, 3.40), 10: (0.0031, 2.78), 36: (0.0140, 3.65)}
CUTOFF, TEST, LAMBDAS = 8.0, 375, 10.0 ** np.arange(-11, 0)

#: Errors of the cells after the first n, learned from these, in eV per atom.
Method = Callable[[list[Any], np.ndarray, int], np.ndarray]


def alloys(count: int, seed: int) -> Iterator[Any]:
    from ase.build import bulk

    rng = np.random.default_rng(seed)
    while count:
        kinds = rng.choice([*LATTICE], rng.integers(2, 5), replace=False)
        form = rng.choice(["fcc", "hcp", "fcc1"])
        repeats = [(1, 1, 1), (2, 1, 1), (2, 2, 1), (1, 1, 2)]
        of_small = [(2, 2, 1), (2, 2, 2), (3, 2, 1), (2, 1, 1)]
        repeat = rng.choice(repeats if form == "fcc" else of_small)
        side = {"a": 2**-0.5, "c": 2**-0.5 * 1.633} if form == "hcp" else {"a": 1.0, "cubic": form == "fcc"}
        atoms = bulk("Cu", form[:3], **side).repeat(repeat)
        atoms.symbols = rng.choice(kinds, len(atoms))
        a = np.mean([LATTICE[symbol] for symbol in atoms.get_chemical_symbols()]) * rng.uniform(0.97, 1.05)
        atoms.set_cell(a * atoms.cell @ (np.eye(3) + 0.03 * rng.standard_normal((3, 3))), scale_atoms=True)
        atoms.rattle(0.1, rng=rng)
        count -= 1
        yield atoms


def emt(count: int, seed: int) -> Iterator[tuple[Any, float]]:
    from ase.calculators.emt import EMT

    for atoms in alloys(count, seed):
        atoms.calc = EMT()
        yield atoms, atoms.get_potential_energy()


def lennard_jones(count: int, seed: int) -> Iterator[tuple[Any, float]]:
    from ase.neighborlist import neighbor_list

    rng = np.random.default_rng(seed + 1)
    for atoms in alloys(count, seed):
        atoms.numbers = rng.choice([10, 18, 36], len(atoms))
        epsilon, sigma = np.array([GASES[z] for z in atoms.numbers]).T
        a = np.mean(sigma) * 2**0.5 * 1.12 * rng.uniform(0.97, 1.05)
        atoms.set_cell(atoms.cell * (a / (4 * atoms.get_volume() / len(atoms)) ** (1 / 3)), scale_atoms=True)
        i, j, r = neighbor_list("ijd", atoms, CUTOFF)
        x = ((sigma[i] + sigma[j]) / 2 / r) ** 6
        smooth = (1 + np.cos(np.pi * r / CUTOFF)) / 2
        yield atoms, (2 * np.sqrt(epsilon[i] * epsilon[j]) * (x * x - x) * smooth).sum()


def many_body(cells: list[Any], y: np.ndarray, n: int) -> np.ndarray:
    from sklearn.pipeline import make_pipeline

    from orbit import Gaussian, Nystrom, RidgeRegressor
    from orbit.data.molecule_files import Molecule
    from orbit.representations import ManyBody

    rows = max(map(len, cells)) + 3
    X = np.stack([Molecule(one.numbers, one.positions, {}, one.cell.array).rows(rows, 1.0) for one in cells])
    model = make_pipeline(ManyBody(), Nystrom(Gaussian(), n_components=n), RidgeRegressor())
    return model.fit(X[:n], y[:n]).predict(X[n:]) - y[n:]


def soap(cells: list[Any], y: np.ndarray, n: int) -> np.ndarray:
    from dscribe.descriptors import SOAP

    elements = sorted({z for one in cells for z in one.numbers})
    shares = np.array([[np.mean(one.numbers == z) for z in elements] for one in cells])
    base = shares @ np.linalg.lstsq(shares[:n], y[:n], rcond=None)[0]
    rest, best = y - base, (np.inf, y[n:])
    for r_cut, sigma, average in itertools.product((4.0, 5.0, 6.0), (0.3, 0.5), ("inner", "outer")):
        settings = {"r_cut": r_cut, "n_max": 8, "l_max": 6, "sigma": sigma, "average": average}
        X = SOAP(species=elements, periodic=True, **settings).create(cells)
        for K in kernels(X, n):
            errors = np.zeros(len(LAMBDAS))
            for fit, part in folds(n):
                errors += np.abs(K[np.ix_(part, fit)] @ solve(K[np.ix_(fit, fit)], rest[fit]) - rest[part, None]).sum(0)
            if errors.min() < best[0]:
                predicted = base[n:] + K[n:] @ solve(K[:n], rest[:n])[:, errors.argmin()]
                best = errors.min(), predicted - y[n:]
    return best[1]


def kernels(X: np.ndarray, n: int) -> Iterator[np.ndarray]:
    from scipy.spatial.distance import cdist

    squares = np.square(X).sum(1)
    for D, widths in (
        ((squares[:, None] + squares[:n] - 2 * X @ X[:n].T).clip(0) / 2, 2.0 ** np.arange(-2, 13, 2)),
        (cdist(X, X[:n], "cityblock"), 2.0 ** np.arange(-2, 13)),
    ):
        median = np.median(D[:n])
        yield from (np.exp(-D / median / (width * (2 if len(widths) == 8 else 1))) for width in widths)


def folds(n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold

    return KFold(5, shuffle=True, random_state=0).split(np.arange(n))


def solve(K: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Dual coefficients for each of ``LAMBDAS``, in columns."""
    values, Q = np.linalg.eigh(K)
    return Q @ ((Q.T @ y)[:, None] / (values.clip(0)[:, None] + LAMBDAS))


METHODS: dict[str, Method] = {"many_body": many_body, "SOAP": soap}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--methods", nargs="+", default=[*METHODS], choices=METHODS)
    args = parser.parse_args()
    print("| crystals | | | mae | rmse | processor seconds |\n|---|---:|---|---:|---:|---:|")
    for name, made in (("EMT", emt(1500, 0)), ("Lennard-Jones", lennard_jones(1500, 1))):
        cells, totals = zip(*made, strict=True)
        y = np.array(totals) / [*map(len, cells)]
        for n, method in itertools.product(args.sizes, args.methods):
            found = []
            for draw in range(args.draws):
                order = np.random.default_rng(draw).permutation(len(cells))
                chosen = [*order[TEST : TEST + n], *order[:TEST]]
                start = time.process_time()
                errors = 1000 * METHODS[method]([cells[i] for i in chosen], y[chosen], n)
                seconds = time.process_time() - start
                found.append((np.abs(errors).mean(), np.sqrt(np.square(errors).mean()), seconds))
            mae, rmse, seconds = np.mean(found, 0)
            print(f"| {name} | {n} | {method} | {mae:.3g} | {rmse:.3g} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()

"""``many_body`` beside representations of other packages on QM7: errors in kcal/mol and processor seconds.

    python -m benchmarks.molecules FOLDER/qm7/qm7.mat [--sizes 100 300 1000] [--draws 5] [--first 0] [--test 1000]
        [--others SOAP MBTR SLATM FCHL19]

Prints Markdown. SOAP and MBTR are those of dscribe (2.1 needs ``ase<3.26``), SLATM and FCHL19 those of qmllib, each if
it is installed. Training
molecules are drawn from the four folds that are not the first, test molecules from the first. The others have exact
kernels (of FCHL19, the local one), an intercept for each element by least squares, and a lengthscale and regularisation
of the smallest leave-one-out error; of SOAP, MBTR and SLATM also the better of a Gaussian and a Laplacian kernel.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import io
from scipy.spatial.distance import cdist
from sklearn.pipeline import make_pipeline

from orbit import Gaussian, Nystrom, RidgeRegressor
from orbit.data.molecules import BOHR, coulomb_matrices
from orbit.representations import ManyBody

MULTIPLES, LAMBDAS = 2.0 ** np.arange(-2, 8), 10.0 ** np.arange(-12, 0)

#: Kernel matrices of all molecules against the first n for one representation, (all, n) each.
Kernels = Callable[[list[np.ndarray], list[np.ndarray], int], list[np.ndarray]]


def of_vectors(X: np.ndarray, n: int) -> list[np.ndarray]:
    """Gaussian and Laplacian kernels of vectors, for multiples of the median distance."""
    kernels = []
    for metric, power in (("euclidean", 2), ("cityblock", 1)):
        D = cdist(X, X[:n], metric)
        D /= np.median(D[:n])
        kernels += [np.exp(-((D / m) ** power) / power) for m in MULTIPLES]
    return kernels


def soap(Z: list[np.ndarray], R: list[np.ndarray], n: int) -> list[np.ndarray]:
    from ase import Atoms
    from dscribe.descriptors import SOAP

    atoms = [Atoms(z, r) for z, r in zip(Z, R, strict=True)]
    describe = SOAP(species=elements(Z), r_cut=5.0, n_max=8, l_max=6, sigma=0.3, average="off")
    return of_vectors(np.stack([describe.create(each).sum(0) for each in atoms]), n)


def mbtr(Z: list[np.ndarray], R: list[np.ndarray], n: int) -> list[np.ndarray]:
    from ase import Atoms
    from dscribe.descriptors import MBTR

    parts = [
        {"function": "inverse_distance", "n": 100, "weighting": {"function": "exp", "scale": 0.5, "threshold": 1e-3}},
        {"function": "angle", "n": 100, "weighting": {"function": "exp", "scale": 0.5, "threshold": 1e-3}},
    ]
    X = []
    for part, (low, high, sigma) in zip(parts, ((0, 1.4, 0.02), (0, 180, 3.0)), strict=True):
        describe = MBTR(
            species=elements(Z),
            geometry={"function": part["function"]},
            grid={"min": low, "max": high, "n": part["n"], "sigma": sigma},
            weighting=part["weighting"],
            periodic=False,
        )
        columns = np.stack([describe.create(Atoms(z, r)) for z, r in zip(Z, R, strict=True)])
        X.append(columns / np.sqrt((columns**2).sum(1).mean()))
    return of_vectors(np.hstack(X), n)


def slatm(Z: list[np.ndarray], R: list[np.ndarray], n: int) -> list[np.ndarray]:
    from qmllib.representations import generate_slatm, get_slatm_mbtypes

    types = get_slatm_mbtypes(Z)
    return of_vectors(np.stack([generate_slatm(z, r, types) for z, r in zip(Z, R, strict=True)]), n)


def fchl19(Z: list[np.ndarray], R: list[np.ndarray], n: int) -> list[np.ndarray]:
    from qmllib.representations import generate_fchl19

    X = [generate_fchl19(z, r, elements(Z)) for z, r in zip(Z, R, strict=True)]
    return local_kernels(X, Z, n, 64.0, 8)


def local_kernels(X: list[np.ndarray], Z: list[np.ndarray], n: int, widest: float, number: int) -> list[np.ndarray]:
    """Sums of Gaussian kernels over all pairs of atoms of one element, (molecules, n) for each width, halved each time.

    These are ``qmllib.kernels.get_local_kernels`` to rounding, which takes many times as long for 1,000 molecules.
    """
    kernels = np.zeros((number, len(X), n))
    for z in elements(Z):
        atoms = [x[charges == z] for x, charges in zip(X, Z, strict=True)]
        has = np.flatnonzero([len(x) > 0 for x in atoms])
        columns = has[has < n]
        if not len(columns):
            continue
        landmarks = np.concatenate([atoms[i] for i in columns])
        starts = np.cumsum([0, *(len(atoms[i]) for i in columns[:-1])])
        squares = np.square(landmarks).sum(1)
        for i in has:
            x = atoms[i]
            values = np.exp((2 * x @ landmarks.T - np.square(x).sum(1)[:, None] - squares) / (2 * widest**2))
            for K in kernels:
                K[i, columns] += np.add.reduceat(values.sum(0), starts)
                np.square(np.square(values, out=values), out=values)  # half the width
    return [*kernels]


OTHERS: dict[str, tuple[str, Kernels]] = {
    "SOAP": ("dscribe", soap),
    "MBTR": ("dscribe", mbtr),
    "SLATM": ("qmllib", slatm),
    "FCHL19": ("qmllib", fchl19),
}


def elements(Z: list[np.ndarray]) -> list[int]:
    return np.unique(np.concatenate(Z)).tolist()


def is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def left_out_best(kernels: list[np.ndarray], counts: np.ndarray, y: np.ndarray, n: int) -> np.ndarray:
    """Predictions of the rows after n, by the kernel and regularisation of the smallest leave-one-out error."""
    slopes = np.linalg.lstsq(counts[:n], y[:n], rcond=None)[0]
    base = counts @ slopes
    best: tuple[float, Any] = (np.inf, None)
    for K in kernels:
        values, Q = np.linalg.eigh(K[:n] / np.trace(K[:n]) * n)
        values = np.maximum(values, 0)
        right = Q.T @ (y[:n] - base[:n])
        for each in LAMBDAS:
            dual = Q @ (right / (values + each))
            error = np.square(dual / (np.square(Q) @ (1 / (values + each)))).mean()
            if error < best[0]:
                best = error, K[n:] / np.trace(K[:n]) * n @ dual
    return base[n:] + best[1]


def many_body(Z: list[np.ndarray], R: list[np.ndarray], y: np.ndarray, n: int) -> np.ndarray:
    size = max(map(len, Z))
    charges = np.stack([np.pad(z, (0, size - len(z))) for z in Z])
    positions = np.stack([np.pad(r, ((0, size - len(r)), (0, 0))) for r in R])
    X = coulomb_matrices(charges, positions)
    model = make_pipeline(ManyBody(unit="angstrom"), Nystrom(Gaussian(), n_components=n), RidgeRegressor())
    return model.fit(X[:n], y[:n]).predict(X[n:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="the number of the first draw")
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--others", nargs="*", default=[*OTHERS], choices=OTHERS)
    args = parser.parse_args()
    content = io.loadmat(args.file)
    has = content["Z"] > 0
    Z = [z[k].astype(int) for z, k in zip(content["Z"], has, strict=True)]
    R = [r[k].astype(float) * BOHR for r, k in zip(content["R"], has, strict=True)]
    y, folds = content["T"][0].astype(float), content["P"].astype(int)
    kinds = elements(Z)
    others = [name for name in args.others if is_installed(OTHERS[name][0])]
    print("| molecules | | mae | rmse | processor seconds |\n|---:|---|---:|---:|---:|")
    for n in args.sizes:
        found: dict[str, list[tuple[float, float, float]]] = {}
        for draw in range(args.first, args.first + args.draws):
            rng = np.random.default_rng(draw)
            chosen = np.concatenate(
                [rng.choice(folds[1:].ravel(), n, replace=False), rng.choice(folds[0], args.test, replace=False)]
            )
            z, r, values = [Z[i] for i in chosen], [R[i] for i in chosen], y[chosen]
            counts = np.stack([[np.sum(one == kind) for kind in kinds] for one in z]).astype(float)
            for name in ("many_body", *others):
                start = time.process_time()
                if name == "many_body":
                    predicted = many_body(z, r, values, n)
                else:
                    predicted = left_out_best(OTHERS[name][1](z, r, n), counts, values, n)
                seconds = time.process_time() - start
                errors = predicted - values[n:]
                scores = float(np.abs(errors).mean()), float(np.sqrt(np.square(errors).mean()))
                found.setdefault(name, []).append((*scores, seconds))
        for name, results in found.items():
            (mae, rmse, seconds), (mae_std, rmse_std, _) = np.mean(results, 0), np.std(results, 0)
            cells = f"{mae:.2f} ± {mae_std:.2f} | {rmse:.2f} ± {rmse_std:.2f} | {seconds:.1f}"
            print(f"| {n} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()

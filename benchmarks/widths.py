"""Widths of q by leave-one-out error, by evidence, and as the group has them: test errors.

    python -m benchmarks.widths DATA_FOLDER [--seeds 5] [--first 0]

Each data set is averaged over a group whose elements are up to five times as near or as far as its default ones. The
kernel has the default lengthscale for each width; 500 Nyström features and ridge regression. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import ndimage
from sklearn.pipeline import make_pipeline

import orbit
from benchmarks.lengthscales import Case, error, loaded
from orbit.core.errors import InputError
from orbit.data import Dataset
from orbit.discovery.candidates import scaled
from orbit.solvers.evidence import evidence_of_features
from orbit.solvers.left_out import encoded_targets, left_out

FACTORS = 0.2, 0.5, 1.0, 2.0, 5.0

_CHOICES = "default", "leave-one-out", "evidence", "best"


def cases(root: str) -> Iterator[tuple[Case, orbit.Orbit]]:
    raw, moves = {"name": "raw"}, orbit.Orbit(orbit.SmallMoves())
    yield loaded("upright digits, 100", orbit.Digits(n_train=100), representation=raw), moves
    yield loaded("MNIST, 300", orbit.MNIST(root, n_train=300, n_test=1000), representation=raw), moves
    turns = orbit.Orbit(orbit.Rotation(), orbit.VonMises(concentration=4.0))
    digits = loaded("digits turned by 20 degrees (normal), 200", orbit.Digits(n_train=200), representation=raw)
    yield replace(digits, draw=lambda seed: turned(digits.draw(seed), seed)), turns
    sorting = orbit.Orbit(orbit.Permutation(mode="rows_columns"), orbit.build("distribution", "noisy_sort"), size=16)
    for n in (100, 300):
        yield loaded(f"QM7, Coulomb matrices, {n}", orbit.QM7(root, n_train=n, n_test=1000)), sorting


def turned(data: Dataset, seed: int) -> Dataset:
    rng = np.random.default_rng(seed)

    def each(X: np.ndarray) -> np.ndarray:
        angles = rng.normal(0, 20, len(X))
        pairs = zip(X, angles, strict=True)
        return np.stack([ndimage.rotate(image, angle, reshape=False, order=1) for image, angle in pairs])

    return replace(data, X_train=each(data.X_train), X_test=each(data.X_test))


def of_widths(data: Dataset, representation: dict[str, Any], around: orbit.Orbit) -> np.ndarray:
    """The test error, leave-one-out error and negative evidence of each width, shape (factors, 3)."""
    points = orbit.build("representation", **representation)
    X = points.fit_transform(data.X_train)
    targets, _ = encoded_targets(data.y_train)
    found = np.full((len(FACTORS), 3), np.inf)
    for row, factor in zip(found, FACTORS, strict=True):
        wider = scaled(around, X.shape[1:], factor)
        if wider is None:
            continue
        if around.size is not None:
            wider.set_params(size=around.size)
        features = orbit.Nystrom(orbit.Gaussian("auto"), wider, n_components=500, random_state=0)
        psi = features.fit_transform(X, data.y_train)
        learner = orbit.RidgeClassifier() if data.task == "classification" else orbit.RidgeRegressor()
        model = learner.fit(psi, data.y_train)
        row[0] = error(make_pipeline(points, features, model), data)
        row[1] = np.square(left_out(psi, targets)[0] - targets).sum(1).mean()
        rows = psi / np.sqrt(np.square(psi).sum(1).mean())
        row[2] = -evidence_of_features(rows.astype(np.float64), targets - targets.mean(0))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    args = parser.parse_args()
    print(f"| data, training points | {' | '.join(_CHOICES)} | widths by leave-one-out | by evidence |")
    print("|---" + "|---:" * (len(_CHOICES) + 2) + "|")
    for case, around in cases(args.root):
        try:
            seeds = range(args.first, args.first + args.seeds)
            found = np.array([of_widths(case.draw(seed), case.representation, around) for seed in seeds])
        except InputError as problem:
            print(f"left out: {case.name}: {problem}", flush=True)
            continue
        best, left, evident = found.argmin(1).T
        chosen = [np.full(len(found), FACTORS.index(1.0)), left, evident, best]
        errors = [f"{found[np.arange(len(found)), each, 0].mean():.4f}" for each in chosen]
        widths = [", ".join(f"{FACTORS[i]:g}" for i in each) for each in (left, evident)]
        print(f"| {' | '.join([case.name, *errors, *widths])} |", flush=True)


if __name__ == "__main__":
    main()

"""Whether a lengthscale by leave-one-out error is ever worse than the median distance, and what it costs.

    python -m benchmarks.lengthscales DATA_FOLDER [--seeds 5] [--only NAME ...]

Every data set in its own representation, averaged over its own group: 512 Nyström features and ridge regression, all
else at the defaults. DATA_FOLDER has the folders ``mnist``, ``cifar10``, ``qm7`` and ``spoken_digits``; data sets that
are not there are left out. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

import orbit
from orbit.core.errors import InputError
from orbit.data import Dataset, Loader
from orbit.encoders import Encoder

_LENGTHSCALES = ("median", "auto")


def cases(root: str) -> Iterator[tuple[str, Loader, Encoder | None]]:
    """Name, loader and encoder."""
    few: dict[str, Any] = {"n_train": 1000, "n_test": 1000}
    yield "rotated digits, 1,000 (README)", orbit.RotatedDigits(), None
    yield "rotated digits, 100", orbit.RotatedDigits(n_train=100), None
    yield "upright digits, 300", orbit.Digits(n_train=300), None
    yield "rotated MNIST, 1,000", orbit.RotatedMNIST(root, **few), None
    yield "MNIST, 1,000", orbit.MNIST(root, **few), None
    yield "CIFAR-10, 1,000", orbit.CIFAR10(root, **few), None
    yield "spoken digits, 1,000", orbit.SpokenDigits(root, n_train=1000), None
    yield "words in any order", orbit.XPerm(), None
    yield "solids as clouds, 180", orbit.Shapes(per_class=30, n_points=64), orbit.PointPairs()
    yield "vector field", orbit.VectorField(), None
    yield "QM7, Coulomb matrices, 1,000", orbit.QM7(root, **few), None


def tables(seed: int) -> Iterator[tuple[str, Dataset]]:
    """Tables of scikit-learn, three quarters of each for training."""
    for name, load in (("breast cancer", load_breast_cancer), ("diabetes", load_diabetes), ("wine", load_wine)):
        X, y = load(return_X_y=True)
        task = "regression" if name == "diabetes" else "classification"
        parts = train_test_split(X, y, random_state=seed, stratify=None if task == "regression" else y)
        X_train, X_test, y_train, y_test = parts
        yield name, Dataset(name, task, X_train, y_train, X_test, y_test, "scikit-learn")  # type: ignore[arg-type]


def pipeline(
    data: Dataset, representation: dict[str, Any], group: dict[str, Any], encoder: Encoder | None, lengthscale: Any
) -> Pipeline:
    learner = orbit.RidgeClassifier() if data.task == "classification" else orbit.RidgeRegressor()
    around = orbit.Orbit(orbit.build("group", **group))
    features = orbit.Nystrom(orbit.Gaussian(lengthscale), around, n_components=512, encoder=encoder, random_state=0)
    return make_pipeline(orbit.build("representation", **representation), features, learner)


def error(model: Pipeline, data: Dataset) -> float:
    """Of classes the share that is wrong, of numbers the root mean square error over the standard deviation."""
    predicted = model.predict(data.X_test)
    if data.task == "classification":
        return float((predicted != data.y_test).mean())
    return float(np.sqrt(np.square(predicted - data.y_test).mean()) / np.std(data.y_test))


def compared(draw: Any, representation: Any, group: Any, encoder: Encoder | None, seeds: int) -> tuple[np.ndarray, ...]:
    """Errors and seconds, shape (seeds, 2), and multiples of the median, shape (seeds,). Both are fitted in turns."""
    errors, seconds, multiples = np.empty((seeds, 2)), np.empty((seeds, 2)), np.empty(seeds)
    for seed in range(seeds):
        data = draw(seed)
        for i, lengthscale in enumerate(_LENGTHSCALES):
            model = pipeline(data, representation, group, encoder, lengthscale)
            start = time.process_time()
            model.fit(data.X_train, data.y_train)
            seconds[seed, i] = time.process_time() - start
            errors[seed, i] = error(model, data)
        choice = model[1].chosen_scale_
        multiples[seed] = 1.0 if choice is None else choice.multiple
    return errors, seconds, multiples


def row(name: str, errors: np.ndarray, seconds: np.ndarray, multiples: np.ndarray) -> str:
    """A row of the table; the standard error is that of the difference over seeds."""
    difference = errors[:, 1] - errors[:, 0]
    standard_error = difference.std(ddof=1) / np.sqrt(len(difference))
    median, auto = errors.mean(0)
    verdict = "worse" if difference.mean() > standard_error else "better" if -difference.mean() > standard_error else ""
    tried = f"{multiples.min():.2g} to {multiples.max():.2g}"
    ratio = seconds[:, 1].sum() / seconds[:, 0].sum()
    return (
        f"| {name} | {median:.4f} | {auto:.4f} | {difference.mean():+.4f} ± {standard_error:.4f} | {verdict} | {tried} "
        f"| {ratio:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of the names of the data sets that are run")
    args = parser.parse_args()
    print("| data, training points | median | auto | difference | | multiples | time |\n" + "| --- " * 7 + "|")
    for name, loader, encoder in cases(args.root):
        if not name.startswith(tuple(args.only)):
            continue
        parts = loader.default_representation, loader.default_group or {"name": "identity"}
        try:
            print(row(name, *compared(loader.load, *parts, encoder, args.seeds)), flush=True)
        except InputError as problem:
            print(f"left out: {name}: {problem}", flush=True)
    for name, _ in tables(0):
        if name.startswith(tuple(args.only)):
            parts = {"name": "standardize"}, {"name": "identity"}
            draw = lambda seed, name=name: dict(tables(seed))[name]  # noqa: E731
            print(row(name, *compared(draw, *parts, None, args.seeds)), flush=True)


if __name__ == "__main__":
    main()

"""Whether a lengthscale by leave-one-out error is ever worse than the median distance, and what it costs.

    python -m benchmarks.lengthscales DATA_FOLDER [--textures textures64.npz] [--seeds 5] [--first 0] [--only NAME ...]

Every data set in its own representation, averaged over a group: 512 Nyström features and ridge regression, all else at
the defaults. DATA_FOLDER has the folders ``mnist``, ``cifar10``, ``qm7`` and ``spoken_digits``; data sets that are not
there are left out, and so are the series without the package aeon. Textures are grey images ``X`` and ``X_test`` of
shape (n, 64, 64) with labels ``y`` and ``y_test``. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine, make_friedman1, make_moons
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

import orbit
from orbit.core.errors import InputError
from orbit.data import Dataset, Loader
from orbit.data.move import rotate_randomly
from orbit.encoders import BySize, Encoder, Gradients, Layer, Patches, PointPairs
from orbit.encoders.pooling import GaussianPooling

_LENGTHSCALES = ("median", "auto")

_SERIES = "OSULeaf", "ArrowHead", "ACSF1", "GunPoint", "BasicMotions", "ItalyPowerDemand"
_TABLES = {"breast cancer": load_breast_cancer, "wine": load_wine, "iris": load_iris, "diabetes": load_diabetes}
_SMALL = "breast cancer", "diabetes", "Friedman 1", "moons, four columns of noise"


@dataclass(frozen=True)
class Case:
    """A data set for each seed, and how it is learnt."""

    name: str
    draw: Callable[[int], Dataset]
    representation: dict[str, Any] = field(default_factory=lambda: {"name": "raw"})
    group: dict[str, Any] = field(default_factory=lambda: {"name": "identity"})
    encoder: Encoder | None = None


def loaded(name: str, loader: Loader, **changes: Any) -> Case:
    parts = {"representation": loader.default_representation, "group": loader.default_group or {"name": "identity"}}
    return Case(name, loader.load, **(parts | changes))


def cases(root: str, textures: Path | None) -> Iterator[Case]:
    turns, moves, raw = {"name": "rotation"}, {"name": "small_moves"}, {"name": "raw"}
    yield loaded("rotated digits, 1,000 (README)", orbit.RotatedDigits())
    yield loaded("rotated digits, 1,000, gradients", orbit.RotatedDigits(), representation=raw, encoder=Gradients())
    patches = Patches([Layer(size=3, pooling=GaussianPooling(2))])
    yield loaded("rotated digits, 1,000, patches", orbit.RotatedDigits(), representation=raw, encoder=patches)
    yield loaded("rotated digits, 100", orbit.RotatedDigits(n_train=100))
    yield loaded("upright digits, 300", orbit.Digits(n_train=300), representation=raw, group=moves)
    for n in (300, 1000):
        mnist = orbit.MNIST(root, n_train=n, n_test=1000)
        yield replace(loaded(f"rotated MNIST, {n:,}", mnist, representation=raw, group=turns), draw=turned(mnist))
        yield loaded(f"MNIST, {n:,}", mnist, representation=raw, group=moves)
    yield loaded(
        "MNIST, 300, patches",
        orbit.MNIST(root, n_train=300, n_test=1000),
        representation=raw,
        group=moves,
        encoder=BySize(),
    )
    yield loaded("CIFAR-10, 2,000", orbit.CIFAR10(root, n_train=2000, n_test=1000), group={"name": "reflection"})
    spoken = orbit.SpokenDigits(root, n_train=200)
    yield loaded("spoken digits, 200", spoken, group={"name": "cyclic", "axis": 1})
    yield loaded("spoken digits, 200, patches", spoken, group={"name": "cyclic", "axis": 1}, encoder=Patches())
    yield loaded("words in any order", orbit.XPerm())
    yield loaded("solids as clouds, 180", orbit.Shapes(per_class=30, n_points=64), encoder=PointPairs())
    if textures is not None:
        for n in (10, 50):
            yield Case(f"textures, {n} a class, patches", textures_of(textures, n), encoder=BySize())
    for name in _SERIES:
        yield Case(f"{name}, patches", resampled(name), encoder=BySize(axes=1))
    for name in _TABLES:
        yield Case(name, table(name), {"name": "standardize"})
    for n in (60, 200):
        for name in _SMALL:
            yield Case(f"{name}, {n}", table(name, n), {"name": "standardize"})
    yield loaded("vector field", orbit.VectorField())
    for n in (100, 300, 1000):
        molecules = orbit.QM7(root, n_train=n, n_test=1000)
        yield loaded(f"QM7, many_body, {n:,}", molecules, representation={"name": "many_body"})
    yield loaded("QM7, Coulomb matrices, 1,000", orbit.QM7(root, n_train=1000, n_test=1000))


def turned(loader: Loader) -> Callable[[int], Dataset]:
    """The images of each seed, each turned by a random angle."""

    def draw(seed: int) -> Dataset:
        data, (train, test) = loader.load(seed), np.random.SeedSequence(seed).generate_state(2)
        moved = rotate_randomly(data.X_train, int(train)), rotate_randomly(data.X_test, int(test))
        return replace(data, X_train=moved[0], X_test=moved[1])

    return draw


def textures_of(path: Path, per_class: int) -> Callable[[int], Dataset]:
    """So many random training pictures of each class, and all test pictures, which are of other areas."""

    def draw(seed: int) -> Dataset:
        with np.load(path, allow_pickle=False) as stored:
            X, X_test = (stored[key].astype(np.float32) / 255 for key in ("X", "X_test"))
            y, y_test = stored["y"], stored["y_test"]
        rng = np.random.default_rng(seed)
        rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:per_class] for label in np.unique(y)])
        return Dataset("textures", "classification", X[rows], y[rows], X_test, y_test, str(path))

    return draw


def resampled(name: str) -> Callable[[int], Dataset]:
    """Series that aeon bundles, the published parts put together and divided anew, with as many for training."""

    def draw(seed: int) -> Dataset:
        data = orbit.build("dataset", "series", bundled=name).load(0)
        X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
        return divided(name, "classification", X, y, len(data.y_train), seed)

    return draw


def table(name: str, train_size: float = 0.75) -> Callable[[int], Dataset]:
    """A table of scikit-learn, three quarters of it for training, or so many points."""
    numbers = ("diabetes", "Friedman 1")
    if name in _TABLES:
        X, y = _TABLES[name](return_X_y=True)
    elif name == "Friedman 1":
        X, y = make_friedman1(1000, 10, noise=1.0, random_state=0)
    else:
        X, y = make_moons(1000, noise=0.25, random_state=0)
        X = np.column_stack([X, np.random.default_rng(0).standard_normal((1000, 4))])
    return lambda seed: divided(name, "regression" if name in numbers else "classification", X, y, train_size, seed)


def divided(name: str, task: Any, X: np.ndarray, y: np.ndarray, train_size: float, seed: int) -> Dataset:
    together = y if task == "classification" else None
    parts = train_test_split(X, y, random_state=seed, train_size=train_size, stratify=together)
    X_train, X_test, y_train, y_test = parts
    return Dataset(name, task, X_train, y_train, X_test, y_test, name)


def pipeline(case: Case, task: str, lengthscale: Any) -> Pipeline:
    learner = orbit.RidgeClassifier() if task == "classification" else orbit.RidgeRegressor()
    around, kernel = orbit.Orbit(orbit.build("group", **case.group)), orbit.Gaussian(lengthscale)
    features = orbit.Nystrom(kernel, around, n_components=512, encoder=case.encoder, random_state=0)
    return make_pipeline(orbit.build("representation", **case.representation), features, learner)


def error(model: Pipeline, data: Dataset) -> float:
    """Of classes the share that is wrong, of numbers the root mean square error over the standard deviation."""
    predicted = model.predict(data.X_test)
    if data.task == "classification":
        return float((predicted != data.y_test).mean())
    return float(np.sqrt(np.square(predicted - data.y_test).mean()) / np.std(data.y_test))


def compared(case: Case, seeds: range) -> tuple[np.ndarray, ...]:
    """Errors and seconds, shape (seeds, 2), and multiples of the median, shape (seeds,). Both are fitted in turns.

    The multiple is NaN where each column has a lengthscale.
    """
    errors, seconds, multiples = np.empty((len(seeds), 2)), np.empty((len(seeds), 2)), np.empty(len(seeds))
    for row, seed in enumerate(seeds):
        data = case.draw(seed)
        for i, lengthscale in enumerate(_LENGTHSCALES):
            model = pipeline(case, data.task, lengthscale)
            start = time.process_time()
            model.fit(data.X_train, data.y_train)
            seconds[row, i] = time.process_time() - start
            errors[row, i] = error(model, data)
        choice = model[1].chosen_scale_
        multiples[row] = 1.0 if choice is None else getattr(choice, "multiple", np.nan)
    return errors, seconds, multiples


def row(name: str, errors: np.ndarray, seconds: np.ndarray, multiples: np.ndarray) -> str:
    """A row of the table; the standard error is that of the difference over seeds."""
    difference = errors[:, 1] - errors[:, 0]
    standard_error = difference.std(ddof=1) / np.sqrt(len(difference))
    median, auto = errors.mean(0)
    verdict = "worse" if difference.mean() > standard_error else "better" if -difference.mean() > standard_error else ""
    by_column, of_all = np.isnan(multiples).sum(), multiples[~np.isnan(multiples)]
    tried = f"{of_all.min():.2g} to {of_all.max():.2g}" if len(of_all) else ""
    tried += f" (by column {by_column} of {len(multiples)})" * bool(by_column)
    ratio = seconds[:, 1].sum() / seconds[:, 0].sum()
    return (
        f"| {name} | {median:.4f} | {auto:.4f} | {difference.mean():+.4f} ± {standard_error:.4f} | {verdict} | {tried} "
        f"| {ratio:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--textures", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of the names of the data sets that are run")
    args = parser.parse_args()
    print("| data, training points | median | auto | difference | | multiples | time |\n" + "| --- " * 7 + "|")
    for case in cases(args.root, args.textures):
        if not case.name.startswith(tuple(args.only)):
            continue
        try:
            print(row(case.name, *compared(case, range(args.first, args.first + args.seeds))), flush=True)
        except InputError as problem:
            print(f"left out: {case.name}: {problem}", flush=True)


if __name__ == "__main__":
    main()

"""Whether orbit.discover finds the group that is known to leave the answer unchanged, and none where labels are noise.

    python -m benchmarks.discover_trials DATA_FOLDER [--leaves OSULeaf_TRAIN.ts] [--textures textures64.npz]
        [--seeds 5] [--shuffled 200] [--only NAME ...]

DATA_FOLDER has the folders ``mnist``, ``qm7`` and ``spoken_digits`` of the data sets of those names. Textures are gray
images, ``X`` of shape (n, 64, 64) and labels ``y``. Series need the package aeon. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_wine
from sklearn.preprocessing import StandardScaler

import orbit
from orbit.data import Loader
from orbit.data.move import rotate_randomly
from orbit.discovery import Discovery
from orbit.encoders import Encoder, Gradients

Points = tuple[np.ndarray, np.ndarray]

#: The constants of orbit.discovery were chosen on smaller seeds.
_FIRST = 20

#: The groups of moves that a person allows for in upright digits.
_UPRIGHT = "small_moves translation affine"


def loaded(loader: Loader, n: int, representation: Any = None) -> Callable[[int], Points]:
    """Random training points of a loader for each seed, in a representation."""

    def draw(seed: int) -> Points:
        data = loader.load(seed)
        X, y = drawn((data.X_train, data.y_train), n, seed)
        return (X if representation is None else representation.fit_transform(X)), y

    return draw


def drawn(data: Points, n: int, seed: int) -> Points:
    rows = np.random.default_rng(seed).permutation(len(data[0]))[:n]
    return data[0][rows], data[1][rows]


def table(data: Any) -> Callable[[int], Points]:
    X = StandardScaler().fit_transform(data.data)
    return lambda seed: drawn((X, data.target), 150, seed)


def series(path: Path) -> Points:
    """Series of equal length and their labels from a .ts file."""
    lines = path.read_text().partition("@data")[2].split()
    values, labels = zip(*(line.rsplit(":", 1) for line in lines), strict=True)
    return np.array([each.split(",") for each in values], float), np.array(labels)


def waves(seed: int) -> Points:
    """Noisy sines and squares from a random time on, and which of them they are."""
    rng = np.random.default_rng(seed)
    y, time = rng.integers(2, size=200), np.arange(32)
    shapes = np.where(y[:, None] == 1, np.sin(time), np.sign(np.sin(time / 2)))
    return shifted(shapes, rng) + rng.normal(size=(200, 32)), y


def codes(seed: int) -> Points:
    """Noisy copies of four random series, half of them backwards, and which of the four they are."""
    rng = np.random.default_rng(seed)
    y, templates = rng.integers(4, size=200), rng.normal(size=(4, 48))
    X = templates[y] + 1.5 * rng.normal(size=(200, 48))
    return half_backwards(X, rng), y


def bundled(name: str, moved: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Callable[[int], Points]:
    """200 random series of a set that aeon bundles, both of its parts, moved."""

    def draw(seed: int) -> Points:
        data, rng = orbit.build("dataset", "series", bundled=name).load(0), np.random.default_rng(seed)
        X, y = drawn((np.r_[data.X_train, data.X_test], np.r_[data.y_train, data.y_test]), 200, seed)
        return moved(X, rng), y

    return draw


def shifted(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each series shifted cyclically by a random time."""
    return np.stack([np.roll(each, rng.integers(len(each))) for each in X])


def half_backwards(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(len(X))[:, None] < 0.5, X[:, ::-1], X)


def turned(draw: Callable[[int], Points]) -> Callable[[int], Points]:
    """The images of each seed, each turned by a random angle."""

    def moved(seed: int) -> Points:
        X, y = draw(seed)
        return rotate_randomly(X, seed), y

    return moved


def turned_textures(path: Path) -> Callable[[int], Points]:
    """Random textures for each seed, at a quarter of the pixels' number."""
    with np.load(path, allow_pickle=False) as stored:
        X, y = stored["X"].astype(np.float32), stored["y"]
    return lambda seed: drawn((X.reshape(len(X), 32, 2, 32, 2).mean((2, 4)), y), 200, seed)


def cases(
    root: str, leaves: Path | None, textures: Path | None
) -> Iterator[tuple[str, str, Callable[[int], Points], Encoder | None]]:
    """Name, the names of the right groups or invariant encoders, the points for each seed, and the encoder."""
    of_points: list[tuple[str, str, Callable[[int], Points]]] = [
        ("rotated digits, 300", "rotation", loaded(orbit.RotatedDigits(), 300)),
        ("upright digits, 300", _UPRIGHT, loaded(orbit.Digits(), 300)),
        ("words in any order, 300", "permutation", loaded(orbit.XPerm(), 300)),
        ("Coulomb matrices (QM7), 500", "permutation", loaded(orbit.QM7(root), 500, orbit.Coulomb())),
        ("solids as clouds, 300", "point_pairs", loaded(orbit.Shapes(n_points=30), 300)),
        ("spectrograms of digits, 500", "cyclic translation", loaded(orbit.SpokenDigits(root), 500)),
        ("waves from any time on, 200", "cyclic", waves),
        ("codes, half of them backwards, 200", "reflection", codes),
        ("GunPoint, each shifted, 200", "cyclic", bundled("GunPoint", shifted)),
        ("ArrowHead, half of them backwards, 200", "reflection", bundled("ArrowHead", half_backwards)),
        ("wine, 150", "identity", table(load_wine())),
        ("diabetes, 150", "identity", table(load_diabetes())),
    ]
    for n in (300, 1000):
        of_points.append((f"rotated MNIST, {n}", "rotation", turned(loaded(orbit.MNIST(root), n))))
        of_points.append((f"upright MNIST, {n}", _UPRIGHT, loaded(orbit.MNIST(root), n)))
    if leaves is not None:
        outlines = series(leaves)
        of_points.append(("outlines of leaves, 200", "cyclic", lambda seed: drawn(outlines, 200, seed)))
    yield from ((*case, None) for case in of_points)
    if textures is not None:
        name = "textures at any turn, 200, `encoder=gradients`"
        yield name, "rotation dihedral", turned_textures(textures), Gradients()


def first(found: Discovery) -> str:
    """The name of the group, or the invariant encoder, that is reported; of a product that of its first factor."""
    group = found.settings.get("encoder", found.settings["group"])
    return (group.get("factors") or [group])[0]["name"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--leaves", type=Path)
    parser.add_argument("--textures", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of the names of the cases that are run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shuffled", type=int, default=200)
    args = parser.parse_args()
    print("| data, training points | right | found in each seed | right |\n| --- | --- | --- | --- |")
    seeds = range(_FIRST, _FIRST + args.seeds)
    for name, right, draw, encoder in cases(args.root, args.leaves, args.textures):
        if not name.startswith(tuple(args.only)):
            continue
        found = [first(orbit.discover(*draw(seed), encoder=encoder, refine=False)) for seed in seeds]
        texts = ", ".join(f"{group} {count}" for group, count in Counter(found).most_common())
        hits = sum(group in right.split() for group in found)
        print(f"| {name} | {right.replace(' ', ' or ')} | {texts} | {hits} of {args.seeds} |", flush=True)
    wrong = Counter(first(_shuffled(seed)) for seed in range(_FIRST, _FIRST + args.shuffled))
    print(f"\nRotated digits, 100 of them, labels shuffled, {args.shuffled} times: {dict(wrong)}")


def _shuffled(seed: int) -> Discovery:
    X, y = drawn((lambda data: (data.X_train, data.y_train))(orbit.RotatedDigits().load(seed)), 100, seed)
    return orbit.discover(X, np.random.default_rng(seed).permutation(y), refine=False)


if __name__ == "__main__":
    main()

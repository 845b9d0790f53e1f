"""Whether orbit.discover finds the group that is known to leave the answer unchanged, and none where labels are noise.

    python -m benchmarks.discover_trials DATA_FOLDER [--leaves OSULeaf_TRAIN.ts] [--seeds 5] [--shuffled 200]

DATA_FOLDER has the folders ``mnist``, ``qm7`` and ``spoken_digits`` of the data sets of those names. Prints Markdown.
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
from orbit.discovery import Discovery

Points = tuple[np.ndarray, np.ndarray]

#: The constants of orbit.discovery were chosen on smaller seeds.
_FIRST = 10

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


def cases(root: str, leaves: Path | None) -> Iterator[tuple[str, str, Callable[[int], Points]]]:
    """Name, the names of the right groups, and the points for each seed."""
    yield "rotated digits, 300", "rotation", loaded(orbit.RotatedDigits(), 300)
    yield "upright digits, 300", _UPRIGHT, loaded(orbit.Digits(), 300)
    for n in (300, 1000):
        yield f"rotated MNIST, {n}", "rotation", loaded(orbit.RotatedMNIST(root), n)
        yield f"upright MNIST, {n}", _UPRIGHT, loaded(orbit.MNIST(root), n)
    yield "words in any order, 300", "permutation", loaded(orbit.XPerm(), 300)
    coulomb = orbit.build("representation", "coulomb")
    yield "Coulomb matrices (QM7), 300", "permutation", loaded(orbit.QM7(root), 300, coulomb)
    yield "solids as clouds, 300", "permutation orthogonal", loaded(orbit.Shapes(n_points=30), 300)
    if leaves is not None:
        outlines = series(leaves)
        yield "outlines of leaves, 200", "cyclic", lambda seed: drawn(outlines, 200, seed)
    yield "wine, 150", "identity", table(load_wine())
    yield "diabetes, 150", "identity", table(load_diabetes())


def first(found: Discovery) -> str:
    """The name of the group, or the invariant encoder, that is reported; of a product that of its first factor."""
    group = found.settings.get("encoder", found.settings["group"])
    return (group.get("factors") or [group])[0]["name"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--leaves", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shuffled", type=int, default=200)
    args = parser.parse_args()
    print("| data, training points | right | found in each seed | right |\n| --- | --- | --- | --- |")
    for name, right, draw in cases(args.root, args.leaves):
        found = [first(orbit.discover(*draw(seed), refine=False)) for seed in range(_FIRST, _FIRST + args.seeds)]
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

"""Generated sets whose classes differ in level, brightness, contrast or place, or in none: the defaults and a forest.

    python -m benchmarks.levels [encoder.values=none ...] [--seeds 0 1] [--only lesions films]

Prints a table of test accuracies and processor seconds: a run with ``encoder=by_size``, the settings given and else
defaults, and a random forest on percentiles of the values. Sizes of effects were chosen by the forest's accuracy, and
settings of the encoder, on seeds from 100 on.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hydra import compose, initialize_config_dir
from scipy.ndimage import gaussian_filter
from scipy.spatial.transform import Rotation
from sklearn.ensemble import RandomForestClassifier

import runners.components  # noqa: F401  registers the runners
from runners.config import config_dirs
from runners.config.plan import plan
from runners.config.schema import register_schemas
from runners.experiments.discover import with_discovered_settings
from runners.experiments.fitting import fit_and_score
from runners.job.job import Stopwatch
from runners.measure.tables import markdown_table

# Points of each class, for training and in all; percentiles of the forest.
_TRAIN, _ALL = 30, 90
_PERCENTILES = 0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 100


def field(rng: np.random.Generator, shape: tuple[int, ...], width: float) -> np.ndarray:
    """Smooth noise of variance 1."""
    smooth = gaussian_filter(rng.standard_normal(shape), width, mode="wrap")
    return smooth / smooth.std()


def blobs(rng: np.random.Generator, shape: tuple[int, ...], number: int, width: float) -> np.ndarray:
    """Gaussian spots of height 1 at random places, the highest of all at each position."""
    places = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    squares = [np.square(places - rng.uniform(0, shape)).sum(-1) for _ in range(number)]
    return np.exp(-np.min(squares, axis=0) / (2 * width**2))


def lesion(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A volume of tissue without a lesion, with a bright one, or with a dark one."""
    tissue = rng.normal(0, 0.2) + field(rng, (24,) * 3, 1.5) + 0.5 * rng.standard_normal((24,) * 3)
    return tissue + (0, 1, -1)[kind] * rng.uniform(4, 7) * blobs(rng, tissue.shape, 1, rng.uniform(1.5, 2.5))


def spots(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A picture with bright spots, dark spots, or neither, under changing light."""
    ground = rng.normal(0, 0.3) + field(rng, (64, 64), 2) + 0.3 * rng.standard_normal((64, 64))
    return ground + (0, 1, -1)[kind] * rng.uniform(3, 5) * blobs(rng, ground.shape, int(rng.integers(2, 6)), 2)


def film(rng: np.random.Generator, kind: int) -> np.ndarray:
    """An X-ray film with ribs: healthy, with a nodule, or with specks, at any place and of any exposure."""
    y, x = np.mgrid[:96, :96]
    across = y + 0.004 * np.square(x - 48) + rng.uniform(-0.2, 0.2) * x + rng.uniform(0, 22)
    tissue = 3 * field(rng, x.shape, 12) + field(rng, x.shape, 3) + 2 * np.exp(-np.square((across % 22 - 11) / 4))
    number, width, height = ((1, 1, 0), (1, rng.uniform(4, 6), 4), (8, 1, 7))[kind]
    found = height * rng.uniform(0.75, 1.25) * blobs(rng, x.shape, number, width)
    return rng.lognormal(0, 0.15) * (tissue + found + 0.6 * rng.standard_normal(x.shape))


def level(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A sensor's noise about one of three levels, which drift."""
    drift = rng.normal(0, 0.4) + 0.3 * field(rng, (128,), 20)
    return 1.0 * (kind - 1) + drift + field(rng, (128,), 2) + 0.3 * rng.standard_normal(128)


def load(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A week of hourly loads: a small or large base, with low or high peaks twice a day."""
    base, peak = ((1, 1), (1, 2), (2, 1), (2, 2))[kind] * rng.lognormal(0, 0.2, 2)
    hour = np.arange(168) - rng.uniform(-2, 2)
    morning, evening = (np.exp(-np.square((hour - at + 12) % 24 - 12) / 8) for at in (8, 19))
    days = np.repeat(rng.lognormal(0, 0.3, 7), 24)
    return base + peak * days * (morning + evening) * rng.lognormal(0, 0.2, 168) + 0.2 * rng.standard_normal(168)


def texture(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A volume of grains, fibres or layers at any turn, of any brightness."""
    waves = np.stack(np.meshgrid(*[np.fft.fftfreq(24)] * 3, indexing="ij"), -1)
    turned = waves @ Rotation.random(random_state=rng).as_matrix()
    spread = np.exp(-2 * np.pi**2 * np.square(turned * ((1.5, 1.5, 1.5), (5, 1, 1), (2, 2, 0.7))[kind]).sum(-1))
    volume = np.fft.ifftn(spread * np.fft.fftn(rng.standard_normal((24,) * 3))).real
    return rng.normal() + rng.lognormal(0, 0.3) * (volume / volume.std() + 0.5 * rng.standard_normal(volume.shape))


def gain(rng: np.random.Generator, kind: int) -> np.ndarray:
    """Pulses, steps or waves at a random time, through an amplifier of any gain and offset."""
    phase = (np.arange(128) / 32 + rng.uniform()) % 1
    wave = (np.exp(-np.square((phase - 0.5) / 0.08)), np.sign(phase - 0.5), np.sin(2 * np.pi * phase))[kind]
    return rng.normal(0, 2) + rng.lognormal(0, 0.7) * (wave / wave.std() + 0.5 * rng.standard_normal(128))


def burst(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A burst of one of three pitches at a random time, in 40 samples."""
    since = np.arange(40) - rng.uniform(8, 32)
    wave = np.sin((0.7, 1.1, 1.6)[kind] * since + rng.uniform(0, 2 * np.pi))
    return rng.uniform(0.8, 1.5) * np.exp(-np.square(since / 4)) * wave + 0.25 * rng.standard_normal(40)


def day(rng: np.random.Generator, kind: int) -> np.ndarray:
    """The use of power in 36 parts of a day: two, one or three peaks, at about the same hours."""
    peaks = (
        ((7.5, 1, 0.9), (19, 1.5, 1.5)),
        ((12.5, 3.5, 1.2), (19.5, 1.6, 0.7)),
        ((7, 1, 0.7), (13, 1.3, 0.8), (20, 1.6, 1.2)),
    )
    hours, use = np.arange(36) * 2 / 3, np.full(36, 0.3)
    for at, width, size in peaks[kind]:
        use += size * rng.uniform(0.7, 1.3) * np.exp(-np.square((hours - at - rng.normal()) / width) / 2)
    return rng.lognormal(0, 0.4) * use + 0.12 * rng.standard_normal(36)


def spectrum(rng: np.random.Generator, kind: int) -> np.ndarray:
    """A spectrum of four substances in shares that differ by kind, on a sloping baseline, for a random path length."""
    place = np.linspace(0, 1, 200)
    bands = [
        np.exp(-np.square((place - at) / width) / 2)
        for at, width in ((0.2, 0.05), (0.35, 0.08), (0.6, 0.1), (0.8, 0.06))
    ]
    shares = rng.dirichlet(((24, 32, 32, 40), (36, 32, 24, 40), (24, 36, 40, 32))[kind])
    slope, offset = rng.normal(0, 0.2, 2)
    return rng.normal(1, 0.12) * shares @ bands + slope * place + offset + 0.004 * rng.standard_normal(200)


#: Name -> the generator of a point, and the number of classes.
FAMILIES: dict[str, tuple[Callable[[np.random.Generator, int], np.ndarray], int]] = {
    "lesions in volumes": (lesion, 3),
    "bright or dark spots": (spots, 3),
    "films": (film, 3),
    "levels of series": (level, 3),
    "loads": (load, 4),
    "textures of volumes": (texture, 3),
    "gains of series": (gain, 3),
    "bursts": (burst, 3),
    "days": (day, 3),
    "spectra": (spectrum, 3),
}


def drawn(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points, shape (n, *shape), and classes in turn; those for training first."""
    point, classes = FAMILIES[name]
    rng, y = np.random.default_rng(seed), np.arange(_ALL * classes) % classes
    return np.array([point(rng, int(kind)) for kind in y], np.float32), y


def ours(X: np.ndarray, y: np.ndarray, n_train: int, settings: list[str]) -> tuple[float, float, str]:
    """Accuracy and processor seconds of a run, and the encoder that it chose."""
    own = config_dirs.own()
    register_schemas(own, *config_dirs.of_plugins())
    with tempfile.TemporaryDirectory() as folder, initialize_config_dir(str(own), version_base="1.3"):
        np.savez(Path(folder) / "set.npz", X=X, y=y, n_train=n_train)
        given = ["dataset=arrays", f"dataset.path={folder}/set.npz", "encoder=by_size", "engine.progress=false"]
        start = time.process_time()
        made, _ = with_discovered_settings(plan(compose("config", overrides=[*given, *settings])), None)
        metrics = fit_and_score(made, made.load(), Stopwatch()).metrics
    chosen = " ".join(
        f"{key}={value}" for key, value in made.config["encoder"].items() if key != "name" and value is not None
    )
    return metrics["test/accuracy"], time.process_time() - start, chosen


def forest(X: np.ndarray, y: np.ndarray, n_train: int) -> tuple[float, float]:
    start = time.process_time()
    levels = np.percentile(X.reshape(len(X), -1), _PERCENTILES, axis=1).T
    found = RandomForestClassifier(500, random_state=0).fit(levels[:n_train], y[:n_train])
    return found.score(levels[n_train:], y[n_train:]), time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", help="settings of the run, such as encoder.values=none")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    parser.add_argument("--only", nargs="*", default=[""], help="beginnings of the names of the families that are run")
    args = parser.parse_args()
    rows = []
    for name in (name for name in FAMILIES if name.startswith(tuple(args.only))):
        for seed in args.seeds:
            X, y = drawn(name, seed)
            n_train = _TRAIN * FAMILIES[name][1]
            (right, seconds, chosen), (other, others) = ours(X, y, n_train, args.settings), forest(X, y, n_train)
            times = f"{seconds:.1f} s", f"{others:.1f} s"
            rows.append([name, str(seed), f"{right:.1%}", times[0], chosen, f"{other:.1%}", times[1]])
    print(markdown_table(["set", "seed", "orbit", "time", "encoder", "forest", "time"], rows))


if __name__ == "__main__":
    main()

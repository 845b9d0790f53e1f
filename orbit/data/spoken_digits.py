"""The Free Spoken Digit Dataset, as waveforms or as spectrograms of one size."""

import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from orbit.core.errors import DataFileError, InputError, choose_from
from orbit.core.params import PositiveFloat, Range
from orbit.core.paths import user_path
from orbit.core.random import RandomState, generator
from orbit.data.base import Dataset, FileLoader, Points
from orbit.data.files import DataFile, existing_file, missing, places, readable
from orbit.data.sounds import Form, check_duration, decoded, represented
from orbit.registry import register

_URL = "https://github.com/Jakobovski/free-spoken-digit-dataset/archive/refs/tags/v1.0.10.zip"
ARCHIVE = DataFile(
    "free-spoken-digit-dataset-1.0.10.zip",
    None,
    f"It is the Free Spoken Digit Dataset, {_URL}; the extracted folder, or any .zip of its recordings, will also do.",
    _URL,
)
RATE = 8000  # samples a second
_NAME = re.compile(r"(\d)_([A-Za-z]+)_(\d+)\.wav")
_TEST_INDICES = (0, 1, 2, 3, 4)  # the published test split


@register("dataset", "spoken_digits")
@dataclass(eq=False, repr=False)
class SpokenDigits(FileLoader):
    """3,000 recordings of the digits 0 to 9 by six speakers, 8 kHz, 50 per digit and speaker; replaces TIDIGITS.

    Recordings are centred in ``duration`` seconds: padded with silence, or cut at both ends.

    Parameters
    ----------
    root : str or None
        Data folder; None is the variable ORBIT_DATA, else ``data``. Files
        ``DIGIT_SPEAKER_INDEX.wav`` are searched for in its subfolder ``spoken_digits``, in any folder or .zip.
    form : {"spectrogram", "waveform"}
        ``spectrogram``: shape (bands, frames), for the group ``translation``: the energy in bands of equal width on the
        mel scale, the highest in the first row, in decibels below the recording's loudest; 0 is 80 dB below or less,
        1 is the loudest. ``waveform``: shape (samples,), for the group ``pitch_tempo``.
    duration : float > 0
        In seconds. One percent of the recordings are longer than 0.92 s.
    bands, frames : int
        Size of a spectrogram, >= 2.
    trim : float > 0 or None
        As for :class:`~orbit.data.sounds.Sounds`; None, as the experiments of the papers have it, leaves nothing out.
    window : float > 0
        As for :class:`~orbit.data.sounds.Sounds`.
    split : {"utterance", "speaker", "leave_one_speaker_out"}
        The test part: recordings with index 0 to 4, the published split; all recordings of two random speakers; all
        recordings of ``speaker``. In the last two, lengthscale, lambda and other settings are chosen by folds of
        speakers.
    speaker : str
        Name of the test speaker, for ``split="leave_one_speaker_out"``.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    download : bool
        Fetch the archive into ``spoken_digits`` of the data folder if no recording is found. No digest of it is
        published; the checksums inside the archive are verified when it is read.
    """

    folder = "spoken_digits"
    default_representation = {"name": "unit_norm", "norm": "each"}
    default_group = {"name": "translation"}
    ink = True

    form: Form = "spectrogram"
    duration: PositiveFloat = 1.0
    bands: Annotated[int, Range(low=2)] = 32
    frames: Annotated[int, Range(low=2)] = 32
    split: Literal["utterance", "speaker", "leave_one_speaker_out"] = "utterance"
    speaker: str = "george"
    trim: PositiveFloat | None = None
    window: PositiveFloat = 0.032

    def check(self) -> None:
        super().check()
        check_duration(self.duration, self.window)

    def files(self) -> list[DataFile]:
        return [ARCHIVE]

    def instead(self) -> list[Path]:
        """The recordings, or the archives that hold them; none if there are neither."""
        for place in places(self.root, self.folder):
            recordings = [path for path in place.rglob("*.wav") if _NAME.fullmatch(path.name)]
            if found := sorted(recordings or place.glob("*.zip")):
                return found
        return []

    def _load(self, random_state: RandomState) -> Dataset:
        contents = dict(_contents(self.instead() or [self.path(ARCHIVE)]))
        found = sorted((int(m[1]), m[2], int(m[3]), m[0]) for m in map(_NAME.fullmatch, contents) if m)
        if not found:
            raise missing(places(self.root, self.folder)[0] / ARCHIVE.name, ARCHIVE)
        y, speakers, indices, names = map(np.array, zip(*found, strict=True))
        test, held_out = np.isin(indices, _TEST_INDICES), "indices 0 to 4"
        if self.split != "utterance":
            of_test = self._test_speakers(np.unique(speakers).tolist(), random_state)
            test, held_out = np.isin(speakers, of_test), ", ".join(of_test)
        if test.all() or not test.any():
            raise InputError(
                f"dataset.split={self.split} leaves no recording for {'training' if test.all() else 'testing'}, of "
                f"{len(names)} found"
            )
        X = np.stack([self._represent(_samples(contents[name], name)) for name in names])
        source = f"Free Spoken Digit Dataset, {len(names)} recordings, {self.split}: tested on {held_out}"
        # where the test part has other speakers than the training part, so have validation parts
        is_known = self.split == "utterance" or len(np.unique(speakers[~test])) < 2
        clusters = None if is_known else speakers
        return Dataset.of_parts(self.name, "classification", X, y, ~test, test, source, clusters=clusters)

    def _test_speakers(self, speakers: list[str], random_state: RandomState) -> list[str]:
        if self.split == "speaker":
            return sorted(generator(random_state).choice(speakers, min(2, len(speakers)), replace=False))
        if self.speaker not in speakers:
            raise InputError(f"dataset.speaker={self.speaker}: no such speaker{choose_from(self.speaker, speakers)}")
        return [self.speaker]

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        base = user_path(path, self.label())
        if not base.is_dir() and base.suffix.lower() != ".wav":
            return super()._read_points(path, form)
        found = base.rglob("*") if base.is_dir() else [existing_file(path, self.label())]
        files = sorted(file for file in found if file.suffix.lower() == ".wav")
        if not files:
            raise DataFileError(
                f"{path}: expected a folder with .wav files, or one .wav, .npz or .npy file, found none"
            )
        X = np.stack([self._represent(_samples(file.read_bytes(), str(file))) for file in files])
        return Points(X, [str(f.relative_to(base)) if f != base else f.name for f in files])

    def _represent(self, samples: np.ndarray) -> np.ndarray:
        length = round(self.duration * RATE)
        return represented(samples, self.form, length, self.bands, self.frames, RATE, self.trim, self.window)


def _samples(content: bytes, name: str) -> np.ndarray:
    """The signal of a .wav file, values in [-1, 1)."""
    rate, samples, kind = decoded(content, name)
    count, channels = samples.shape
    if (rate, channels, kind) != (RATE, 1, "PCM_16") or not count:
        raise DataFileError(
            f"{name}: expected one channel of {RATE} samples a second in 16 bits, found {count} samples of "
            f"{channels} channels at {rate} in {kind}"
        )
    return samples[:, 0]


def _contents(paths: list[Path]) -> Iterator[tuple[str, bytes]]:
    """Names, without folders, and contents of the files, and of the members of .zip files."""
    for path in paths:
        with readable(path.absolute(), "cannot be read", f". {ARCHIVE.how}"):
            if path.suffix != ".zip":
                yield path.name, path.read_bytes()
                continue
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".wav"):
                        yield Path(name).name, archive.read(name)

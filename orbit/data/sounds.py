"""A user's own recordings, in one folder per class, as waveforms or as spectrograms of one size."""

from __future__ import annotations

import io
import math
import struct
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from scipy.io import wavfile
from scipy.signal import resample_poly

from orbit.core.errors import DataFileError, InputError, ParameterError
from orbit.core.memory import check_fits
from orbit.core.params import Fraction, PositiveFloat, PositiveInt, Range
from orbit.core.threads import single_threaded
from orbit.data.class_folders import ClassFolders
from orbit.registry import register
from orbit.representations import mel_spectrogram

Form = Literal["spectrogram", "waveform"]

# Seconds of the shortest window of a spectrogram, and decibels below the loudest at which it is 0.
WINDOW_S = 0.032
_FLOOR_DB = 80.0

# Limits of the samples a second: at the least, a window has 16 samples.
_LEAST_RATE, _MOST_RATE = 500, 1_000_000

# Sizes of samples from here on are placeholders of programs that stream: SoX writes this one, others 2^32 - 1.
_STREAMED = 0x7FFFF000

# Ratio of the longest recording to the median above which a warning says how much is padded with silence.
_LONG = 4.0


@register("dataset", "sounds")
class Sounds(ClassFolders):
    """Recordings (.wav) in class folders, ``FOLDER/yes/1.wav``; or in ``FOLDER/train/yes`` and ``FOLDER/test/yes``.

    Several channels are averaged. Recordings are centred in ``duration`` seconds: padded with silence, or trimmed at
    both ends.

    Parameters
    ----------
    path : str or None
        The folder. Required.
    form : {"spectrogram", "waveform"}
        ``spectrogram``: shape (bands, frames), for the group ``translation``: the energy in bands of equal width on the
        mel scale, the highest in the first row, in decibels below the recording's loudest; 0 is 80 dB below or less,
        1 is the loudest. Windows have 32 ms, or more if they would leave gaps. ``waveform``: shape (samples,), integers
        divided by their largest, for the group ``pitch_tempo``.
    duration : float > 0 or None
        In seconds. None: that of the longest recording.
    rate : int >= 1 or None
        Samples a second, to which recordings are resampled; None: they must have equal rates.
    bands, frames : int
        Size of a spectrogram, >= 2.
    test_fraction : float in (0, 1)
        Share of the recordings in the random test part if there are no folders ``train`` and ``test``.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    """

    default_representation = {"name": "unit_norm", "norm": "each"}
    default_group = {"name": "translation"}
    ink = True
    reading = "rate", "duration"
    thing, suffixes, shown = "recording", (".wav",), ".wav"

    def __init__(
        self,
        path: str | None = None,
        form: Form = "spectrogram",
        duration: PositiveFloat | None = None,
        rate: PositiveInt | None = None,
        bands: Annotated[int, Range(low=2)] = 32,
        frames: Annotated[int, Range(low=2)] = 32,
        test_fraction: Fraction = 0.25,
        n_train: PositiveInt | None = None,
        n_test: PositiveInt | None = None,
    ) -> None:
        self.path = path
        self.form = form
        self.duration = duration
        self.rate = rate
        self.bands = bands
        self.frames = frames
        self.test_fraction = test_fraction
        self.n_train = n_train
        self.n_test = n_test

    def check(self) -> None:
        super().check()
        check_duration(self.duration)
        if self.rate is not None and not _LEAST_RATE <= self.rate <= _MOST_RATE:
            raise ParameterError("rate", f"{_LEAST_RATE} to {_MOST_RATE:,} samples a second", self.rate)

    def _how(self) -> str:
        return f"as {self.form}s"

    def _read(self, files: list[Path], form: Mapping[str, Any] | None) -> tuple[np.ndarray, dict[str, Any]]:
        """All recordings; their rate and duration are those of the form, or of the parameters, or of the recordings."""
        reading: dict[str, Any] = {"rate": self.rate, "duration": self.duration}
        if form is not None:
            reading = {key: form[key] for key in self.reading}
        if None in reading.values():
            reading = self._common(files, **reading)
        rate, length = reading["rate"], round(reading["duration"] * reading["rate"])
        shape = (length,) if self.form == "waveform" else (self.bands, self.frames)
        check_fits("duration", f"{len(files):,} recordings of {length:,} samples", 4 * len(files) * math.prod(shape))
        X = np.empty((len(files), *shape), dtype=np.float32)
        for i, file in enumerate(files):
            found, samples = _read_wav(file)
            if found != rate:
                if form is None and self.rate is None:
                    raise _unequal(file, found, rate)
                divisor = math.gcd(rate, found)
                samples = resample_poly(samples, rate // divisor, found // divisor)
            X[i] = represented(samples, self.form, length, self.bands, self.frames, rate)
        return X, reading

    def _common(self, files: list[Path], rate: int | None, duration: float | None) -> dict[str, Any]:
        """The rate of all recordings, and the duration of the longest, where they are not given."""
        seconds = []
        for file in files:
            found, samples = _read_wav(file)
            rate = rate or found
            if found != rate and self.rate is None:
                raise _unequal(file, found, rate)
            seconds.append(len(samples) / found)
        longest, median, most = max(seconds), *np.quantile(seconds, [0.5, 0.95])
        if duration is None and longest > _LONG * median:
            warnings.warn(
                f"the longest recording, {files[int(np.argmax(seconds))]}, has {longest:.3g} s, half of them at most "
                f"{median:.3g} s, and all are padded with silence; set duration={most:.2g} to trim the longest ones",
                stacklevel=2,
            )
        return {"rate": rate, "duration": duration or max(longest, WINDOW_S)}


def check_duration(seconds: float | None) -> None:
    """Raise ``ParameterError`` for a duration shorter than the window of a spectrogram."""
    if seconds is not None and seconds < WINDOW_S:
        raise ParameterError("duration", f"at least {WINDOW_S:g} s", seconds)


def represented(samples: np.ndarray, form: Form, length: int, bands: int, frames: int, rate: int) -> np.ndarray:
    """A signal centred in ``length`` samples, as a waveform or as a spectrogram, float32."""
    centred = _centred(samples, length)
    if form == "waveform":
        return centred.astype(np.float32)
    window = min(length, max(round(WINDOW_S * rate), -(-length // frames)))
    with single_threaded():  # a quarter of a millisecond, for which threads would wait longer
        picture = mel_spectrogram(torch.from_numpy(centred)[None], bands, frames, rate, window, _FLOOR_DB)
    return picture[0].numpy().astype(np.float32)


def _centred(samples: np.ndarray, length: int) -> np.ndarray:
    """The signal centred in ``length`` samples: padded with zeros, or trimmed at both ends."""
    cut = max(0, len(samples) - length) // 2
    kept = samples[cut : cut + length]
    before = (length - len(kept)) // 2
    return np.pad(kept, (before, length - len(kept) - before))


def decoded(content: bytes, name: str) -> tuple[int, np.ndarray]:
    """Samples a second, and the samples of a .wav file as they are stored, shape (n,) or (n, channels)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", wavfile.WavFileWarning)  # of a file that ends too early
            warnings.filterwarnings("ignore", "Chunk .non-data. not understood")  # such as texts beside the samples
            return wavfile.read(io.BytesIO(_with_sizes(content)))
    except Exception as error:
        raise DataFileError(f"{name} is not a readable .wav file: {error}") from error


def _with_sizes(content: bytes) -> bytes:
    """A RIFF file up to its samples, with sizes that are right, as far as they can be known.

    Programs that stream leave placeholders for the sizes, and others write a wrong size of the whole, or something
    after the samples. A file of another form, or of fewer samples than it says, is returned as it is.
    """
    order = {b"RIFF": "<", b"RIFX": ">"}.get(content[:4], "")
    start, block = 12, 1
    while order and content[start : start + 4] != b"data":
        if start + 24 > len(content):
            return content
        if content[start : start + 4] == b"fmt ":
            (block,) = struct.unpack_from(order + "H", content, start + 20)  # bytes of one sample of all channels
        (size,) = struct.unpack_from(order + "I", content, start + 4)
        start += 8 + size + size % 2
    if not order or start + 8 > len(content):
        return content
    whole, size = (struct.unpack_from(order + "I", content, place)[0] for place in (4, start + 4))
    present = len(content) - start - 8
    if size >= _STREAMED or size == whole == 0:
        size = present - present % max(1, block)
    if size > present:
        return content
    end = start + 8 + size
    sizes = struct.pack(order + "I", end - 8), struct.pack(order + "I", size)
    return content[:4] + sizes[0] + content[8 : start + 4] + sizes[1] + content[start + 8 : end]


def _read_wav(file: Path) -> tuple[int, np.ndarray]:
    """Samples a second, and the mean of all channels, float64; integers in [-1, 1]."""
    try:
        rate, samples = decoded(file.read_bytes(), str(file))
    except OSError as error:
        raise DataFileError(f"{file.absolute()} cannot be read ({error.strerror or error})") from error
    if not samples.size:
        raise DataFileError(f"{file} has no samples; remove it")
    if not _LEAST_RATE <= rate <= _MOST_RATE:
        raise DataFileError(
            f"{file}: expected {_LEAST_RATE} to {_MOST_RATE:,} samples a second, found {rate:,}; correct or remove it"
        )
    if not np.isfinite(samples).all():
        raise DataFileError(f"{file} has samples that are NaN or infinite; correct or remove it")
    if samples.dtype.kind != "f":
        limits = np.iinfo(samples.dtype)
        middle = 0.0 if limits.min else 2.0**7  # bytes are unsigned
        samples = (samples - middle) / (limits.max - middle + 1)
    return rate, samples.astype(np.float64).reshape(len(samples), -1).mean(1)


def _unequal(file: Path, found: int, expected: int) -> InputError:
    return InputError(
        f"{file} has {found:,} samples a second, others have {expected:,}; set rate={min(found, expected)} to resample"
    )

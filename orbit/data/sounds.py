"""A user's own recordings, as waveforms or as spectrograms of one size."""

import contextlib
import io
import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch

from orbit.core.errors import DataFileError, InputError, ParameterError
from orbit.core.grid import middle
from orbit.core.memory import check_fits
from orbit.core.params import PositiveFloat, PositiveInt, Range
from orbit.core.threads import single_threaded
from orbit.data.files import readable
from orbit.data.labelled_files import LabelledFiles
from orbit.registry import register
from orbit.representations import mel_spectrogram

Form = Literal["spectrogram", "waveform"]

# Decibels below the loudest at which a spectrogram is 0.
_FLOOR_DB = 80.0

# Limits of the samples a second: at the least, a window has 16 samples.
_LEAST_RATE, _MOST_RATE = 500, 1_000_000

# Sizes of samples from here on are placeholders of programs that stream: SoX writes this one, others 2^32 - 1.
_STREAMED = 0x7FFFF000

# What libsndfile notes of a .wav file whose header has another number of bytes of samples than the file.
_DATA_SIZES = re.compile(r"^data : (\d+) \(should be (\d+)\)", re.MULTILINE)

# Of spectrograms: patches, and changes of pace between the ends, by up to exp(1.2) at the first. Chosen by validation
# on the training part of the Free Spoken Digit Dataset, and on speakers left out of it (docs/results/encoders.md).
# Twice as many changes of pace take almost twice the time and were not better.
_PATCHES = {"name": "patches", "size": 7, "normalization": "contrast", "pool_stride": 4, "standardize": True}
_PACE = {"name": "uniform", "low": -1.2, "high": 1.2, "unit": "native"}
_PACES = 8

# Ratio of the longest recording to the median above which a warning says how much is padded with silence.
_LONG = 4.0

# Seconds of the pieces of a recording whose loudness says where it begins and ends.
_PIECE_S = 0.01


@register("dataset", "sounds")
@dataclass(eq=False, repr=False)
class Sounds(LabelledFiles):
    """Recordings in class folders, ``FOLDER/yes/1.wav``, or of parts, ``FOLDER/train/yes/1.wav``, or in a table.

    WAV, FLAC, OGG, MP3, AIFF, AU and CAF files are read by libsndfile. Several channels are averaged. A spectrogram
    spans a recording without the silence at its ends, so that slow and fast speech agree; waveforms, and spectrograms
    with ``trim=None``, are centred in ``duration`` seconds: padded with silence, or cut at both ends.

    Parameters
    ----------
    path, manifest, file_column, target, split_column, group_column, task, recursive, on_error, test_fraction :
        See :class:`~orbit.data.labelled_files.LabelledFiles`.
    form : {"spectrogram", "waveform"}
        ``spectrogram``: shape (bands, frames), for ``time_warp`` and ``translation``: the energy in bands of equal
        width on the mel scale, the highest in the first row, in decibels below the recording's loudest; 0 is 80 dB
        below or less, 1 is the loudest. A run averages spectrograms over changes of pace, unless a group is given.
        ``waveform``: shape (samples,), integers divided by their largest, for the group ``pitch_tempo``.
    duration : float > 0 or None
        In seconds. None: that of the longest recording. What is beyond, at both ends, is cut.
    trim : float > 0 or None
        In decibels. Of a spectrogram: the ends of a recording that are quieter than its loudest 10 ms by more than this
        are left out. 25 was chosen by validation on the training part of the Free Spoken Digit Dataset. None: nothing
        is left out, and all spectrograms span ``duration``.
    rate : int >= 1 or None
        Samples a second, to which recordings are resampled; None: they must have equal rates.
    bands, frames : int
        Size of a spectrogram, >= 2.
    window : float > 0
        In seconds, of the Fourier transforms of a spectrogram; more if they would leave gaps. Short windows do not
        resolve the pitch of a voice.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.
    """

    default_representation = {"name": "unit_norm", "norm": "each"}
    default_group = {"name": "time_warp", "axis": 1}
    ink = True
    reading = "rate", "duration"
    thing, shown = "recording", "recording (.wav, .flac, .mp3 ...)"
    suffixes = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au", ".caf")

    form: Form = "spectrogram"
    duration: PositiveFloat | None = None
    rate: PositiveInt | None = None
    bands: Annotated[int, Range(low=2)] = 32
    frames: Annotated[int, Range(low=2)] = 32
    _: KW_ONLY
    trim: PositiveFloat | None = 25.0
    window: PositiveFloat = 0.02

    @classmethod
    def default_encoder(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return _PATCHES if _is_spectrogram(parameters) else {"name": "none"}

    @classmethod
    def default_moves(cls, parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        if not _is_spectrogram(parameters):
            return {"group": {"name": "identity"}}
        return {"group": cls.default_group, "distribution": _PACE, "orbit": {"size": _PACES}}

    def check(self) -> None:
        super().check()
        check_duration(self.duration, self.window)
        if self.rate is not None and not _LEAST_RATE <= self.rate <= _MOST_RATE:
            raise self.wrong("rate", f"{_LEAST_RATE} to {_MOST_RATE:,} samples a second")

    def _how(self, reading: Mapping[str, Any]) -> str:
        return f"as {self.form}s"

    def _read(self, files: list[Path], form: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """All recordings; their rate and duration are those of the form, or of the parameters, or of the recordings."""
        reading: dict[str, Any] = {"rate": self.rate, "duration": self.duration}
        if form is not None:
            reading = {key: form[key] for key in self.reading}
        if None in reading.values():
            reading = self._common(files, **reading)
        rate, length = reading["rate"], round(reading["duration"] * reading["rate"])
        shape = (length,) if self.form == "waveform" else (self.bands, self.frames)
        check_fits(
            "dataset.duration", f"{len(files):,} recordings of {length:,} samples", 4 * len(files) * math.prod(shape)
        )
        X = np.empty((len(files), *shape), dtype=np.float32)

        def read(i: int) -> None:
            found, samples = _read_sound(files[i])
            if found != rate:
                if form is None and self.rate is None:
                    raise _unequal(files[i], found, rate, min(found, rate))
                divisor = math.gcd(rate, found)
                from scipy.signal import resample_poly

                samples = resample_poly(samples, rate // divisor, found // divisor)
            X[i] = represented(samples, self.form, length, self.bands, self.frames, rate, self.trim, self.window)

        read_files = self._each(files, read)
        return X[read_files] if len(read_files) < len(files) else X, read_files, reading

    def _common(self, files: list[Path], rate: int | None, duration: float | None) -> dict[str, Any]:
        """The rate of all recordings, and the duration of the longest, where they are not given."""
        rates, seconds = np.zeros(len(files), int), np.zeros(len(files))

        def measure(i: int) -> None:
            # a damaged file that is to be left out may have a header that promises more
            rates[i], samples = _rate_and_length(files[i], by_header=self.on_error == "refuse")
            seconds[i] = samples / rates[i]

        read = self._each(files, measure)
        others = [i for i in read if rates[i] != rates[read[0]]]
        if others and rate is None:
            raise _unequal(files[others[0]], int(rates[others[0]]), int(rates[read[0]]), int(rates[read].min()))
        longest = float(seconds.max())
        median, most = np.quantile(seconds[read], [0.5, 0.95])
        is_padded = self.form == "waveform" or self.trim is None
        if duration is None and is_padded and longest > _LONG * median:
            warnings.warn(
                f"the longest recording, {files[int(np.argmax(seconds))]}, has {longest:.3g} s, half of them at most "
                f"{median:.3g} s, and all are padded with silence; set dataset.duration={most:.2g} to trim the "
                "longest ones",
                stacklevel=2,
            )
        return {"rate": rate or int(rates[read[0]]), "duration": duration or max(longest, self.window)}


def _is_spectrogram(parameters: Mapping[str, Any]) -> bool:
    return parameters.get("form", "spectrogram") == "spectrogram"


def check_duration(seconds: float | None, window: float) -> None:
    """Raise ``ParameterError`` for a duration shorter than the window of a spectrogram, both in seconds."""
    if seconds is not None and seconds < window:
        raise ParameterError("duration", f"at least {window:g} s", seconds, "dataset")


def represented(
    samples: np.ndarray, form: Form, length: int, bands: int, frames: int, rate: int, trim: float | None, window: float
) -> np.ndarray:
    """A signal as a waveform or as a spectrogram, float32.

    It is centred in ``length`` samples, or with ``trim``, in decibels, as a spectrogram of so many samples at most that
    begins and ends where it is louder than that below its loudest. ``window`` is the length of its windows, in seconds.
    """
    if form == "waveform":
        return middle(samples, [length]).astype(np.float32)
    shortest = max(2, round(window * rate))
    if trim is not None:
        samples = _without_silence(samples, trim, round(_PIECE_S * rate))
        length = min(length, max(len(samples), shortest))
    centred = middle(samples, [length])
    width = min(length, max(shortest, -(-length // frames)))
    with single_threaded():  # a quarter of a millisecond, for which threads would wait longer
        picture = mel_spectrogram(torch.from_numpy(centred)[None], bands, frames, rate, width, _FLOOR_DB)
    return picture[0].numpy().astype(np.float32)


def _without_silence(samples: np.ndarray, decibels: float, piece: int) -> np.ndarray:
    """From the first to the last piece of so many samples that is loud.

    >>> _without_silence(np.array([0.0, 0.01, 0.5, -1.0, 0.0, 0.6, 0.0]), 20.0, 1)
    array([ 0.5, -1. ,  0. ,  0.6])
    """
    starts = np.arange(0, len(samples), piece)
    energy = np.add.reduceat(np.square(samples), starts) / np.diff(starts, append=len(samples))
    loud = np.flatnonzero(energy >= energy.max() * 10 ** (-decibels / 10))
    return samples[starts[loud[0]] : starts[loud[-1]] + piece]


def decoded(content: bytes, name: str) -> tuple[int, np.ndarray, str]:
    """A recording in any format that libsndfile reads; of a .wav file that was cut, the samples that it has.

    Returns the samples a second; samples in [-1, 1], float64, shape (n, channels); and libsndfile's name of their type.

    Raises
    ------
    DataFileError
        If it cannot be read, naming the file ``name``.
    """
    import soundfile  # here, because it loads libsndfile

    try:
        with soundfile.SoundFile(io.BytesIO(content)) as opened:
            found = opened.samplerate, opened.read(always_2d=True), opened.subtype
            sizes = _DATA_SIZES.search(opened.extra_info)
    except soundfile.LibsndfileError as error:
        raise DataFileError(f"{name} is not a readable recording: {error.error_string}") from error
    if sizes and int(sizes[2]) < int(sizes[1]) < _STREAMED:
        warnings.warn(f"{name} ends too early: it has {sizes[2]} of {sizes[1]} bytes of samples", stacklevel=2)
    return found


def _read_sound(file: Path) -> tuple[int, np.ndarray]:
    """Samples a second, and the mean of all channels, float64 in [-1, 1]."""
    with readable(file.absolute(), "cannot be read"):
        rate, samples, _ = decoded(file.read_bytes(), str(file))
    if not samples.size:
        raise DataFileError(f"{file} has no samples; remove it")
    if not _LEAST_RATE <= rate <= _MOST_RATE:
        raise DataFileError(
            f"{file}: expected {_LEAST_RATE} to {_MOST_RATE:,} samples a second, found {rate:,}; correct or remove it"
        )
    if not np.isfinite(samples).all():
        raise DataFileError(f"{file} has samples that are NaN or infinite; correct or remove it")
    return rate, samples.mean(1)


def _rate_and_length(file: Path, by_header: bool) -> tuple[int, int]:
    """Samples a second, and their number: by decoding the file, unless its header may be asked and says it."""
    if by_header:
        import soundfile

        failed = OSError, soundfile.LibsndfileError
        with contextlib.suppress(*failed), file.open("rb") as content, soundfile.SoundFile(content) as opened:
            if 0 < opened.frames < _STREAMED and _LEAST_RATE <= opened.samplerate <= _MOST_RATE:
                return opened.samplerate, opened.frames
    rate, samples = _read_sound(file)
    return rate, len(samples)


def _unequal(file: Path, found: int, expected: int, lowest: int) -> InputError:
    return InputError(
        f"{file} has {found:,} samples a second, others have {expected:,}; set "
        f"dataset.rate={lowest} to resample, the lowest of all"
    )

"""Recordings in class folders."""

import io
from pathlib import Path

import numpy as np
import pytest
from scipy.io import wavfile

from orbit import DataFileError, InputError, Sounds
from orbit.data.sounds import decoded
from orbit.testing.datasets import DatasetContract

RATE = 8000


def tone(pitch: float, seconds: float = 0.2, rate: int = RATE) -> np.ndarray:
    """int16, half of the full range."""
    return (2**14 * np.sin(2 * np.pi * pitch * np.arange(round(seconds * rate)) / rate)).astype(np.int16)


def record(path: Path, samples: np.ndarray, rate: int = RATE) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    wavfile.write(path, rate, samples)


def record_classes(folder: Path, count: int = 8) -> None:
    """Low and high tones of 0.1 to 0.2 s."""
    for i in range(count):
        for name, pitch in (("low", 400 + 10 * i), ("high note", 1600 + 40 * i)):
            record(folder / name / f"{i}.wav", tone(pitch, 0.1 + 0.1 * i / (count - 1)))


class TestSounds(DatasetContract):
    component, sizes = Sounds, (24, 8)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        record_classes(tmp_path / "tones", 16)
        self.params = {"path": str(tmp_path / "tones")}


def test_the_pitch_is_the_row_of_a_spectrogram(tmp_path):
    record_classes(tmp_path)
    data = Sounds(str(tmp_path)).load(0)
    assert data.reading == {"rate": RATE, "duration": 0.2}
    loudest = np.concatenate([data.X_train, data.X_test]).sum(2).argmax(1)  # the highest band is the first row
    is_low = np.concatenate([data.y_train, data.y_test]) == "low"
    assert loudest[is_low].min() > loudest[~is_low].max()


def test_recordings_are_decoded_once_and_measured_by_their_headers(tmp_path, monkeypatch):
    record_classes(tmp_path)
    names = list[str]()

    def counted(content: bytes, name: str):
        names.append(name)
        return decoded(content, name)

    monkeypatch.setattr("orbit.data.sounds.decoded", counted)
    by_header = Sounds(str(tmp_path)).load(0)
    assert len(names) == len(set(names)) == 16
    by_samples = Sounds(str(tmp_path), on_error="skip").load(0)  # headers of damaged recordings may promise more
    assert len(names) == 3 * 16
    assert by_header.reading == by_samples.reading
    np.testing.assert_array_equal(by_header.X_train, by_samples.X_train)


def test_long_recordings_have_no_gaps_between_windows(tmp_path):
    """A click of a hundredth of a second in a recording of 16 s is in some column, wherever it is."""
    for i, place in enumerate(range(3000, 128_000, 20_000)):
        click = np.zeros(128_000, np.int16)
        click[place : place + 80] = tone(2000, 0.01)
        record(tmp_path / "ab"[i % 2] / f"{i}.wav", click)
    data = Sounds(str(tmp_path)).load(0)
    assert np.all(np.concatenate([data.X_train, data.X_test]).max((1, 2)) == 1)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (np.array([0, 2**14, -(2**15)], np.int16), [0, 0.5, -1]),
        (np.array([2**7, 2**7 + 2**6, 0], np.uint8), [0, 0.5, -1]),
        (np.array([[0, 0], [2**14, 0], [-(2**15), -(2**15)]], np.int16), [0, 0.25, -1]),
    ],
    ids=["16 bits", "8 bits", "stereo"],
)
def test_waveforms_are_the_mean_of_channels_in_their_full_range(tmp_path, stored, expected):
    samples = np.tile(stored, (100, *[1] * (stored.ndim - 1)))
    for name in ("a/1.wav", "a/2.wav", "b/1.wav", "b/2.wav"):
        record(tmp_path / name, samples)
    data = Sounds(str(tmp_path), form="waveform").load(0)
    assert data.X_train.shape[1:] == (300,)
    np.testing.assert_allclose(data.X_train[0], np.tile(expected, 100), atol=1e-6)


def test_recordings_are_resampled_to_one_rate(tmp_path):
    record_classes(tmp_path, 4)
    record(tmp_path / "low" / "fine.wav", tone(400, 0.2, 44_100), 44_100)
    with pytest.raises(InputError, match=r"fine\.wav has 44,100 samples a second, others have 8,000; set dataset"):
        Sounds(str(tmp_path)).load(0)
    data = Sounds(str(tmp_path), form="waveform", rate=RATE, duration=0.2).load(0)
    tones = np.concatenate([data.X_train, data.X_test])
    errors = np.abs(tones - tone(400) / 2**15)[:, 100:-100].max(1)
    assert np.sort(errors)[0] < 5e-3 < 0.1 < np.sort(errors)[1]


def test_new_recordings_are_read_as_those_of_the_model(tmp_path):
    record_classes(tmp_path / "old")
    record(tmp_path / "new" / "x.wav", tone(1000, 0.5, 16_000), 16_000)
    loader = Sounds(str(tmp_path / "old"))
    form = loader.load(0).form
    points = loader.read_points(str(tmp_path / "new"), form)
    assert points.ids == ["x.wav"]
    np.testing.assert_array_equal(loader.read_points(str(tmp_path / "new" / "x.wav"), form).X, points.X)
    record(tmp_path / "again" / "x.wav", tone(1000, 0.5))
    assert np.abs(loader.read_points(str(tmp_path / "again"), form).X - points.X).mean() < 0.03


def test_one_recording_much_longer_than_others_is_warned_of(tmp_path):
    record_classes(tmp_path)
    record(tmp_path / "low" / "long.wav", tone(400, 2.0))
    with pytest.warns(UserWarning, match=r"long\.wav, has 2 s, half of them at most 0\.1\d* s.*set"):
        Sounds(str(tmp_path), trim=None).load(0)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: record(path, np.zeros(0, np.int16)), "odd.wav has no samples; remove it"),
        (lambda path: record(path, np.float32([0.0, np.nan, np.inf])), "odd.wav has samples that are NaN or infinite"),
    ],
)
def test_unreadable_recordings_are_refused_by_name(tmp_path, write, message):
    record_classes(tmp_path)
    write(tmp_path / "low" / "odd.wav")
    with pytest.raises(DataFileError, match=message):
        Sounds(str(tmp_path)).load(0)


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize(
    ("whole", "samples", "after"),
    [
        (0xFFFFFFFF, 0xFFFFFFFF, b""),
        (0xFFFFFFFF, 0xFFFFFFFF, b"x"),
        (0x7FFFF024, 0x7FFFF000, b""),
        (10**6, None, b""),
        (None, None, b"x"),
        (None, None, b"texts"),
    ],
)
def test_recordings_with_wrong_sizes_are_read_whole(bits, whole, samples, after):
    content = io.BytesIO()
    written = tone(400) if bits == 16 else (tone(400) // 256 + 128).astype(np.uint8)
    wavfile.write(content, RATE, written)
    changed = bytearray(content.getvalue())
    for place, size in ((4, whole), (40, samples)):
        if size is not None:
            changed[place : place + 4] = size.to_bytes(4, "little")
    after = after if bits == 16 or samples is None else b""
    rate, read, _ = decoded(bytes(changed) + after, "a.wav")
    assert rate == RATE
    expected = written / 2**15 if bits == 16 else (written - 128.0) / 128
    np.testing.assert_array_equal(read[: len(written), 0], expected)


def test_texts_beside_the_samples_are_skipped(tmp_path, recwarn):
    record_classes(tmp_path)
    path = tmp_path / "low" / "7.wav"
    content = path.read_bytes()
    path.write_bytes(content[:12] + b"junk" + (4).to_bytes(4, "little") + b"text" + content[12:])
    Sounds(str(tmp_path)).load(0)
    assert not recwarn


def test_rates_of_which_no_spectrogram_is_possible_are_refused(tmp_path):
    record_classes(tmp_path)
    with pytest.raises(InputError, match="rate: expected 500 to 1,000,000 samples a second, found 8"):
        Sounds(str(tmp_path), rate=8).load(0)
    path = tmp_path / "low" / "7.wav"
    content = path.read_bytes()
    path.write_bytes(content[:24] + b"\7" + bytes(7) + content[32:])
    with pytest.raises(DataFileError, match=r"7\.wav: expected 500 to 1,000,000 samples a second, found 7"):
        Sounds(str(tmp_path)).load(0)


def test_durations_shorter_than_a_window_are_refused(tmp_path):
    record_classes(tmp_path)
    with pytest.raises(InputError, match=r"duration: expected at least 0\.02 s, found 0\.01"):
        Sounds(str(tmp_path), duration=0.01).load(0)


def test_short_windows_do_not_resolve_pitch(tmp_path):
    """Between two tones 300 Hz apart the bands of a window of 50 ms are quiet, and those of one of 5 ms loud."""
    both = tone(550, 0.2) // 2 + tone(850, 0.2) // 2
    for name in ("a/1.wav", "a/2.wav", "b/1.wav", "b/2.wav"):
        record(tmp_path / name, both)
    pictures = [Sounds(str(tmp_path), window=window).load(0).X_train[0] for window in (0.05, 0.005)]
    at_700_hz = [picture.mean(1)[::-1][11] for picture in pictures]
    assert at_700_hz[0] < at_700_hz[1] - 0.1


def test_recordings_shorter_than_a_window_are_padded(tmp_path):
    for name in ("a/1.wav", "a/2.wav", "b/1.wav", "b/2.wav"):
        record(tmp_path / name, tone(1000, 0.004))
    assert Sounds(str(tmp_path)).load(0).reading["duration"] == 0.02

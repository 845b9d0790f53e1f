"""Groups of series and of audio: the contract of each, time warps, phase vocoder and resampling."""

import math

import numpy as np
import oracles
import pytest
import torch
from scipy import integrate
from test_groups_all import InterpolatedContract

import orbit
from orbit import Amplitude, InputError, Offset, PitchTempo, TimeWarp, Translation
from orbit.groups.pitch_tempo import PhaseVocoder
from orbit.testing import GroupContract


class SeriesContract(InterpolatedContract):
    shape = (60,)
    composition_error = 0.02
    wrong_shapes = []

    def smooth_points(self, rng, n=4):
        t = np.linspace(-1, 1, self.shape[0])
        waves = np.sin(rng.uniform(4, 8, (n, 1)) * t + rng.uniform(0, 6, (n, 1))) * np.exp(-((t / 0.4) ** 2))
        return np.repeat(waves[:, :, None], self.shape[1], 2) if len(self.shape) == 2 else waves


class TestTranslationOfSeries(SeriesContract):
    def create(self):
        return Translation(fill="edge").for_shape(self.shape)


class TestWrappedTranslationOfSeriesWithChannels(SeriesContract):
    shape = (60, 3)
    wrong_shapes = [(60, 3, 2, 1), (59, 3)]

    def create(self):
        return Translation("wrap").for_shape(self.shape)


class TestTimeWarp(SeriesContract):
    component = TimeWarp
    wrong_shapes = [(1,)]


class TestTimeWarpOfTwoWaves(TestTimeWarp):
    shape = (60, 3)
    params = {"waves": 2}


class TestTimeWarpOfTheLastAxis(TestTimeWarp):
    shape = (4, 60)
    params = {"axis": 1}
    wrong_shapes = [(60,)]

    def smooth_points(self, rng, n=4):
        return np.sin(np.linspace(0, 3, 60) + rng.uniform(0, 6, (n, 4, 1)))


@pytest.mark.parametrize("waves", [1, 2, 3])
def test_a_time_warp_is_the_flow_of_its_velocity(waves):
    """Positions read are those from which the flow of sin(pi k t) / (pi k), for the time a, leads to each sample."""
    a = 0.7
    back = integrate.solve_ivp(
        lambda _, t: -np.sin(np.pi * waves * t) / (np.pi * waves), (0, a), np.linspace(0, 1, 41), rtol=1e-10, atol=1e-12
    ).y[:, -1]
    (found,) = TimeWarp(waves)._positions(np.array(a), (41,))
    np.testing.assert_allclose(found / 40, back, atol=1e-8)
    assert np.all(np.diff(found) > 0)


class TestAmplitude(GroupContract):
    component = Amplitude
    shape = (12, 2)


class TestOffset(GroupContract):
    component = Offset
    shape = (12, 2)


class TestResampledAudio(GroupContract):
    shape = (256,)
    composes_exactly = False
    composition_error = 0.02
    wrong_shapes = [(8,), (4, 256)]
    component = PitchTempo
    params = {"mode": "resample"}

    def elements(self, seed, r=5):
        rng = np.random.default_rng(seed)
        return np.column_stack([rng.uniform(-300, 300, r), rng.uniform(-0.2, 0.2, r)])

    def smooth_points(self, rng, n=4):
        t = np.arange(256) - 127.5
        return np.exp(-((t / 30) ** 2)) * np.sin(rng.uniform(0.1, 0.6, (n, 1)) * t)


class TestVocoder(TestResampledAudio):
    composition_error = math.inf  # samples of a phase vocoder do not compose
    params = {"window": 64}
    wrong_shapes = [(32,), (4, 256)]

    def test_is_linear_by_interpolation_only(self):
        assert [PitchTempo(mode).linear for mode in ("vocoder", "resample")] == [False, True]

    def test_float32_is_close_to_float64(self, rng):
        # unwrapped phases of frequencies with almost no energy jump by multiples of 2 pi, which adds noise
        X, g = self.smooth_points(rng), self.elements(0)
        np.testing.assert_allclose(self.create().act(g, X.astype(np.float32)), self.create().act(g, X), atol=0.1)


# ---- audio -----------------------------------------------------------------------------------------------------------


def peak(X):
    return int(np.abs(np.fft.rfft(X * np.hanning(len(X)))).argmax())


def test_pitch_and_tempo_change_independently():
    n = 4096
    t = np.arange(n) - (n - 1) / 2
    tone = np.sin(2 * np.pi * 200 * t / n)[None]
    beat = (np.exp(-((t / 400) ** 2)) * np.sin(2 * np.pi * 400 * t / n))[None]
    group = PitchTempo()
    for cents, expected in ((1200, 400), (-1200, 100), (700, 200 * 2 ** (7 / 12))):
        assert abs(peak(group.act([[cents, 0.0]], tone)[0, 0]) - expected) <= 2
    for log_tempo in (-math.log(2), math.log(2)):
        moved = group.act([[0.0, log_tempo]], beat)[0, 0]
        assert abs(peak(moved) - 400) <= 12, "the pitch stays"
        width = math.sqrt((moved**2 @ t**2) / (moved**2).sum())
        assert width == pytest.approx(200 * math.exp(-log_tempo), rel=0.15)
    resampled = PitchTempo("resample").act([[1200.0, 0.0]], tone)[0, 0]
    assert abs(peak(resampled) - 400) <= 2
    assert np.abs(resampled[: n // 4 - 16]).max() == 0, "twice the speed gives half the length"


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("factor", [0.3, 0.8, 1.0, 1.5, 2.7])
@pytest.mark.parametrize(("n", "window"), [(16, 16), (64, 17), (300, 75), (4000, 512)])
def test_stretched_signals_are_those_of_the_plain_formula(rng, n, window, factor, dtype, tolerance):
    """Also after many turns of the phase, which float32 would not resolve."""
    X = rng.standard_normal((3, n))
    found = PhaseVocoder(torch.from_numpy(X).to(dtype), window).stretched(factor)
    assert found.dtype == dtype
    expected = np.stack([oracles.stretched(x, factor, window) for x in X])
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_a_tone_is_stretched_alike_in_both_precisions():
    """All its frames are equally loud but for rounding, which is not to choose the one that keeps its phase."""
    tone = torch.sin(0.5 * torch.arange(4000, dtype=torch.float64))[None]
    double, single = (PhaseVocoder(tone.to(dtype), 250).stretched(1.5) for dtype in (torch.float64, torch.float32))
    torch.testing.assert_close(single[:, 500:-500].double(), double[:, 500:-500], rtol=0, atol=0.01)


@pytest.mark.parametrize("mode", ["vocoder", "resample"])
def test_changes_of_pitch_and_tempo_are_computed_up_to_their_limits_only(rng, mode):
    group, signals = PitchTempo(mode, window=16), rng.standard_normal((1, 64))
    pitch, tempo = (part.largest for part in group.domain.parts)
    corners = [[pitch, tempo], [pitch, -tempo], [-pitch, tempo], [-pitch, -tempo]]
    assert np.isfinite(group.act(corners, signals)).all()
    for limits in ([(-9e4, 9e4), (0, 0.1)], [(-400, 400), (-3, 3)]):
        factors = [{"name": "uniform", "low": low, "high": high, "unit": "native"} for low, high in limits]
        q = orbit.build("distribution", "product", factors=factors)
        with pytest.raises(InputError, match="has elements from .* but those of .* can be at most"):
            orbit.Orbit(group, q, size=2).check()

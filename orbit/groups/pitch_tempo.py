"""Pitch and speaking rate of audio: GICDF section 6."""

from __future__ import annotations

import functools
import math
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from orbit.core.params import PositiveInt
from orbit.groups.base import Group
from orbit.groups.domains import Line, ProductDomain
from orbit.groups.resample import Resampling, gather, images_first, pixels_first, scatter, windowed_sinc
from orbit.registry import register

_CENTS = 1200.0  # in an octave
_LONGEST_WINDOW = 512
_SHORTEST = 16


@register("group", "pitch_tempo")
class PitchTempo(Group):
    """Changes of pitch and tempo of signals ``(samples,)`` about their centre, trimmed or zero-padded to their length.

    Elements are rows (pitch in cents, log tempo): 1200 cents are an octave up,
    log 2 is twice as fast.

    Parameters
    ----------
    mode : {"vocoder", "resample"}
        ``vocoder``: pitch and tempo independently. A phase vocoder changes the
        duration at constant pitch, then resampling changes duration and pitch.
        Not linear, and composes only approximately.

        ``resample``: the playback speed, which changes both together, is the
        product of the two factors. Linear, with an exact adjoint.
    window : int >= 16 or None
        Window of the vocoder, in samples; None is a quarter of the signal, at most 512.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.groups import PitchTempo
    >>> tone = np.sin(2 * np.pi * 50 * np.arange(1024) / 1024)[None]
    >>> higher = PitchTempo().act([[1200.0, 0.0]], tone)[0, 0]
    >>> int(np.abs(np.fft.rfft(higher)).argmax())
    100
    """

    default_distribution: ClassVar[dict[str, Any]] = {"name": "product"}
    default_rule = "qmc"
    domain = ProductDomain((Line(unit="cents"), Line(unit="log tempo", largest=50.0)), ("pitch", "tempo"))

    def __init__(self, mode: Literal["vocoder", "resample"] = "vocoder", window: PositiveInt | None = None) -> None:
        self.mode = mode
        self.window = window

    @property
    def linear(self) -> bool:
        return self.mode == "resample"

    def factor_distributions(self) -> list[dict[str, Any]]:
        """The ranges of GICDF section 6: 400 cents up or down, half to double speed."""
        limit = math.log(2.0)
        return [
            {"name": "uniform", "low": -400.0, "high": 400.0, "unit": "native"},
            {"name": "uniform", "low": -limit, "high": limit, "unit": "native"},
        ]

    def compose(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.add(left, right)

    def inverse(self, elements: np.ndarray) -> np.ndarray:
        return np.negative(elements)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        shortest = max(_SHORTEST, self.window or 0)
        if len(shape) != 1 or shape[0] < shortest:
            raise self._refuse(shape, f"signals of at least {shortest} samples")

    def describe(self, element: np.ndarray) -> str:
        return f"{element[0]:+.0f} cents\ntempo ×{math.exp(element[1]):.2f}"

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        return torch.stack([self._move(element, X) for element in elements])

    def _move(self, element: np.ndarray, X: Tensor) -> Tensor:
        pitch, tempo = _factors(element)
        n_samples = X.shape[1]
        if self.mode == "resample":
            return _apply(_speed_change(pitch * tempo, n_samples, n_samples), X)
        window = self.window or min(_LONGEST_WINDOW, n_samples // 4)
        stretched = stretch(X.cpu().numpy().astype(np.float64), pitch / tempo, window)
        return _apply(_speed_change(pitch, stretched.shape[1], n_samples), torch.from_numpy(stretched).to(X))

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        n_samples = W.shape[1]
        operators = [_speed_change(math.prod(_factors(element)), n_samples, n_samples) for element in elements]
        pixels = pixels_first(W[:, :, None])
        return torch.stack([images_first(scatter(o, pixels, n_samples), (n_samples,), len(W)) for o in operators])


def stretch(X: np.ndarray, factor: float, window: int) -> np.ndarray:
    """Signals stretched by ``factor`` at constant pitch, by a phase vocoder (Flanagan and Golden, 1966).

    Magnitudes are interpolated between the frames of the short-time Fourier transform;
    phases advance at the frequency measured between neighbouring frames, forwards
    and backwards from the loudest.

    Parameters
    ----------
    X : float array, shape (n, samples)
    factor : float > 0
        1 is the identity.
    window : int, at most the number of samples

    Returns
    -------
    array, shape (n, round(factor * samples))
    """
    from scipy.signal import ShortTimeFFT  # here, because it takes 0.2 s to import

    n_samples = X.shape[1]
    hop = max(1, window // 4)
    weights = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(window) + 0.5) / window)
    transform = ShortTimeFFT(weights, hop, fs=1.0, mfft=window)
    S = transform.stft(X)  # (n, frequencies, frames)
    magnitude, phase = np.abs(S), np.angle(S)
    n_out = max(window, round(factor * n_samples))
    frames = np.arange(transform.p_min, transform.p_max(n_out))
    source = np.clip(frames / factor - transform.p_min, 0, S.shape[2] - 1)
    before = np.minimum(source.astype(int), S.shape[2] - 2)
    share = source - before
    # the nominal phase advance of a frequency in one hop, plus the measured deviation
    own = 2 * math.pi * transform.f[:, None] * hop
    seen = np.diff(phase, axis=2) - own
    advance = own + seen - 2 * math.pi * np.round(seen / (2 * math.pi))
    phases = np.cumsum(np.concatenate([np.zeros_like(phase[:, :, :1]), advance[:, :, before[:-1]]], axis=2), axis=2)
    moved = (1 - share) * magnitude[:, :, before] + share * magnitude[:, :, before + 1]
    # phases are anchored at the loudest frame: from a silent one neighbouring frequencies would drift apart
    loudest = np.square(moved).sum(1).argmax(1)
    start = before[loudest], share[loudest]
    row = np.arange(len(X))
    there = phase[row, :, start[0]] + start[1][:, None] * advance[row, :, start[0]]
    phases += (there - phases[row, :, loudest])[:, :, None]
    return transform.istft(moved * np.exp(1j * phases), k1=n_out)[:, : max(1, round(factor * n_samples))]


def _factors(element: np.ndarray) -> tuple[float, float]:
    """The factors of pitch and of tempo."""
    return 2 ** (float(element[0]) / _CENTS), math.exp(float(element[1]))


@functools.lru_cache(maxsize=256)  # the same few elements are used for every tile of the data
def _speed_change(speed: float, n_in: int, n_out: int) -> Resampling:
    """The resampling of a signal played ``speed`` times faster about its centre."""
    times = (np.arange(n_out) - (n_out - 1) / 2) * speed + (n_in - 1) / 2
    return windowed_sinc(times, n_in, speed)


def _apply(operator: Resampling, X: Tensor) -> Tensor:
    return images_first(gather(operator, pixels_first(X[:, :, None])), (len(operator.index),), len(X))

"""Pitch and speaking rate of audio: Mroueh et al. 2015, section 6."""

import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from orbit.core.lru import Lru
from orbit.core.params import Range
from orbit.groups.base import AdditiveGroup
from orbit.groups.domains import Line, ProductDomain
from orbit.groups.resample import CACHED_BYTES, Resampling, gather, images_first, pixels_first, scatter, windowed_sinc
from orbit.registry import register

_CENTS = 1200.0  # in an octave
_OCTAVES = 4  # each way, of pitch and of tempo: the vocoder's signals are up to 2^8 times as long
_LONGEST_WINDOW = 512
_SHORTEST = 16
Window = Annotated[int, Range(low=_SHORTEST)]
# Frames whose powers differ by less than this share are equally loud, as all frames of a tone but for rounding.
_EQUALLY_LOUD = 1e-3


@register("group", "pitch_tempo")
class PitchTempo(AdditiveGroup):
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
    domain = ProductDomain(
        (Line(unit="cents", largest=_OCTAVES * _CENTS), Line(unit="log tempo", largest=_OCTAVES * math.log(2))),
        ("pitch", "tempo"),
    )

    def __init__(self, mode: Literal["vocoder", "resample"] = "vocoder", window: Window | None = None) -> None:
        self.mode = mode
        self.window = window

    @property
    def linear(self) -> bool:
        return self.mode == "resample"

    def factor_distributions(self) -> list[dict[str, Any]]:
        """The ranges of Mroueh et al. 2015, section 6: 400 cents up or down, half to double speed."""
        limit = math.log(2.0)
        return [
            {"name": "uniform", "low": -400.0, "high": 400.0, "unit": "native"},
            {"name": "uniform", "low": -limit, "high": limit, "unit": "native"},
        ]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        shortest = max(_SHORTEST, self.window or 0)
        if len(shape) != 1 or shape[0] < shortest:
            raise self._refuse(shape, f"signals of at least {shortest} samples")

    def describe(self, element: np.ndarray) -> str:
        return f"{element[0]:+.0f} cents\ntempo ×{math.exp(element[1]):.2f}"

    def _act(self, elements: np.ndarray, X: Tensor) -> Tensor:
        n_samples, factors = X.shape[1], [_factors(element) for element in elements]
        if self.mode == "resample":
            return torch.stack([_apply(_speed_change(math.prod(both), n_samples, n_samples), X) for both in factors])
        vocoder = PhaseVocoder(X, self.window or min(_LONGEST_WINDOW, n_samples // 4))
        moved = []
        for pitch, tempo in factors:
            stretched = vocoder.stretched(pitch / tempo)
            moved.append(_apply(_speed_change(pitch, stretched.shape[1], n_samples), stretched))
        return torch.stack(moved)

    def _adjoint(self, elements: np.ndarray, W: Tensor) -> Tensor:
        n_samples = W.shape[1]
        operators = [_speed_change(math.prod(_factors(element)), n_samples, n_samples) for element in elements]
        pixels = pixels_first(W[:, :, None])
        return torch.stack([images_first(scatter(o, pixels, n_samples), (n_samples,), len(W)) for o in operators])


class PhaseVocoder:
    """Signals that are stretched at constant pitch (Flanagan and Golden, 1966).

    Magnitudes are interpolated between the frames of the short-time Fourier transform, of
    a Hann window and a hop of a quarter of it; phases advance at the frequency measured
    between neighbouring frames, forwards and backwards from the loudest.

    Parameters
    ----------
    X : tensor, shape (n, samples), float32 or float64
    window : int, at most the number of samples

    Examples
    --------
    >>> tone = torch.sin(torch.arange(1000, dtype=torch.float64) / 5)[None]
    >>> PhaseVocoder(tone, 200).stretched(1.5).shape
    torch.Size([1, 1500])
    """

    def __init__(self, X: Tensor, window: int) -> None:
        self._n_samples, self._window, self._hop = X.shape[1], window, max(1, window // 4)
        steps = torch.arange(window, dtype=torch.float64, device=X.device)
        weights = 0.5 - 0.5 * torch.cos(2 * math.pi * (steps + 0.5) / window)
        power = torch.stack([weights[start :: self._hop].square().sum() for start in range(self._hop)])
        self._dual = (weights / power[steps.long() % self._hop]).to(X)
        self._first, n_frames = self._frames(X.shape[1])
        start = self._start(self._first)
        padded = pad(X, (-start, self._start(self._first + n_frames - 1) + window - X.shape[1]))
        spectrum = torch.fft.rfft(padded.unfold(1, window, self._hop) * weights.to(X))  # (n, frames, frequencies)
        self._magnitude, self._phase = spectrum.abs(), spectrum.angle()
        frequencies = torch.arange(spectrum.shape[2], device=X.device)
        # the phase advance of each frequency from frame to frame, in units of 2 pi / window, and the measured deviation
        self._turns = self._hop * frequencies
        self._advance = self._phase.diff(dim=1) - self._angle(self._turns)
        self._advance -= 2 * math.pi * torch.round(self._advance / (2 * math.pi))

    def stretched(self, factor: float) -> Tensor:
        """The signals stretched by ``factor`` > 0, shape (n, round(factor * samples)); 1 is the identity."""
        length, last = max(1, round(factor * self._n_samples)), self._phase.shape[1] - 1
        first, n_frames = self._frames(max(self._window, length))
        frames = first + torch.arange(n_frames, device=self._phase.device)
        source = (frames.double() / factor - self._first).clamp(0, last)  # where each frame comes from
        before = source.long().clamp(max=last - 1)
        share = source - before
        lower, upper = self._magnitude.index_select(1, before), self._magnitude.index_select(1, before + 1)
        magnitudes = torch.lerp(lower, upper, share.to(self._phase)[:, None])
        phases = self._phases(magnitudes, before, share)
        # a third of the time of torch.polar
        spectrum = torch.complex(phases.cos().mul_(magnitudes), phases.sin().mul_(magnitudes))
        return self._overlapped(torch.fft.irfft(spectrum, n=self._window))[:, -self._start(first) :][:, :length]

    def _phases(self, magnitudes: Tensor, before: Tensor, share: Tensor) -> Tensor:
        """The phases of frames, each a share of the way from one frame of the signal to the next."""
        phases = self._advance.index_select(1, before).cumsum(1).roll(1, 1)  # the sum over all frames before
        phases[:, 0] = 0
        # phases are anchored at the loudest frame, the first of equals: from a silent one frequencies would drift apart
        power = magnitudes.square().sum(2)
        loudest = (power >= (1 - _EQUALLY_LOUD) * power.amax(1, keepdim=True)).int().argmax(1)
        signals, at, part = torch.arange(len(power), device=power.device), before[loudest], share[loudest, None]
        anchor = self._phase[signals, at] + part.to(self._phase) * self._advance[signals, at]
        anchor += self._angle(part * self._turns) - self._angle(loudest[:, None] * self._turns)
        phases += (anchor - phases[signals, loudest])[:, None]
        return phases.add_(self._angle(torch.arange(len(before), device=power.device)[:, None] * self._turns))

    def _overlapped(self, frames: Tensor) -> Tensor:
        """The signals of frames (n, frames, window), from the first sample of the first frame."""
        n, n_frames, _ = frames.shape
        frames = frames * self._dual
        result = frames.new_zeros(n, n_frames + -(-self._window // self._hop), self._hop)
        for i, start in enumerate(range(0, self._window, self._hop)):
            part = frames[:, :, start : start + self._hop]
            result[:, i : i + n_frames, : part.shape[2]] += part
        return result.flatten(1)

    def _frames(self, n_samples: int) -> tuple[int, int]:
        """The first frame that overlaps with a signal, counted from the one about sample 0, and their number."""
        half = self._window // 2
        first = -((self._window - half - 1) // self._hop)
        return first, -(-(n_samples + half) // self._hop) - first

    def _start(self, frame: int) -> int:
        return frame * self._hop - self._window // 2

    def _angle(self, turns: Tensor) -> Tensor:
        """Phases given in units of 2 pi / window, reduced to [0, 2 pi): float32 does not resolve many whole turns."""
        return (2 * math.pi / self._window * (turns % self._window).double()).to(self._phase)


def _factors(element: np.ndarray) -> tuple[float, float]:
    """The factors of pitch and of tempo."""
    return 2 ** (float(element[0]) / _CENTS), math.exp(float(element[1]))


def _speed_change(speed: float, n_in: int, n_out: int) -> Resampling:
    """The resampling of a signal played ``speed`` times faster about its centre."""

    def make() -> Resampling:
        times = (np.arange(n_out) - (n_out - 1) / 2) * speed + (n_in - 1) / 2
        return windowed_sinc(times, n_in, speed)

    return _changes.get((speed, n_in, n_out), make)


_changes = Lru[tuple, Resampling](CACHED_BYTES, most=256)


def _apply(operator: Resampling, X: Tensor) -> Tensor:
    return images_first(gather(operator, pixels_first(X[:, :, None])), (len(operator.index),), len(X))

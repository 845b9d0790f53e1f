"""Spectrograms of moved signals."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from orbit.core.params import PositiveFloat, PositiveInt
from orbit.core.random import RandomState
from orbit.encoders.base import Encoder
from orbit.registry import register
from orbit.representations import mel_spectrogram


@register("encoder", "mel_spectrogram")
@dataclass(eq=False, repr=False)
class MelSpectrogram(Encoder):
    """The log-mel spectrogram of a signal after the group has acted, in [0, 1], for ``group=pitch_tempo``.

    Waveforms of one sound differ in their phases, so that few of their samples agree;
    their spectrograms do agree. A shift of the spectrogram (``group=translation``) only
    approximates a change of the waveform's pitch or tempo. The formula is that of
    :func:`~orbit.representations.mel_spectrogram`.

    Parameters
    ----------
    bands, frames : int >= 1
        Size of the spectrogram.
    rate : float > 0
        Samples a second.
    window : float > 0
        Length of a Hann window, in seconds; as many as ``frames`` are spread evenly over the signal.
    floor : float > 0
        Energies of so many decibels below the loudest of a signal, and less, are 0; the loudest is 1.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).standard_normal((5, 8000))
    >>> MelSpectrogram(bands=20, frames=30).fit(X).encode(torch.from_numpy(X)).shape
    torch.Size([5, 600])
    """

    bands: PositiveInt = 32
    frames: PositiveInt = 32
    rate: PositiveFloat = 8000.0
    window: PositiveFloat = 0.032
    floor: PositiveFloat = 80.0

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 1 or shape[0] < self._samples:
            raise self._refuse(
                shape, f"signals of at least {self._samples} samples (window={self.window:g} s, rate={self.rate:g})"
            )

    def bytes_per_point(self, itemsize: int) -> int:
        # windows, complex spectra and powers, of windows padded to twice their length
        return itemsize * self.frames * 4 * (self._samples + 1)

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        self.n_outputs_ = self.bands * self.frames

    def _encode(self, points: Tensor) -> Tensor:
        settings = self.bands, self.frames, self.rate, self._samples, self.floor
        return mel_spectrogram(points, *settings).flatten(1)

    @property
    def _samples(self) -> int:
        """Number of samples of a window."""
        return max(2, round(self.window * self.rate))

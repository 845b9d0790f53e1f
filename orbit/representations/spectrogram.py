"""Log-mel spectrograms of signals."""

import functools

import numpy as np
import torch
from torch import Tensor


def mel_spectrogram(X: Tensor, bands: int, frames: int, rate: float, window: int, floor: float) -> Tensor:
    """Log energy in mel bands, in [0, 1]: 1 at the loudest of a signal, 0 at ``floor`` dB below it and less.

    Hann windows are spread evenly over the signal; bands are triangles whose corners are equally spaced on the mel
    scale 2595 log10(1 + f / 700), from 0 to half the sampling rate.

    Parameters
    ----------
    X : tensor, shape (n, samples)
    bands, frames : int >= 1
    rate : float
        Samples a second.
    window : int, at most the number of samples
    floor : float > 0

    Returns
    -------
    tensor, shape (n, bands, frames)
        The highest band first, as spectrograms are drawn; zeros for silence.

    References
    ----------
    O'Shaughnessy, "Speech Communication: Human and Machine", 1987, for the mel scale.

    Examples
    --------
    >>> tone = torch.sin(2 * np.pi * 1000 * torch.arange(8000, dtype=torch.float64) / 8000)
    >>> pictures = mel_spectrogram(tone[None], 32, 20, 8000.0, 256, 80.0)
    >>> tuple(pictures.shape), int(pictures[0, :, 10].argmax())
    ((1, 32, 20), 17)
    """
    starts = np.linspace(0, X.shape[1] - window, frames).round().astype(int)
    index = torch.from_numpy(starts[:, None] + np.arange(window)).to(X.device)
    hann = torch.hann_window(window, dtype=X.dtype, device=X.device)
    # zero padding to twice the length: else low bands are narrower than the frequency grid
    spectrum = torch.fft.rfft(X[:, index] * hann, 2 * window)
    filters = torch.from_numpy(_mel_filters(bands, window + 1, rate)).to(X)
    # a sum over the axis of both parts takes six times as long
    energy = spectrum.real.square().add_(spectrum.imag.square()) @ filters.T  # (n, frames, bands)
    loudest = energy.amax((1, 2), keepdim=True)
    share = energy.div_(torch.where(loudest > 0, loudest, 1)).clamp_(min=10 ** (-floor / 10))
    return share.log10_().mul_(10 / floor).add_(1).transpose(1, 2).flip(1)


@functools.lru_cache(maxsize=16)
def _mel_filters(bands: int, bins: int, rate: float) -> np.ndarray:
    """Triangles over the frequency bins, shape (bands, bins)."""
    corners_mel = np.linspace(0, 2595 * np.log10(1 + rate / 2 / 700), bands + 2)
    corners = 700 * (10 ** (corners_mel / 2595) - 1)
    frequencies = np.linspace(0, rate / 2, bins)
    return np.stack(
        [np.interp(frequencies, corners[i : i + 3], [0.0, 1.0, 0.0], left=0.0, right=0.0) for i in range(bands)]
    )

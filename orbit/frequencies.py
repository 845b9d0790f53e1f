"""How frequencies are drawn from a kernel's spectral distribution."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from orbit.component import Component
from orbit.kernels import Kernel
from orbit.registry import register


class Frequencies(Component):
    """A rule that draws frequencies for random Fourier features."""

    @abstractmethod
    def draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        """Frequencies of the fitted ``kernel``, float64, shape ``(size, n_features)``."""


@register("frequencies", "monte_carlo")
class MonteCarlo(Frequencies):
    """Independent draws: unbiased for every shift-invariant kernel (LGIKA eq. 6).

    Examples
    --------
    >>> import numpy as np, orbit
    >>> kernel = orbit.build("kernel", "gaussian", lengthscale=2.0).fit(np.zeros((1, 3)))
    >>> orbit.build("frequencies", "monte_carlo").draw(kernel, 5, 3, np.random.default_rng(0)).shape
    (5, 3)
    """

    def __init__(self) -> None:
        pass

    def draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        return kernel.sample_spectrum(size, n_features, rng)

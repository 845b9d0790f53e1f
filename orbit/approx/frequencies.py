"""How frequencies are drawn from a kernel's spectral distribution."""

import warnings
from abc import abstractmethod

import numpy as np
from scipy.stats import qmc

from orbit.approx.hadamard import HadamardBlocks
from orbit.core.component import Component
from orbit.core.errors import InputError
from orbit.core.threads import threads_for
from orbit.kernels import Kernel
from orbit.kernels.column_scales import ScaledColumns
from orbit.kernels.radial import RadialKernel
from orbit.registry import register

# Below this length, after padding, the rows of H D H D H D are too few and too similar to replace random
# directions (docs/choose/frequencies.md).
_STRUCTURED_MIN_LENGTH = 16

# Orthogonal frequencies overtake a Sobol sequence of 256 points at 12 features, of 1024 points at 24.
_QMC_MAX_FEATURES = 12

# Above this structured frequencies have at most 7 % more error than orthogonal ones, whose products take more
# than ten times as long (docs/choose/frequencies.md, docs/performance.md).
_ORTHOGONAL_MAX_FEATURES = 2048

_SOBOL_BITS = 30

_TINY = float(np.finfo(np.float64).epsneg)

# Frequencies, as a float64 array of shape (size, n_features) or as its factors.
Drawn = np.ndarray | HadamardBlocks


class Frequencies(Component):
    """A rule that draws frequencies for random Fourier features.

    A subclass implements ``_draw`` by the kernel's ``spectrum_ppf``.
    """

    def check_kernel(self, kernel: Kernel) -> None:
        """Raise ``InputError`` if this rule cannot draw from the kernel's spectrum. Needs no data."""
        if not kernel.has_spectrum:
            raise kernel.no_spectrum("random Fourier frequencies")

    def draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        """Frequencies of the fitted ``kernel``, float64, shape ``(size, n_features)``.

        Raises
        ------
        InputError
            If the kernel has no spectrum, or this rule cannot draw from it.
        """
        drawn = self.draw_factored(kernel, size, n_features, rng)
        return drawn.dense() if isinstance(drawn, HadamardBlocks) else drawn

    def draw_factored(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> Drawn:
        """The frequencies of ``draw``, as fast factors if the rule gives them."""
        if isinstance(kernel, ScaledColumns):
            return self.draw(kernel.base, size, n_features, rng) * kernel.scales
        self.check_kernel(kernel)
        return self._draw(kernel, size, n_features, rng)

    def bytes_drawn(self, size: int, n_features: int) -> int:
        """Bytes that drawing takes at least: the frequencies in float64, before and after scaling."""
        return 2 * 8 * size * n_features

    @abstractmethod
    def _draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> Drawn:
        """``draw_factored``, for a kernel that has been checked."""


@register("frequencies", "monte_carlo")
class MonteCarlo(Frequencies):
    """Independent draws: unbiased for every shift-invariant kernel (Raj et al. 2017, eq. 6).

    Examples
    --------
    >>> import numpy as np, orbit
    >>> kernel = orbit.build("kernel", "gaussian", lengthscale=2.0).fit(np.zeros((1, 3)))
    >>> orbit.build("frequencies", "monte_carlo").draw(kernel, 5, 3, np.random.default_rng(0)).shape
    (5, 3)
    """

    def _draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        return kernel.sample_spectrum(size, n_features, rng)


@register("frequencies", "qmc")
class QuasiMonteCarlo(Frequencies):
    """A scrambled Sobol sequence through the inverse of the spectrum's distribution function.

    Every single frequency has the right distribution, so the estimate is unbiased,
    and together they cover the space evenly: far better than independent draws
    in few dimensions (docs/choose/frequencies.md). Powers of two are the best sizes.

    References
    ----------
    Avron, Sindhwani, Yang and Mahoney, "Quasi-Monte Carlo Feature Maps for
    Shift-Invariant Kernels", 2016. Owen, "Randomly Permuted (t, m, s)-Nets", 1995.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> kernel = orbit.build("kernel", "laplacian", lengthscale=2.0).fit(np.zeros((1, 3)))
    >>> orbit.build("frequencies", "qmc").draw(kernel, 8, 3, np.random.default_rng(0)).shape
    (8, 3)
    """

    def _draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        dim = kernel.spectrum_dim(n_features)
        if dim > qmc.Sobol.MAXDIM:
            raise InputError(
                f"frequencies=qmc is for at most {qmc.Sobol.MAXDIM} dimensions, {kernel.label()} needs {dim} here: "
                "choose frequencies=monte_carlo"
            )
        sobol = qmc.Sobol(dim, bits=_SOBOL_BITS, rng=rng)
        # powers of two, because scipy warns about other sizes; points of the sequence are the lower corners of
        # their cells, which include zero, and are moved to the centres
        uniforms = sobol.random_base2(max(0, int(size - 1).bit_length()))[:size]
        return kernel.spectrum_ppf(uniforms + 0.5 * 2.0**-_SOBOL_BITS)


class IsotropicFrequencies(Frequencies):
    """Base class of rules that draw directions and lengths separately, for isotropic spectra."""

    def check_kernel(self, kernel: Kernel) -> None:
        super().check_kernel(kernel)
        if not kernel.is_isotropic:
            raise InputError(
                f"{self.label()} needs a spectrum unchanged by rotations, which {kernel.label()} does not have: "
                "choose frequencies=monte_carlo or frequencies=qmc, or kernel=exponential"
            )

    @staticmethod
    def _lengths(kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        """Lengths of frequencies, shape ``(size,)``, each distributed as in the spectrum.

        From a Latin hypercube sample, which removes most of the variance due to the
        lengths and, unlike fixed lengths, adds no bias.
        """
        assert isinstance(kernel, RadialKernel)
        uniforms = qmc.LatinHypercube(2, rng=rng).random(size)
        return kernel.spectrum_lengths(np.clip(uniforms, _TINY, 1 - _TINY), n_features)


@register("frequencies", "orthogonal")
class Orthogonal(IsotropicFrequencies):
    """Blocks of d orthogonal frequencies of random lengths.

    Directions come from Haar-distributed orthogonal matrices, so every single
    frequency has the right distribution and the estimate is unbiased; within a
    block directions are orthogonal, which lowers the variance.

    References
    ----------
    Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, "Orthogonal Random Features",
    2016, section 3, there with lengths of the Gaussian kernel drawn independently.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> kernel = orbit.build("kernel", "gaussian", lengthscale=2.0).fit(np.zeros((1, 3)))
    >>> W = orbit.build("frequencies", "orthogonal").draw(kernel, 3, 3, np.random.default_rng(0))
    >>> bool(np.allclose(W @ W.T, np.diag(np.diag(W @ W.T))))
    True
    """

    def _draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
        lengths = self._lengths(kernel, size, n_features, rng)
        starts = range(0, size, n_features)
        return lengths[:, None] * np.concatenate(
            [_orthonormal_rows(min(n_features, size - i), n_features, rng) for i in starts]
        )


@register("frequencies", "structured")
class Structured(IsotropicFrequencies):
    """Blocks of rows of H D1 H D2 H D3, of random lengths.

    H is the normalised Hadamard matrix, D1 to D3 are diagonals of random signs and
    features are padded with zeros to a power of two, so that a product with a block
    takes d log d operations and 3 d random bits (:mod:`orbit.approx.hadamard`). The directions are only nearly
    uniform: the estimate is biased by an amount that falls with d, and for eight
    features or fewer it issues a warning.

    References
    ----------
    Yu et al., "Orthogonal Random Features", 2016, section 4 (SORF), with random
    lengths in place of the fixed sqrt(d) / lengthscale.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> kernel = orbit.build("kernel", "gaussian", lengthscale=2.0).fit(np.zeros((1, 64)))
    >>> orbit.build("frequencies", "structured").draw(kernel, 100, 64, np.random.default_rng(0)).shape
    (100, 64)
    """

    def bytes_drawn(self, size: int, n_features: int) -> int:
        return 8 * size  # their lengths

    def _draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> HadamardBlocks:
        length = 1 << (n_features - 1).bit_length()
        if length < _STRUCTURED_MIN_LENGTH:
            warnings.warn(
                f"frequencies=structured is biased for few features, found {n_features}: "
                "choose frequencies=qmc or frequencies=orthogonal",
                UserWarning,
                stacklevel=2,
            )
        lengths = self._lengths(kernel, size, length, rng)
        signs = rng.integers(0, 2, (-(-size // length), 3, length), dtype=np.int8) * 2 - 1
        return HadamardBlocks(signs, lengths, n_features)


@register("frequencies", "auto")
class Automatic(Frequencies):
    """The rule measured as most accurate for the kernel and the number of features (docs/choose/frequencies.md).

    ``qmc`` for up to 12 features, and for every kernel that ``orthogonal`` does not
    support, up to the largest dimension of Sobol sequences; otherwise ``orthogonal``,
    and ``structured`` above 2,048 features, where it has nearly the same error and is several times faster.

    Examples
    --------
    >>> import orbit
    >>> rule = orbit.build("frequencies", "auto")
    >>> rule.choice(orbit.build("kernel", "gaussian"), 4), rule.choice(orbit.build("kernel", "gaussian"), 64)
    (QuasiMonteCarlo(), Orthogonal())
    """

    def choice(self, kernel: Kernel, n_features: int) -> Frequencies:
        """The rule chosen for points of ``n_features`` numbers."""
        if kernel.is_isotropic and n_features > _QMC_MAX_FEATURES:
            return Orthogonal() if n_features <= _ORTHOGONAL_MAX_FEATURES else Structured()
        return QuasiMonteCarlo() if kernel.spectrum_dim(n_features) <= qmc.Sobol.MAXDIM else MonteCarlo()

    def bytes_drawn(self, size: int, n_features: int) -> int:
        rule = Orthogonal() if n_features <= _ORTHOGONAL_MAX_FEATURES else Structured()
        return rule.bytes_drawn(size, n_features)

    def _draw(self, kernel: Kernel, size: int, n_features: int, rng: np.random.Generator) -> Drawn:
        return self.choice(kernel, n_features).draw_factored(kernel, size, n_features, rng)


def _orthonormal_rows(count: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """The first rows of a Haar-distributed orthogonal matrix, shape ``(count, d)``."""
    with threads_for(float(d) * count**2):
        Q, R = np.linalg.qr(rng.standard_normal((d, count)))
    return (Q * np.sign(np.diag(R))).T  # without the signs Q is not Haar distributed

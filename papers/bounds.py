"""Error bounds of the papers: of operator-valued random Fourier features, and of cumulative distribution features."""

import math

import numpy as np
from scipy.stats import chi2

from orbit.kernels.gaussian import Gaussian
from orbit.kernels.operator_valued import CurlFree, Decomposable, DivergenceFree, OperatorKernel


def operator_variance_bound(kernel: OperatorKernel, delta: np.ndarray, n_components: int) -> float:
    """A bound on |E[(K~(delta) - K0(delta))^2]|_2 for D independent frequencies.

    Brault et al. 2016, propositions 3.1 and C.1:

        (1 / 2D) ( |(K0(2 delta) + K0(0)) E[A] - 2 K0(delta)^2|_2 + 2 |V[A]|_2 ),   V[A] = E[(A - E[A])^2].

    The paper's example for the curl-free and divergence-free kernels omits K0(0) E[A],
    its example for the decomposable one squares k0 but not A and adds it where it should
    subtract, and its d (4 d - 3) in V[A] of the divergence-free kernel is 3 (d - 1): sampled, see the tests.

    Parameters
    ----------
    kernel : fitted Decomposable (A = I), CurlFree or DivergenceFree, over a Gaussian
    delta : array, shape (d,)
    n_components : int >= 1
        D, the number of frequencies.

    Raises
    ------
    ValueError
        For any other kernel, whose V[A] has no closed form here.

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import CurlFree
    >>> operator_variance_bound(CurlFree(lengthscale=1.0).fit(np.zeros((1, 4))), np.zeros(4), 100)
    0.05
    """
    d = len(delta)
    at_twice, at_zero, here = kernel.signatures(np.array([2 * delta, 0 * delta, delta]))
    mean, variance = _spectral_mean_and_variance(kernel, d)
    main = np.linalg.norm((at_twice + at_zero) * mean - 2 * here @ here, 2)
    return float(main + 2 * variance) / (2 * n_components)


def _spectral_mean_and_variance(kernel: OperatorKernel, d: int) -> tuple[float, float]:
    """E[A] and V[A], both multiples of the identity, for a Gaussian base."""
    if isinstance(kernel, Decomposable) and kernel.output == "identity":
        return 1.0, 0.0
    if isinstance(kernel.base_, Gaussian):
        precision = kernel.base_.lengthscale_**-2
        if isinstance(kernel, CurlFree):
            return precision, (d + 1) * precision**2
        if isinstance(kernel, DivergenceFree):
            return (d - 1) * precision, 3 * (d - 1) * precision**2
    raise ValueError(f"no closed form of V[A] for {kernel!r}: expected a Gaussian base")


def operator_uniform_bound(
    error: float, n_components: int, d: int, p: int, diameter: float, variance: float, m: float, sigma: float
) -> float:
    """A bound on P(sup |K~ - K|_2 >= error) over a compact set of that diameter, at most 1.

    See Brault et al. 2016, theorem 3.1.

    Parameters
    ----------
    error : float > 0
    n_components : int >= 1
        D, the number of independent frequencies.
    d, p : input and output dimensions
    diameter : l of the compact set
    variance : b_D, the largest D |E[sum_j F_j^2]|_2, at most D times :func:`operator_variance_bound`
    m : 4 (Orlicz norm of |A(w)|_2 + largest |K|_2); see :func:`gamma_orlicz_norm`
    sigma : (E |w|^2 |A(w)|_2^2)^(1/2)

    Examples
    --------
    >>> bounds = [operator_uniform_bound(0.5, D, 2, 2, 2.0, 1.0, 8.0, 2.0) for D in (10**3, 10**5, 10**6)]
    >>> bounds[0] == 1.0, bounds[1] > bounds[2]
    (True, True)
    """
    u = 2 * m * math.log(2**1.5 * (m / variance) ** 2)
    constant = p * ((d / 2) ** (-d / (d + 2)) + (d / 2) ** (2 / (d + 2))) * 2 ** ((6 * d + 2) / (d + 2))
    covering = constant * (sigma * diameter / error) ** (2 / (1 + 2 / d))
    if u <= 2 * (math.e - 1) * variance / error:
        exponent = error**2 * n_components / (8 * (d + 2) * (variance + error * u / 6))
    else:
        exponent = error * n_components / ((d + 2) * (math.e - 1) * u)
    return min(1.0, covering * math.exp(-exponent))


def decomposable_uniform_bound(
    error: float, n_components: int, d: int, diameter: float, sigma: float, norm: float = 1.0
) -> float:
    """The bound of :func:`operator_uniform_bound` for a decomposable kernel with |A|_2 = ``norm`` (corollary A.1.1).

    ``sigma`` is (E |w|^2)^(1/2); for a Gaussian kernel d^(1/2) / lengthscale. The paper writes
    d sigma with its sigma the deviation of one coordinate, which is never less.

    Examples
    --------
    >>> round(decomposable_uniform_bound(0.1, 100_000, 4, 4.0, 2.0), 6)
    0.0
    """
    exponent = error**2 * n_components / (4 * norm**2 * (d + 2))
    return min(1.0, 2**8 * (sigma * norm * diameter / error) ** 2 * math.exp(-exponent))


def gamma_orlicz_norm(d: int, lengthscale: float) -> float:
    """The Orlicz norm psi_1 of |A(w)|_2 = |w|^2 for Gaussian curl-free and divergence-free kernels.

    See Brault et al. 2016, section 3.1.

    |w|^2 lengthscale^2 is chi-squared with d degrees of freedom, so E exp(|w|^2 / C) = 2 at
    C = 2 / (lengthscale^2 (1 - 4^(-1/d))).

    Examples
    --------
    >>> round(gamma_orlicz_norm(2, 1.0), 6)
    4.0
    """
    return 2 / (lengthscale**2 * (1 - 4 ** (-1 / d)))


def cdf_acceptance(n_features: int, epsilon: float) -> float:
    """The share of Gaussian templates N(0, I/d) with |t|^2 < 1 + epsilon.

    >>> round(cdf_acceptance(784, 0.1), 2)
    0.97
    """
    return float(chi2.cdf(n_features * (1 + epsilon), n_features))


def cdf_deviation_bounds(n_features: int, epsilon: float, radius: float = 1.0) -> tuple[float, float]:
    """Bounds on K_s(x, z) - (s - d_G(x, z)), least and largest, of Mroueh et al. 2015, Theorem 1, eqs. 3 and 4.

    Here s = radius (1 + epsilon), d_G = (2 pi d)^(-1/2) mean |gx - g'z|, and K_s is
    the kernel of the paper, in which the features of a rejected template are zero: the
    share of accepted templates times the kernel of templates drawn until accepted.

    >>> low, high = cdf_deviation_bounds(784, 0.5)
    >>> low < 0 < high
    True
    """
    d = n_features
    tail = math.exp(-d * epsilon**2 / 16) / math.sqrt(d)
    lower_tail = math.exp((math.log1p(epsilon) - epsilon) * d / 2) / math.sqrt(d) / 2
    missing = (1 + epsilon) * math.exp(-d * epsilon**2 / 8)
    return -radius * (tail + missing), radius * (tail - lower_tail)


def cdf_error_bound(n_components: int, n_bins: int, s: float, confidence: float) -> float:
    """A bound, with probability ``confidence``, on the error of <Phi(x), Phi(z)> for one pair of points.

    Mroueh et al. 2015, Theorem 2 leaves its constants open. For uniform thresholds and a given
    orbit, one template's sum over thresholds is its integral plus 0 to s/n, and
    lies in [0, 2s + s/n], so Hoeffding's inequality gives

        s/n + (2s + s/n) (log(2 / (1 - confidence)) / (2 m))^(1/2).

    >>> cdf_error_bound(10_000, 25, 1.0, 0.95) < cdf_error_bound(100, 25, 1.0, 0.95)
    True
    """
    step = s / n_bins
    return step + (2 * s + step) * math.sqrt(math.log(2 / (1 - confidence)) / (2 * n_components))

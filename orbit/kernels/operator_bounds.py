"""A variance bound of operator-valued random Fourier features (Brault et al., 2016)."""

from __future__ import annotations

import numpy as np

from orbit.kernels.gaussian import Gaussian
from orbit.kernels.operator_valued import CurlFree, Decomposable, DivergenceFree, OperatorKernel


def operator_variance_bound(kernel: OperatorKernel, delta: np.ndarray, n_components: int) -> float:
    """A bound on |E[(K~(delta) - K0(delta))^2]|_2 for D independent frequencies (ORFF propositions 3.1 and C.1).

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

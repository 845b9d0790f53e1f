"""Closed forms and bounds for cumulative distribution features (Mroueh, Voinea and Poggio, 2015)."""

import math
from typing import Literal

from scipy.special import gammaln
from scipy.stats import chi2

Templates = Literal["gaussian", "sphere"]


def cdf_slope(n_features: int, templates: Templates = "gaussian", epsilon: float = 0.1) -> float:
    """The slope of the expected CDF kernel as a function of distance.

    Since max(a, b) = (a + b + |a - b|) / 2, and the mean of ``<x, t>`` over
    rotation-invariant templates is zero,

        E_t (s - max(<x, t>, <z, t>)) = s - |x - z| E|<e, t>| / 2   for any unit vector e:

    which is the distance kernel whose high-dimensional limit, s - (2 pi d)^(-1/2) |x - z|,
    Mroueh et al. 2015, Theorem 1 proves. The slope is E|<e, t>| / 2 for templates
    uniform on the sphere, or from N(0, I/d) given that |t|^2 < 1 + epsilon.

    >>> round(cdf_slope(1000, "sphere") * math.sqrt(2 * math.pi * 1000), 3)
    1.0
    """
    d = n_features
    sphere = math.exp(gammaln(d / 2) - gammaln((d + 1) / 2)) / math.sqrt(math.pi)
    if templates == "sphere":
        return sphere / 2
    # a Gaussian vector has independent length and direction; its mean length below a bound is a chi-square
    # probability with one more degree of freedom
    inside = d * (1 + epsilon)
    length = math.sqrt(2 / d) * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
    return float(sphere * length * chi2.cdf(inside, d + 1) / chi2.cdf(inside, d) / 2)


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

"""The kernel of cumulative distribution features in closed form (Mroueh, Voinea and Poggio, 2015)."""

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

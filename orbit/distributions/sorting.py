"""Noisy sorting: permutations that depend on the point that they act on."""

import numpy as np
import torch
from scipy import special
from torch import Tensor

from orbit.core.errors import InputError
from orbit.core.params import NonNegativeFloat
from orbit.distributions.base import Distribution
from orbit.groups.base import Group
from orbit.groups.domains import Domain, Permutations, interior
from orbit.groups.permutation import Permutation
from orbit.registry import register

# The sigma that is tried, in standard deviations of row norms: the best of 0.05, 0.1 and 0.3 on 300 molecules of QM7.
_DISCOVERED = 0.1


@register("distribution", "noisy_sort")
class NoisySort(Distribution):
    """Rows and columns of a matrix in descending order of row norm plus normal noise.

    The randomly sorted Coulomb matrices of Montavon et al., "Learning invariant
    representations of molecules for atomization energy prediction", 2012, which
    Raj et al. 2017, Table 1 uses: ``sigma=0`` is the sorted matrix, a large ``sigma`` is
    Haar. The noise vectors are drawn once and shared by all points, so the
    features are a fixed function of the point.

    Parameters
    ----------
    sigma : float >= 0
        Standard deviation of the noise, in the units of the row norms after the
        representation.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> C = np.array([[[1.0, 0.5], [0.5, 9.0]]])
    >>> q = orbit.build("distribution", "noisy_sort", sigma=0.0)
    >>> orb = orbit.Orbit(orbit.build("group", "permutation", mode="rows_columns"), q, size=1, rule="monte_carlo")
    >>> import torch
    >>> orb.fit(C).points(torch.from_numpy(C), slice(None))[0, 0].numpy()
    array([[9. , 0.5],
           [0.5, 1. ]])
    """

    domains = (Permutations,)
    data_dependent = True

    def __init__(self, sigma: NonNegativeFloat = 1.0) -> None:
        self.sigma = sigma

    @classmethod
    def of_unordered(cls, group: Group, X: np.ndarray) -> list[Distribution]:
        if not cls().accepts(group.domain):
            return []
        return [cls(float(f"{_DISCOVERED * np.linalg.norm(X, axis=2).std():.2g}"))]

    def accepts(self, domain: Domain) -> bool:
        return isinstance(domain, Permutations) and domain.of == Permutation.ROWS_COLUMNS

    def atoms(self, domain: Domain) -> None:
        return None

    def has_quadrature(self, domain: Domain) -> bool:
        return False

    def scaled(self, factor: float, domain: Domain) -> Distribution | None:
        return type(self)(factor * self.sigma)

    def density(self, domain: Domain, coordinates: np.ndarray) -> np.ndarray:
        """The density of the noise vectors (Lebesgue measure); the permutations have no density in closed form."""
        if self.sigma == 0:
            return np.where((np.asarray(coordinates) == 0).all(1), np.inf, 0.0)
        z = np.asarray(coordinates) / self.sigma
        return np.exp(-(z**2).sum(1) / 2) / (self.sigma * np.sqrt(2 * np.pi)) ** z.shape[1]

    def ppf(self, domain: Domain, u: np.ndarray) -> np.ndarray:
        """Noise vectors, shape ``(r, n)``."""
        return self.sigma * special.ndtri(interior(np.asarray(u)))

    def quadrature(self, domain: Domain, size: int, phase: float) -> tuple[np.ndarray, np.ndarray]:
        raise InputError(f"{self.label()} has no quadrature: choose orbit.rule=monte_carlo or orbit.rule=qmc")

    def move(self, group: Group, draws: np.ndarray, X: Tensor) -> Tensor:
        if not isinstance(group, Permutation):  # the trivial group
            return group.act(draws, X)
        noise = torch.from_numpy(draws).to(device=X.device, dtype=torch.float64)
        # float64 and a stable sort: the order must not depend on the engine's precision or tiles
        norms = torch.linalg.vector_norm(X.to(torch.float64), dim=2)
        orders = torch.argsort(norms + noise[:, None, :], dim=-1, descending=True, stable=True)
        return group.act_each(orders, X)

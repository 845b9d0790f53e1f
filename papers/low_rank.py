"""Generated data whose outputs are of rank one."""

import copy
import functools
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch

from orbit.core.memory import check_fits
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState, generator
from orbit.data.base import Dataset, Loader
from orbit.kernels.base import median_distance
from orbit.registry import register

# Number of points for which targets are computed at once.
_BLOCK_ROWS = 2048


@register("dataset", "low_rank_multitask")
@dataclass(eq=False, repr=False)
class LowRankMultitask(Loader):
    """Twenty outputs that are multiples of one function of twenty inputs (Brault et al. 2016, appendix D.2, Table 3).

    The function is a random-feature model with ``n_waves`` Gaussian frequencies and
    parameters uniform on [-1, 1]; A has rank one and spectral norm one. The paper's
    noise has an "arbitrary" covariance S with |S|_2 = V[y]^(1/2): here S is a random
    one (Wishart) of that norm, V[y] the mean variance of an output. It has a root mean
    square of about 0.15 an output, more than the published errors, and the paper does
    not say whether test targets have it.

    Parameters
    ----------
    noise : bool
        Add the noise to the training targets.
    test_noise : bool
        Add it to the test targets too, with ``noise``.
    n_waves : int >= 1
        Frequencies of the generating model.
    size, test_size : int >= 1
        Points generated.
    n_train, n_test : int >= 1 or None
        Random subsets of them; None is all.

    Examples
    --------
    >>> import numpy as np
    >>> int(np.linalg.matrix_rank(LowRankMultitask(size=50, n_waves=100).load(0).y_train))
    1
    """

    default_representation = {"name": "raw"}
    default_group = {"name": "identity"}
    fixed_task = "regression"
    n_dims = 20

    noise: bool = False
    n_waves: PositiveInt = 10_000
    size: PositiveInt = 1000
    test_size: PositiveInt = 1000
    _: KW_ONLY
    test_noise: bool = False

    def check_memory(self) -> None:
        for key in ("size", "test_size"):
            check_fits(f"dataset.{key}", f"{vars(self)[key]:,} points", 2 * 8 * self.n_dims * vars(self)[key])
        check_fits("dataset.n_waves", f"{self.n_waves:,} frequencies", 2 * 8 * self.n_dims * self.n_waves)

    def _load(self, random_state: RandomState) -> Dataset:
        draw = _low_rank if isinstance(random_state, int) else _low_rank.__wrapped__
        X, values, direction, rng = draw(self.size, self.test_size, self.n_waves, self.n_dims, random_state)
        X, y, rng = X.copy(), np.outer(values, direction), copy.deepcopy(rng)
        if self.noise:
            factor = rng.standard_normal((self.n_dims, self.n_dims))
            factor *= y.var(0).mean() ** 0.25 / np.linalg.norm(factor, 2)
            y[: self.size] += rng.standard_normal((self.size, self.n_dims)) @ factor.T
            if self.test_noise:
                y[self.size :] += rng.standard_normal((self.test_size, self.n_dims)) @ factor.T
        source = f"generated: 20 inputs, 20 outputs of rank 1, {'noisy training targets' if self.noise else 'no noise'}"
        n = self.size
        return Dataset(self.name, "regression", X[:n], y[:n], X[n:], y[n:], source)


@functools.lru_cache(maxsize=4)  # rows of a table differ in the noise only, and a hundred thousand points take long
def _low_rank(
    size: int, test_size: int, n_waves: int, n_dims: int, random_state: RandomState
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]:
    """Points, values of the function, the direction of the outputs, and the generator for the noise."""
    rng = generator(random_state)
    X = rng.uniform(-1, 1, (size + test_size, n_dims))
    frequencies = rng.standard_normal((n_waves, n_dims)) / median_distance(X, int(rng.integers(2**31)))
    weights = rng.uniform(-1, 1, (2, n_waves))
    direction = rng.standard_normal(n_dims)
    values = _waves(X, frequencies, weights)
    return X, values, direction / np.linalg.norm(direction), rng


def _waves(X: np.ndarray, frequencies: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """D^(-1/2) sum_j a_j cos<w_j, x> + b_j sin<w_j, x>, shape ``(n,)``, a block of rows at a time."""
    W, (a, b) = torch.from_numpy(frequencies.T.copy()), torch.from_numpy(weights)
    values = []
    for rows in torch.from_numpy(X).split(_BLOCK_ROWS):
        angles = rows @ W
        values.append(angles.cos() @ a + angles.sin() @ b)
    return torch.cat(values).numpy() / np.sqrt(len(frequencies))

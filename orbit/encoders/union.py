"""Vectors of several encoders side by side."""

from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from orbit.core.errors import check_each
from orbit.core.params import PositiveFloat
from orbit.core.random import RandomState, spawn
from orbit.encoders.base import Encoder
from orbit.registry import build_sections, register

# Points of the sample whose mean norm scales a part.
_NORM_POINTS = 500


@register("encoder", "union")
class UnionEncoder(Encoder):
    """E(x) = (sqrt(w_1) E_1(x) / c_1, ..., sqrt(w_k) E_k(x) / c_k), the vectors of k encoders side by side.

    c_i is the root mean square norm of E_i over the sample, and the w_i sum to one, so that
    |E(x) - E(z)|^2 is the weighted mean of the squared distances |E_i(x) - E_i(z)|^2 / c_i^2, and a Gaussian
    kernel of E the weighted geometric mean of those of its parts. Parts that are equal have landmarks of their own,
    from seeds of their own.

    Parameters
    ----------
    parts : list of sections
        One section for each part: the name of an encoder and its parameters. In Python, a part may also be an encoder.
    weights : list of float > 0, or None
        The weights w_i, up to a factor; None is equal ones.

    Attributes
    ----------
    encoders_ : list of Encoder
    scales_ : array, shape (k,)
        sqrt(w_i) / c_i.

    Examples
    --------
    >>> import numpy as np, torch
    >>> X = np.random.default_rng(0).random((20, 12, 12))
    >>> encoder = UnionEncoder([{"name": "patches", "size": 3}, {"name": "patches", "size": 5}]).fit(X, 0)
    >>> vectors = encoder.encode(torch.from_numpy(X))
    >>> vectors.shape, round(float(vectors.square().sum(1).mean()), 6)
    (torch.Size([20, 800]), 1.0)
    """

    def __init__(
        self,
        parts: list[dict[str, Any] | Encoder] = [{"name": "patches"}, {"name": "gradients"}],  # noqa: B006  never changed
        weights: list[PositiveFloat] | None = None,
    ) -> None:
        self.parts = parts
        self.weights = weights

    def built(self) -> list[Encoder]:
        """The parts, not fitted."""
        return build_sections("encoder", "parts", self.parts)

    def check(self) -> None:
        """Raise ``ParameterError`` for an invalid parameter, also of a part, named e.g. ``parts[1].size``."""
        super().check()
        if not self.parts:
            raise self.wrong("parts", "at least one section {name: ...}")
        if self.weights is not None and len(self.weights) != len(self.parts):
            raise self.wrong("weights", f"one number for each of the {len(self.parts)} parts")
        check_each(self.section, "parts", self.built(), lambda part: part.check())

    def check_shape(self, shape: tuple[int, ...]) -> None:
        check_each(self.section, "parts", self.built(), lambda part: part.check_shape(shape))

    def is_global(self, shape: tuple[int, ...]) -> bool:
        return all(part.is_global(shape) for part in self.built())

    def bytes_per_point(self, itemsize: int) -> int:
        return max(part.bytes_per_point(itemsize) for part in self.encoders_) + 2 * super().bytes_per_point(itemsize)

    def mean_square(self, sample: Tensor) -> float:
        return 1.0  # by its scales

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        seeds = spawn(random_state, len(self.parts))
        self.encoders_ = [clone(part).fit(X, seed) for part, seed in zip(self.built(), seeds, strict=True)]
        self.n_outputs_ = sum(part.n_outputs_ for part in self.encoders_)
        sample = torch.from_numpy(np.array(X[:_NORM_POINTS]))
        self.scales_ = self._scales([part.mean_square(sample) for part in self.encoders_])

    def _scales(self, squares: list[float]) -> np.ndarray:
        """sqrt(w_i) / c_i, shape (k,), from all c_i^2."""
        least = np.finfo(np.float32).tiny  # of a part that is zero everywhere
        weights = np.ones(len(squares)) if self.weights is None else np.array(self.weights)
        return np.sqrt(weights / weights.sum() / np.maximum(squares, least))

    def _encode(self, points: Tensor) -> Tensor:
        return _side_by_side([part.encode(points) for part in self.encoders_], self.scales_)

    def joined(self, vectors: list[Tensor]) -> Tensor:
        """The vectors of points from those of all parts, (n, d_i) each, whose mean square norms are the c_i^2."""
        squares = [float(part.double().square().sum(1).mean()) for part in vectors]
        return _side_by_side(vectors, self._scales(squares))


def _side_by_side(vectors: list[Tensor], scales: np.ndarray) -> Tensor:
    return torch.cat([part * scale for part, scale in zip(vectors, scales.tolist(), strict=True)], dim=1)

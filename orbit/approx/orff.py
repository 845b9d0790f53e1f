"""Operator-valued random Fourier features, averaged over the orbit (Brault et al. 2016, section 2.3)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from orbit.approx.frequencies import Frequencies
from orbit.approx.rf import RandomFourier
from orbit.core.errors import InputError
from orbit.core.params import PositiveInt
from orbit.core.random import RandomState
from orbit.engine import Engine
from orbit.engine.embedding import Embedding, Scratch
from orbit.engine.strategy import Task
from orbit.kernels import Decomposable, Kernel, OperatorKernel
from orbit.orbits import Orbit
from orbit.registry import register
from orbit.solvers.structure import Structure


@register("approx", "orff")
class OperatorRandomFourier(RandomFourier):
    """Random Fourier features of an operator-valued kernel, for learners that use its operator.

    Phi(x)^T theta = sum_j phi_j(x) B_j theta_j needs the scalar features alone and one
    small matrix for each frequency, so :meth:`transform` gives the scalar features

        psi(x) = D^(-1/2) [ sum_i v_i cos<w_j, g_i x> ; sum_i v_i sin<w_j, g_i x> ]_j,

    with the B_j attached (``StructuredFeatures``), for ``SteinRegressor``, ``SteinClassifier``
    and ``CGRegressor``. Averaging over the orbit makes the outputs invariant.

    With ``equivariant`` the outputs move like the points, f(g x) = g f(x), through
    the kernel E_g[g^-1 K(g x, z)]. The features then have an output axis,

        T(x) = sum_i v_i phi_j(g_i x) g_i^-1 B_j,   columns (p, 2 D q).

    Parameters
    ----------
    kernel : OperatorKernel, Kernel or None
        A scalar kernel k is k I; None is decomposable over a Gaussian.
    orbit : Orbit or None
    n_components : int >= 1
        D, the number of frequencies.
    equivariant : bool
        Whether the group acts on outputs as it does on points. It must act linearly, and
        outputs need one number for each coordinate of a point.
    frequencies : Frequencies or None
        None is ``auto``.
    engine : Engine or None
    random_state : int, RandomState or None

    Attributes
    ----------
    frequencies_ : float64 array, shape (D, d)
    structure_ : Structure
    orbit_, kernel_ : the fitted parts

    References
    ----------
    Brault, Heinonen and d'Alché-Buc, "Random Fourier Features for Operator-Valued
    Kernels", 2016, section 2.3 and Table 1; theorem 3.1 there drops the 1/D.

    Examples
    --------
    >>> import numpy as np, orbit
    >>> from orbit.kernels import CurlFree
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> Y = np.column_stack([np.cos(X[:, 0]), X[:, 1]])  # a gradient
    >>> psi = orbit.build("approx", "orff", kernel=CurlFree(lengthscale=1.0), n_components=50, random_state=0)
    >>> features = psi.fit_transform(X)
    >>> bool(orbit.build("regressor", "stein").fit(features, Y).score(features, Y) > 0.98)
    True
    """

    operator_valued = True
    variant = "pairs"

    def __init__(
        self,
        kernel: OperatorKernel | Kernel | None = None,
        orbit: Orbit | None = None,
        n_components: PositiveInt = 512,
        equivariant: bool = False,
        frequencies: Frequencies | None = None,
        engine: Engine | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.orbit = orbit
        self.n_components = n_components
        self.equivariant = equivariant
        self.frequencies = frequencies
        self.engine = engine
        self.random_state = random_state

    def n_columns(self, n: int, d: int) -> int:
        columns = super().n_columns(n, d)
        return columns * d * self._factors(np.ones((1, d))).shape[2] if self.equivariant else columns

    def _fit_map(self, X: np.ndarray, random_state: int) -> None:
        super()._fit_map(X, random_state)
        d, frequencies = self.encoder_.n_outputs_, self.frequencies_
        operator = self.kernel_ if isinstance(self.kernel_, OperatorKernel) else None
        if self.equivariant:
            self.output_moves_ = self._output_moves(d)
            self.factors_ = self._factors(frequencies)
        fixed = d if self.equivariant or not isinstance(operator, Decomposable | None) else None
        stacked = d if self.equivariant else None
        self.structure_ = Structure(operator, frequencies, self._n_features_out, stacked, fixed)

    def _factors(self, frequencies: np.ndarray) -> np.ndarray:
        kernel = self._parts()[1]
        return (kernel if isinstance(kernel, OperatorKernel) else Decomposable()).factors(frequencies)

    def _embedding(self, dtype: np.dtype) -> Embedding:
        if not self.equivariant:
            return super()._embedding(dtype)
        return _Turned(*(self.engine_.tensor(part, dtype) for part in (self.frequencies_, self.factors_)))

    def _task(self, embedding: Embedding, X: np.ndarray, **options: Any) -> Task:
        return super()._task(embedding, X, weights=self.output_moves_ if self.equivariant else None, **options)

    def _output_moves(self, d: int) -> np.ndarray:
        """v_i g_i^-1 as matrices on outputs, shape ``(r, d, d)``."""
        orbit = self.orbit_
        group, shape = orbit.group_, self.shape_in_
        if not group.linear or orbit.distribution_.data_dependent:
            raise InputError(
                f"approx.equivariant=true: {group.label()} with {orbit.distribution_.label()} does not act on outputs "
                "by fixed matrices: choose another group or distribution"
            )
        images = group.act(group.inverse(orbit.elements_), np.eye(d).reshape(d, *shape))
        return orbit.weights_[:, None, None] * images.reshape(-1, d, d).swapaxes(1, 2)

    def _scalar_kernel(self, kernel: OperatorKernel | Kernel) -> Kernel:
        if not isinstance(kernel, OperatorKernel):
            return kernel
        return vars(kernel).get("base_") or kernel.base_kernel()


class _Turned(Embedding):
    """Cosines and sines times a matrix for each orbit point; columns are ordered (p, cosines then sines, q)."""

    def __init__(self, frequencies: Tensor, factors: Tensor) -> None:
        self.frequencies, self.factors = frequencies, factors
        self.units, self.p, self.q = factors.shape
        self.width = self.n_outputs = 2 * self.units * self.p * self.q
        self.scale = self.units**-0.5

    def add(self, points: Tensor, weight: np.ndarray, units: slice, total: Tensor, scratch: Scratch) -> None:
        angles, values = (scratch.matrix(i, len(points), units.stop - units.start) for i in (0, 1))
        torch.mm(points, self.frequencies[units].T, out=angles)
        moved = torch.from_numpy(weight).to(self.factors) @ self.factors[units] * self.scale  # (units, p, q)
        columns = total.view(len(points), self.p, 2, self.units, self.q)[:, :, :, units]
        for part, wave in enumerate((torch.cos, torch.sin)):
            wave(angles, out=values)
            columns[:, :, part].addcmul_(values[:, None, :, None], moved.transpose(0, 1)[None])

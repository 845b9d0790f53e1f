"""Operator-valued kernels: K(x, z) is a p x p matrix that couples the outputs.

All are built from a scalar shift-invariant kernel k0 with frequencies w ~ mu,

    K(x, z) = E_w[ cos<w, x - z> A(w) ],   A(w) = B(w) B(w)^T             (Brault et al. 2016, eq. 7),

so a subclass implements B, and the exact signature K0(delta) = K(x, x - delta).
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from scipy.sparse.csgraph import laplacian
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from orbit.core.component import Component
from orbit.core.errors import DataFileError, InputError, of_part
from orbit.core.linalg import eigh, is_constant, mean_and_deviation
from orbit.core.params import Lengthscale, PositiveInt, Range, check_params, parameters
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.kernels.base import Kernel, pair
from orbit.kernels.gaussian import Gaussian
from orbit.registry import build_section, register


@dataclass(eq=False, repr=False)
class OperatorKernel(Component):
    """A p x p matrix-valued kernel over a scalar one.

    Parameters
    ----------
    base : Kernel or None
        The scalar kernel; None is Gaussian.
    lengthscale : float > 0, "auto", "evidence", "median" or None
        Lengthscale of the scalar kernel in place of its own, in the units of the represented data; None keeps its own.

    Attributes
    ----------
    base_ : Kernel
        The scalar kernel, fitted.
    moments_needed : float
        E |w|^m must be finite for this m, or the kernel does not exist.
    """

    moments_needed: ClassVar[float] = 0.0
    skeleton_: ClassVar[None] = None

    base: Kernel | None = None
    lengthscale: Lengthscale | None = None

    @classmethod
    def from_config(
        cls, base: str | dict[str, Any] = "gaussian", lengthscale: Lengthscale = "auto", **others: Any
    ) -> Self:
        """The kernel whose scalar kernel is given by a name or section.

        Parameters
        ----------
        base : str or mapping
            The scalar kernel: its name, or a section ``{name: matern, nu: 2.5}``.
        lengthscale : float > 0, "auto", "evidence", "ard" or "median"
            Lengthscale of the scalar kernel, unless its section has one, in the units of the represented data.
        """
        section = {"name": base} if isinstance(base, str) else base
        kernel = build_section("kernel", "base", section)
        own = "lengthscale" in section or "lengthscale" not in parameters(type(kernel))
        return cls(base=kernel, lengthscale=None if own else lengthscale, **others)

    def base_kernel(self) -> Kernel:
        """The scalar kernel, not fitted."""
        kernel: Kernel = Gaussian() if self.base is None else clone(self.base)
        if self.lengthscale is None:
            kernel.section = f"{self.section}.base"
            return kernel
        if "lengthscale" not in parameters(type(kernel)):
            raise self.wrong("lengthscale", f"None, because {kernel.label()} has none")
        kernel.section = self.section  # which has its lengthscale
        return kernel.set_params(lengthscale=self.lengthscale)

    def check(self) -> None:
        check_params(self)
        base = self.base_kernel()
        with of_part(self.section, "base"):
            base.check()
        if not base.has_spectrum:
            raise InputError(
                f"kernel.base: {base.label()} is not shift invariant, which {self.label()} needs; choose another kernel"
            )
        if base.spectral_moments <= self.moments_needed:
            raise InputError(
                f"{self.label()} needs frequencies with a second moment, which {base.label()} does not have "
                f"(moments below {base.spectral_moments:g} only): choose gaussian, "
                "rational_quadratic, or matern with nu > 1"
            )

    def check_precision(self, dtype: np.dtype) -> None:
        """As :meth:`orbit.kernels.Kernel.check_precision`, of the scalar kernel."""
        self.base_kernel().check_precision(dtype)

    def label(self) -> str:
        return f"kernel={self.name}"

    def fit(self, X: np.ndarray, random_state: RandomState = None) -> OperatorKernel:
        """Fit the scalar kernel to data, shape ``(n, *shape)``."""
        self.check()
        self.base_ = self.base_kernel().fit(X, random_state)
        return self

    @property
    def lengthscale_(self) -> float:
        return self._fitted_base().lengthscale_

    @property
    def lengthscale_rule(self) -> str | None:
        """As :attr:`orbit.kernels.Kernel.lengthscale_rule`, of the scalar kernel."""
        return self.base_kernel().lengthscale_rule

    @property
    def has_profile(self) -> bool:
        """As :attr:`orbit.kernels.Kernel.has_profile`, of the scalar kernel."""
        return self.base_kernel().has_profile

    def rescaled(self, multiple: float) -> Self:
        """As :meth:`orbit.kernels.Kernel.rescaled`."""
        return self.with_base(self._fitted_base().rescaled(multiple))

    def with_base(self, base: Kernel) -> Self:
        """A copy of the fitted kernel with another fitted scalar kernel."""
        kernel = copy.copy(self)
        kernel.base_ = base
        return kernel

    def metrics(self) -> dict[str, float]:
        return self.base_.metrics()

    def _fitted_base(self) -> Any:
        """``base_``; raises ``NotFittedError`` before ``fit``."""
        check_is_fitted(self, "base_")
        return self.base_

    @abstractmethod
    def factors(self, frequencies: np.ndarray) -> np.ndarray:
        """B(w) for frequencies ``(D, d)``: shape ``(D, p, q)``, with A(w) = B(w) B(w)^T."""

    def spectral_matrices(self, frequencies: np.ndarray) -> np.ndarray:
        """A(w), shape ``(D, p, p)``."""
        B = self.factors(frequencies)
        return B @ B.swapaxes(1, 2)

    @abstractmethod
    def signatures(self, delta: np.ndarray) -> np.ndarray:
        """K0(delta) of the fitted kernel, exactly, for differences ``(m, d)``: float64, shape ``(m, p, p)``."""

    def estimate(self, delta: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """The random-feature estimate of :meth:`signatures` (Brault et al. 2016, section 2.3)."""
        A = self.spectral_matrices(frequencies)
        waves = torch.from_numpy(delta @ frequencies.T).cos_().numpy()  # several times as fast as numpy's
        return (waves @ A.reshape(len(A), -1) / len(A)).reshape(len(delta), *A.shape[1:])

    def gram(self, X: np.ndarray, Z: np.ndarray | None = None) -> np.ndarray:
        """K(x_i, z_j) as one matrix, shape ``(n p, m p)``, ordered by point.

        A kernel that is not fitted is cloned and fitted to ``X``.

        Raises
        ------
        InputError
            If there is no point, or ``X`` and ``Z`` are points of different numbers of entries.
        """
        A, B = pair(X, Z)
        kernel = self if "base_" in vars(self) else clone(self).fit(X)
        blocks = kernel.signatures((A[:, None] - B[None]).reshape(len(A) * len(B), -1))
        p = blocks.shape[-1]
        return blocks.reshape(len(A), len(B), p, p).swapaxes(1, 2).reshape(len(A) * p, len(B) * p)


Output = Literal["identity", "covariance", "low_rank", "graph", "simplex", "learned"]


@register("kernel", "decomposable")
@dataclass(eq=False, repr=False)
class Decomposable(OperatorKernel):
    """K(x, z) = k(x, z) A with one matrix A for all points (Brault et al. 2016, definition 2.1).

    Parameters
    ----------
    base, lengthscale : the scalar kernel k
    output : {"identity", "covariance", "low_rank", "graph", "simplex", "learned"}
        A. ``identity``: outputs are fitted independently. ``covariance``: of the training
        targets, scaled to a mean variance of one. ``low_rank``: its best
        approximation of rank ``rank``. ``graph``: the pseudo-inverse of the
        Laplacian of a graph of outputs, scaled to a mean diagonal of one.
        ``simplex``: simplex coding of classes. ``learned``: optimised together with
        the fit by ``SteinRegressor``, starting from the identity.
    rank : int >= 1
        For ``low_rank``.
    adjacency : str or None
        For ``graph``: an .npy file of a symmetric p x p matrix of weights >= 0.
        None connects every output to its nearest neighbours in correlation.
    n_neighbors : int >= 1
        For ``graph`` without a file.

    References
    ----------
    Micchelli and Pontil, 2005. Evgeniou, Micchelli and Pontil, 2005 (graphs).
    Mroueh, Poggio, Rosasco and Slotine, 2012 (simplex coding).

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import Decomposable
    >>> Decomposable(output="simplex").output_matrix(np.eye(3)).round(2)
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """

    output: Output = "identity"
    rank: PositiveInt = 1
    adjacency: str | None = None
    n_neighbors: PositiveInt = 3

    def check(self) -> None:
        super().check()
        graph = self.adjacency if self.output == "graph" else None
        if graph is not None and not user_path(graph, "kernel.adjacency").is_file():
            raise DataFileError(f"kernel.adjacency: expected an .npy file at {graph}, found none")

    def input_files(self) -> list[Path]:
        return [] if self.adjacency is None or self.output != "graph" else [Path(self.adjacency).expanduser()]

    def output_matrix(self, Y: np.ndarray) -> np.ndarray:
        """A for training targets ``Y``, shape ``(n, p)``: float64, shape ``(p, p)``."""
        p = Y.shape[1]
        if self.output in ("identity", "learned") or p == 1:
            return np.eye(p)
        if self.output == "simplex":
            return (p * np.eye(p) - 1) / (p - 1)
        if self.output == "graph":
            return _unit_diagonal(np.linalg.pinv(laplacian(self._adjacency(Y)), hermitian=True))
        A = _unit_diagonal(np.cov(Y, rowvar=False))
        if self.output == "low_rank":
            values, vectors = eigh(A)
            A = (vectors[:, -self.rank :] * values[-self.rank :]) @ vectors[:, -self.rank :].T
        return A

    def factors(self, frequencies: np.ndarray) -> np.ndarray:
        if self.output != "identity":
            raise InputError(f"kernel.output={self.output} depends on the targets: only identity has fixed factors")
        d = frequencies.shape[1]
        return np.broadcast_to(np.eye(d), (len(frequencies), d, d))

    def signatures(self, delta: np.ndarray) -> np.ndarray:
        values = self._fitted_base().gram(np.asarray(delta), np.zeros((1, np.shape(delta)[1])))
        return values[:, :, None] * np.eye(np.shape(delta)[1])

    def _adjacency(self, Y: np.ndarray) -> np.ndarray:
        p = Y.shape[1]
        if self.adjacency is None:
            from sklearn.neighbors import kneighbors_graph

            mean, deviation = mean_and_deviation(Y)
            centred = (Y - mean) / np.where(is_constant(deviation, mean, Y.dtype), np.inf, deviation)
            near = kneighbors_graph(centred.T, min(self.n_neighbors, p - 1)).toarray()
            return np.maximum(near, near.T)
        try:
            weights = np.load(user_path(self.adjacency, "kernel.adjacency"), allow_pickle=False)
        except Exception as error:
            raise DataFileError(f"kernel.adjacency: {self.adjacency} is not a readable .npy file: {error}") from error
        is_matrix = weights.shape == (p, p) and weights.dtype.kind in "biuf"
        if not (is_matrix and np.isfinite(weights).all() and weights.min() >= 0 and np.allclose(weights, weights.T)):
            expected = f"a symmetric {p} x {p} matrix of finite weights >= 0"
            raise InputError(
                f"kernel.adjacency: expected {expected}, found another array, {weights.dtype} of shape {weights.shape}"
            )
        return weights.astype(np.float64)


class FieldKernel(OperatorKernel):
    """Vector fields: as many outputs as coordinates, A(w) = a w w^T + b (|w|^2 I - w w^T).

    Both parts are second derivatives of k0: -H and H - tr(H) I, H its Hessian.
    """

    moments_needed: ClassVar[float] = 2.0

    @abstractmethod
    def _shares(self) -> tuple[float, float]:
        """(a, b): the weights of the curl-free and of the divergence-free part."""

    def factors(self, frequencies: np.ndarray) -> np.ndarray:
        """B(w) in closed form: w itself, |w| I - w w^T / |w|, or the weighted sum of the two projections.

        A curl-free kernel takes one column, and so does a divergence-free one in the
        plane: the frequency rotated by 90 degrees.
        """
        a, b = self._shares()
        W, d = np.asarray(frequencies, dtype=np.float64), frequencies.shape[1]
        if b == 0:
            return np.sqrt(a) * W[:, :, None]
        if a == 0 and d == 2:
            return np.sqrt(b) * np.stack([-W[:, 1], W[:, 0]], 1)[:, :, None]
        lengths = np.maximum(np.linalg.norm(W, axis=1), np.finfo(float).tiny)[:, None, None]
        along = W[:, :, None] * W[:, None] / lengths
        return np.sqrt(a) * along + np.sqrt(b) * (lengths * np.eye(d) - along)

    def signatures(self, delta: np.ndarray) -> np.ndarray:
        rates = torch.tensor(1 / np.atleast_1d(self._fitted_base().lengthscale_))
        blocks = self.blocks(torch.tensor(delta, dtype=torch.float64), rates) * rates.square().mean()
        return blocks.detach().numpy()

    def blocks(self, delta: Tensor, rates: Tensor) -> Tensor:
        """K0(delta) over the mean of s^2, for differences ``(m, d)``: shape ``(m, d, d)``, differentiable.

        ``rates`` are s = 1 / lengthscale, one or one for each coordinate. With u = s delta and k0(delta) = f(|u|^2),
        the Hessian by delta is S (2 f' I + 4 f'' u u^T) S, S the diagonal matrix of s.
        """
        a, b = self._shares()
        u, identity = delta * rates, torch.eye(delta.shape[1], dtype=delta.dtype)
        shares = (rates / rates.square().mean().sqrt()).expand(delta.shape[1])
        first, second = (values[:, None, None] for values in _derivatives(self._fitted_base(), u.square().sum(1)))
        H = (2 * first * identity + 4 * second * u[:, :, None] * u[:, None]) * shares[:, None] * shares
        return (b - a) * H - b * H.diagonal(dim1=1, dim2=2).sum(1)[:, None, None] * identity


@register("kernel", "curl_free")
class CurlFree(FieldKernel):
    """K0 = -Hessian of k0: all fields of its space are gradients (Brault et al. 2016, definition 2.2).

    Parameters
    ----------
    base, lengthscale : the scalar kernel, whose frequencies need a second moment

    Examples
    --------
    >>> import numpy as np
    >>> from orbit.kernels import CurlFree
    >>> CurlFree(lengthscale=2.0).fit(np.zeros((1, 2))).signatures(np.zeros((1, 2)))[0]
    array([[0.25, 0.  ],
           [0.  , 0.25]])
    """

    def _shares(self) -> tuple[float, float]:
        return 1.0, 0.0


@register("kernel", "divergence_free")
class DivergenceFree(FieldKernel):
    """K0 = (Hessian - Laplacian I) of k0: fields of its space are divergence free (Brault et al. 2016, definition 2.2).

    Example 2.3 of the paper misprints A(w); its next line, |w|^2 I - w w^T, is right.

    Parameters
    ----------
    base, lengthscale : the scalar kernel, whose frequencies need a second moment
    """

    def _shares(self) -> tuple[float, float]:
        return 0.0, 1.0


@register("kernel", "helmholtz")
@dataclass(eq=False, repr=False)
class Helmholtz(FieldKernel):
    """A convex combination of the curl-free and the divergence-free kernel (Brault et al. 2016, section 2.3).

    Parameters
    ----------
    base, lengthscale : the scalar kernel, whose frequencies need a second moment
    curl_free_share : float in [0, 1]
        Weight of the curl-free kernel; the divergence-free one has weight 1 minus this.
    """

    curl_free_share: Annotated[float, Range(low=0.0, high=1.0)] = 0.5

    def _shares(self) -> tuple[float, float]:
        return self.curl_free_share, 1 - self.curl_free_share


def _derivatives(base: Kernel, t: Tensor) -> tuple[Tensor, Tensor]:
    """f'(t) and f''(t) of the kernel's profile, differentiable."""
    t = t if t.requires_grad else t.requires_grad_()
    (first,) = torch.autograd.grad(base.profile(t).sum(), t, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), t, create_graph=True)
    return first, second


def _unit_diagonal(A: np.ndarray) -> np.ndarray:
    """A scaled to a mean diagonal of one, so that the same regularisation suits every A."""
    mean = np.trace(A) / len(A)
    return A / mean if mean > 0 else np.eye(len(A))

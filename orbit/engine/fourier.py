"""Orbits of cyclic shifts in Fourier space: the mathematics of the spectral strategy.

Where every element of a group acts as a circular convolution along some axes of
a point, moving a point by g multiplies its Fourier coefficients x_k along those
axes by numbers h_k(g), the same for every point. The projections of all orbit
points on a template t are then

    <t, g x> = sum_k c_k Re( h_k(g) <t_k, x_k> ),

a sum over the modes k of the half spectrum, where <t_k, x_k> runs over the other
axes and c_k counts k and its conjugate. The inner products do not depend on g;
the factors that do form a small real matrix. Modes without energy in the data
are omitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from orbit.groups import Group

# Responses that differ by less than this are equal: far above rounding in float64.
_EQUAL = 1e-9

# Number of samples up to which a product with the rows of the transform's matrix for the selected modes is faster than
# a fast transform followed by the selection.
_SHORT = 256


class CyclicAxes:
    """The Fourier transform of points along the axes that a group shifts.

    Parameters
    ----------
    shape : shape of a point
    axes : axes of a point, non-negative

    Attributes
    ----------
    n_modes : int
        M, the modes of the half spectrum.
    n_rest : int
        R, the entries of a point that belong to one mode.
    """

    def __init__(self, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
        self.shape, self.axes = shape, axes
        lengths = [shape[a] for a in axes]
        self.n_rest = math.prod(shape) // math.prod(lengths)
        half = np.arange(lengths[-1] // 2 + 1)
        single = (half == 0) | (2 * half == lengths[-1])  # their conjugates are not in the other half
        counts = np.where(single, 1.0, 2.0) / math.prod(lengths)
        self.multiplicity = np.tile(counts, math.prod(lengths[:-1]))
        self.n_modes = len(self.multiplicity)

    def coefficients(self, X: Tensor) -> Tensor:
        """Fourier coefficients of points ``(n, *shape)``: complex, shape ``(M, n, R)``."""
        dims = [1 + a for a in self.axes]
        spectrum = torch.fft.rfftn(X, dim=dims)
        return spectrum.movedim(dims, list(range(len(dims)))).reshape(self.n_modes, len(X), self.n_rest)

    def energy_shares(self, X: Tensor) -> Tensor:
        """The largest share of a point's squared norm in each mode, over points ``(n, *shape)``: shape (M,)."""
        energy = self.energies(_scaled_by_largest_entry(X)) * torch.from_numpy(self.multiplicity).to(X)
        return (energy / energy.sum(1, keepdim=True).clamp(min=torch.finfo(X.dtype).tiny)).amax(0)

    def energies(self, X: Tensor) -> Tensor:
        """Squared moduli of the coefficients of points ``(n, *shape)``, summed over the other axes: shape (n, M)."""
        dims = [1 + a for a in self.axes]
        energy = torch.view_as_real(torch.fft.rfftn(X, dim=dims)).square_()
        rest = [i for i in range(1, X.ndim) if i not in dims]
        # real and imaginary parts are added last: a sum over adjacent pairs is slow, and fewer pairs are left by then
        energy = energy.sum(rest) if rest else energy
        return (energy[..., 0] + energy[..., 1]).reshape(len(X), self.n_modes)

    def response(self, group: Group, elements: np.ndarray) -> np.ndarray:
        """h_k(g), complex128, shape ``(r, M)``: the Fourier coefficients of moved impulses."""
        impulse = np.zeros((1, *self.shape))
        impulse[(0, *(0 if a in self.axes else slice(None) for a in range(len(self.shape))))] = 1.0
        moved = torch.from_numpy(group.act(elements, impulse)[:, 0])
        return self.coefficients(moved)[:, :, 0].numpy().T


class Analysis:
    """Computes the Fourier coefficients of points in a few modes, as real and imaginary parts.

    Parameters
    ----------
    axes : CyclicAxes
    modes : tensor of indices, shape (K,)
    like : tensor
        Of the precision and on the device of the points.
    """

    def __init__(self, axes: CyclicAxes, modes: Tensor, like: Tensor) -> None:
        self.axes, self.modes = axes, modes
        self.lengths = tuple(axes.shape[a] for a in axes.axes)
        self.matrix: Tensor | None = None
        length = math.prod(self.lengths)
        if length <= _SHORT:
            # coefficients of the unit impulses
            impulses = torch.eye(length, dtype=torch.float64).reshape(-1, *self.lengths)
            spectrum = torch.fft.rfftn(impulses, dim=list(range(1, impulses.ndim))).reshape(length, -1)
            parts = torch.view_as_real(spectrum[:, modes.cpu()]).permute(2, 1, 0)
            self.matrix = parts.reshape(-1, length).to(like)

    def __call__(self, X: Tensor) -> Tensor:
        """Coefficients of points ``(n, *shape)``, shape ``(2, K, n, R)``, the real parts first."""
        if self.matrix is None:
            return torch.view_as_real(self.axes.coefficients(X)[self.modes]).movedim(-1, 0)
        return torch.mm(self.matrix, self.entries(X).T).view(2, len(self.modes), len(X), -1)

    def entries(self, X: Tensor) -> Tensor:
        """Points ``(n, *shape)`` as rows along the axes: shape (n R, samples)."""
        dims = [1 + a for a in self.axes.axes]
        return X.movedim(dims, list(range(-len(dims), 0))).reshape(-1, math.prod(self.lengths))


class LeftOut:
    """Computes the share of a point's norm that lies in the omitted modes.

    Parameters
    ----------
    axes : CyclicAxes
    modes : sorted indices
        The modes that are kept.
    like : tensor
        Of the precision and on the device of the points.
    """

    def __init__(self, axes: CyclicAxes, modes: np.ndarray, like: Tensor) -> None:
        left_out = torch.from_numpy(np.setdiff1d(np.arange(axes.n_modes), modes))
        counts = torch.from_numpy(axes.multiplicity)[left_out]
        self.is_empty = len(left_out) == 0
        self._analysis = Analysis(axes, left_out.to(like.device), like)
        self._scale = counts.sqrt().to(like)
        if self._analysis.matrix is not None:
            self._analysis.matrix *= self._scale.repeat(2)[:, None]

    def share(self, X: Tensor) -> float:
        """The largest share of a point's norm in the omitted modes, over points ``(n, *shape)``."""
        if self.is_empty:
            return 0.0
        norms, least = torch.linalg.vector_norm(X.flatten(1), dim=1), torch.finfo(X.dtype).tiny
        if not least**0.25 < norms.amin() <= norms.amax() < least**-0.25:
            X = _scaled_by_largest_entry(X)
            norms = torch.linalg.vector_norm(X.flatten(1), dim=1)
        return float((self._norms(X) / norms.clamp(min=least)).amax())

    def _norms(self, X: Tensor) -> Tensor:
        if self._analysis.matrix is None:
            parts = self._analysis(X) * self._scale[:, None, None]
            return torch.linalg.vector_norm(parts, dim=(0, 1, 3))
        coefficients = torch.mm(self._analysis.entries(X), self._analysis.matrix.T)
        return torch.linalg.vector_norm(coefficients.view(len(X), -1), dim=1)


def _scaled_by_largest_entry(X: Tensor) -> Tensor:
    """Each point divided by its largest entry, so that squares neither underflow nor overflow."""
    largest = X.flatten(1).abs().amax(1).clamp(min=torch.finfo(X.dtype).tiny)
    return X / largest.view(-1, *[1] * (X.ndim - 1))


def band(shares: np.ndarray, tolerance: float) -> np.ndarray:
    """The smallest set of modes with which no point loses more than ``tolerance`` of its norm.

    Parameters
    ----------
    shares : array, shape (M,)
        The largest share of a point's squared norm in each mode.

    Returns
    -------
    sorted indices, at least one

    Examples
    --------
    >>> band(np.array([0.9, 0.1, 1e-8]), 1e-3)
    array([0, 1])
    """
    order = np.argsort(shares, kind="stable")
    lost = np.cumsum(shares[order])
    dropped = min(int(np.searchsorted(lost, tolerance**2, side="right")), len(shares) - 1)
    return np.sort(order[dropped:])


@dataclass(frozen=True)
class Synthesis:
    """Matrices from inner products of coefficients to projections, for all elements of an orbit at once.

    If the orbit consists of pairs whose responses differ by a sign in some modes (for
    rotations: pairs half a turn apart, and odd modes), the projections of a pair are
    ``even + odd`` and ``even - odd``, and half the matrix is enough.

    Attributes
    ----------
    modes : indices of the modes, those of ``even`` first
    even, odd : float64 arrays, shape (m, 2 K): columns real and imaginary part of each mode in turn
        ``odd`` is None if there are no pairs; then m = r.
    weights : float64 array, shape (m,)
        Of ``even + odd``.
    mirrored_weights : float64 array, shape (m,), or None
        Of ``even - odd``.
    elements : indices of the elements with projections ``even + odd``, shape (m,)
    mirrored_elements : the same for ``even - odd``, or None
    """

    modes: np.ndarray
    even: np.ndarray
    odd: np.ndarray | None
    weights: np.ndarray
    mirrored_weights: np.ndarray | None
    elements: np.ndarray
    mirrored_elements: np.ndarray | None


def synthesis(response: np.ndarray, weights: np.ndarray, modes: np.ndarray) -> Synthesis:
    """The :class:`Synthesis` for the given modes of a response ``(r, M)`` and the orbit's weights ``(r,)``."""
    kept = response[:, modes]
    mirror = _mirrored_pairs(kept)
    if mirror is None:
        everything = np.arange(len(weights))
        return Synthesis(modes, _real_columns(kept), None, weights, None, everything, None)
    first, second, is_odd = mirror
    even, odd = _real_columns(kept[np.ix_(first, ~is_odd)]), _real_columns(kept[np.ix_(first, is_odd)])
    order = np.concatenate([modes[~is_odd], modes[is_odd]])
    return Synthesis(order, even, odd, weights[first], weights[second], first, second)


def _real_columns(response: np.ndarray) -> np.ndarray:
    return np.stack([response.real, -response.imag], axis=2).reshape(len(response), -1)


def _mirrored_pairs(response: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Indices of the first and second elements of pairs with responses ``h`` and ``+-h``, and the modes of minus sign.

    None if the elements do not form such pairs.
    """
    r = len(response)
    if r < 2 or r % 2:
        return None
    for partner in range(1, r):
        is_odd = np.abs(response[partner] + response[0]) < np.abs(response[partner] - response[0])
        signs = np.where(is_odd, -1.0, 1.0)
        if not is_odd.any() or np.abs(response[partner] - signs * response[0]).max() > _EQUAL:
            continue
        pairs = _pairs(response, signs)
        if pairs is not None:
            return pairs[:, 0], pairs[:, 1], is_odd
    return None


def _pairs(response: np.ndarray, signs: np.ndarray) -> np.ndarray | None:
    unpaired = np.ones(len(response), dtype=bool)
    pairs = []
    for i in range(len(response)):
        if not unpaired[i]:
            continue
        unpaired[i] = False
        distance = np.where(unpaired, np.abs(response - signs * response[i]).max(1), np.inf)
        j = int(distance.argmin())
        if distance[j] > _EQUAL:
            return None
        unpaired[j] = False
        pairs.append((i, j))
    return np.array(pairs)

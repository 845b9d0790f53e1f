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
        """The largest share of a point's squared norm in each coefficient, over points ``(n, *shape)``: (M, R)."""
        coefficients = self.coefficients(_scaled_by_largest_entry(X))
        energy = torch.view_as_real(coefficients).square().sum(-1)
        energy *= torch.from_numpy(self.multiplicity).to(X)[:, None, None]
        return (energy / energy.sum((0, 2), keepdim=True).clamp(min=torch.finfo(X.dtype).tiny)).amax(1)

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
    """Computes the Fourier coefficients of points, scaled so that their squares sum to those of the points.

    Parameters
    ----------
    axes : CyclicAxes
    conjugate : bool array, shape (M,)
        The modes whose coefficients are conjugated.
    like : tensor
        Of the precision and on the device of the points.
    """

    def __init__(self, axes: CyclicAxes, conjugate: np.ndarray, like: Tensor) -> None:
        self.axes = axes
        self.lengths = tuple(axes.shape[a] for a in axes.axes)
        scale = np.sqrt(axes.multiplicity)
        parts = torch.from_numpy(np.stack([scale, np.where(conjugate, -scale, scale)]))
        self.matrix: Tensor | None = None
        length = math.prod(self.lengths)
        if length <= _SHORT:
            # coefficients of the unit impulses
            impulses = torch.eye(length, dtype=torch.float64).reshape(-1, *self.lengths)
            spectrum = torch.fft.rfftn(impulses, dim=list(range(1, impulses.ndim))).reshape(length, -1)
            self.matrix = (torch.view_as_real(spectrum).permute(2, 1, 0) * parts[..., None]).flatten(0, 1).to(like)
        self._scale = parts.to(like)

    def __call__(self, X: Tensor) -> Tensor:
        """Coefficients of points ``(n, *shape)``, shape ``(R 2 M, n)``: see :meth:`rows`."""
        if self.matrix is None:
            parts = torch.view_as_real(self.axes.coefficients(X)).permute(2, 3, 0, 1)  # (R, 2, M, n)
            return (parts * self._scale[..., None]).flatten(0, 2)
        dims = [1 + a for a in self.axes.axes]
        entries = X.movedim(dims, list(range(-len(dims), 0))).reshape(len(X), self.axes.n_rest, -1)
        return torch.matmul(self.matrix, entries.permute(1, 2, 0)).flatten(0, 1)

    def rows(self, modes: np.ndarray, rests: np.ndarray) -> tuple[Tensor, Tensor]:
        """The rows of the real and imaginary parts of some coefficients, by their modes and other axes."""
        real = torch.from_numpy(2 * self.axes.n_modes * rests + modes).flatten().to(self._scale.device)
        return real, real + self.axes.n_modes


class OmittedShare:
    """Computes the share of a point's norm that lies in the omitted coefficients.

    Parameters
    ----------
    analysis : Analysis
    kept : bool array, shape (M, R)
    """

    def __init__(self, analysis: Analysis, kept: np.ndarray) -> None:
        self.is_empty = bool(kept.all())
        self._rows = torch.cat(analysis.rows(*np.nonzero(~kept)))

    def share(self, X: Tensor, coefficients: Tensor) -> float:
        """The largest share of a point's norm in the omitted coefficients, over points ``(n, *shape)``.

        ``coefficients`` : those of all modes, from :class:`Analysis`.
        """
        if self.is_empty:
            return 0.0
        left_out, points = coefficients.index_select(0, self._rows), X.flatten(1)
        norms, least = torch.linalg.vector_norm(points, dim=1), torch.finfo(X.dtype).tiny
        if not least**0.25 < norms.amin() <= norms.amax() < least**-0.25:
            largest = _largest_entries(X)
            points, left_out = points / largest[:, None], left_out / largest
            norms = torch.linalg.vector_norm(points, dim=1)
        return float((torch.linalg.vector_norm(left_out, dim=0) / norms.clamp(min=least)).amax())


def _largest_entries(X: Tensor) -> Tensor:
    return X.flatten(1).abs().amax(1).clamp(min=torch.finfo(X.dtype).tiny)


def _scaled_by_largest_entry(X: Tensor) -> Tensor:
    """Each point divided by its largest entry, so that squares neither underflow nor overflow."""
    return X / _largest_entries(X).view(-1, *[1] * (X.ndim - 1))


def band(shares: np.ndarray, tolerance: float) -> np.ndarray:
    """The smallest set of coefficients with which no point loses more than ``tolerance`` of its norm.

    Parameters
    ----------
    shares : array
        The largest share of a point's squared norm in each coefficient.

    Returns
    -------
    bool array of the shape of ``shares``, at least one true

    Examples
    --------
    >>> band(np.array([0.9, 0.1, 1e-8]), 1e-3)
    array([ True,  True, False])
    """
    order = np.argsort(shares, axis=None, kind="stable")
    lost = np.cumsum(shares.ravel()[order])
    dropped = min(int(np.searchsorted(lost, tolerance**2, side="right")), shares.size - 1)
    kept = np.ones(shares.shape, dtype=bool)
    kept.ravel()[order[:dropped]] = False
    return kept


@dataclass(frozen=True)
class Aliases:
    """Modes in classes whose responses differ by a factor only, after some of them are conjugated.

    Attributes
    ----------
    response : complex array, shape (r, C)
        h of each class.
    classes : integer array, shape (K,)
        The class of each mode.
    conjugate : bool array, shape (K,)
    factors : complex array, shape (K,)
        f: the response of a mode, conjugated or not, is f h.
    """

    response: np.ndarray
    classes: np.ndarray
    conjugate: np.ndarray
    factors: np.ndarray


def aliases(response: np.ndarray) -> Aliases:
    """The :class:`Aliases` among the modes of a response (r, K).

    Examples
    --------
    >>> turns = 2 * np.pi * np.arange(4) / 4
    >>> found = aliases(np.exp(-1j * np.outer(turns, range(7))))
    >>> found.classes.tolist(), found.conjugate.astype(int).tolist()
    ([0, 1, 2, 1, 0, 1, 2], [0, 0, 0, 1, 0, 0, 0])
    """
    n_modes = response.shape[1]
    classes, conjugate, factors = np.full(n_modes, -1), np.zeros(n_modes, dtype=bool), np.zeros(n_modes, dtype=complex)
    found: list[np.ndarray] = []
    invariants, tolerances = _invariants(response)
    while (classes < 0).any():
        first = classes.argmin()
        equal = (np.abs(invariants - invariants[first]) <= tolerances + tolerances[first]).all(1)
        own, likely = response[:, first], np.flatnonzero(equal & (classes < 0))
        largest = own[np.abs(own).argmax()]
        own = own * (np.conj(largest) / max(abs(largest), np.finfo(float).tiny))  # real, if it is real up to a factor
        square = max(float(np.vdot(own, own).real), np.finfo(float).tiny)
        for mirrored in (False, True):
            others = response[:, likely].conj() if mirrored else response[:, likely]
            factor = own.conj() @ others / square
            same = np.abs(others - own[:, None] * factor).max(0) <= _EQUAL
            members, likely = likely[same], likely[~same]
            classes[members], conjugate[members], factors[members] = len(found), mirrored, factor[same]
        found.append(own)
    return Aliases(np.stack(found, axis=1), classes, conjugate, factors)


def _invariants(response: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Invariants of modes under factors and conjugation, shape (K, 4), and their tolerances, shape (K, 1).

    They are the sizes of four random projections of each mode of a response (r, K), relative to its norm. Only modes
    with equal invariants are compared in full: comparing all pairs of a thousand modes would take minutes.
    """
    sizes = np.linalg.norm(response, axis=0)[:, None]
    projections = np.abs(response.T @ _unit_vectors(len(response))) / np.maximum(sizes, np.finfo(float).tiny)
    # an error of _EQUAL in every entry, relative to the norm of the mode, and rounding
    return projections, 2 * _EQUAL * math.sqrt(len(response)) / np.maximum(sizes, np.finfo(float).tiny) + _EQUAL


def _unit_vectors(length: int) -> np.ndarray:
    """Four random vectors, shape (length, 4)."""
    vectors = np.random.default_rng(0).standard_normal((length, 4))
    return vectors / np.linalg.norm(vectors, axis=0)


@dataclass(frozen=True)
class Block:
    """Classes of aliased modes with as many coefficients each, whose inner products are one batched product.

    Attributes
    ----------
    modes, rests : integer arrays, shape (G, E)
        The coefficients that are kept, by their modes and their places along the other axes.
    factors : complex array, shape (G, E)
        f of each mode.
    is_real : bool
        Whether the responses are real, so that real parts of the inner products are enough.
    """

    modes: np.ndarray
    rests: np.ndarray
    factors: np.ndarray
    is_real: bool

    @property
    def parts(self) -> int:
        """Real numbers that are computed for each class: its real part, or both parts."""
        return 1 if self.is_real else 2

    @property
    def n_columns(self) -> int:
        """Real numbers that are computed for all classes."""
        return self.parts * len(self.modes)


@dataclass(frozen=True)
class Synthesis:
    """Matrices from inner products of coefficients to projections, for all elements of an orbit at once.

    If the orbit consists of pairs whose responses differ by a sign in some classes (for
    rotations: pairs half a turn apart, and odd modes), the projections of a pair are
    ``even + odd`` and ``even - odd``, and half the matrix is enough.

    Attributes
    ----------
    blocks : blocks of classes, those of ``even`` first
    conjugate : bool array, shape (M,)
        The modes whose coefficients are conjugated.
    even, odd : float64 arrays, shape (m, J)
        Columns are the real parts of the classes of a block, then their imaginary parts, then the next block.
        ``odd`` is None if there are no pairs; then m = r.
    weights : float64 array, shape (m,)
        Of ``even + odd``.
    mirrored_weights : float64 array, shape (m,), or None
        Of ``even - odd``.
    elements : indices of the elements with projections ``even + odd``, shape (m,)
    mirrored_elements : the same for ``even - odd``, or None
    """

    blocks: tuple[Block, ...]
    conjugate: np.ndarray
    even: np.ndarray
    odd: np.ndarray | None
    weights: np.ndarray
    mirrored_weights: np.ndarray | None
    elements: np.ndarray
    mirrored_elements: np.ndarray | None

    @property
    def modes(self) -> np.ndarray:
        """Indices of the modes in use, those of ``even`` first."""
        return np.concatenate([np.unique(block.modes) for block in self.blocks])

    @property
    def n_columns(self) -> int:
        """J of both matrices together."""
        return sum(block.n_columns for block in self.blocks)


def synthesis(response: np.ndarray, weights: np.ndarray, kept: np.ndarray) -> Synthesis:
    """The :class:`Synthesis` for a response (r, M), an orbit's weights (r,) and coefficients ``kept`` (M, R)."""
    modes = np.flatnonzero(kept.any(1))
    alias = aliases(response[:, modes])
    mirror = _mirrored_pairs(alias.response)
    is_odd = np.zeros(alias.response.shape[1], dtype=bool) if mirror is None else mirror[2]
    is_real = np.abs(alias.response.imag).max(0) <= _EQUAL
    sizes = np.bincount(alias.classes, kept[modes].sum(1)).astype(int)
    blocks, chosen = [], []
    for odd, real, size in sorted({*zip(is_odd.tolist(), is_real.tolist(), sizes.tolist(), strict=True)}):
        members = np.flatnonzero((is_odd == odd) & (is_real == real) & (sizes == size))
        at = [np.nonzero(kept[modes] & (alias.classes == one)[:, None]) for one in members]
        places, rests = np.array([modes_at for modes_at, _ in at]), np.array([rest for _, rest in at])
        blocks.append(Block(modes[places], rests, alias.factors[places], real))
        chosen.append((odd, _real_columns(alias.response[:, members], real)))
    conjugate = np.zeros(len(kept), dtype=bool)
    conjugate[modes] = alias.conjugate

    def matrix(odd: bool, elements: np.ndarray) -> np.ndarray:
        return np.concatenate([np.empty((len(elements), 0)), *(c[elements] for o, c in chosen if o == odd)], axis=1)

    if mirror is None:
        everything = np.arange(len(weights))
        return Synthesis(tuple(blocks), conjugate, matrix(False, everything), None, weights, None, everything, None)
    first, second, _ = mirror
    pairs = matrix(False, first), matrix(True, first), weights[first], weights[second]
    return Synthesis(tuple(blocks), conjugate, *pairs, first, second)


def _real_columns(response: np.ndarray, is_real: bool) -> np.ndarray:
    if is_real:
        return response.real
    return np.concatenate([response.real, -response.imag], axis=1)


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
    vectors = _unit_vectors(response.shape[1])
    projections, wanted = response @ vectors, (response * signs) @ vectors  # compared first, as in _invariants
    pairs = []
    for i in range(len(response)):
        if not unpaired[i]:
            continue
        unpaired[i] = False
        tolerance = _EQUAL * (math.sqrt(response.shape[1]) + 1)
        likely = np.flatnonzero(unpaired & (np.abs(projections - wanted[i]) <= tolerance).all(1))
        distance = np.abs(response[likely] - signs * response[i]).max(1)
        if not len(likely) or distance.min() > _EQUAL:
            return None
        j = int(likely[distance.argmin()])
        unpaired[j] = False
        pairs.append((i, j))
    return np.array(pairs)

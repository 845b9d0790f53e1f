"""The environment of each atom of a molecule: smooth distributions of distances and angles, and their derivatives."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import Tensor

from orbit.core.linalg import pivoted_root
from orbit.representations.neighbours import CELL, Neighbours

# Angstrom, but cosines. Wider than those of ``many_body``, because the kernel of whole environments refines them; that
# had the smaller error of forces on 100 frames of ethanol.
_CUTOFF, _ANGLE_CUTOFF = 6.0, 4.0
_PAIR_WIDTH, _TRIPLE_WIDTHS = 0.084, (2.0, 1.12, 1.2)
# Numbers of each kind among which landmarks are chosen, and the most of a kernel value that the landmarks may miss.
_SAMPLE, _MISSING = 1000, 0.05

# Of pairs and triples of atoms, by their number of atoms: pairs with a distance, and those whose environment it is.
_EDGES = {2: ((0, 1),), 3: ((0, 1), (0, 2), (1, 2))}
_CENTRES = {2: (0, 1), 3: (0,)}

#: Charges of a kind of pair or triple, of a triple those of the centre first.
Kind = tuple[int, ...]


@dataclass(frozen=True)
class _Terms:
    """Pairs or triples of atoms of one kind: the molecule of each, shape (m,), and its atoms, shape (m, 2 or 3).

    ``offsets``, shape (m, 2 or 3, 3), lead from positions to the images that are meant.
    """

    molecule: Tensor
    atoms: Tensor
    offsets: Tensor | None

    def vectors(self, positions: Tensor) -> list[Tensor]:
        """Differences of positions, shape (m, 3), for each of the edges."""
        ends = positions[self.molecule[:, None], self.atoms]
        if self.offsets is not None:
            ends = ends + self.offsets
        return [ends[:, a] - ends[:, b] for a, b in _EDGES[self.atoms.shape[1]]]


@dataclass
class Environments:
    """Vectors of atoms, of which all derivatives by positions are known: the terms of ``many_body`` by atom.

    The vector of an atom has, with f as of :class:`~orbit.representations.molecules.ManyBody`, and Nyström features phi
    of exp(-|t - t'|^2 / 2) for each pair and triple of elements,

    - for each pair of elements the sum of f(r) / r^2 phi(1/r) over the pairs that the atom is in,
    - for each triple of elements the sum of f(r) f(r') / (r r' u) phi(t) over the triples whose centre it is, with
      t = (r + r', 2 (r - r'), cos a), averaged over both orders of two neighbours of the same element.

    It is differentiable in the positions, unlike ``many_body``, which has |r - r'| and a.

    Attributes
    ----------
    landmarks : dict of tuple to (tensor of shape (m, d), tensor of shape (m, m))
        Landmarks t of each kind of pair and triple in the training molecules, and L with phi(t) = L k(landmarks, t).
    """

    landmarks: dict[Kind, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def n_columns(self) -> int:
        return sum(len(points) for points, _ in self.landmarks.values())

    def fit(self, molecules: Iterable[tuple[np.ndarray, Tensor]], first_only: bool = False) -> Environments:
        """Choose landmarks among the terms of all atoms, or those of the first atom of each molecule.

        ``molecules`` are blocks of charges, shape (n, atoms), 0 without an atom, and positions, shape (n, atoms, 3). A
        charge of -1 stands beside a vector of the cell; then neighbours are all images within the cutoffs.
        """
        found: dict[Kind, Tensor] = {}
        for charges, positions in molecules:
            for kind, terms in _terms(charges, positions, first_only):
                held = found.get(kind, torch.empty(0, dtype=positions.dtype))
                if (missing := _SAMPLE - len(held)) > 0:
                    t = _shape(kind, _lengths(terms.vectors(positions)))[0]
                    some = t[np.linspace(0, len(t) - 1, min(missing, len(t))).astype(int)]
                    found[kind] = torch.cat([held, some]) if len(held) else some
        self.landmarks = {}
        for kind, t in sorted(found.items()):
            K = np.exp(-0.5 * cdist(t, t, "sqeuclidean"))
            chosen, root = pivoted_root(K, precision=2 * _MISSING / math.sqrt(len(K)))
            self.landmarks[kind] = t[chosen], torch.from_numpy(root)
        return self

    def of_first(self, charges: np.ndarray, positions: Tensor) -> Tensor:
        """Vectors of the first atom of each molecule, shape (n, d)."""
        values = torch.zeros(len(charges), self.n_columns, dtype=positions.dtype)
        columns = self.columns()
        for kind, terms in _terms(charges, positions, first_only=True):
            if kind in self.landmarks:
                phi, _ = self._features(kind, _lengths(terms.vectors(positions)), derivatives=False)
                values[:, columns[kind]].index_add_(0, terms.molecule, phi)
        return values

    def columns_of(self, element: int) -> np.ndarray:
        """The columns that atoms of an element may have: of pairs with it, and of triples whose centre it is."""
        kinds = {kind: kind if len(kind) == 2 else kind[:1] for kind in self.landmarks}
        return np.flatnonzero([element in kinds[kind] for kind, (t, _) in self.landmarks.items() for _ in t])

    def columns(self) -> dict[Kind, slice]:
        """The columns of each kind of pair and triple."""
        ends = np.cumsum([len(points) for points, _ in self.landmarks.values()]).tolist()
        return dict(zip(self.landmarks, map(slice, [0, *ends], ends), strict=False))

    def __call__(self, charges: np.ndarray, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors, shape (n, atoms, d), and their derivatives by the positions of all atoms, (n, atoms, 3 atoms, d)."""
        n, size = charges.shape
        values = torch.zeros(n * size, self.n_columns, dtype=positions.dtype)
        slopes = torch.zeros(n * size * size, 3, self.n_columns, dtype=positions.dtype)
        of_kinds = self.columns()
        for kind, terms in _terms(charges, positions):
            if kind not in self.landmarks:
                continue
            vectors = terms.vectors(positions)
            phi, derivatives = self._features(kind, _lengths(vectors))
            columns = of_kinds[kind]
            for centre in _CENTRES[len(kind)]:
                rows = terms.molecule * size + terms.atoms[:, centre]
                values[:, columns].index_add_(0, rows, phi)
                for (a, b), vector, by_length in zip(_EDGES[len(kind)], vectors, derivatives, strict=True):
                    slope = torch.nn.functional.normalize(vector)[:, :, None] * by_length[:, None]
                    slopes[:, :, columns].index_add_(0, rows * size + terms.atoms[:, a], slope)
                    slopes[:, :, columns].index_add_(0, rows * size + terms.atoms[:, b], slope, alpha=-1)
        return values.view(n, size, -1), slopes.view(n, size, 3 * size, -1)

    def _features(self, kind: Kind, lengths: Tensor, derivatives: bool = True) -> tuple[Tensor, list[Tensor]]:
        """Weighted features of terms, shape (m, columns), and their derivatives by each length, if asked for."""
        landmarks, root = self.landmarks[kind]
        t, weight, by_length = _shape(kind, lengths)
        by_length = by_length if derivatives else []
        value = torch.zeros(len(t), len(root), dtype=t.dtype)
        slopes = [torch.zeros_like(value) for _ in by_length]
        orders = _orders(kind)
        for order in orders:
            points = landmarks * torch.tensor(order, dtype=t.dtype)
            K = (t[:, None] - points).square().sum(2).mul_(-0.5).exp_() / len(orders)
            value += K
            for slope, (by_t, _) in zip(slopes, by_length, strict=True):
                slope += K * (by_t @ points.T - (by_t * t).sum(1, keepdim=True))
        by_lengths = [
            (by_weight[:, None] * value + weight[:, None] * slope) @ root.T
            for slope, (_, by_weight) in zip(slopes, by_length, strict=True)
        ]
        return weight[:, None] * value @ root.T, by_lengths


def _orders(kind: Kind) -> list[tuple[float, ...]]:
    """Signs of t in the orders of the neighbours that are averaged over."""
    if len(kind) == 2:
        return [(1.0,)]
    return [(1.0, 1.0, 1.0), (1.0, -1.0, 1.0)] if kind[1] == kind[2] else [(1.0, 1.0, 1.0)]


def _shape(kind: Kind, lengths: Tensor) -> tuple[Tensor, Tensor, list[tuple[Tensor, Tensor]]]:
    """t, shape (m, 1 or 3), and weights, shape (m,), of pairs or triples, and the derivatives of both by each length.

    ``lengths`` has shape (m, 1 or 3).
    """
    if len(kind) == 2:
        (r,) = lengths.T
        value, slope = _falloff(r, _CUTOFF)
        by_r = -1 / r[:, None] ** 2 / _PAIR_WIDTH, slope / r - value / r**2
        return 1 / r[:, None] / _PAIR_WIDTH, value / r, [by_r]
    r, s, u = lengths.T
    (p, p_slope), (q, q_slope) = (_falloff(length, _ANGLE_CUTOFF) for length in (r, s))
    cosine, one, none = (r**2 + s**2 - u**2) / (2 * r * s), torch.ones_like(r), torch.zeros_like(r)
    derivatives = [
        (_t(one, 2 * one, 1 / s - cosine / r), p_slope * q / u),
        (_t(one, -2 * one, 1 / r - cosine / s), p * q_slope / u),
        (_t(none, none, -u / (r * s)), -p * q / u**2),
    ]
    return _t(r + s, 2 * (r - s), cosine), p * q / u, derivatives


def _t(*numbers: Tensor) -> Tensor:
    return torch.stack([each / width for each, width in zip(numbers, _TRIPLE_WIDTHS, strict=True)], 1)


def _falloff(r: Tensor, cutoff: float) -> tuple[Tensor, Tensor]:
    """f(r) / r, and its derivative."""
    value, slope = (1 + torch.cos(math.pi * r / cutoff)) / 2, -torch.sin(math.pi * r / cutoff) * math.pi / cutoff / 2
    return value / r, slope / r - value / r**2


def _lengths(vectors: list[Tensor]) -> Tensor:
    return torch.stack([vector.norm(dim=1) for vector in vectors], 1)


def _terms(charges: np.ndarray, positions: Tensor, first_only: bool = False) -> Iterator[tuple[Kind, _Terms]]:
    """The pairs and triples of atoms within the cutoffs, by their elements; or only those of the first atom."""
    if (charges == CELL).any():
        found = Neighbours.in_cells(charges, positions.numpy(), _CUTOFF)
        found = found[found.centre == 0] if first_only else found
    else:
        distances = torch.cdist(positions, positions, compute_mode="donot_use_mm_for_euclid_dist").numpy()
        apart = (charges > 0)[:, :, None] & (charges > 0)[:, None] & ~np.eye(charges.shape[1], dtype=bool)
        rows = slice(1 if first_only else None)
        found = Neighbours.of_distances(np.where(apart, distances, np.inf)[:, rows], _CUTOFF)
    yield from _by_kind(charges, found if first_only else found.once())
    near = found[found.r < _ANGLE_CUTOFF]
    yield from _by_kind(charges, *map(near.__getitem__, near.couples()))


def _by_kind(charges: np.ndarray, *of_centre: Neighbours) -> Iterator[tuple[Kind, _Terms]]:
    """Terms of centres and one or two neighbours, by charges; those of the last two atoms are in ascending order."""
    first = of_centre[0]
    if not len(first.r):
        return
    atoms = np.stack([first.centre, *(each.other for each in of_centre)], 1)
    swapped = charges[first.molecule, atoms[:, -2]] > charges[first.molecule, atoms[:, -1]]
    atoms[swapped, -2:] = atoms[swapped, :-3:-1]
    offsets = None
    if first.offsets is not None:
        offsets = np.stack([0 * first.offsets, *(np.asarray(each.offsets) for each in of_centre)], 1)
        offsets[swapped, -2:] = offsets[swapped, :-3:-1]
    kinds, which = np.unique(charges[first.molecule[:, None], atoms], axis=0, return_inverse=True)
    for k, kind in enumerate(kinds):
        rows = np.flatnonzero(which == k)
        of_kind = None if offsets is None else torch.from_numpy(offsets[rows])
        yield (
            tuple(kind.tolist()),
            _Terms(torch.from_numpy(first.molecule[rows]), torch.from_numpy(atoms[rows]), of_kind),
        )

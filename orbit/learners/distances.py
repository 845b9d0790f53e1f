"""The kernel of all distances in one molecule, averaged over the permutations that its bonds allow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from orbit.core.linalg import pivoted_root

if TYPE_CHECKING:  # networkx is imported where it is used, because it takes a fifth of a second
    import networkx

# Covalent radii in angstrom, of hydrogen to curium (Cordero et al. 2008).
_RADII = np.array([
    0.00, 0.31, 0.28, 1.28, 0.96, 0.84, 0.76, 0.71, 0.66, 0.57, 0.58, 1.66, 1.41, 1.21, 1.11, 1.07, 1.05, 1.02, 1.06,
    2.03, 1.76, 1.70, 1.60, 1.53, 1.39, 1.39, 1.32, 1.26, 1.24, 1.32, 1.22, 1.22, 1.20, 1.19, 1.20, 1.20, 1.16, 2.20,
    1.95, 1.90, 1.75, 1.64, 1.54, 1.47, 1.46, 1.42, 1.39, 1.45, 1.44, 1.42, 1.39, 1.39, 1.38, 1.39, 1.40, 2.44, 2.15,
    2.07, 2.04, 2.03, 2.01, 1.99, 1.98, 1.98, 1.96, 1.94, 1.92, 1.92, 1.89, 1.90, 1.87, 1.87, 1.75, 1.70, 1.62, 1.51,
    1.44, 1.41, 1.36, 1.36, 1.32, 1.45, 1.46, 1.48, 1.40, 1.50, 1.50, 2.60, 2.21, 2.15, 2.06, 2.00, 1.96, 1.90, 1.87,
    1.80, 1.69,
])  # fmt: skip
# Atoms are bonded up to the first multiple of the sum of their radii; bonds of a molecule last up to the second one.
_BONDED, _BROKEN = 1.25, 1.5
# Permutations that are averaged over at most, and pairs of frames whose median distance is taken.
_MOST, _PAIRS = 48, 500


@dataclass(frozen=True)
class BondedMolecule:
    """The atoms of one molecule, their bonds, and the permutations that keep both.

    Attributes
    ----------
    charges : int array, shape (atoms,)
    graph : graph of the bonds, with charges as ``z``
    permutations : int array, shape (p, atoms)
    """

    charges: np.ndarray
    graph: networkx.Graph
    permutations: np.ndarray

    @classmethod
    def of(cls, charges: np.ndarray, positions: np.ndarray) -> BondedMolecule | None:
        """That of all frames, of charges (n, atoms) and positions (n, atoms, 3); None if it is not one in one order.

        There may be places without an atom at the end, with charges of 0. None also where more than 48 permutations
        keep it, it has elements beyond curium, or it is a crystal.
        """
        z = np.trim_zeros(charges[0], "b")
        same = (charges[:, : len(z)] == z).all() and not charges[:, len(z) :].any()
        if not same or len(z) < 2 or not (z > 0).all() or z.max() >= len(_RADII):
            return None
        graph = _graph(z, np.median(_distances(positions[:, : len(z)]), axis=0))
        found = [*islice(_matches(graph, graph), _MOST + 1)]
        if len(found) > _MOST:
            return None
        molecule = cls(z, graph, np.array(found))
        return molecule if (molecule.orders(charges, positions) == np.arange(len(z))).all() else None

    def orders(self, charges: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """For each frame the place of each atom of the molecule, shape (n, atoms); -1 where it is another molecule."""
        size = len(self.charges)
        found = np.full((len(charges), size), -1)
        r = _distances(positions)
        if charges.shape[1] >= size:
            i, j = np.array([*self.graph.edges]).reshape(-1, 2).T
            whole = (r[:, i, j] < _BROKEN * (_RADII[self.charges[i]] + _RADII[self.charges[j]])).all(1)
            same = (charges[:, :size] == self.charges).all(1) & ~charges[:, size:].any(1)
            found[whole & same] = np.arange(size)
        for row in np.flatnonzero(found[:, 0] < 0):
            atoms = np.flatnonzero(charges[row])
            if np.array_equal(np.sort(charges[row, atoms]), np.sort(self.charges)):
                graph = _graph(charges[row, atoms], r[row][np.ix_(atoms, atoms)])
                for match in islice(_matches(self.graph, graph), 1):
                    found[row] = atoms[match]
        return found


@dataclass
class Distances:
    """Energies of one molecule in the span of derivatives of a kernel of its inverse distances.

    The kernel of two frames is the sum over the permutations g of the molecule of exp(-|x - g x'|^2 / (2 l^2)), for
    the vector x of all 1 / |R_i - R_j|; it is an average over an orbit up to a factor. As in sGDML, functions are
    derivatives of it by the positions of training frames, here in random directions, and orthonormal.

    References
    ----------
    Chmiela et al., "Machine learning of accurate energy-conserving molecular force fields", 2017, and "Towards exact
    molecular dynamics simulations with machine-learned force fields", 2018, for the permutations.
    """

    molecule: BondedMolecule
    lengthscale: float

    def fit(self, positions: np.ndarray, n_components: int, rng: np.random.Generator) -> Distances:
        """Draw directions, about ``n_components`` in all, for frames of shape (n, atoms, 3)."""
        n, size = positions.shape[:2]
        self._i, self._j = np.triu_indices(size, 1)
        place = np.zeros((size, size), int)
        place[self._i, self._j] = place[self._j, self._i] = np.arange(len(self._i))
        self._orders = [place[g[self._i], g[self._j]] for g in self.molecule.permutations]
        frames = rng.permutation(n)[:n_components]
        x, J = self._inverse(positions[frames])
        pairs = rng.integers(0, n, (2, _PAIRS))
        apart = np.linalg.norm(np.subtract(*(self._inverse(positions[rows])[0] for rows in pairs)), axis=1)
        self.lengthscale_ = self.lengthscale * (float(np.median(apart[apart > 0])) if apart.any() else 1.0)
        each = min(max(1, n_components // len(frames)), 3 * size - 6 if size > 2 else 1)
        drawn = [np.linalg.qr(rng.standard_normal((3 * size, each)))[0] for _ in frames]
        self._x, self._frame = x, np.repeat(np.arange(len(frames)), each)
        self._directions = np.concatenate([(by_position @ U).T for by_position, U in zip(J, drawn, strict=True)])
        K = self._second_derivatives()
        chosen, self._root = pivoted_root((K + K.T) / 2)
        self._frame, self._directions = self._frame[chosen], self._directions[chosen]
        return self

    def __len__(self) -> int:
        return len(self._root)

    def rows(self, positions: np.ndarray, with_slopes: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The functions at frames, shape (n, columns), and their derivatives, shape (n, 3 atoms, columns)."""
        x, J = self._inverse(positions)
        values, slopes = 0.0, 0.0
        for order in self._orders:
            K, along = self._kernel(x[:, order])
            values = values + K * along
            if with_slopes:
                by_position = J[:, order].transpose(0, 2, 1)
                apart = (by_position @ x[:, order, None]) - by_position @ self._x.T
                part = by_position @ self._directions.T
                part -= apart[:, :, self._frame] * (along / self.lengthscale_**2)[:, None]
                slopes = slopes + part * K[:, None]
        scale = self._root.T / self.lengthscale_**2
        return values @ scale, slopes @ scale if with_slopes else np.zeros((len(x), 0, len(self)))

    def predict(self, positions: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Energies, shape (n,), and their derivatives, shape (n, atoms, 3), of coefficients ``w``."""
        x, J = self._inverse(positions)
        weights = self._root.T @ w / self.lengthscale_**2
        of_frames = np.zeros_like(self._x)
        np.add.at(of_frames, self._frame, weights[:, None] * self._directions)
        starts = (of_frames * self._x).sum(1)
        energies, slopes = np.zeros(len(x)), np.zeros((len(x), 3 * positions.shape[1]))
        for order in self._orders:
            moved = x[:, order]
            K, along = self._of_squares(moved), moved @ of_frames.T - starts
            energies += (K * along).sum(1)
            pull = K * along / self.lengthscale_**2
            by_x = K @ of_frames - pull.sum(1, keepdims=True) * moved + pull @ self._x
            slopes += (J[:, order].transpose(0, 2, 1) @ by_x[:, :, None])[:, :, 0]
        return energies, slopes.reshape(positions.shape)

    def _of_squares(self, x: np.ndarray) -> np.ndarray:
        """Kernel values of vectors with those of the frames."""
        squares = np.square(x).sum(1)[:, None] + np.square(self._x).sum(1) - 2 * x @ self._x.T
        return np.exp(-0.5 * squares.clip(0) / self.lengthscale_**2)

    def _kernel(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Kernel values with the frame of each column, and how far its direction goes towards x, without 1 / l^2."""
        starts = (self._directions * self._x[self._frame]).sum(1)
        return self._of_squares(x)[:, self._frame], x @ self._directions.T - starts

    def _second_derivatives(self) -> np.ndarray:
        """The inner products of the functions before they are orthonormal, times l^4."""
        K = np.zeros((len(self._frame), len(self._frame)))
        for order in self._orders:
            value, along = self._kernel(self._x[:, order])
            directions = self._directions[:, order]
            back = (directions * self._x[self._frame][:, order]).sum(1)[:, None] - directions @ self._x.T
            part = directions @ self._directions.T * self.lengthscale_**2 - back[:, self._frame] * along[self._frame]
            K += value[self._frame] * part
        return K / self.lengthscale_**4

    def _inverse(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inverse distances, shape (n, pairs), and their derivatives, shape (n, pairs, 3 atoms)."""
        vectors = positions[:, self._i] - positions[:, self._j]
        x = 1 / np.linalg.norm(vectors, axis=2)
        J, pairs = np.zeros((*x.shape, *positions.shape[1:])), np.arange(x.shape[1])
        J[:, pairs, self._i] = -vectors * x[:, :, None] ** 3
        J[:, pairs, self._j] = -J[:, pairs, self._i]
        return x, J.reshape(*x.shape, -1)


def _distances(positions: np.ndarray) -> np.ndarray:
    return np.linalg.norm(positions[:, :, None] - positions[:, None], axis=3)


def bonds(charges: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Bonded pairs of atoms, shape (m, 2), of charges, shape (atoms,), and distances in angstrom, (atoms, atoms).

    >>> bonds(np.array([8, 1, 1]), np.array([[0, 0.96, 0.96], [0.96, 0, 1.52], [0.96, 1.52, 0]]))
    array([[0, 1],
           [0, 2]])
    """
    radii = _RADII[np.minimum(charges, len(_RADII) - 1)]
    return np.argwhere(np.triu(r < _BONDED * (radii[:, None] + radii), 1))


def _graph(charges: np.ndarray, r: np.ndarray) -> networkx.Graph:
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from((i, {"z": int(z)}) for i, z in enumerate(charges))
    graph.add_edges_from(bonds(charges, r).tolist())
    return graph


def _matches(one: networkx.Graph, two: networkx.Graph) -> Iterator[list[int]]:
    """For each isomorphism the atoms of ``two``, in the order of those of ``one``."""
    from networkx.algorithms.isomorphism import GraphMatcher, categorical_node_match

    for match in GraphMatcher(one, two, categorical_node_match("z", 0)).isomorphisms_iter():
        yield [match[i] for i in range(len(one))]

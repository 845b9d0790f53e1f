"""Random features of a skeleton, drawn level by level, with equal features merged.

See Daniely et al. 2017, Algorithm 1 and section 6.

A feature is a row of a sparse matrix of exponents. Each step processes the factors of all draws at once, from the
output down: a recursion per feature would take minutes for a million features.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from orbit.kernels.skeletons.graph import Skeleton
from orbit.kernels.skeletons.spaces import Factors, Space

# Draws made at once: a few arrays of this many factors.
BATCH = 1_000_000


@dataclass(frozen=True)
class Features:
    """Random features of a skeleton.

    Attributes
    ----------
    exponents : CSR matrix, shape (n, columns): integers, or reals for Gaussian frequencies
    radii : CSR matrix of integers, the exponents of the radii; None if all radii are one
    quarters : int64 array, shape (n,): 1 for features of phase pi/2, else 0; None if both phases are used
    counts : int64 array, shape (n,): the number of draws of each feature
    total : the number of draws
    mean_factors : base factors of a draw, on average; C(S) in expectation
    """

    exponents: sparse.csr_matrix
    radii: sparse.csr_matrix | None
    quarters: np.ndarray | None
    counts: np.ndarray
    total: int
    mean_factors: float

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def weights(self) -> np.ndarray:
        """sqrt(count / total): the factor of each feature, with which inner products estimate the kernel."""
        return np.sqrt(self.counts / self.total)


class Sampler:
    """Draws of Algorithm 1.

    Parameters
    ----------
    skeleton : Skeleton
    space : Space
        The base space, where the recursion ends.
    bottom : int
        Levels that the recursion skips: 0, or 1 if whole patches are drawn at once.
    with_phase : bool
        Draw one phase, 0 or pi/2, for each feature (Daniely et al. 2017, comment 1).
    """

    def __init__(self, skeleton: Skeleton, space: Space, bottom: int = 0, with_phase: bool = False) -> None:
        self.skeleton, self.space, self.bottom, self.with_phase = skeleton, space, bottom, with_phase

    def paths(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The base factors of ``size`` draws: the draw and the input of each factor, in any order."""
        draws, nodes = np.arange(size), np.full(size, self.skeleton.output)
        done: list[tuple[np.ndarray, np.ndarray]] = []
        for level in reversed(self.skeleton.levels[self.bottom :]):
            here = nodes >= level.start
            if not here.all():  # edges that skip levels
                done.append((draws[~here], nodes[~here]))
                draws, nodes = draws[here], nodes[here]
            degrees = level.activation.sample(len(nodes), rng)
            draws, own = np.repeat(draws, degrees), np.repeat(nodes - level.start, degrees)
            first, last = level.indptr[own], level.indptr[own + 1]
            nodes = level.parents[first + (rng.random(len(own)) * (last - first)).astype(np.int64)]
            if done:
                draws = np.concatenate([draws, *(d for d, _ in done)])
                nodes = np.concatenate([nodes, *(n for _, n in done)])
                done = []
        return draws, nodes

    def draw(self, size: int, rng: np.random.Generator) -> Features:
        """``size`` independent features; equal features are not merged."""
        draws, inputs = self.paths(size, rng)
        factors = self.space.draw(inputs, rng)
        rows = draws[factors.draws]
        exponents = self._matrix(rows, factors, factors.exponents, size)
        radii = None
        if self.space.has_radius:
            radii = self._matrix(rows, factors, np.ones(len(rows), dtype=np.int64), size)
        if self.space.modulus is not None:
            exponents.data %= self.space.modulus
        exponents.eliminate_zeros()
        quarters = rng.integers(0, 2, size) if self.with_phase else None
        return Features(exponents, radii, quarters, np.ones(size, dtype=np.int64), size, len(inputs) / size)

    def distinct(self, n: int, rng: np.random.Generator, max_draws: int) -> Features:
        """Draw until there are ``n`` distinct features; equal features are merged.

        Counting stops before the draw that would be distinct feature n + 1. There are fewer than n features if
        ``max_draws`` do not give n: a skeleton of finite degree has finitely many.
        """
        hashes = _Hashes(self.space, rng)
        known, counts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)  # in order of appearance
        kept: list[Features] = []
        total, factors, share = 0, 0.0, 1.0
        while total < max_draws:
            size = int(min(BATCH, max_draws - total, 1.1 * (n - len(known)) / share + 1000))
            batch = self.draw(size, rng)
            drawn = hashes.of(batch)
            first = np.sort(np.unique(np.concatenate([known, drawn]), return_index=True)[1])
            used = int(first[n]) - len(known) if len(first) > n else size
            appeared = first[len(known) : n] - len(known)
            known = np.concatenate([known, drawn[appeared]])
            order = np.argsort(known)
            numbers = order[np.searchsorted(known, drawn[:used], sorter=order)]
            counts = np.append(counts, np.zeros_like(appeared)) + np.bincount(numbers, minlength=len(known))
            total += used
            factors += batch.mean_factors * used
            kept.append(_rows(batch, appeared))
            if used < size:
                break
            share = max(1e-3, len(appeared) / size)
        return _merged(kept, counts, total, factors / total)

    def _matrix(self, rows: np.ndarray, factors: Factors, values: np.ndarray, size: int) -> sparse.csr_matrix:
        matrix = sparse.coo_matrix((values, (rows, factors.columns)), shape=(size, self.space.n_columns)).tocsr()
        matrix.sum_duplicates()
        return matrix


class _Hashes:
    """A 64-bit number for each feature, equal for features with the same real and imaginary parts up to sign.

    The number is ``<e, r> mod 2^64`` with random odd numbers r, or that of the conjugate if smaller. Two different
    features have equal numbers with a probability near 2^-64: ten million draws have such a pair once in 400,000 runs.
    """

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self.modulus = space.modulus or 0
        self.exponents, self.radii = rng.integers(0, 2**64, (2, space.n_columns), dtype=np.uint64) | np.uint64(1)
        self.quarter = rng.integers(0, 2**64, dtype=np.uint64)

    def of(self, features: Features) -> np.ndarray:
        exponents = features.exponents
        conjugate = exponents.copy()
        conjugate.data = self.modulus - exponents.data
        keys = np.minimum(_product(exponents, self.exponents), _product(conjugate, self.exponents))
        if features.radii is not None:
            keys = keys + _product(features.radii, self.radii)
        if features.quarters is not None:
            keys = keys + features.quarters.astype(np.uint64) * self.quarter
        return keys


def _product(matrix: sparse.csr_matrix, vector: np.ndarray) -> np.ndarray:
    """The product modulo 2^64; real entries are taken as their bit patterns."""
    data = matrix.data.view(np.uint64) if matrix.dtype.kind == "f" else matrix.data.astype(np.int64).view(np.uint64)
    return sparse.csr_matrix((data, matrix.indices, matrix.indptr), shape=matrix.shape) @ vector


def _rows(features: Features, chosen: np.ndarray) -> Features:
    radii, quarters = features.radii, features.quarters
    return Features(
        features.exponents[chosen],
        None if radii is None else radii[chosen],
        None if quarters is None else quarters[chosen],
        features.counts[chosen],
        len(chosen),
        features.mean_factors,
    )


def _merged(parts: list[Features], counts: np.ndarray, total: int, mean_factors: float) -> Features:
    exponents = sparse.vstack([part.exponents for part in parts], format="csr")
    radii = [part.radii for part in parts if part.radii is not None]
    quarters = [part.quarters for part in parts if part.quarters is not None]
    return Features(
        narrow(exponents),
        narrow(sparse.vstack(radii, format="csr")) if radii else None,
        np.concatenate(quarters) if quarters else None,
        counts,
        total,
        mean_factors,
    )


def narrow(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """The matrix in the smallest integer type that holds its entries."""
    if matrix.dtype.kind == "f" or not matrix.nnz:
        return matrix
    low, high = int(matrix.data.min()), int(matrix.data.max())
    dtype = np.result_type(np.min_scalar_type(low), np.min_scalar_type(high))
    return matrix.astype(dtype)

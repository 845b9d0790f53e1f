"""Inner products of rows, shared by fits that have many rows in common: the parts of a cross-validation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

import numpy as np

from orbit.core.distinct import row_digests
from orbit.core.linalg import add_second_moments, mirror_upper
from orbit.core.lru import Lru
from orbit.solvers.moments import CentredRows

# Products of fewer rows take about as long as looking for the rows.
_FEWEST_ROWS = 500
# The share of the rows that must be known for the others to be added to them.
_KNOWN_SHARE = 0.5


class SharedProducts:
    """Inner products of the rows of one matrix after another, each pair of rows computed once.

    Products are those of rows less a shift, the mean of the first rows: invariant features vary little about their
    mean, and products about the origin would lose the digits that it takes. Rows of other features, such as those of
    another lengthscale, are kept apart. Those not used for longest go when the memory is used up.

    Parameters
    ----------
    limit_bytes : float
        For all rows and their products.

    Attributes
    ----------
    computed : int
        Pairs of rows whose products were computed so far.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((1000, 2000))
    >>> shared = SharedProducts(limit_bytes=1e9)
    >>> for rows in (slice(0, 800), slice(200, 1000)):
    ...     products = shared.of(X[rows], np.dtype(np.float64), shifted=False)
    ...     print(bool(np.allclose(products, X[rows] @ X[rows].T)), shared.computed)
    True 320400
    True 500500
    """

    def __init__(self, limit_bytes: float) -> None:
        self.limit_bytes, self.computed = limit_bytes, 0
        self._groups = Lru[int, _Group](limit_bytes)

    def of(self, X: np.ndarray, dtype: np.dtype, shifted: bool) -> np.ndarray | None:
        """The products (x_i - c)^T (x_j - c) of all rows.

        Parameters
        ----------
        X : array, shape (n, d)
        dtype : in which products are taken
        shifted : bool
            Whether c is near the mean of the rows; else it is zero.

        Returns
        -------
        float64 array, shape (n, n), or None
            None for few rows, and for more than the memory holds.
        """
        if len(X) < _FEWEST_ROWS or _nbytes(len(X), X) > self.limit_bytes:
            return None
        digests = row_digests(X)
        places = {digest: i for i, digest in enumerate(digests)}
        group = self._taken(X, places, dtype, shifted)
        new = [digest for digest in places if digest not in group.places]
        self.computed += group.add(X if len(new) == len(X) else X[[places[digest] for digest in new]], new)
        self._groups.put(id(group), group, group.nbytes)
        inside = [group.places[digest] for digest in digests]
        return group.products[np.ix_(inside, inside)]

    def _taken(self, X: np.ndarray, digests: dict[bytes, int], dtype: np.dtype, shifted: bool) -> _Group:
        """The group that knows most of these rows and has room for the others, or a new one."""
        kind = (X.shape[1], X.dtype, dtype, shifted)
        for group in self._groups.values():
            known = len(digests.keys() & group.places.keys())
            size = len(group.places) + len(digests) - known
            if group.kind == kind and known >= _KNOWN_SHARE * len(digests) and _nbytes(size, X) <= self.limit_bytes:
                return group
        return _Group(kind, X)


class _Group:
    """CentredRows of the same features with the products of all pairs.

    Attributes
    ----------
    places : dict of bytes to int
        Digest of a row -> its index.
    """

    def __init__(self, kind: tuple[int, np.dtype, np.dtype, bool], X: np.ndarray) -> None:
        d, stored, self._dtype, shifted = self.kind = kind
        # rounded to the precision of the rows, in which it is subtracted
        self.shift = (X.mean(0, dtype=np.float64).astype(stored) if shifted else np.zeros(d)).astype(np.float64)
        self.places: dict[bytes, int] = {}
        self._X, self.products = np.empty((0, d), stored), np.empty((0, 0))

    @property
    def nbytes(self) -> int:
        return self._X.nbytes + self.products.nbytes

    def add(self, X: np.ndarray, digests: list[bytes]) -> int:
        """Add rows; returns the number of pairs whose products were computed."""
        old, new = len(self._X), len(X)
        if not new:
            return 0
        self._X = np.concatenate([self._X, X]) if old else X.copy()
        rows = CentredRows(self._X, np.empty((old + new, 0)), None, "none", precise=self._dtype == np.float64)
        rows.x_offset = self.shift
        among, across = np.zeros((new, new)), np.zeros((new, old))
        for _, part in rows.tiles():
            add_second_moments(among, part[old:].T)
            across += part[old:] @ part[:old].T
        mirror_upper(among)
        self.products = np.block([[self.products, across.T], [across, among]]) if old else among
        self.places.update(zip(digests, range(old, old + new), strict=True))
        return new * (new + 1) // 2 + new * old


def _nbytes(n: int, X: np.ndarray) -> int:
    """Bytes of ``n`` rows like those of ``X``, with their products."""
    return n * X.shape[1] * X.itemsize + 8 * n**2


_shared: ContextVar[SharedProducts | None] = ContextVar("shared_products", default=None)


@contextlib.contextmanager
def sharing_products(limit_bytes: float) -> Iterator[None]:
    """Context manager in which least-squares fits in the dual form share inner products, also those of enclosing ones.

    Parameters
    ----------
    limit_bytes : float
        See :class:`SharedProducts`.
    """
    before = _shared.get()
    token = _shared.set(before or SharedProducts(limit_bytes))
    try:
        yield
    finally:
        _shared.reset(token)


def in_use() -> SharedProducts | None:
    """The products that fits share at present; None if they share none."""
    return _shared.get()

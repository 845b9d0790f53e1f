"""The reduction of a symmetric matrix to block-tridiagonal form."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from orbit.core.device_matrix import as_tensor, contiguous, like
from orbit.core.threads import in_threads, threads_for
from orbit.solvers.base import PANEL, Factorisation, indefinite, is_large
from orbit.solvers.reflections import reduce_by_blocks

# Panels that a reduction in float32 updates at once: it reads fewer bytes for each operation.
_PANELS_FLOAT32 = 4
# Rows of the blocks of a block-tridiagonal matrix, up to LARGE and above, divisors of PANEL: wider ones take less time
# to reduce to, and more for each lambda and each leverage.
BLOCK, WIDE_BLOCK = 32, 64
# Values of lambda whose block-tridiagonal systems a thread solves at once, times the rows of a block.
_TOGETHER = 320


class Band(Factorisation):
    """A reduction to a block-tridiagonal matrix, A = Q B Q^T, in place if it is in float64.

    It is the first of the two stages of Bischof, Lang and Sun, "A framework for symmetric
    band reduction", 2000: 4/3 m^3 additions and multiplications in matrix products. A
    reduction to tridiagonal form needs as many, half of them in products with vectors, an
    eigendecomposition 9 m^3. Each lambda then costs some 12 m b^2 for blocks of b rows: a
    Cholesky factorisation of B + lambda I by blocks, and the diagonal of its inverse.

    In float32 the reduction takes half to two thirds of the time. It is that of a matrix
    near A: on digits of MNIST, solutions for lambda from 1e-8 of the trace on have relative
    residuals of at most 2.5e-6. All that follows the reduction is in float64.

    Parameters
    ----------
    path : array of lambda that are solved together, or None; others are solved when asked for
    float32 : whether to reduce in float32
    """

    def __init__(
        self,
        A: Any,
        right: np.ndarray,
        scales: np.ndarray,
        path: np.ndarray | None = None,
        float32: bool = False,
    ) -> None:
        self.scales = scales
        self._A = as_tensor(contiguous(A.astype(np.float32 if float32 else np.float64, copy=False)))
        self._size = b = WIDE_BLOCK if is_large(len(A)) else BLOCK
        self._blocks = [slice(start, min(start + b, len(A))) for start in range(0, len(A), b)]
        self._identity = torch.eye(b, dtype=torch.float64, device=self._A.device)
        panel = PANEL * _PANELS_FLOAT32 if float32 else PANEL
        with threads_for(len(A) ** 3):
            self._diagonal, self._beside, self._triangles = reduce_by_blocks(self._A, self._blocks, b, panel)
            self.right = self.to_basis(right)
        self._solved: dict[float, tuple[np.ndarray, np.ndarray]] = {}
        if path is not None:
            together = max(1, _TOGETHER // b)
            in_threads(self._solve, np.split(path, range(together, len(path), together)))

    def solve(self, regularization: float) -> tuple[np.ndarray, np.ndarray]:
        if regularization not in self._solved:
            self._solve(np.array([regularization]))
        z, freedom = self._solved[regularization]
        if np.isnan(freedom).any():
            raise indefinite(regularization)
        return z, freedom

    def expand(self, z: np.ndarray) -> np.ndarray:
        return self._turn(z, transposed=False)

    def to_basis(self, columns: Any) -> Any:
        return self._turn(columns, transposed=True)

    def inverse_form(self, in_basis: Any, regularization: float) -> np.ndarray:
        form = self._zeros(in_basis.shape[1])
        for _, y in self._eliminated(in_basis, regularization):
            form += y.square().sum(0)
        return form.cpu().numpy()

    def log_determinant(self, regularization: float) -> float:
        nothing, padding = np.empty((len(self.right), 0)), len(self._blocks) * self._size - len(self.right)
        factors = (C.diagonal().log().sum() for C, _ in self._eliminated(nothing, regularization))
        return 2 * float(sum(factors)) - padding * np.log(regularization)

    def half_form(self, in_basis: Any, regularization: float) -> Any:
        return like(torch.cat([y for _, y in self._eliminated(in_basis, regularization)]), in_basis)

    def _eliminated(self, in_basis: Any, regularization: float) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """The blocks C_i of the diagonal of the factor of B + lambda I, and those of its solution y with columns."""
        b, k = self._size, in_basis.shape[1]
        rows, shift = self._by_block(in_basis), regularization * self._identity
        matrix, y = self._diagonal[0] + shift, rows[0]
        for i, beside in enumerate(self._beside, start=1):
            C, info = torch.linalg.cholesky_ex(matrix)
            if info:
                raise indefinite(regularization)
            E, y = torch.linalg.solve_triangular(C, torch.cat([beside, y], dim=1), upper=False).split([b, k], dim=1)
            yield C, y
            if i < len(rows):
                matrix, y = self._diagonal[i] + shift - E.T @ E, rows[i] - E.T @ y

    def _zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self._A.device)

    def _by_block(self, in_basis: Any) -> torch.Tensor:
        """Columns (m, k) as blocks of b rows (blocks, b, k), with zeros behind the last."""
        rows = as_tensor(contiguous(in_basis)).to(self._A.device)
        if padding := len(self._blocks) * self._size - len(rows):
            rows = torch.cat([rows, self._zeros(padding, rows.shape[1])])
        return rows.view(len(self._blocks), self._size, rows.shape[1])

    def _turn(self, columns: Any, transposed: bool) -> Any:
        """Q^T or Q times columns; Q does not change the first block of coordinates."""
        turned = as_tensor(columns.copy(order="K")).to(self._A.device)
        steps = list(zip(self._blocks, self._triangles, strict=False))
        for block, T in steps if transposed else reversed(steps):
            V, part = self._A[block, block.stop :].double(), turned[block.stop :]
            part.addmm_(V.T, (T.T if transposed else T).double() @ (V @ part), alpha=-1)
        return like(turned, columns)

    def _solve(self, values: np.ndarray) -> None:
        z = np.repeat(self.right[None], len(values), axis=0) / values[:, None, None]
        freedom = np.zeros((len(values), len(self.scales)))
        for scale, same_scale in self._by_scale():
            if scale > 0:
                solved, inverse_trace = self._solve_shifted(values / scale, self.right[:, same_scale])
                z[:, :, same_scale] = solved / scale
                freedom[:, same_scale] = (len(self.right) - values / scale * inverse_trace)[:, None]
        self._solved.update((float(value), (z[i], freedom[i])) for i, value in enumerate(values))

    def _solve_shifted(self, shifts: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(B + shift I)^-1 right, shape (l, m, k), and its trace, shape (l,), NaN where B + shift I is indefinite.

        With B + shift I = C C^T, whose blocks are C_i and, below them, E_i^T: z_i = C_i^-T (y_i - E_i z_i+1), and the
        blocks of the inverse are S_i = C_i^-T (I + E_i S_i+1 E_i^T) C_i^-1.
        """
        n, b, k = len(shifts), self._size, right.shape[1]
        padding = len(self._blocks) * b - len(right)  # zeros of B, whose inverse is 1 / shift
        rows = self._by_block(right)
        identity, shift = self._identity, as_tensor(shifts).to(self._A.device)[:, None, None]
        factors, definite = [], shift[:, 0, 0] > 0
        matrix, y = self._diagonal[0] + shift * identity, rows[0].expand(n, b, k)
        for i, beside in enumerate(self._beside):
            C, info = torch.linalg.cholesky_ex(matrix)
            definite &= info == 0
            joined = torch.cat([beside.expand(n, b, b), identity.expand(n, b, b), y], dim=2)
            E, inverse, y = torch.linalg.solve_triangular(C, joined, upper=False).split([b, b, k], dim=2)
            factors.append((E, inverse, y))
            if i + 1 < len(rows):
                matrix = torch.baddbmm(self._diagonal[i + 1] + shift * identity, E.mT, E, alpha=-1)
                y = torch.baddbmm(rows[i + 1].expand(n, b, k), E.mT, y, alpha=-1)
        z, trace = self._zeros(n, len(rows), b, k), self._zeros(n)
        S, z_below = torch.zeros_like(matrix), self._zeros(n, b, k)
        while factors:
            E, inverse, y = factors.pop()
            G = inverse.mT @ E
            S = torch.baddbmm(inverse.mT @ inverse, G @ S, G.mT)
            z_below = torch.baddbmm(inverse.mT @ y, G, z_below, alpha=-1)
            z[:, len(factors)] = z_below
            trace += S.diagonal(dim1=1, dim2=2).sum(1)
        trace = torch.where(definite, trace, torch.nan) - padding / shift[:, 0, 0]
        return z.reshape(n, -1, k)[:, : len(right)].cpu().numpy(), trace.cpu().numpy()

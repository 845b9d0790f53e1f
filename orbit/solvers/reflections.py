"""Householder reflections that reduce a symmetric matrix, given in its upper triangle, to block-tridiagonal form."""

import torch

from orbit.core.threads import single_threaded


def reduce_by_blocks(
    A: torch.Tensor, blocks: list[slice], size: int, panel: int
) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
    """Reduce a symmetric matrix A = Q B Q^T to block-tridiagonal form.

    A block of columns below the diagonal is made triangular by a product of reflections
    H = I - V T V^T, and the rest of A, in its upper triangle, becomes H^T A H = A - V W^T - W V^T.

    Parameters
    ----------
    A : tensor, shape (m, m)
        Rows of its upper triangle right of B then hold the reflections V^T.
    blocks : rows of each block of B, of ``size`` rows but the last
    size : b
    panel : rows that are updated at once

    Returns
    -------
    The blocks of B on the diagonal and right of it, float64, shape (blocks, b, b), and the T of the reflections.
    """
    diagonal = torch.zeros(len(blocks), size, size, dtype=torch.float64, device=A.device)
    all_beside, triangles, update = torch.zeros_like(diagonal), list[torch.Tensor](), None
    for i, block in enumerate(blocks):
        _apply_update(update, A, block)
        diagonal[i, : block.stop - block.start, : block.stop - block.start] = A[block, block]
        beside, rest = A[block, block.stop :], len(A) - block.stop
        if rest <= size:
            all_beside[i, : len(beside), :rest] = beside
            continue
        V, T, all_beside[i] = _reflections(beside)
        product = torch.zeros_like(V)
        for rows in _panels(block.stop, len(A), panel):
            _apply_update(update, A, rows)  # here and not at once, so that they are read once
            _add_product(V, A, rows, product)
        S = T.T @ product
        W = torch.addmm(S, S @ V.T @ T, V, alpha=-0.5)
        update = torch.cat([V, W]), torch.cat([W, V])
        beside.copy_(V)
        triangles.append(T)
    return diagonal, all_beside, triangles


def _reflections(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """V^T and T of reflections I - V T V^T that make the transpose of ``rows`` upper triangular, and rows after them.

    Parameters
    ----------
    rows : tensor, shape (b, m), with b < m; the first b columns of the result are returned, the others are zero
    """
    with single_threaded():
        reflected, tau = torch.geqrf(rows.T)
        triangle = reflected[: len(rows)].triu().T
        V = reflected.T.contiguous()
        V[:, : len(rows)].triu_(1).diagonal().fill_(1.0)
        # T^-1 is the upper triangle of V^T V with 1 / tau on the diagonal; written for tau = 0 too
        identity = torch.eye(len(rows), dtype=rows.dtype, device=rows.device)
        inverse = torch.linalg.solve_triangular((V @ V.T).triu(1) * tau + identity, identity, upper=True)
        return V, tau[:, None] * inverse, triangle


def _panels(start: int, size: int, panel: int) -> list[slice]:
    """Rows from ``start``, in panels that end at multiples of ``panel``."""
    return [slice(max(start, first), min(first + panel, size)) for first in range(start - start % panel, size, panel)]


def _apply_update(update: tuple[torch.Tensor, torch.Tensor] | None, A: torch.Tensor, rows: slice) -> None:
    """Subtract left^T right, of the last rows and columns of A, from the part of ``rows`` right of their start."""
    if update is None:
        return
    left, right = update
    first = len(A) - left.shape[1]
    inside = slice(rows.start - first, rows.stop - first)
    A[rows, rows.start :].addmm_(left[:, inside].T, right[:, inside.start :], alpha=-1)


def _add_product(V: torch.Tensor, A: torch.Tensor, rows: slice, product: torch.Tensor) -> None:
    """Add what ``rows`` contribute to V times the last rows and columns of A, of which it reads the upper triangle."""
    first = len(A) - V.shape[1]
    inside = slice(rows.start - first, rows.stop - first)
    product[:, inside.start :].addmm_(V[:, inside], A[rows, rows.start :])
    product[:, inside].addmm_(V[:, inside.stop :], A[rows, rows.stop :].T)

"""Householder reflections, and updates of a symmetric matrix by them, of which only the upper triangle is kept."""

import torch

from orbit.core.threads import single_threaded


def reflections(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
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


def panels(start: int, size: int, panel: int) -> list[slice]:
    """Rows from ``start``, in panels that end at multiples of ``panel``."""
    return [slice(max(start, first), min(first + panel, size)) for first in range(start - start % panel, size, panel)]


def apply_update(update: tuple[torch.Tensor, torch.Tensor] | None, A: torch.Tensor, rows: slice) -> None:
    """Subtract left^T right, of the last rows and columns of A, from the part of ``rows`` right of their start."""
    if update is None:
        return
    left, right = update
    first = len(A) - left.shape[1]
    inside = slice(rows.start - first, rows.stop - first)
    A[rows, rows.start :].addmm_(left[:, inside].T, right[:, inside.start :], alpha=-1)


def add_product(V: torch.Tensor, A: torch.Tensor, rows: slice, product: torch.Tensor) -> None:
    """Add what ``rows`` contribute to V times the last rows and columns of A, of which it reads the upper triangle."""
    first = len(A) - V.shape[1]
    inside = slice(rows.start - first, rows.stop - first)
    product[:, inside.start :].addmm_(V[:, inside], A[rows, rows.start :])
    product[:, inside].addmm_(V[:, inside.stop :], A[rows, rows.stop :].T)

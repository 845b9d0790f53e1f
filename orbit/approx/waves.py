"""Weighted sums of cosines and sines of many angles: in one pass by a compiled loop, or by torch.

If products are cheap, trigonometry is most of the cost of a projection. torch
takes three passes over a tile for the cosines and three for the sines, and writes both
to memory. In float32 on a CPU one loop of :mod:`orbit.approx.loops` reads the angles,
evaluates two polynomials and adds to the sums. Its error is up to 5e-7 for angles of a
few turns, which is that of the rounded angles. float64 and GPUs use torch.
"""

import torch
from torch import Tensor

from orbit.core.compiled import loops
from orbit.engine.embedding import add_weighted


def add_waves(angles: Tensor, weights: Tensor, cosines: Tensor, sines: Tensor, spare: Tensor) -> None:
    """``cosines += sum_i weights[i] cos(angles[i])``, and ``sines`` likewise.

    Parameters
    ----------
    angles : tensor, shape (r, n, u), contiguous; may be overwritten
    weights : tensor, shape (r,)
    cosines, sines : tensors, shape (n, u)
    spare : tensor of the shape of ``angles``, overwritten
    """
    # of one element torch's sums take a few percent more of a transform than the loop, whose import takes a second
    if len(angles) > 1 and (compiled := loops("orbit.approx.loops", angles)):
        compiled.add_waves(*(array.numpy() for array in (angles, angles[:0], weights, cosines, sines)))
        return
    torch.cos(angles, out=spare)
    add_weighted(cosines, spare, weights)
    add_weighted(sines, angles.sin_(), weights)


def add_damped_waves(
    angles: Tensor, others: Tensor, weights: Tensor, cosines: Tensor, sines: Tensor, spare: Tensor
) -> None:
    """:func:`add_waves` with weights multiplied by ``cos(others[i])``; ``others`` may be overwritten too."""
    if compiled := loops("orbit.approx.loops", angles):
        compiled.add_waves(*(array.numpy() for array in (angles, others, weights, cosines, sines)))
        return
    torch.cos(angles, out=spare)
    common = others.cos_()
    add_weighted(cosines, spare.mul_(common), weights)
    add_weighted(sines, angles.sin_().mul_(common), weights)

"""What is done to patches before they are divided by their norm."""

from collections.abc import Callable
from typing import Self

import numpy as np
import torch
from torch import Tensor

from orbit.core.component import Component
from orbit.core.linalg import eigh, is_constant
from orbit.core.params import NonNegativeFloat, PositiveFloat


class MeanRemoval(Component):
    """The mean of each channel of the patch is subtracted; one that is constant but for rounding becomes zero.

    Parameters
    ----------
    per_channel : bool
        Whether each channel has its own mean, which a white balance or an offset of one sensor does not change, or all
        have one.
    """

    def __init__(self, per_channel: bool = True) -> None:
        self.per_channel = per_channel

    def fit(self, patches: Tensor, moved: Callable[[np.ndarray], np.ndarray], channels: int) -> Self:
        """Fit to patches, shape (d, count), of a number of channels, the first axis of a patch.

        ``moved`` gives the images (order, count, d) of patches under the group.
        """
        self.means_ = channels if self.per_channel else 1
        return self

    def apply(self, patches: Tensor) -> Tensor:
        """Normalise patches (d, count) in place; returns their norms, shape (count,)."""
        return self._centre(patches)[0]

    def _centre(self, patches: Tensor) -> tuple[Tensor, Tensor]:
        """Norms of the patches that remain and of the means, shape (count,), in the unit of the former."""
        channels = patches.view(self.means_, -1, patches.shape[1])
        means = channels.mean(1)
        channels.sub_(means[:, None])
        variances = channels.square().mean(1)
        constant = is_constant(variances.sqrt(), means, means.dtype)
        if self.means_ > 1:
            channels.mul_(~constant[:, None])
            variances.masked_fill_(constant, 0.0)
        # squares of all entries are not summed again: their sums are those of the variances
        norms, scale = self._of_moments(variances.mean(0), constant.all(0), len(patches))
        patches.mul_(scale)
        return norms, means.square().mean(0).sqrt_().mul_(scale)

    @property
    def needs_sums_only(self) -> bool:
        """Whether norms and factors of centred patches follow from the sums of their entries and of the squares."""
        return self.means_ == 1

    def of_sums(self, sums: Tensor, squares: Tensor, d: int, offset: Tensor) -> tuple[Tensor, Tensor]:
        """Norms of normalised patches, and the factors of their centred entries, of the shape of ``sums``.

        Parameters
        ----------
        sums, squares : float64 tensors
            Of the d entries of each patch, less ``offset``.
        d : int
        offset : tensor of the precision of the entries
        """
        means = sums / d
        variances = (squares / d).sub_(means.square()).clamp_(min=0).to(offset)
        means = means.to(offset).add_(offset)
        return self._of_moments(variances, is_constant(variances.sqrt(), means, means.dtype), d)

    def _of_moments(self, variances: Tensor, constant: Tensor, d: int) -> tuple[Tensor, Tensor]:
        """Norms and factors of centred patches of d entries; those of constant patches are zero."""
        deviations = variances.sqrt_()
        scale = self._scale(deviations).masked_fill_(constant, 0.0)
        return deviations.mul_(d**0.5).mul_(scale), scale

    def _scale(self, deviations: Tensor) -> Tensor:
        """Factors of centred patches of these standard deviations."""
        return torch.ones_like(deviations)


class ContrastNormalization(MeanRemoval):
    """The mean is subtracted, and the patch divided by sqrt(var + c^2), var the variance about that mean.

    Parameters
    ----------
    contrast : float >= 0
        c, as a share of the root mean variance of the patches.
    per_channel : bool
        As for :class:`MeanRemoval`.
    """

    def __init__(self, contrast: NonNegativeFloat = 0.1, per_channel: bool = True) -> None:
        super().__init__(per_channel)
        self.contrast = contrast

    def fit(self, patches: Tensor, moved: Callable[[np.ndarray], np.ndarray], channels: int) -> Self:
        super().fit(patches, moved, channels)
        variances = patches.double().view(self.means_, -1, patches.shape[1]).var(1, unbiased=False)
        self.contrast_ = self.contrast * float(variances.mean()) ** 0.5
        return self

    def _scale(self, deviations: Tensor) -> Tensor:
        return reciprocal(torch.hypot(deviations, deviations.new_tensor(self.contrast_)))


class Whitening(ContrastNormalization):
    """After contrast normalisation, patches are multiplied by (C + epsilon I)^(-1/2); C is their covariance.

    C is that of all entries, over positions and channels.

    Parameters
    ----------
    epsilon : float > 0
    contrast, per_channel
        As for :class:`ContrastNormalization`.
    """

    def __init__(
        self, epsilon: PositiveFloat = 0.1, contrast: NonNegativeFloat = 0.1, per_channel: bool = True
    ) -> None:
        super().__init__(contrast, per_channel)
        self.epsilon = epsilon

    def fit(self, patches: Tensor, moved: Callable[[np.ndarray], np.ndarray], channels: int) -> Self:
        super().fit(patches, moved, channels)
        centred = patches.clone()
        self._centre(centred)
        # of all images under the group, so that the matrix is the same for each of them
        vectors = moved(centred.double().numpy().T).reshape(-1, len(patches))
        self.mean_ = vectors.mean(0)
        values, basis = eigh((vectors - self.mean_).T @ (vectors - self.mean_) / len(vectors))
        self.matrix_ = (basis / np.sqrt(np.maximum(values, 0) + self.epsilon)) @ basis.T
        return self

    @property
    def needs_sums_only(self) -> bool:
        return False

    def apply(self, patches: Tensor) -> Tensor:
        """As of :class:`MeanRemoval`; patches that are the mean but for rounding become zero."""
        _, means = self._centre(patches)
        matrix, mean = (torch.as_tensor(part).to(patches) for part in (self.matrix_, self.mean_))
        patches.sub_(mean[:, None])
        sizes = mean.norm() + len(patches) ** 0.5 * means.abs_()
        patches.mul_(~is_constant(patches.square().sum(0).sqrt_(), sizes, mean.dtype))
        patches.copy_(matrix @ patches)
        return patches.square().sum(0).sqrt_()


def reciprocal(norms: Tensor, floor: float = 0.0) -> Tensor:
    """1 / norm, and 1 / floor for norms below it: what is multiplied with it is zero where the norm is."""
    return norms.clamp(min=max(floor, torch.finfo(norms.dtype).tiny)).reciprocal_()

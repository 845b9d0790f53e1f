"""Base spaces of the inputs of a skeleton, with their kernels and random features (Daniely et al. 2017, section 4).

Every base feature is ``exp(i t)`` or ``r exp(i t)`` with ``t`` a multiple of a number that depends on the point only.
A product of base features has the phase ``<e, angles(x)>`` with a sparse vector ``e`` of exponents, so the phases of
many products are one sparse matrix times the angles.
"""

import math
from abc import abstractmethod
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from orbit.core.errors import InputError
from orbit.core.linalg import polar
from orbit.kernels.skeletons.graph import Level

SpaceName = Literal["binary", "circle", "gaussian", "categorical", "sphere"]

# The logarithm used for a radius of zero, finite to avoid products of zero and infinity.
_LOG_ZERO = -80.0


class Factors(NamedTuple):
    """Base features of many draws: factor ``draws[i]`` (an index into the given nodes) multiplies the angle in
    ``columns[i]`` by ``exponents[i]``."""

    draws: np.ndarray
    columns: np.ndarray
    exponents: np.ndarray


class Space:
    """A base space, its normalised kernel and its random feature.

    Parameters
    ----------
    n_inputs : int
        Number of inputs of the skeleton.
    block : int
        Numbers in one input; input i is ``x[i * block : (i + 1) * block]``.
    scale : float
        A factor of the point, in spaces that have one.

    Attributes
    ----------
    is_real : bool
        Whether every feature is real: all phases are multiples of pi.
    modulus : int or None
        Exponents are equal modulo this number.
    has_radius : bool
        Whether the modulus of features differs from one.
    """

    is_real: ClassVar[bool] = False
    has_radius: ClassVar[bool] = False
    modulus: int | None = None

    def __init__(self, n_inputs: int, block: int, scale: float = 1.0) -> None:
        self.n_inputs, self.block, self.scale = n_inputs, block, scale

    @property
    def n_columns(self) -> int:
        return self.n_inputs * self.block

    @abstractmethod
    def angles(self, X: Tensor) -> Tensor:
        """The angles that exponents multiply: ``(n, d)`` to ``(n, n_columns)``, in radians."""

    def log_radii(self, X: Tensor) -> Tensor:
        """Logarithms of the radii, ``(n, n_columns)``; zero unless ``has_radius``."""
        return torch.zeros_like(self.angles(X))

    @abstractmethod
    def coordinates(self, X: Tensor) -> Tensor:
        """The coordinates from which the kernel is computed: ``(n, d)`` to ``(n, n_inputs, c)``."""

    def mean_kernel(self, A: Tensor, B: Tensor, inputs: Tensor) -> Tensor:
        """The mean of the base kernels of some inputs, ``(n, m)``, from coordinates of both sides."""
        return torch.mm(A[:, inputs].flatten(1), B[:, inputs].flatten(1).T).div_(len(inputs))

    @abstractmethod
    def draw(self, inputs: np.ndarray, rng: np.random.Generator) -> Factors:
        """An independent base feature for every entry of ``inputs``."""


class CircleSpace(Space):
    """z = exp(i scale x), k = cos(scale (x - x')), features z and its conjugate (Daniely et al. 2017, example 2)."""

    def angles(self, X: Tensor) -> Tensor:
        return X * self.scale

    def coordinates(self, X: Tensor) -> Tensor:
        angles = self.angles(X)
        return torch.stack([angles.cos(), angles.sin()], dim=2)

    def draw(self, inputs: np.ndarray, rng: np.random.Generator) -> Factors:
        return Factors(np.arange(len(inputs)), inputs, random_signs(len(inputs), rng))


class BinarySpace(Space):
    """The sign of x, -1 below zero and +1 from zero on; k = x x', the feature is x (Daniely et al. 2017, example 1)."""

    is_real = True
    modulus = 2

    def angles(self, X: Tensor) -> Tensor:
        return (X < 0).to(X.dtype) * math.pi

    def coordinates(self, X: Tensor) -> Tensor:
        return (1 - 2 * (X < 0).to(X.dtype)).unsqueeze(2)

    def draw(self, inputs: np.ndarray, rng: np.random.Generator) -> Factors:
        return Factors(np.arange(len(inputs)), inputs, np.ones(len(inputs), dtype=np.int64))


class CategoricalSpace(Space):
    """x rounded to an integer modulo n, one of n classes; k = 1 for equal classes, else 0.

    Features exp(2 pi i w x / n), w uniform on 0 .. n - 1: Daniely et al. 2017, example 4, which misprints 2 pi n below.
    """

    modulus: int

    def __init__(self, n_inputs: int, block: int, categories: int) -> None:
        super().__init__(n_inputs, block)
        self.modulus = categories

    def angles(self, X: Tensor) -> Tensor:
        return X.round() * (2 * math.pi / self.modulus)

    def coordinates(self, X: Tensor) -> Tensor:
        classes = X.round().long().remainder(self.modulus)
        return torch.nn.functional.one_hot(classes, self.modulus).to(X.dtype)

    def draw(self, inputs: np.ndarray, rng: np.random.Generator) -> Factors:
        return Factors(np.arange(len(inputs)), inputs, rng.integers(0, self.modulus, len(inputs)))


class GaussianSpace(Space):
    """Blocks of reals, k = exp(-scale^2 |x - x'|^2 / 2), features exp(i scale <w, x>), w normal.

    Example 3 of Daniely et al. 2017.
    """

    def angles(self, X: Tensor) -> Tensor:
        return X

    def coordinates(self, X: Tensor) -> Tensor:
        return X.reshape(len(X), self.n_inputs, self.block) * self.scale

    def mean_kernel(self, A: Tensor, B: Tensor, inputs: Tensor) -> Tensor:
        total = A.new_zeros(len(A), len(B))
        for i in inputs:
            # differences, not |a|^2 + |b|^2 - 2 a b: far from the origin that would lose all digits in float32
            distances = torch.cdist(A[:, i], B[:, i], compute_mode="donot_use_mm_for_euclid_dist")
            total.add_(distances.square_().mul_(-0.5).exp_())
        return total.div_(len(inputs))

    def draw(self, inputs: np.ndarray, rng: np.random.Generator) -> Factors:
        draws = np.repeat(np.arange(len(inputs)), self.block)
        columns = (inputs[:, None] * self.block + np.arange(self.block)).ravel()
        return Factors(draws, columns, self.scale * rng.standard_normal(len(columns)))


class SphereSpace(Space):
    """Blocks scaled to the unit sphere of R^d, k = <x, x'>, features sqrt(d/2) (x_j +- i x_(j+1)).

    Example 5 of Daniely et al. 2017.

    The largest size of a feature is sqrt(d/2), the least possible for d >= 3 (theorem 6). A block of zeros has
    kernel values and features zero.
    """

    has_radius = True

    def coordinates(self, X: Tensor) -> Tensor:
        return polar(X.reshape(len(X), self.n_inputs, self.block))[1]

    def angles(self, X: Tensor) -> Tensor:
        x = self.coordinates(X)
        return torch.atan2(x.roll(-1, 2), x).flatten(1)

    def log_radii(self, X: Tensor) -> Tensor:
        x = self.coordinates(X)
        squared = (x.square() + x.roll(-1, 2).square()) * (self.block / 2)
        return (squared.log() / 2).clamp_(min=_LOG_ZERO).flatten(1)

    def draw(self, inputs: np.ndarray, rng: np.random.Generator) -> Factors:
        columns = inputs * self.block + rng.integers(0, self.block, len(inputs))
        return Factors(np.arange(len(inputs)), columns, random_signs(len(inputs), rng))


class PatchFourier(Space):
    """Random Fourier features of whole patches, for nodes exp(c (rho - 1)) on circles.

    The baseline of Daniely et al. 2017, section 6.

    On the circle ``rho = 1 - |z - z'|^2 / (2 k)`` for a patch of k inputs, z their points in the plane, so such a
    node is a Gaussian kernel of z, and exp(i <w, z>) with w ~ N(0, c / k) is the feature of Rahimi and Recht.

    Parameters
    ----------
    circle : CircleSpace
    level : the nodes, with a member ``parents_of``
    c : float > 0
    """

    def __init__(self, circle: CircleSpace, level: Level, c: float) -> None:
        super().__init__(circle.n_inputs, 1)
        self.circle, self.level, self.c = circle, level, c

    @property
    def n_columns(self) -> int:
        return 2 * self.n_inputs

    def angles(self, X: Tensor) -> Tensor:
        angles = self.circle.angles(X)
        return torch.cat([angles.cos(), angles.sin()], dim=1)

    def coordinates(self, X: Tensor) -> Tensor:
        return self.circle.coordinates(X)

    def draw(self, inputs: np.ndarray, rng: np.random.Generator) -> Factors:
        """An independent feature for every entry of ``inputs``, which are indices of the nodes."""
        own = inputs - self.level.start
        first, sizes = self.level.indptr[own], np.diff(self.level.indptr)[own]
        draws = np.repeat(np.arange(len(own)), sizes)
        within = np.arange(len(draws)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        patch = self.level.parents[np.repeat(first, sizes) + within]
        draws, columns = np.concatenate([draws, draws]), np.concatenate([patch, patch + self.n_inputs])
        return Factors(draws, columns, rng.standard_normal(len(draws)) * np.sqrt(self.c / sizes[draws]))


def random_signs(size: int, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2, size) * 2 - 1


def make_space(
    name: SpaceName, shape: tuple[int, ...], block: int | None, scale: float, categories: int | None, X: np.ndarray
) -> Space:
    """The base space of points of a shape.

    Parameters
    ----------
    shape : of a point
    block : numbers in one input, or None: the default of the space (see the kernel)
    categories : or None: the largest of ``X``, rounded, and one

    Raises
    ------
    InputError
        If blocks do not divide the point.
    """
    size = math.prod(shape)
    vector_valued = name in ("gaussian", "sphere")
    if block is None:
        block = 1 if not vector_valued else shape[-1] if len(shape) == 3 else size
    if not vector_valued and block != 1:
        raise InputError(f"block: one number is an input of kernel.base={name}, found blocks of {block}")
    if size % block or (len(shape) == 3 and block > 1 and shape[-1] % block):
        raise InputError(f"block: blocks of {block} do not divide points of shape {shape}")
    if name == "circle":
        return CircleSpace(size, 1, scale)
    if name == "binary":
        return BinarySpace(size, 1)
    if name == "gaussian":
        return GaussianSpace(size // block, block, scale)
    if name == "sphere":
        return SphereSpace(size // block, block)
    return CategoricalSpace(size, 1, categories or max(1, round(float(X.max())) + 1))

"""Generated solids at random turns, as clouds of points or as volumes."""

import functools
import itertools
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from orbit.core.memory import check_fits
from orbit.core.params import NonNegativeFloat, PositiveInt, Range
from orbit.core.random import RandomState, generator
from orbit.data.base import Dataset, Loader, ShownAs
from orbit.registry import register

_KINDS = ("ellipsoid", "box", "cylinder", "cone", "torus", "tetrahedron")

# Corners of the circles, and of the sphere, that a solid is made of.
_CIRCLE, _SPHERE = 64, 400

# Range of the factors by which a solid is stretched along its axes, and of the inner radius of a torus.
_STRETCH, _TUBE = (0.7, 1.4), (0.25, 0.5)

# Half the side of a volume, for surfaces of root mean square radius one.
_HALF_SIDE = 2.5

# Points of the surface of a volume, for each cell of one of its faces.
_POINTS_PER_CELL = 16


@register("dataset", "shapes")
@dataclass(eq=False, repr=False)
class Shapes(Loader):
    """Surfaces of six solids of random proportions at random turns; the same number of each.

    Ellipsoids, boxes, cylinders, cones and tetrahedra are stretched by independent factors from 0.7 to 1.4 along their
    axes; tubes of tori have radii of 0.25 to 0.5 of that of the ring. Surfaces are centred and have a root mean square
    radius of one. Turns are uniform on SO(3).

    Parameters
    ----------
    form : {"cloud", "volume"}
        ``cloud``: points spread evenly over the surface in random order, shape (n_points, 3). ``volume``: a cube of
        cells, shape (side, side, side), 1 where the surface passes and 0 elsewhere.
    n_points : int >= 4
        Points of a cloud.
    side : int >= 2
        Cells along a side of a volume, which is 5 units long.
    noise : float >= 0
        Standard deviation of Gaussian noise on the coordinates of points.
    per_class, test_per_class : int >= 1
        Training and test shapes of each solid.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> from orbit.data import Shapes
    >>> Shapes(per_class=2, n_points=50).load(0).X_train.shape
    (12, 50, 3)
    >>> Shapes(form="volume", per_class=2, side=16, test_per_class=1).load(0).X_test.shape
    (6, 16, 16, 16)
    """

    default_representation = {"name": "raw"}
    default_group = {"name": "identity"}

    form: Literal["cloud", "volume"] = "cloud"
    n_points: Annotated[int, Range(low=4)] = 256
    side: Annotated[int, Range(low=2)] = 32
    noise: NonNegativeFloat = 0.03
    per_class: PositiveInt = 100
    test_per_class: PositiveInt = 100

    @property
    def shown_as(self) -> ShownAs:  # type: ignore[override]
        return "cloud" if self.form == "cloud" else "image"

    def check_memory(self) -> None:
        numbers = 3 * self.n_points if self.form == "cloud" else self.side**3
        count = len(_KINDS) * (self.per_class + self.test_per_class)
        check_fits("per_class", f"{count:,} shapes", 4 * numbers * count)

    def _load(self, random_state: RandomState) -> Dataset:
        train, test = generator(random_state).spawn(2)
        parts = *self._made(self.per_class, train), *self._made(self.test_per_class, test)
        return Dataset(self.name, "classification", *parts, f"generated: six solids as {self.form}s")

    def _made(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """``count`` shapes of each solid, and their names."""
        y = np.tile(_KINDS, count)
        make = self._cloud if self.form == "cloud" else self._volume
        return np.stack([make(kind, rng) for kind in y]), y

    def _cloud(self, kind: str, rng: np.random.Generator) -> np.ndarray:
        return self._surface(kind, self.n_points, rng).astype(np.float32)

    def _volume(self, kind: str, rng: np.random.Generator) -> np.ndarray:
        points = self._surface(kind, _POINTS_PER_CELL * self.side**2, rng)
        cells = np.floor((points / _HALF_SIDE + 1) * self.side / 2).astype(int).clip(0, self.side - 1)
        volume = np.zeros((self.side,) * 3, dtype=np.float32)
        volume[tuple(cells.T)] = 1
        return volume

    def _surface(self, kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
        """Random points of the surface of a solid, shape (size, 3)."""
        is_torus = kind == "torus"
        triangles = _torus(rng.uniform(*_TUBE)) if is_torus else _convex(kind) * rng.uniform(*_STRETCH, 3)
        points = _random_points(triangles, size, rng)
        points -= points.mean(0)
        points /= np.sqrt(np.square(points).sum(1).mean())
        points += self.noise * rng.standard_normal(points.shape)
        return points @ Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()


def _random_points(triangles: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Points uniform on a surface of triangles (m, 3, 3), shape (size, 3)."""
    sides = triangles[:, 1:] - triangles[:, :1]
    areas = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    chosen = rng.choice(len(triangles), size, p=areas / areas.sum())
    u, v = np.sqrt(rng.random(size)), rng.random(size)
    weights = np.column_stack([1 - u, u * (1 - v), u * v])
    return np.einsum("nc,ncd->nd", weights, triangles[chosen])


@functools.cache
def _convex(kind: str) -> np.ndarray:
    """Triangles of a convex solid with the origin inside, shape (m, 3, 3)."""
    corners = _corners(kind)
    return corners[ConvexHull(corners).simplices]


def _corners(kind: str) -> np.ndarray:
    angles = 2 * np.pi * np.arange(_CIRCLE) / _CIRCLE
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    if kind == "ellipsoid":  # a Fibonacci lattice on the sphere
        z = 1 - (2 * np.arange(_SPHERE) + 1) / _SPHERE
        turns, radii = np.pi * (3 - np.sqrt(5)) * np.arange(_SPHERE), np.sqrt(1 - z**2)
        return np.column_stack([radii * np.cos(turns), radii * np.sin(turns), z])
    if kind == "box":
        return np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    if kind == "cylinder":
        return np.concatenate([np.insert(circle, 2, height, axis=1) for height in (-1.0, 1.0)])
    if kind == "cone":
        return np.concatenate([np.insert(circle, 2, -1.0, axis=1), [[0.0, 0.0, 1.0]]])
    return np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])


def _torus(tube: float) -> np.ndarray:
    """Triangles of a torus with a ring of radius one, shape (m, 3, 3)."""
    ring, around = np.meshgrid(*(2 * np.pi * np.arange(_CIRCLE + 1) / _CIRCLE,) * 2, indexing="ij")
    radii = 1 + tube * np.cos(around)
    grid = np.stack([radii * np.cos(ring), radii * np.sin(ring), tube * np.sin(around)], axis=-1)
    a, b, c, d = (grid[i : _CIRCLE + i, j : _CIRCLE + j].reshape(-1, 3) for i, j in itertools.product((0, 1), repeat=2))
    return np.concatenate([np.stack(corners, axis=1) for corners in ((a, b, c), (b, c, d))])

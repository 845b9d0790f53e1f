"""A user's own clouds of points and meshes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from orbit.core.errors import DataFileError
from orbit.core.grid import PLACE
from orbit.core.memory import check_fits
from orbit.core.params import Range
from orbit.data.files import readable
from orbit.data.labelled_files import LabelledFiles
from orbit.registry import register

_TEXT = (".xyz", ".csv", ".txt", ".asc")
_MESHES = (".ply", ".obj", ".stl", ".off", ".glb")
_FIRST = [0, 1, 2]


@register("dataset", "clouds")
@dataclass(eq=False, repr=False)
class Clouds(LabelledFiles):
    """Clouds of points, and surfaces of meshes, in class folders, ``FOLDER/bolt/1.ply``, or listed in a table.

    PLY, OBJ, STL, OFF and GLB files are read by trimesh, PCD files by pypcd4 (``pip install 'orbit-kernels[clouds]'``);
    XYZ, CSV and text files have a line for each point, with blanks, commas or semicolons between its numbers and maybe
    a line of names, and .npy files a row. As many points are drawn of each cloud at random, the same whenever it is
    read, some of them twice where it has fewer; and of a mesh evenly over its surface. Points have shape (n_points,
    columns), and the mean of their coordinates is 0. Points with NaN or infinite values are left out.

    Parameters
    ----------
    path, manifest, file_column, target, split_column, group_column, task, recursive, on_error, test_fraction :
        See :class:`~orbit.data.labelled_files.LabelledFiles`.
    n_points : int >= 4
        Points that are drawn of each cloud.
    columns : list of int >= 0
        Columns of text, .npy and PCD files that are read, counted from 0: three coordinates, then features of points,
        such as an intensity. None is the first three.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> from orbit.data import Clouds
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for i, name in enumerate(("bolt/1", "bolt/2", "gear/1", "gear/2")):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     np.savetxt(folder / f"{name}.xyz", np.random.default_rng(i).standard_normal((300 + i, 3)))
    >>> Clouds(str(folder)).load(0).X_train.shape
    (3, 256, 3)
    """

    default_representation = {"name": "raw"}
    shown_as = "cloud"
    thing, suffixes, shown = "cloud", (*_TEXT, *_MESHES, ".pcd", ".npy"), "cloud (.ply, .xyz, .pcd ...)"

    n_points: Annotated[int, Range(low=4)] = 256
    _: KW_ONLY
    columns: list[Annotated[int, Range(low=0)]] | None = None

    @classmethod
    def default_encoder(cls, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": "point_pairs"}

    def check(self) -> None:
        super().check()
        if self.columns is not None and len(self.columns) < 2:
            raise self.wrong("columns", "two or more, of which the first three are coordinates")

    def _how(self, reading: Mapping[str, Any]) -> str:
        return f"{self.n_points} points of each"

    def _read(self, files: list[Path], form: Mapping[str, Any] | None) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        shape = (self.n_points, len(self.columns or _FIRST))
        check_fits(
            "dataset.n_points", f"{len(files):,} clouds of {shape[0]:,} points", 4 * len(files) * math.prod(shape)
        )
        X = np.empty((len(files), *shape), np.float32)

        def read(i: int) -> None:
            X[i] = self._cloud(files[i])

        kept = self._each(files, read)
        return X[kept], kept, {}

    def _cloud(self, file: Path) -> np.ndarray:
        """Points drawn of a file, float64, shape (n_points, columns)."""
        suffix, rng = file.suffix.lower(), np.random.default_rng(0)
        with readable(file.absolute(), "is not a readable cloud"):
            points = _READERS[suffix](file, self.n_points) if suffix in _READERS else _rows(file)
        columns = self.columns or _FIRST
        if points.ndim != 2 or points.shape[1] <= max(columns):
            found = f"an array of shape {points.shape}" if points.ndim != 2 else f"{points.shape[1]} columns"
            raise DataFileError(f"{file.absolute()} has {found}, expected at least {max(columns) + 1} columns")
        points = points[:, columns].astype(float)
        points = points[np.isfinite(points).all(1)]
        if not len(points):
            raise DataFileError(f"{file.absolute()} has no points")
        drawn = points[rng.choice(len(points), self.n_points, replace=len(points) < self.n_points)]
        drawn[:, :PLACE] -= drawn[:, :PLACE].mean(0)  # coordinates of a map have more digits than float32
        return drawn


def _rows(file: Path) -> np.ndarray:
    """The numbers of a text file, shape (n, columns), after a line of names if there is one."""
    with file.open() as lines:
        first = lines.readline()
    separator = next((each for each in ",;" if each in first), None)
    try:
        [float(word) for word in first.split(separator)]
    except ValueError:
        return np.loadtxt(file, delimiter=separator, skiprows=1, ndmin=2)
    return np.loadtxt(file, delimiter=separator, ndmin=2)


def _by_trimesh(file: Path, n_points: int) -> np.ndarray:
    """Points of a surface, or those of a file without faces."""
    import trimesh

    found: Any = trimesh.load(file, process=False)
    found = found.to_geometry() if isinstance(found, trimesh.Scene) else found
    if getattr(found, "faces", None) is None:
        return np.asarray(found.vertices)
    return trimesh.sample.sample_surface(found, n_points, seed=0)[0]


def _by_pypcd4(file: Path, n_points: int) -> np.ndarray:
    from pypcd4 import PointCloud

    return PointCloud.from_path(file).numpy()


def _by_numpy(file: Path, n_points: int) -> np.ndarray:
    return np.load(file, allow_pickle=False)


_READERS: dict[str, Callable[[Path, int], np.ndarray]] = {
    **dict.fromkeys(_MESHES, _by_trimesh),
    ".pcd": _by_pypcd4,
    ".npy": _by_numpy,
}

"""A user's own fields: variables and coordinates by name, in NetCDF, HDF5 and Zarr."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from orbit.core.errors import DataFileError, InputError, suggestion
from orbit.core.memory import check_fits
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.data.base import Dataset, OwnData, Points, names_of
from orbit.data.checks import real_numbers
from orbit.data.files import existing, readable
from orbit.data.splits import given_parts
from orbit.registry import register

if TYPE_CHECKING:  # xarray is imported when a file is read
    import xarray

_FILE = "a NetCDF, HDF5 or Zarr file"
_NETCDF3 = b"CDF"
_DAY = np.timedelta64(1, "D") / np.timedelta64(1, "ns")


@register("dataset", "fields")
@dataclass(eq=False, repr=False)
class Fields(OwnData):
    """Variables of a NetCDF, HDF5 or Zarr file, by name (``pip install 'orbit-kernels[fields]'``, read by xarray).

    There is a point for each entry of the targets. Features may have further dimensions, which are then the shape of
    points: a target over ``time`` and a feature over ``time``, ``lat`` and ``lon`` give points of shape (lat, lon). A
    target over ``lat`` and ``lon``, and the features ``lat`` and ``lon``, give a point (2,) for each cell of the grid.
    Several features are the last axis. Times are days since 1970.

    Parameters
    ----------
    path : str or None
        A NetCDF (.nc), HDF5 (.h5 ...) or Zarr (a folder) file. Required.
    target : str, list of str, or None
        Variables to predict, all over the same dimensions; several make a multi-output regression. Required.
    features : list of str or None
        Variables and coordinates to learn from; None: all variables that have the dimensions of the targets and others,
        in alphabetical order, or if there are none, the coordinates of the targets.
    subgroup : str or None
        Group of an HDF5, NetCDF 4 or Zarr file that has the variables, such as ``/run1``; None is the outermost.
    scale : {"feature", "none"}
        ``feature`` shifts and scales each feature to mean 0 and standard deviation 1 over all its values in the
        training points; ``none`` keeps values as they are stored.
    missing : {"refuse", "skip"}
        ``skip`` leaves out points with missing (NaN) features or targets, such as cells of land, and counts them in a
        warning.
    group_variable : str or None
        Variable or coordinate that says which points belong together, such as a station or a time: they are in one
        part, training or test, and in one fold of ``selection=k_fold``.
    split_variable : str or None
        Variable with the part of each point: train, test or val (validation points are training points too, and the
        validation part of ``selection=given``).
    task : {"auto", "classification", "regression"}
        ``auto``: classification for strings, booleans and at most 100 distinct integers, else regression.
    test_fraction : float in (0, 1)
        Share of the points in the random test part. Neighbours in time and space resemble each other, so that errors
        on a random part are lower than those elsewhere; ``group_variable`` avoids that.
    n_train, n_test : int >= 1 or None
        Random subsets; None is all.

    Examples
    --------
    >>> import numpy as np, tempfile, xarray
    >>> from orbit.data import Fields
    >>> path = tempfile.mkdtemp() + "/mine.nc"
    >>> grid = {"lat": np.arange(6.0), "lon": np.arange(8.0)}
    >>> u = np.random.default_rng(0).random((6, 8))
    >>> xarray.Dataset({"u": (("lat", "lon"), u)}, grid).to_netcdf(path, engine="h5netcdf")
    >>> data = Fields(path, "u").load(0)
    >>> data.X_train.shape, data.reading["features"]
    ((36, 2), ['lat', 'lon'])
    """

    default_representation = {"name": "raw"}
    reading = "features", "targets", "dims", "scales"

    path: str | None = None
    target: str | list[str] | None = None
    features: list[str] | None = None
    _: KW_ONLY
    subgroup: str | None = None
    scale: Literal["feature", "none"] = "feature"
    missing: Literal["refuse", "skip"] = "refuse"
    group_variable: str | None = None
    split_variable: str | None = None

    def input_files(self) -> list[Path]:
        return existing([self.path])

    def check_files(self) -> None:
        self._file()

    def _file(self) -> Path:
        path = user_path(self._required("path", _FILE), "dataset.path")
        self._required("target", "the name of the variable to predict")
        if not path.exists():
            raise DataFileError(f"dataset.path: expected {_FILE} at {path.absolute()}, found none")
        return path

    def _load(self, random_state: RandomState) -> Dataset:
        path, targets = self._file(), names_of(self.target)
        with self._opened(path) as content:
            dims = self._dims(content, targets)
            features = self.features or _default_features(content, targets, dims)
            X, axes = self._points(content, features, dims, path), _axes(content, features, dims)
            y = np.stack([_labels_or_numbers(_over(content, name, dims).to_numpy()) for name in targets], axis=-1)
            y = y.reshape(len(X), -1) if len(targets) > 1 else y.reshape(len(X))
            clusters, names = (self._texts(content, key, dims) for key in ("group_variable", "split_variable"))
        kept = self._kept([X, y], path)
        X, y, clusters = X[kept], y[kept], None if clusters is None else clusters[kept]
        parts, task = None if names is None else given_parts(names[kept], "split_variable"), self._task(y)
        about = clusters, parts, "group_variable"
        train, test, folds = self._divide(y, task, random_state, path.name, *about)
        scales = self._scales(X[train], features)
        reading = {"features": features, "targets": targets, "dims": dims, "scales": scales, "axes": axes}
        source = f"{', '.join(targets)} over {' x '.join(dims)} in {path.name}"
        more = {"clusters": clusters, "folds": folds, "reading": reading}
        return Dataset.of_parts(self.name, task, _scaled(X, scales), y, train, test, source, **more)

    def in_units_of_files(self, X: np.ndarray, reading: Mapping[str, Any]) -> np.ndarray:
        scales = reading["scales"]
        return X if scales is None else X * scales["std"] + scales["mean"]

    def _read_points(self, path: str, form: Mapping[str, Any]) -> Points:
        place = user_path(path, self.label())
        with self._opened(place) as opened:
            content = _aligned(opened, form.get("axes", {}))  # a model of an earlier version has none
            X = self._points(content, form["features"], form["dims"], place)
            at = [content[dim].to_numpy() for dim in form["dims"]]
        kept = self._kept([X], place)
        places = np.stack(np.unravel_index(kept, [len(values) for values in at]), axis=1)
        names = [" ".join(f"{d}={v[i]}" for d, v, i in zip(form["dims"], at, each, strict=True)) for each in places]
        return Points(_scaled(X[kept], form["scales"]), names)

    def _scales(self, X: np.ndarray, features: Sequence[str]) -> dict[str, list[float]] | None:
        """Mean and standard deviation of each feature; those of a constant one leave its values finite."""
        if self.scale == "none":
            return None
        values = X.reshape(-1, len(features)).astype(np.float64)
        deviation = values.std(0)
        return {"mean": values.mean(0).tolist(), "std": np.where(deviation > 0, deviation, 1).tolist()}

    def _opened(self, path: Path) -> xarray.Dataset:
        with readable(path.absolute(), "is no NetCDF, HDF5 or Zarr file that can be read"):
            import xarray

            how: dict[str, Any] = {"engine": "h5netcdf", "phony_dims": "sort"}
            if path.is_dir():
                how = {"engine": "zarr", "consolidated": False}
            elif _begins_with(path, _NETCDF3):
                how = {"engine": "scipy"}
            return xarray.open_dataset(path, group=self.subgroup, **how)

    def _dims(self, content: xarray.Dataset, targets: Sequence[str]) -> list[str]:
        """The dimensions that points are numbered by: those of the targets."""
        _require(content, "target", targets)
        dims = {name: content[name].dims for name in targets}
        first = dims[targets[0]]
        if not first or any({*found} != {*first} for found in dims.values()):
            found = ", ".join(f"{name} over {_listed(those)}" for name, those in dims.items())
            raise InputError(f"dataset.target: expected variables over the same dimensions, one or more, found {found}")
        return [str(dim) for dim in first]

    def _points(self, content: xarray.Dataset, features: Sequence[str], dims: Sequence[str], path: Path) -> np.ndarray:
        """Points of shape (n, *further dimensions, features), without the last axis if one feature has further ones."""
        _require(content, "features", features)
        if lacking := [dim for dim in dims if dim not in content.sizes]:
            raise InputError(f"{path}: expected the dimensions {_listed(dims)}, {_listed(lacking)} is not in the file")
        arrays = {name: _over(content, name, dims) for name in features}
        first = arrays[features[0]].dims  # others may have the same in another order
        arrays = {
            name: array.transpose(*first) if {*array.dims} == {*first} else array for name, array in arrays.items()
        }
        shapes = {array.shape[len(dims) :]: name for name, array in arrays.items()}
        if len(shapes) > 1:
            found = ", ".join(f"{name} {_listed(arrays[name].dims)}" for name in shapes.values())
            raise InputError(
                f"dataset.features: expected variables with the same dimensions beside {_listed(dims)}, found {found}"
            )
        (shape,) = shapes
        n = math.prod(content.sizes[dim] for dim in dims)
        check_fits("dataset.features", f"{n:,} points of {len(features)} features", 8 * n * math.prod(shape, start=1))
        columns = [_numbers(array.to_numpy(), name).reshape(n, *shape) for name, array in arrays.items()]
        return columns[0] if len(columns) == 1 and shape else np.stack(columns, axis=-1)

    def _texts(self, content: xarray.Dataset, key: str, dims: Sequence[str]) -> np.ndarray | None:
        """The variable that a parameter names, as a string for each point; None if it names none."""
        if (name := getattr(self, key)) is None:
            return None
        _require(content, key, [name])
        return _over(content, name, dims).to_numpy().reshape(-1).astype(str)

    def _kept(self, arrays: Sequence[np.ndarray], path: Path) -> np.ndarray:
        """The indices of points without missing values."""
        numbers = [values.reshape(len(values), -1) for values in arrays if values.dtype.kind == "f"]
        lacks = np.any([np.isnan(values).any(1) for values in numbers], axis=0)
        if lacks.any() and self.missing == "refuse":
            raise InputError(
                f"{path}: {lacks.sum():,} of {len(lacks):,} points have missing values; set dataset.missing=skip to "
                "leave them out"
            )
        if lacks.any():
            warnings.warn(
                f"{path}: {lacks.sum():,} of {len(lacks):,} points are left out, which have missing values",
                stacklevel=2,
            )
        return np.flatnonzero(~lacks)


def _begins_with(path: Path, content: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(content)) == content


def _require(content: xarray.Dataset, key: str, names: Sequence[str]) -> None:
    known = [*map(str, content.variables), *(str(dim) for dim in content.sizes if dim not in content.variables)]
    for name in names:
        if name not in known:
            has = ", ".join(known) or "none; dataset.subgroup names a group of the file"
            raise InputError(f"dataset.{key}: the file has no variable {name!r}{suggestion(name, known)} It has {has}")


def _default_features(content: xarray.Dataset, targets: Sequence[str], dims: Sequence[str]) -> list[str]:
    # sorted, because the order of the variables of a Zarr folder is that of its files
    others = sorted(str(name) for name, values in content.data_vars.items() if {*dims} < {*values.dims})
    return [name for name in others if name not in targets] or list(dims)


def _over(content: xarray.Dataset, name: str, dims: Sequence[str]) -> xarray.DataArray:
    """A variable with the dimensions ``dims``, repeated along those that it has not, and then its others."""
    values = content[name]
    lacking = {dim: content.sizes[dim] for dim in dims if dim not in values.dims}
    others = [dim for dim in values.dims if dim not in dims]
    return values.reset_coords(drop=True).expand_dims(lacking).transpose(*dims, *others)


def _axes(content: xarray.Dataset, features: Sequence[str], dims: Sequence[str]) -> dict[str, bool]:
    """The axes of points that have coordinates, in their order, and whether these grow."""
    axes = [str(dim) for dim in content[features[0]].dims if dim not in dims and dim in content.coords]
    return {dim: _grows(content, dim) for dim in axes}


def _grows(content: xarray.Dataset, dim: str) -> bool:
    values = content[dim].to_numpy()
    return not len(values) or bool(values[-1] >= values[0])


def _aligned(content: xarray.Dataset, axes: Mapping[str, bool]) -> xarray.Dataset:
    """New points whose axes have the order and the directions of those of training."""
    # an axis may be lacking, or be a single place without one; such points are refused by their shape
    backwards = [dim for dim, grows in axes.items() if dim in content.indexes and _grows(content, dim) != grows]
    turned = content.isel({dim: slice(None, None, -1) for dim in backwards})
    return turned.transpose(*axes, ..., missing_dims="ignore")


def _scaled(X: np.ndarray, scales: Mapping[str, list[float]] | None) -> np.ndarray:
    if scales is None:
        return X
    mean, std = np.array(scales["mean"]), np.array(scales["std"])  # one number for all axes, or those of the last axis
    return ((X - mean) / std).astype(X.dtype)


def _labels_or_numbers(values: np.ndarray) -> np.ndarray:
    return values if values.dtype.kind in "biuf" else values.astype(str)


def _numbers(values: np.ndarray, name: str) -> np.ndarray:
    """Real numbers, of which times are days since 1970."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[ns]").astype(np.int64) / _DAY
    return real_numbers(values, f"dataset.features: variable {name!r}")


def _listed(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names)) or "none"

"""Data sets in one call: files of each kind, and the data sets of other libraries."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from orbit.core.errors import InputError, suggestion
from orbit.core.params import Fraction, check_value
from orbit.core.random import RandomState
from orbit.data.base import Dataset
from orbit.data.checks import check_arrays, real_numbers
from orbit.data.splits import guess_task, split_off_test
from orbit.registry import build

# What mappings call the points and the targets, tried in this order.
_POINTS = ("X", "x", "image", "img", "features", "inputs", "values")
_TARGETS = ("y", "label", "labels", "target", "targets")


def read_images(path: str | None = None, *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Pictures in class folders, or listed in a table (``manifest``).

    Parameters
    ----------
    path : str or None
        A folder; with a ``manifest`` the folder that its paths start from.
    random_state : int, RandomState or None
        Draws the test part, if none is given, and subsets.
    **settings
        Parameters of :class:`~orbit.data.images.Images`, such as ``resize=32``.

    Raises
    ------
    InputError
        For unknown settings, and files that cannot be read; it names the parameter as configurations do.

    Examples
    --------
    >>> import numpy as np, orbit, pathlib, tempfile
    >>> from PIL import Image
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat/1", "cat/2", "owl/1", "owl/2"):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     Image.fromarray(np.full((6, 8), 99, np.uint8)).save(folder / f"{name}.png")
    >>> orbit.read_images(folder)
    Dataset(images, classification, X_train=float32 (3, 6, 8), ..., X_test=float32 (1, 6, 8), y_test=<U3 (1,))
    """
    return _read("images", path, random_state, settings)


def read_volumes(path: str | None = None, *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Volumes of shape (depth, height, width): :func:`read_images` whose pages or slices are the depth.

    Examples
    --------
    >>> import nibabel, numpy as np, orbit, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat/1", "cat/2", "owl/1", "owl/2"):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     nibabel.save(nibabel.Nifti1Image(np.ones((6, 5, 4), np.int16), np.eye(4)), folder / f"{name}.nii.gz")
    >>> orbit.read_volumes(folder).X_train.shape
    (3, 4, 5, 6)
    """
    return _read("images", path, random_state, {"pages": "volume", **settings})


def read_clouds(path: str | None = None, *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Clouds of points and meshes in files; as :func:`read_images`, with the settings of ``Clouds``.

    Examples
    --------
    >>> import numpy as np, orbit, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for i, name in enumerate(("bolt/1", "bolt/2", "gear/1", "gear/2")):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     np.savetxt(folder / f"{name}.xyz", np.random.default_rng(i).standard_normal((300 + i, 3)))
    >>> orbit.read_clouds(folder, n_points=128).X_train.shape
    (3, 128, 3)
    """
    return _read("clouds", path, random_state, settings)


def read_sounds(path: str | None = None, *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Recordings in class folders, or listed in a table; as :func:`read_images`, with the settings of ``Sounds``.

    Examples
    --------
    >>> import numpy as np, orbit, pathlib, soundfile, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("no/1", "no/2", "yes/1", "yes/2"):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     soundfile.write(folder / f"{name}.wav", np.sin(np.arange(4000) / len(name)), 8000)
    >>> orbit.read_sounds(folder, bands=16, frames=20).X_train.shape
    (3, 16, 20)
    """
    return _read("sounds", path, random_state, settings)


def read_molecules(path: str, *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Molecules as Coulomb matrices; as :func:`read_images`, with the settings of ``Molecules``.

    Examples
    --------
    >>> import ase.io, orbit, tempfile
    >>> from ase.build import molecule
    >>> path = tempfile.mkdtemp() + "/mine.extxyz"
    >>> ase.io.write(path, [molecule(name, info={"heat": len(name) / 3}) for name in ("H2O", "CH4", "C6H6", "CO2")])
    >>> orbit.read_molecules(path, target="heat").X_train.shape
    (3, 12, 12)
    """
    return _read("molecules", path, random_state, settings)


def read_table(path: str, target: str | list[str], *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Rows of a CSV or Parquet file; as :func:`read_images`, with the settings of ``Table``.

    Examples
    --------
    >>> import orbit, pandas as pd, tempfile
    >>> path = tempfile.mkdtemp() + "/mine.csv"
    >>> pd.DataFrame({"width": [3, 1] * 10, "kind": ["cat", "owl"] * 10}).to_csv(path, index=False)
    >>> orbit.read_table(path, "kind")
    Dataset(table, classification, X_train=float64 (15, 1), ..., test_rows=int64 (5,))
    """
    return _read("table", path, random_state, {"target": target, **settings})


def read_fields(path: str, target: str | list[str], *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Variables of a NetCDF, HDF5 or Zarr file; as :func:`read_images`, with the settings of ``Fields``.

    Examples
    --------
    >>> import h5py, numpy as np, orbit, tempfile
    >>> path = tempfile.mkdtemp() + "/mine.h5"
    >>> with h5py.File(path, "w") as file:
    ...     file["X"], file["y"] = np.ones((20, 8, 8)), np.arange(20) / 3
    >>> orbit.read_fields(path, "y").X_train.shape
    (15, 8, 8)
    """
    return _read("fields", path, random_state, {"target": target, **settings})


def read_series(path: str, *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Series of the UCR and UEA archives or in tables; as :func:`read_images`, with the settings of ``Series``.

    Examples
    --------
    >>> import numpy as np, orbit, pandas as pd, tempfile
    >>> path = tempfile.mkdtemp() + "/mine.csv"
    >>> values = pd.DataFrame(np.random.default_rng(0).random((20, 30)))
    >>> values.assign(label=["cat", "owl"] * 10).to_csv(path, index=False)
    >>> orbit.read_series(path, target="label").X_train.shape
    (15, 30)
    """
    return _read("series", path, random_state, settings)


def read_arrays(path: str, *, random_state: RandomState = 0, **settings: Any) -> Dataset:
    """Arrays ``X`` and ``y`` of an .npz, or of two .npy files; as :func:`read_images`, with the settings of ``Arrays``.

    Examples
    --------
    >>> import numpy as np, orbit, tempfile
    >>> path = tempfile.mkdtemp() + "/mine.npz"
    >>> np.savez(path, X=np.ones((20, 8, 8)), y=np.arange(20) % 2)
    >>> orbit.read_arrays(path, test_fraction=0.5).X_train.shape
    (10, 8, 8)
    """
    return _read("arrays", path, random_state, settings)


def as_dataset(
    data: Any,
    test: Any = None,
    *,
    x: str | None = None,
    y: str | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    test_fraction: float = 0.25,
    random_state: RandomState = 0,
) -> Dataset:
    """A :class:`~orbit.data.base.Dataset` from what other libraries call one.

    Parameters
    ----------
    data : pair (X, y), torch or Hugging Face data set, or Dataset
        A pair of arrays; or what has a length and gives points by index, each a pair (point, target) or a mapping; a
        point may be an array, a tensor or a picture of Pillow. A ``Dataset`` is returned as it is.
    test : the same, or None
        The test part; None: a random part of ``data``.
    x, y : str or None
        Keys of the point and the target in a mapping; None: the first of the usual ones, such as ``image`` and
        ``label``.
    task : {"auto", "classification", "regression"}
        ``auto``: classification for strings, booleans and at most 100 distinct integers, else regression.
    test_fraction : float in (0, 1)
        Share of the points in the random test part.
    random_state : int, RandomState or None

    Raises
    ------
    InputError
        If points or targets are missing, are no numbers, or have several shapes.

    Examples
    --------
    >>> import numpy as np, orbit, torch
    >>> X, y = np.random.default_rng(0).random((20, 8, 8)), np.arange(20) % 2
    >>> orbit.as_dataset((X, y))
    Dataset(data, classification, X_train=float64 (15, 8, 8), y_train=int64 (15,), ...)
    >>> same = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    >>> np.array_equal(orbit.as_dataset(same).X_test, orbit.as_dataset((X, y)).X_test)
    True
    """
    if isinstance(data, Dataset):
        return data
    check_value("test_fraction", test_fraction, Fraction)
    X, targets = _pair(data, x, y)
    kind = guess_task(targets) if task == "auto" else task
    check_arrays(X, targets, kind, "data")
    source = f"{type(data).__module__.partition('.')[0]} {type(data).__name__}"
    if test is not None:
        return Dataset("data", kind, X, targets, *_pair(test, x, y), source)
    parts = split_off_test(targets, kind, test_fraction, random_state, "data")
    return Dataset.of_parts("data", kind, X, targets, *parts, source)


def _read(name: str, path: str | None, random_state: RandomState, settings: Mapping[str, Any]) -> Dataset:
    data = build("dataset", name, path=path, **settings).load(random_state)
    for note in data.notes:
        warnings.warn(f"{data.source}: {note}", stacklevel=3)
    return data


def _pair(data: Any, x: str | None, y: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Points in float32 or float64, shape (n, ...), and targets, shape (n,) or (n, k)."""
    if isinstance(data, (tuple, list)) and len(data) == 2:
        try:
            X, targets = map(np.asarray, data)
        except ValueError as error:
            raise InputError(f"data: expected arrays X and y, points of one shape ({error})") from error
    else:
        X, targets = _of_items(data, x, y)
    targets = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
    return real_numbers(X, "data: X"), targets if targets.dtype.kind in "biuf" else targets.astype(str)


def _of_items(data: Any, x: str | None, y: str | None) -> tuple[np.ndarray, np.ndarray]:
    try:
        items = [data[i] for i in range(len(data))]
    except TypeError as error:
        expected = "a pair (X, y), or a data set with a length that gives points by index"
        raise InputError(f"data: expected {expected}, found {type(data).__name__} ({error})") from error
    if not items:
        raise InputError("data: expected at least one point, found none")
    keys: list[Any] = [0, 1]
    if isinstance(items[0], Mapping):
        keys = [_key("x", x, _POINTS, items[0]), _key("y", y, _TARGETS, items[0])]
    elif not (isinstance(items[0], (tuple, list)) and len(items[0]) == 2):
        raise InputError(f"data: expected pairs (point, target) or mappings, found {type(items[0]).__name__}")
    points, targets = ([np.asarray(item[key]) for item in items] for key in keys)
    if len(shapes := {point.shape for point in points}) > 1:
        one, two = sorted(shapes)[:2]
        raise InputError(f"data: expected points of one shape, found {one} and {two}; resize or pad them")
    return np.stack(points), np.stack(targets)


def _key(name: str, given: str | None, usual: tuple[str, ...], item: Mapping[str, Any]) -> str:
    found = next((key for key in usual if key in item), None) if given is None else given
    if found is None or found not in item:
        close = suggestion(found, item) if found else ";"
        raise InputError(
            f"data: points have no {given or 'usual key'!r}{close} they have {', '.join(item)}; set {name}"
        )
    return found

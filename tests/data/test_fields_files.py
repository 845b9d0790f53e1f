"""Fields in NetCDF, HDF5 and Zarr: points by dimensions, names, parts, missing values and new files."""

import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray

from orbit import Fields, InputError
from orbit.testing import DatasetContract

RNG = np.random.default_rng(0)
DAYS, LAT, LON = 12, 5, 6


def weather() -> xarray.Dataset:
    rain, heat = RNG.random((DAYS, LAT, LON), np.float32), RNG.random((DAYS, LAT, LON))
    return xarray.Dataset(
        {
            "rain": (("time", "lat", "lon"), rain),
            "heat": (("lat", "time", "lon"), heat.transpose(1, 0, 2)),
            "storm": ("time", np.array(["no", "yes"] * 6)),
            "harvest": ("time", np.arange(DAYS) / 7),
            "height": (("lat", "lon"), RNG.random((LAT, LON))),
        },
        {
            "lat": np.linspace(40.0, 50.0, LAT),
            "lon": np.linspace(0.0, 10.0, LON),
            "time": np.datetime64("2020-01-01", "ns") + np.arange(DAYS) * np.timedelta64(1, "D"),
        },
    )


def write(content: xarray.Dataset, path: Path) -> str:
    if path.suffix == ".zarr":
        content.to_zarr(path, consolidated=False)
    else:
        content.to_netcdf(path, engine="scipy" if path.suffix == ".cdf" else "h5netcdf")
    return str(path)


class TestFields(DatasetContract):
    component, sizes = Fields, (22, 8)

    @pytest.fixture(autouse=True)
    def _file(self, tmp_path):
        self.params = {"path": write(weather(), tmp_path / "weather.nc"), "target": "height"}


@pytest.mark.parametrize("suffix", [".nc", ".cdf", ".h5", ".zarr"])
def test_points_are_what_the_target_is_numbered_by(tmp_path, suffix):
    made = weather()
    made = made.drop_vars("storm") if suffix == ".cdf" else made
    path = write(made, tmp_path / f"weather{suffix}")
    data = Fields(path, "harvest", scale="none").load(0)
    assert data.reading["features"] == ["heat", "rain"]
    expected = np.stack([made["heat"].transpose("time", "lat", "lon"), made["rain"]], axis=-1)
    order = np.rint(np.concatenate([data.y_train, data.y_test]) * 7).astype(int)
    np.testing.assert_allclose(np.concatenate([data.X_train, data.X_test]), expected[order])
    cells = Fields(path, "height", ["lat", "lon"], scale="none").load(0)
    assert cells.task == "regression"
    for (lat, lon), height in zip(cells.X_train, cells.y_train, strict=True):
        assert made["height"].sel(lat=lat, lon=lon) == height


def test_features_by_name_and_labels(tmp_path):
    path = write(weather(), tmp_path / "weather.nc")
    assert Fields(path, "storm", ["rain"]).load(0).X_train.shape == (9, LAT, LON)
    storm = Fields(path, "storm", ["rain", "height"]).load(0)
    assert storm.task == "classification"
    assert storm.X_train.shape == (9, LAT, LON, 2)
    both = Fields(path, ["rain", "heat"], ["time", "lat", "lon", "height"], scale="none", group_variable="time").load(0)
    assert both.X_train.shape == (9 * LAT * LON, 4)
    assert both.y_train.shape == (9 * LAT * LON, 2)
    assert np.unique(both.X_train[:, 0]).tolist() == [*map(float, sorted({*both.X_train[:, 0]}))]
    assert not {*both.X_train[:, 0]} & {*both.X_test[:, 0]}
    assert 18262 <= both.X_train[:, 0].min() < 18274  # days from 1970 to 2020


def test_features_have_mean_0_and_deviation_1_in_the_training_points_and_new_ones_are_scaled_like_them(tmp_path):
    path = write(weather(), tmp_path / "weather.nc")
    loader = Fields(path, "harvest")
    data = loader.load(0)
    np.testing.assert_allclose(data.X_train.mean((0, 1, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(data.X_train.std((0, 1, 2)), 1, atol=1e-6)
    new = weather()
    new["rain"][0] = np.nan
    loader.missing = "skip"
    with pytest.warns(UserWarning, match="1 of 12 points are left out, which have missing values"):
        points = loader.read_points(write(new, tmp_path / "new.nc"), json.loads(json.dumps(data.form)))
    assert points.ids[0].startswith("time=2020-01-02")
    scales, rain = data.reading["scales"], data.reading["features"].index("rain")
    expected = (new["rain"][1:].to_numpy() - scales["mean"][rain]) / scales["std"][rain]
    np.testing.assert_allclose(points.X[..., rain], expected, atol=1e-6)


def test_plain_hdf5_and_groups(tmp_path):
    X, y = RNG.random((10, 4, 4)), np.arange(10) / 3
    with h5py.File(tmp_path / "plain.hdf5", "w") as file:
        file["X"], file["y"] = X, y
        file["run/X"], file["run/y"] = X + 1, y
    data = Fields(str(tmp_path / "plain.hdf5"), "y", scale="none").load(0)
    np.testing.assert_array_equal(data.X_train, X[np.rint(data.y_train * 3).astype(int)])
    data = Fields(str(tmp_path / "plain.hdf5"), "y", subgroup="run", scale="none").load(0)
    assert data.X_train.min() >= 1


def broken(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 8])


@pytest.mark.parametrize(
    ("settings", "change", "message"),
    [
        ({"target": "harvest", "features": ["hat"]}, None, "features: the file has no variable 'hat'; did you mean"),
        ({"target": ["rain", "harvest"]}, None, "target: expected variables over the same dimensions.* harvest over"),
        ({"target": "harvest", "features": ["rain", "time"]}, None, "features: expected variables with the same dimen"),
        ({"target": "height", "features": ["storm"]}, None, "features: variable 'storm' must hold real numbers"),
        ({"target": "harvest", "group_variable": "station"}, None, "group_variable: the file has no variable"),
        ({"target": "harvest", "subgroup": "run"}, None, "is no NetCDF, HDF5 or Zarr file that can be read"),
        ({"target": "harvest"}, broken, "weather.nc is no NetCDF, HDF5 or Zarr file that can be read"),
        ({}, None, "target: expected the name of the variable to predict, found none"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, settings, change, message):
    path = write(weather(), tmp_path / "weather.nc")
    if change is not None:
        change(Path(path))
    with pytest.raises(InputError, match=message) as error:
        Fields(path, **settings).load(0)
    assert "\n" not in str(error.value)


def test_missing_values_are_refused_or_left_out(tmp_path):
    made = weather()
    made["height"][0, 0] = np.nan
    path = write(made, tmp_path / "weather.nc")
    with pytest.raises(InputError, match=r"1 of 30 points have missing values; set dataset\.missing=skip"):
        Fields(path, "height").load(0)
    with pytest.warns(UserWarning, match="1 of 30 points are left out"):
        data = Fields(path, "height", missing="skip").load(0)
    assert len(data.X_train) + len(data.X_test) == 29


def test_the_missing_package_is_named_with_its_command(tmp_path, monkeypatch):
    path = write(weather(), tmp_path / "weather.nc")
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(InputError, match=r"needs the package xarray: pip install 'orbit-kernels\[fields\]'"):
        Fields(path, "height").load(0)


def test_parts_are_those_of_a_variable(tmp_path):
    parts = np.array(["train", "test", "val"] * 4)
    weather().assign(part=("time", parts), year=("time", np.arange(DAYS) % 3)).to_netcdf(
        path := tmp_path / "a.nc", engine="h5netcdf"
    )
    data = Fields(str(path), "harvest", split_variable="part", group_variable="year").load(0)
    np.testing.assert_allclose(7 * data.y_test, np.flatnonzero(parts == "test"))
    assert (data.folds == 0).sum() == 4
    with pytest.raises(InputError, match="dataset.split_variable: expected the parts train and test, perhaps"):
        Fields(str(path), "harvest", split_variable="storm").load(0)
    with pytest.raises(InputError, match="dataset.group_variable: expected all points of a group in one part"):
        Fields(str(path), "harvest", split_variable="part", group_variable="storm").load(0)


def test_axes_of_points_have_one_order_and_direction(tmp_path):
    square = weather().isel(lon=slice(0, LAT))
    mixed = square.assign(rain=square["rain"].transpose("time", "lon", "lat"))
    paths = [write(made, tmp_path / f"{i}.nc") for i, made in enumerate((square, mixed))]
    loaders = [Fields(path, "harvest", scale="none") for path in paths]
    expected, found = (loader.load(0) for loader in loaders)
    np.testing.assert_array_equal(found.X_train, expected.X_train)
    points = loaders[0].read_points(paths[0], expected.form)
    other = write(mixed.transpose("lon", "lat", "time").isel(lat=slice(None, None, -1)), tmp_path / "other.nc")
    np.testing.assert_array_equal(loaders[0].read_points(other, expected.form).X, points.X)
    with pytest.raises(InputError, match="shape"):  # a single latitude, of which no direction is known
        loaders[0].read_points(write(square.isel(lat=0), tmp_path / "line.nc"), expected.form)
    old = {key: value for key, value in expected.form.items() if key != "axes"}
    np.testing.assert_array_equal(loaders[0].read_points(paths[0], old).X, points.X)

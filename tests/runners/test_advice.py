"""Warnings about combinations of components without the property that they are chosen for."""

import warnings

import numpy as np
import pytest
import xarray
from command_line import quickly_composed

from runners.config.plan import plan
from runners.experiments.advice import warn_about_combinations, warn_about_points, warning_about_intervals

FIELD = ("dataset=vector_field", "group=identity", "approx=orff", "learner=stein", "kernel=curl_free")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ((*FIELD, "representation=standardize"), "kernel=curl_free has its property in the coordinates"),
        (("dataset=xperm", "group=permutation", "representation=standardize"), "group=permutation moves columns"),
        (("dataset=vector_field", "group=identity", "learner=gp", "approx=nystrom"), "vanish far from the landmarks"),
        (FIELD, None),
        (("representation=polar", "group=small_moves"), "group=small_moves moves pixels"),
        (("representation=polar", "group=rotation", "group.sampling=cartesian"), "group=rotation moves pixels"),
        (("representation=polar", "group=rotation"), None),
        (("representation=polar", "group=identity"), None),
        *((("representation=unit_norm", f"group={group}"), None) for group in ("rotation", "affine", "small_moves")),
        (("dataset=xperm", "group=permutation"), None),
        (("dataset=shapes", "encoder=point_pairs", "group=orthogonal"), "does not change the vectors of encoder=point"),
        (("dataset=shapes", "encoder=point_pairs"), None),
        (("dataset=vector_field", "group=identity", "learner=gp", "approx=exact"), None),
        ((), None),
    ],
)
def test_a_combination_without_its_property_is_warned_of(settings, message):
    with warnings.catch_warnings(record=True, action="always") as found:
        warn_about_combinations(plan(quickly_composed(*settings)), 1)
    assert [message in str(each.message) for each in found] == ([] if message is None else [True])


@pytest.mark.parametrize("scale", ["feature", "none"])
def test_coordinates_with_scales_of_their_own_have_another_divergence(tmp_path, scale):
    path, grid = tmp_path / "mine.nc", (("lat", "lon"), np.random.default_rng(0).random((4, 5)))
    xarray.Dataset({"u": grid, "v": grid}).to_netcdf(path, engine="h5netcdf")
    data = ("dataset=fields", f"dataset.path={path}", "dataset.target=[u,v]", f"dataset.scale={scale}")
    made = plan(quickly_composed(*data, "group=identity", "approx=ovk", "kernel=divergence_free", "learner=gp"))
    with warnings.catch_warnings(record=True, action="always") as found:
        warn_about_combinations(made, 1)
    assert ["choose dataset.scale=none" in str(each.message) for each in found] == [True] * (scale == "feature")


@pytest.mark.parametrize(
    ("group", "centre", "warned"),
    [("orthogonal", 3.0, True), ("orthogonal", 0.4, False), ("product", 3.0, True), ("identity", 3.0, False)],
)
def test_clouds_far_from_the_origin_of_their_rotations_are_warned_of(group, centre, warned, rng):
    X = rng.uniform(-1, 1, (20, 6, 3)) + centre
    product = ["group.factors=[{name: orthogonal}, {name: reflection}]"] if group == "product" else []
    made = plan(quickly_composed(f"group={group}", *product, "encoder=point_pairs"))
    with warnings.catch_warnings(record=True, action="always") as found:
        warn_about_points(made, X)
        warn_about_points(made, X[:, 0])
        warn_about_points(made, X - X.mean(1, keepdims=True))
        warn_about_points(made, np.ones((2, 3, 3)))
    assert ["representation=centre" in str(each.message) for each in found] == [True] * warned


@pytest.mark.parametrize(
    ("settings", "ordered", "warned"),
    [
        (("group=orthogonal",), False, True),
        (("group=orthogonal",), True, False),
        (("group=orthogonal", "encoder=point_pairs"), False, False),
        (("group=identity",), False, False),
        (("group=product", "group.factors=[{name: permutation, mode: blocks}, {name: orthogonal}]"), False, False),
    ],
)
def test_turns_of_clouds_in_arbitrary_order_are_warned_of(settings, ordered, warned, rng):
    X = rng.standard_normal((30, 12, 3)) * (np.linspace(0.1, 1, 12)[:, None] if ordered else 1)
    with warnings.catch_warnings(record=True, action="always") as found:
        warn_about_points(plan(quickly_composed(*settings)), X)
        warn_about_points(plan(quickly_composed(*settings)), np.ones((5, 2, 3)))
    assert ["choose encoder=point_pairs" in str(each.message) for each in found] == [True] * warned


@pytest.mark.parametrize(
    ("coverage", "n", "approx", "setting"),
    [(0.0, 3, "nystrom", "approx=exact"), (0.6, 40, "exact", "kernel.lengthscale=median"), (0.8, 10, "exact", None)],
)
def test_intervals_that_are_too_short_are_told(coverage, n, approx, setting):
    made = plan(quickly_composed("dataset=vector_field", "group=identity", f"approx={approx}"))
    text = warning_about_intervals(made, {"test/coverage": coverage}, n)
    assert text is None if setting is None else text.endswith(f"of {n} test points; try {setting}")
    assert warning_about_intervals(made, {}, n) is None

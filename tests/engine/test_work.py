"""The operations that are estimated for features are those of formulas, and those that are counted."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import orbit
from orbit.core.work import Speed, Work

N, SIDE, R, S = 30, 8, 6, 40
PATCHES = {"size": 3, "n_components": 16, "n_patches": 500, "pool_stride": 2}
D = SIDE**2
X = np.random.default_rng(0).random((N, SIDE, SIDE)).astype(np.float32)


class Counted(TorchDispatchMode):
    """Counts the multiplications of torch's matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.multiplications = 0.0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in ("mm", "bmm", "addmm", "baddbmm", "matmul"):
            a, b = args[-2:]
            self.multiplications += max(a.numel() * b.shape[-1], b.numel() * a.shape[-2])
        return func(*args, **(kwargs or {}))


def counted(call) -> float:
    with Counted() as mode:
        call()
    return mode.multiplications


def a_map(name: str, path: str = "direct", group: str = "rotation", dtype: str = "float32", **parameters):
    orb = orbit.Orbit(orbit.build("group", group), size=R, rule="monte_carlo", random_state=0)
    engine = orbit.Engine(path=path, workers=1, dtype=dtype)
    kernel = {} if name == "cdf" else {"kernel": orbit.build("kernel", "gaussian", lengthscale=2.0)}
    sized = {} if name == "exact" else {"n_components": S}
    return orbit.build("approx", name, orbit=orb, engine=engine, random_state=0, **kernel, **sized, **parameters)


@pytest.mark.parametrize("path", ["direct", "template"])
@pytest.mark.parametrize(("name", "finish"), [("rf", 0), ("cdf", 0), ("nystrom", 30 * 30)])
def test_multiplications_of_features_are_the_formula_and_the_count(name, finish, path):
    features = a_map(name, path)
    units = min(N, S) if name == "nystrom" else S
    estimate = features.estimate(X, N)
    assert estimate.of_point.multiplications == R * D * units + finish
    fitted = features.fit(X)
    assert counted(lambda: fitted.transform(X)) == pytest.approx(N * estimate.of_point.multiplications, rel=0.01)
    assert estimate.columns == fitted.transform(X).shape[1]
    assert estimate.orbit_size == len(fitted.orbit_.weights_)
    assert estimate.orbit_bytes == fitted.orbit_.elements_.nbytes + fitted.orbit_.weights_.nbytes


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_multiplications_are_of_the_precision_in_use(dtype):
    work = a_map("rf", dtype=dtype).estimate(X, N).of_point
    single, double = (R * D * S, 0) if dtype == "float32" else (0, R * D * S)
    assert (work.single, work.double) == (single, double)


def test_the_spectral_path_is_chosen_and_counted():
    features, polar = a_map("rf", "auto"), X.reshape(N, 2, 32)
    group, q = orbit.build("group", "rotation", sampling="polar"), orbit.build("distribution", "haar")
    features.orbit.set_params(group=group, distribution=q, rule="quadrature", size=32)
    estimate = features.estimate(polar, N)
    fitted = features.fit(polar)
    found = counted(lambda: fitted.transform(polar))
    assert fitted.route_.path == "spectral"
    assert estimate.of_point.multiplications < 32 * D * S / 2  # less than by any other path
    assert N * estimate.of_point.multiplications == pytest.approx(found, rel=0.5)


@pytest.mark.parametrize(("group", "units"), [("rotation", N * R), ("dihedral", N)])
def test_an_exact_kernel_takes_a_double_or_a_single_sum(group, units):
    features = a_map("exact", group=group)
    if group == "dihedral":
        features.orbit.set_params(rule="quadrature", size=8)
    r = 8 if group == "dihedral" else R
    estimate = features.estimate(X, N)
    assert estimate.of_point.double == r * D * units + N**2
    assert features.gram_work(X, N).single == N * r * D * units
    assert counted(lambda: features.fit_gram(X)) == pytest.approx(N * r * D * units, rel=0.01)


def test_a_large_symmetric_matrix_is_computed_in_part():
    n = 2048
    assert a_map("exact").gram_work(X, n).single == pytest.approx(5 / 8 * n * R * D * n * R)


def test_kernels_of_differences_multiply_nothing():
    work = a_map("nystrom").set_params(kernel=orbit.build("kernel", "laplacian", lengthscale=9.0)).estimate(X, N)
    assert work.of_point.multiplications == 30 * 30  # the linear step
    assert work.of_point.values > R * 30


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("patches", {**PATCHES, "reduce": None}),
        ("patches", {**PATCHES, "reduce": 20}),
        ("pca", {"n_components": 20}),
    ],
)
def test_an_encoder_is_counted_for_every_orbit_point(name, params):
    encoder = orbit.build("encoder", name, **params)
    length, work = encoder.estimate(X)
    fitted = encoder.fit(X, 0)
    assert length == fitted.n_outputs_
    assert counted(lambda: fitted.encode(torch.from_numpy(X))) == pytest.approx(N * work.multiplications, rel=0.05)
    plain, encoded = (a_map("rf").set_params(encoder=each).estimate(X, N).of_point for each in (None, encoder))
    difference = encoded.multiplications - plain.multiplications
    assert difference == pytest.approx(R * (work.multiplications + S * (length - D)), rel=1e-9)


@pytest.mark.parametrize("name", orbit.available("approx"))
def test_every_map_has_an_estimate_of_at_least_its_columns(name):
    group = "identity" if name == "ovk" else "rotation"
    features = orbit.build("approx", name, orbit=orbit.Orbit(orbit.build("group", group), size=4), random_state=0)
    if "n_components" in features.get_params():
        features.set_params(n_components=S)
    estimate = features.estimate(X, N)
    assert estimate.columns >= np.asarray(features.fit_transform(X)).shape[1]
    assert estimate.of_point.operations > 0


@pytest.mark.parametrize("name", orbit.available("kernel"))
def test_every_kernel_has_an_estimate(name):
    kernel = orbit.build("kernel", name)
    approx = "orff" if hasattr(kernel, "base_kernel") else "nystrom"
    assert orbit.build("approx", approx, kernel=kernel, n_components=S).estimate(X, N).of_point.multiplications > 0


def test_structured_frequencies_cost_less_than_dense_ones():
    wide = np.ones((1, 4096), np.float32)
    dense, fast = (
        orbit.build("approx", "rf", n_components=4096, frequencies=orbit.build("frequencies", rule)).estimate(wide, 10)
        for rule in ("monte_carlo", "structured")
    )
    assert dense.of_point.multiplications == 4096**2
    assert fast.of_point.multiplications < dense.of_point.multiplications / 4


def test_speed_is_that_of_each_kind_of_work():
    speed = Speed.measured()
    rates = astuple(speed)
    assert min(rates) > 0
    assert speed.seconds(Work(*(n * rate for n, rate in enumerate(rates, 1)))) == pytest.approx(1 + 2 + 3 + 4)


def test_values_are_counted_for_the_precision_in_which_they_are_computed():
    assert Work.of(np.dtype(np.float32), 3.0, 2.0) == Work(single=3.0, values=2.0)
    assert Work.of(np.dtype(np.float64), 3.0, 2.0) == Work(double=3.0, double_values=2.0)

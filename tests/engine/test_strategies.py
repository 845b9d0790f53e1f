"""Strategies: which one is chosen, what maps keep between calls, and tiles that find no memory."""

import pickle
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from test_spectral import MAPS

from orbit import Gaussian, InputError, Matern, Orbit, Rotation
from orbit.approx import Exact, Nystrom, RandomFourier, RandomSkeleton, RawPoints
from orbit.engine import Engine, spectral
from orbit.engine.memory import Workspace
from orbit.testing.samples import signals

# ---- what is kept between calls --------------------------------------------------------------------------------------


def calls_of(monkeypatch, at, name: str) -> list[int]:
    calls, original = [], getattr(at, name)

    def counted(self, *args):
        calls.append(1)
        return original(self, *args)

    monkeypatch.setattr(at, name, counted)
    return calls


@pytest.mark.parametrize("name", ["pairs", "offset", "nystrom"])
def test_templates_are_computed_once_for_several_calls(rng, monkeypatch, name):
    X, orb = signals(rng, 40, (3, 8)), Orbit(Rotation("polar"), size=8)
    made = calls_of(monkeypatch, spectral.SpectralProjection, "add_templates")
    fitted = MAPS[name](orbit=orb, engine=Engine(workers=1)).fit(X)
    first, second = fitted.transform(X[:20]), fitted.transform(X[20:])
    assert len(made) == 1
    fresh = MAPS[name](orbit=orb, engine=Engine(workers=1)).fit(X)
    np.testing.assert_array_equal(second, fresh.transform(X[20:]))
    assert len(made) == 2
    np.testing.assert_array_equal(first, pickle.loads(pickle.dumps(fitted)).transform(X[:20]))
    assert len(made) == 3, "they are no part of a pickle"
    assert not np.allclose(fitted.set_params(random_state=1).fit(X).transform(X[:20]), first)


def test_templates_are_computed_again_for_another_precision_or_map(rng):
    X, orb, engine = signals(rng, 40, (3, 8)), Orbit(Rotation("polar"), size=8), Engine(path="spectral")
    maps = [RandomFourier(Gaussian(0.6), orb, 20, random_state=seed, engine=engine).fit(X) for seed in (0, 1)]
    expected = [fitted.transform(X) for fitted in maps]
    for _ in range(2):
        for fitted, features in zip(maps, expected, strict=True):
            np.testing.assert_array_equal(fitted.transform(X), features)
            single = fitted.transform(X.astype(np.float32))
            assert single.dtype == np.float32
            np.testing.assert_allclose(single, features, atol=1e-5)


def test_kept_templates_take_a_small_part_of_the_memory(rng, monkeypatch):
    X, orb = signals(rng, 40, (3, 8)), Orbit(Rotation("polar"), size=8)
    made = calls_of(monkeypatch, spectral.SpectralProjection, "add_templates")
    fitted = MAPS["pairs"](orbit=orb, engine=Engine(path="spectral", memory=1e-4, workers=1)).fit(X)
    np.testing.assert_array_equal(fitted.transform(X), fitted.transform(X))
    assert len(made) > 1
    assert fitted._cached_embeddings.values() == []


def test_templates_count_in_both_forms_as_kept(rng, monkeypatch):
    """The limit is 1.5 times the bytes of the templates, which are as many again in Fourier space."""
    X, orb = signals(rng, 20, (12, 16)), Orbit(Rotation("polar"), size=8)
    engine = Engine(path="spectral", spectral_tolerance=0.0, memory=16 * 1.5 * 500 * 12 * 16 * 8 / 2**30, workers=1)
    made = calls_of(monkeypatch, spectral.SpectralProjection, "add_templates")
    fitted = RandomFourier(Gaussian(0.6), orb, 500, random_state=0, engine=engine).fit(X)
    fitted.transform(X)
    once = len(made)
    fitted.transform(X)
    assert len(made) == 2 * once
    engine.set_params(memory=1.5 * engine.memory)
    fitted.transform(X)
    again = len(made)
    fitted.transform(X)
    assert len(made) == again


# ---- the choice ------------------------------------------------------------------------------------------------------


def chosen(feature_map, X) -> str:
    return feature_map.fit(X[:20]).transform(X) is not None and feature_map.route_.path


def test_the_cheapest_path_is_chosen(rng):
    polar, square = signals(rng, 40, (4, 16)), signals(rng, 40, (8, 8))
    pairs = MAPS["pairs"]
    assert chosen(pairs(orbit=Orbit(Rotation("polar"), size=16)), polar) == "spectral"
    assert chosen(pairs(orbit=Orbit(Rotation("polar"), size=1)), polar) == "direct"
    assert chosen(pairs(orbit=Orbit(Rotation(), size=16)), square) == "direct"
    assert chosen(pairs(orbit=Orbit(Rotation(), size=16)), np.repeat(square, 20, axis=0)) == "template"
    assert chosen(Nystrom(Matern(0.6, nu=0.5), Orbit(Rotation("polar"), size=16), random_state=0), polar) == "direct"
    assert chosen(Exact(Gaussian(0.6), Orbit(Rotation("polar"), size=16)), polar) == "spectral"
    assert chosen(Exact(Matern(0.6, nu=0.5), Orbit(Rotation("polar"), size=16)), polar) == "direct"


@pytest.mark.parametrize(
    ("path", "feature_map", "found"),
    [
        ("spectral", RandomFourier(orbit=Orbit(Rotation())), "shifts .*, found group=rotation and distribution=haar"),
        ("template", Exact(Matern(nu=0.5), Orbit(Rotation("polar"))), "projections.*approx=exact, kernel=matern"),
        ("template", Nystrom(Matern(nu=0.5)), "projections.*, found approx=nystrom, kernel=matern"),
        ("template", RawPoints(), "projections.*, found approx=points"),
        ("template", RandomSkeleton(), "projections.*, found approx=skeleton, kernel=skeleton"),
    ],
    ids=str,
)
def test_error_for_a_path_that_does_not_apply_names_parameters(rng, path, feature_map, found):
    feature_map.set_params(engine=Engine(path=path))
    with pytest.raises(InputError, match=f"^engine.path={path} needs .*{found}: choose engine.path=auto$"):
        feature_map.fit(signals(rng, 8, (4, 6))).transform(signals(rng, 8, (4, 6)))


# ---- tiles that find no memory --------------------------------------------------------------------------------------


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Tiles that find no memory are halved, which they are on a GPU only."""
    monkeypatch.setattr(Workspace, "halves_tiles", True)


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize("path", ["template", "spectral"])
def test_templates_that_do_not_fit_are_halved_without_repeating_sums(rng, monkeypatch, path):
    X, orb = signals(rng, 40, (3, 8)), Orbit(Rotation("polar"), size=8)
    fitted, again = (MAPS["pairs"](orbit=orb, engine=Engine(path=path, workers=1)).fit(X) for _ in range(2))
    expected, calls = fitted.transform(X), []
    at, name = {"template": (Rotation, "adjoint"), "spectral": (spectral.SpectralProjection, "add_templates")}[path]
    original = getattr(at, name)

    def scarce(self, *args):
        size = len(args[1]) if path == "template" else args[0].stop - args[0].start
        calls.append(size)
        if size > 6 and (path == "spectral" or len(calls) > 1):  # on the way, when some sums are made
            raise torch.OutOfMemoryError("pretended")
        return original(self, *args)

    monkeypatch.setattr(at, name, scarce)
    np.testing.assert_allclose(again.transform(X), expected, atol=1e-12)
    assert 1 < min(calls) <= 6 < max(calls)


@pytest.mark.usefixtures("as_on_a_gpu")
def test_a_tile_that_does_not_fit_is_halved(rng, monkeypatch):
    X, orb = signals(rng, 40, (3, 8)), Orbit(Rotation("polar"), size=8)
    fitted = MAPS["pairs"](orbit=orb, engine=Engine(path="direct", workers=1)).fit(X)
    expected, points = fitted.transform(X), Orbit.points
    rows: list[int] = []

    def scarce(self, X, elements):
        rows.append(len(X))
        if len(X) > 6:
            raise torch.OutOfMemoryError("pretended")
        return points(self, X, elements)

    monkeypatch.setattr(Orbit, "points", scarce)
    np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-12)
    assert min(rows) == 5
    monkeypatch.setattr(Orbit, "points", Mock(side_effect=torch.OutOfMemoryError("always")))
    with pytest.raises(torch.OutOfMemoryError, match="always"):
        fitted.transform(X)


@pytest.mark.usefixtures("as_on_a_gpu")
def test_a_tile_that_stops_fitting_after_some_sums_repeats_none(rng, monkeypatch):
    X, orb = signals(rng, 40, (3, 8)), Orbit(Rotation("polar"), size=16)
    for feature_map in (MAPS["pairs"], RawPoints, Nystrom):
        fitted = feature_map(orbit=orb, engine=Engine(path="direct", workers=1)).fit(X)
        expected, points = fitted.transform(X), Orbit.points

        def scarce(self, X, elements, points=points):
            if len(X) > 6 and elements.start > 0:
                raise torch.OutOfMemoryError("pretended")
            return points(self, X, elements)

        with monkeypatch.context() as patch:
            patch.setattr(Orbit, "points", scarce)
            np.testing.assert_allclose(fitted.transform(X), expected, atol=1e-12)

"""The engine's working memory, measured."""

import numpy as np
import pytest
from live_bytes import LiveBytes

from orbit import Exact, Gaussian, Nystrom, Orbit, RandomFourier, Rotation
from orbit.engine import Engine, memory as engine_memory
from orbit.testing.samples import signals


@pytest.mark.parametrize("factor", [1, 64], ids=["tiles of a processor", "of a GPU"])
@pytest.mark.parametrize("group", [Rotation(), Rotation("polar")], ids=repr)
@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda **p: RandomFourier(n_components=256, random_state=0, **p), 40),
        (lambda **p: Nystrom(n_components=100, random_state=0, **p), 40),
        (Exact, 10),
    ],
    ids=["rf", "nystrom", "exact"],
)
@pytest.mark.slow
def test_working_memory_stays_within_the_budget(rng, monkeypatch, make, size, group, factor):
    """Everything above input and output, while all orbit points together would be far above it."""
    monkeypatch.setattr(engine_memory.Workspace, "tile_factor", factor)
    X = signals(rng, 300, (16, 16)).astype(np.float32)
    budget = 2**21
    orb = Orbit(group, size=size)
    fitted = make(kernel=Gaussian(0.6), orbit=orb, engine=Engine(budget / 2**30, 1)).fit(X[:100])
    assert X.nbytes * size > 1.4 * budget
    with LiveBytes() as memory:
        fitted.transform(X)
    model = sum(
        getattr(fitted, name, np.zeros(0)).size * 4 for name in ("frequencies_", "landmarks_", "normalization_")
    )
    assert budget / 20 < memory.most
    assert memory.most < 1.25 * budget + 2 * model, "a quarter for what is not tiles"

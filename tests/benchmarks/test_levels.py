"""Generated sets whose classes differ in level or brightness."""

import numpy as np
import pytest

from benchmarks import levels


@pytest.mark.parametrize("name", levels.FAMILIES)
def test_a_family_has_its_classes_in_turn_and_the_seed_fixes_it(name, monkeypatch):
    monkeypatch.setattr(levels, "_ALL", 2)
    X, y = levels.drawn(name, 1)
    assert y.tolist() == [*range(levels.FAMILIES[name][1])] * 2
    assert np.isfinite(X).all()
    np.testing.assert_array_equal(X, levels.drawn(name, 1)[0])
    assert not np.array_equal(X, levels.drawn(name, 2)[0])


def test_the_forest_tells_loads_apart(monkeypatch):
    X, y = levels.drawn("loads", 100)
    accuracy, seconds = levels.forest(X, y, 120)
    assert accuracy > 0.7
    assert seconds > 0

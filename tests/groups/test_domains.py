"""Coordinate spaces."""

from __future__ import annotations

import numpy as np
import pytest

from orbit.groups.domains import Circle, Point, wrap


def test_wrap_is_half_open_and_changes_only_angles():
    angles = np.linspace(-20, 20, 401)
    wrapped = wrap(angles)
    assert np.all((wrapped >= -np.pi) & (wrapped < np.pi))
    turns = (angles - wrapped) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-12)
    assert wrap(np.pi) == -np.pi
    assert wrap(0.0) == 0.0


def test_wrap_takes_any_period():
    np.testing.assert_allclose(wrap(np.array([0.0, 0.6, 1.2]), period=1.0), [0.0, -0.4, 0.2])


@pytest.mark.parametrize("domain", [Point(), Circle()])
def test_descriptions_of_domains(domain):
    assert str(domain).startswith("a ")
    assert domain == type(domain)()

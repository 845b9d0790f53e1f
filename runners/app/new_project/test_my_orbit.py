"""Run with pytest: ``pip install 'orbit-kernels[test]'``."""

from my_orbit.groups import QuarterTurns

from orbit.testing import FiniteGroupContract


class TestQuarterTurns(FiniteGroupContract):
    component = QuarterTurns
    shape = (6, 6)
    wrong_shapes = [(6,), (6, 4)]


class TestHalfTurns(TestQuarterTurns):
    params = {"half_turns": True}

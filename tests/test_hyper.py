"""The second layer."""

from __future__ import annotations

import numpy as np
from contracts import HyperContract

from orbit.hyper import Linear


class TestLinear(HyperContract):
    def create(self):
        return Linear()

    def test_passes_features_as_they_are(self, psi):
        np.testing.assert_array_equal(self.create().fit_transform(psi), psi)

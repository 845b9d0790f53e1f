"""Shared by all tests: every test draws from its own seeded generator."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

pytest.register_assert_rewrite("orbit_rules")

# Tests run thousands of tiny products; two threads that meet at a barrier for each of them, on cores shared with
# other work, take a hundred times as long. Tests of threads ask for workers by number.
torch.set_num_threads(1)
threadpool_limits(1, "blas")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20170)


@pytest.fixture(autouse=True)
def _same_chance_in_every_run() -> None:
    """Estimators whose ``random_state`` is None draw from NumPy's global generator, as scikit-learn's do."""
    np.random.seed(20170)
    torch.manual_seed(20170)

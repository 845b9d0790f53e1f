"""Shared by all tests: contract classes show their assertions, and every test draws from its own seeded generator."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

pytest.register_assert_rewrite("contracts")

# Tests run thousands of tiny products; two threads that meet at a barrier for each of them, on cores shared with
# other work, take a hundred times as long. Tests of threads ask for workers by number.
torch.set_num_threads(1)
threadpool_limits(1, "blas")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20170)

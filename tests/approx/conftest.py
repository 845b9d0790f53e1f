"""Fixtures of tests of feature maps."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Threads that meet after every small product cost more than they save, most of all on shared cores."""
    with threadpool_limits(1):
        yield

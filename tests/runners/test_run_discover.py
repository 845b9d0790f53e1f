"""runner=discover, and the group of data that name none."""

from __future__ import annotations

import pytest
from command_line import folders

from runners.tracking.record import RunFolder

DISCOVER = (
    "runner=discover",
    "dataset.n_train=60",
    "dataset.n_test=40",
    "runner.refine=false",
    "tracking.enabled=false",
)


@pytest.mark.slow
def test_the_discovered_group_is_an_experiment(run, tmp_path):
    out = run.ok(*DISCOVER)
    assert "The answer does not depend on rotation" in out
    (folder,) = folders(tmp_path)
    metrics = RunFolder(folder).read_metrics()
    assert metrics["discover/error"] < metrics["discover/error_without"]
    assert (folder / "figures" / "discover.png").exists()
    assert "group=rotation\n" in out
    settings = (f"--config-dir={folder / 'conf'}", "experiment=discovered", "dataset=digits", "approx.n_components=20")
    out = run.ok(*settings, "dataset.n_train=60", "dataset.n_test=40", "tracking.enabled=false", "run_name=b")
    assert "orbit of 32" in out

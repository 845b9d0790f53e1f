"""Another package adds a component of every kind: one class and contract test each, an experiment and a preset.

The package of README and the one that ``orbit init`` writes are installed in test_package.py.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from installed_package import write_package

TESTS = Path(__file__).parent


@pytest.mark.slow
def test_a_package_adds_a_component_of_every_kind_and_an_experiment(tmp_path):
    shutil.copytree(TESTS / "extension", tmp_path, dirs_exist_ok=True)
    write_package(tmp_path, "plugin", {})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "check_plugin.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(TESTS.parent)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout

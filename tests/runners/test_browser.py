"""MLflow's pages of a sweep, as a browser shows them."""

import html
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import SMALL, mlflow_runs

CHROMIUM = shutil.which("chromium")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1700,1300"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")]


@pytest.fixture
def server(tmp_path) -> Iterator[Callable[[], str]]:
    """Starts MLflow's pages of the outputs, and returns their address."""
    started: list[subprocess.Popen] = []

    def serve() -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        store = f"sqlite:///{tmp_path / 'out' / 'mlflow.db'}"
        command = ["-m", "mlflow", "ui", "--backend-store-uri", store, "--port", str(port), "--workers", "1"]
        log = (tmp_path / "server.log").open("w")
        started.append(subprocess.Popen([sys.executable, *command], stdout=log, stderr=log, start_new_session=True))
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{address}/health", timeout=5)
                return address
            except OSError:
                assert started[0].poll() is None, (tmp_path / "server.log").read_text()
                time.sleep(0.5)
        raise TimeoutError((tmp_path / "server.log").read_text())

    yield serve
    for process in started:
        os.killpg(process.pid, 15)
        process.wait(30)


def rendered(address: str, folder: Path) -> str:
    """The text of a page after its scripts have run, and a picture of it in ``folder``."""
    command = [str(CHROMIUM), *QUIET, f"--user-data-dir={folder / 'browser'}", "--virtual-time-budget=30000"]
    picture = folder / "page.png"
    subprocess.run([*command, f"--screenshot={picture}", address], capture_output=True, timeout=180, check=True)
    assert picture.stat().st_size > 20_000  # an empty page has less
    done = subprocess.run([*command, "--dump-dom", address], capture_output=True, text=True, timeout=180, check=True)
    return html.unescape(done.stdout)


def columns(page: str) -> list[str]:
    """The metrics and parameters that a list of runs shows, in their order."""
    cells = re.findall(r'role="columnheader"[^>]*aria-colindex="(\d+)"[^>]*col-id="((?:metrics|params)\.`[^"]*)"', page)
    return [name for _, name in sorted((int(index), name) for index, name in set(cells))]


def test_a_run_opens_on_all_runs_with_their_metric_and_its_references(run, tmp_path, server):
    page = rendered(f"{server()}/{re.search(r'then http://127.0.0.1:5000/(#.+)', run.ok(*SMALL))[1]}", tmp_path)
    assert columns(page)[:2] == ["metrics.`test/accuracy`", "metrics.`reference/majority_class/accuracy`"]
    assert mlflow_runs(tmp_path)[0].info.run_name in page


def test_a_sweep_opens_on_its_jobs_and_its_description(run, tmp_path, server):
    out = run.ok("-m", *SMALL, "group=identity,rotation", "seed=0,1")
    runs = {r.data.tags.get("job", "parent"): r for r in mlflow_runs(tmp_path)}
    parent = runs.pop("parent")
    address = server()
    shown = re.search(r"then http://127.0.0.1:5000/(#\S+)", out)[1]
    page = rendered(f"{address}/{shown}", tmp_path)
    assert "Model registry" in page  # the type of page for models
    assert "Observability" not in page  # and not that for prompts
    assert columns(page) == ["metrics.`test/accuracy`", "params.`group.name`", "params.`seed`"]
    for job in runs.values():
        assert job.info.run_name in page

    page = rendered(f"{address}/#/experiments/{parent.info.experiment_id}/runs/{parent.info.run_id}", tmp_path)
    best = max(job.data.metrics["test/accuracy"] for job in runs.values())
    assert f"Best test/accuracy of 4 jobs, chosen by the test part: {best:.4g}" in page
    assert "best/test/accuracy" in page
    assert f"python run.py -m {SMALL[0]}" in re.sub(r"<[^>]*>", "", page)
    assert parent.data.tags["git.commit"][:7] in page
    assert "viewStateShareKey=" in page

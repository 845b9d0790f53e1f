"""A served model and a sweep in use for as long as is asked: memory, open files, threads and files stay constant.

``ORBIT_SOAK_S`` is the time in seconds, and ``ORBIT_SOAK_PICTURE`` names a file for a picture of what was measured.
"""

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from command_line import SMALL, mlflow_runs
from matplotlib.figure import Figure
from scipy import stats

import orbit
from orbit.core.models import load_model
from runners.tracking.record import RunFolder

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("ORBIT_SOAK_S", 20))
PICTURE = os.environ.get("ORBIT_SOAK_PICTURE")

SAMPLES = 360
PAUSE_S = 0.04  # between two requests, so that the sweep gets most of the processor
PARTS = 10

QUANTITIES = ("own memory (MiB)", "open files", "threads", "files left")
#: What a process may keep of a unit of work, in MiB: less than a small array, and the row of a sweep's table.
KEPT = {"requests": 100 / 2**20, "jobs": 16 / 2**10}
#: What may be added in all: of memory, in MiB, what is used for the first time late, and of things that are counted.
ONCE, COUNTED = 2.0, 0.5


def growth(seconds: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """What is added to a quantity after the first third of the time, and half its confidence interval of 99.9 %.

    Both are of a line through the means of ten parts of that time: samples that follow each other depend on each other,
    such means hardly.
    """
    late = seconds >= seconds[0] + (seconds[-1] - seconds[0]) / 3
    t, level = (np.array([part.mean() for part in np.array_split(a[late], PARTS)]) for a in (seconds, values))
    t, level = (t - t.mean()) / (seconds[-1] - seconds[late][0]), level - level.mean()
    slope = t @ level / (t @ t)
    error = np.linalg.norm(level - slope * t) / np.sqrt((PARTS - 2) * (t @ t))
    return float(slope), float(stats.t.ppf(0.9995, PARTS - 2) * error)


class Watched:
    """A process with its children, the work that it has done, and samples of what it takes."""

    def __init__(
        self, process: psutil.Popen, unit: str, done: Callable[[], int], left: Callable[[], int], log: Path
    ) -> None:
        self.process, self.unit, self.done, self.left, self.log = process, unit, done, left, log
        self.rows: list[tuple[float, ...]] = []

    def sample(self, seconds: float) -> None:
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        taken = np.zeros(3)
        for process in (self.process, *self.process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                memory = process.memory_info()
                own = memory.rss - memory.shared  # without pages of files, which the system takes back when it is short
                taken += own / 2**20, process.num_fds(), process.num_threads()
        self.rows.append((seconds, self.done(), *taken, self.left()))

    def grown(self) -> dict[str, tuple[float, float, float]]:
        """For each quantity: what is added, half its confidence interval, and what may be added."""
        seconds, work, *values = np.array(self.rows).T
        late = work[seconds >= seconds[0] + (seconds[-1] - seconds[0]) / 3]
        allowed = (ONCE + KEPT[self.unit] * (late[-1] - late[0]), COUNTED, COUNTED, COUNTED)
        return {
            name: (*growth(seconds, each), limit) for name, each, limit in zip(QUANTITIES, values, allowed, strict=True)
        }


class Client(threading.Thread):
    """Asks a served model about random points, some of them of a wrong shape, and compares its answers."""

    def __init__(self, address: str, X: np.ndarray, y: np.ndarray, seed: int) -> None:
        super().__init__(daemon=True)
        self.address, self.X, self.y, self.rng = address, X, y, np.random.default_rng(seed)
        self.end = threading.Event()
        self.answered = 0
        self.problems: list[str] = []

    def run(self) -> None:
        while not (self.problems or self.end.wait(PAUSE_S)):
            rows = self.rng.integers(len(self.X), size=self.rng.integers(1, 65))
            wrong = self.answered % 20 == 19
            try:
                status, answer = self.ask(self.X[rows, 1:] if wrong else self.X[rows])
            except OSError as error:
                self.problems.append(repr(error))
                return
            right = status == 400 if wrong else (status, answer.get("predictions")) == (200, self.y[rows].tolist())
            if not right:
                self.problems.append(f"{status}: {answer}")
            self.answered += 1

    def ask(self, points: np.ndarray) -> tuple[int, dict]:
        body = json.dumps({"inputs": points.tolist()}).encode()
        request = urllib.request.Request(self.address, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@contextlib.contextmanager
def started(folder: Path, *arguments: str, **environment: str) -> Iterator[tuple[psutil.Popen, Path, Path]]:
    """A process of Python, its folder of temporary files and its log; its whole group is killed in the end."""
    temporary, log = folder / "temporary", folder / "log"
    temporary.mkdir(parents=True)
    given = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)} | environment
    with open(log, "w") as file:
        process = psutil.Popen(
            [sys.executable, *arguments], cwd=folder, env=given, stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield process, temporary, log
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def wait_for(condition: Callable[[], object], process: psutil.Popen, log: Path) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.2)


def is_ready(address: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):
        return True
    return False


def count(folder: Path, *without: str) -> int:
    """Files in a folder and those below, without the given patterns of what is at its top."""
    top = [path for path in folder.iterdir() if not any(path.match(pattern) for pattern in without)]
    return sum(len(files) for path in top if path.is_dir() for _, _, files in os.walk(path)) + sum(
        path.is_file() for path in top
    )


def clear_points(model) -> tuple[np.ndarray, np.ndarray]:
    """Points and their classes, which changes of the points by 1e-3 do not change, so that rounding does not."""
    X = orbit.build("dataset", "rotated_digits").load(0).X_test
    classes, rng = model.predict(X), np.random.default_rng(0)
    near = [model.predict(X + rng.uniform(-1e-3, 1e-3, X.shape).astype(X.dtype)) for _ in range(20)]
    clear = np.all(near == classes, axis=0)
    assert clear.sum() > 500
    return X[clear], classes[clear]


def draw(parts: list[Watched], path: Path) -> None:
    figure = Figure((9, 9), layout="constrained")
    axes = figure.subplots(len(QUANTITIES), len(parts), sharex=True, squeeze=False)
    for part, column in zip(parts, axes.T, strict=True):
        seconds, work, *values = np.array(part.rows).T
        for (name, (added, half, _)), each, axis in zip(part.grown().items(), values, column, strict=True):
            axis.plot(seconds / 60, each, linewidth=0.8)
            axis.axvspan(0, seconds[-1] / 180, color="0.93")
            axis.set_ylim(0, 1.15 * each.max() + 1)
            axis.set_ylabel(name)
            axis.set_title(f"added after the first third: {added:+.2f} ± {half:.2f}", fontsize="small")
        column[0].set_title(f"{work[-1] - work[0]:,.0f} {part.unit}\n{column[0].get_title()}", fontsize="small")
        column[-1].set_xlabel("minutes")
    figure.savefig(path, dpi=120)


def finished(outputs: Path) -> list[Path]:
    """The folders of the jobs that have finished."""
    jobs = [path.parent for path in outputs.glob("*/*-sweep/*/run.json")]
    return sorted(folder for folder in jobs if RunFolder(folder).read_record().status == "FINISHED")


@contextlib.contextmanager
def sweeping(folder: Path, outputs: Path) -> Iterator[Watched]:
    """A sweep of more jobs than there is time for, two of which have finished; it is interrupted in the end."""
    # Hydra composes all jobs of a batch before the first of them starts
    endless = (f"seed=range(0,{int(2 * SECONDS) + 100})", "hydra.sweeper.max_batch_size=10")
    command = (str(ROOT / "run.py"), "-m", *SMALL[:-1], *endless, f"outputs={outputs}")
    with started(folder, *command) as (process, temporary, log):
        wait_for(lambda: len(finished(outputs)) >= 2, process, log)
        yield Watched(
            process,
            "jobs",
            lambda: len(list(outputs.glob("*/*-sweep/*/metrics.json"))),
            lambda: count(temporary) + count(outputs, "20*", "artifacts"),
            log,
        )
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130, log.read_text()[-2000:]


@contextlib.contextmanager
def serving(folder: Path, outputs: Path, run: RunFolder) -> Iterator[tuple[Watched, list[Client]]]:
    """The model of a run behind ``mlflow models serve``, and two clients, which are told to end in the end."""
    X, y = clear_points(load_model(run.path))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    model = f"runs:/{run.read_record().run_id}/model"
    command = ("-m", "mlflow", "models", "serve", "-m", model, "--env-manager", "local", "--port", str(port))
    store = f"sqlite:///{outputs / 'mlflow.db'}"
    with started(folder, *command, MLFLOW_TRACKING_URI=store) as (process, temporary, log):
        wait_for(lambda: is_ready(f"http://127.0.0.1:{port}/ping"), process, log)
        clients = [Client(f"http://127.0.0.1:{port}/invocations", X, y, seed) for seed in range(2)]
        for client in clients:
            client.start()
        watched = Watched(process, "requests", lambda: sum(c.answered for c in clients), lambda: count(temporary), log)
        yield watched, clients
        for client in clients:
            client.end.set()
            client.join(120)


@pytest.mark.slow
def test_a_served_model_and_a_sweep_take_no_more_with_time(tmp_path):
    """A sweep of fits, and at the same time its first model behind ``mlflow models serve`` with two clients."""
    outputs = tmp_path / "out"
    with (
        sweeping(tmp_path / "sweep", outputs) as sweep,
        serving(tmp_path / "served", outputs, RunFolder(finished(outputs)[0])) as (served, clients),
    ):
        begin = time.monotonic()
        while (seconds := time.monotonic() - begin) < SECONDS:
            served.sample(seconds)
            sweep.sample(seconds)
            time.sleep(SECONDS / SAMPLES)

    draw([served, sweep], Path(PICTURE) if PICTURE else tmp_path / "soak.png")
    for part in (served, sweep):
        np.savetxt(tmp_path / f"{part.unit}.csv", part.rows, "%.6g", ",", header=",".join(["s", "work", *QUANTITIES]))
        for name, (added, half, allowed) in part.grown().items():
            print(f"{part.unit}: {name} {added:+.3f} +- {half:.3f}, allowed {allowed:.3f}")
    print(f"{served.done()} answers, {len(finished(outputs))} jobs; {tmp_path}/*.csv")

    assert [problem for client in clients for problem in client.problems] == []
    assert "RUNNING" not in [run.info.status for run in mlflow_runs(tmp_path)]
    assert len({count(folder) for folder in finished(outputs)}) == 1, "every job leaves the same number of files"
    for part in (served, sweep):
        for name, (added, half, allowed) in part.grown().items():
            assert added - half <= allowed, f"{part.unit}: {name} {added:+.2f} +- {half:.2f}, allowed {allowed:.2f}"

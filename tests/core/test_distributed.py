"""A stream shared by two local processes: equal to one process, and an error when one process dies."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import folders, quickly_composed
from samples import noisy_digits, npy_files, npy_shards, parquet_shards

from orbit.core import distributed
from orbit.core.errors import InputError
from orbit.data.rows import own_rows
from orbit.learners.streaming import FeatureStream
from runners.config.plan import plan
from runners.experiments.pipeline import pipeline, represented, width

ROOT = Path(__file__).parents[2]
FEATURES = "approx=rf", "approx.n_components=60", "orbit.size=4", "engine.dtype=float64", "engine.stream=true"
OF_FILES = *FEATURES, "tracking.enabled=false"
SETTINGS = *OF_FILES, "dataset=digits", "dataset.n_train=400"

# 120 columns: their second moments take 115,200 bytes
FEW_BYTES = ("engine.memory=0.0001", "learner.regularization=[0.001,0.1]")

DYING = """
import os
import numpy as np
from orbit.core import distributed
from orbit.learners import RidgeRegressor
from orbit.engine import Engine
from orbit.learners.streaming import FeatureStream, fit_stream

def features(X):
    if distributed.rank() == 1:
        os._exit(3)
    return X

with distributed.job():
    X = np.ones((50, 3))
    fit_stream(RidgeRegressor(), FeatureStream(features, X, 3, Engine()), X[:, 0], "regression")
"""


def start(rank: int, port: int, *command: str, n: int = 2) -> subprocess.Popen:
    env = os.environ | {"RANK": str(rank), "WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    env |= {"LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *command], cwd=ROOT, env=env, text=True, **pipes)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def metrics(outputs: Path) -> dict[str, float]:
    (path,) = outputs.glob("*/*/metrics.json")
    return json.loads(path.read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [(), FEW_BYTES, ("kernel.lengthscale=auto",)], ids=["one pass", "many passes", "lengthscale"]
)
def test_two_processes_give_the_result_of_one(run, tmp_path, port, settings):
    compare(run, tmp_path, port, *SETTINGS, *settings)


@pytest.mark.slow
def test_two_processes_that_read_a_file_by_rows_give_the_result_of_one(run, tmp_path, port, rng):
    """4,500 training points; scale, lengthscale and landmarks are fitted to a sample of 4,096."""
    files = npy_files(tmp_path, *noisy_digits(rng, 6000))
    compare(run, tmp_path, port, *OF_FILES, *files, "approx=nystrom", "group=rotation")


@pytest.mark.slow
def test_two_processes_discover_the_group_that_one_does(run, tmp_path, port, rng):
    files = npy_files(tmp_path, *noisy_digits(rng, 120))
    compare(run, tmp_path, port, *OF_FILES, *files, "approx=nystrom")
    assert "-auto-" in folders(tmp_path)[-1].name


@pytest.mark.slow
def test_two_processes_with_an_encoder_give_the_result_of_one(run, tmp_path, port):
    encoder = ("encoder=patches", "encoder.size=3", "encoder.n_components=6", "encoder.pool_stride=2")
    settings = ("representation=raw", "approx=nystrom", "landmarks.source=orbit", "encoder.normalization=whitening")
    compare(run, tmp_path, port, *SETTINGS, *encoder, *settings)


@pytest.mark.slow
@pytest.mark.parametrize(("write", "n"), [(npy_shards, 2), (parquet_shards, 4)], ids=["npy, two", "parquet, four"])
def test_processes_that_share_parts_give_the_result_of_one(run, tmp_path, port, rng, write, n):
    """4,500 training points in parts of unequal sizes; scale, lengthscale and landmarks are of a sample of 4,096."""
    parts = write(tmp_path / "parts", *noisy_digits(rng, 6000), (900, 1600, 1000, 500, 2000))
    compare(run, tmp_path, port, *OF_FILES, *parts, "approx=nystrom", n=n)


@pytest.mark.slow
def test_a_bad_part_of_another_process_is_an_error_of_one_line(tmp_path, port, rng):
    X, y = noisy_digits(rng, 800)
    X[700, 0, 0] = np.nan
    parts = npy_shards(tmp_path / "parts", X, y, (200, 200, 200, 200))
    command = ("-m", "runners", *OF_FILES, *parts, "group=rotation", f"outputs={tmp_path / 'out'}")
    first, second = (start(rank, port, *command) for rank in (0, 1))
    for process, code, lines in ((first, 2, 1), (second, 0, 0)):
        _, err = process.communicate(timeout=240)
        assert process.returncode == code, err
        assert len([line for line in err.splitlines() if line.startswith("error")]) == lines
        assert (
            "part p3.npy: X has 1 values that are NaN or infinite, the first at index (100, 0, 0)" in err or not lines
        )
        assert "Traceback" not in err
    assert not list((tmp_path / "out").glob("*/*/run.json"))  # the run was refused before it computed anything


def compare(run, tmp_path: Path, port: int, *settings: str, n: int = 2) -> None:
    """Run the same command in ``n`` processes and in this one, and compare the results."""
    command = ("-m", "runners", *settings, f"outputs={tmp_path / 'several'}")
    started = [start(rank, port, *command, n=n) for rank in range(n)]
    run.ok(*settings)
    for process in started:
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
    several, one = metrics(tmp_path / "several"), metrics(tmp_path / "out")  # and the others left no folder
    assert one["test/accuracy"] > 0.5
    for key in ("test/accuracy", "train/accuracy", "learner/regularization", "kernel/lengthscale"):
        assert several[key] == pytest.approx(one[key], rel=1e-9)


@pytest.mark.slow
def test_two_processes_share_the_tiles_of_a_kernel_matrix(run, tmp_path, port):
    """400 x 400 values in float64, which exceed the memory; one process has eleven tiles of 19."""
    settings = (one for one in SETTINGS if not one.startswith("approx."))
    path = "learner.regularization=[0.0001,0.01]"
    compare(run, tmp_path, port, *settings, "approx=exact", "engine.memory=0.001", path)


TENSORS = """
import numpy as np, torch
from orbit.core import distributed
from orbit.learners import RidgeRegressor

rng = np.random.default_rng(0)
X = torch.from_numpy(rng.standard_normal((500, 6)))
Y, path = X[:, :2].numpy() ** 2, [1e-3, 1e-2, 1.0]
with distributed.job():
    own, learner = distributed.share(np.arange(500)), RidgeRegressor(path)
    learner.first_row = int(own[0])
    for rows in np.array_split(own, 3):
        learner.partial_fit(X[rows], Y[rows])
    assert type(learner._stream.moments._sums[0]).__name__ == "DeviceMatrix"
    learner.gather()
    if distributed.rank() == 0:
        whole = RidgeRegressor(path).fit(X.numpy(), Y)
        found = learner.finalize()
        np.testing.assert_allclose(found.coef_, whole.coef_, rtol=1e-10)
        np.testing.assert_allclose(found.path_scores_, whole.path_scores_, rtol=1e-8)
        print("equal")
"""


@pytest.mark.slow
def test_moments_on_a_device_are_added_over_two_processes(port):
    found = [process.communicate(timeout=240) for process in [start(rank, port, "-c", TENSORS) for rank in (0, 1)]]
    assert (found[0][0], found[1][0]) == ("equal\n", ""), found


@pytest.mark.slow
def test_a_process_that_dies_ends_the_job_with_an_error(port):
    first, second = (start(rank, port, "-c", DYING) for rank in (0, 1))
    _, err = first.communicate(timeout=240)
    second.communicate(timeout=60)
    assert second.returncode == 3
    assert first.returncode != 0
    assert "process 0 of 2 lost touch with another one" in err


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("engine.stream=false", "set engine.stream=true"),
        ("learner=adagrad", "cannot be shared by several processes"),
        ("runner=measure", "need runner=fit, found runner=measure; start one process for other runners"),
    ],
)
def test_settings_that_several_processes_cannot_run_are_rejected(monkeypatch, setting, expected):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match=expected):
        plan(quickly_composed(*SETTINGS, setting))


@pytest.mark.parametrize(
    ("device", "gpus", "expected"),
    [("cpu", 2, ("gloo", [])), ("auto", 2, ("nccl", [1])), ("cuda", 1, ("gloo", [0])), ("auto", 0, ("gloo", []))],
)
def test_each_process_uses_its_own_gpu(monkeypatch, device, gpus, expected):
    started, taken = [], []
    for key, value in {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpus > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    monkeypatch.setattr("torch.cuda.set_device", taken.append)
    monkeypatch.setattr("torch.distributed.init_process_group", started.append)
    monkeypatch.setattr("torch.distributed.destroy_process_group", lambda: None)
    with distributed.job(device):
        pass
    assert (*started, taken) == expected


def test_sums_of_one_process_are_unchanged():
    array = np.arange(3.0)
    distributed.all_reduce(array)
    assert distributed.broadcast(array) is array
    np.testing.assert_array_equal(array, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("approx", ["rf", "nystrom"])
def test_a_process_reads_only_its_share_and_the_sample(tmp_path, rng, monkeypatch, approx):
    """All other rows are NaN: they raise no error in process 1, and an error in process 0, which reads them."""
    monkeypatch.setattr("orbit.learners.streaming.SAMPLE_ROWS", 100)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    X, y = noisy_digits(rng, 800)
    files = npy_files(tmp_path, X, y)
    settings = (*files, f"approx={approx}", "approx.n_components=20", "engine.stream=true", "engine.progress=false")
    made = plan(quickly_composed(*settings))
    train = made.load().X_train
    sample = made.sample(len(train))
    assert len(sample) == 100
    mine = train.indices[np.union1d(own_rows(train), sample)]
    X[np.setdiff1d(np.arange(800), mine)] = np.nan
    npy_files(tmp_path, X, y)

    data, model = made.load(), pipeline(made, "classification")
    model["hyper"].fit(model["features"].fit_transform(represented(model, data.X_train[sample], made.engine())))
    stream = FeatureStream(model[:-1].transform, data.X_train, width(model), made.engine())
    seen = [rows for rows, psi in stream.batches(shuffle=False) if np.isfinite(psi).all()]
    np.testing.assert_array_equal(np.concatenate(seen), own_rows(train))
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(InputError, match="X, by rows of the file, has .* values that are NaN"):
        made.load()

"""The engine: every row, orbit point and unit exactly once; bounded memory; threads; errors; devices."""

import threading
import time
from collections import Counter

import numpy as np
import pytest
import torch

from orbit import Gaussian, Orbit, ParameterError, RandomFourier, Rotation, VonMises
from orbit.engine import Engine, direct, memory as engine_memory
from orbit.engine.embedding import Embedding, Scratch
from orbit.engine.strategy import Task
from orbit.testing.samples import signals


class Spy(Embedding):
    """An embedding that is 1 for every point and unit, and keeps a record of what it was given.

    Rows are told apart by their sums, which no turn of a polar image changes.
    """

    def __init__(self, units: int, broken_row: int | None = None, error: type[BaseException] = RuntimeError) -> None:
        self.units = self.width = self.n_outputs = units
        self.broken_row, self.error = broken_row, error
        self.seen: Counter[tuple[int, int, float]] = Counter()
        self.most_rows = self.most_units = self.most_bytes = self.active = self.most_active = 0
        self.threads: set[int] = set()
        self.blas_threads: set[int] = set()
        self.lock = threading.Lock()

    def add(self, points: torch.Tensor, weight: float, units: slice, total: torch.Tensor, scratch: Scratch) -> None:
        rows = [round(float(s)) for s in points.sum(1)]
        if self.broken_row in rows:
            raise self.error("tile is broken")
        values = scratch.matrix(1, len(points), units.stop - units.start)
        values.fill_(1.0)
        with self.lock:
            self.active += 1
            self.most_active = max(self.most_active, self.active)
            for row in rows:
                self.seen[row, units.start, weight] += 1
            self.most_rows = max(self.most_rows, len(points))
            self.most_units = max(self.most_units, units.stop - units.start)
            self.most_bytes = max(self.most_bytes, points.nbytes + total.nbytes + 2 * values.nbytes)
            self.threads.add(threading.get_ident())
            self.blas_threads.add(torch.get_num_threads())
        total[:, units].add_(values, alpha=weight)
        with self.lock:
            self.active -= 1


def numbered(n: int, shape: tuple[int, int] = (1, 7)) -> np.ndarray:
    """Polar images whose sum is their number."""
    X = np.random.default_rng(0).standard_normal((n, *shape))
    return X - X.mean((1, 2), keepdims=True) + np.arange(n)[:, None, None] / np.prod(shape)


def weights_of(orb: Orbit) -> list[float]:
    return [float(w) for w in orb.weights_ if w > 0]


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("memory", [1.0, 1e-4, 1e-7])
@pytest.mark.parametrize("units", [1, 700])
def test_every_row_orbit_point_and_unit_is_visited_once(units, memory, workers):
    n = 31 if memory < 1e-6 else 300
    X = numbered(n)
    orb = Orbit(Rotation("polar"), VonMises(1.0), size=11).fit(X)
    spy = Spy(units)
    features, _ = Engine(memory, workers).average(Task(spy, orb, X))
    np.testing.assert_allclose(features, 1.0, atol=1e-12)
    starts = {start for _, start, _ in spy.seen}
    expected = Counter(
        {(row, start, w): c for row in range(n) for start in starts for w, c in Counter(weights_of(orb)).items()}
    )
    assert spy.seen == expected


def test_tiles_stay_within_their_bounds():
    X = numbered(600)
    orb = Orbit(Rotation("polar"), size=9).fit(X)
    spy = Spy(1300)
    Engine(workers=1, device="cpu").average(Task(spy, orb, X))
    assert spy.most_rows <= direct.SINGLE.rows
    assert spy.most_units <= direct.SINGLE.units


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("megabytes", [0.05, 0.5, 4.0])
def test_a_tile_takes_no_more_than_its_share_of_the_budget(megabytes, workers):
    X = numbered(500)
    orb = Orbit(Rotation("polar"), size=9).fit(X)
    spy = Spy(400)
    Engine(megabytes / 1024, workers).average(Task(spy, orb, X))
    assert spy.most_bytes <= megabytes * 2**20 / workers


@pytest.fixture
def three_torch_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("group", [Rotation(), Rotation("polar")], ids=repr)
def test_tiles_on_a_gpu_are_larger(rng, monkeypatch, group):
    X = signals(rng, 600, (16, 16))
    fitted = RandomFourier(Gaussian(0.6), Orbit(group, size=4), 200, engine=Engine(workers=1), random_state=0)
    fitted.fit(X[:9])
    run, tiles, features = engine_memory.Workspace.run, [], []

    def counted(self, work, parts, description, **options):
        tiles[-1] += len(parts)
        run(self, work, parts, description, **options)

    monkeypatch.setattr(engine_memory.Workspace, "run", counted)
    for factor in (1, 64):
        monkeypatch.setattr(engine_memory.Workspace, "tile_factor", factor)
        tiles.append(0)
        features.append(fitted.transform(X))
    assert tiles[1] < tiles[0]
    np.testing.assert_allclose(*features, atol=1e-12)


def test_workers_share_the_tiles_and_run_single_threaded_blas(three_torch_threads):
    X = numbered(1000)
    orb = Orbit(Rotation("polar"), size=9).fit(X)
    alone, shared = Spy(50), Spy(50)
    Engine(workers=1).average(Task(alone, orb, X))
    Engine(workers=3).average(Task(shared, orb, X))
    assert alone.threads == {threading.get_ident()}
    assert 1 <= len(shared.threads) <= 3
    assert shared.most_active <= 3
    assert shared.blas_threads == {1}
    assert torch.get_num_threads() == 3


def test_workers_are_torchs_threads_by_default(three_torch_threads):
    X = numbered(300)
    orb = Orbit(Rotation("polar"), size=9).fit(X)
    spy = Spy(50)
    Engine(device="cpu").average(Task(spy, orb, X))
    assert 1 <= len(spy.threads) <= 3
    assert spy.most_rows == 100, "three tiles, so that no worker is idle"


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_error_in_one_tile_is_raised_and_no_thread_continues(three_torch_threads, workers, error):
    X = numbered(900)
    orb = Orbit(Rotation("polar"), size=9).fit(X)
    spy = Spy(5, broken_row=400, error=error)
    with pytest.raises(error, match="tile is broken"):
        Engine(workers=workers).average(Task(spy, orb, X))
    seen = len(spy.seen)
    assert torch.get_num_threads() == 3
    time.sleep(0.02)
    assert len(spy.seen) == seen, "no thread goes on"
    np.testing.assert_allclose(Engine(workers=workers).average(Task(Spy(5), orb, X))[0], 1.0)


def test_elements_of_zero_weight_are_skipped():
    X = numbered(5)
    orb = Orbit(Rotation("polar"), size=4).fit(X)
    orb.weights_ = np.array([0.5, 0.0, 0.5, 0.0])
    spy = Spy(2)
    np.testing.assert_allclose(Engine(workers=1).average(Task(spy, orb, X))[0], 1.0)
    assert sum(spy.seen.values()) == 5 * 2


def test_orbit_points_are_flattened(rng):
    X = rng.random((3, 4, 5))
    orb = Orbit(Rotation(), size=6).fit(X)
    points = Engine().orbit_points(orb, X)
    assert points.shape == (6, 3, 20)
    np.testing.assert_allclose(points.reshape(6, 3, 4, 5), Rotation().act(orb.elements_, X))


def test_row_batches_cover_all_rows_within_the_budget():
    engine = Engine(memory=1e-6)  # 1073 bytes
    batches = list(engine.row_batches(100, 100))
    assert [i for b in batches for i in range(b.start, b.stop)] == list(range(100))
    assert max(b.stop - b.start for b in batches) == 10
    assert len(list(engine.row_batches(5, 10**9))) == 5, "at least a row at a time"


# ---- precision -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "given", "expected"),
    [
        ("auto", np.float32, np.float32),
        ("auto", np.float64, np.float64),
        ("auto", np.int64, np.float32),
        ("float64", np.float32, np.float64),
        ("float32", np.float64, np.float32),
    ],
)
def test_precision(setting, given, expected):
    assert Engine(dtype=setting).result_dtype(np.zeros(1, dtype=given)) == expected


def test_tensor_is_a_copy(rng):
    array = rng.random(4)
    Engine().tensor(array, np.dtype(np.float64)).zero_()
    assert array.min() > 0


# ---- devices and parameters ------------------------------------------------------------------------------------------


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_cuda_without_a_gpu_is_rejected_before_fit():
    for call in (Engine(device="cuda").check, RandomFourier(engine=Engine(device="cuda")).check):
        with pytest.raises(
            ParameterError, match="^engine.device: expected 'cpu' or 'auto' on a machine without a CUDA GPU"
        ):
            call()


def test_moved_points_are_encoded_a_few_at_a_time(rng, monkeypatch):
    X = rng.random((7, 6, 6))
    orbit = Orbit(Rotation(), size=5).fit(X)
    whole = Engine().orbit_points(orbit, X)
    monkeypatch.setattr("orbit.engine.engine._MOVED_NUMBERS", 2 * 5 * 36)
    np.testing.assert_array_equal(Engine().orbit_points(orbit, X), whole)
    assert whole.shape == (5, 7, 36)

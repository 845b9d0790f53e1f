"""A GPU gives the results of the processor. Every test here needs one: pytest -m gpu."""

import numpy as np
import pytest
import torch
from command_line import fitted

from orbit import Engine, Gaussian, Laplacian, Orbit, Rotation, SkeletonKernel, VonMises
from orbit.approx import CumulativeDistribution, Exact, Nystrom, RandomFourier, RandomSkeleton
from orbit.core.compiled import gpu_loops
from orbit.learners import AdaGradClassifier, KernelRidgeRegressor, RidgeRegressor
from orbit.testing.samples import signals

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")]

TOLERANCE = {"float64": 1e-10, "float32": 1e-4}
LAYERS = [{"kind": "conv", "size": 3, "stride": 2}, {"kind": "full"}]

MAPS = {
    "rf": lambda **parts: RandomFourier(Gaussian(0.6), n_components=40, **parts),
    "nystrom": lambda **parts: Nystrom(Gaussian(0.6), n_components=20, **parts),
    "nystrom, L1": lambda **parts: Nystrom(Laplacian(2.0), n_components=20, **parts),
    "exact": lambda **parts: Exact(Gaussian(0.6), **parts),
    "cdf": lambda **parts: CumulativeDistribution(n_components=12, n_bins=8, **parts),
    "cdf, sketched": lambda **parts: CumulativeDistribution(n_components=12, n_bins=8, sketch=30, **parts),
    "skeleton": lambda **parts: RandomSkeleton(SkeletonKernel(layers=LAYERS), n_components=60, **parts),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("path", ["direct", "template", "spectral"])
@pytest.mark.parametrize("name", MAPS)
def test_features_are_those_of_the_processor(rng, name, path, dtype):
    X = signals(rng, 60, (9, 10)).astype(dtype)
    polar = path == "spectral"
    orb = Orbit(Rotation("polar" if polar else "cartesian"), VonMises(0.5), size=9)
    projected = name not in ("skeleton", "nystrom, L1", "exact")
    make = lambda device: MAPS[name](  # noqa: E731
        orbit=orb, engine=Engine(device=device, path=path if projected else "direct"), random_state=0
    )
    cpu, gpu = (make(device).fit(X) for device in ("cpu", "cuda"))
    psi, expected = gpu.transform(X), cpu.transform(X)
    # a rounded projection on the other side of a threshold is one count of nine, times the scale of a column
    counts = float(np.max(cpu.scale_)) / 4 if "cdf" in name and dtype == "float32" else 0.0
    np.testing.assert_allclose(psi @ psi.T, expected @ expected.T, atol=TOLERANCE[dtype] + counts)
    few = gpu.transform(X[6::-1])[::-1]
    if name != "exact":
        np.testing.assert_allclose(few @ few.T, (expected @ expected.T)[:7, :7], atol=TOLERANCE[dtype] + counts)
    resident = gpu.transform_on_device(X)
    assert resident.is_cuda
    np.testing.assert_allclose(resident.cpu().numpy(), psi, atol=TOLERANCE[dtype] / 10)


@pytest.mark.parametrize("memory", [1.0, 1e-4])
def test_results_of_many_copies_are_those_of_one(rng, memory, monkeypatch):
    monkeypatch.setattr("orbit.engine.memory._STAGED_BYTES", 1000)
    X = signals(rng, 300, (6, 7)).astype(np.float32)
    orb = Orbit(Rotation("cartesian"), size=5)
    psi = [
        RandomFourier(Gaussian(0.6), orb, 33, engine=Engine(memory, device=device), random_state=0).fit_transform(X)
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_allclose(psi[1], psi[0], atol=1e-4)


SKELETONS = {
    "pairs": {},
    "phase": {"variant": "phase"},
    "radii": {"kernel": SkeletonKernel(LAYERS, base="sphere", block=1)},
    "fourier": {"kernel": SkeletonKernel([LAYERS[0] | {"activation": "exp"}, LAYERS[1]]), "bottom": "fourier"},
    "real": {"kernel": SkeletonKernel(LAYERS, base="binary")},
}


@pytest.mark.parametrize("size", [1, 6])
@pytest.mark.parametrize("name", SKELETONS)
def test_compiled_features_of_skeletons_are_those_of_torch(rng, name, size, monkeypatch):
    X = signals(rng, 150, (9, 10)).astype(np.float32)
    settings = {"kernel": SkeletonKernel(LAYERS)} | SKELETONS[name]
    orb, engine = Orbit(Rotation("cartesian"), size=size), Engine(device="cuda")
    phi = RandomSkeleton(orbit=orb, n_components=700, engine=engine, random_state=0, **settings).fit(X)
    assert gpu_loops("orbit.approx.skeleton_gpu", torch.zeros(1, device="cuda")) is not None
    compiled = [phi.transform(X[rows]) for rows in (slice(None), slice(3, 4))]
    monkeypatch.setattr("orbit.approx.skeleton.gpu_loops", lambda *_: None)
    expected = phi.transform(X)
    np.testing.assert_allclose(compiled[0], expected, atol=1e-5)
    np.testing.assert_allclose(compiled[1], expected[3:4], atol=1e-5)


def test_learning_from_tensors_is_learning_from_arrays(rng):
    X, y = rng.standard_normal((200, 30)).astype(np.float32), rng.integers(0, 3, 200)
    learners = []
    for device, points in (("cpu", X), ("cuda", X), ("cuda", torch.from_numpy(X).cuda())):
        learner = AdaGradClassifier("hinge", learning_rate=[0.03, 0.1], epochs=2, engine=Engine(device=device))
        for _ in range(2):
            for rows in (slice(0, 100), slice(100, 200)):
                learner.partial_fit(points[rows], y[rows], classes=[0, 1, 2])
            learner.end_epoch()
        learners.append(learner.finalize())
    for learner in learners[1:]:
        assert learner.learning_rate_ == learners[0].learning_rate_
        np.testing.assert_allclose(learner.coef_, learners[0].coef_, atol=1e-4)
        np.testing.assert_allclose(learner.predict(X), learners[0].predict(X))


LEARNERS = {
    "one": lambda: RidgeRegressor(1e-3),
    "path": lambda: RidgeRegressor([1e-3, 1e-2, 1e-1]),
    "hold_out": lambda: RidgeRegressor([1e-3, 1e-2, 1e-1], selection="hold_out", random_state=0),
    "krr": lambda: KernelRidgeRegressor([1e-3, 1e-2, 1e-1]),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(3000, 200), (200, 3000), (12_000, 2_000)], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_solutions_of_tensors_are_those_of_arrays(rng, name, shape, dtype):
    X = (rng.standard_normal(shape) * np.geomspace(1, 0.01, shape[1])).astype(dtype)
    Y, weights = X[:, :3] + 0.1 * rng.standard_normal((len(X), 3)), rng.uniform(0.5, 2, len(X))
    for options in ({}, {"sample_weight": weights}):
        cpu, gpu = (LEARNERS[name]().fit(each, Y, **options) for each in (X, torch.from_numpy(X).cuda()))
        assert gpu.regularization_ == cpu.regularization_
        found = gpu.predict(torch.from_numpy(X[:100]).cuda())
        np.testing.assert_allclose(found, cpu.predict(X[:100]), atol=10 * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", LEARNERS)
def test_kernel_values_stay_on_the_gpu(rng, name, dtype):
    X = signals(rng, 4_200, (6, 7)).astype(dtype)
    Y = X.reshape(len(X), -1)[:, :2] ** 2 + 0.1 * rng.standard_normal((len(X), 2))
    found = []
    for device in ("cpu", "cuda"):
        phi = Exact(Gaussian(2.0), precomputed=True, engine=Engine(device=device)).fit(X[:4_000])
        transform = phi.transform_on_device if device == "cuda" else phi.transform
        learner = LEARNERS[name]().fit(transform(X[:4_000]), Y[:4_000])
        found.append((learner.regularization_, learner.predict(transform(X[4_000:]))))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-8 if dtype == "float64" else 1e-3)


RUNS = {
    "ridge": ["approx=rf", "learner=ridge"],
    "one regularization": ["approx=nystrom", "learner=ridge", "learner.regularization=1e-4"],
    "kernel matrix": ["approx=exact", "learner=ridge"],
    "kernel matrix, float64": ["approx=exact", "learner=ridge", "engine.dtype=float64"],
    "krr": ["dataset=vector_field", "group=identity", "approx=exact", "learner=krr"],
    "ridge, stream": ["approx=rf", "learner=ridge", "engine.stream=true", "engine.memory=0.01"],
    "adagrad, stream": ["approx=rf", "learner=adagrad", "engine.stream=true", "engine.memory=0.001"],
    "skeleton": ["group=identity", "approx=skeleton", "kernel=skeleton", "learner=adagrad", "engine.stream=true"],
    "augmented": ["approx=rf", "learner=adagrad", "engine.stream=true", "augmentation=image"],
    "second layer": ["approx=nystrom", "hyper=gaussian", "learner=adagrad", "engine.stream=true"],
    "network": ["group=identity", "kernel=skeleton", "approx=points", "learner=network", "engine.stream=true"],
    "operators": ["dataset=vector_field", "group=identity", "approx=orff", "kernel=curl_free", "learner=adagrad"],
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_as_accurate_as_on_the_processor(name):
    found = []
    for device in ("cpu", "cuda"):
        metrics = fitted(*RUNS[name], "engine.progress=false", "seed=3", f"engine.device={device}").metrics
        found.append(metrics.get("test/accuracy", metrics.get("test/r2")))
    # gradient steps enlarge rounding: 15 of 797 points
    assert found[1] == pytest.approx(found[0], abs=0.02)

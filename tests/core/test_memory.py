"""The memory that a process can have: control groups, limits of the address space, and refusals by it."""

import resource

import numpy as np
import psutil
import pytest
from samples import draw_classes

import orbit
from orbit import Images, InputError, VectorField
from orbit.core import memory
from papers.low_rank import LowRankMultitask


def group(folder, limit: str, name: str = "memory.max"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(limit + "\n")


def test_limits_of_control_groups_and_of_those_above_them(tmp_path):
    group(tmp_path / "cgroup" / "a" / "b", "max")
    group(tmp_path / "cgroup" / "a", "3000")
    group(tmp_path / "cgroup" / "memory" / "c", "2000", "memory.limit_in_bytes")
    group(tmp_path, "1000")  # outside
    (tmp_path / "self").write_text("4:memory:/c/d\n3:cpu:/c\n0::/a/b\n")
    assert sorted(memory._cgroup_limits(tmp_path / "self", tmp_path / "cgroup")) == [2000, 3000]
    assert memory._cgroup_limits(tmp_path / "none") == []


def test_the_smallest_limit_counts(monkeypatch):
    in_machine = psutil.virtual_memory().total + psutil.swap_memory().total
    assert 2**20 < memory.process_bytes() <= in_machine
    monkeypatch.setattr(memory, "_cgroup_limits", lambda membership: [2**60, 12345])
    assert memory.process_bytes() == 12345
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (1234, -1))
    assert memory.process_bytes() == 1234


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        (
            lambda path: VectorField(size=2 * 10**9).load(0),
            "dataset.size: 2,000,000,000 points take at least 373 GiB of memory",
        ),
        (lambda path: VectorField(test_size=10**10).load(0), "dataset.test_size: 10,000,000,000 points"),
        (lambda path: LowRankMultitask(size=2 * 10**9).load(0), "dataset.size: 2,000,000,000 points"),
        (lambda path: LowRankMultitask(n_waves=2 * 10**9).load(0), "dataset.n_waves: 2,000,000,000 frequencies"),
        (lambda path: Images(path, resize=[60_000, 60_000]).load(0), "dataset.resize: 40 pictures of 60,000 x"),
        (lambda path: Images(path, resize=[9**9, 9**9]).load(0), "dataset.resize: 40 pictures of 387,420,489 x"),
    ],
)
def test_what_cannot_fit_is_refused_before_it_is_made(refused, expected, tmp_path, monkeypatch):
    draw_classes(tmp_path)
    monkeypatch.setattr(memory, "process_bytes", lambda: 8 * 2**30)
    with pytest.raises(InputError, match=f"^{expected}.* this process can have 8 GiB$"):
        refused(str(tmp_path))


@pytest.mark.parametrize("rule", ["monte_carlo", "qmc", "quadrature"])
def test_orbits_that_cannot_fit_are_refused(rule, monkeypatch):
    monkeypatch.setattr(memory, "process_bytes", lambda: 8 * 2**30)
    orb = orbit.Orbit(orbit.build("group", "rotation"), size=10**9, rule=rule)
    with pytest.raises(InputError, match="^orbit.size: 1,000,000,000 elements take at least 22 GiB of memory"):
        orb.fit(np.zeros((1, 4, 4)))


def test_all_elements_of_a_finite_group_fit_at_every_size(monkeypatch):
    monkeypatch.setattr(memory, "process_bytes", lambda: 8 * 2**30)
    orb = orbit.Orbit(orbit.build("group", "dihedral"), size=10**9, rule="quadrature")
    assert len(orb.fit(np.zeros((1, 4, 4))).weights_) == 8

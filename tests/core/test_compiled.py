"""Loops for a GPU, on a machine that need not have one."""

import sys

import torch

from orbit.core import compiled


def test_a_triton_that_cannot_be_imported_is_warned_of_once_and_torch_used(monkeypatch, tmp_path, log_messages):
    (tmp_path / "triton.py").write_text("raise ImportError('cannot import name ir')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("triton", "orbit.approx.skeleton_gpu"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    compiled._compiled_for_gpu.cache_clear()
    try:
        assert [compiled._compiled_for_gpu("orbit.approx.skeleton_gpu") for _ in range(2)] == [None, None]
    finally:
        compiled._compiled_for_gpu.cache_clear()
    (message,) = log_messages
    assert message.startswith("Triton cannot compile orbit.approx.skeleton_gpu, so torch is used")
    assert message.endswith("cannot import name ir")


def test_arrays_that_are_not_float32_on_a_gpu_have_no_loops_there():
    for dtype in (torch.float32, torch.float64):
        assert compiled.gpu_loops("orbit.approx.skeleton_gpu", torch.zeros(1, dtype=dtype)) is None

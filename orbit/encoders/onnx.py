"""Outputs of a pretrained network from an ONNX file."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from orbit.core.errors import InputError, suggestion
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.encoders.base import Encoder
from orbit.registry import register

# Batch size for networks that do not fix it.
_BATCH = 64

_PRECISIONS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


@register("encoder", "onnx")
@dataclass(eq=False, repr=False)
class Onnx(Encoder):
    """One output of a frozen network, flattened; needs onnxruntime (``pip install orbit-kernels[onnx]``).

    The network takes moved points, so that its outputs are averaged over the orbit. It
    runs on the processor, with ONNX's standard operators only, one thread for each worker
    of the engine. The fitted encoder holds the file's content, not its path.

    Parameters
    ----------
    path : str or None
        The file, with its weights inside. There is no default.
    output : str or None
        Name of the output; None is the first. An intermediate result can only be
        chosen if it is an output of the file.
    layout : {"NCHW", "NHWC", "none"}
        How images (height, width) or (height, width, channels) are passed to the
        network; ``none``: points unchanged, for vectors and sequences.
    scale, shift : float or list of float
        The network takes scale x + shift; a list has one number for each channel.

    Attributes
    ----------
    model_ : bytes
        Content of the file.

    Examples
    --------
    >>> Onnx(path="network.onnx", output="features", scale=2.0, shift=-1.0)
    Onnx(path='network.onnx', output='features', scale=2.0, shift=-1.0)
    """

    path: str | None = None
    output: str | None = None
    layout: Literal["NCHW", "NHWC", "none"] = "NCHW"
    scale: float | list[float] = 1.0
    shift: float | list[float] = 0.0

    def check(self) -> None:
        super().check()
        _runtime()
        if self.path is None or not user_path(self.path, "encoder.path").is_file():
            raise self.wrong("path", "the path of a network (.onnx file)")

    def input_files(self) -> list[Path]:
        return [] if self.path is None else [user_path(self.path, "encoder.path")]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self.layout != "none" and len(shape) not in (2, 3):
            raise self._refuse(
                shape, f"images (height, width) or (height, width, channels) in encoder.layout={self.layout}"
            )
        channels = shape[2] if len(shape) == 3 else 1
        for name in ("scale", "shift"):
            value = getattr(self, name)
            if isinstance(value, Sequence) and len(value) not in (1, channels):
                raise self.wrong(name, f"a number, or one for each of {channels} channels")

    def _fit(self, X: np.ndarray, random_state: RandomState) -> None:
        self.model_ = user_path(str(self.path), "encoder.path").read_bytes()
        self._kept.clear()
        session = self._session()
        if len(session.get_inputs()) != 1:
            names = ", ".join(each.name for each in session.get_inputs())
            raise InputError(f"{self.label()} takes networks with one input, found {names} in {self.path}")
        self._check_input(session.get_inputs()[0])
        outputs = [each.name for each in session.get_outputs()]
        if self.output is not None and self.output not in outputs:
            hint = suggestion(self.output, outputs)
            raise InputError(
                f"encoder.output={self.output}: no such output in {self.path}{hint} It has {', '.join(outputs)}."
            )
        self.output_ = self.output or outputs[0]
        self.n_outputs_ = self._encode(torch.from_numpy(np.array(X[:1]))).shape[1]

    def _check_input(self, expected: Any) -> None:
        found = self._arranged(torch.zeros(1, *self.shape_in_)).shape[1:]
        sizes = expected.shape[1:]  # names stand for any size
        fits = len(found) == len(sizes) and all(
            not isinstance(a, int) or a == b for a, b in zip(sizes, found, strict=True)
        )
        if not fits:
            raise InputError(
                f"{self.label()}: the input {expected.name!r} of {self.path} has shape {_shape(sizes)}, points of "
                f"shape {self.shape_in_} have {_shape(found)} in encoder.layout={self.layout}: change it or the points"
            )
        if expected.type not in _PRECISIONS:
            raise InputError(
                f"{self.label()} gives numbers, the input {expected.name!r} of {self.path} is {expected.type}"
            )

    def _arranged(self, points: Tensor) -> Tensor:
        """Points scaled, in the network's layout, shape (n, ...)."""
        if self.layout != "none" and points.ndim == 3:
            points = points[..., None]
        scale, shift = (torch.as_tensor(value, dtype=points.dtype) for value in (self.scale, self.shift))
        scaled = points * scale + shift
        return scaled.permute(0, 3, 1, 2) if self.layout == "NCHW" else scaled

    def _encode(self, points: Tensor) -> Tensor:
        session = self._session()
        expected = session.get_inputs()[0]
        given = self._arranged(points.cpu()).numpy().astype(_PRECISIONS[expected.type])
        fixed = expected.shape[0] if isinstance(expected.shape[0], int) else None
        found = [
            self._run(session, expected.name, given[i : i + (fixed or _BATCH)], fixed)
            for i in range(0, len(given), fixed or _BATCH)
        ]
        return torch.from_numpy(np.concatenate(found)).to(points)

    def _run(self, session: Any, name: str, points: np.ndarray, fixed: int | None) -> np.ndarray:
        """Outputs for a batch, which is padded to ``fixed`` points if the network fixes the batch size."""
        missing = (fixed or len(points)) - len(points)
        padded = np.concatenate([points, np.repeat(points[-1:], missing, axis=0)]) if missing else points
        (found,) = session.run([self.output_], {name: np.ascontiguousarray(padded)})
        if not isinstance(found, np.ndarray) or found.ndim == 0 or len(found) != len(padded):
            raise InputError(f"encoder.output={self.output_} of {self.path} is not one array with a row for each point")
        return found[: len(points)].reshape(len(points), math.prod(found.shape[1:])).astype(np.float64)

    def _session(self) -> Any:
        with _LOCK:
            if "session" not in self._kept:
                self._kept["session"] = _open(self.model_, str(self.path))
            return self._kept["session"]


_LOCK = threading.Lock()


def _runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise InputError("encoder=onnx needs onnxruntime: pip install 'orbit-kernels[onnx]'") from None
    return onnxruntime


def _open(model: bytes, path: str) -> Any:
    runtime = _runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # the engine has its own threads
    options.log_severity_level = 4
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own classes have no common base
        reason = " ".join(str(error).split())
        raise InputError(f"encoder.path={path}: onnxruntime cannot read this file ({reason})") from None


def _shape(sizes: Sequence[Any]) -> str:
    return f"(n, {', '.join(str(size) for size in sizes)})"

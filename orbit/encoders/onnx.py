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
from torch.nn import functional

from orbit.core.errors import InputError, suggestion
from orbit.core.linalg import standardization
from orbit.core.params import PositiveInt
from orbit.core.paths import user_path
from orbit.core.random import RandomState
from orbit.encoders.base import Encoder
from orbit.registry import register

# Batch size for networks that do not fix it.
_BATCH = 64

# Points whose vectors give means and standard deviations.
_STANDARD_POINTS = 500

_PRECISIONS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}


@register("encoder", "onnx")
@dataclass(eq=False, repr=False)
class Onnx(Encoder):
    """One output of a frozen network, flattened or pooled; needs onnxruntime (``pip install orbit-kernels[onnx]``).

    The network takes moved points, so that its outputs are averaged over the orbit. It
    runs on the processor, with ONNX's standard operators only, one thread for each worker
    of the engine. The fitted encoder holds the file's content, not its path.

    Parameters
    ----------
    path : str or None
        The file, with its weights inside. There is no default.
    output : str or None
        Name of the output; None is the first. An intermediate result can only be
        chosen if it is an output of the file: ``onnx.utils.extract_model`` makes it one.
    layout : {"NCHW", "NHWC", "none"}
        How images (height, width) or (height, width, channels) are passed to the
        network; ``none``: points unchanged, for vectors and sequences.
    scale, shift : float or list of float
        The network takes scale x + shift; a list has one number for each channel of the network.
    channels : {"together", "apart"}
        ``together``: the channels of a point are those of the network. ``apart``: every channel of a point is a
        picture of its own, in all channels of the network, and the vectors of all channels are side by side: for
        grey pictures, and for stains and bands of which a network of three colours knows nothing.
    resize : int >= 1 or None
        Images are resized to squares of so many pixels, bilinearly, and smoothed where they become smaller.
    pooling : {"none", "mean"}
        ``mean``: an output of maps, (n, maps, height, width) or, in ``layout=NHWC``, (n, height, width, maps), is
        averaged over its places; what is left says nothing about where something is in a picture.
    standardize : bool
        Whether every coordinate of the vector gets mean zero and variance one over the sample; one that is constant
        there becomes zero.

    Attributes
    ----------
    model_ : bytes
        Content of the file.
    mean_, scale_ : array, shape (n_outputs_,)
        With ``standardize``: the vector v becomes (v - mean_) scale_.

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
    channels: Literal["together", "apart"] = "together"
    resize: PositiveInt | None = None
    pooling: Literal["none", "mean"] = "none"
    standardize: bool = False

    def check(self) -> None:
        super().check()
        _runtime()
        if self.path is None or not user_path(self.path, "encoder.path").is_file():
            raise self.wrong("path", "the path of a network (.onnx file)")
        for name, default in (("channels", "together"), ("resize", None), ("pooling", "none")):
            if self.layout == "none" and getattr(self, name) != default:
                raise self.wrong(name, f"{default} in encoder.layout=none, whose points are no images,")

    def input_files(self) -> list[Path]:
        return [] if self.path is None else [user_path(self.path, "encoder.path")]

    def check_shape(self, shape: tuple[int, ...]) -> None:
        if self.layout != "none" and len(shape) not in (2, 3):
            raise self._refuse(
                shape, f"images (height, width) or (height, width, channels) in encoder.layout={self.layout}"
            )
        if self.channels == "together":
            self._check_scales(_channels(shape))

    def _check_scales(self, channels: int) -> None:
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
        sample = torch.from_numpy(np.array(X[: _STANDARD_POINTS if self.standardize else 1]))
        vectors = self._vectors(sample)
        self.n_outputs_ = vectors.shape[1]
        if self.standardize:
            self.mean_, self.scale_ = standardization(vectors)

    def _check_input(self, expected: Any) -> None:
        sizes = expected.shape[1:]  # names stand for any size
        axis = -1 if self.layout == "NHWC" else 0
        if self.channels == "apart":
            self.channels_in_ = sizes[axis] if len(sizes) == 3 and isinstance(sizes[axis], int) else 1
            self._check_scales(self.channels_in_)
        found = self._arranged(self._pictures(torch.zeros(1, *self.shape_in_))).shape[1:]
        fits = len(found) == len(sizes) and all(
            not isinstance(a, int) or a == b for a, b in zip(sizes, found, strict=True)
        )
        if not fits:
            raise InputError(
                f"{self.label()}: the input {expected.name!r} of {self.path} has shape {_shape(sizes)}, points of "
                f"shape {self.shape_in_} have {_shape(found)} in encoder.layout={self.layout}: change it or the points"
                f"{'' if self.layout == 'none' else ', or set encoder.resize or encoder.channels=apart'}"
            )
        if expected.type not in _PRECISIONS:
            raise InputError(
                f"{self.label()} gives numbers, the input {expected.name!r} of {self.path} is {expected.type}"
            )

    def _pictures(self, points: Tensor) -> Tensor:
        """The pictures that the network takes one by one: points, or each of their channels, shape (m, ...)."""
        if self.layout == "none":
            return points
        pictures = points if points.ndim == 4 else points[..., None]
        return pictures.movedim(-1, 1).flatten(0, 1)[..., None] if self.channels == "apart" else pictures

    def _arranged(self, pictures: Tensor) -> Tensor:
        """Pictures resized and scaled, in the network's layout, shape (m, ...)."""
        if self.resize is not None:
            size, first = (self.resize, self.resize), pictures.movedim(-1, 1)
            pictures = functional.interpolate(first, size, mode="bilinear", antialias=True).movedim(1, -1)
        if self.channels == "apart":
            pictures = pictures.expand(-1, -1, -1, self.channels_in_)
        scale, shift = (torch.as_tensor(value, dtype=pictures.dtype) for value in (self.scale, self.shift))
        scaled = pictures * scale + shift
        return scaled.movedim(-1, 1) if self.layout == "NCHW" else scaled

    def _encode(self, points: Tensor) -> Tensor:
        vectors = self._vectors(points.cpu())
        return torch.from_numpy((vectors - self.mean_) * self.scale_ if self.standardize else vectors).to(points)

    def _vectors(self, points: Tensor) -> np.ndarray:
        """Vectors of points before they are standardised, shape (n, n_outputs_), in double precision."""
        session = self._session()
        expected = session.get_inputs()[0]
        fixed = expected.shape[0] if isinstance(expected.shape[0], int) else None
        found = []
        for pictures in self._pictures(points).split(fixed or _BATCH):
            given = self._arranged(pictures).numpy().astype(_PRECISIONS[expected.type])
            found.append(self._run(session, expected.name, given, fixed))
        return np.concatenate(found).reshape(len(points), -1)

    def _run(self, session: Any, name: str, pictures: np.ndarray, fixed: int | None) -> np.ndarray:
        """Outputs for a batch, which is padded to ``fixed`` pictures if the network fixes the batch size."""
        missing = (fixed or len(pictures)) - len(pictures)
        padded = np.concatenate([pictures, np.repeat(pictures[-1:], missing, axis=0)]) if missing else pictures
        (found,) = session.run([self.output_], {name: np.ascontiguousarray(padded)})
        if not isinstance(found, np.ndarray) or found.ndim == 0 or len(found) != len(padded):
            raise InputError(f"encoder.output={self.output_} of {self.path} is not one array with a row for each point")
        found = found[: len(pictures)].astype(np.float64)
        if self.pooling == "mean":
            if found.ndim != 4:
                shape = _shape(found.shape[1:])
                raise self.wrong("pooling", f"none for an output that is no maps: {self.output_} has shape {shape},")
            found = found.mean((2, 3) if self.layout == "NCHW" else (1, 2))
        return found.reshape(len(pictures), math.prod(found.shape[1:]))

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


def _channels(shape: tuple[int, ...]) -> int:
    """Of a picture (height, width) or (height, width, channels)."""
    return shape[2] if len(shape) == 3 else 1


def _shape(sizes: Sequence[Any]) -> str:
    return f"(n, {', '.join(str(size) for size in sizes)})"

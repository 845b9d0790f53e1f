"""Comparison of patch features with their own matrix products and exponentials."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from benchmarks.comparisons.base import Comparison, represented_images, slices
from orbit.core.errors import InputError
from orbit.core.threads import in_threads
from orbit.encoders import Patches
from orbit.encoders.layer import Layer
from orbit.encoders.layer_run import LayerRun
from orbit.engine.buffers import Reused
from orbit.kernels import Gaussian
from runners.config.plan import Plan

# Rows of a tile of the engine.
_ROWS = 256


# Landmarks, side and share of the points of the second case, colour pictures.
_LANDMARKS, _SIDE, _FEWER = 128, 96, 16


def encoder(plan: Plan, n_points: int, threads: int) -> Comparison:
    """One layer of ``encoder=patches`` against its own products and exponentials, at the same shapes and threads.

    Images as they are, and pictures of 96 x 96 x 3 with 128 landmarks.
    """
    patches = plan.component("encoder")
    if not isinstance(patches, Patches) or patches.reduce or not _is_one_gaussian_layer(patches.layers):
        raise InputError(
            "runner.compare=encoder needs encoder=patches with one layer, encoder.kernel=exponential and "
            "encoder.approx=nystrom"
        )
    pictures = represented_images(plan, max(1, n_points // _FEWER), _SIDE)[..., None] * np.array(
        [1.0, 0.8, 0.6], np.float32
    )
    large = clone(patches)
    large.layers[0].n_components = _LANDMARKS
    cases: dict[str, Callable[[], object]] = {}
    ratios: dict[str, tuple[str, str]] = {}
    for size, each, X in (("", patches, represented_images(plan, n_points)), (f" {_SIDE}", large, pictures)):
        each.fit(X, plan.seed("approx"))
        names = f"encoder{size}", f"products{size}"
        cases |= zip(names, _cases(each, torch.from_numpy(X), threads), strict=True)
        ratios[f"encoder/products{size}"] = names
    return Comparison(cases, ratios)


def _cases(patches: Patches, points: Tensor, threads: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """The encoder of points, and its products and exponentials alone."""
    (layer,) = patches.layers_
    kept = Reused[_Products]()

    def on_tiles(work: Callable[[Tensor], object]) -> None:
        def in_inference_mode(rows: slice) -> None:
            with torch.inference_mode():
                work(points[rows])

        in_threads(in_inference_mode, slices(len(points), _ROWS), threads)

    def products() -> None:
        with kept.per_thread(lambda: _Products(layer, points), at_most=threads) as mine:
            on_tiles(lambda tile: mine()(tile))

    return lambda: on_tiles(patches.encode), products


def _is_one_gaussian_layer(layers: list[Layer] | None) -> bool:
    return (
        layers is not None
        and len(layers) == 1
        and isinstance(layers[0].kernel, Gaussian)
        and layers[0].approx == "nystrom"
    )


class _Products:
    """The products of patches with templates, the exponentials, and the products that pool and normalise."""

    def __init__(self, layer: Layer, like: Tensor) -> None:
        self.n = layer.tile(like.device).points
        self.run = LayerRun(layer, like, self.n)
        self.places = [(rows.stop - rows.start, *layer.positions_.counts[1:], self.n) for rows in self.run.strips]
        self.patches = [like.new_zeros(self.run.k, math.prod(places)) for places in self.places]
        self.values = like.new_empty(
            max(len(each) * patches.shape[1] for _, each in self.run.blocks for patches in self.patches)
        )
        self.pooled = like.new_empty(1, layer.n_templates_, *layer.shape_out_[1:], self.n)

    def __call__(self, points: Tensor) -> None:
        linear = self.run.linear
        assert linear is not None
        for _ in range(-(-len(points) // self.n)):
            start = 0
            for places, patches in zip(self.places, self.patches, strict=True):
                for block, templates in self.run.blocks:
                    values = self.values[: len(templates) * patches.shape[1]].view(len(templates), -1)
                    torch.mm(templates, patches, out=values).exp2_()
                    self.run.pool.add(values.view(-1, *places), start, self.pooled[:, block], None)
                start += places[0]
            torch.mm(linear, self.pooled.view(linear.shape[1], -1))

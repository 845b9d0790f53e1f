"""Comparison of patch features with their own matrix products and exponentials."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.comparisons.base import Comparison, represented_images, slices
from orbit.core.errors import InputError
from orbit.core.threads import in_threads
from orbit.encoders import Patches
from orbit.encoders.layer import Layer, LayerRun
from orbit.engine.buffers import Reused
from orbit.kernels import Gaussian
from runners.config.plan import Plan

# Rows of a tile of the engine.
_ROWS = 256


def encoder(plan: Plan, n_points: int, threads: int) -> Comparison:
    """One layer of ``encoder=patches`` against its own products and exponentials, at the same shapes and threads."""
    X = represented_images(plan, n_points)
    patches = plan.component("encoder")
    if not isinstance(patches, Patches) or patches.reduce or not _is_one_gaussian_layer(patches.layers):
        raise InputError(
            "runner.compare=encoder needs encoder=patches with one layer, encoder.kernel=exponential and "
            "encoder.approx=nystrom"
        )
    patches.fit(X, plan.seed("approx"))
    points = torch.from_numpy(X)
    (layer,) = patches.layers_
    kept = Reused[_Products]()

    def on_tiles(work: Callable[[Tensor], object]) -> None:
        def in_inference_mode(rows: slice) -> None:
            with torch.inference_mode():
                work(points[rows])

        in_threads(in_inference_mode, slices(n_points, _ROWS), threads)

    def products() -> None:
        with kept.per_thread(lambda: _Products(layer, points), at_most=threads) as mine:
            on_tiles(lambda tile: mine()(tile))

    cases = {"encoder": lambda: on_tiles(patches.encode), "products": products}
    return Comparison(cases, {"encoder/products": ("encoder", "products")})


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
        self.layer, self.n = layer, layer.points_at_once(like.device)
        self.run = LayerRun(layer, like, self.n)
        (rows, columns), (pooled_rows, pooled_columns) = layer.positions_, self.run.pooled_sides
        block = len(self.run.templates[0])
        self.patches = like.new_zeros(self.run.k, rows * columns * self.n)
        self.values = like.new_empty(block, rows, columns * self.n)
        self.half = like.new_empty(block, pooled_rows, columns * self.n)
        self.pooled = like.new_empty(layer.n_templates_ * pooled_rows, pooled_columns, self.n)
        self.features = like.new_empty(layer.shape_out_[0], pooled_rows * pooled_columns * self.n)

    def __call__(self, points: Tensor) -> None:
        down, across = self.run.matrices
        linear = self.run.linear
        assert linear is not None
        for _ in range(-(-len(points) // self.n)):
            for templates in self.run.templates:
                m = len(templates)
                values, half, pooled = self.values[:m], self.half[:m], self.pooled[: m * len(down)]
                torch.mm(templates, self.patches, out=values.view(m, -1)).exp2_()
                torch.bmm(down.expand(m, *down.shape), values, out=half)
                each = half.view(m * len(down), across.shape[1], self.n)
                torch.bmm(across.expand(len(each), *across.shape), each, out=pooled)
            torch.mm(linear, self.pooled.view(self.layer.n_templates_, -1), out=self.features)

"""The neural network of a skeleton, for comparison with its kernel (Daniely et al. 2017, section 6)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from orbit.core.errors import InputError, of_section
from orbit.core.params import PositiveFloat, PositiveInt
from orbit.core.random import RandomState, spawn
from orbit.engine import Engine
from orbit.kernels.skeletons.activations import PowerSeries, ReLU
from orbit.kernels.skeletons.builders import StackLayer, read_layers
from orbit.learners.epochs import EpochClassifier
from orbit.learners.targets import indices
from orbit.registry import register

# Number of points predicted at once.
_PREDICTED_TOGETHER = 1024


def make_network(
    layers: Sequence[StackLayer], shape: Sequence[int], channels: int, width: int, n_outputs: int
) -> nn.Module:
    """The network of a stack of layers: every node replicated, and a linear output.

    Parameters
    ----------
    layers : list of StackLayer, from :func:`orbit.kernels.skeletons.builders.read_layers`
    shape : of a point, (height, width, channels), (height, width) or (d,); the network takes points flattened
    channels, width : copies of a node of a convolution and of a full layer

    Raises
    ------
    InputError
        For convolutions of points that are not images, patches that do not fit, and activations other than relu and
        identity.
    """
    modules: list[nn.Module] = []
    convolves = layers[0].size is not None
    if convolves:
        if len(shape) not in (2, 3):
            raise InputError(f"layers: convolutions take images, found points of shape {tuple(shape)}")
        height, breadth, depth = (*shape, 1)[:3]
        modules.append(_Images(height, breadth, depth))
    inputs = math.prod(shape)
    for i, layer in enumerate(layers):
        if layer.size is None:
            modules += [*([nn.Flatten()] if convolves else []), nn.Linear(inputs, width)]
            inputs = width
        else:
            modules.append(nn.Conv2d(depth, channels, layer.size, layer.stride, layer.padding))
            height, breadth = (
                (n + 2 * p - s) // step + 1
                for n, s, step, p in zip((height, breadth), layer.size, layer.stride, layer.padding, strict=True)
            )
            if min(height, breadth) < 1:
                raise InputError(f"layers[{i}]: patches of {layer.size} do not fit points of shape {tuple(shape)}")
            depth, inputs = channels, channels * height * breadth
        modules += _nonlinearity(layer, i)
    return nn.Sequential(*modules, *([nn.Flatten()] if layers[-1].size else []), nn.Linear(inputs, n_outputs))


@register("classifier", "network")
@dataclass(eq=False, repr=False)
class NetworkClassifier(EpochClassifier):
    """The network of a skeleton of convolutions and full layers, trained by AdaGrad (Duchi et al. 2011) or Adam.

    Every node becomes ``channels`` (convolutions) or ``width`` (full layers) rectified
    units, weights are shared over positions, and the loss is multinomial logistic.
    Initial weights are normal with variance 2 / (fan in + fan out) (Glorot and Bengio
    2010). It is fitted to points (``RawPoints``), not to features of a kernel.

    Parameters
    ----------
    layers : list of mappings or None
        As for ``SkeletonKernel``; None is one full layer. In a run, None is the kernel's.
    shape : list of int >= 1 or None
        Shape of a point; rows are flattened points. None is vectors; in a run, the shape
        of represented points.
    channels, width : int >= 1
        Units for each node of a convolution, and for each node of a full layer.
    learning_rate : float > 0, list of them, or None
        Several values are trained for one epoch, or until there were 4 steps, and the one
        with the best accuracy, in one epoch on points not yet seen, is trained further; None
        is the paper's, 0.0002 to 0.005.
    batch_size : int >= 1
        Points a step.
    epochs : int >= 1
        Passes over the data.
    optimizer : {"adagrad", "adam"}
        Adam is that of Kingma and Ba (2015) with its usual settings.
    threads : int >= 1
        Threads of a step. Convolutions of many channels gain from several, on cores that are free.
    engine : Engine or None
        Its device is trained on.
    random_state : int, RandomState or None
        Seed of the weights and of the order of the points.

    Attributes
    ----------
    classes_ : array, shape (k,)
    learning_rate_, path_, path_scores_, history_ : as of :class:`~orbit.learners.epochs.EpochLearner`
        Scores are accuracies.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from orbit.learners import NetworkClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> layers = [{"kind": "conv", "size": 3, "stride": 2}, {"kind": "full"}]
    >>> model = NetworkClassifier(layers, shape=[8, 8], channels=8, width=32, learning_rate=0.02, random_state=0)
    >>> bool(model.fit(X[:1000] / 16, y[:1000]).score(X[1000:] / 16, y[1000:]) > 0.85)
    True
    """

    layers: list[dict] | None = None
    shape: list[PositiveInt] | None = None
    channels: PositiveInt = 64
    width: PositiveInt = 384
    learning_rate: PositiveFloat | list[PositiveFloat] | None = None
    batch_size: PositiveInt = 64
    epochs: PositiveInt = 20
    optimizer: Literal["adagrad", "adam"] = "adagrad"
    threads: PositiveInt = 1
    engine: Engine | None = None
    random_state: RandomState = None

    _code = staticmethod(indices)
    takes_points = True
    takes_from_kernel = ("layers",)
    default_path = (0.0002, 0.0005, 0.001, 0.002, 0.005)

    def check(self) -> None:
        super().check()
        with of_section(self.section):
            for i, layer in enumerate(self._layers()):
                _nonlinearity(layer, i)

    def _layers(self) -> list[StackLayer]:
        return read_layers([{"kind": "full"}] if self.layers is None else self.layers, "relu")

    def _begin(self, X: np.ndarray, k: int) -> None:
        shape = [X.shape[1]] if self.shape is None else self.shape
        if math.prod(shape) != X.shape[1]:
            raise ValueError(
                f"shape: points of shape {list(shape)} are rows of {math.prod(shape)} numbers, found {X.shape[1]}"
            )
        seed = spawn(self.random_state, 1)[0]
        self._networks, self._optimizers = [], []
        for rate in self._rates:
            with of_section(self.section):
                network = make_network(self._layers(), shape, self.channels, self.width, len(self.classes_))
            _initialise(network, seed)
            network.to(self._tensor(X[:1]))  # its device and precision
            self._networks.append(network)
            optimizer: Any = torch.optim.Adagrad if self.optimizer == "adagrad" else torch.optim.Adam
            self._optimizers.append(optimizer(network.parameters(), lr=float(rate)))

    def _training_arrays(self) -> dict[str, np.ndarray]:
        tensors = dict[str, Tensor]()
        for rate, (network, optimizer) in enumerate(zip(self._networks, self._optimizers, strict=True)):
            tensors |= {f"network/{rate}/{name}": tensor for name, tensor in network.state_dict().items()}
            for i, parameter in enumerate(network.parameters()):
                state = optimizer.state[parameter]
                tensors |= {f"optimizer/{rate}/{i}/{name}": tensor for name, tensor in state.items()}
        return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}

    def _resume_training(self, arrays: Mapping[str, np.ndarray]) -> None:
        saved = {name: torch.from_numpy(array) for name, array in arrays.items() if "/" in name}
        dtype = next(array.dtype for name, array in arrays.items() if name.startswith("network/"))
        self._begin(np.empty((1, self.n_features_in_), dtype), len(self.classes_))
        for rate, (network, optimizer) in enumerate(zip(self._networks, self._optimizers, strict=True)):
            network.load_state_dict({name: saved[f"network/{rate}/{name}"] for name in network.state_dict()})
            for i, parameter in enumerate(network.parameters()):
                start = f"optimizer/{rate}/{i}/"
                state = {key.removeprefix(start): saved[key] for key in saved if key.startswith(start)}
                # torch counts steps on the processor
                optimizer.state[parameter] = {k: t if k == "step" else t.to(parameter.device) for k, t in state.items()}

    def _dtype(self) -> str:
        return str(next(self._networks[0].parameters()).dtype).removeprefix("torch.")

    def _in_training(self) -> bool:
        return "_networks" in vars(self)

    def _threads(self, width: int) -> int:
        return self.threads

    def _step(self, x: np.ndarray, y: np.ndarray) -> Tensor:
        points, labels = self._tensor(x), self._tensor(y[:, 0]).long()
        right = []
        for network, optimizer in zip(self._networks, self._optimizers, strict=True):
            logits = network(points)
            optimizer.zero_grad()
            nn.functional.cross_entropy(logits, labels).backward()
            optimizer.step()
            right.append((logits.argmax(1) == labels).sum())
        return torch.stack(right)

    def _keep(self, best: int) -> None:
        self._networks, self._optimizers = [self._networks[best]], [self._optimizers[best]]

    def _publish(self, best: int) -> None:
        self.network_ = self._networks[best]

    def _is_finite(self) -> bool:
        return all(bool(parameter.isfinite().all()) for parameter in self.network_.parameters())

    def _discard_training_state(self) -> None:
        self.network_.cpu()  # so that it can be saved, and used without a GPU
        del self._networks, self._optimizers

    def _scores(self, X) -> np.ndarray:
        check_is_fitted(self, "network_")
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        first = next(self.network_.parameters())
        with torch.inference_mode():
            parts = [
                self.network_(torch.from_numpy(np.array(X[start : start + _PREDICTED_TOGETHER])).to(first)).cpu()
                for start in range(0, len(X), _PREDICTED_TOGETHER)
            ]
        return torch.cat(parts).numpy()


class _Images(nn.Module):
    """Converts flattened images with channels last to images with channels first."""

    def __init__(self, height: int, breadth: int, depth: int) -> None:
        super().__init__()
        self.shape = height, breadth, depth

    def forward(self, points: Tensor) -> Tensor:
        return points.view(len(points), *self.shape).permute(0, 3, 1, 2)


def _nonlinearity(layer: StackLayer, i: int) -> list[nn.Module]:
    if isinstance(layer.activation, ReLU):
        return [nn.ReLU()]
    if layer.activation == PowerSeries((0.0, 1.0)):
        return []
    raise InputError(f"layers[{i}]: a network has activations relu and identity, found {layer.activation}")


def _initialise(network: nn.Module, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            parameters: Any = module
            nn.init.xavier_normal_(parameters.weight, generator=rng)
            nn.init.zeros_(parameters.bias)

"""The strategy for few orbits: average one point of each."""

from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from orbit.engine.direct import Direct
from orbit.engine.spectral import Spectral
from orbit.engine.strategy import Cost, Route, Strategy, choose
from orbit.engine.template import Template

#: The strategies that average every point.
BY_POINT = Direct, Template, Spectral


class ByOrbit(Strategy):
    """Averages one point of each orbit, where many points share one, such as all orders of the same letters.

    The features of the orbits are held beside the result.
    """

    path = "orbits"

    @cached_property
    def _representatives(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self.task.orbit.representatives(self.task.X)

    @cached_property
    def _of_orbits(self) -> Strategy:
        """The cheapest strategy for one point of each orbit."""
        assert self._representatives is not None
        task = replace(self.task, X=self._representatives[0])
        return choose([strategy(self.workspace, task) for strategy in BY_POINT])

    def supports(self) -> bool:
        return self.task.weights is None and self._representatives is not None

    def cost(self) -> Cost:
        share = len(self._of_orbits.task.X) / len(self.task.X)
        return Cost(*(share * each for each in self._of_orbits.cost()))

    def average(self) -> tuple[Tensor, Route]:
        assert self._representatives is not None
        points, index = self._representatives
        features, route = self._of_orbits.average()
        return features[torch.from_numpy(index).to(features.device)], replace(route, orbits=len(points))

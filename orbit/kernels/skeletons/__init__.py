"""Computation skeletons: graphs of activations over base spaces, and random features drawn from them."""

from orbit.kernels.skeletons.activations import Activation, make_activation
from orbit.kernels.skeletons.builders import full, stack
from orbit.kernels.skeletons.graph import Level, Skeleton, from_nodes
from orbit.kernels.skeletons.spaces import Space, make_space

__all__ = ["Activation", "Level", "Skeleton", "Space", "from_nodes", "full", "make_activation", "make_space", "stack"]

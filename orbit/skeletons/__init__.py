"""Computation skeletons: graphs of activations over base spaces, and random features drawn from them."""

from orbit.skeletons.activations import Activation, make_activation
from orbit.skeletons.builders import full, stack
from orbit.skeletons.graph import Level, Skeleton, from_nodes
from orbit.skeletons.spaces import Space, make_space

__all__ = ["Activation", "Level", "Skeleton", "Space", "from_nodes", "full", "make_activation", "make_space", "stack"]

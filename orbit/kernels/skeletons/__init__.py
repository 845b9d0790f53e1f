"""Computation skeletons: graphs of activations over base spaces, and random features drawn from them."""

from orbit.kernels.skeletons.activations import Activation as Activation, make_activation as make_activation
from orbit.kernels.skeletons.builders import full as full, stack as stack
from orbit.kernels.skeletons.graph import Level as Level, Skeleton as Skeleton, from_nodes as from_nodes
from orbit.kernels.skeletons.spaces import Space as Space, make_space as make_space

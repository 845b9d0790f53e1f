"""How, where and in which precision features are computed: options, memory, and one module for each strategy."""

from orbit.engine.engine import Engine
from orbit.engine.strategy import Route

__all__ = ["Engine", "Route"]

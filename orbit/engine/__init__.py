"""How, where and in which precision features are computed."""

from orbit.engine.engine import Engine, Route, Tiling

__all__ = ["Engine", "Route", "Tiling"]

"""The engine that computes features: options, memory, and one module for each strategy."""

from orbit.engine.engine import Engine as Engine
from orbit.engine.strategy import Route as Route

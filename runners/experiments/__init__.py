"""Runners that fit, evaluate and compare."""

"""Runners that measure time and memory."""

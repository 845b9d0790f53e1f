"""Runners run the experiments described by configuration files, and record their results."""

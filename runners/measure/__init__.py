"""Metrics, results, tables and the description of the machine."""

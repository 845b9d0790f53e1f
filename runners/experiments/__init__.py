"""Runners that fit and evaluate models, and measure errors."""

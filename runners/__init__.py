"""Runners execute experiments described by configuration files and record what came out."""

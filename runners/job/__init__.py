"""A run in progress: the runner, its job, and the refusal of fits by memory.

A runner of another package is a subclass of ``Runner`` with a method ``run(job)``.
"""

from runners.job.job import Job
from runners.job.runner import Runner

__all__ = ["Job", "Runner"]

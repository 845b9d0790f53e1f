"""Makes the launchers of the project known to Hydra, which finds launchers only in a package of this name.

Hydra imports this module for every run, and joblib takes a quarter of a second, so a launcher is imported where it is
chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher


class ProcessLauncher(Launcher):
    """See the class of the same name in :mod:`runners.app.launcher`, which is imported when a launcher is made."""

    def __init__(self, **settings: Any) -> None:
        from runners.app import launcher

        self._launcher: Launcher = getattr(launcher, type(self).__name__)(**settings)

    def setup(self, **given: Any) -> None:
        self._launcher.setup(**given)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        return self._launcher.launch(job_overrides, initial_job_idx)


class SubmititLauncher(ProcessLauncher):
    """See :class:`runners.app.launcher.SubmititLauncher`."""


class RayLauncher(ProcessLauncher):
    """See :class:`runners.app.launcher.RayLauncher`."""

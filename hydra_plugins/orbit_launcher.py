"""Makes the launchers of the project known to Hydra, which finds launchers only in a package of this name.

Hydra imports this module for every run, and joblib takes a quarter of a second, so a launcher is imported where it is
chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher


class _Later(Launcher):
    """A launcher that is imported when it is made."""

    def __init__(self, **settings: Any) -> None:
        self._launcher = self._make(settings)

    def _make(self, settings: dict[str, Any]) -> Launcher:
        raise NotImplementedError

    def setup(self, **given: Any) -> None:
        self._launcher.setup(**given)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        return self._launcher.launch(job_overrides, initial_job_idx)


class ProcessLauncher(_Later):
    """See :class:`runners.app.launcher.ProcessLauncher`."""

    def _make(self, settings: dict[str, Any]) -> Launcher:
        from runners.app import launcher

        return launcher.ProcessLauncher(**settings)


class SubmititLauncher(_Later):
    """See :class:`runners.app.remote.SubmititLauncher`."""

    def _make(self, settings: dict[str, Any]) -> Launcher:
        from runners.app import remote

        return remote.SubmititLauncher(**settings)


class RayLauncher(_Later):
    """See :class:`runners.app.remote.RayLauncher`."""

    def _make(self, settings: dict[str, Any]) -> Launcher:
        from runners.app import remote

        return remote.RayLauncher(**settings)

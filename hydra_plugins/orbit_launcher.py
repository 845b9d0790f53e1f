"""Makes the launchers of the project known to Hydra, which finds launchers only in a package of this name.

Hydra imports this module for every run, and joblib takes a quarter of a second, so a launcher is imported where it is
chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

from hydra.core.utils import JobReturn
from hydra.plugins.launcher import Launcher


class _Later(Launcher):
    """A launcher that is imported when it is made: the class of the same name in ``module``."""

    module: ClassVar[str]

    def __init__(self, **settings: Any) -> None:
        self._launcher: Launcher = getattr(import_module(self.module), type(self).__name__)(**settings)

    def setup(self, **given: Any) -> None:
        self._launcher.setup(**given)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        return self._launcher.launch(job_overrides, initial_job_idx)


class ProcessLauncher(_Later):
    """See :class:`runners.app.launcher.ProcessLauncher`."""

    module = "runners.app.launcher"


class SubmititLauncher(_Later):
    """See :class:`runners.app.remote.SubmititLauncher`."""

    module = "runners.app.remote"


class RayLauncher(_Later):
    """See :class:`runners.app.remote.RayLauncher`."""

    module = "runners.app.remote"

"""Makes ``hydra/launcher=joblib`` known to Hydra, which finds launchers only in a package of this name."""

from __future__ import annotations

from runners.app import launcher


class ProcessLauncher(launcher.ProcessLauncher):
    """See :class:`runners.app.launcher.ProcessLauncher`."""

"""Makes ``hydra/sweeper=optuna`` known to Hydra, which finds sweepers only in a package of this name."""

from __future__ import annotations

from typing import Any

from hydra.plugins.sweeper import Sweeper

from orbit.core.errors import InputError


class OptunaSweeper(Sweeper):
    """See :class:`runners.search.sweeper.OptunaSweeper`, which is imported where it is chosen."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings

    def setup(self, **given: Any) -> None:
        try:
            from runners.search import sweeper
        except ModuleNotFoundError as error:
            raise InputError(
                "hydra/sweeper=optuna: Optuna is not installed; pip install 'orbit-kernels[search]'"
            ) from error
        self._sweeper = sweeper.OptunaSweeper(**self._settings)
        self._sweeper.setup(**given)

    def sweep(self, arguments: list[str]) -> Any:
        return self._sweeper.sweep(arguments)

"""Makes ``hydra/sweeper=optuna`` known to Hydra, which finds sweepers only in a package of this name."""

from __future__ import annotations

from typing import Any

from hydra.plugins.sweeper import Sweeper


class OptunaSweeper(Sweeper):
    """See :class:`runners.search.sweeper.OptunaSweeper`, which is imported where it is chosen."""

    def __init__(self, **settings: Any) -> None:
        from runners.search import sweeper

        self._sweeper = sweeper.OptunaSweeper(**settings)

    def setup(self, **given: Any) -> None:
        self._sweeper.setup(**given)

    def sweep(self, arguments: list[str]) -> Any:
        return self._sweeper.sweep(arguments)

"""The base class of runners."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import ClassVar, TypeVar, cast

from orbit.core.component import Component
from orbit.core.errors import InputError, choose_from
from runners.config.plan import Plan
from runners.job.estimate import Estimate
from runners.job.job import Job

T = TypeVar("T")


class Runner(Component):
    """Base class of runners.

    Attributes
    ----------
    tracked : bool
        Whether its runs are logged in MLflow.
    uses_data : bool
        Whether it loads the data set of the plan, whose files must then exist.
    takes_group : bool
        Whether its results depend on the group, which is discovered where neither the user nor the data set names one.
    validates : bool
        Whether it scores one setting on the validation points of a selection, which then has no grid.
    reuses_features : bool
        Whether it may read features that an earlier job has kept on disk: not if times are what it measures.
    """

    tracked: ClassVar[bool] = True
    uses_data: ClassVar[bool] = True
    takes_group: ClassVar[bool] = True
    validates: ClassVar[bool] = False
    reuses_features: ClassVar[bool] = False

    def check(self) -> None:
        super().check()
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, list | tuple) and not value:
                raise self.wrong(name, "at least one value")

    def plans(self, base: Plan) -> list[Plan]:
        """The plans that a run fits, checked; by default the plan of the run alone."""
        return [base]

    def estimates(self, plan: Plan) -> list[Estimate]:
        """What the rows of a run take, for ``dry_run=true``. Empty where that is not known."""
        return []

    def tags(self) -> dict[str, str]:
        """Tags of its runs, besides those of every run."""
        return {}

    @abstractmethod
    def run(self, job: Job) -> None:
        """Do the work, and record the results through the job."""


def check_only(only: Collection[str] | None, what: str, names: Collection[str], parts: Collection[str] = ()) -> None:
    """Raise ``InputError`` if ``runner.only`` has a name that is neither one of ``names`` nor one of their parts."""
    for name in only or []:
        if name not in names and name not in parts:
            raise InputError(f"runner.only: no such {what} {name!r}{choose_from(str(name), names)}")


def these(*values: T) -> list[T]:
    """The default of a parameter that is a list, as a data class takes it: never changed."""
    return cast("list[T]", values)

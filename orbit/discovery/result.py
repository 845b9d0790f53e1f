"""The trials of a search, and what they say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from orbit.approx import Nystrom
from orbit.discovery.sections import brief, brief_q, section
from orbit.encoders import Encoder
from orbit.groups import Identity
from orbit.learners import RidgeClassifier, RidgeRegressor
from orbit.orbits import Orbit
from orbit.plots.ranking import ranking

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from sklearn.pipeline import Pipeline

# What helps lowers the error by more than chance and by more than this share: averages over slightly larger and smaller
# columns of a table, which smooth, lowered it by 2 % in seeds 0 to 2 of benchmarks/discover_trials.py.
SIGNIFICANT, RELEVANT = 0.05, 0.05

# Of two encoders neither is near to the other if the errors differ by this share, whatever a test of few points says;
# docs/results/choices.md has what it was chosen on.
CLEAR = 1 / 3

#: The error in words, which are not to be read as a share of wrong answers.
UNEXPLAINED = "unexplained share of the variance of y, by leave-one-out"


@dataclass(frozen=True)
class Trial:
    """One orbit and its leave-one-out errors.

    Attributes
    ----------
    orbit : Orbit
        Not fitted.
    errors : array, shape (n,)
        The squared leave-one-out errors of the points; 1 on average for a constant prediction.
    right : bool array, shape (n,), or None
        Which points are classified rightly; None for regression.
    multiple : float
        The lengthscale as a multiple of the median distance of the points.
    encoder : Encoder or None
        An invariant encoder that was tried; None is the one of all other trials.
    p : float
        The probability of a difference from the identity at least as large by chance, by the paired t test of the
        absolute errors, after Holm's correction for the number of trials.
    is_near : bool
        Whether the lowest error is not lower by more than 5 % and, without a correction, more than chance, and not
        lower by more than a third.
    """

    orbit: Orbit
    errors: np.ndarray = field(repr=False)
    right: np.ndarray | None = field(repr=False)
    multiple: float
    seconds: float
    encoder: Encoder | None = None
    p: float = 1.0
    is_near: bool = True

    @property
    def error(self) -> float:
        return float(self.errors.mean())

    @property
    def is_identity(self) -> bool:
        return self.orbit.group is None and self.encoder is None

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """Sections of a configuration: the group and, if they are not the defaults, its q and the encoder."""
        parts = {"distribution": self.orbit.distribution, "encoder": self.encoder}
        given = {kind: section(part) for kind, part in parts.items() if part is not None}
        return {"group": section(self.orbit.group or Identity())} | given

    @property
    def group(self) -> str:
        """The group, the encoder in place of that of other trials, or both, in a few words."""
        parts = [f"encoder={brief(section(self.encoder))}"] if self.encoder else []
        if self.orbit.group or not parts:
            parts.append(brief(self.settings["group"]))
        return ", ".join(parts)

    @property
    def q(self) -> str:
        """The distribution in a few words, without what is the group's default."""
        if self.orbit.distribution is None:
            return ""
        return brief_q(self.orbit.distribution, Orbit(self.orbit.group).resolved()[1])

    @property
    def label(self) -> str:
        """Group and distribution in a few words."""
        return ", ".join(filter(None, (self.group, self.q)))


def simplest(trials: list[Trial]) -> Trial:
    """Of trials in ascending order of error, of those near to the lowest, the first with the simplest encoder."""
    near = [trial for trial in trials if trial.is_near] or trials
    return min(near, key=lambda trial: trial.encoder.complexity if trial.encoder else 0)


@dataclass(frozen=True, repr=False)
class Discovery:
    """The result of :func:`discover`; as text a table and a sentence.

    Attributes
    ----------
    trials : list of Trial
        In ascending order of error; one is the identity.
    example : array, shape (1, *shape)
        One of the points.
    encoder : Encoder
        The encoder of the trials that name none.
    is_encoder_found : bool
        Whether the given encoder left a choice.
    """

    trials: list[Trial]
    example: np.ndarray
    encoder: Encoder
    is_encoder_found: bool = False

    @property
    def identity(self) -> Trial:
        return next(trial for trial in self.trials if trial.is_identity)

    @property
    def best(self) -> Trial:
        """The trial with the lowest error of those that help; the identity if none does.

        If it has an encoder of its own, the simplest that is near to the lowest error.
        """
        helping = [*filter(self.helps, self.trials), self.identity]
        return simplest([trial for trial in helping if trial.encoder]) if helping[0].encoder else helping[0]

    @property
    def orbit(self) -> Orbit:
        """The best orbit, not fitted, for a feature map."""
        return Orbit(self.best.orbit.group, self.best.orbit.distribution)

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The sections of a configuration with the best orbit: see :attr:`Trial.settings`."""
        found = {"encoder": section(self.encoder)} if self.is_encoder_found else {}
        return found | self.best.settings

    def model(self, n_components: int = 1000, random_state: int = 0) -> Pipeline:
        """The model of the command line with the best orbit, not fitted, for points as those that were compared.

        Nyström features averaged over the orbit, and ridge regression or classification, whose regularisation and
        lengthscale are chosen by leave-one-out errors.

        Parameters
        ----------
        n_components : int
            The largest number of landmarks.
        random_state : int

        Examples
        --------
        >>> import orbit
        >>> data = orbit.RotatedDigits(n_train=300, n_test=300).load(0)
        >>> found = orbit.discover(data.X_train, data.y_train, groups=[orbit.Rotation()])
        >>> bool(found.model().fit(data.X_train, data.y_train).score(data.X_test, data.y_test) > 0.9)
        True
        """
        encoder = self.best.encoder or self.encoder
        features = Nystrom(orbit=self.orbit, n_components=n_components, encoder=encoder, random_state=random_state)
        return make_pipeline(features, RidgeRegressor() if self.identity.right is None else RidgeClassifier())

    def helps(self, trial: Trial) -> bool:
        """Whether the error with the orbit is lower than without by more than chance (5 %), and by more than 5 %."""
        return trial.error < (1 - RELEVANT) * self.identity.error and trial.p < SIGNIFICANT

    def changes(self, trial: Trial) -> tuple[int, int]:
        """The number of points that are classified rightly only with the orbit, and only without."""
        with_it, without = trial.right, self.identity.right
        if with_it is None or without is None:
            return 0, 0
        return int((with_it & ~without).sum()), int((without & ~with_it).sum())

    @property
    def table(self) -> pd.DataFrame:
        """A row for each trial, in ascending order of error: an empty q is the group's default."""
        return pd.DataFrame([self._row(trial) for trial in self.trials])

    def _row(self, trial: Trial) -> dict[str, Any]:
        row = {"group": trial.group, "q": trial.q, "error": trial.error}
        if trial.right is not None:
            gains, losses = self.changes(trial)
            row |= {"accuracy": trial.right.mean(), "gains": gains, "losses": losses}
        return row | {"p": trial.p, "seconds": trial.seconds}

    @property
    def sentence(self) -> str:
        """The result in words."""
        best, plain, lowest = self.best, self.identity, self.trials[0]
        if best.is_identity:
            closest = (
                "" if lowest.is_identity else f"; lowest: {lowest.error:.3g} with {lowest.label}, p {lowest.p:.2g}"
            )
            return (
                f"No group helps: of {len(self.trials) - 1} choices none lowers the error by 5 % and more than chance "
                f"({UNEXPLAINED}: {plain.error:.3g} without a group{closest})."
            )
        gains, losses = self.changes(best)
        what = best.label if best.encoder else f"Averaging over {best.label}"
        points = f"; points right only with it: {gains}, only without: {losses}" if gains + losses else ""
        other = next((trial for trial in self.trials if trial.encoder), best)
        instead = "" if best.encoder or other is best else f"; {other.error:.3g} with {other.label} in its place"
        return (
            f"{what} helps: the {UNEXPLAINED}, is {best.error:.3g} with it, "
            f"{plain.error:.3g} without (p {best.p:.1g}){points}{instead}."
        )

    def __repr__(self) -> str:
        return f"{self.table.to_string(index=False, float_format='{:.3g}'.format)}\n\n{self.sentence}"

    def plot(self, ax: Axes | None = None) -> Figure:
        """Draw the best trial of each group as a bar, its mean square error, with an interval of 95 %.

        Without ``ax`` also the example, moved along the best orbit.
        """
        of_groups = {(type(trial.orbit.group), type(trial.encoder)): trial for trial in reversed(self.trials)}
        shown = sorted(of_groups.values(), key=lambda trial: trial.error)
        return ranking(
            [trial.label for trial in shown],
            np.array([trial.error for trial in shown]),
            np.array([trial.errors.std(ddof=1) / np.sqrt(len(trial.errors)) for trial in shown]),
            [self.helps(trial) for trial in shown],
            self.identity.error,
            self.orbit.set_params(random_state=0).fit(self.example),
            self.example,
            ax,
        )

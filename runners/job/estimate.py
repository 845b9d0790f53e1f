"""What a row of a run takes, as ``dry_run=true`` prints it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from orbit.core.memory import process_bytes, size_text
from runners.job.memory import Part

# Parts below this share of the memory of a row are not listed.
_LISTED = 0.01


@dataclass(frozen=True)
class Estimate:
    """What a row takes.

    Attributes
    ----------
    label : str
    fits : int
        All fits: repeats, and those of inner validation.
    seconds : float
        Extrapolated from fits to a few points.
    parts : list of Part
        The largest arrays, in the order in which they are made.
    peak : int
        Bytes of those that are in memory together, at least.
    notes : list of str
        What the run will do with results that ``engine.memory`` does not hold.
    refused : str or None
        Why the run will be refused.
    """

    label: str
    fits: int
    seconds: float
    parts: list[Part] = field(default_factory=list)
    peak: int = 0
    notes: list[str] = field(default_factory=list)
    refused: str | None = None

    def line(self) -> str:
        """The estimate in one line."""
        listed = [f"{part.what}: {size_text(part.nbytes)}" for part in self.parts if part.nbytes > _LISTED * self.peak]
        at_least = [f"at least {size_text(self.peak)} in memory of {size_text(process_bytes())}"] if self.peak else []
        time = [f"about {duration(self.seconds)}"] if math.isfinite(self.seconds) else []
        said = [f"{self.fits:,} fit{'s' if self.fits != 1 else ''}", *listed, *at_least, *self.notes, *time]
        return f"{self.label}: {'; '.join(said)}" + (f"; REFUSED: {self.refused}" if self.refused else "")


def report(name: str, estimates: Sequence[Estimate]) -> str:
    """The lines of ``dry_run=true``: one for each row, and their total if there are several."""
    if not estimates:
        return f"{name}: the time of this runner is not estimated; nothing was run"
    if len(estimates) == 1:
        return replace(estimates[0], label=name).line()
    fits, seconds = sum(one.fits for one in estimates), sum(one.seconds for one in estimates)
    total = Estimate(f"{name}, estimated: {len(estimates)} rows", fits, seconds)
    return "\n".join(one.line() for one in [*estimates, total])


def duration(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> [duration(seconds) for seconds in (0.02, 41.3, 200, 40_000, 300_000)]
    ['0.02 s', '41 s', '3.3 min', '11 h', '3.5 days']
    """
    for unit, length, limit in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < limit * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds / 86400:.2g} days"

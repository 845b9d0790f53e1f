"""Progress of long work: a bar on a terminal, one line a minute elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time

from tqdm import tqdm

from orbit.core import interruption

log = logging.getLogger(__name__)

LINE_EVERY_S = 60.0


class Progress:
    """Counts finished steps of a known total and shows them; steps may come from several threads.

    Parameters
    ----------
    total : number of steps
    description : shown in front, e.g. ``"features"``
    shown : whether to show anything
    """

    def __init__(self, total: int, description: str, shown: bool = True) -> None:
        self.total, self.description, self.done = total, description, 0
        on_terminal = shown and sys.stderr.isatty()
        self._bar = tqdm(total=total, desc=description, leave=False, dynamic_ncols=True) if on_terminal else None
        self._lines = shown and not on_terminal
        self._lock = threading.Lock()
        self._start = self._last = time.monotonic()
        self._earlier = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def step(self, earlier: bool = False) -> None:
        """Count one finished step.

        Parameters
        ----------
        earlier : whether an earlier run did it; the time left is estimated from the steps after it

        Raises
        ------
        KeyboardInterrupt
            If Ctrl-C was pressed and its exception was lost; see :mod:`orbit.core.interruption`.
        """
        interruption.check()
        with self._lock:
            self.done += 1
            if self._bar is not None:
                self._bar.update()
            now = time.monotonic()
            if earlier:
                self._start, self._earlier = now, self.done
            elif self._lines and now - self._last >= LINE_EVERY_S:
                self._last = now
                left = (now - self._start) / (self.done - self._earlier) * (self.total - self.done)
                log.info("%s: %d of %d, about %.0f s left", self.description, self.done, self.total, left)

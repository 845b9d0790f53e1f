"""Which symmetry leaves the answer unchanged: groups compared by leave-one-out errors of averaged kernels.

These errors are closed form for regularised least squares, so that a group costs about a second, and the comparison
uses nothing but the given points. :mod:`candidates` lists the orbits that are tried, :mod:`points` computes the errors
with one, :mod:`search` tries them, :mod:`result` is what it found.
"""

from orbit.discovery.candidates import candidates as candidates
from orbit.discovery.result import Discovery as Discovery, Trial as Trial
from orbit.discovery.search import discover as discover

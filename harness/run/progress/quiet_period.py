"""How long the sinks have to stay unchanged before they are read, by how often the pipeline's queries commit."""

from __future__ import annotations

QUIET_S = 0.4
QUIET_GAPS = 1.5
"""A query that commits every so often has had its turn within one gap; half a gap more is for the batch itself."""
LATE_QUIET_S = 8.0
LATE_QUIET_GAPS = 2.0
"""Where something is missing already, a whole turn more."""
UNSHOWN_S = 30.0
"""For a query behind another one that has not yet shown how often it commits: longer than most trigger intervals."""


def quiet_s(*, gap_s: float, interval_s: float | None = None, unshown: bool = False) -> float:
    """Return how long sinks must stay unchanged before they are read: doubled rows may come late like any others.
    `unshown`: the commit interval of some query behind another one is not known yet, so only the declared interval says
    what to wait for."""
    own_s = 0.0
    if unshown:
        own_s = UNSHOWN_S if interval_s is None else QUIET_GAPS * interval_s
    return max(QUIET_S, QUIET_GAPS * gap_s, own_s)


def late_quiet_s(*, gap_s: float, interval_s: float | None = None, unshown: bool = False) -> float:
    """Return the quiet period if rows are missing, or a sink is not there yet. Then the declared interval counts for
    every query, since one that closes a watermark shows its last rows a trigger later."""
    committed_s = quiet_s(gap_s=gap_s, interval_s=interval_s, unshown=unshown)
    return max(LATE_QUIET_S, LATE_QUIET_GAPS * gap_s, QUIET_GAPS * (interval_s or 0.0), committed_s)

"""Run folders that fool a naive judge, each with its one right verdict and a twin that differs in one fact."""

from __future__ import annotations

from types import ModuleType

from tests.corpus import (
    at_most_once,
    cancelling,
    causes,
    counters,
    empty_batch,
    expectations,
    names,
    nothing_written,
    pending,
    settling,
    stalled,
    tampering,
    two_sources,
    wrong_effects,
)
from tests.corpus.case import Adversary

ROOMS = (
    empty_batch,
    nothing_written,
    counters,
    cancelling,
    causes,
    wrong_effects,
    expectations,
    stalled,
    at_most_once,
    settling,
    names,
    two_sources,
    tampering,
)


def cases_of(*rooms: ModuleType) -> tuple[Adversary, ...]:
    """The cases of these modules, in their order."""
    return tuple(each for room in rooms for each in vars(room).values() if isinstance(each, Adversary))


PENDING = cases_of(pending)
"""Cases of what may not have been mended in this tree yet; of these, the ones that can be run are among the cases."""
CASES = (*cases_of(*ROOMS), *filter(pending.ready, PENDING))

"""Run folders that fool a naive judge, each with its one right verdict and a twin that differs in one fact."""

from __future__ import annotations

from types import ModuleType

from tests.corpus import (
    also_without_faults,
    at_most_once,
    bystanders,
    cancelling,
    causes,
    counters,
    dropped,
    empty_batch,
    expectations,
    going_back,
    in_advance,
    late_log,
    late_sinks,
    names,
    nothing_written,
    own_offsets,
    rivals,
    seen_later,
    settling,
    stalled,
    tampering,
    two_sources,
    unconfirmed,
    unrounded,
    vague,
    what_is_read,
    witnesses,
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
    own_offsets,
    settling,
    names,
    two_sources,
    tampering,
    what_is_read,
    rivals,
    also_without_faults,
    late_sinks,
    late_log,
    seen_later,
    unconfirmed,
    unrounded,
    vague,
    witnesses,
    in_advance,
    bystanders,
    going_back,
    dropped,
)


def cases_of(*rooms: ModuleType) -> tuple[Adversary, ...]:
    """The cases of these modules, in their order."""
    return tuple(each for room in rooms for each in vars(room).values() if isinstance(each, Adversary))


EVERY = cases_of(*ROOMS)
"""The corpus, and the guards: cases that the code of before it judged right as well."""
CASES = tuple(case for case in EVERY if not case.guard)

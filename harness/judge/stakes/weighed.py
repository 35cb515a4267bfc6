"""A hit as it was weighed against one sink: where that stood, and what was at stake."""

from __future__ import annotations

from dataclasses import dataclass

from harness.checkers.offset_ranges import Spans, joined
from harness.judge.injections import Injection
from harness.judge.progress_at_hit import Reach
from harness.judge.stakes.sink_state import SinkState
from harness.scenario import Harm, Stake

EARLY, PLANNED, WRITING, WRITTEN, COMMITTED = (
    "offsets committed, sink not written",
    "batch planned, sink not written",
    "sink written in part",
    "sink written, batch not committed",
    "batch committed",
)
RECEIVED = "received, in no batch"
"""Of a receiver of DStreams, where every planned batch was committed, or held no record."""
POINTS = (PLANNED, WRITING, WRITTEN)
"""The crash points at which a pipeline can be hit with something at stake; one that keeps its offsets itself may
save them too early as well."""
SAFE: dict[Harm | None, tuple[str, ...]] = {Harm.REPETITION: (WRITTEN,), Harm.LOSS: (EARLY, PLANNED)}
"""Those at which only this harm is at stake, while the checkpoint stays."""


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """One hit against one sink. `why` says why nothing was at stake. `again` and `missing` are the records that
    repetition and loss would touch, `late` those that were committed and not in the sink; `at` and `last` what the sink
    held when the fault hit, and before the next attempt worked. What is None is not known."""

    injection: Injection
    point: str = ""
    stakes: tuple[Stake, ...] = ()
    why: str = ""
    reach: Reach | None = None
    again: Spans = ()
    missing: Spans = ()
    late: Spans = ()
    at: SinkState | None = None
    last: SinkState | None = None
    idle: bool = False
    """No query had begun when the fault hit: nothing was at stake for certain."""
    untold: bool = False
    """Nobody knows what was at stake."""

    @property
    def open(self) -> Spans:
        """What may be missing after it: what was in flight, what saved offsets call done, and what a driver that went
        on had committed between the trigger and the snapshot."""
        if self.reach is None:
            return self.missing
        return joined(self.missing, self.reach.last if self.reach.own else self.reach.since)

    @property
    def counting(self) -> tuple[Stake, ...]:
        """What was at stake that the guarantee forbids, and would have been seen."""
        return tuple(stake for stake in self.stakes if stake.counts)


@dataclass(frozen=True, kw_only=True)
class Known(Weighed):
    """One of which snapshots tell how far its query was, and what the sink held."""

    reach: Reach
    at: SinkState
    last: SinkState

"""The trigger `elapsed`: so much time has passed, and a batch with records is in flight."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from time import monotonic

from harness.context import Listing, Reached, RunContext
from harness.fields import values as v
from harness.kinds import About, Refusal, Refusals
from harness.scenario import Step, Trigger
from harness.triggers.base import Planned, Trait
from harness.triggers.base.in_flight import blind, wait_for_work, works

DRAWN_TENTHS = 40


class Elapsed:
    """Counted from where the schedule begins, when the pipeline's query has begun."""

    about = About(
        name="elapsed",
        summary="so much time has passed, and a batch with records is in flight",
        example="{elapsed: 3s}",
        options=v.Duration,
    )
    traits = frozenset({Trait.TIMED})

    def trigger(self, value: float, *, batch: int | None = None, query: str | None = None) -> Trigger:
        """After `value` seconds."""
        return Trigger(kind=self.about.name, value=value, place=f"after {value} s", batch=batch, query=query)

    def draws(self, random: Random, planned: Planned, batch: int) -> Iterator[Trigger]:
        """Yield one time within the first seconds."""
        yield self.trigger(random.randint(1, DRAWN_TENTHS) / 10)

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """The run has to last so long."""
        yield from blind(trigger, planned)
        if float(trigger.value or 0) >= planned.timeout_s:
            yield Refusal(self.about.name, f"never comes: the run ends within {planned.timeout_s:g}s")

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """Met when the time has passed."""
        end_s = run.began_s + float(step.when.value or 0)
        return wait_for_work(run, step, lambda: monotonic() >= end_s, freeze=freeze)

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """By the batch that was in flight."""
        return works(reached, listing)


KIND = Elapsed()

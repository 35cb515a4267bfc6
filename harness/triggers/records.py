"""The trigger `records`: so many records were sent, and a batch with records is in flight."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from harness.context import Listing, Reached, RunContext
from harness.fields import values as v
from harness.kinds import About, Refusal, Refusals
from harness.scenario import Step, Trigger
from harness.triggers.base import Planned
from harness.triggers.base.in_flight import blind, wait_for_work, works

RECORDS_MAX = 10_000_000


class Records:
    """Counted where they are sent."""

    about = About(
        name="records",
        summary="so many records were sent, and a batch with records is in flight",
        example="{records: 300}",
        options=v.counted(1, RECORDS_MAX),
    )

    def trigger(self, value: int, *, batch: int | None = None, query: str | None = None) -> Trigger:
        """After `value` records."""
        place = f"after {value} records sent"
        return Trigger(kind=self.about.name, value=value, place=place, batch=batch, query=query)

    def draws(self, random: Random, planned: Planned, batch: int) -> Iterator[Trigger]:
        """Any number but the last sixth, after which little is in flight."""
        if planned.records <= RECORDS_MAX:
            yield self.trigger(random.randint(1, max(1, int(planned.records * 5 / 6))))

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """So many have to be sent."""
        yield from blind(trigger, planned)
        if float(trigger.value or 0) > planned.records:
            yield Refusal(self.about.name, f"never comes: only {planned.records:g} records are sent")

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """Met as soon as the last of them was sent."""
        return wait_for_work(run, step, lambda: run.sent() >= int(step.when.value or 0), freeze=freeze)

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """By the batch that was in flight."""
        return works(reached, listing)


KIND = Records()

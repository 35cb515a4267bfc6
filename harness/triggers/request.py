"""The trigger `request`: a request by which a batch is committed to a checkpoint in an object store is held."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from typing import Annotated

from harness.component import COMPONENTS, ShowsCommits
from harness.context import Commits, Listing, Reached, RunContext
from harness.errors import WaitError
from harness.fields import values as v
from harness.kinds import About, Refusal, Refusals
from harness.remote.proxy.commits import HeldRequest
from harness.scenario import CrashPoint, Step, Trigger
from harness.stack import Means
from harness.triggers.base import LATE_LOG, Planned, Trait, wait_until
from harness.triggers.base.standing import first


class Part(StrEnum):
    """The request of a rename that is held."""

    DELETE = "delete"


class Request:
    """Seen by a proxy in front of the server. A batch without a record is passed over for the next one, where its plan
    is there to tell."""

    about = About(
        name="request",
        summary="a request of the rename to commits/N in an object store is held: delete, of the temporary file that "
        "is copied",
        example="{request: delete, batch: 3}",
        options=Annotated[Part, v.choice(Part)],
    )
    traits = frozenset({Trait.HOLDS_REQUESTS})
    needs = frozenset({Means.HOLD_REQUESTS})

    def trigger(self, value: Part | str, *, batch: int | None = None, query: str | None = None) -> Trigger:
        """While the request `value` is held."""
        part = Part(value)
        place = f"{self.about.name} {part}"
        point = CrashPoint.BATCH_COMMITTED
        return Trigger(kind=self.about.name, value=str(part), place=place, batch=batch, query=query, point=point)

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """It needs a batch, and a checkpoint on a server that is asked for such a thing."""
        if trigger.batch is None:
            yield Refusal("batch", "is missing: of which batch?")
        if not planned.checkpoint or planned.proxied is False:
            yield Refusal(self.about.name, f"never comes: {_nowhere()}")
        elif planned.late_log:
            words = f"cannot be seen: {LATE_LOG}; use records, elapsed, rows or a failpoint"
            yield Refusal(self.about.name, words)

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """The proxy holds the request, so there is time to read the state."""
        when = step.when
        if run.requests is None:
            raise WaitError(f"{when} never came: no proxy sees the requests of the checkpoint")
        requests = run.requests

        def held(lowest: int) -> Reached:
            request = _held(run, requests, when, lowest)
            folder = run.own.checkpoint / request.rename.place
            return Reached(request.rename.batch, folder=folder, request=request, late=True)

        return first(run, held, (when.batch or 0) + later, freeze=freeze)

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """By the files of the commit that are there, as long as the request was held."""
        if reached.request is None or reached.request.early:
            return False
        return all(reached.batch in listing.get(log, ()) for log in ("begun", "commits"))


def _nowhere() -> str:
    """That the checkpoint lies where no request is seen, and where one would be."""
    seen = [each.about.name for each in COMPONENTS if isinstance(each, ShowsCommits)]
    if not seen:
        return "no component that is installed shows its requests"
    where = " or ".join(filter(None, (", ".join(seen[:-1]), seen[-1])))
    return f"no checkpoint lies on {where}, whose requests are seen; say `checkpoint: {seen[-1]}`, for example"


def _held(run: RunContext, commits: Commits, when: Trigger, lowest: int) -> HeldRequest:
    """Return the first such request of a batch from `lowest` on. Raises WaitError once none can come."""

    def wanted(place: str, batch: int) -> bool:
        return batch >= lowest and when.query in (None, (run.own.checkpoint / place).name)

    with ExitStack() as armed:
        held = armed.enter_context(commits.armed(wanted))
        try:
            wait_until(run, when, lambda: held() is not None)
        except BaseException:
            armed.close()
            # Nothing more is held from here on; what is goes on.
            if (late := held()) is not None:
                late.let_go(drop=False)
            raise
    found = held()
    assert found is not None
    return found


KIND = Request()

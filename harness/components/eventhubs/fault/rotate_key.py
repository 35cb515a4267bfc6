"""The fault `rotate key`: the key of the program's login is another from now on, for a while or for good.

The broker has its logins from its start, so it is killed and started again with the other key: who is connected has to
log in again, and is refused.
"""

from __future__ import annotations

from typing import Annotated, Protocol, runtime_checkable

from pydantic import Field

from harness.context import RunContext
from harness.faults.base import lasting
from harness.faults.base.outage import KillServer, Restartable
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import Refusals
from harness.scenario import Fault, Impact, Step, Trigger
from harness.triggers.base import Planned


class Until(Shape):
    """When the program's key counts again."""

    back_after: Annotated[
        v.Duration, Field(None, description="after so long the first key counts again; never if left out")
    ]


@runtime_checkable
class Rotates(Protocol):
    """A server whose key can be another."""

    def rotate(self, *, back: bool = False) -> None:
        """From the next start on."""

    def refused(self) -> bool:
        """Return whether a login was refused since the key was last changed."""


class RotateKey(KillServer):
    """The program gets no notice: it is refused, whatever it does, until its key counts again."""

    options = Until

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """At any trigger; the key is back before the run ends."""
        back_s = _back_s(fault)
        if back_s is not None:
            yield from lasting.bounds("back_after", back_s, planned)

    def meanwhile(self, run: RunContext, step: Step, server: Restartable) -> str:
        """Start it with another key, and end it again once the time is over."""
        if not isinstance(server, Rotates):
            return "gone after SIGKILL, back at once: its key cannot be another"
        server.rotate()
        back_s = _back_s(step.do)
        if back_s is None:
            return "gone after SIGKILL, back at once, with another key for good"
        server.start()
        run.stop.wait(back_s)
        server.stop()
        server.rotate(back=True)
        return f"gone after SIGKILL, back at once with another key, and with the first one after {back_s:g} s"

    def noticed(self, server: Restartable) -> bool:
        """A client that was not connected may have been refused."""
        return isinstance(server, Rotates) and server.refused()

    def heals(self, fault: Fault, server: Restartable) -> bool:
        """Return whether the key counts again. One that cannot be another counts all along."""
        return not isinstance(server, Rotates) or _back_s(fault) is not None


def _back_s(fault: Fault) -> float | None:
    found = fault.options.get("back_after")
    return None if found is None else float(found)


KIND = RotateKey(
    "eventhubs",
    impact=Impact.SERVER_AWAY,
    name="rotate key",
    summary="the program's key for Event Hubs is refused, from a SIGKILL to the broker and its start on",
    example="{when: {rows: 150}, do: rotate key, back_after: 8s}",
)

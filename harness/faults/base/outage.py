"""What the faults that kill a component's server have in common: SIGKILL, some seconds without it, and its start on the
data that it left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from harness.context import Reached, RowBreakpoint, RunContext
from harness.errors import StackError
from harness.faults.base import Injection, Proof, killing, lasting
from harness.fields.shape import Shape
from harness.hosts import signals
from harness.kinds import About
from harness.scenario import Fault, Impact, Step
from harness.stack import Driver, Means, Process
from harness.triggers import release

UNCONNECTED = (
    "no process of the pipeline was connected to it, and no driver died while it was away; "
    "take `rows` with a batch, where a writer is connected"
)
UNREPEATED = (
    "no driver died while it was away, and it keeps the checkpoint alone: its clients asked it again, "
    "and nothing was done twice"
)
OUTLIVED = "no driver died while it was away: its clients wait, and do nothing again"


@runtime_checkable
class Restartable(Protocol):
    """A server of ours that can be killed and comes back on its data."""

    @property
    def port(self) -> int:
        """Where it listens."""

    def stop(self) -> None:
        """End it at once; from here on it is not missed."""

    def start(self) -> None:
        """Start it again, and return when it answers. Raises StackError."""


@runtime_checkable
class Recounts(Protocol):
    """A row breakpoint whose count a killed server does not keep."""

    def recount(self, rows: int) -> None:
        """If its server was killed: so many rows had been handed to the sink by then. Raises StackError."""


Handed = Sequence[tuple[RowBreakpoint, int]]
"""What counts the rows of a sink, and how many those were."""


@runtime_checkable
class Connects(Protocol):
    """A process whose connections can be seen."""

    def reaches(self, port: int) -> bool:
        """Return whether it has a connection to that port."""


@dataclass(frozen=True)
class KillServer(lasting.Lasts):
    """SIGKILL to the server of a component, or to that one of its processes which the server has as `daemon`. Who
    writes at that moment loses the connection, and does not know what was done."""

    component: str
    daemon: str = ""
    impact: Impact = Impact.NONE
    name: str = ""
    summary: str = ""
    example: str = ""
    """What its description has in place of the usual."""
    options: ClassVar[type[Shape]] = lasting.For
    needs = frozenset({Means.RESTART_COMPONENTS})
    # Nothing moves between the trigger and the kill.
    freezes = True
    pauses_pipeline = True
    """The pipeline stands still while the server starts."""
    missed_at_once = True
    """Whether its clients lose what they were doing. If not, only a driver's death shows that one was affected."""
    holds_on = False
    """The writer that the trigger holds is held until it is back."""

    @property
    def about(self) -> About:
        """Who it is."""
        victim = self.daemon or self.component
        return About(
            name=self.name or f"kill {victim}",
            summary=self.summary
            or f"SIGKILL to the {victim} of the stack, which is started again on its data after a while",
            example=self.example or f"{{when: {{rows: 150}}, do: kill {victim}, for: 3s}}",
            options=self.options,
        )

    @property
    def components(self) -> tuple[str, ...]:
        """What it strikes."""
        return (self.component,)

    def server(self, run: RunContext) -> object:
        """Whom it strikes; None where the stack has none."""
        server = run.stack.servers.get(self.component)
        return getattr(server, self.daemon, None) if self.daemon else server

    def died(self, run: RunContext, driver: Driver | None) -> bool:
        """Return whether the attempt has failed that was at work then. Read once the server is back."""
        return killing.failed(run, driver)

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Take a snapshot with all processes stopped, kill the server, let them go on without it, bring it back."""
        server, victim = self.server(run), self.daemon or self.component
        if not isinstance(server, Restartable):
            return Injection(signalled={}, note=f"the stack runs no {victim}")
        driver, pipeline = run.supervisor.driver, everyone(run)
        reached.frozen += signals.freeze(pipeline)
        try:
            handed = [(each.rows, each.rows.rows()) for each in run.counted]
            lost = sorted({each.name for each in pipeline if isinstance(each, Connects) and each.reaches(server.port)})
            run.snapshot(reached)
            server.stop()
        finally:
            if self.holds_on:
                signals.thaw(reached.frozen)
            else:
                go_on(run, step, reached)
        try:
            words = self.meanwhile(run, step, server)
            without = committed_by_now(run)
        finally:
            gone = self.bring_back(run, reached, server, handed)
        note = "; ".join(filter(None, (f"connected to it: {', '.join(lost)}" if lost else "", *gone)))
        alone = self.component == run.only_checkpoint
        seen = bool(gone) or self.died(run, driver) or bool(lost and self.missed_at_once and not alone)
        # A driver whose query has failed needs some seconds to end.
        struck = seen or killing.dies(run, driver) or self.noticed(server)
        why = UNREPEATED if alone else UNCONNECTED if self.missed_at_once else OUTLIVED
        return Injection(
            signalled={victim: words}, snapshot_taken=True, note=note, why="" if struck else why,
            proof=Proof.SINK if gone else Proof.BEFORE,
            healed=self.heals(step.do, server), committed_meanwhile=without,
        )  # fmt: skip

    def bring_back(self, run: RunContext, reached: Reached, server: Restartable, handed: Handed) -> list[str]:
        """Start it again: other runs may share it. No client writes before its rows are counted on from where they
        stood. Return what its sinks have lost with it, in words; of one that the pipeline writes to while it starts,
        nothing is known."""
        late = signals.freeze(everyone(run)) if self.pauses_pipeline else []
        try:
            server.start()
            for counts, rows in handed:
                if isinstance(counts, Recounts):
                    counts.recount(rows)
            # Beside a daemon that alone was away, its server may have done something all the same.
            return run.back(reached, self.component) if self.pauses_pipeline and not self.daemon else []
        finally:
            signals.thaw(late)

    def noticed(self, server: Restartable) -> bool:
        """Return whether the server itself knows of a client that was affected, though no driver died."""
        return False

    def heals(self, fault: Fault, server: Restartable) -> bool:
        """Return whether its clients have it back."""
        return True

    def meanwhile(self, run: RunContext, step: Step, server: Restartable) -> str:
        """Return what becomes of the server between SIGKILL and its start; in words, for the evidence."""
        for_s = lasting.lasts_s(step.do)
        run.stop.wait(for_s)
        return f"gone after SIGKILL, back after {for_s:g} s"


def committed_by_now(run: RunContext) -> dict[str, int]:
    """Return the newest batch that each query has committed, by its checkpoint's name. The query that committed it
    needed nothing of a server that is away, or took no notice. Empty where that server keeps the checkpoint: no query
    can have."""
    try:
        return {state.checkpoint: max(state.commits, default=-1) for state in run.observer.states()}
    except StackError:
        return {}


def go_on(run: RunContext, step: Step, reached: Reached) -> None:
    """Let everybody work on without the server, the writer too that the trigger holds: it would notice nothing. Who was
    held by the server that is gone is not held any more, and cannot be asked for."""
    with suppress(StackError):
        release(run, step, reached)


def everyone(run: RunContext) -> list[Process]:
    """Return the processes of the pipeline, executors included."""
    return signals.family([*run.supervisor.processes(), *run.stack.executors(run.own)])

"""After the schedule: heal, let the pipeline finish, read the sink. Never reads "not yet there" as "lost".

The sinks are read when the pipeline has committed every record and no query has a batch in flight. By then the sinks
did not change for as long as the program's commit interval asks (`quiet_s`). If rows are missing then, or a sink is not
there yet, they may be late: the sinks are watched for longer (`late_quiet_s`). Last, the whole application is ended, so
that no writer is left, and the sinks are read again: that reading is judged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.checkpoint import caught_up, count
from harness.errors import UsageError
from harness.history import Phase, ProgressRead
from harness.judge import behind
from harness.run.live_run import Live
from harness.run.progress.commit_gaps import unplanned
from harness.run.progress.quiet_period import late_quiet_s, quiet_s
from harness.scenario import Sink, plain
from harness.sinks import SINKS
from harness.sinks.reading import busy, mark, store
from harness.sinks.table import load
from harness.snapshot import Progressed, Stalled
from harness.wait import Deadline, pause

TICK_S = 0.1
SILENT_S = 15.0
SLOWER = 3.0
"""How much longer than the first attempt a later one may take until it has shown itself."""
READ_BACK_S = 120.0
SERVER_IDLE_S = 75.0
"""Longer than a broker leaves a dead producer's transaction open (a minute) and takes to look for it (ten seconds): no
committed record behind it can be read before."""
READ_BACK_PER_S = 2000.0
LAST_DEATH = "when the driver had died for the last time"


class CatchUp:
    """Ends one run in order."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._reasons: list[str] = []
        self._stalled: Stalled | None = None
        self._caught_up = False
        self._grew = False
        self._unsettled = False
        self._silence: dict[int, Deadline] = {}
        self._quiet_period_s: float | None = None

    def catch_up(self) -> None:
        """Catch up, read, save 1."""
        live = self._live
        live.history.write(Phase(name="catching up"))
        live.feeder.stop()
        live.producer.close()
        within_s = READ_BACK_S + live.producer.sent / READ_BACK_PER_S
        ends = live.source.read_back(live.folder.source, within_s=within_s)
        live.attempts.close()
        self._caught_up = self._finish(ends) and self._all_sent()
        live.snapshots.finish()
        if self._caught_up:
            self._quiet()
        live.history.write(Phase(name="reading"))
        self._read(ends)
        if self._caught_up:
            self._quiet_period(ends)
        live.supervisor.stop()
        self._server_idle()
        live.healthy()
        if count(live.source.ends()) > count(ends):
            # A late request of a sender, or another writer: then the ledger does not know all that was consumed.
            self._caught_up, self._grew = False, True
            self._reasons.append("not caught up: the source grew after its records had been read back")
        self._read(ends, last=True)

    def _finish(self, ends: dict[int, int]) -> bool:
        """Return whether the pipeline has committed every record; if not, add the reason."""
        live = self._live
        while True:
            live.healthy()
            now = live.progress.committed()
            if caught_up(now, ends) and self._at_work():
                return True
            live.observe(committed=count(now), outstanding=True)
            if live.supervisor.gave_up:
                self._stalled = self._given_up()
                break
            if live.deadline.over():
                break
            pause(TICK_S)
        if caught_up(now, ends):
            self._reasons.append(
                "not caught up: the newest attempt of the driver had not shown yet where it goes on from"
            )
            return False
        words = f"{count(ends) - count(now)} of {count(ends)} records were not committed by the pipeline"
        over = f"when the {live.deadline.seconds:g} s after the warm-up were over"
        when = LAST_DEATH if live.supervisor.gave_up else over
        self._reasons.append(f"not caught up: {words} {when}")
        self._stalled = self._stalled or self._idle()
        return False

    def _all_sent(self) -> bool:
        """Return whether the whole input was sent. A pipeline too slow to take it in time was not tried with all of
        it."""
        producer, gave_up = self._live.producer, self._live.supervisor.gave_up
        if producer.unmet:
            self._reasons.append(f"not caught up: {producer.unmet}")
            return False
        if producer.done:
            return True
        if gave_up:
            self._stalled = self._given_up()
        when = LAST_DEATH if gave_up else "when the time was up"
        self._reasons.append(f"not caught up: {producer.sent} of {producer.total} records had been sent {when}")
        return False

    def _given_up(self) -> Stalled:
        supervisor = self._live.supervisor
        return self._live.stalls.gave_up(supervisor.gave_up, well=supervisor.ended_well)

    def _idle(self) -> Stalled | None:
        """Return the stall of a driver that is still restarted, with the error that it ended with last; None if it is
        slow."""
        found, error = self._live.stalls.stalled(), self._live.supervisor.last_error
        return replace(found, words=f"{found.words}; the driver's last error: {error}") if found and error else found

    def _at_work(self) -> bool:
        """Return whether the newest attempt has shown where it goes on from. Until then its progress is a dead one's,
        and a pipeline that lost its checkpoint would begin again. One with nothing left to do stays silent: it is
        waited for as long as a start takes. A program that ended by itself after the last fault (AvailableNow) has done
        all it would do."""
        live = self._live
        supervisor = live.supervisor
        ended = any(death.status == 0 and death.number > supervisor.last_ended_by_fault for death in supervisor.deaths)
        if not supervisor.deaths or supervisor.gave_up or ended or live.has_progress(all_queries=True):
            return True
        return self._silent()

    def _silent(self) -> bool:
        """Return whether the newest attempt has had all the time that one may take to show itself."""
        live, attempt = self._live, self._live.observer.attempt
        if attempt not in self._silence:
            silent_s = max(SILENT_S, SLOWER * live.start_s) + live.scenario.restart.delay_s
            self._silence = {attempt: Deadline(silent_s)}
        return self._silence[attempt].over()

    def _marks(self) -> list[str]:
        live = self._live

        def marked(sink: Sink) -> str:
            try:
                return mark(sink, live.own.parts)
            except UsageError as failure:
                return str(failure)  # a query of a table that is not there yet

        return [marked(sink) for sink in live.scenario.sinks]

    def _unchanged(self, for_s: float, limit: Deadline) -> bool:
        """Return True once the sinks did not change for `for_s`, and until each batch was committed that was in flight
        then; false if they changed within it."""
        before, still = self._marks(), Deadline(for_s)
        pending: dict[str, int] | None = None
        while not limit.over():
            if still.over():
                now = self._in_flight()
                pending = now if pending is None else pending
                if all(now.get(query) != batch for query, batch in pending.items()):
                    return self._marks() == before
            pause(TICK_S)
            if self._marks() != before:
                return False
        return False

    def _in_flight(self) -> dict[str, int]:
        live = self._live
        return live.rhythm.in_flight(live.observer.states(), silent=self._silent())

    def _commit_interval(self) -> dict[str, Any]:
        """Return what the program has shown of its commit interval, and what its scenario declares of it."""
        live = self._live
        unshown = live.rhythm.unshown(live.observer.states()) or unplanned(live.own.folder)
        interval_s = live.scenario.pipeline.interval_s
        return {"gap_s": live.rhythm.steady_s(), "interval_s": interval_s, "unshown": unshown}

    def _quiet_s(self) -> float:
        own_s, declared_s = quiet_s(**self._commit_interval()), self._live.scenario.quiet_period_s
        return own_s if declared_s is None else min(own_s, declared_s)

    def _quiet(self) -> None:
        for_s = self._quiet_s()
        limit = Deadline(max(2 * for_s, self._live.deadline.left_s()))
        while not self._unchanged(for_s, limit):
            if limit.over():
                self._caught_up, self._unsettled = False, True
                pending = "".join(
                    f", and batch {batch} of {query} was in flight" for query, batch in self._in_flight().items()
                )
                self._reasons.append(f"not caught up: the sink did not stay unchanged for {for_s:g} s{pending}")
                return
            for_s = self._quiet_s()

    def _server_idle(self) -> None:
        """No writer is left; what the server still does for one that was killed is waited for."""
        live, limit = self._live, Deadline(SERVER_IDLE_S)
        while left := next(filter(None, (busy(sink, live.own.parts) for sink in live.scenario.sinks)), ""):
            if limit.over():
                self._unsettled = True
                words = f"the sink's server was still at work after {SERVER_IDLE_S:g} s: {left}"
                self._reasons.append(f"inconclusive: {words}")
                return
            pause(TICK_S)

    def _quiet_period(self, ends: dict[int, int]) -> None:
        live = self._live
        # A declared time means that the sink may show its rows late: then doubled ones may come late too.
        declared = live.scenario.quiet_period_s is not None
        for_s = live.scenario.quiet_period_s or late_quiet_s(**self._commit_interval())
        self._quiet_period_s = for_s
        # The harness's own judging is slow on a busy machine: the sink did not have this time.
        doubtful = declared or self._missing()
        limit = Deadline(max(for_s * 2, live.deadline.left_s()))
        while doubtful and not limit.over():
            live.history.write(Phase(name="quiet period"))
            if self._unchanged(for_s, limit):
                return
            self._quiet()
            self._read(ends)
            doubtful = declared or self._missing()
        if doubtful:
            self._caught_up, self._unsettled = False, True
            self._reasons.append(
                f"not caught up: the sink did not stay unchanged for {for_s:g} s before the time was up"
            )

    def _missing(self) -> bool:
        """Return whether a sink is not there yet, or rows are not in it, also where a batch has yet to write their
        windows."""
        folder, sinks = self._live.folder.path, self._live.scenario.sinks
        tables = [load(folder, place) for place, sink in enumerate(sinks) if not SINKS[sink.kind].unread]
        if any(table is not None and table.unreadable for table in tables):
            return True
        return behind(folder)

    def _read(self, ends: dict[int, int], *, last: bool = False) -> None:
        live = self._live
        if last:
            live.observer.catch_up()
        for index, sink in enumerate(live.scenario.sinks):
            store(live.folder.path, index, sink, live.own.parts, after=live.since if last else None)
        live.history.write(ProgressRead(progressed=self._progressed(ends)))
        live.folder.save(1, run={"outcome": self._outcome()})

    def _progressed(self, ends: dict[int, int]) -> Progressed:
        live = self._live
        known = live.observer.all()
        # Two checkpoints side by side number their batches each for itself: then no record has one batch.
        alone = bool(known) and all(other.first_attempt > known[0].first_attempt for other in known[1:])
        return Progressed(
            queries=live.observer.queries(),
            positions=live.positions.seen(),
            batches=known[0].batches() if alone and live.progress.kind == "checkpoint" else (),
            committed=dict(sorted(live.progress.committed().items())),
            end=dict(sorted(ends.items())),
            caught_up=self._caught_up,
            gap_s=round(live.rhythm.gap_s(), 3),
        )

    def _outcome(self) -> dict[str, Any]:
        live = self._live
        return {
            "caught_up": self._caught_up,
            "grew": self._grew,
            "unsettled": self._unsettled,
            "reasons": self._reasons,
            "stalled": self._stalled and plain(self._stalled),
            "error": None,
            "deaths": [{"number": d.number, "status": d.status} for d in live.supervisor.deaths],
            "stateful": [{"checkpoint": n, "shuffle_partitions": k} for n, k in live.observer.stateful().items()],
            "quiet_period_s": self._quiet_period_s,
            "gap_s": round(live.rhythm.gap_s(), 3),
        }

"""After the schedule: heal, let the pipeline finish, read the sink. Never reads "not yet there" as "lost".

The sink is read when every record lies behind the committed frontier and the sink has stood still. If rows are
missing then, they may be late: the sink is watched until it has not changed for `settle_s`. Last, the whole
application is ended, so that no writer is left, and the sink is read once more: that reading is judged.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from harness.checkpoint import behind, count
from harness.judge import judge
from harness.run.frontier import end_offsets
from harness.scenario import Kind, plain
from harness.sinks import busy, mark, read, save, tried
from harness.wait import Deadline
from harness.workload.readback import read_back

if TYPE_CHECKING:
    from harness.run.live import Live

QUIET_S = 0.4
SETTLE_S = 8.0
TICK_S = 0.1
SILENT_S = 15.0
SLOWER = 3.0
"""How much longer than the first life a later one may take until it has shown itself."""
READ_BACK_S = 120.0
SERVER_IDLE_S = 30.0
LATE = (Kind.LOST, Kind.WRONG_AGGREGATE, Kind.CORRUPTED, Kind.UNEXPECTED)
"""What a sink that shows its rows, or their last version, late can look like for a while."""
READ_BACK_PER_S = 2000.0


class Drain:
    """Ends one run in order."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._pause = threading.Event()
        self._reasons: list[str] = []
        self._stalled: str | None = None
        self._drained = False
        self._silence: dict[int, Deadline] = {}

    def drain(self) -> None:
        """Drain, read, save 1."""
        live = self._live
        live.journal.write("phase", name="draining")
        live.feeder.stop()
        live.producer.close()
        within_s = READ_BACK_S + live.producer.sent / READ_BACK_PER_S
        ends = read_back(live.lease.bootstrap, live.lease.topic, live.folder.source, within_s=within_s)
        live.attempts.close()
        self._drained = self._finish(ends)
        if self._drained:
            self._quiet()
        live.journal.write("phase", name="reading")
        self._read(ends)
        if self._drained:
            self._settle(ends)
        live.supervisor.stop()
        self._server_idle()
        live.healthy()
        if count(end_offsets(live.lease)) > count(ends):
            # A late request of a sender, or another writer: then the ledger does not know all that was consumed.
            self._drained = False
            self._reasons.append("not drained: the topic grew after its records had been read back")
        self._read(ends, last=True)

    def _finish(self, ends: dict[int, int]) -> bool:
        """True once every record lies behind the committed frontier; else says why not."""
        live = self._live
        while True:
            live.healthy()
            now = live.frontier.committed()
            if behind(now, ends) and self._at_work():
                return True
            live.look(committed=count(now), outstanding=True)
            if live.supervisor.gave_up:
                self._stalled = live.supervisor.gave_up
                break
            if live.deadline.over():
                break
            self._pause.wait(TICK_S)
        if behind(now, ends):
            self._reasons.append("not drained: the newest life of the driver had not shown yet where it goes on from")
            return False
        words = f"{count(ends) - count(now)} of {count(ends)} records were not behind the committed frontier"
        self._reasons.append(f"not drained: {words} {live.deadline.seconds:g} s after the warm-up")
        self._stalled = self._stalled or live.pace.stalled() or None
        return False

    def _at_work(self) -> bool:
        """Has the newest life shown where it goes on from? Until then the frontier is a dead one's, and a pipeline that
        lost its checkpoint would begin again. One with nothing left to do stays silent: it is waited for as long as a
        start takes. A program that ended by itself after the last fault (AvailableNow) has done all it would do."""
        live = self._live
        supervisor, life = live.supervisor, live.observer.life
        ended = any(death.status == 0 and death.number > supervisor.last_hurt for death in supervisor.deaths)
        if not supervisor.deaths or supervisor.gave_up or ended or live.awake(whole=True):
            return True
        if life not in self._silence:
            silent_s = max(SILENT_S, SLOWER * live.start_s) + live.scenario.restart.delay_s
            self._silence = {life: Deadline(silent_s)}
        return self._silence[life].over()

    def _marks(self) -> list[str]:
        live = self._live
        return [mark(sink, live.lease.dsns) for sink in live.scenario.sinks]

    def _unchanged(self, for_s: float, limit: Deadline) -> bool:
        """True once the sinks have stood still for `for_s`; false if they changed within it."""
        before, still = self._marks(), Deadline(for_s)
        while not still.over() and not limit.over():
            self._pause.wait(TICK_S)
            if self._marks() != before:
                return False
        return still.over()

    def _quiet(self) -> None:
        limit = Deadline(max(QUIET_S, self._live.deadline.left_s()))
        while not self._unchanged(QUIET_S, limit):
            if limit.over():
                self._drained = False
                self._reasons.append("not drained: the sink was still changing when the time was up")
                return

    def _server_idle(self) -> None:
        """No writer is left; what the server still does for one that was killed is waited for."""
        live, limit = self._live, Deadline(SERVER_IDLE_S)
        room = live.lease
        while left := next(filter(None, (busy(s, room.dsns, shared=room.shared) for s in live.scenario.sinks)), ""):
            if limit.over():
                self._reasons.append(f"unknown: the sink's server was still at work after {SERVER_IDLE_S:g} s: {left}")
                return
            self._pause.wait(TICK_S)

    def _settle(self, ends: dict[int, int]) -> None:
        live = self._live
        # Who names a time says that the sink may show its rows late: then doubled ones may come late too.
        asked, settle_s = live.scenario.settle_s is not None, live.scenario.settle_s or SETTLE_S
        limit = Deadline(max(settle_s * 2, live.deadline.left_s()))
        doubtful = asked or self._missing()
        while doubtful and not limit.over():
            live.journal.write("phase", name="settling")
            if self._unchanged(settle_s, limit):
                return
            self._quiet()
            self._read(ends)
            doubtful = asked or self._missing()
        if doubtful:
            self._drained = False
            still = f"the sink had not stood still for {settle_s:g} s when the time was up"
            self._reasons.append(f"not drained: {still}")

    def _missing(self) -> bool:
        verdict = judge(self._live.folder.path)
        return any(finding.kind in LATE for finding in verdict.findings)

    def _read(self, ends: dict[int, int], *, last: bool = False) -> None:
        live = self._live
        for index, sink in enumerate(live.scenario.sinks):
            table = read(sink, live.lease.dsns)
            save(live.folder.path, index, tried(sink, table, live.lease.dsns, after=live.since) if last else table)
        live.folder.save(1, checkpoint=self._checkpoint(ends), run={"outcome": self._outcome()})

    def _checkpoint(self, ends: dict[int, int]) -> dict[str, Any]:
        live = self._live
        known = live.observer.all()
        # Two checkpoints side by side number their batches each for itself: then no record has one batch.
        alone = bool(known) and all(other.first_life > known[0].first_life for other in known[1:])
        return {
            "batches": known[0].batches() if alone and live.frontier.kind == "checkpoint" else [],
            "frontier": {str(p): o for p, o in sorted(live.frontier.committed().items())},
            "end": {str(p): o for p, o in sorted(ends.items())},
            "drained": self._drained,
        }

    def _outcome(self) -> dict[str, Any]:
        live = self._live
        return {
            "steps": [plain(outcome) for outcome in live.schedule.outcomes],
            "drained": self._drained,
            "reasons": self._reasons,
            "stalled": self._stalled,
            "error": None,
            "deaths": [{"number": d.number, "status": d.status} for d in live.supervisor.deaths],
            "settle_s": live.scenario.settle_s or SETTLE_S,
        }

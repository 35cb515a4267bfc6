"""Before the harness takes the progress's word, the newest attempt of the driver must have shown that it is its own;
before the sinks are read, they must stay unchanged for as long as the program's commit interval asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.checkers.cells import Row
from harness.errors import Interrupted, UsageError
from harness.history import Event, History, Line, ProgressRead, SourceBegun
from harness.run import catch_up
from harness.run.catch_up import CatchUp
from harness.run.progress.commit_gaps import Rhythm
from harness.scenario import Pipeline, Restart, Scenario, Sink
from harness.sinks import reading
from harness.sinks.base import Missing, Reading
from harness.sinks.table import SinkColumn, SinkTable, load, save
from harness.snapshot import Progressed, QueryState, Stalled
from harness.wait import Deadline, ended_by, pause
from tests.windows import TOLD, windowed

SINK = Sink(kind="postgres", target="payments")


def live(
    *,
    has_progress: bool,
    kind: str = "checkpoint",
    deaths: tuple[int, ...] = (-9,),
    gave_up: str = "",
    ended_well: bool = False,
    ended_by_fault: int = 1,
) -> Any:
    return SimpleNamespace(
        has_progress=lambda *, all_queries: has_progress,
        observer=SimpleNamespace(attempt=2),
        start_s=1.0,
        scenario=SimpleNamespace(restart=Restart()),
        progress=SimpleNamespace(kind=kind),
        supervisor=SimpleNamespace(
            deaths=[SimpleNamespace(number=number, status=status) for number, status in enumerate(deaths, 1)],
            gave_up=gave_up,
            last_error="",
            ended_well=ended_well,
            last_ended_by_fault=ended_by_fault,
        ),
    )


@dataclass
class Program:
    """What a catch up sees of a program once it has committed all its input. `rows` gives the mark of its sink at a
    time, `states` where its queries stand; both count readings, not seconds."""

    rows: Callable[[int], str]
    states: Callable[[int], list[QueryState]] = lambda reading: []
    stalls: dict[str, Any] = field(default_factory=dict)
    left_s: float = 5.0
    quiet_period_s: float | None = None
    readings: int = 0
    asked: int = 0
    now_s: float = 0.0

    def catch_up(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> CatchUp:
        def marked(sink: Any, parts: Any) -> str:
            self.readings += 1
            return self.rows(self.readings)

        def stand() -> list[QueryState]:
            self.asked += 1
            return self.states(self.asked)

        monkeypatch.setattr(catch_up, "mark", marked)
        monkeypatch.setattr(catch_up, "TICK_S", 0.001)
        # Only waiting takes time: how fast the machine is must not matter.
        monkeypatch.setattr("harness.wait.monotonic", lambda: self.now_s)
        monkeypatch.setattr(catch_up, "quiet_s", lambda **shown: 0.05)
        monkeypatch.setattr(catch_up, "late_quiet_s", lambda **shown: self.stalls.update(shown) or 0.1)
        running = live(has_progress=True)
        running.scenario = Scenario(
            name="s", pipeline=Pipeline(entry="p.py"), sinks=(SINK,), quiet_period_s=self.quiet_period_s
        )
        running.own = SimpleNamespace(parts={}, folder=folder)
        running.folder = SimpleNamespace(path=folder)
        running.observer.states = stand
        running.rhythm = Rhythm()
        running.rhythm.heard(Line(0, 0.0, SourceBegun(query="hop", batch=0, attempt=0)))
        running.deadline = Deadline(self.left_s)
        running.history = History(None)
        made = CatchUp(running)
        monkeypatch.setattr(catch_up, "pause", self.wait)
        return made

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


def hop(committed: bool) -> list[QueryState]:
    """A query behind another one, its first batch planned and committed or not."""
    return [QueryState(checkpoint="hop", ours=False, offsets=(0,), commits=(0,) if committed else ())]


def quieted(program: Program, monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """The reasons that waiting for the sink to stand still leaves."""
    waiting = program.catch_up(monkeypatch, folder)
    waiting._caught_up = True
    waiting._quiet()
    assert waiting._caught_up is not bool(waiting._reasons)
    return waiting._reasons


def test_a_sink_that_still_changes_begins_its_time_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = Program(rows=lambda reading: str(min(reading, 40)))
    assert quieted(program, monkeypatch, tmp_path) == []
    assert program.readings > 40


def test_a_batch_in_flight_is_waited_for_however_still_the_sink(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = Program(rows=lambda reading: "", states=lambda asked: hop(committed=asked > 30))
    assert quieted(program, monkeypatch, tmp_path) == []
    assert program.asked > 30


def test_a_batch_that_was_planned_after_the_time_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def always(asked: int) -> list[QueryState]:
        return [QueryState(checkpoint="hop", ours=False, offsets=(asked,), commits=(asked - 1,))]

    assert quieted(Program(rows=lambda reading: "", states=always), monkeypatch, tmp_path) == []


def test_without_rest_in_its_time_the_run_is_not_caught_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    still = "not caught up: the sink did not stay unchanged for 0.05 s"
    changing = Program(rows=str, left_s=0.2)
    assert quieted(changing, monkeypatch, tmp_path) == [still]
    held = Program(rows=lambda reading: "", states=lambda asked: hop(committed=False), left_s=0.2)
    assert quieted(held, monkeypatch, tmp_path) == [f"{still}, and batch 0 of hop was in flight"]


def test_a_query_of_a_table_that_comes_late_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def late(reading: int) -> str:
        if reading < 20:
            raise UsageError("no such table")
        return "1 row"

    program = Program(rows=late)
    assert quieted(program, monkeypatch, tmp_path) == []
    assert program.readings > 20


def kept(folder: Path, **table: Any) -> None:
    save(folder, 0, SinkTable(name=SINK.name, kind="postgres", target=SINK.target, **table))


def test_a_sink_that_is_not_there_yet_is_given_time_to_come(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = Program(rows=lambda reading: str(reading > 30))
    waiting = program.catch_up(monkeypatch, tmp_path)
    waiting._caught_up = True
    reads: list[int] = []

    def reading(ends: dict[int, int]) -> None:
        reads.append(program.readings)
        kept(tmp_path, columns=())

    kept(tmp_path, unreadable="no such table")
    monkeypatch.setattr(waiting, "_read", reading)
    monkeypatch.setattr(catch_up, "behind", lambda folder: False)
    waiting._quiet_period({0: 10})
    assert reads and reads[0] > 30 and waiting._caught_up
    assert program.stalls == {"gap_s": 0.0, "interval_s": None, "unshown": False}


def test_windows_that_a_batch_has_yet_to_close_are_given_time_to_come(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The batch that closes them takes no record: all records are committed before it is planned."""
    missing = []
    for name, times in (("early", TOLD[:-1]), ("whole", TOLD)):
        run = windowed(tmp_path / name, times)
        run.injected(3, written=True)
        missing.append(Program(rows=lambda reading: "").catch_up(monkeypatch, run.written())._missing())
    assert missing == [True, False]


def test_one_that_never_comes_is_no_matter_of_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waiting = Program(rows=lambda reading: "").catch_up(monkeypatch, tmp_path)
    waiting._caught_up = True
    kept(tmp_path, unreadable="no such table")
    waiting._quiet_period({0: 10})
    assert waiting._caught_up and waiting._quiet_period_s == 0.1


def test_what_the_harness_takes_to_judge_is_no_time_of_the_sink(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = Program(rows=lambda reading: "")
    waiting = program.catch_up(monkeypatch, tmp_path)
    waiting._caught_up = True
    kept(tmp_path, columns=())

    def slow(folder: Path) -> bool:
        program.now_s += 300.0
        return True

    monkeypatch.setattr(catch_up, "behind", slow)
    waiting._quiet_period({0: 10})
    assert waiting._caught_up and waiting._reasons == []


def test_who_names_a_time_has_it_whatever_the_program_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = Program(rows=lambda reading: "", quiet_period_s=0.02)
    waiting = program.catch_up(monkeypatch, tmp_path)
    assert waiting._quiet_s() == 0.02
    waiting._quiet_period({0: 10})
    assert waiting._quiet_period_s == 0.02 and program.stalls == {}


def test_an_attempt_that_has_shown_nothing_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = CatchUp(live(has_progress=False))
    assert not waiting._at_work()
    assert not waiting._at_work()
    monkeypatch.setattr(catch_up, "SILENT_S", 0.0)
    waiting._live.start_s = 0.0
    assert not waiting._at_work(), "its time had begun before"
    waiting._live.observer.attempt = 3
    assert waiting._at_work(), "one with nothing to do is not waited for without end"


@pytest.mark.parametrize(
    "silent",
    [
        live(has_progress=False, deaths=(0,)),
        live(has_progress=False, deaths=(-9, 0), ended_by_fault=2),
        live(has_progress=False, kind="group"),
    ],
)
def test_a_clean_end_that_the_schedule_asked_for_proves_nothing(silent: Any) -> None:
    assert not CatchUp(silent)._at_work()


def test_a_life_may_take_as_long_as_starts_take_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "SILENT_S", 0.0)
    slow = live(has_progress=False)
    slow.start_s = 10.0
    assert not CatchUp(slow)._at_work()


def test_each_life_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "SILENT_S", 0.0)
    waiting = CatchUp(live(has_progress=False))
    waiting._live.start_s = 0.0
    assert waiting._at_work()
    monkeypatch.setattr(catch_up, "SILENT_S", 15.0)
    waiting._live.observer.attempt = 3
    assert not waiting._at_work()


@pytest.mark.parametrize(
    "at_work",
    [
        live(has_progress=True),
        live(has_progress=False, deaths=()),
        live(has_progress=False, deaths=(-9, 0)),
        live(has_progress=False, gave_up="died too often"),
    ],
)
def test_who_has_shown_it_or_cannot_is_not_waited_for(at_work: Any) -> None:
    assert CatchUp(at_work)._at_work()


def emptied(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """The reasons that a wait for the server leaves; the server gives `answers`, the last one for ever."""
    left = list(answers)
    monkeypatch.setattr(catch_up, "busy", lambda sink, parts: left.pop(0) if len(left) > 1 else left[0])
    monkeypatch.setattr(catch_up, "SERVER_IDLE_S", 0.3)
    asked: Any = SimpleNamespace(scenario=SimpleNamespace(sinks=["t"]), own=SimpleNamespace(parts={}))
    waiting = CatchUp(asked)
    waiting._server_idle()
    return waiting._reasons


def test_what_the_server_still_does_for_a_dead_writer_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert emptied(monkeypatch, "insert", "insert", "") == []


def test_a_server_that_does_not_come_to_rest_leaves_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert emptied(monkeypatch, "insert") == ["inconclusive: the sink's server was still at work after 0.3 s: insert"]


IDLE = Stalled(words="nothing came")


def given_up(words: str, *, well: bool) -> Stalled:
    """As the stall detector tells it."""
    return Stalled(kind="ended well" if well else "gave up", words=words)


def finishing(
    *, committed: int, gave_up: str = "", ended_well: bool = False, stalled: Stalled | None = IDLE
) -> tuple[bool, list[str], Stalled | None]:
    """What a catch up without time left says of 10 records, `committed` of them committed by the pipeline."""
    asked = live(has_progress=False, gave_up=gave_up, ended_well=ended_well)
    asked.deadline, asked.healthy = Deadline(0.0), lambda: None
    asked.progress.committed = lambda: {0: committed}
    asked.stalls = SimpleNamespace(stalled=lambda: stalled, gave_up=given_up)
    asked.observe = lambda committed, outstanding: None
    waiting = CatchUp(asked)
    return waiting._finish({0: 10}), waiting._reasons, waiting._stalled


@pytest.mark.parametrize(("ends", "grew"), [({0: 10}, False), ({0: 11}, True)])
def test_a_source_that_grew_after_it_was_read_back_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: dict[int, int], grew: bool
) -> None:
    """A send without an answer may be there at last: then the ledger does not know all that was consumed."""
    made = Program(rows=lambda reading: "").catch_up(monkeypatch, tmp_path)
    running: Any = made._live
    nothing = SimpleNamespace(stop=lambda: None, close=lambda: None, finish=lambda: None, sent=10)
    running.feeder = running.producer = running.attempts = running.snapshots = nothing
    running.supervisor.stop = running.healthy = lambda: None
    running.folder.source = tmp_path / "source.parquet"
    running.source = SimpleNamespace(read_back=lambda path, within_s: {0: 10}, ends=lambda: ends)
    for name in ("_quiet", "_quiet_period", "_server_idle"):
        monkeypatch.setattr(made, name, lambda *at: None)
    monkeypatch.setattr(made, "_finish", lambda at: True)
    monkeypatch.setattr(made, "_all_sent", lambda: True)
    monkeypatch.setattr(made, "_read", lambda at, last=False: None)
    made.catch_up()
    assert (made._grew, made._caught_up) == (grew, not grew)


def test_a_catch_up_looks_once_even_without_time() -> None:
    assert finishing(committed=10, gave_up="died too often") == (True, [], None)


def test_a_life_that_has_not_shown_itself_is_neither_caught_up_nor_stalled() -> None:
    reason = "not caught up: the newest attempt of the driver had not shown yet where it goes on from"
    assert finishing(committed=10) == (False, [reason], None)


@pytest.mark.parametrize("waits", ["for the pipeline", "for the sink", "for the server"])
def test_a_catch_up_that_waits_is_ended_with_its_suite(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, waits: str
) -> None:
    over = Interrupted("the suite ended")
    waiting = Program(rows=lambda reading: "").catch_up(monkeypatch, tmp_path)
    running: Any = waiting._live
    running.progress.committed = lambda: {0: 0}
    running.healthy, running.observe = lambda: None, lambda committed, outstanding: None
    monkeypatch.setattr(catch_up, "busy", lambda sink, parts: "insert")
    monkeypatch.setattr(catch_up, "pause", pause)
    read: Callable[[], object] = {
        "for the pipeline": lambda: waiting._finish({0: 10}),
        "for the sink": lambda: waiting._unchanged(60.0, Deadline(60.0)),
        "for the server": waiting._server_idle,
    }[waits]
    with ended_by(lambda: over), pytest.raises(Interrupted):
        read()


def test_records_that_nobody_commits_are_counted_and_said_to_stall() -> None:
    reason = (
        "not caught up: 6 of 10 records were not committed by the pipeline when the 0 s after the warm-up were over"
    )
    assert finishing(committed=4) == (False, [reason], IDLE)
    assert finishing(committed=4, stalled=None) == (False, [reason], None)
    assert finishing(committed=4, gave_up="died too often") == (False, [reason.replace(AFTER, DEAD)], GAVE_UP)
    ended = finishing(committed=4, gave_up="it succeeded", ended_well=True)
    assert ended[2] == Stalled(kind="ended well", words="it succeeded")


AFTER, DEAD = "when the 0 s after the warm-up were over", "when the driver had died for the last time"
GAVE_UP = Stalled(kind="gave up", words="died too often")


@pytest.mark.parametrize(
    ("sent", "gave_up", "caught_up", "reasons", "stalled"),
    [
        (10, "", True, [], None),
        (7, "", False, ["not caught up: 7 of 10 records had been sent when the time was up"], None),
        (7, "died too often", False, [f"not caught up: 7 of 10 records had been sent {DEAD}"], GAVE_UP),
    ],
)
def test_an_input_that_was_not_sent_whole_is_not_caught_up(
    sent: int, gave_up: str, caught_up: bool, reasons: list[str], stalled: Stalled | None
) -> None:
    asked = live(has_progress=False, gave_up=gave_up)
    asked.producer = SimpleNamespace(sent=sent, total=10, done=sent == 10, unmet="")
    asked.stalls = SimpleNamespace(gave_up=given_up)
    waiting = CatchUp(asked)
    assert (waiting._all_sent(), waiting._reasons, waiting._stalled) == (caught_up, reasons, stalled)


def test_an_input_that_was_not_as_it_was_asked_for_is_not_caught_up() -> None:
    asked = live(has_progress=False)
    asked.producer = SimpleNamespace(sent=10, total=10, done=True, unmet="no file was renamed once it was taken")
    waiting = CatchUp(asked)
    assert not waiting._all_sent()
    assert waiting._reasons == ["not caught up: no file was renamed once it was taken"]


class Large:
    """A sink of twenty rows, which come in parts of two; `begun` says for each part whether a file was there before."""

    def __init__(self, folder: Path, error: UsageError | None = None) -> None:
        self.folder, self.error = folder, error
        self.begun: list[bool] = []

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        columns = (SinkColumn(name="id", type="bigint", family="number"),)
        yield Reading(columns=columns, parts=self._parts(), unique=lambda: True, version="7")

    def _parts(self) -> Iterator[list[Row]]:
        for at in range(0, 20, 2):
            self.begun.append(any(self.folder.rglob("*parquet*")))
            yield [(str(at),), (str(at + 1),)]
        if self.error is not None:
            raise self.error


def stored(large: Large, monkeypatch: pytest.MonkeyPatch, folder: Path) -> SinkTable:
    """What the catch up leaves of such a sink."""
    monkeypatch.setattr(reading, "SINKS", {"large": SimpleNamespace(unread="", open=lambda sink, own: large)})
    told = list[Event]()
    live = SimpleNamespace(
        scenario=SimpleNamespace(sinks=[Sink(kind="large", target="rows")]),
        own=SimpleNamespace(parts={}),
        since={},
        observer=SimpleNamespace(catch_up=lambda: None),
        folder=SimpleNamespace(path=folder, save=lambda number, **more: None),
        history=SimpleNamespace(write=told.append),
    )
    waiting = CatchUp(live)  # type: ignore[arg-type]
    monkeypatch.setattr(waiting, "_progressed", lambda ends: Progressed())
    monkeypatch.setattr(waiting, "_outcome", dict)
    waiting._read({}, last=True)
    found = load(folder, 0)
    assert found is not None and told == [ProgressRead(progressed=Progressed())]
    return found


def test_a_sink_is_read_into_the_run_folder_part_by_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    large = Large(tmp_path)
    found = stored(large, monkeypatch, tmp_path)
    assert found.rows == [(str(at),) for at in range(20)]
    assert (found.unique, found.version, found.unreadable) == (True, "7", "")
    assert all(large.begun), "none is kept until the last one is read"


def test_a_sink_that_cannot_be_read_to_its_end_leaves_no_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torn = stored(Large(tmp_path, UsageError("file 3 is torn")), monkeypatch, tmp_path)
    assert (torn.rows, torn.columns, torn.unreadable, torn.absent) == ([], (), "file 3 is torn", False)
    gone = stored(Large(tmp_path, Missing("there is none yet")), monkeypatch, tmp_path)
    assert (gone.rows, gone.unreadable, gone.absent) == ([], "there is none yet", True)

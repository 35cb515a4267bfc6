"""What is shown while a suite runs: plain lines in a log, one live line on a terminal, groups under GitHub."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import example, given

from harness.history import (
    AttemptDiagnosed,
    AttemptEnded,
    AttemptStarted,
    BatchPlanned,
    Event,
    FaultInjected,
    FaultMissed,
    History,
    Judged,
    Line,
    Phase,
    RestartsEnded,
    Sent,
    ShuffleCrowded,
    SinkCommitted,
    SinkMissing,
)
from harness.report.summary import Run
from harness.scenario import StepOutcome, Word
from harness.suite.progress import LiveDisplay, Plain, Seen, line, progress
from tests import histories
from tests import sample_runs as sample


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


RUN: list[Event] = [
    Phase(name="set up"),
    AttemptStarted(attempt=1),
    Phase(name="feeding"),
    SinkMissing(sink="postgres kpet", why='relation "kpet" does not exist'),
    ShuffleCrowded(query="checkpoint", partitions=200, cores="2"),
    Sent(records=300, total=600),
    SinkCommitted(query="checkpoint", batch=3, attempt=1),
    FaultMissed(outcome=replace(sample.STEP, injected=False)),
    FaultInjected(outcome=sample.STEP),
    AttemptEnded(attempt=1, status=-9, scheduled=True),
    AttemptStarted(attempt=2),
    AttemptDiagnosed(attempt=1, words="exitCode: 137", scheduled=True),
    AttemptEnded(attempt=2, status=1),
    AttemptDiagnosed(attempt=2, words="no such file"),
    AttemptEnded(attempt=3, status=0),
    RestartsEnded(why="5 restarts"),
    Judged(word=Word.HELD, as_expected=True),
]


def told(stream: StringIO, environment: dict[str, str], run: Run) -> None:
    watched = progress(stream, environment=environment)
    try:
        history = History(None)
        history.listen(watched.started(sample.NAME, number=2, total=18, steps=1))
        for event in RUN:
            history.write(event)
        watched.ended(2, run)
    finally:
        watched.close()
        watched.close()


def held() -> Run:
    return Run(scenario=sample.NAME, verdict=sample.held(), seconds=31.25)


def times_out(text: str) -> str:
    return re.sub(r"\[ +\d+\.\d s\]", "[t]", text)


REPETITION = "postgres payments: repetition of batch 3 (99 rows in the sink, not in Spark's commit log)"
PLAIN = f"""\
2/18 driver dies after the sink committed
[t] set up
[t] feeding
[t] postgres kpet is not there after the first committed batch, or not yet: relation "kpet" does not exist
[t] checkpoint: 200 shuffle tasks a batch on 2 cores: lower spark.sql.shuffle.partitions
[t] fault MISSED: kill driver at sink-committed of batch 3
[t] fault injected: kill driver at sink-committed of batch 3
[t] driver 1 died, status -9
[t] driver 2 launched
[t] driver 2 died, status 1, by itself
[t] diagnostics of attempt 2: no such file
[t] driver 3 ended, status 0
[t] gave up: 5 restarts
[t] ok HELD, expected held: driver dies after the sink committed
               exposed, counts: {REPETITION}
               exposed, counts: postgres payments: loss of batch 3 (planned, not committed)
               crash points reached: sink-committed (repetition; loss)
               crash points not reached: batch-planned, while rows are written
"""


def test_plain_lines() -> None:
    stream = StringIO()
    told(stream, {}, held())
    assert times_out(stream.getvalue()) == PLAIN
    assert "[   31.2 s] ok HELD" in stream.getvalue()


def test_why_a_run_is_not_as_expected_is_said_when_it_ends() -> None:
    stream = StringIO()
    verdict = sample.verdict(word=Word.UNTESTED, reasons=("driver 1 ended; its log ends:\na line\nno such table",))
    told(stream, {}, Run(scenario=sample.NAME, verdict=verdict, seconds=31.25))
    *_, last = stream.getvalue().splitlines()
    assert last == f"{' ' * 15}because: driver 1 ended; its log ends: no such table"


def test_github_gets_a_group() -> None:
    stream = Terminal()
    told(stream, {"GITHUB_ACTIONS": "true"}, held())
    lines = stream.getvalue().splitlines()
    assert lines[0] == "::group::2/18 driver dies after the sink committed"
    assert lines[-1] == "::endgroup::"


def test_a_terminal_shows_one_live_line_and_keeps_one_a_scenario() -> None:
    stream = Terminal()
    told(stream, {"TERM": "xterm", "COLUMNS": "120"}, held())
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue())
    assert "ok 2/18 held driver dies after the sink committed (31.2 s)" in text
    assert "     crash points not reached: batch-planned, while rows are written" in text
    # The cursor is given back.
    assert stream.getvalue().rindex("\x1b[?25h") > stream.getvalue().rindex("\x1b[?25l")


@pytest.mark.parametrize(("jobs", "left"), [(1, "about 4 min left"), (3, "about 1 min left"), (8, "about 50 s left")])
def test_how_long_the_rest_takes_is_known_when_a_run_has_ended(jobs: int, left: str) -> None:
    stream = StringIO()
    watched = progress(stream, environment={}, jobs=jobs)
    watched.started("first", number=1, total=6, steps=1)
    watched.ended(1, replace(held(), seconds=50.0))
    watched.started("second", number=2, total=6, steps=1)
    first, *_, second = (text for text in stream.getvalue().splitlines() if text[0].isdigit())
    assert (first, second) == ("1/6 first", f"2/6 second ({left})")


def test_a_dumb_terminal_gets_plain_lines() -> None:
    assert isinstance(progress(Terminal(), environment={"TERM": "dumb"}), Plain)
    lively = progress(Terminal(), environment={"TERM": "xterm"})
    lively.close()
    assert isinstance(lively, LiveDisplay)


def test_what_is_known_grows_with_the_events() -> None:
    seen = Seen(faults=2)
    for event in RUN:
        seen = seen.after(event)
    assert seen.parts() == ["feeding", "300/600 records", "batch 3", "faults 1/2", "attempt 2"]
    assert Seen().parts() == []


def test_a_hostile_name_stays_on_its_line() -> None:
    assert line(Phase(name="a\n::error::x\x1b[2J")) == "a\\n::error::x\\x1b[2J"
    stream = StringIO()
    progress(stream, environment={}).started("a\n::x\x1b", number=1, total=1, steps=0)
    assert stream.getvalue() == "1/1 a\\n::x\\x1b\n"


@example(BatchPlanned(query="\n", batch=-1, attempt=0))
@example(FaultInjected(outcome=StepOutcome(name="a\n", batch=None, point="\n", injected=True)))
@given(histories.events())
def test_any_event_is_told_on_its_line(event: Event) -> None:
    text = line(event)
    assert text is None or "\n" not in text
    assert all("\n" not in part for part in Seen().after(event).parts())


@pytest.mark.parametrize("kind", [StringIO, Terminal])
def test_events_may_come_from_many_threads(kind: type[StringIO]) -> None:
    stream = kind()
    watched = progress(stream, environment={"TERM": "xterm"})
    try:
        listener = watched.started("a", number=1, total=1, steps=4)
        step = Line(0, 12.4, FaultInjected(outcome=sample.STEP))
        threads = [threading.Thread(target=lambda: [listener(step) for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        if isinstance(watched, LiveDisplay):
            assert watched._seen[1][0].fired == 200
        else:
            assert stream.getvalue().count("fault injected: kill driver") == 200
            assert len(stream.getvalue().splitlines()) == 201
    finally:
        watched.close()

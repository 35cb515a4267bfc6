"""The failure text, to the letter, and the parts that every output is made of."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from harness.report import exposures, summary, table
from harness.report import failure_text as words
from harness.report.escape import cell, cells, dictionary, visible
from harness.report.row_diff import row_diff
from harness.report.summary import Run, error
from harness.scenario import CrashPoint, Evidence, Exposure, Finding, Kind, RecordRef, StepOutcome, Word
from tests import sample_runs as sample

FAILURE = """\
VIOLATED (1 duplicated, 1 corrupted, 1 lost), expected held: driver dies after the sink committed
  injected: kill driver at sink-committed of batch 3, attempt 1, at 12.35 s
    signalled: 4711: SIGKILL; 4720: SIGKILL
    checkpoint before: offsets 0-3, commits 0-2; after: offsets 0-3, commits 0-2
    rows that the row breakpoint counted: 200
    in flight: 200 records
    note: the temporary file was there
    exposed, counts: postgres payments: repetition of batch 3 (99 rows in the sink, not in Spark's commit log)
    exposed, counts: postgres payments: loss of batch 3 (planned, not committed)
  crash points reached: sink-committed (repetition; loss)
  crash points not reached: batch-planned, while rows are written

  1. duplicated in postgres payments: id=17, 1 row too many
     record 0/217 (partition/offset); batch 3; after kill driver at sink-committed of batch 3, attempt 1
                 expected  sink: 1 row too many
        id       17        17
        account  A-3       A-3
        amount   10.00     10.00

  2. corrupted in postgres payments: id=18
     record 1/4 (partition/offset); batch 2
                 expected  sink
        id       18        18
        account  A-3       A-3
     !  amount   10.00     10.01

  3. lost in postgres payments: id=19
     records 2/9, 2/10 (partition/offset); batches 2, 3
     the batch was committed without it
                 expected  sink: no row
        id       19
        account  A-3
        amount   10.00

report: reports/a b/1/report.html
again:  onceproof replay 'reports/a b/1'"""

BRIEF = """\
VIOLATED (1 duplicated, 1 corrupted, 1 lost), expected held: driver dies after the sink committed
  exposed: postgres payments: repetition of batch 3 (99 rows in the sink, not in Spark's commit log)
  exposed: postgres payments: loss of batch 3 (planned, not committed)
  found: duplicated in postgres payments: id=17, 1 row too many (record 0/217 (partition/offset); batch 3; after kill \
driver at sink-committed of batch 3, attempt 1)
  found: corrupted in postgres payments: id=18 (record 1/4 (partition/offset); batch 2)
  found: lost in postgres payments: id=19 (records 2/9, 2/10 (partition/offset); batches 2, 3)
report: reports/a b/1/report.html
again:  onceproof replay 'reports/a b/1'"""

UNTESTED = """\
UNTESTED, expected held: driver dies after the sink committed
  because: step `kill driver` missed its crash point
  MISSED: kill driver at sink-committed of batch 3

report: reports/a/1/report.html
again:  onceproof replay reports/a/1"""

TABLE = """\
    verdict   injected  seconds  scenario
ok  held      1/1       3.0      driver dies
!!  violated  1/1       0.0      driver dies (1 duplicated, 1 corrupted, 1 lost, expected held)
!!  error     -         0.0      a\\u202eb (expected held)
3 runs: 1 as expected, 2 not (1 violated, 1 error)"""


def test_the_failure_text() -> None:
    assert words.failure(sample.NAME, sample.verdict(), Path("reports/a b/1")) == FAILURE


def test_the_failure_text_in_brief_has_no_evidence_and_no_rows() -> None:
    assert words.failure(sample.NAME, sample.verdict(), Path("reports/a b/1"), brief=True) == BRIEF


def test_of_many_findings_and_reasons_the_brief_text_counts_the_rest() -> None:
    many = tuple(replace(sample.duplicated(), key={"id": str(number)}) for number in range(100))
    reasons = tuple(f"reason {number}:\nof the log" for number in range(5))
    lines = words.failure(sample.NAME, sample.verdict(findings=many, reasons=reasons), None, brief=True).splitlines()
    assert [line for line in lines if "because" in line][-1] == "  because: and 2 more"
    found = (
        "  found: 100 duplicated in postgres payments, the first id=0 (batch 3; after kill driver at sink-committed of "
    )
    assert [line for line in lines if "  found: " in line] == [f"{found}batch 3, attempt 1)"]
    other = tuple(replace(sample.duplicated(), sink=f"postgres t{number}") for number in range(5))
    told = words.failure(sample.NAME, sample.verdict(findings=(*other, *many)), None, brief=True).splitlines()
    assert [line.split(" (")[0] for line in told if "  found: " in line] == [
        "  found: 100 duplicated in postgres payments, the first id=0",
        "  found: duplicated in postgres t0: id=17, 1 row too many",
        "  found: duplicated in postgres t1: id=17, 1 row too many",
    ]
    assert told[-1] == "  and 3 more findings"
    stalled = Finding(
        kind=Kind.STALLED, sink="", position=-1, note="the driver died 6 times; its last error: KeyError: 'a'"
    )
    told = words.failure(sample.NAME, sample.verdict(findings=(stalled,)), None, brief=True).splitlines()
    assert "  found: stalled: the driver died 6 times; its last error: KeyError: 'a'" in told
    assert "  because: reason 0: of the log" in lines
    step = StepOutcome(name="kill driver", point="sink-committed", batch=3, injected=False)
    missed = sample.verdict(steps=(step,), exposures=(), findings=())
    told = words.failure(sample.NAME, missed, None, brief=True).splitlines()
    assert "  MISSED: kill driver, sink-committed, batch 3" in told


def test_an_untested_run_says_its_word_and_why() -> None:
    step = StepOutcome(
        name="kill driver", point="sink-committed", crash_point=CrashPoint.SINK_COMMITTED, batch=3, injected=False
    )
    verdict = sample.verdict(
        word=Word.UNTESTED,
        findings=(),
        steps=(step,),
        exposures=(),
        untried=(),
        reasons=("step `kill driver` missed its crash point",),
    )
    assert words.failure(sample.NAME, verdict, Path("reports/a/1")) == UNTESTED


def test_a_reason_of_many_lines_keeps_them_and_of_too_many_the_last() -> None:
    reason = "\n".join(["it crashed; its log ends:", *(f"line {number}\x1b" for number in range(60))])
    first, *rest = words.because(reason)
    assert first == "  because: it crashed; its log ends:"
    assert rest == [f"    line {number}\\x1b" for number in range(20, 60)]
    assert words.because("") == ["  because: "]


def test_an_error_before_the_run_has_no_folder_to_name() -> None:
    assert words.failure("a", error("no Java"), None) == "ERROR, expected held: a\n  because: no Java"


def test_only_ten_findings_are_told_and_the_rest_counted() -> None:
    verdict = sample.verdict(findings=tuple(sample.duplicated(number) for number in range(1234)))
    text = words.failure(sample.NAME, verdict, None)
    assert text.count("duplicated in postgres") == 10
    assert text.splitlines()[-1] == "  and 1,224 more findings"


def test_findings_that_were_only_counted_are_among_the_rest() -> None:
    many = tuple(sample.duplicated(number) for number in range(1000))
    verdict = sample.verdict(findings=(*many, sample.lost()), counts={"duplicated": 100_000})
    text = words.failure(sample.NAME, verdict, None)
    assert text.startswith("VIOLATED (100,000 duplicated, 1 lost), expected held")
    left = "and 99,991 more findings (the run folder has the first 1,000 of 100,000 duplicated)"
    assert text.splitlines()[-1] == f"  {left}"


def test_some_findings_of_each_cause_are_told() -> None:
    many = tuple(sample.duplicated(number) for number in range(40))
    text = words.failure(sample.NAME, sample.verdict(findings=(*many, sample.corrupted(), sample.lost())), None)
    assert [text.count(f"{kind} in postgres") for kind in ("duplicated", "corrupted", "lost")] == [8, 1, 1]
    assert text.index("duplicated in") < text.index("corrupted in") and text.endswith("and 32 more findings")


def test_a_legal_recovery_is_told_last() -> None:
    recovered = Finding(kind=Kind.RECOVERED, sink="s")
    text = words.failure("a", sample.verdict(findings=(recovered, sample.lost())), None)
    assert text.index("lost in") < text.index("recovered in")


def test_many_records_and_batches_are_cut() -> None:
    refs = tuple(RecordRef(partition=0, offset=offset) for offset in range(30))
    finding = Finding(kind=Kind.LOST, sink="s", records=refs, batches=tuple(range(20)), copies=30)
    assert words.title(finding) == "lost in s, 30 rows missing"
    assert words.place(finding, ()) == [
        "records 0/0, 0/1, 0/2, 0/3, 0/4, 0/5, 0/6, 0/7 and 22 more (partition/offset)",
        "batches 0, 1, 2, 3, 4, 5, 6, 7 and 12 more",
    ]


LABEL = "kill driver at sink-committed of batch 3"


def finding(**changes: Any) -> Finding:
    return Finding(kind=Kind.LOST, sink="s", **changes)


@pytest.mark.parametrize(
    ("steps", "fault", "said"),
    [
        ((sample.STEP,), "kill driver", "after kill driver at sink-committed, attempt 1"),
        ((sample.STEP,), LABEL, f"after {LABEL}, attempt 1"),
        ((sample.STEP,), "another one, attempt 2", "after another one, attempt 2"),
        ((sample.STEP, replace(sample.STEP, attempt=2)), "kill driver", "after kill driver"),
        ((replace(sample.STEP, attempt=0, point=""),), "kill driver", "after kill driver"),
    ],
)
def test_a_cause_names_crash_point_and_attempt_if_they_are_those_of_one_step(
    steps: tuple[StepOutcome, ...], fault: str, said: str
) -> None:
    assert words.place(finding(faults=(fault,)), steps) == [said]


def test_what_only_fits_is_never_called_a_cause() -> None:
    assert words.place(finding(fits=("kill driver", "a pause")), (sample.STEP,)) == [
        "may be explained by kill driver, or a pause; the evidence does not tell"
    ]
    (many,) = words.place(finding(fits=tuple(str(number) for number in range(10))), ())
    assert many.endswith("or 7, or 2 more; the evidence does not tell")


def test_what_shows_without_faults_too_is_said() -> None:
    assert words.place(finding(without_faults=True), ()) == ["also without faults"]


def lines_of(*own: Exposure, **changes: Any) -> list[str]:
    return exposures.of_step(sample.verdict(exposures=own, **changes), 1)


SHOWN = "exposed, counts: postgres payments: repetition of batch 3 (99 rows in the sink, not in Spark's commit log)"


def test_an_injection_that_exposes_only_loss_says_so() -> None:
    assert lines_of(sample.repetition()) == [SHOWN]
    assert lines_of(sample.loss()) == [
        "exposed, counts: postgres payments: loss of batch 3 (planned, not committed)",
        "only a loss was exposed",
    ]


def test_an_injection_with_nothing_shown_is_inconsequential_and_says_why() -> None:
    assert lines_of(sample.loss(why="x", note="none of its 100 records has an expected row")) == [
        "exposed, does not count: postgres payments: none of its 100 records has an expected row",
        "only a loss was exposed",
        "does not count: nothing that was exposed would be seen",
    ]
    assert lines_of(sample.repetition(), sample.loss(why="x", note="x"))[1:] == [
        "exposed, does not count: postgres payments: x"
    ]


def test_what_the_guarantee_allows_is_inconsequential() -> None:
    assert lines_of(sample.repetition(allowed=True)) == [
        "exposed, and allowed by the guarantee: "
        "postgres payments: repetition of batch 3 (99 rows in the sink, not in Spark's commit log)",
        "does not count: the guarantee allows what was exposed",
    ]
    one = sample.verdict(exposures=(sample.repetition(allowed=True),), word=Word.HELD)
    assert exposures.points_reached(one) == []
    assert (exposures.harms(one), [line for line in exposures.rests(one) if line.startswith("exposed")]) == ("-", [])
    both = sample.verdict(exposures=(sample.repetition(allowed=True), sample.loss()))
    assert exposures.harms(both) == "loss"


def test_a_repetition_that_came_and_was_dropped_is_not_said_to_have_been_able_to_show() -> None:
    came = sample.repetition(came=True)
    said = "exposed, came, and was dropped by the sink's reader: "
    (line,) = lines_of(came)
    assert line.startswith(said) and "would show" not in line
    held = sample.verdict(exposures=(came,), word=Word.HELD)
    assert [each for each in exposures.rests(held) if each.startswith("exposed")] == [line]
    assert exposures.harms(held) == "repetition (came, and was dropped)"
    assert exposures.points_reached(held) == ["postgres payments: sink-committed (repetition)"]
    assert exposures.harms(sample.verdict(exposures=(came, sample.repetition(), sample.loss()))) == "repetition, loss"
    assert not sample.repetition(came=True, allowed=True).counts


def test_an_injection_without_any_exposure_points_to_the_reasons() -> None:
    said = ["does not count: nothing was exposed; the verdict's reasons say why"]
    assert lines_of(word=Word.UNTESTED) == said
    assert lines_of(sample.repetition(step=2)) == said


@pytest.mark.parametrize("word", [Word.HELD, Word.ERROR])
def test_nothing_is_said_of_exposures_that_nobody_asked_for(word: Word) -> None:
    assert lines_of(word=word) == []


def test_a_step_that_missed_exposed_nothing() -> None:
    assert lines_of(sample.repetition(), steps=(replace(sample.STEP, injected=False),)) == []
    assert exposures.of_step(sample.verdict(), 0) == exposures.of_step(sample.verdict(), 2) == []


def test_where_several_queries_were_struck_each_exposure_names_its_own() -> None:
    first, second = lines_of(sample.repetition(), sample.repetition(checkpoint="other"))
    assert first.startswith("exposed, counts: postgres payments, checkpoint: repetition of batch 3 ")
    assert second.startswith("exposed, counts: postgres payments, other: repetition of batch 3 ")


def test_crash_points_are_told_by_sink() -> None:
    own = (sample.repetition(), sample.loss(sink="postgres documents", position=1, why="x"))
    verdict = sample.verdict(exposures=own, untried=(*sample.UNTRIED, ("postgres third", "a: b")))
    assert exposures.lines(verdict) == [
        "crash points reached: postgres payments: sink-committed (repetition)",
        "crash points not reached: postgres payments: batch-planned, while rows are written; postgres third: a: b",
    ]
    assert exposures.points_reached(verdict) == ["postgres payments: sink-committed (repetition)"]
    both = replace(verdict, exposures=(sample.repetition(), sample.loss(why="x")))
    assert exposures.points_reached(both) == [
        "postgres payments: sink-committed (repetition; loss, which does not count: x)"
    ]
    own = (sample.repetition(why="it retries no task that has finished"), sample.loss())
    why = "it retries no task that has finished"
    told = f"postgres payments: sink-committed (loss; repetition, which does not count: {why})"
    assert exposures.points_reached(replace(verdict, exposures=own)) == [told]


def test_no_crash_points_no_lines_and_none_reached_is_said() -> None:
    assert exposures.lines(sample.verdict(exposures=(), untried=())) == []
    assert exposures.lines(sample.verdict(exposures=()))[0] == "crash points reached: none"
    assert exposures.lines(sample.verdict(untried=()))[1] == "crash points not reached: none"


def test_a_held_says_what_it_rests_on_and_what_limits_it() -> None:
    verdict = replace(sample.held(), notes=("the sink's reader folds equal rows: a repetition does not show in it",))
    assert exposures.rests(verdict) == [
        SHOWN,
        "exposed, counts: postgres payments: loss of batch 3 (planned, not committed)",
        "note: the sink's reader folds equal rows: a repetition does not show in it",
        "crash points reached: sink-committed (repetition; loss)",
        "crash points not reached: batch-planned, while rows are written",
    ]
    assert exposures.rests(sample.verdict()) == []


def test_a_note_with_a_log_is_one_line_with_the_log_s_last() -> None:
    note = "baseline run 1 did not work: it waited 180 s. Its log ends:\nlogs/driver-1.log:\nWARN a\nKilled: 9\n"
    assert exposures.noted(sample.verdict(notes=(note, "plain", ""))) == [
        "note: baseline run 1 did not work: it waited 180 s. Its log ends: Killed: 9",
        "note: plain",
        "note: ",
    ]


def test_many_exposures_are_cut_and_counted() -> None:
    own = tuple(sample.repetition(position=number) for number in range(20))
    assert lines_of(*own)[-1] == "and 8 more"
    assert exposures.harms(sample.verdict(exposures=(sample.loss(why="x"),))) == "-"


@pytest.mark.parametrize(
    ("point", "batch", "crash_point", "said"),
    [
        ("batch-planned", 3, True, " at batch-planned of batch 3"),
        ("sink-committed", None, True, " at sink-committed"),
        ("after 300 records sent", 3, False, ", after 300 records sent, batch 3"),
        ("before the first row in the sink", None, False, ", before the first row in the sink"),
        ("", 3, False, ", batch 3"),
    ],
)
def test_where_a_step_struck(point: str, batch: int | None, crash_point: bool, said: str) -> None:
    assert words.where(point, batch, crash_point=crash_point) == said


def test_a_checkpoint_with_gaps_is_listed() -> None:
    evidence = Evidence(checkpoint_before={"offsets": (0, 2), "commits": ()}, checkpoint_after={})
    assert words.evidence_lines(evidence) == ["checkpoint before: offsets 0 2, commits none; after: nothing"]


def test_no_evidence_no_lines() -> None:
    assert words.evidence_lines(Evidence()) == []


def test_rows_of_an_unexpected_finding_stand_on_the_sinks_side() -> None:
    drawn = row_diff(Finding(kind=Kind.UNEXPECTED, sink="s", found=({"id": "9"},)))
    assert drawn.heads == ("expected: no row", "sink")
    assert [line.cells for line in drawn.lines] == [("", "9")]


def test_copies_of_a_row_are_counted_in_its_head() -> None:
    row, other = sample.row(), sample.row(18)
    doubled = Finding(kind=Kind.DUPLICATED, sink="s", expected=(row,), found=(row,) * 5, copies=1234)
    assert (row_diff(doubled).heads, row_diff(doubled).more) == (("expected", "sink: 1,234 rows too many"), 0)
    two = replace(doubled, expected=(row, other), found=(row, other, other), copies=3)
    assert row_diff(two).heads == ("expected", "sink: 1 row too many", "expected", "sink: 2 rows too many")


def test_rows_beyond_the_drawn_pairs_are_counted() -> None:
    rows = tuple(sample.row(number) for number in range(5))
    assert row_diff(Finding(kind=Kind.UNEXPECTED, sink="s", found=rows)).more == 3


def test_a_surplus_row_with_another_payload_is_marked() -> None:
    finding = Finding(
        kind=Kind.DUPLICATED, sink="s", expected=(sample.row(),), found=(sample.row(), sample.row(amount="9"))
    )
    assert [line.mark for line in row_diff(finding).lines] == [" ", " ", "!"]


def test_a_column_that_one_side_lacks_differs_even_from_null() -> None:
    drawn = row_diff(Finding(kind=Kind.CORRUPTED, sink="s", expected=({"a": None, "b": "1"},), found=({"b": "1"},)))
    assert [(line.mark, line.column, line.cells) for line in drawn.lines] == [
        ("!", "a", ("NULL", "")),
        (" ", "b", ("1", "1")),
    ]


@given(st.text(st.characters()))
def test_visible_text_is_printable_and_encodable(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    shown.encode()
    assert visible(shown) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\ud800", "\\ud800"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\U000e0100", "\\U000e0100"),
        ("hangul\u3164filler", "hangul\\u3164filler"),
        ("no\u00a0break", "no\\xa0break"),
        ("Zürich 東京", "Zürich 東京"),
    ],
)
def test_what_cannot_be_seen_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_cell_says_what_it_is() -> None:
    assert [cell(text) for text in (None, "NULL", "", " a", "a ", "a\\n", '"a"', "a b")] == [
        "NULL", '"NULL"', '""', '" a"', '"a "', "a\\\\n", '""a""', "a b",
    ]  # fmt: skip


def test_a_long_cell_is_cut() -> None:
    assert cell("x" * 1_000_000, 5) == "xxxxx… (999,995 more characters)"
    assert cell("x" * 6, 5) == "xxxxx… (1 more character)"


@given(st.one_of(st.none(), st.text(st.characters())), st.one_of(st.none(), st.text(st.characters())))
def test_cells_that_differ_never_look_the_same(left: str | None, right: str | None) -> None:
    shown = cells(left, right, 10)
    assert (shown[0] == shown[1]) == (left == right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x" * 5000 + "a", "x" * 5000 + "b"),
        ("Apple", "\u0410pple"),
        ("caf\u00e9", "cafe\u0301"),
        ("1", "1 "),
        ("a\nb", "a\\nb"),
        ("x" * 300, "x" * 301),
    ],
)
def test_a_difference_is_brought_into_view(left: str, right: str) -> None:
    one, other = cells(left, right, 40)
    assert one != other
    if left.isascii() != right.isascii():
        assert other.isascii()


def test_nested_settings_are_flat() -> None:
    data = {"a": {"b": 1, "c": [1, 2], "d": [], "e": {}}, "f": None}
    assert dictionary(data) == [("a.b", "1"), ("a.c", "1, 2"), ("f", "none")]


def runs() -> list[Run]:
    return [
        Run(scenario="driver dies", verdict=sample.held(), seconds=3.0),
        Run(scenario="driver dies", verdict=sample.verdict()),
        Run(scenario="a\u202eb", verdict=error("no Java")),
    ]


def test_the_plain_table() -> None:
    assert table.text(runs()) == TABLE


def test_the_table_of_a_terminal_says_the_same_words() -> None:
    console = Console(width=200, record=True, force_terminal=True, file=StringIO())
    console.print(table.table(runs()))
    plain_lines = [line.split() for line in console.export_text().splitlines()]
    assert plain_lines == [line.split() for line in TABLE.splitlines()[:-1]]


def test_a_narrow_terminal_wraps_the_scenario_at_words() -> None:
    name = "a table and an index, both appended to, killed while the index is written"
    console = Console(width=80, record=True, force_terminal=True, file=StringIO())
    console.print(table.table([Run(scenario=name, verdict=sample.verdict(), seconds=163.3)]))
    head, *rows = console.export_text().splitlines()
    assert head.split() == ["verdict", "injected", "seconds", "scenario"]
    assert len(rows) <= 4 and max(map(len, rows)) <= 80
    told = " ".join(row[head.index("scenario") :].strip() for row in rows)
    assert told == f"{name} (1 duplicated, 1 corrupted, 1 lost, expected held)"


def test_markup_in_a_name_is_only_text() -> None:
    console = Console(width=200, record=True, file=StringIO())
    console.print(table.table([Run(scenario="[red]x[/red]", verdict=sample.held())]))
    assert "[red]x[/red]" in console.export_text()


def test_the_command_that_repeats_it_names_the_stack(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"stack": {"stack": "containers", "options": "--stack containers"}}')
    text = words.failure(sample.NAME, sample.verdict(), Path("r/1"), stack_options=summary.stack_options(tmp_path))
    assert text.endswith("again:  onceproof replay r/1 --stack containers")


@pytest.mark.parametrize("text", [None, "", "{}", '{"stack": []}', '{"stack": {"stack": "processes"}}'])
def test_a_stack_that_nobody_knows_is_not_named(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    assert summary.stack_options(tmp_path) == ""
    assert summary.stack_options(None) == ""

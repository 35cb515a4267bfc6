"""From a run folder made by hand to its verdict: no JVM, no server."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.checkers.cells import Row, canonical
from harness.errors import HarnessError, UsageError
from harness.faults import fault
from harness.judge import judged
from harness.judge.examine import FINDINGS_MAX
from harness.judge.read_folder import done as committed_all
from harness.run_folder import ledger
from harness.run_folder.ledger import State
from harness.scenario import (
    Evidence,
    Expected,
    Finding,
    Guarantee,
    Harm,
    Kind,
    Order,
    RecordRef,
    Sink,
    Verdict,
    Word,
)
from harness.sinks.reading import read
from harness.sinks.table import SinkTable, save
from harness.snapshot import Batch, Query
from tests.folders import (
    BEFORE,
    INJECTED,
    PER_RECORD,
    STEP,
    TOTALS,
    TYPES,
    Folder,
    Injected,
    at_point,
    edited,
    judge,
    payments,
    totals,
    values,
)
from tests.limits import examples

pytestmark = pytest.mark.usefixtures("asked_once")


def kinds(verdict: Verdict) -> dict[str, int]:
    return verdict.kinds()


def test_an_honest_pipeline_holds(folder: Folder) -> None:
    verdict = judge(folder)
    assert (verdict.word, verdict.reasons, verdict.findings, verdict.as_expected) == (Word.HELD, (), (), True)
    assert list(verdict.self_tests.values()) == [True] * 4
    assert verdict.steps == (INJECTED,)
    assert verdict.counts == {
        "records": 40,
        "acknowledged": 40,
        "failed": 0,
        "unknown": 0,
        "expected_rows": 40,
        "sink_rows": 40,
        "unseen": 0,
    }


def test_a_batch_written_twice_is_named_with_records_batch_and_fault(folder: Folder) -> None:
    folder.tables = [payments(folder.records) + payments(folder.records[10:20])]
    folder.claim(verdict=Expected(word=Word.VIOLATED, kinds=(Kind.DUPLICATED,)))
    verdict = judge(folder)
    assert (verdict.word, verdict.as_expected, kinds(verdict)) == (Word.VIOLATED, True, {"duplicated": 10})
    assert [finding.key["id"] for finding in verdict.findings] == [str(i) for i in range(10, 20)]
    first = verdict.findings[0]
    assert first.records == (RecordRef(partition=0, offset=10),)
    assert (first.batches, first.faults) == ((1,), ("kill driver at sink-committed of batch 1, attempt 1",))


def test_a_row_dropped_by_hand_is_lost_and_named(folder: Folder) -> None:
    folder.tables = [payments(folder.records[:17] + folder.records[18:])]
    (finding,) = judge(folder).findings
    assert (finding.kind, finding.key, finding.copies) == (Kind.LOST, {"id": "17"}, 1)
    assert finding.records == (RecordRef(partition=0, offset=17),)
    assert finding.expected == ({"id": "17", "account": "a1", "amount": "17.17"},)


def test_all_kinds_at_once(folder: Folder) -> None:
    rows = payments(folder.records)
    rows[3] = (rows[3][0], "a3", "3.04")
    folder.tables = [[*rows[1:], rows[5], ("99", "a", "1")]]
    verdict = judge(folder)
    assert kinds(verdict) == {"lost": 1, "corrupted": 1, "duplicated": 1, "unexpected": 1}
    stray = next(f for f in verdict.findings if f.kind is Kind.UNEXPECTED)
    assert (stray.records, stray.batches) == ((), ())


@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 39), st.sampled_from(["lost", "duplicated", "corrupted"]), st.randoms(use_true_random=False))
def test_any_planted_anomaly_is_that_finding(tmp_path_factory: Any, at: int, kind: str, rng: Any) -> None:
    folder = Folder(tmp_path_factory.mktemp("run") / "run")
    rows = payments(folder.records)
    if kind == "lost":
        del rows[at]
    elif kind == "duplicated":
        rows.append(rows[at])
    else:
        rows[at] = (*rows[at][:2], "0.01")
    rng.shuffle(rows)
    folder.tables = [rows]
    verdict = judge(folder)
    assert [(f.kind.value, f.key["id"], f.copies) for f in verdict.findings] == [(kind, str(at), 1)]
    assert [r.offset for r in verdict.findings[0].records] == [at]
    assert verdict.findings[0].batches == (at // 10,)


def test_an_empty_sink_that_is_empty_without_faults_too_is_untested(folder: Folder) -> None:
    folder.tables, folder.baseline_runs = [[]], [[[]]]
    verdict = judge(folder)
    assert (verdict.word, kinds(verdict)) == (Word.UNTESTED, {"lost": 40})
    assert any("holds not one of the keys" in reason for reason in verdict.reasons)
    assert list(verdict.self_tests.values()) == [True] * 4


def test_a_swapped_table_is_untested(folder: Folder) -> None:
    folder.tables = [[(str(1000 + i), "a", "1") for i in range(40)]]
    folder.baseline_runs = [folder.tables]
    verdict = judge(folder)
    assert (verdict.word, kinds(verdict)) == (Word.UNTESTED, {"lost": 40, "unexpected": 40})


def test_two_tables_of_other_shapes_swapped_are_untested(folder: Folder) -> None:
    folder.claim(sinks=(PER_RECORD, TOTALS))
    folder.tables = [totals(folder.records), payments(folder.records)]
    folder.types = [
        [("account", "text", "text"), ("n", "bigint", "number"), ("total", "numeric", "number")],
        [("id", "bigint", "number"), ("account", "text", "text"), ("amount", "numeric", "number")],
    ]
    verdict = judge(folder)
    assert verdict.word is Word.UNTESTED
    assert (
        "postgres payments: `expected` has columns id, account, amount; the sink has account, n, total"
        in verdict.reasons
    )
    assert "no error was planted to test the checker" in verdict.reasons


def test_types_that_differ_are_untested_and_named(folder: Folder) -> None:
    folder.types = [[("id", "bigint", "number"), ("account", "text", "text"), ("amount", "double precision", "float")]]
    verdict = judge(folder)
    assert verdict.word is Word.UNTESTED
    assert verdict.reasons[0] == (
        "postgres payments: column amount is DECIMAL(12,2) in `expected` and double precision in the sink; "
        "cast one of them, so that the values can be compared exactly"
    )


def test_a_key_that_is_no_column_is_untested(folder: Folder) -> None:
    folder.claim(sinks=(replace(PER_RECORD, key=("nope",)),))
    verdict = judge(folder)
    assert (
        verdict.reasons[0]
        == "postgres payments: the key nope is not among the columns of `expected` id, account, amount"
    )


def test_two_columns_of_one_name_are_untested(folder: Folder) -> None:
    folder.types = [[("id", "bigint", "number"), ("id", "text", "text"), ("amount", "numeric", "number")]]
    assert "postgres payments: two columns have one name in `expected` or in the sink" in judge(folder).reasons


def test_the_order_of_columns_does_not_count(folder: Folder) -> None:
    folder.tables = [[(row[2], row[0], row[1]) for row in payments(folder.records)]]
    folder.types = [[("amount", "numeric", "number"), ("id", "bigint", "number"), ("account", "text", "text")]]
    assert judge(folder).word is Word.HELD


def test_not_caught_up_and_missing_rows_are_unknown_and_never_lost(folder: Folder) -> None:
    folder.progress = 30
    folder.tables = [payments(folder.records[:25])]
    verdict = judge(folder)
    assert (verdict.word, verdict.findings) == (Word.INCONCLUSIVE, ())
    assert verdict.counts["unseen"] == 15
    assert verdict.counts["expected_rows"] == 30
    assert "15 rows of postgres payments are not seen yet: the pipeline has not caught up" in verdict.reasons


def test_not_caught_up_and_rows_ahead_of_the_progress_are_legal(folder: Folder) -> None:
    folder.progress = 20
    folder.tables = [payments(folder.records[:30])]
    verdict = judge(folder)
    assert (verdict.word, verdict.findings) == (Word.INCONCLUSIVE, ())


def test_not_caught_up_and_a_row_twice_is_violated_all_the_same(folder: Folder) -> None:
    folder.progress = 30
    folder.tables = [[*payments(folder.records[:30]), payments(folder.records)[13], ("77", "a", "1")]]
    verdict = judge(folder)
    assert (verdict.word, kinds(verdict)) == (Word.VIOLATED, {"duplicated": 1, "unexpected": 1})


def test_a_total_of_a_pipeline_that_is_not_caught_up_is_not_judged(folder: Folder) -> None:
    folder.claim(sinks=(TOTALS,))
    folder.progress = 30
    folder.tables = [totals(folder.records[:30])]
    verdict = judge(folder)
    assert (verdict.word, verdict.findings, verdict.counts["unseen"]) == (Word.INCONCLUSIVE, (), 4)


def test_a_total_that_shrinks_to_nothing_is_not_unexpected_while_under_way(folder: Folder) -> None:
    expected = "select account, count(*) as n from ledger group by account having count(*) < 8"
    folder.claim(sinks=(replace(TOTALS, expected=expected),))
    folder.types = [[("account", "text", "text"), ("n", "bigint", "number")]]
    folder.progress, folder.tables = 20, [[("a0", "5"), ("zz", "5")]]
    verdict = judge(folder)
    assert verdict.findings == ()
    assert verdict.counts["unseen"] == 2, "zz too: nobody can tell what `expected` called for in between"


def test_a_run_that_says_caught_up_with_records_that_are_not_committed_is_unknown(folder: Folder) -> None:
    folder.progress, folder.outcome = 35, {"caught_up": True}
    path = folder.write()
    edited(path, "progress", caught_up=True)
    verdict = judge(path)
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.reasons == (
        "not caught up: not all records of the source are committed, though the run says otherwise",
    )


LATEST = replace(
    PER_RECORD,
    expected="select id % 20 as id, account, amount from ledger l "
    "where not exists (from ledger later where later.id % 20 = l.id % 20 and later.id > l.id)",
)


def test_an_earlier_version_is_not_called_corrupted_while_later_records_are_under_way(folder: Folder) -> None:
    folder.claim(sinks=(LATEST,))
    evidence = replace(INJECTED.evidence, checkpoint_after={"offsets": (0, 1, 2), "commits": (0, 1)})
    folder.injections, folder.steps = (
        [Injected(planned=3, committed=2)],
        [replace(INJECTED, batch=2, evidence=evidence)],
    )
    folder.progress = 30
    rows = payments(folder.records[20:30] + folder.records[10:20])
    folder.tables = [[(str(int(row[0] or 0) % 20), *row[1:]) for row in rows]]
    verdict = judge(folder)
    assert (verdict.word, verdict.findings, verdict.counts["unseen"]) == (Word.INCONCLUSIVE, (), 10)


def test_a_row_that_no_later_record_changes_is_corrupted_also_before_the_end(folder: Folder) -> None:
    folder.progress = 30
    rows = payments(folder.records[:30])
    folder.tables = [[*rows[:29], (*rows[29][:2], "0.01"), rows[3], ("999", "a", "1")]]
    assert kinds(judge(folder)) == {"corrupted": 1, "duplicated": 1, "unexpected": 1}


def test_a_late_row_turns_unknown_into_held_never_lost_into_held(tmp_path: Path) -> None:
    words = []
    for name, count, progress in (("early", 33, 33), ("late", 40, None)):
        folder = Folder(tmp_path / name, progress=progress)
        folder.tables = [payments(folder.records[:count])]
        words.append(judge(folder).word)
    assert words == [Word.INCONCLUSIVE, Word.HELD]


@pytest.mark.parametrize(
    "step",
    [
        replace(INJECTED, injected=False),
        replace(INJECTED, evidence=Evidence()),
        replace(INJECTED, injected=False, evidence=Evidence()),
    ],
)
def test_a_fault_without_effect_is_untested(folder: Folder, step: Any) -> None:
    folder.steps = [step]
    assert judge(folder).word is Word.UNTESTED


def test_no_fault_at_all_is_untested(folder: Folder) -> None:
    folder.claim(schedule=())
    folder.steps = []
    assert judge(folder).reasons == ("no fault in the schedule: nothing was tested",)


def test_a_step_without_an_outcome_is_untested(folder: Folder) -> None:
    folder.claim(schedule=(STEP, STEP))
    assert judge(folder).reasons == ("only 1 of 2 steps of the schedule have an outcome",)


def test_a_console_is_untested_and_says_so(folder: Folder) -> None:
    console = Sink(kind="console", target="", expected="select * from ledger")
    folder.claim(sinks=(console,))
    folder.tables = [None]
    save(folder.write(), 0, read(console, {}))
    verdict = judge(folder.path)
    assert verdict.word is Word.UNTESTED
    assert any("console could not be read: a console sink cannot be read back" in why for why in verdict.reasons)


def test_a_sink_that_was_never_read_is_untested(folder: Folder) -> None:
    folder.tables = [None]
    assert "postgres payments was never read" in judge(folder).reasons


def test_a_sink_without_query_is_untested(folder: Folder) -> None:
    folder.claim(sinks=(replace(PER_RECORD, expected=None),))
    assert "postgres payments has no `expected` to compare with" in judge(folder).reasons


def test_no_sink_at_all_is_untested(folder: Folder) -> None:
    folder.claim(sinks=())
    folder.tables = []
    verdict = judge(folder)
    assert verdict.word is Word.UNTESTED
    assert "nothing to compare: 0 rows expected, 0 found" in verdict.reasons


def test_a_query_without_rows_is_untested(folder: Folder) -> None:
    folder.claim(sinks=(replace(PER_RECORD, expected="select id, account, amount from ledger where id < 0"),))
    folder.tables = [[]]
    assert "`expected` of postgres payments calls for no row" in judge(folder).reasons


GRAND = "select 1 as one, count(*) as n, sum(amount) as total from ledger"
GRAND_TYPES = [("one", "integer", "number"), ("n", "bigint", "number"), ("total", "numeric", "number")]


@pytest.mark.parametrize(("n", "word"), [("40", Word.HELD), ("50", Word.VIOLATED)])
def test_a_grand_total_is_judged(folder: Folder, n: str, word: Word) -> None:
    folder.claim(sinks=(replace(PER_RECORD, expected=GRAND, key=("one",)),))
    total = str(sum(Decimal(record["amount"]) for record in folder.records))
    folder.tables, folder.types = [[("1", n, canonical(total, "number"))]], [GRAND_TYPES]
    folder.baseline_runs = [[[("1", "40", canonical(total, "number"))]]] * 3
    verdict = judge(folder)
    assert (verdict.word, set(verdict.self_tests.values())) == (word, {True})


@pytest.mark.parametrize(("n", "word"), [("40", Word.HELD), ("50", Word.VIOLATED)])
def test_a_grand_total_may_be_its_own_key(folder: Folder, n: str, word: Word) -> None:
    expected = "select count(*) as n, sum(amount) as total from ledger"
    folder.claim(sinks=(replace(PER_RECORD, expected=expected, key=("n", "total")),))
    total = canonical(str(sum(Decimal(record["amount"]) for record in folder.records)), "number")
    folder.tables, folder.types = [[(n, total)]], [GRAND_TYPES[1:]]
    folder.baseline_runs = [[[("40", total)]]] * 3
    verdict = judge(folder)
    assert (verdict.word, set(verdict.self_tests.values())) == (word, {True})


def test_totals_of_batches_that_tie_count(folder: Folder) -> None:
    """One batch counted twice and its like lost come to the same total; one of the two errors alone is seen."""
    folder.claim(sinks=(replace(PER_RECORD, expected="select count(*) as n from ledger", key=("n",)),))
    folder.tables, folder.types = [[("40",)]], [[("n", "bigint", "number")]]
    verdict = judge(folder)
    assert (verdict.word, [exposure.would_show for exposure in verdict.exposures]) == (Word.HELD, [True])


def test_a_query_with_ties_is_an_error_that_no_baseline_run_is_asked_about(folder: Folder) -> None:
    expected = "select id, account, row_number() over (order by account) as amount from ledger"
    folder.claim(sinks=(replace(PER_RECORD, expected=expected),))
    folder.types = [[("id", "bigint", "number"), ("account", "text", "text"), ("amount", "bigint", "number")]]
    folder.tables = [[(str(i), f"a{i % 4}", "1") for i in range(40)]]
    folder.injections = [Injected(tables=[[]])]
    found = judged(folder.write())
    assert (found.verdict.word, found.baseline_runs_needed) == (Word.ERROR, 0)
    assert (
        "`expected` of postgres payments gives other rows when the ledger is in another order"
        in found.verdict.reasons[0]
    )


def test_a_total_that_spark_says_was_written_shows_a_repetition_whatever_batches_before_come_to(folder: Folder) -> None:
    sink = replace(TOTALS, expected="select 1 as one, count(*) as n from ledger where id < 35", key=("one",))
    folder.claim(sinks=(sink,))
    folder.types, folder.tables = [[("one", "integer", "number"), ("n", "bigint", "number")]], [[("1", "35")]]
    logs = {"offsets": (0, 1, 2), "commits": (0, 1)}
    folder.steps = [replace(INJECTED, batch=2, evidence=replace(INJECTED.evidence, checkpoint_after=logs))]
    folder.injections = [Injected(planned=3, committed=2, again=2)]
    verdict = judge(folder)
    assert (verdict.word, [exposure.would_show for exposure in verdict.exposures]) == (Word.HELD, [True])


@pytest.mark.parametrize(("rows", "word"), [([("40",)], Word.VIOLATED), ([], Word.UNTESTED)])
def test_a_grand_total_that_is_not_there_is_lost_if_it_is_there_without_faults(
    folder: Folder, rows: list[Row], word: Word
) -> None:
    folder.claim(sinks=(replace(PER_RECORD, expected="select count(*) as n from ledger", key=("n",)),))
    folder.tables, folder.types = [[]], [[("n", "bigint", "number")]]
    folder.baseline_runs = [[rows]]
    assert judge(folder).word is word


def test_no_row_is_too_little_for_self_tests(folder: Folder) -> None:
    expected = "select id, account, amount from ledger where id < 0"
    folder.claim(sinks=(replace(PER_RECORD, expected=expected),))
    folder.tables = [[]]
    verdict = judge(folder)
    assert (verdict.word, set(verdict.self_tests.values())) == (Word.UNTESTED, {False})
    assert "self-test `lost row` of postgres payments: no row of postgres payments to plant in" in verdict.reasons


def test_the_producer_lost_an_acknowledged_record(folder: Folder) -> None:
    folder.gone = frozenset({7})
    folder.tables = [payments(folder.records[:7] + folder.records[8:])]
    verdict = judge(folder)
    assert verdict.word is Word.UNTESTED
    assert verdict.reasons == ("the source lost 1 acknowledged records (partition:offset 0:7)",)


def test_no_record_was_acknowledged(folder: Folder) -> None:
    folder.states = lambda seq: State.UNKNOWN
    verdict = judge(folder)
    assert "no record was acknowledged" in verdict.reasons


def test_unknown_sends_fake_neither_loss_nor_duplicate(folder: Folder) -> None:
    folder.states = lambda seq: State.UNKNOWN if seq % 3 == 0 else State.ACKNOWLEDGED
    folder.gone = frozenset({3, 9})
    folder.tables = [payments([r for r in folder.records if r["id"] not in (3, 9)])]
    verdict = judge(folder)
    assert (verdict.word, kinds(verdict)) == (Word.HELD, {"recovered": 12})
    assert (verdict.counts["unknown"], verdict.counts["acknowledged"], verdict.counts["records"]) == (14, 26, 38)
    assert verdict.findings[0] == Finding(
        kind=Kind.RECOVERED,
        sink="source",
        position=-1,
        key={"seq": "0"},
        records=(RecordRef(partition=0, offset=0),),
        note="the send had no answer, and the record is there",
    )


def test_recovered_records_that_were_cut_are_counted(tmp_path: Path) -> None:
    many = Folder(
        tmp_path / "run",
        records=values(FINDINGS_MAX + 5),
        states=lambda seq: State.UNKNOWN if seq else State.ACKNOWLEDGED,
    )
    many.tables = [payments(many.records)]
    verdict = judge(many)
    assert (len(verdict.findings), verdict.counts["recovered"]) == (FINDINGS_MAX, FINDINGS_MAX + 4)
    assert kinds(verdict) == {"recovered": FINDINGS_MAX + 4}


def test_a_torn_ledger_is_untested(folder: Folder) -> None:
    path = folder.write()
    log = path / "ledger" / "attempts.log"
    log.write_bytes(log.read_bytes()[:-3])
    verdict = judge(path)
    assert verdict.word is Word.UNTESTED
    assert verdict.reasons[0].startswith("the ledger of attempts is torn at byte")


def stall(**changes: Any) -> dict[str, Any]:
    return {"stalled": {"kind": "idle", "idle_s": 91.0, "words": "nothing was committed in the last 91 s", **changes}}


def test_a_stalled_pipeline_violates_if_it_gets_done_without_faults(folder: Folder) -> None:
    folder.progress, folder.outcome = 30, stall()
    folder.tables, folder.baseline_runs = [payments(folder.records[:30])], []
    found = judged(folder.write())
    assert (found.verdict.word, found.baseline_runs_needed) == (Word.INCONCLUSIVE, 1)
    shutil.rmtree(folder.path)
    calm = replace(folder, progress=None)
    for number in (1, 2, 3):
        calm._baseline_run(number, [payments(folder.records)])
    verdict = judge(folder)
    assert (verdict.word, kinds(verdict)) == (Word.VIOLATED, {"stalled": 1})
    assert verdict.findings[0].note == "nothing was committed in the last 91 s"
    assert verdict.findings[0].faults == ("kill driver at sink-committed of batch 1, attempt 1",)


def test_reasons_of_the_run_loop_are_sorted_by_what_they_mean(folder: Folder) -> None:
    folder.outcome = {"reasons": ["not caught up: the sink was still changing", "unknown: x"], "caught_up": False}
    verdict = judge(folder)
    assert (verdict.word, verdict.reasons) == (
        Word.INCONCLUSIVE,
        ("not caught up: the sink was still changing", "unknown: x"),
    )


def test_a_reason_of_the_run_loop_leaves_the_verdict_open_whatever_it_says(folder: Folder) -> None:
    folder.outcome = {"reasons": ["the server was still at work"]}
    verdict = judge(folder)
    assert (verdict.word, verdict.reasons) == (Word.INCONCLUSIVE, ("the server was still at work",))


def test_an_error_of_the_run_wins(folder: Folder) -> None:
    folder.outcome = {"error": "the broker died"}
    folder.tables = [[]]
    verdict = judge(folder)
    assert (verdict.word, verdict.reasons[0]) == (Word.ERROR, "the broker died")


def test_a_total_counted_twice_is_explained_by_its_batch(folder: Folder) -> None:
    folder.claim(sinks=(TOTALS,))
    folder.tables = [totals(folder.records + folder.records[10:20])]
    verdict = judge(folder)
    assert kinds(verdict) == {"wrong aggregate": 4}
    assert {f.note for f in verdict.findings} == {"too high by exactly batch 1"}
    assert {f.batches for f in verdict.findings} == {(1,)}
    assert [r.offset for r in verdict.findings[0].records] == [12, 16]


def test_a_total_that_misses_a_batch_is_explained_too(folder: Folder) -> None:
    folder.claim(sinks=(TOTALS,), guarantee=Guarantee.AT_MOST_ONCE, schedule=(STEP, STEP))
    first = replace(
        INJECTED, batch=0, evidence=replace(INJECTED.evidence, checkpoint_after={"offsets": (0,), "commits": ()})
    )
    folder.steps = [first, replace(BEFORE, attempt=2)]
    folder.injections = [Injected(planned=1, committed=0, again=0), Injected(step=2, attempt=2, holds=10)]
    folder.tables = [totals(folder.records[:10] + folder.records[20:])]
    folder.baseline_runs = [[totals(folder.records)]]
    verdict = judge(folder)
    assert {f.note for f in verdict.findings} == {"too low by exactly batch 1"}
    assert {f.faults for f in verdict.findings} == {("kill driver at batch-planned of batch 1, attempt 2",)}
    assert verdict.word is Word.HELD


@pytest.mark.parametrize(("without", "word"), [(range(0), Word.HELD), (range(20, 30), Word.VIOLATED)])
def test_a_later_batch_that_is_lost_violates_at_most_once_if_it_is_without_faults(
    folder: Folder, without: range, word: Word
) -> None:
    folder.claim(guarantee=Guarantee.AT_MOST_ONCE)
    folder.tables = [payments(folder.records[:20] + folder.records[30:])]
    folder.baseline_runs = [[payments([each for each in folder.records if each["id"] not in without])]]
    verdict = judge(folder)
    assert (verdict.word, {f.without_faults for f in verdict.findings}) == (word, {bool(without)})


def test_a_total_by_a_computed_key_names_the_batches(folder: Folder) -> None:
    expected = "select id // 10 as tens, count(*) as n from ledger group by 1"
    folder.claim(sinks=(replace(TOTALS, expected=expected, key=("tens",)),))
    folder.types = [[("tens", "bigint", "number"), ("n", "bigint", "number")]]
    folder.tables = [[("0", "10"), ("1", "10"), ("3", "10")]]
    (finding,) = judge(folder).findings
    assert (finding.kind, finding.key, finding.batches) == (Kind.LOST, {"tens": "2"}, (2,))


def test_float_totals_that_differ_by_rounding_are_unknown(folder: Folder) -> None:
    expected = "select account, sum(amount::double) as total from ledger group by account"
    folder.claim(sinks=(replace(TOTALS, expected=expected),))
    folder.types = [[("account", "text", "text"), ("total", "double precision", "float")]]
    honest = [(account, repr(float(str(total)))) for account, _, total in totals(folder.records)]
    near = [(account, repr(float(total) * (1 + 1e-13))) for account, total in honest]
    folder.tables = [[*near]]
    verdict = judge(folder)
    assert (verdict.word, verdict.findings) == (Word.INCONCLUSIVE, ())
    assert verdict.reasons[0].startswith("4 totals of postgres totals differ only by rounding")


def test_two_sinks_are_judged_each_for_itself(folder: Folder) -> None:
    folder.claim(sinks=(PER_RECORD, TOTALS))
    folder.tables = [payments(folder.records[:-1]), totals(folder.records)]
    verdict = judge(folder)
    assert [(f.kind, f.sink) for f in verdict.findings] == [(Kind.LOST, "postgres payments")]
    assert verdict.counts["expected_rows"] == 44


def test_sinks_that_must_agree_say_who_holds_the_key(folder: Folder) -> None:
    second = replace(PER_RECORD, part="second")
    folder.claim(sinks=(PER_RECORD, second), together=True)
    folder.tables = [payments(folder.records), payments(folder.records[:-1])]
    (finding,) = judge(folder).findings
    assert (finding.sink, finding.note.partition(";")[0]) == (
        "postgres.second payments",
        "postgres payments holds this key",
    )


LONG = "select id, account, amount from a_table_of_payments_with_a_very_long_name where half = "


def long_sinks() -> tuple[Sink, ...]:
    """Two queries that only the 60th character and what follows tell apart."""
    odd, even = (replace(PER_RECORD, target=f"{LONG}{half}") for half in (1, 0))
    expected = "select id, account, amount from ledger where id % 2 = "
    return replace(odd, expected=f"{expected}1"), replace(even, expected=f"{expected}0")


def test_a_sink_that_is_apart_does_not_swallow_the_findings_of_its_namesake(folder: Folder) -> None:
    folder.claim(sinks=long_sinks())
    folder.types = [TYPES["payments"], TYPES["payments"]]
    rows = payments(folder.records)
    folder.tables = [[("-1", "a", "1")], rows[:-2:2]]
    folder.baseline_runs = [[rows, rows]] * 3
    verdict = judge(folder)
    assert verdict.word is Word.VIOLATED
    assert [(f.kind, f.position) for f in verdict.findings if f.key == {"id": "38"}] == [(Kind.LOST, 1)]
    assert {f.sink[-9:] for f in verdict.findings} == {" (sink 1)", " (sink 2)"}


def test_namesakes_that_must_agree_are_told_apart(folder: Folder) -> None:
    one, two = long_sinks()
    folder.claim(
        sinks=(replace(one, expected=PER_RECORD.expected), replace(two, expected=PER_RECORD.expected)), together=True
    )
    folder.types = [TYPES["payments"], TYPES["payments"]]
    folder.tables = [payments(folder.records), payments(folder.records[:-1])]
    (finding,) = judge(folder).findings
    assert (finding.position, finding.sink[-9:]) == (1, " (sink 2)")
    assert "(sink 1) holds this key" in finding.note


@pytest.mark.parametrize(("agree", "word"), [(False, Word.HELD), (True, Word.VIOLATED)])
def test_a_loss_that_the_guarantee_allows_is_none_where_the_sinks_must_agree(
    folder: Folder, agree: bool, word: Word
) -> None:
    second = replace(PER_RECORD, part="second")
    folder.claim(sinks=(PER_RECORD, second), together=agree, guarantee=Guarantee.AT_MOST_ONCE)
    folder.injections, folder.steps = [Injected(holds=15)], [at_point(INJECTED, "after 15 rows")]
    folder.tables = [payments(folder.records), payments(folder.records[:15] + folder.records[20:])]
    folder.baseline_runs = [[payments(folder.records), payments(folder.records)]]
    assert judge(folder).word is word


def test_one_of_two_sinks_empty_without_faults_too_has_lost_its_rows(folder: Folder) -> None:
    folder.claim(sinks=(PER_RECORD, replace(PER_RECORD, part="second")))
    folder.tables = [payments(folder.records), []]
    folder.baseline_runs = [folder.tables]
    verdict = judge(folder)
    assert (verdict.word, kinds(verdict)) == (Word.VIOLATED, {"lost": len(folder.records)})
    assert all(finding.without_faults for finding in verdict.findings)


ORDERED = replace(PER_RECORD, order=Order(by="place", follows="id", per=("account",)))
PLACED = [*TYPES["payments"], ("place", "bigint", "number")]


def test_rows_out_of_order_are_misordered(folder: Folder) -> None:
    folder.claim(sinks=(ORDERED,))
    folder.types = [PLACED]
    rows = [(*row, str(i)) for i, row in enumerate(payments(folder.records))]
    folder.tables = [[*rows]]
    seen = Injected()
    folder.injections = [replace(seen, tables=[rows[: seen.planned * folder.batch_size]])]
    assert judge(folder).word is Word.HELD
    other = Folder(folder.path.parent / "other", scenario=folder.scenario, types=[PLACED])
    rows[0], rows[4] = (*rows[0][:3], "4"), (*rows[4][:3], "0")
    other.tables = [[*rows]]
    verdict = judge(other)
    assert [(f.kind, f.key, f.copies) for f in verdict.findings] == [(Kind.MISORDERED, {"account": "a0"}, 1)]


def test_a_key_that_several_rows_share_is_noted(folder: Folder) -> None:
    folder.claim(sinks=(replace(PER_RECORD, key=("account",)),))
    words = "postgres payments: 40 rows share 4 keys (account): a finding speaks of all rows of its key"
    verdict = judge(folder)
    assert (verdict.word, verdict.notes) == (Word.HELD, (words,))


@pytest.mark.parametrize("first", range(0, 39, 3))
def test_a_tie_of_any_two_neighbours_is_seen(folder: Folder, first: int) -> None:
    one, two = (folder.records[place] for place in (first, first + 1))
    two["account"] = one["account"] = "tied"
    expected = "select account, first(id) as id from ledger where account = 'tied' group by account"
    folder.claim(sinks=(replace(TOTALS, expected=expected),))
    folder.types = [[("account", "text", "text"), ("id", "bigint", "number")]]
    folder.tables = [[("tied", str(first))]]
    assert "gives other rows when the ledger is in another order" in judge(folder).reasons[0]


@pytest.mark.parametrize("limit", [100_000, 1])
def test_a_query_that_hangs_on_the_order_of_the_ledger_is_an_error(
    folder: Folder, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["harness.judge.examine"], "SHUFFLED_MAX", limit)
    expected = "select account, first(id) as id from ledger group by account"
    folder.claim(sinks=(replace(TOTALS, expected=expected),))
    folder.types = [[("account", "text", "text"), ("id", "bigint", "number")]]
    folder.tables = [[(f"a{n}", str(n)) for n in range(4)]]
    verdict = judge(folder)
    words = "`expected` of postgres totals gives other rows when the ledger is in another order"
    assert verdict.word is Word.ERROR
    assert verdict.reasons[0] == f"{words}. Order it by columns that no two records share"


def test_offsets_in_a_group_are_not_asked_of_checkpoints(folder: Folder) -> None:
    folder.claim(pipeline=replace(folder.scenario.pipeline, progress="group"))
    assert judge(folder).word is Word.HELD


def test_what_is_out_of_order_is_found_beside_what_is_lost_and_in_its_own_sink(folder: Folder) -> None:
    folder.claim(sinks=(PER_RECORD, replace(ORDERED, part="second")))
    folder.types = [TYPES["payments"], PLACED]
    rows = [(*row, str(i)) for i, row in enumerate(payments(folder.records))]
    rows[0], rows[4] = (*rows[0][:3], "4"), (*rows[4][:3], "0")
    ordered = [row for row in rows if row[0] != "39"]
    folder.tables = [payments(folder.records), [*ordered]]
    found = judge(folder).findings
    assert {(each.kind, each.position) for each in found} >= {(Kind.MISORDERED, 1)}
    assert {each.position for each in found} == {1}
    assert len(found) > 1


def test_an_order_by_several_columns_names_them(folder: Folder) -> None:
    folder.claim(sinks=(replace(ORDERED, order=Order(by="place", follows="id", per=("account", "amount"))),))
    folder.types = [PLACED]
    folder.tables = [[(*row, str(i)) for i, row in enumerate(payments(folder.records))]]
    words = "the order of postgres payments cannot be judged: no two rows share account, amount"
    assert words in judge(folder).reasons


def test_an_order_that_cannot_be_judged_is_untested(folder: Folder) -> None:
    folder.claim(sinks=(ORDERED,))
    words = "the order cannot be judged: postgres payments has no column place; it has id, account, amount"
    assert words in judge(folder).reasons
    other = Folder(folder.path.parent / "other", scenario=folder.scenario, types=[PLACED])
    other.tables = [[(*row, None) for row in payments(folder.records)]]
    assert "the order of postgres payments cannot be judged: no two rows share account" in judge(other).reasons


def test_findings_are_bounded_and_counted(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "run", records=values(FINDINGS_MAX + 50), batch_size=500)
    folder.tables = [payments(folder.records[:20])]
    verdict = judge(folder)
    assert len(verdict.findings) == FINDINGS_MAX
    assert verdict.counts["lost"] == FINDINGS_MAX + 30
    assert kinds(verdict) == {"lost": FINDINGS_MAX + 30}


def test_findings_that_were_cut_are_not_held_under_a_weaker_guarantee(tmp_path: Path) -> None:
    """One altered copy behind more faithful ones than are kept: at-least-once allows those, and never that one."""
    folder = Folder(tmp_path / "run", records=values(FINDINGS_MAX + 50), batch_size=500)
    rows = payments(folder.records)
    altered = (*rows[-1][:-1], "0")
    folder.tables, folder.injections = [[*rows, *rows[:-1], altered]], [Injected(holds=750)]
    folder.steps = [at_point(INJECTED, "after row 250 in the sink")]
    folder.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    verdict = judge(folder)
    assert verdict.word is Word.INCONCLUSIVE
    assert any("too many findings in postgres payments" in reason for reason in verdict.reasons)


def test_without_batches_findings_name_records(folder: Folder) -> None:
    folder.batch_size, folder.tables = 10**6, [payments(folder.records[1:])]
    path = folder.write()
    edited(path, "progress", batches=[])
    (finding,) = judge(path).findings
    assert (finding.batches, finding.faults) == ((), ())
    assert finding.records == (RecordRef(partition=0, offset=0),)


def test_judging_twice_gives_the_same_verdict(folder: Folder) -> None:
    folder.tables = [payments(folder.records)[::-1] * 2]
    path = folder.write()
    assert judge(path) == judge(path)


def test_a_wrong_query_names_scenario_words_and_columns(folder: Folder) -> None:
    folder.claim(sinks=(replace(PER_RECORD, expected="select idd from ledger"),))
    folder.injections = []
    with pytest.raises(UsageError) as refusal:
        judge(folder)
    words = str(refusal.value)
    assert "scenario `by hand`" in words
    assert '"idd" not found' in words
    assert "columns of `ledger`: id, account, amount, _partition, _offset, _timestamp_ms, _batch, value, key" in words


@pytest.mark.parametrize("name", ["plan.json", "run.json"])
def test_a_folder_that_is_not_whole_is_a_clear_error(folder: Folder, name: str) -> None:
    path = folder.write()
    whole = (path / name).read_text()
    (path / name).unlink()
    with pytest.raises(UsageError, match=f"it has no {name}"):
        judge(path)
    (path / name).write_text(whole[:-5])
    with pytest.raises(HarnessError, match=f"{name} is not readable"):
        judge(path)
    (path / name).write_text("[]")
    with pytest.raises(UsageError, match="it holds no object"):
        judge(path)


def test_a_run_whose_history_is_not_whole_is_a_clear_error(folder: Folder) -> None:
    path = folder.write()
    whole = (path / "history.jsonl").read_text()
    (path / "history.jsonl").write_text(whole[:-5])
    with pytest.raises(UsageError, match="its history ends before its sinks were read"):
        judge(path)
    edited_text = whole.replace('"end"', '"ends"', 1).replace('"caught_up": true', '"caught_up": "far"')
    (path / "history.jsonl").write_text(edited_text)
    with pytest.raises(UsageError, match=r"history\.jsonl is damaged, or of another version"):
        judge(path)
    (path / "history.jsonl").unlink()
    with pytest.raises(UsageError, match=r"it has no history\.jsonl|has no history\.jsonl"):
        judge(path)


def test_a_plan_without_scenario_or_columns_is_a_clear_error(folder: Folder) -> None:
    path = folder.write()
    plan = json.loads((path / "plan.json").read_text())
    (path / "plan.json").write_text(json.dumps({**plan, "columns": None}))
    with pytest.raises(UsageError, match="it has no columns of the ledger"):
        judge(path)
    (path / "plan.json").write_text(json.dumps({**plan, "scenario": {"name": "x"}}))
    with pytest.raises(UsageError, match="pipeline: Field required"):
        judge(path)


def test_a_damaged_sink_file_is_a_clear_error(folder: Folder) -> None:
    path = folder.write()
    about = json.loads((path / "sink" / "0.json").read_text())
    (path / "sink" / "0.json").write_text(json.dumps({**about, "rows": 41}))
    with pytest.raises(HarnessError, match="has 40 rows, and 41 were read"):
        judge(path)
    (path / "sink" / "0.parquet").write_bytes(b"PAR1")
    with pytest.raises(HarnessError, match="is damaged"):
        judge(path)


def append(path: Path, **changes: object) -> None:
    """One more record in the source: the fourth one, changed."""
    file = path / "ledger" / "source.parquet"
    rows = pq.read_table(file).to_pylist()
    rows.append({**rows[3], "offset": 40, **changes})
    ledger.write_source(file, pa.Table.from_pylist(rows, ledger.SOURCE).to_batches())


def test_a_record_written_twice_by_the_producer_is_an_error(folder: Folder) -> None:
    path = folder.write()
    append(path)
    verdict = judge(path)
    assert verdict.word is Word.ERROR
    assert verdict.reasons[0] == "the producer wrote records twice into the source (partition:offset 0:3, 0:40)"


def test_records_of_somebody_else_are_untested(folder: Folder) -> None:
    path = folder.write()
    append(path, seq=99)
    assert "the source holds 1 records that the harness did not send" in judge(path).reasons


def test_a_sink_that_could_not_be_read_is_untested_and_says_why(folder: Folder) -> None:
    path = folder.write()
    save(path, 0, SinkTable(name="n", kind="postgres", target="t", unreadable="no such table"))
    verdict = judge(path)
    assert (verdict.word, verdict.findings) == (Word.UNTESTED, ())
    assert "postgres payments could not be read: no such table" in verdict.reasons


def test_a_pause_exposes_no_repetition(folder: Folder) -> None:
    pause = replace(STEP, do=fault("pause driver", for_s=1.0))
    stood = replace(INJECTED.evidence, signalled={"4711": "paused for 1 s"}, driver_status=None)
    folder.claim(schedule=(pause,))
    folder.steps, folder.injections = [replace(INJECTED, name="pause driver", evidence=stood)], [Injected(again=None)]
    verdict = judge(folder)
    assert (verdict.word, verdict.exposures) == (Word.UNTESTED, ())


def away(folder: Folder, server: str, *, holds: int, again: int | None, point: str = "batch-planned") -> Verdict:
    """Batch 1 is in flight when a server is killed, and the sink holds `holds` records; no driver dies of it. `again`
    is the first batch of the next attempt, None where there is none."""
    folder.claim(schedule=(replace(STEP, do=fault(f"kill {server}", for_s=3.0)),))
    killed = replace(INJECTED.evidence, signalled={server: "gone after SIGKILL, back after 3 s"}, driver_status=None)
    folder.steps = [replace(at_point(INJECTED, point), name=f"kill {server}", evidence=killed)]
    folder.injections = [Injected(holds=holds, again=again)]
    return judge(folder)


@pytest.mark.parametrize(
    ("holds", "again", "harms"),
    [
        pytest.param(14, None, {Harm.LOSS}, id="waited for in the middle of a batch"),
        pytest.param(14, 1, {Harm.LOSS, Harm.REPETITION}, id="an attempt ended of it"),
        pytest.param(14, 2, {Harm.LOSS}, id="an attempt ended later"),
        pytest.param(20, None, set(), id="waited for when all was written"),
    ],
)
def test_a_broker_that_was_waited_for_exposes_no_repetition(
    folder: Folder, holds: int, again: int | None, harms: set[Harm]
) -> None:
    verdict = away(folder, "kafka", holds=holds, again=again)
    assert {exposure.harm for exposure in verdict.exposures} == harms
    assert verdict.word is (Word.HELD if harms else Word.UNTESTED)


def test_what_came_again_while_a_broker_was_away_has_its_outage(folder: Folder) -> None:
    """A task whose records could not be delivered in time is tried again by the same driver."""
    folder.tables = [payments(folder.records) + payments(folder.records[10:14])]
    verdict = away(folder, "kafka", holds=14, again=None)
    assert verdict.word is Word.VIOLATED
    assert {each.faults for each in verdict.findings} == {("kill kafka at batch-planned of batch 1, attempt 1",)}


@pytest.mark.parametrize("server", ["kafka", "postgres", "mariadb", "opensearch", "s3", "namenode"])
@pytest.mark.parametrize("again", [pytest.param(None, id="it lives"), pytest.param(2, id="it ended behind the batch")])
@pytest.mark.parametrize("point", ["batch-planned", "sink-committed", "failpoint all-sent"])
def test_what_is_whole_is_not_done_again_by_a_driver_that_lives(
    folder: Folder, server: str, again: int | None, point: str
) -> None:
    verdict = away(folder, server, holds=20, again=again, point=point)
    assert (verdict.word, [exposure for exposure in verdict.exposures if exposure.counts]) == (Word.UNTESTED, [])


@pytest.mark.parametrize("server", ["postgres", "mariadb", "opensearch"])
@pytest.mark.parametrize(
    ("holds", "again"),
    [
        pytest.param(14, 1, id="in part"),
        pytest.param(20, 1, id="whole"),
    ],
)
def test_what_the_next_attempt_writes_again_into_a_sink_that_was_away_is_exposed(
    folder: Folder, server: str, holds: int, again: int
) -> None:
    verdict = away(folder, server, holds=holds, again=again)
    assert verdict.word is Word.HELD
    assert Harm.REPETITION in {exposure.harm for exposure in verdict.exposures if exposure.counts}


def test_rows_handed_to_one_sink_are_no_beginning_in_the_other(folder: Folder) -> None:
    folder.claim(sinks=(PER_RECORD, replace(PER_RECORD, part="second")))
    folder.tables, folder.steps = [payments(folder.records)] * 2, [BEFORE]
    folder.injections = [Injected(holds=10, handed={"0": (14, 10)}, left=None)]
    exposures = judge(folder).exposures
    assert [(exposure.position, exposure.harm) for exposure in exposures] == [
        (0, Harm.REPETITION),
        (0, Harm.LOSS),
        (1, Harm.LOSS),
    ]


def took(batch: int, start: int, end: int) -> Batch:
    return Batch(batch=batch, ranges={0: (start, end)}, committed=True)


@pytest.mark.parametrize(
    ("batches", "done"),
    [
        ((took(0, 0, 20), took(1, 20, 40)), True),
        ((took(1, 20, 40), took(0, 0, 20)), True),
        ((took(0, 0, 20), replace(took(1, 20, 40), committed=False)), False),
        ((took(0, 0, 40), Batch(batch=1, ranges={}, committed=True)), True),
        ((took(0, 0, 39),), False),
        ((), False),
    ],
)
def test_a_query_is_done_when_it_has_committed_the_whole_topic(batches: tuple[Batch, ...], done: bool) -> None:
    query = Query(checkpoint="c", batches=batches, first={1: 0})
    assert committed_all(query, {0: 40}) is done
    assert committed_all(query, {0: 40, 1: 1}) is False, "nothing was read of a partition that has a record"
    assert committed_all(query, {1: 0}) is True, "nor of one that has none"


def test_a_total_that_is_not_there_refutes_no_batch(tmp_path: Path) -> None:
    """Batch 1 was lost, and the only records of one account with it. Batch 2 would explain the other total as well."""
    records = [{"id": i, "account": "a0", "amount": "1.00"} for i in range(40)]
    records[15]["account"], records[25]["account"] = "a1", "a2"
    folder = Folder(tmp_path / "run", records=records)
    folder.claim(sinks=(TOTALS,))
    folder.tables = [[("a0", "29", "29"), ("a2", "1", "1")]]
    (gone,) = [each for each in judge(folder).findings if each.kind is Kind.WRONG_AGGREGATE]
    assert gone.batches == (1,)


def test_before_the_catch_up_a_query_that_cannot_be_run_over_a_part_is_that_of_all_records(tmp_path: Path) -> None:
    whole = "case when (select count(*) from ledger) < 40 then error('a part') else true end"
    sink = replace(PER_RECORD, expected=f"select id, account, amount from ledger where {whole}")
    folder = Folder(tmp_path / "run", progress=30)
    folder.claim(sinks=(sink,))
    folder.tables = [payments(folder.records)]
    folder.injections = [Injected(tables=[payments(folder.records[:20])])]
    found = judge(folder)
    assert (found.word, found.findings) == (Word.UNTESTED, ())
    assert "cannot be run with records left out" in found.reasons[0]


@pytest.mark.parametrize("first", [0, 1])
def test_a_planted_fault_that_one_of_two_sinks_does_not_show_was_not_found(folder: Folder, first: int) -> None:
    nothing = replace(PER_RECORD, expected="select id, account, amount from ledger where id < 0")
    folder.claim(sinks=(nothing, PER_RECORD) if first else (PER_RECORD, nothing))
    folder.types = [TYPES["payments"], TYPES["payments"]]
    folder.tables = [[], payments(folder.records)] if first else [payments(folder.records), []]
    assert set(judge(folder).self_tests.values()) == {False}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("plan.json", {"scenario": {"name": 3}}),
        ("plan.json", {"columns": [{"name": "id"}]}),
        ("run.json", {"outcome": {"grew": "perhaps"}}),
    ],
)
def test_a_file_of_another_shape_is_named(folder: Folder, name: str, change: dict[str, Any]) -> None:
    path = folder.write() / name
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises((HarnessError, UsageError), match=rf"{re.escape(str(path))}\b"):
        judge(folder.path)


def test_a_newer_version_that_differs_in_a_floating_point_number_alone_is_exposed(folder: Folder) -> None:
    newest = (
        "select id % 10 as id, amount::double as amount from ledger l "
        "where not exists (from ledger later where later.id % 10 = l.id % 10 and later.id > l.id)"
    )
    folder.claim(sinks=(replace(PER_RECORD, expected=newest),))
    folder.types = [[("id", "bigint", "number"), ("amount", "double precision", "float")]]
    folder.tables = [[(str(r["id"] % 10), str(float(r["amount"]))) for r in folder.records[-10:]]]
    (exposure,) = judge(folder).exposures
    assert (exposure.harm, exposure.note[:35]) == (Harm.REPETITION, "reprocessing of batch 1; reprocessi")

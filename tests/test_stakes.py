"""What a hit put at stake at each crash point, and whether this effect and this sink would show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Cut, Span, joined
from harness.errors import UsageError
from harness.judge import judge
from harness.judge.injections import Injection, Seen
from harness.judge.progress_at_hit import Reach
from harness.judge.stakes.sink_state import named_by, sink_state
from harness.judge.stakes.weigh import weigh
from harness.judge.stakes.weighed import COMMITTED, EARLY, PLANNED, WRITING, WRITTEN, Known, Weighed
from harness.scenario import Evidence, Guarantee, Harm, Word
from harness.sinks.table import SinkTable
from harness.snapshot import RESTART, Position, QueryState
from tests.folders import (
    BEFORE,
    HIT,
    PER_RECORD,
    TOTALS,
    TYPES,
    Folder,
    Injected,
    at_point,
    edited,
    payments,
    recorded,
    values,
)
from tests.scales import COUNTED, GRAND, PEAKS, Bench, Make, batch, benches, hit, injection, reach, upto


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


def told(weighed: Weighed) -> list[tuple[Harm, bool, int, str]]:
    return [(stake.harm, stake.shown, stake.records, stake.note) for stake in weighed.stakes]


AGAIN, GONE = Harm.REPETITION, Harm.LOSS
ONE = "kill driver at sink-committed of batch 1, attempt 1"
SAVED = "the slice that the saved offsets call done"


def test_a_batch_that_has_not_begun_to_write_puts_loss_at_stake(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(1))
    assert (out.point, out.why, out.again, out.missing) == (PLANNED, "", (), batch(1))
    assert told(out) == [(GONE, True, 10, "loss of batch 1 (planned, not committed)")]
    stake = out.counting[0]
    assert (stake.step, stake.position, stake.sink, stake.point) == (1, 0, "t", PLANNED)
    assert (stake.attempt, stake.checkpoint, stake.batch) == (1, "checkpoint", 1)


def test_what_was_read_before_it_was_taken_for_good_was_not_at_stake(make: Make) -> None:
    bench = make()

    def stakes(*, unhealed: bool = True, found: Sequence[Row] | None = None, **far: Any) -> tuple[list[Harm], str]:
        outcome = replace(HIT, evidence=Evidence(signalled={"datanode": "gone"}, unhealed=unhealed))
        injected = replace(injection(bench.held(bench.first(1)), outcome=outcome), spared=True)
        out = weigh(bench.scale(found), injected, [reach(next=None, **far)])
        return [stake.harm for stake in out.stakes], out.why

    why = "what was taken for good had been read before: the driver lived, and all of the batch is in the sink"
    assert stakes() == ([], why)
    assert stakes(resumed=upto(2)) == ([], why), "it ended later, over something else"
    assert stakes(unhealed=False) == ([GONE], "")
    assert stakes(found=bench.rows(without=(Span(1, 9, 10),))) == ([GONE], ""), "the driver passed over what was gone"
    assert stakes(resumed=upto(1)) == ([GONE], ""), "it ended over it, and the next attempt began with it"


def test_what_was_committed_while_the_server_was_away_was_not_at_stake(make: Make) -> None:
    bench = make()
    begun = (*bench.first(1), *bench.rows(Span(0, 5, 8)))

    def stakes(
        *,
        newest: int = 1,
        found: Sequence[Row] | None = None,
        spared: bool = True,
        waited: bool = True,
        of: str = "checkpoint",
    ) -> tuple[list[Harm], str]:
        evidence = Evidence(signalled={"kafka": "gone"}, committed_meanwhile={of: newest})
        injected = injection(bench.held(begun), outcome=replace(HIT, evidence=evidence))
        out = weigh(bench.scale(found), replace(injected, spared=spared, waited=waited), [reach(next=None)])
        return [stake.harm for stake in out.stakes], out.why

    why = "the batch was committed before what was away came back: whoever wrote it had no need of it"
    assert stakes() == ([], why)
    assert stakes(waited=False) == ([], why)
    assert stakes(newest=0) == ([GONE], "")
    assert stakes(newest=9) == ([], why), "of one that is done long since the log may be gone"
    assert stakes(of="another") == ([GONE], ""), "a batch of another query was"
    assert GONE in stakes(found=bench.rows(without=(Span(1, 9, 10),)))[0], "an error was passed over"
    assert GONE in stakes(spared=False)[0], "the driver died of it"


TAKEN_AWAY = replace(
    PER_RECORD,
    effect="select _partition as id, 'a' as account, 1 as amount from ledger where _offset < 5 "
    "except all select _partition, 'a', 1 from ledger where _offset between 5 and 6",
)


def test_rows_that_the_batch_would_take_away_and_that_are_still_there_show_that_it_was_not_written(make: Make) -> None:
    bench = make(TAKEN_AWAY)
    assert (len(bench.first(1)), len(bench.first(2))) == (10, 6)
    out = hit(bench, bench.first(1))
    assert (out.point, out.missing, [harm for harm, _, _, _ in told(out)]) == (PLANNED, batch(1), [GONE])
    assert hit(bench, bench.first(2)).again == batch(1)


def test_what_only_some_sources_of_a_query_had_is_not_in_flight(make: Make) -> None:
    bench = make()
    apart = replace(reach(2, 2), batch=1, partial=batch(1))
    assert hit(bench, bench.first(2), apart).why == (
        "the sources of its query stood at different offsets, or one had gone back, "
        "and no record was in flight of all of them"
    )
    far = replace(reach(2, 1), partial=(Span(0, 5, 8),))
    out = hit(bench, bench.rows(*batch(0), Span(0, 5, 8)), far)
    assert (out.point, out.again) == (PLANNED, ()), "these rows may be those of the source that went ahead"
    assert hit(bench, bench.rows(*batch(0), Span(0, 5, 8)), reach(2, 1)).point == WRITING


def test_of_two_queries_nothing_is_said_if_the_sink_could_not_be_read_before_the_next_attempt(make: Make) -> None:
    bench = make()
    at = injection(bench.held(bench.first(2)))
    assert at.at is not None
    unread = replace(at, restart=Seen(snapshot=replace(at.at.snapshot, moment=RESTART), tables=(None,)))
    out = weigh(bench.scale(), unread, [reach(), reach(3, 2)])
    assert (out.stakes, out.why) == ((), "t could not be read before the next attempt")
    assert weigh(bench.scale(), unread, [reach()]).stakes, "the only query is the one that feeds it"


def test_fingerprints_of_floating_point_totals_say_nothing(make: Make) -> None:
    bench = make(
        replace(TOTALS, effect="select account, sum(cast(amount as double)) as x from ledger group by account")
    )
    table, names = bench.marked(bench.rows()), list(bench.columns)
    assert sink_state(bench.scale().case, table, names=names) is None
    whole = make(TOTALS)
    assert sink_state(whole.scale().case, whole.marked(whole.rows()), names=list(whole.columns)) is not None


def test_an_effect_that_cannot_be_run_over_a_part_is_refused_in_one_line(make: Make) -> None:
    words = make().scale().refused(UsageError("more than one row\nLINE 1: select"))
    assert words == "the effect of t cannot be run with records left out or counted twice: more than one row"


def test_a_batch_that_is_written_puts_repetition_at_stake(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(2))
    assert (out.point, out.again, out.missing) == (WRITTEN, batch(1), ())
    assert told(out) == [(AGAIN, True, 10, "repetition of batch 1 (10 rows in the sink, not in Spark's commit log)")]


def test_a_batch_that_is_written_in_part_puts_both_at_stake(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(2)[:-1])
    assert (out.point, out.again, out.missing) == (WRITING, batch(1), batch(1))
    assert [(harm, shown) for harm, shown, _, _ in told(out)] == [(AGAIN, True), (GONE, True)]
    assert out.stakes[0].note == "repetition of batch 1 (9 rows in the sink, not in Spark's commit log)"


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        ({"writing": {"0": ("insert",)}}, "an open transaction had written into the sink"),
        ({"rows_counted": 14, "rows_before": 10}, "4 rows had been handed to the sink"),
        ({"rows_counted": 1, "rows_before": 0}, "1 rows had been handed to the sink"),
        ({"rows_counted": 1, "rows_before": 0, "counted": 0}, "1 rows had been handed to the sink"),
    ],
)
def test_writing_that_shows_no_row_yet_puts_both_at_stake(make: Make, snapshot: dict[str, Any], words: str) -> None:
    bench = make()
    out = hit(bench, bench.first(1), **snapshot)
    assert (out.point, out.again, out.missing) == (WRITING, batch(1), batch(1))
    assert out.stakes[0].note == f"repetition of batch 1 ({words}, not in Spark's commit log)"


@pytest.mark.parametrize(
    "snapshot",
    [
        {"writing": {"1": ("insert",), "": ("update",)}},
        {"writing": {"0": ()}},
        {"rows_counted": 10, "rows_before": 10},
        {"rows_counted": 14, "rows_before": 10, "counted": 1},
        {"rows_counted": 14, "rows_before": None},
        {"rows_counted": None, "rows_before": None},
        {"rows_counted": None, "rows_before": 0},
    ],
)
def test_writing_elsewhere_and_counts_that_tell_nothing_are_no_beginning(make: Make, snapshot: dict[str, Any]) -> None:
    bench = make()
    out = hit(bench, bench.first(1), **snapshot)
    assert (out.point, out.again) == (PLANNED, ())


def test_rows_that_an_orphan_wrote_after_the_hit_count(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(1), restart=bench.first(2))
    assert (out.point, out.again, out.missing) == (WRITTEN, batch(1), ())
    assert out.at is not None and out.last is not None
    assert (len(out.at.rows), len(out.last.rows)) == (10, 20)


def test_a_batch_that_is_committed_puts_nothing_at_stake(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(2), reach(2, 2))
    assert (out.point, out.stakes, out.again, out.missing) == (COMMITTED, (), (), ())
    assert out.why == "every planned batch was committed: nothing was in flight"


def test_an_empty_batch_puts_nothing_at_stake(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(1), reach(1, 1, batch=1))
    assert (out.stakes, out.why) == ((), "batch 1 held no record")
    out = hit(bench, [], reach(0, 0, batch=0))
    assert (out.stakes, out.why, out.point) == ((), "batch 0 held no record", COMMITTED)


def test_a_batch_none_of_whose_records_pass_is_named(make: Make) -> None:
    bench = make(replace(PER_RECORD, effect="select id, account, amount from ledger where id < 10"))
    out = hit(bench, bench.first(1))
    words = "loss of batch 1 (planned, not committed): not shown, none of its 10 records pass the effect"
    assert (told(out), out.counting) == ([(GONE, False, 10, words)], ())


def test_a_stretch_without_a_record_is_named(make: Make) -> None:
    bench = make()
    high = {0: 25, 1: 25}
    out = hit(bench, bench.rows(), reach(low=upto(4), high=high, next=upto(4), last=batch(3), batch=4))
    words = "loss of batch 4 (planned, not committed): not shown, it holds no record"
    assert told(out) == [(GONE, False, 0, words)]


def test_an_upserts_maximum_hides_what_it_does_not_change(make: Make) -> None:
    falling = [{**record, "amount": f"{100 - record['id']}.00"} for record in values(40)]
    bench = make(PEAKS, records=falling, unique=True)
    out = hit(bench, bench.first(1))
    assert (out.point, out.missing) == (PLANNED, batch(1))
    words = "loss of batch 1 (planned, not committed): not shown, the effect of t is the same with it"
    assert (told(out), out.why) == ([(GONE, False, 10, words)], "")


def test_an_upserts_maximum_shows_a_loss_and_no_repetition(make: Make) -> None:
    bench = make(PEAKS, unique=True)
    out = hit(bench, bench.first(3), reach(4, 3))
    assert [(harm, shown) for harm, shown, _, _ in told(out)] == [(GONE, True)]
    out = hit(bench, bench.first(4), reach(4, 3))
    assert out.point == WRITTEN
    own = "repetition of batch 3 (4 rows in the sink, not in Spark's commit log)"
    words = f"{own}: not shown, the effect of t is the same with it"
    assert told(out) == [(AGAIN, False, 10, words)]


TENS = replace(TOTALS, effect="select id // 10 as account, max(amount) as peak from ledger group by 1")


def test_totals_that_are_appended_show_only_what_passes(make: Make) -> None:
    bench = make(replace(TOTALS, effect=f"{(TOTALS.effect or '').split(' group')[0]} where id < 10 group by account"))
    again, _ = told(hit(bench, bench.first(1), writing={"0": ("insert",)}))
    assert again[:3] == (AGAIN, False, 10)
    assert again[3].endswith("not shown, none of its 10 records pass the effect")


WINDOWS = replace(TOTALS, effect="select _batch as account, max(amount) as peak from ledger group by 1")


def test_totals_that_are_appended_show_a_repetition_and_unique_ones_do_not(make: Make) -> None:
    for unique, shown in ((False, True), (True, False)):
        bench = make(WINDOWS, unique=unique)
        assert [stake.shown for stake in hit(bench, bench.first(2)).stakes] == [shown]


def test_totals_that_several_batches_gave_to_are_replaced(make: Make) -> None:
    """One row of a key, whatever the table would allow: a repetition adds none."""
    bench = make(PEAKS, unique=False)
    assert [stake.shown for stake in hit(bench, bench.first(4), reach(4, 3)).stakes] == [False]
    twice = bench.scale([row for row in bench.rows() for _ in range(2)])
    assert [stake.shown for stake in hit(bench, bench.first(4), reach(4, 3), scale=twice).stakes] == [True]


def test_a_total_shows_both_and_each_row_is_counted_once(make: Make) -> None:
    bench = make(TOTALS, unique=True)
    out = hit(bench, bench.first(2))
    assert (out.point, out.missing) == (WRITTEN, ())
    assert told(out) == [(AGAIN, True, 10, "repetition of batch 1 (4 rows in the sink, not in Spark's commit log)")]
    part = [row for row in bench.first(1) if row[0] != "a0"] + [row for row in bench.first(2) if row[0] == "a0"]
    out = hit(bench, part)
    assert (out.point, [stake.harm for stake in out.stakes]) == (WRITING, [AGAIN, GONE])
    assert "(1 rows in the sink" in out.stakes[0].note


@pytest.mark.parametrize(("folds", "shown"), [(True, False), (False, True), (None, True)])
def test_a_query_that_folds_equal_rows_hides_a_repetition(make: Make, folds: bool | None, shown: bool) -> None:
    bench = make(folds=folds)
    (stake,) = hit(bench, bench.first(2)).stakes
    assert (stake.harm, stake.shown) == (AGAIN, shown)
    if folds:
        assert stake.note.endswith("not shown, the sink's query folds equal rows")
    assert hit(bench, bench.first(1)).counting, "a loss shows all the same"


def test_a_query_of_which_nobody_knows_whether_it_folds_shows_no_repetition(make: Make) -> None:
    bench = make(folds=None, folding="no second connection")
    (stake,) = hit(bench, bench.first(2)).stakes
    words = "nobody knows whether the sink's query folds equal rows: no second connection"
    assert (stake.shown, stake.note.endswith(f"not shown, {words}")) == (False, True)


def test_a_sink_that_was_not_made_yet_held_nothing(make: Make) -> None:
    bench = make()
    absent = replace(bench.held([]), columns=(), absent=True, unreadable="no such table")
    out = weigh(bench.scale(), injection(absent), [reach(1, 0)])
    assert (out.point, [stake.harm for stake in out.counting]) == (PLANNED, [GONE])


def test_batches_that_come_to_the_same_totals_hide_each_other(make: Make) -> None:
    even = [{**record, "amount": "1.00"} for record in values(40)]
    bench = make(replace(GRAND, effect="select count(*) as n from ledger"), records=even, unique=True)
    out = hit(bench, bench.first(2))
    assert told(out) == [
        (
            AGAIN,
            False,
            10,
            "repetition of batch 1 (1 rows in the sink, not in Spark's commit log): not shown, "
            "batch 0 gives the same totals, and one lost would hide it",
        )
    ]
    (loss,) = hit(bench, bench.first(1)).stakes
    assert loss.note.endswith("not shown, batch 0 gives the same totals, and one counted twice would hide it")
    assert not hit(bench, bench.first(4), reach(4, 3)).counting, "nor does the snapshot say which of them it has"
    assert hit(bench, bench.first(4), reach(4, 3, after=True)).counting, "Spark says that it has them all"
    (again,) = hit(bench, bench.first(2), reach(after=True)).stakes
    assert again.note.endswith("not shown, batch 2 gives the same totals, and one lost would hide it")
    uneven = make(GRAND, unique=True)
    assert hit(uneven, uneven.first(2)).counting


def test_a_batch_may_hide_a_repetition_that_would_not_hide_its(make: Make) -> None:
    bench = make(replace(GRAND, effect="select count(*) as n, max(amount) as peak from ledger"), unique=True)
    (stake,) = hit(bench, bench.first(4), reach(4, 3)).stakes
    assert stake.note.endswith("not shown, batch 0 gives the same totals, and one lost would hide it")
    assert hit(bench, bench.first(3), reach(4, 3)).counting, "none has the peak of the last"


def test_rows_tie_where_several_are_alike(make: Make) -> None:
    bench = make(replace(PER_RECORD, effect="select account, 1 as n from ledger", key=("account",)))
    (stake,) = hit(bench, bench.first(2)).stakes
    assert stake.note.endswith("not shown, batch 3 gives the same totals, and one lost would hide it")
    alone = make(replace(PER_RECORD, effect="select account, id / 10 as n from ledger", key=("account",)))
    assert hit(alone, alone.first(2)).counting
    assert hit(make(), make().first(2)).counting


def test_rounding_is_not_what_shows_a_harm(make: Make) -> None:
    """Sums of floats come out differently with other records beside them, though those do not pass."""
    sink = replace(
        TOTALS, effect="select account, sum(amount::double) as total from ledger where id < 10 group by account"
    )
    bench = make(sink, unique=True)
    scale, rows = bench.scale(), bench.effects.table

    def other(sql: str, *, cut: Cut = Cut(), **more: Any) -> Any:  # noqa: B008
        made = rows(sql, cut=cut, **more)
        if not cut.without:
            return made
        return replace(made, rows=[(row[0], repr(float(row[1] or 0) * (1 + 1e-14))) for row in made.rows])

    bench.effects.table = other  # type: ignore[method-assign]
    wrong = replace(scale, case=replace(scale.case, found=scale.case.expected[1:]))
    for each in (scale, wrong):
        stakes = hit(bench, bench.first(1), scale=each).stakes
        assert [(stake.harm, stake.shown) for stake in stakes] == [(AGAIN, False), (GONE, False)]


def test_a_lost_checkpoint_puts_what_was_committed_at_stake(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(1), reach(again=0))
    assert (out.again, out.missing) == (batch(0), batch(1))
    assert told(out)[0] == (AGAIN, True, 10, "repetition of 10 committed records: the next attempt began before them")
    out = hit(bench, bench.first(2), reach(again=0))
    assert out.again == joined(batch(0), batch(1))
    assert told(out) == [
        (
            AGAIN,
            True,
            20,
            "repetition of batch 1 (10 rows in the sink, not in Spark's commit log); "
            "repetition of 10 committed records: the next attempt began before them",
        )
    ]


def test_an_attempt_that_begins_beyond_puts_what_it_skips_at_stake(make: Make) -> None:
    bench = make()
    scale = bench.scale([*bench.first(1), *bench.rows(*batch(3))])
    out = hit(bench, bench.first(1), reach(again=3), scale=scale)
    assert out.missing == joined(batch(1), batch(2))
    words = "loss of batch 1 (planned, not committed); loss of 20 records before which the next attempt began"
    assert told(out) == [(GONE, True, 20, words)]
    out = hit(bench, bench.first(2), reach(2, 2, again=3), scale=scale)
    assert told(out) == [(GONE, True, 10, "loss of 10 records before which the next attempt began")]


def test_what_is_skipped_and_there_in_the_end_was_written_by_an_orphan(make: Make) -> None:
    bench = make()
    out = hit(bench, bench.first(1), reach(again=2))
    assert (out.missing, out.stakes) == ((), ())
    assert out.why.endswith("though the next attempt began beyond it: an orphan wrote it")


@pytest.mark.parametrize(("off", "came"), [(0.5, True), (2.0, False)])
def test_totals_that_cancel_came_right_up_to_a_part_of_what_went_into_them(make: Make, off: float, came: bool) -> None:
    """A billion in, a billion out: the digits behind the point do not say that something is missing."""
    floats = "select account, count(*) as n, sum(amount)::double as total from ledger group by account"
    amounts = ["1000000000"] * 4 + ["-1000000000"] * 4 + [f"{each}.25" for each in range(8, 40)]
    bench = make(
        replace(TOTALS, effect=floats), records=[{**each, "amount": amounts[each["id"]]} for each in values(40)]
    )
    scale = bench.scale([(account, n, repr(float(total or 0) + off)) for account, n, total in bench.rows()])
    sizes: dict[Key, list[float]] = {(row[0],): [0.0, 0.0, 1e9] for row in bench.rows()}
    scale = replace(scale, case=replace(scale.case, sizes=sizes))
    out = hit(bench, bench.first(1), reach(again=2), scale=scale)
    assert (out.stakes == (), out.why.endswith("an orphan wrote it")) == (came, came)


def test_what_is_skipped_with_nothing_in_flight_was_written_by_an_orphan_if_nobody_looked_again(make: Make) -> None:
    bench, idle = make(), reach(2, 2, again=3, batch=None)
    assert hit(bench, bench.first(2), idle).why.endswith("an orphan wrote it")
    out = hit(bench, bench.first(2), idle, restart=bench.first(2))
    assert (out.stakes, out.why) == ((), "every planned batch was committed: nothing was in flight")


def test_offsets_saved_before_the_sink_was_written_put_their_slice_at_stake(make: Make) -> None:
    bench = make()
    own = reach(2, 2, own=True, batch=None, checkpoint="")
    out = hit(bench, bench.first(1), own)
    assert (out.point, out.stakes) == (EARLY, ()), "nobody took it again, and it came"
    assert out.why.endswith("an orphan wrote it")
    own = replace(own, next=None)
    out = hit(bench, bench.first(1), own)
    assert (out.point, out.missing) == (EARLY, batch(1))
    assert told(out) == [(GONE, True, 10, f"loss of {SAVED} (not whole in the sink)")]
    assert hit(bench, bench.first(2), own).point == COMMITTED
    assert hit(bench, bench.first(2)[:-1], own).stakes == (), "some of it is there, and nobody writes"
    assert hit(bench, [], replace(own, last=())).stakes == ()
    half = replace(own, last=(batch(1)[0],))
    out = hit(bench, bench.rows(*batch(0), batch(1)[1]), half)
    assert (out.point, out.missing) == (EARLY, (batch(1)[0],)), "the other partition was saved before"


def test_a_batch_that_spark_calls_committed_and_the_sink_has_not_is_not_at_stake(make: Make) -> None:
    """A sink may show it late. That it never does may be the hit's doing, and no snapshot tells."""
    bench = make()
    out = hit(bench, bench.first(1), reach(2, 2))
    assert isinstance(out, Known)
    assert (out.point, out.stakes, out.missing, out.late) == (COMMITTED, (), (), batch(1))
    scale = bench.scale(bench.rows(without=batch(1)))
    found = bench.findings(scale, [hit(bench, bench.first(1), reach(2, 2), scale=scale)])
    assert {(each.faults, each.fits, each.staked) for each in found} == {((), (ONE,), False)}
    out = hit(bench, bench.first(1), reach(3, 2))
    assert (out.point, out.missing) == (PLANNED, batch(2))
    own = hit(bench, bench.first(1), reach(2, 2, own=True))
    assert isinstance(own, Known) and own.late == (), "Spark says nothing of offsets that the program saved"
    part = hit(bench, bench.rows(*batch(0), batch(1)[1]), reach(2, 2))
    assert isinstance(part, Known) and part.late == (), "a part of it is there"


def test_totals_that_are_late_are_no_trace_of_writing(make: Make) -> None:
    bench = make(TOTALS)
    assert hit(bench, sorted(bench.first(1))[1:]).point == PLANNED, "one total is not there yet"
    assert hit(bench, bench.first(1), reach(3, 2, last=())).point == PLANNED, "all are as they were a batch ago"
    one, two, three = (sorted(bench.first(batches)) for batches in (1, 2, 3))
    assert hit(bench, [one[0], two[1], *three[2:]], reach(4, 3)).point == PLANNED, "each is as after another batch"
    ahead: list[Row] = [(row[0], "99", row[2]) for row in bench.first(1)]
    assert hit(bench, ahead, reach(3, 2)).point == WRITING
    assert hit(bench, three[:1] + two[1:], reach(3, 2)).point == WRITING
    assert hit(bench, bench.first(3), reach(2, 1)).point == WRITING, "what comes later is not late"


def test_a_maximum_that_is_late_is_no_trace_of_writing(make: Make) -> None:
    bench = make(PEAKS)
    assert hit(bench, bench.first(1), reach(3, 2)).point == PLANNED, "all are as they were a batch ago"
    one, two, three = (sorted(bench.first(batches)) for batches in (1, 2, 3))
    assert hit(bench, [one[0], two[1], *three[2:]], reach(4, 3)).point == PLANNED, "each is as after another batch"
    assert hit(bench, [(one[0][0], "7"), two[1], *three[2:]], reach(4, 3)).point == WRITING


def test_an_odd_row_is_a_trace_of_writing_also_where_the_batches_before_it_are_not_known(make: Make) -> None:
    bench = make(TOTALS, records=values(60))
    odd: list[Row] = [(row[0], "99", row[2]) for row in bench.first(5)]
    assert hit(bench, odd, reach(6, 5)).point == WRITING
    assert hit(bench, [*odd[:1], *bench.first(3)[1:]], reach(6, 5)).point == WRITING
    assert hit(bench, bench.first(3), reach(6, 5)).point == PLANNED, "all are as they were two batches ago"


def test_totals_that_a_batch_takes_away_are_written_when_they_are_gone(make: Make) -> None:
    few = "select account, count(*) as n from ledger group by account having count(*) < 4"
    bench = make(replace(COUNTED, effect=few))
    assert (len(bench.first(1)), bench.first(2)) == (4, [])
    assert hit(bench, []).point == WRITTEN


@pytest.mark.parametrize(("pending", "harms"), [((), [GONE]), (("prepared transaction x",), [AGAIN, GONE])])
def test_what_was_rolled_back_before_the_next_attempt_cannot_come_twice(
    make: Make, pending: tuple[str, ...], harms: list[Harm]
) -> None:
    bench = make()
    begun = injection(bench.held(bench.first(1)), bench.held(bench.first(1)), writing={"0": ("insert into t",)})
    assert begun.restart is not None
    late = replace(begun.restart.snapshot, writing={"0": pending} if pending else {})
    out = weigh(bench.scale(), replace(begun, restart=replace(begun.restart, snapshot=late)), [reach()])
    assert (out.point, [stake.harm for stake in out.stakes]) == (WRITING, harms)
    sooner = weigh(bench.scale(), replace(begun, restart=None), [reach()])
    assert [stake.harm for stake in sooner.stakes] == [AGAIN, GONE], "nobody has seen it rolled back"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"writing": {"0": ("insert into t",)}}, "an open transaction had written into the sink"),
        ({"rows_counted": 17, "rows_before": 10}, "7 rows had been handed to the sink"),
    ],
)
def test_offsets_saved_before_a_slice_is_whole_put_all_of_it_at_stake(
    make: Make, state: dict[str, Any], words: str
) -> None:
    """The slice in flight is the one before the saved offsets; whoever saves them last has the next one in flight."""
    bench = make()
    own = reach(3, 2, own=True, batch=None, checkpoint="", next=None)
    begun, rest = (AGAIN, True, 10), (GONE, True, 10, f"loss of {SAVED} (not whole in the sink)")
    for rows, shown in (
        (bench.first(1), words),
        (bench.first(1) + bench.rows(*batch(1))[:5], "5 rows in the sink"),
    ):
        out = hit(bench, rows, own, **state)
        assert (out.point, out.again, out.missing) == (WRITING, batch(1), batch(1))
        assert told(out) == [(*begun, f"repetition of {SAVED} ({shown})"), rest]
    out = hit(bench, bench.first(2), own, **state)
    assert (out.point, out.missing) == (WRITING, batch(2))
    lost = make(replace(PER_RECORD, effect="select id, account, amount from ledger where id not between 10 and 19"))
    assert hit(lost, lost.first(2), own, **state).missing == batch(2), "what does not pass is not missing"


def test_a_last_batch_that_changes_nothing_is_not_called_unwritten(make: Make) -> None:
    falling = [{**record, "amount": f"{100 - record['id']}.00"} for record in values(40)]
    bench = make(PEAKS, records=falling)
    out = hit(bench, bench.first(2), reach(2, 2))
    assert (out.point, out.stakes, out.missing) == (COMMITTED, (), ())


def test_a_slice_of_offsets_kept_by_hand_is_in_flight_only_if_something_shows_it(make: Make) -> None:
    bench = make()
    own = reach(2, 1, own=True, batch=None, checkpoint="")
    out = hit(bench, bench.first(1), own)
    assert (out.point, out.stakes) == (COMMITTED, ())
    assert out.why == "nothing shows that a slice was in flight: no row beyond the saved offsets, no open transaction"
    out = hit(bench, bench.first(2), own)
    words = "repetition of the slice after the saved offsets (10 rows in the sink, not in the saved offsets)"
    assert (out.point, told(out)) == (WRITTEN, [(AGAIN, True, 10, words)])
    assert hit(bench, bench.first(1), own, writing={"": ("update progress",)}).stakes == (), "beside the sinks"
    out = hit(bench, bench.first(1), own, writing={"1": ("insert into audit",)})
    assert (out.point, told(out)) == (
        PLANNED,
        [(GONE, True, 10, "loss of the slice after the saved offsets (planned, not committed)")],
    )
    assert hit(bench, bench.first(1), own, writing={"": ()}).stakes == ()


def test_what_could_not_be_seen_is_said(make: Make) -> None:
    bench = make()
    scale = bench.scale()
    bare = Injection(number=1, outcome=HIT, why="no snapshot was taken when the fault hit")
    assert weigh(scale, bare, []) == Weighed(
        injection=bare, why="no snapshot was taken when the fault hit", untold=True
    )
    for table in (None, replace(bench.held([]), unreadable="locked"), replace(bench.held([]), columns=())):
        unread = injection(table)
        assert weigh(scale, unread, [reach()]) == Weighed(
            injection=unread, why="t could not be read when the fault hit", untold=True
        )
    seen, state = injection(bench.held([])), QueryState(checkpoint="other")
    why = "no query that reads the source was seen at work when the fault hit"
    assert weigh(scale, seen, []) == Weighed(injection=seen, why=why, idle=True)
    for more in ({"error": "Kafka did not answer"}, {"position": {0: 5}}, {"queries": (state,)}):
        other = injection(bench.held([]), **more)
        assert weigh(scale, other, []) == Weighed(injection=other, why=why, untold=True), "something may be at work"
    locked = replace(bench.held([]), unreadable="locked")
    out = weigh(scale, injection(bench.held(bench.first(2)), locked), [reach()])
    assert out.point == WRITTEN, "the later look is left out"


OTHER = Reach(low=upto(3), high=upto(4), batch=3, checkpoint="other")


def test_of_two_queries_the_one_that_the_rows_agree_with_feeds_the_sink(make: Make) -> None:
    bench = make()
    behind = replace(OTHER, low=upto(0), high=upto(1))
    assert hit(bench, bench.first(2), behind, reach()).reach == reach()
    assert hit(bench, bench.first(2)[:-1], reach(), behind).reach == reach()
    assert hit(bench, bench.first(2), reach(), OTHER).reach is None, "the sink may be late, and the other one's"
    beyond = [*bench.first(2), *bench.rows(*batch(2))[:1]]
    for rows in (bench.first(2)[1:], beyond, [*bench.first(1), ("99", "a", "1")], bench.first(1) * 2):
        none = hit(bench, rows, reach(), OTHER)
        assert (none.reach, none.injection) == (None, injection(bench.held(rows)))
        assert (
            none.why
            == "2 queries read the source, and nothing shows which of them feeds t: name it in the sink (`query`)"
        )


def test_two_queries_at_the_same_place_are_as_good_as_one(make: Make) -> None:
    bench = make()
    twin = replace(reach(), checkpoint="other")
    assert hit(bench, bench.first(1), reach(), twin).reach == reach()
    ahead = replace(reach(), high=upto(3), checkpoint="other")
    assert hit(bench, bench.first(1), reach(), ahead).reach is None
    assert hit(bench, [], reach(1, 0), replace(reach(1, 0), checkpoint="other")).reach is not None


@pytest.mark.parametrize("change", [{"next": upto(0)}, {"after": True}, {"other": True}], ids=str)
def test_two_queries_at_the_same_place_that_go_on_elsewhere_are_not(make: Make, change: dict[str, Any]) -> None:
    bench = make()
    for pair in ((reach(), replace(reach(), **change)), (replace(reach(), **change), reach())):
        assert hit(bench, bench.first(1), *pair).reach is None


def test_a_large_sink_is_weighed_by_keys_and_fingerprints(make: Make) -> None:
    for sink in (PER_RECORD, TOTALS, replace(PER_RECORD, key=("amount", "id"))):
        bench = make(sink)
        for rows, point in ((bench.first(1), PLANNED), (bench.first(2)[:-1], WRITING), (bench.first(2), WRITTEN)):
            out = weigh(bench.scale(), injection(bench.marked(rows)), [reach()])
            assert (out.point, out.stakes) == (point, hit(bench, rows).stakes)


def test_equal_rows_of_a_large_sink_are_counted(make: Make) -> None:
    same = [{**record, "account": "a", "amount": "1.00"} for record in values(40)]
    bench = make(replace(PER_RECORD, effect="select account, amount from ledger", key=("account",)), records=same)
    for rows, point in ((bench.first(1), PLANNED), (bench.first(2)[:-1], WRITING), (bench.first(2), WRITTEN)):
        assert weigh(bench.scale(), injection(bench.marked(rows)), [reach()]).point == point


def test_a_row_is_named_by_its_key_and_one_total_that_is_all_key_by_nothing(make: Make) -> None:
    rows, totals, grand = make().scale().case, make(TOTALS).scale().case, make(GRAND).scale().case
    assert [named_by(case) for case in (rows, totals, grand)] == [(0,), (0,), ()]
    assert named_by(replace(rows, expected=rows.expected[:1])) == (0,)
    assert named_by(replace(totals, expected=totals.expected[:1])) == (0,)
    assert named_by(replace(grand, expected=[*grand.expected, ("1", "1")])) == (0, 1)


def test_fingerprints_that_cannot_be_compared_are_not(make: Make) -> None:
    bench = make()
    marked, case = bench.marked(bench.first(1)), bench.scale().case
    assert sink_state(case, marked, names=bench.columns) is not None
    assert sink_state(case, marked, names=(*bench.columns, "place")) is None, (
        "the effect has not what the fingerprints are of"
    )
    assert sink_state(replace(case, key=()), marked, names=bench.columns) is None
    assert sink_state(replace(case, key=("account",)), marked, names=bench.columns) is None
    assert sink_state(case, marked, names=bench.columns[:-1]) is None
    assert sink_state(replace(case, key=("amount", "id")), marked, names=bench.columns) is None


def test_columns_in_another_order_and_one_too_many_are_no_trouble(make: Make) -> None:
    bench = make()
    case, rows = bench.scale().case, bench.first(1)
    names = ("amount", "place", "id", "account")
    columns = tuple(replace(bench.held([]).columns[0], name=name) for name in names)
    turned: list[Row] = [(row[2], "7", row[0], row[1]) for row in rows]
    seen = sink_state(case, SinkTable(name="t", kind="b", target="t", columns=columns, rows=turned), names=names)
    plain = sink_state(case, bench.held(rows), names=bench.columns)
    assert seen is not None and plain is not None and seen.rows == plain.rows


def idle(folder: Folder) -> Sequence[str]:
    verdict = judge(folder.write())
    assert verdict.word is Word.VOID
    return verdict.reasons


INCONSEQUENTIAL = "step 1 (`kill driver`) was inconsequential for postgres payments"


def test_a_run_whose_only_hit_met_an_empty_batch_is_void(folder: Folder) -> None:
    folder.injections = [Injected(planned=1, committed=0, again=0)]
    folder.steps = [replace(HIT, batch=0, evidence=Evidence(signalled={"driver 1": "SIGKILL"}, driver_status=-9))]
    path = folder.write()
    assert judge(path).word is Word.HELD
    said = recorded(path, "progress")
    for batches in (said["batches"], said["queries"][0]["batches"]):
        batches[0]["ranges"] = {"0": [10, 10]}
    edited(path, "progress", **said)
    verdict = judge(path)
    assert (verdict.word, verdict.reasons) == (Word.VOID, (f"{INCONSEQUENTIAL}: batch 0 held no record",))


def test_a_hit_that_another_query_took_is_void(folder: Folder) -> None:
    folder.claim(sinks=(replace(PER_RECORD, query="elsewhere"),))
    assert idle(folder) == (f"{INCONSEQUENTIAL}: no query that reads the source was seen at work when the fault hit",)


@pytest.mark.parametrize(
    ("guarantee", "holds", "reason", "untried"),
    [
        (Guarantee.AT_LEAST_ONCE, 20, "repetition of batch 1 (10 rows", (PLANNED, WRITING)),
        (Guarantee.AT_MOST_ONCE, 10, "loss of batch 1 (planned, not committed)", (WRITING, WRITTEN)),
    ],
)
def test_a_hit_that_no_program_could_break_the_guarantee_by_is_void(
    folder: Folder, guarantee: Guarantee, holds: int, reason: str, untried: tuple[str, ...]
) -> None:
    folder.steps, folder.injections = [at_point(HIT, "after 3.0 s")], [Injected(holds=holds)]
    folder.claim(guarantee=guarantee)
    verdict = judge(folder.write())
    (said,) = verdict.reasons
    assert (verdict.word, said.startswith(f"{INCONSEQUENTIAL}: {reason}")) == (Word.VOID, True)
    assert said.endswith(f": {guarantee} allows it")
    assert verdict.untried == tuple(("postgres payments", point) for point in untried)


@pytest.mark.parametrize("other", [{"step": 2}, {"attempt": 7}])
def test_a_snapshot_of_another_step_or_attempt_shows_nothing(folder: Folder, other: dict[str, int]) -> None:
    path = folder.write()
    edited(path, "1-injection", **other)
    where = f"step {other.get('step', 1)} in attempt {other.get('attempt', 1)}"
    verdict = judge(path)
    assert (verdict.word, verdict.reasons) == (
        Word.VOID,
        (f"{INCONSEQUENTIAL}: the snapshot in its place is that of {where}",),
    )


def test_held_lists_what_was_at_stake_and_what_was_not_tried(folder: Folder) -> None:
    verdict = judge(folder.write())
    assert [stake.note for stake in verdict.stakes] == [
        "repetition of batch 1 (10 rows in the sink, not in Spark's commit log)"
    ]
    assert list(verdict.untried) == [
        ("postgres payments", PLANNED),
        ("postgres payments", WRITING),
    ]


def test_a_sink_whose_offsets_are_kept_by_hand_has_one_crash_point_more(folder: Folder) -> None:
    folder.injections = [Injected(position={0: 20}, holds=10, again=None)]
    folder.positions = [
        Position(attempt=1, at_s=1.0, next={0: 10}),
        Position(attempt=1, at_s=2.0, next={0: 20}),
        Position(attempt=2, at_s=4.0, next={0: 20}),
    ]
    folder.steps = [replace(at_point(BEFORE, ""), batch=None, checkpoint="")]
    folder.tables = [[row for row in payments(folder.records) if not 10 <= int(row[0] or 0) < 20]]
    verdict = judge(folder.write())
    assert (verdict.word, [stake.point for stake in verdict.stakes]) == (Word.VIOLATED, [EARLY])
    assert [point for _, point in verdict.untried] == [PLANNED, WRITING, WRITTEN]


def test_what_an_orphan_commits_before_the_next_attempt_counts(folder: Folder) -> None:
    folder.injections, folder.steps = [Injected(holds=10), Injected(holds=20, moment=RESTART)], [BEFORE]
    (stake,) = judge(folder.write()).stakes
    assert (stake.harm, stake.point) == (AGAIN, WRITTEN)


def test_a_sink_that_cannot_be_compared_is_not_weighed_and_lists_nothing(folder: Folder) -> None:
    folder.claim(sinks=(PER_RECORD, replace(PER_RECORD, effect=None)))
    folder.tables = [payments(folder.records), None]
    folder.injections = [Injected(tables=[payments(folder.records[:20]), None])]
    verdict = judge(folder.write())
    assert {stake.position for stake in verdict.stakes} == {0}
    assert len(verdict.untried) == 2


def test_totals_that_were_wrong_when_the_fault_hit_and_are_right_now_are_unknown(folder: Folder) -> None:
    """One batch lost and another counted twice, of one size: only the snapshot saw it."""
    folder.claim(sinks=(TOTALS,))
    folder.types = [TYPES["totals"]]
    bench = Bench(folder.path.parent / "bench", TOTALS)
    whole = bench.rows()
    early: list[Row] = [(account, str(int(n or 0) + 1), total) for account, n, total in whole]
    folder.tables, folder.injections = [whole], [Injected(tables=[early])]
    verdict = judge(folder.write())
    words = "when step 1 hit, 4 totals of postgres totals were not those of the batches committed by then"
    assert verdict.word is Word.UNKNOWN
    assert verdict.reasons[0].startswith(words)
    folder.claim(quiet_period_s=5.0)
    folder.path = folder.path.parent / "late"
    assert judge(folder.write()).word is Word.UNKNOWN, "a sink that is late is behind, and never ahead"
    bench.effects.__exit__(None, None, None)


def test_spans_of_a_batch_are_its_partitions() -> None:
    assert batch(1) == (Span(0, 5, 10), Span(1, 5, 10))


def test_the_same_count_is_the_same_total(make: Make) -> None:
    assert make(COUNTED).first(1) == make(COUNTED).first(1)


def test_a_total_that_should_be_gone_and_is_another_one_was_not_written_whole(make: Make) -> None:
    few = "select account, count(*) as n from ledger group by account having count(*) < 4"
    bench = make(replace(COUNTED, effect=few))
    other: list[Row] = [(row[0], "99") for row in bench.first(1)]
    assert hit(bench, other).point == WRITING


def test_a_repetition_says_where_nothing_shows_whether_it_was_written(make: Make) -> None:
    bench = make(replace(TOTALS, effect="select account, sum(amount)::double as total from ledger group by account"))
    (stake,) = [each for each in hit(bench, bench.first(1)).stakes if each.harm is AGAIN]
    assert stake.note.startswith(
        "repetition of batch 1 (nothing shows whether it was written, not in Spark's commit log)"
    )


def test_a_window_that_only_spark_says_was_written_shows_no_repetition_of_its_maximum(make: Make) -> None:
    windows = "select (id // 10)::varchar as account, max(amount) as peak from ledger group by 1"
    bench = make(replace(PEAKS, effect=windows))
    out = hit(bench, bench.first(1), reach(after=True))
    (again,) = (each for each in out.stakes if each.harm is AGAIN)
    assert not again.shown and again.note.endswith("not shown, the effect of t is the same with it")
    written = hit(bench, bench.first(2), reach(after=True))
    assert [each.shown for each in written.stakes if each.harm is AGAIN] == [True], "it may be added beside the first"


def test_what_another_query_begins_before_is_no_stake_of_this_one(make: Make) -> None:
    bench = make()
    beyond = hit(bench, bench.first(1), replace(reach(again=3), other=True))
    assert beyond.missing == batch(1), "nor what it begins beyond"
    out = hit(bench, bench.first(2), replace(reach(again=0), other=True))
    assert [each.note for each in out.stakes if each.harm is AGAIN] == [
        "repetition of batch 1 (10 rows in the sink, not in Spark's commit log)"
    ]

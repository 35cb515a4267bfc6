"""Causes and stakes at their edges: each of these would be another verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Span, Spans
from harness.judge.injections import Injection, Seen
from harness.judge.progress_at_hit import Reach
from harness.judge.stakes.weigh import weigh
from harness.judge.stakes.weighed import PLANNED, WRITING, Known, Weighed
from harness.scenario import Finding, Harm, Kind
from harness.sinks.table import SinkTable
from harness.snapshot import RESTART, QueryState
from tests.folders import HIT, PER_RECORD, TOTALS, values
from tests.scales import COUNTED, PEAKS, Bench, Make, batch, benches, hit, injection, reach

ONE = "kill driver at sink-committed of batch 1, attempt 1"
TWO = "kill driver at sink-committed of batch 1, attempt 2"
AGAIN, GONE = Harm.REPETITION, Harm.LOSS


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


def judged(bench: Bench, end: Sequence[Row], *mets: tuple[Sequence[Row], Reach]) -> list[Finding]:
    """The findings of a run that ended so, and was hit so."""
    scale = bench.scale(end)
    weighed = [hit(bench, at, far, scale=scale, number=number) for number, (at, far) in enumerate(mets, 1)]
    return bench.findings(scale, weighed)


# test_cause.py


def test_a_finding_that_no_hit_explains_fits_those_of_which_nothing_is_known(make: Make) -> None:
    bench = make()
    scale = bench.scale([row for row in bench.rows() if row not in bench.rows(*batch(2))])
    blind = Weighed(injection=Injection(number=1, outcome=HIT, why="no snapshot"), why="no snapshot")
    out = bench.findings(scale, [blind, hit(bench, bench.first(1), scale=scale, number=2)])
    assert {(each.kind, each.faults, each.fits) for each in out} == {(Kind.LOST, (), (ONE,))}


def test_a_row_that_one_hit_saw_and_that_the_next_one_lost_was_not_at_stake(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row not in bench.rows(*batch(1))]
    out = judged(bench, end, (bench.first(2), reach()), (bench.first(1), reach()))
    assert {(each.kind, each.faults, each.staked) for each in out} == {(Kind.LOST, (TWO,), False)}


def test_what_another_query_skips_was_at_stake(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row not in bench.rows(*batch(2))]
    out = judged(bench, end, (bench.first(2), reach(2, 2, again=3, other=True)))
    assert {(each.kind, each.faults, each.staked) for each in out} == {(Kind.LOST, (ONE,), True)}


def test_the_rest_of_a_batch_that_is_lost_wants_a_control_though_the_begun_part_came_twice(make: Make) -> None:
    bench = make()
    there = bench.rows(Span(0, 5, 8), Span(1, 5, 9))
    rest = bench.rows(Span(0, 8, 10), Span(1, 9, 10))
    end = [*(row for row in bench.rows() if row not in rest), *there]
    out = judged(bench, end, (bench.first(1) + there, reach()))
    assert {(each.kind, each.faults, each.to_confirm) for each in out} == {
        (Kind.DUPLICATED, (ONE,), False),
        (Kind.LOST, (ONE,), True),
    }


def test_a_finding_that_a_hit_explains_is_near_none(make: Make) -> None:
    bench = make()
    out = judged(bench, bench.rows() + bench.rows(*batch(1)), (bench.first(2), reach()))
    assert {(each.faults, each.near) for each in out} == {((ONE,), ())}


def test_a_row_of_a_shared_key_that_was_not_in_flight_is_not_repeated_by_the_hit(make: Make) -> None:
    """Its batch was taken in two slices, and the hit met the second one."""
    bench = make(replace(PER_RECORD, effect="select account, amount from ledger", key=("account",)))
    far = reach(low={0: 7, 1: 7}, next={0: 7, 1: 7}, last=())
    out = judged(bench, bench.rows() + bench.rows(Span(0, 5, 7)), (bench.first(2), far))
    assert {(each.kind, each.faults) for each in out} == {(Kind.DUPLICATED, ())}
    out = judged(bench, bench.rows() + bench.rows(Span(0, 7, 9)), (bench.first(2), far))
    assert {(each.kind, each.faults) for each in out} == {(Kind.DUPLICATED, (ONE,))}


FLOATS = "select account, count(*) filter (amount >= 1) as n, sum(amount)::double as total from ledger group by account"
SIZES: dict[Key, list[float]] = {(f"a{n}",): [0.0, 0.0, 1e9] for n in range(4)}
"""A billion in, a billion out: a part of one is no difference."""


def rounded(bench: Bench, end: Sequence[Row], at: Sequence[Row]) -> dict[str | None, tuple[str, ...]]:
    scale = bench.scale(end)
    scale = replace(scale, case=replace(scale.case, sizes=SIZES))
    return {each.key["account"]: each.faults for each in bench.findings(scale, [hit(bench, at, scale=scale)])}


@pytest.mark.parametrize(("more", "faults"), [("0.01", ()), ("5.00", (ONE,))])
def test_batches_that_come_to_the_same_but_for_rounding_are_not_told_apart(
    make: Make, more: str, faults: tuple[str, ...]
) -> None:
    amounts = [f"{n}.25" for n in range(30)] + [f"{n + int(more[0])}.{25 + int(more[2:])}" for n in range(10, 20)]
    bench = make(
        replace(TOTALS, effect=FLOATS), records=[{**each, "amount": amounts[each["id"]]} for each in values(40)]
    )
    assert set(rounded(bench, bench.rows(again=(batch(1),)), bench.first(2)).values()) == {faults}


def test_totals_that_a_batch_changes_by_no_more_than_rounding_need_not_be_wrong(make: Make) -> None:
    records = values(40)
    few = [
        {**each, "amount": "0.25"} if each in records[10:20] and each["account"] == "a3" else each for each in records
    ]
    bench = make(replace(TOTALS, effect=FLOATS), records=few)
    out = rounded(bench, bench.rows(again=(batch(1),)), bench.first(2))
    assert {name: faults for name, faults in out.items() if faults} == {"a0": (ONE,), "a1": (ONE,), "a2": (ONE,)}


def test_a_total_that_was_right_at_a_later_hit_fits_that_one_alone(make: Make) -> None:
    bench = make(TOTALS)
    end: list[Row] = [(row[0], "77", row[2]) if row[0] == "a1" else row for row in bench.rows()]
    (out,) = judged(bench, end, (bench.first(1), reach()), (bench.first(1), reach()))
    assert (out.faults, out.fits) == ((), (TWO,))


def test_a_total_that_lacks_a_batch_fits_every_hit_that_found_it_planned(make: Make) -> None:
    bench = make(COUNTED, records=[{**record, "account": f"a{record['id'] % 10}"} for record in values(40)])
    out = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()), (bench.first(1), reach()))
    assert {(each.faults, each.fits) for each in out} == {((), (ONE, TWO))}


@pytest.mark.parametrize(("last", "told"), [(["a0", "x", "a1", "x"], (ONE,)), (["x", "x", "a0", "x"], ())])
def test_two_records_that_show_side_by_side_in_one_partition_are_enough(
    make: Make, last: list[str], told: tuple[str, ...]
) -> None:
    names = [*["a0", "a1"] * 5, *["x"] * 6, *last, *["a9"] * 20]
    records = [{**record, "account": account} for record, account in zip(values(40), names, strict=True)]
    effect = "select account, count(*) as n from ledger where account <> 'x' group by account"
    bench = make(replace(COUNTED, effect=effect), records=records)
    out = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()))
    assert {(each.kind, each.faults) for each in out} == {(Kind.WRONG_AGGREGATE, told)}


# test_stakes.py


def test_offsets_kept_by_hand_say_nothing_of_a_slice_that_a_late_sink_has_not(make: Make) -> None:
    bench = make()
    scale = replace(bench.scale(bench.rows(without=batch(1))), late=True)
    own = reach(2, 2, own=True, batch=None, checkpoint="", next=None)
    out = hit(bench, bench.first(1), own, scale=scale)
    assert isinstance(out, Known) and (out.late, out.stakes) == ((), ())
    assert {each.fits for each in bench.findings(scale, [out])} == {()}


def test_one_more_row_of_another_kind_is_no_trace_of_rows_that_are_like_those_before(make: Make) -> None:
    same = [{**record, "account": "a", "amount": "1.00"} for record in values(40)]
    bench = make(replace(PER_RECORD, effect="select account, amount from ledger", key=("account",)), records=same)
    assert hit(bench, [*bench.first(1), ("a", "2")]).point == PLANNED
    assert hit(bench, bench.rows(*batch(0), Span(0, 5, 6))).point == WRITING


def test_a_batch_that_gives_no_total_by_itself_adds_none_beside_the_others(make: Make) -> None:
    bench = make(replace(PEAKS, effect=f"{PEAKS.effect} having count(*) > 3"))
    assert (bench.first(1), bench.rows(*batch(1))) == ([], [])
    (stake,) = hit(bench, bench.first(2)).stakes
    assert (stake.harm, stake.shown) == (AGAIN, False)
    assert stake.note.endswith("not shown, none of its 10 records pass the effect")


def test_of_several_queries_nobody_knows_whose_executor_died(make: Make) -> None:
    bench = make()
    injected = replace(injection(bench.held(bench.first(1))), only=None)
    words = "several queries were at work, and nothing shows for which of them the executor that died was"
    assert weigh(bench.scale(), injected, []).why == words
    injected = replace(injected, only="checkpoint")
    assert weigh(bench.scale(), injected, []).why == "only an executor at work for checkpoint is known to have died"


def again(bench: Bench, at: Sequence[Row], restart: SinkTable | None, *, told: bool) -> Weighed:
    """Two queries, one a batch ahead, and the looks at a hit and before the next attempt, which says (`told`) or does
    not say where they stood."""
    state = QueryState(checkpoint="checkpoint")
    first = injection(bench.held(at), queries=(state,))
    assert first.at is not None
    late = replace(first.at.snapshot, moment=RESTART, queries=(state,) if told else ())
    injected = replace(first, restart=Seen(snapshot=late, tables=(restart,)))
    behind = replace(reach(1, 0), checkpoint="behind")
    return weigh(bench.scale(), injected, [behind, reach()], many=2)


def test_which_of_two_queries_feeds_a_sink_is_seen_when_their_progress_was(make: Make) -> None:
    bench = make()
    for told, at, restart in ((True, 1, 2), (False, 2, 1)):
        out = again(bench, bench.first(at), bench.held(bench.first(restart)), told=told)
        assert out.reach == reach()
        out = again(bench, bench.first(restart), bench.held(bench.first(at)), told=told)
        assert out.reach is None


def test_a_later_look_that_says_nothing_of_the_queries_is_not_missed(make: Make) -> None:
    bench = make()
    assert again(bench, bench.first(2), None, told=False).reach == reach()
    unread = again(bench, bench.first(2), None, told=True)
    assert (unread.injection.number, unread.why) == (1, "t could not be read before the next attempt")


@pytest.mark.parametrize(
    ("there", "shown", "records"),
    [
        ((Span(0, 5, 10),), False, 10),
        ((Span(0, 5, 10), Span(1, 5, 8)), True, 5),
        ((Span(0, 5, 8), Span(1, 5, 8)), True, 10),
    ],
)
def test_a_driver_that_lives_retries_the_partitions_that_are_there_in_part(
    make: Make, there: Spans, shown: bool, records: int
) -> None:
    bench = make()
    injected = replace(injection(bench.held(bench.rows(*batch(0), *there))), retried=True, spared=True)
    stake, _ = weigh(bench.scale(), injected, [reach(next=None)]).stakes
    assert (stake.harm, stake.shown, stake.records) == (AGAIN, shown, records)


def test_which_task_wrote_to_a_total_nothing_says(make: Make) -> None:
    bench = make(TOTALS)
    injected = replace(
        injection(bench.held(bench.rows(*batch(0), Span(0, 5, 7), Span(1, 5, 7)))), retried=True, spared=True
    )
    stake, _ = weigh(bench.scale(), injected, [reach(next=None)]).stakes
    assert (stake.harm, stake.shown, stake.records) == (AGAIN, True, 10)


def test_only_the_rest_of_a_batch_whose_begin_an_orphan_wrote_may_be_missing(make: Make) -> None:
    bench, half = make(), reach(next={0: 7, 1: 7})
    assert hit(bench, bench.first(1), half).missing == (Span(0, 7, 10), Span(1, 7, 10))
    whole = hit(bench, bench.first(2), half)
    assert (whole.missing, [stake.harm for stake in whole.stakes]) == ((), [AGAIN])


def test_an_effect_that_fails_over_a_part_that_nobody_has_to_ask_about_is_no_trouble(make: Make) -> None:
    """It cannot be run over three batches."""
    fails = "(select case when count(*) = 30 then error('thirty') else true end from ledger)"
    bench = make(replace(PER_RECORD, effect=f"{PER_RECORD.effect} where {fails}"))
    assert [stake.harm for stake in hit(bench, bench.first(2)).stakes] == [AGAIN]
    assert "thirty" in hit(bench, bench.first(2), reach(3, 2)).why

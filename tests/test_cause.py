"""Which hit caused a finding, as far as snapshots show it; which may have; and who is not blamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checkers.cells import Row
from harness.checkers.compare import Key
from harness.checkers.offset_ranges import Span, joined
from harness.judge.cause.mismatch import mismatched
from harness.judge.injections import Injection
from harness.judge.progress_at_hit import Reach
from harness.judge.stakes.scale import Scale
from harness.judge.stakes.weigh import weigh
from harness.judge.stakes.weighed import Weighed
from harness.scenario import Finding, Kind
from tests.folders import BEFORE, HIT, PER_RECORD, TOTALS, values
from tests.scales import COUNTED, GRAND, PEAKS, Bench, Make, batch, benches, hit, injection, reach, upto

ONE = "kill driver at sink-committed of batch 1, attempt 1"
TWO = "kill driver at sink-committed of batch 1, attempt 2"
ALONE, CONFIRM = False, True


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    yield from benches(tmp_path)


Met = tuple[Sequence[Row], Reach]
"""What the sink held when a fault hit, and how far the query was."""


def judged(bench: Bench, end: Sequence[Row], *mets: Met) -> list[Finding]:
    """The findings of a run that ended so, and was hit so."""
    scale = bench.scale(end)
    weighed = [hit(bench, at, far, scale=scale, number=number) for number, (at, far) in enumerate(mets, 1)]
    return bench.findings(scale, weighed)


def causes(findings: Sequence[Finding]) -> set[tuple[Kind, tuple[str, ...], tuple[str, ...], bool]]:
    return {(each.kind, each.faults, each.fits, each.to_confirm) for each in findings}


# Rows.


def test_rows_that_were_there_before_and_are_there_twice_after_are_repeated_by_the_hit(make: Make) -> None:
    bench = make()
    out = judged(bench, bench.rows() + bench.rows(*batch(1)), (bench.first(2), reach()))
    assert len(out) == 10
    assert causes(out) == {(Kind.DUPLICATED, (ONE,), (), ALONE)}
    assert {each.batches for each in out} == {(1,)}


@pytest.mark.parametrize(("ids", "weak"), [("14", CONFIRM), ("14, 16", ALONE), ("14, 15", ALONE)])
def test_one_row_alone_may_have_come_again_for_any_reason(make: Make, ids: str, weak: bool) -> None:
    effect = f"select id, account, amount from ledger where id < 10 or id in ({ids})"
    bench = make(replace(PER_RECORD, effect=effect))
    out = judged(bench, bench.rows() + bench.rows(*batch(1)), (bench.first(2), reach()))
    assert causes(out) == {(Kind.DUPLICATED, (ONE,), (), weak)}


def test_rows_of_another_batch_that_are_there_twice_fit_no_hit(make: Make) -> None:
    bench = make()
    out = judged(bench, bench.rows() + bench.rows(*batch(2)), (bench.first(2), reach()))
    assert causes(out) == {(Kind.DUPLICATED, (), (), ALONE)}


def test_rows_that_were_twice_there_before_the_next_attempt_worked_are_not_its_doing(make: Make) -> None:
    bench = make()
    twice = bench.first(2) + bench.rows(*batch(1))
    out = judged(bench, bench.rows() + bench.rows(*batch(1)), (twice, reach()))
    assert causes(out) == {(Kind.DUPLICATED, (), (), ALONE)}
    scale = bench.scale(bench.rows() + bench.rows(*batch(1)))
    late = hit(bench, bench.first(2), reach(), scale=scale, restart=twice)
    assert causes(bench.findings(scale, [late])) == {(Kind.DUPLICATED, (), (), ALONE)}


def test_rows_that_were_not_there_yet_and_came_twice_fit_only_what_had_begun(make: Make) -> None:
    bench = make()
    end = bench.rows() + bench.rows(*batch(1))[:1]
    scale = bench.scale(end)
    begun = hit(bench, bench.first(1), scale=scale, writing={"0": ("insert",)})
    (out,) = bench.findings(scale, [begun])
    assert (out.faults, out.fits) == ((), (ONE,))


def test_of_two_hits_the_one_after_which_the_row_came_again_is_blamed(make: Make) -> None:
    bench = make()
    once, end = bench.first(2), bench.rows() + bench.rows(*batch(1))
    assert causes(judged(bench, end, (once, reach()), (once, reach()))) == {(Kind.DUPLICATED, (TWO,), (), ALONE)}
    twice = once + bench.rows(*batch(1))
    assert causes(judged(bench, end, (once, reach()), (twice, reach()))) == {(Kind.DUPLICATED, (ONE,), (), ALONE)}
    thrice = end + bench.rows(*batch(1))
    assert causes(judged(bench, thrice, (once, reach()), (twice, reach()))) == {
        (Kind.DUPLICATED, (ONE, TWO), (), ALONE)
    }


def test_of_three_hits_the_one_before_whose_successor_the_row_came_again_is_blamed(make: Make) -> None:
    bench = make()
    once, end = bench.first(2), bench.rows() + bench.rows(*batch(1))
    twice = once + bench.rows(*batch(1))
    out = judged(bench, end, (once, reach()), (once, reach()), (twice, reach()))
    assert causes(out) == {(Kind.DUPLICATED, (TWO,), (), ALONE)}


def test_a_copy_that_came_altered_is_a_repetition_too(make: Make) -> None:
    bench = make()
    altered: list[Row] = [(row[0], row[1], "0") for row in bench.rows(*batch(1))]
    out = judged(bench, bench.rows() + altered, (bench.first(2), reach()))
    assert causes(out) == {(Kind.DUPLICATED, (ONE,), (), CONFIRM)}, "other events of the same keys look alike"


def test_a_lost_checkpoint_repeats_what_was_committed(make: Make) -> None:
    bench = make()
    out = judged(bench, bench.rows() + bench.first(1), (bench.first(1), reach(again=0)))
    assert causes(out) == {(Kind.DUPLICATED, (ONE,), (), ALONE)}


BY_ACCOUNT = replace(PER_RECORD, effect="select account, amount from ledger", key=("account",))


def test_where_batches_share_a_key_only_more_copies_of_a_row_than_they_brought_count(make: Make) -> None:
    bench = make(BY_ACCOUNT)
    of_batch, of_other = bench.rows(*batch(1)), bench.rows(*batch(3))
    out = judged(bench, bench.rows() + of_batch, (bench.first(2), reach()))
    assert causes(out) == {(Kind.DUPLICATED, (ONE,), (), ALONE)}
    out = judged(bench, bench.rows() + of_other, (bench.first(2), reach()))
    assert {each.faults for each in out} == {()}, "batch 3 has rows of the same keys"
    absent = judged(bench, bench.rows() + of_batch, (bench.first(1), reach()))
    assert {each.faults for each in absent} == {()}
    scale = bench.scale(bench.rows() + of_batch)
    begun = hit(bench, bench.first(1), scale=scale, writing={"0": ("insert",)})
    assert {each.faults for each in bench.findings(scale, [begun])} == {()}, "no row of it was there"
    out = judged(bench, bench.rows() + bench.rows(*batch(0)), (bench.first(2), reach()))
    assert {each.faults for each in out} == {()}, "batch 0 was not at stake"


def test_where_batches_share_a_key_both_looks_at_a_hit_count(make: Make) -> None:
    bench = make(BY_ACCOUNT)
    scale = bench.scale(bench.rows() + bench.rows(*batch(1)))
    once, twice = bench.first(2), bench.first(2) + bench.rows(*batch(1))
    orphan = hit(bench, bench.first(1), scale=scale, restart=once)
    assert causes(bench.findings(scale, [orphan])) == {(Kind.DUPLICATED, (ONE,), (), ALONE)}
    for at, restart in ((twice, once), (once, twice)):
        there = hit(bench, at, scale=scale, restart=restart)
        assert {each.faults for each in bench.findings(scale, [there])} == {()}, "it was there twice before"


def test_where_batches_share_a_key_a_repetition_that_went_again_explains_no_other(make: Make) -> None:
    bench = make(BY_ACCOUNT)
    between = bench.first(2) + bench.rows(*batch(1))
    out = judged(bench, bench.rows() + bench.rows(*batch(3)), (bench.first(2), reach()), (between, reach(3, 2)))
    assert {(each.kind, each.faults) for each in out} == {(Kind.DUPLICATED, ())}


EQUAL = replace(PER_RECORD, effect="select account, amount from ledger", key=())


def test_equal_rows_that_another_batch_brings_are_no_repetition(make: Make) -> None:
    same = [{**record, "account": "a", "amount": "1.00"} for record in values(40)]
    bench = make(EQUAL, records=same)
    (one,) = bench.rows()[:1]
    (out,) = judged(bench, [one] * 50, ([one] * 20, reach()))
    assert (out.kind, out.copies, out.faults, out.fits) == (Kind.DUPLICATED, 10, (), (ONE,))
    (out,) = judged(bench, [one] * 50, ([one] * 30, reach()))
    assert out.faults == (), "ten too many were there already"


def test_equal_rows_of_one_batch_alone_are_a_repetition_if_more_came(make: Make) -> None:
    """Five of each price in each batch, and no other batch has its prices."""
    prices = [{**record, "account": "a", "amount": f"{record['id'] // 5}.00"} for record in values(40)]
    bench = make(EQUAL, records=prices)
    again = bench.rows() + bench.rows(*batch(1))
    assert causes(judged(bench, again, (bench.first(2), reach()))) == {(Kind.DUPLICATED, (ONE,), (), ALONE)}
    half = [*bench.first(1), *bench.rows(*batch(1))[::2]]
    out = judged(bench, bench.rows(), (half, reach()))
    assert out == [], "what was missing came"
    one = bench.rows(*batch(1))[:1]
    out = judged(bench, bench.rows() + one, (half, reach()))
    assert causes(out) == {(Kind.DUPLICATED, (ONE,), (), CONFIRM)}
    out = judged(bench, bench.rows() + one, (bench.first(2) + one, reach()))
    assert {each.faults for each in out} == {()}, "it was there as often before"


def test_large_sinks_show_a_repetition_by_their_fingerprints(make: Make) -> None:
    for sink in (PER_RECORD, BY_ACCOUNT):
        bench = make(sink)
        scale = bench.scale(bench.rows() + bench.rows(*batch(1)))
        weighed = weigh(scale, injection(bench.marked(bench.first(2))), [reach()])
        assert causes(bench.findings(scale, [weighed])) == {(Kind.DUPLICATED, (ONE,), (), ALONE)}


def test_a_batch_that_was_planned_and_never_came_is_lost_by_the_hit(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row not in bench.rows(*batch(1))]
    out = judged(bench, end, (bench.first(1), reach()))
    assert (len(out), causes(out)) == (10, {(Kind.LOST, (ONE,), (), CONFIRM)})
    assert all(each.staked for each in out)


def test_one_partition_of_a_batch_may_be_lost_alone(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row not in bench.rows(batch(1)[1])]
    out = judged(bench, end, (bench.first(1), reach()))
    assert (len(out), causes(out)) == (5, {(Kind.LOST, (ONE,), (), CONFIRM)})


def test_what_the_next_attempt_skips_is_lost_by_the_hit(make: Make) -> None:
    bench = make()
    out = judged(bench, bench.first(2) + bench.rows(*batch(3)), (bench.first(2), reach(2, 2, again=3, after=True)))
    assert (len(out), causes(out)) == (10, {(Kind.LOST, (ONE,), (), CONFIRM)})


def test_a_flaky_loser_in_the_hit_batch_is_not_blamed(make: Make) -> None:
    bench = make()
    for rows in (bench.rows(*batch(1))[3:4], bench.rows(*batch(1))[2:6]):
        end = [row for row in bench.rows() if row not in rows]
        out = judged(bench, end, (bench.first(1), reach()))
        assert causes(out) == {(Kind.LOST, (), (ONE,), ALONE)}


def test_one_row_alone_may_be_missing_for_any_reason(make: Make) -> None:
    bench = make(replace(PER_RECORD, effect="select id, account, amount from ledger where id < 10 or id = 14"))
    end = bench.rows()[:-1] if bench.rows()[-1][0] == "14" else [row for row in bench.rows() if row[0] != "14"]
    (out,) = judged(bench, end, (bench.first(1), reach()))
    assert (out.kind, out.key, out.faults, out.fits) == (Kind.LOST, {"id": "14"}, (), (ONE,))


@pytest.mark.parametrize("ids", [("14", "16"), ("14", "15")])
def test_two_rows_that_are_all_of_a_batch_are_lost_by_the_hit(make: Make, ids: tuple[str, str]) -> None:
    """Of one partition, or of one each."""
    effect = f"select id, account, amount from ledger where id < 10 or id in ({', '.join(ids)})"
    bench = make(replace(PER_RECORD, effect=effect))
    out = judged(bench, bench.first(1), (bench.first(1), reach()))
    assert {each.key["id"] for each in out} == set(ids)
    assert causes(out) == {(Kind.LOST, (ONE,), (), CONFIRM)}


def test_rows_that_were_there_and_went_are_lost_by_the_last_hit_that_saw_them(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row not in bench.first(1)]
    out = judged(bench, end, (bench.first(1), reach()))
    assert (len(out), causes(out)) == (10, {(Kind.LOST, (ONE,), (), CONFIRM)})
    assert {each.staked for each in out} == {False}, "they were not in flight"
    twice = judged(bench, end, (bench.first(1), reach()), (bench.first(1), reach()))
    assert {each.faults for each in twice} == {(TWO,)}
    between = judged(bench, end, (bench.first(1), reach()), ([], reach()))
    assert {each.faults for each in between} == {(ONE,)}
    scale = bench.scale(end)
    for at, restart in ((bench.first(1), []), ([], bench.first(1))):
        one = hit(bench, at, scale=scale, restart=restart)
        assert {each.faults for each in bench.findings(scale, [one])} == {(ONE,)}, "either look at a hit counts"
    marked = weigh(scale, injection(bench.marked(bench.first(1))), [reach()])
    assert causes(bench.findings(scale, [marked])) == {(Kind.LOST, (ONE,), (), CONFIRM)}


def test_a_row_that_went_alone_or_was_wrong_is_not_lost_by_the_hit(make: Make) -> None:
    bench = make()
    first = bench.first(1)
    out = judged(bench, [row for row in bench.rows() if row != first[0]], (first, reach()))
    assert causes(out) == {(Kind.LOST, (), (), ALONE)}, "one row"
    wrong: list[Row] = [(row[0], row[1], "0") for row in first]
    out = judged(bench, [row for row in bench.rows() if row not in first], (wrong, reach()))
    assert causes(out) == {(Kind.LOST, (), (), ALONE)}, "the right ones were never there"


def test_where_rows_share_a_key_one_that_was_there_counts_and_no_other(make: Make) -> None:
    bench = make(BY_ACCOUNT)
    end = [row for row in bench.rows() if row not in bench.rows(*batch(0))]
    out = judged(bench, end, (bench.first(1), reach()))
    assert causes(out) == {(Kind.LOST, (ONE,), (), CONFIRM)}
    other = judged(bench, end, (bench.rows(*batch(1)), reach(0, 1)))
    assert ONE not in {fault for each in other for fault in each.faults if not each.staked}


def test_the_rest_of_one_partition_is_lost_by_the_hit(make: Make) -> None:
    bench = make()
    rest = bench.rows(Span(0, 8, 10))
    end = [row for row in bench.rows() if row not in rest]
    at = [row for row in bench.first(2) if row not in rest]
    out = judged(bench, end, (at, reach()))
    assert (len(out), causes(out)) == (2, {(Kind.LOST, (ONE,), (), CONFIRM)})


def test_of_a_batch_that_was_written_in_part_the_rest_is_lost_by_the_hit(make: Make) -> None:
    bench = make()
    there = bench.rows(Span(0, 5, 8), Span(1, 5, 9))
    rest = bench.rows(Span(0, 8, 10), Span(1, 9, 10))
    end = [row for row in bench.rows() if row not in rest]
    out = judged(bench, end, (bench.first(1) + there, reach()))
    assert (len(out), causes(out)) == (3, {(Kind.LOST, (ONE,), (), CONFIRM)})
    one_side = judged(bench, end, (bench.first(1) + bench.rows(batch(1)[0]), reach()))
    gone = {row[0] for row in bench.rows(Span(0, 8, 10))}
    assert {each.key["id"] for each in one_side if each.faults} == gone, "of the other side more came later"


def test_gaps_in_a_batch_that_was_written_in_part_are_not_blamed(make: Make) -> None:
    bench = make()
    gaps = bench.rows(Span(0, 6, 7), Span(1, 7, 8))
    end = [row for row in bench.rows() if row not in gaps]
    at = [row for row in bench.first(2) if row not in gaps]
    out = judged(bench, end, (at, reach()))
    assert (len(out), causes(out)) == (2, {(Kind.LOST, (), (ONE,), ALONE)})


def test_where_spark_had_heard_of_the_commit_what_is_missing_was_missing_before(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row not in bench.rows(*batch(1))]
    out = judged(bench, end, (bench.first(1), reach(after=True)))
    assert causes(out) == {(Kind.LOST, (), (ONE,), ALONE)}


def test_what_was_still_planned_at_a_later_hit_was_not_lost_by_an_earlier_one(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row not in bench.rows(*batch(1))]
    out = judged(bench, end, (bench.first(1), reach()), (bench.first(1), reach()))
    assert causes(out) == {(Kind.LOST, (TWO,), (), CONFIRM)}
    later = [row for row in bench.first(2) if row not in bench.rows(*batch(1))]
    out = judged(bench, end, (bench.first(1), reach()), (later, reach(3, 2)))
    assert {each.faults for each in out} == {(ONE,)}


def test_a_row_that_no_hit_had_at_stake_is_not_staked(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row[0] != "25"]
    (out,) = judged(bench, end, (bench.first(1), reach()))
    assert (out.faults, out.fits, out.staked) == ((), (), False)


def test_a_lost_row_of_another_batch_is_not_staked_though_its_key_was(make: Make) -> None:
    bench = make(BY_ACCOUNT)
    less = list(bench.rows())
    for row in bench.rows(*batch(3))[:1]:
        less.remove(row)
    (out,) = judged(bench, less, (bench.first(1), reach()))
    assert (out.kind, out.staked) == (Kind.LOST, False)
    less = list(bench.rows())
    for row in bench.rows(*batch(1))[:1]:
        less.remove(row)
    (out,) = judged(bench, less, (bench.first(1), reach()))
    assert out.staked


def test_a_right_row_that_is_another_one_afterwards_is_corrupted_by_the_hit(make: Make) -> None:
    bench = make()
    end = [(row[0], row[1], "0") if row in bench.rows(*batch(1)) else row for row in bench.rows()]
    out = judged(bench, end, (bench.first(2), reach()))
    assert (len(out), causes(out)) == (10, {(Kind.CORRUPTED, (ONE,), (), CONFIRM)})
    wrong = [row for row in end if row in bench.first(1) or row[2] == "0"]
    out = judged(bench, end, (wrong, reach()))
    assert causes(out) == {(Kind.CORRUPTED, (), (), ALONE)}, "they were wrong before"
    scale = bench.scale(end)
    marked = weigh(scale, injection(bench.marked(bench.first(2))), [reach()])
    assert causes(bench.findings(scale, [marked])) == {(Kind.CORRUPTED, (), (ONE,), ALONE)}
    out = judged(bench, end, (bench.first(1), reach()))
    assert causes(out) == {(Kind.CORRUPTED, (), (ONE,), ALONE)}


def test_rows_that_nobody_expected_fit_every_hit(make: Make) -> None:
    bench = make()
    (out,) = judged(bench, [*bench.rows(), ("99", "a", "1")], (bench.first(1), reach()), (bench.first(3), reach(3, 3)))
    assert (out.kind, out.faults, out.fits) == (Kind.UNEXPECTED, (), (ONE, TWO))


def test_hits_of_which_nothing_is_known_fit_everything(make: Make) -> None:
    bench = make()
    scale = bench.scale(bench.rows()[1:])
    blind = Weighed(injection=Injection(number=1, outcome=HIT, why="no snapshot"), why="no snapshot")
    (out,) = bench.findings(scale, [blind])
    assert (out.faults, out.fits, out.staked) == ((), (ONE,), None)
    assert bench.findings(bench.scale(), [blind]) == []
    assert bench.findings(scale, [])[0].fits == ()


# Totals.


def test_a_batch_counted_twice_names_batch_and_hit(make: Make) -> None:
    bench = make(TOTALS)
    out = judged(bench, bench.rows(again=(batch(1),)), (bench.first(2), reach()))
    assert (len(out), causes(out)) == (4, {(Kind.WRONG_AGGREGATE, (ONE,), (), ALONE)})
    assert {(each.batches, each.note) for each in out} == {((1,), "too high by exactly batch 1")}


def test_another_batch_counted_twice_fits_no_hit(make: Make) -> None:
    bench = make(TOTALS)
    out = judged(bench, bench.rows(again=(batch(2),)), (bench.first(2), reach()))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (), (), ALONE)}
    assert {each.batches for each in out} == {(2,)}


def test_a_batch_counted_twice_before_the_hit_is_not_its_doing(make: Make) -> None:
    bench = make(TOTALS)
    doubled = bench.rows(*batch(0), *batch(1), again=(batch(1),))
    out = judged(bench, bench.rows(again=(batch(1),)), (doubled, reach()))
    assert {each.faults for each in out} == {()}


def test_one_partition_counted_twice_is_found(make: Make) -> None:
    bench = make(TOTALS)
    part = (batch(1)[0],)
    at = bench.rows(*batch(0), *part)
    out = judged(bench, bench.rows(again=(part,)), (at, reach()))
    assert (len(out), causes(out)) == (2, {(Kind.WRONG_AGGREGATE, (ONE,), (), ALONE)})
    assert {each.batches for each in out} == {(1,)}


def test_a_batch_that_a_total_misses_names_batch_and_hit(make: Make) -> None:
    bench = make(TOTALS)
    out = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()))
    assert (len(out), causes(out)) == (4, {(Kind.WRONG_AGGREGATE, (ONE,), (), CONFIRM)})
    assert {each.note for each in out} == {"too low by exactly batch 1"}
    part = (batch(1)[1],)
    out = judged(bench, bench.rows(without=part), (bench.first(1), reach()))
    assert (len(out), causes(out)) == (2, {(Kind.WRONG_AGGREGATE, (ONE,), (), CONFIRM)})


BOTH = [{**record, "account": f"a{record['id'] // 2 % 2}"} for record in values(40)]
"""Two accounts, each with records in both partitions."""


def test_a_part_of_a_batch_names_the_batch(make: Make) -> None:
    bench = make(TOTALS, records=BOTH)
    part = (batch(1)[0],)
    out = judged(bench, bench.rows(again=(part,)), (bench.rows(*batch(0), *part), reach()))
    assert (len(out), causes(out)) == (2, {(Kind.WRONG_AGGREGATE, (ONE,), (), ALONE)})
    assert {each.batches for each in out} == {(1,)}
    out = judged(bench, bench.rows(without=part), (bench.rows(*batch(0), batch(1)[1]), reach()))
    assert (len(out), causes(out)) == (2, {(Kind.WRONG_AGGREGATE, (ONE,), (), CONFIRM)})
    assert {each.batches for each in out} == {(1,)}


@pytest.mark.parametrize(("partitions", "faults"), [(4, (ONE,)), (5, ())])
def test_up_to_four_partitions_are_tried_by_themselves(make: Make, partitions: int, faults: tuple[str, ...]) -> None:
    names = [f"a{place // partitions % 3}" for place in range(20 * partitions)]
    records = [{**each, "account": name} for each, name in zip(values(len(names)), names, strict=True)]
    bench = make(TOTALS, records=records, partitions=partitions)
    ends = [upto(number, partitions) for number in (0, 1, 2)]
    far = reach(low=ends[1], high=ends[2], next=ends[1], last=batch(0, partitions))
    part = batch(1, partitions)[2:]
    at = bench.rows(*batch(0, partitions), *part)
    out = judged(bench, bench.rows(again=(part,)), (at, far))
    assert {(each.kind, each.faults) for each in out} == {(Kind.WRONG_AGGREGATE, faults)}
    whole = batch(1, partitions)
    out = judged(bench, bench.rows(again=(whole,)), (bench.rows(*batch(0, partitions), *whole), far))
    assert {each.faults for each in out} == {(ONE,)}


def test_a_batch_that_was_written_for_some_totals_is_repeated_in_those(make: Make) -> None:
    bench = make(TOTALS)
    once, twice = bench.first(2), bench.rows(again=(batch(1),))
    at = [row for row in bench.first(1) if row[0] != "a0"] + [row for row in once if row[0] == "a0"]
    end = [row for row in bench.rows() if row[0] != "a0"] + [row for row in twice if row[0] == "a0"]
    (out,) = judged(bench, end, (at, reach()))
    assert (out.key, out.faults, out.to_confirm) == ({"account": "a0"}, (ONE,), ALONE)


def test_totals_that_a_lost_batch_does_not_change_need_not_be_wrong(make: Make) -> None:
    sums = replace(TOTALS, effect="select account, sum(amount) as total from ledger group by account")
    free = [
        {**each, "amount": "0.00"} if each["account"] == "a3" and 10 <= each["id"] < 20 else each for each in values(40)
    ]
    bench = make(sums, records=free)
    out = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()))
    assert {(each.key["account"], each.faults) for each in out} == {("a0", (ONE,)), ("a1", (ONE,)), ("a2", (ONE,))}


def test_a_total_that_lacks_a_batch_and_more_is_not_explained(make: Make) -> None:
    bench = make(TOTALS)
    out = judged(bench, other(bench.rows(without=batch(1)), 5, "a3"), (bench.first(1), reach()))
    assert {each.key["account"]: each.faults for each in out} == {"a0": (ONE,), "a1": (ONE,), "a2": (ONE,), "a3": ()}


def test_a_total_that_was_wrong_when_the_fault_hit_is_not_explained(make: Make) -> None:
    bench = make(TOTALS)
    out = judged(bench, bench.rows(without=batch(1)), (other(bench.first(1), 5, "a0"), reach()))
    assert {each.key["account"]: each.faults for each in out} == {"a0": (), "a1": (ONE,), "a2": (ONE,), "a3": (ONE,)}
    (odd,) = (each for each in out if not each.faults)
    assert (odd.fits, odd.staked, odd.batches) == ((ONE,), False, (1,))


def test_a_driver_that_only_stood_still_repeats_nothing(make: Make) -> None:
    bench = make(TOTALS)
    scale = bench.scale(bench.rows(again=(batch(1),)))
    paused = weigh(scale, replace(injection(bench.held(bench.first(2))), paused=True, spared=True), [reach()])
    assert {each.faults for each in bench.findings(scale, [paused])} == {()}


def test_one_grand_total_that_lacks_a_batch_fits_the_hit(make: Make) -> None:
    """All of its columns are its key: it is a row that is lost, and one that nobody expected."""
    bench = make(GRAND)
    end = bench.rows(without=batch(1))
    lost, new = sorted(judged(bench, end, (bench.first(1), reach())), key=lambda each: each.kind)
    assert (lost.kind, lost.faults, lost.fits, lost.to_confirm) == (Kind.LOST, (), (ONE,), ALONE)
    assert (new.kind, new.faults, new.fits) == (Kind.UNEXPECTED, (), (ONE,))
    idle = judged(bench, end, (bench.first(2), reach(2, 2)))
    assert {(each.kind, each.fits) for each in idle} == {(Kind.LOST, ()), (Kind.UNEXPECTED, (ONE,))}


def test_a_batch_that_no_hit_had_at_stake_fits_none(make: Make) -> None:
    bench = make(TOTALS)
    out = judged(bench, bench.rows(without=batch(2)), (bench.first(1), reach()))
    assert {(each.faults, each.fits) for each in out} == {((), ())}


MANY = [{**record, "account": f"a{record['id'] % 10}"} for record in values(40)]
"""Ten accounts: each batch has one record of each."""


def test_a_flaky_loser_of_one_record_of_the_hit_batch_is_not_blamed(make: Make) -> None:
    bench = make(TOTALS, records=MANY)
    end = bench.rows(without=(Span(0, 6, 7),))
    (out,) = judged(bench, end, (bench.first(1), reach()))
    assert (out.kind, out.faults, out.fits) == (Kind.WRONG_AGGREGATE, (), (ONE,))
    whole = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()))
    assert {each.faults for each in whole} == {(ONE,)}


def test_a_flaky_doubler_of_one_record_is_not_blamed(make: Make) -> None:
    bench = make(COUNTED, records=MANY)
    (out,) = judged(bench, bench.rows(again=((Span(0, 16, 17),),)), (bench.first(2), reach()))
    assert (out.kind, out.faults) == (Kind.WRONG_AGGREGATE, ())


def test_batches_that_come_to_the_same_are_not_told_apart(make: Make) -> None:
    bench = make(COUNTED, records=MANY)
    out = judged(bench, bench.rows(again=(batch(1),)), (bench.first(2), reach()))
    assert {(each.faults, each.fits) for each in out} == {((), (ONE,))}
    out = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()))
    assert {(each.faults, each.fits) for each in out} == {((), (ONE,))}


def test_batches_that_come_to_the_same_are_not_told_apart_by_a_total_that_fits_neither(make: Make) -> None:
    bench = make(COUNTED, records=MANY)
    out = judged(bench, other(bench.rows(again=(batch(1),)), 5, "a3"), (bench.first(2), reach()))
    assert (len(out), {each.faults for each in out}) == (10, {()})


@pytest.mark.parametrize(
    ("injected", "rival"), [(["a0"] * 2 + ["a1"] * 8, ["a0"] * 2), (["a0"] * 2, ["a0"] * 2 + ["a1"] * 8)]
)
def test_a_total_that_one_of_two_batches_touches_speaks_for_one(
    make: Make, injected: list[str], rival: list[str]
) -> None:
    names = ["a9"] * 10 + (injected + ["x"] * 8)[:10] + (rival + ["x"] * 8)[:10] + ["a9"] * 10
    records = [{**record, "account": account} for record, account in zip(values(40), names, strict=True)]
    effect = "select account, count(*) as n from ledger where account <> 'x' group by account"
    bench = make(replace(COUNTED, effect=effect), records=records)
    for end, at, weak in (
        (bench.rows(again=(batch(1),)), bench.first(2), ALONE),
        (bench.rows(without=batch(1)), bench.first(1), CONFIRM),
    ):
        out = judged(bench, end, (at, reach()))
        assert {(each.faults, each.to_confirm) for each in out if each.kind is Kind.WRONG_AGGREGATE} == {((ONE,), weak)}


def accounts(*names: str) -> list[dict[str, Any]]:
    """Forty records of these accounts; the effect that counts them leaves out x."""
    return [{**record, "account": account} for record, account in zip(values(40), names, strict=True)]


NOT_X = replace(COUNTED, effect="select account, count(*) as n from ledger where account <> 'x' group by account")


@pytest.mark.parametrize(("last", "told"), [(["a0", "a1"], (ONE,)), (["x", "a0"], ())])
def test_two_records_that_show_at_the_end_of_a_batch_are_enough(
    make: Make, last: list[str], told: tuple[str, ...]
) -> None:
    bench = make(NOT_X, records=accounts(*["a9"] * 10, *["x"] * 8, *last, *["a9"] * 20))
    out = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()))
    assert {each.faults for each in out} == {told}


@pytest.mark.parametrize("shown", [1, 2])
def test_single_records_that_two_hits_repeated_want_a_control(make: Make, shown: int) -> None:
    part = [*["a0"] * shown, *["x"] * (10 - shown)]
    sums = "select account, count(*) as n, sum(amount) as total from ledger where account <> 'x' group by account"
    bench = make(replace(TOTALS, effect=sums), records=accounts(*["a9"] * 10, *part, *["a9"] * 10, *part))
    at = bench.rows(*batch(0), *batch(1), *batch(2), *batch(3), again=(batch(1),))
    out = judged(bench, bench.rows(again=(batch(1), batch(3))), (bench.first(2), reach()), (at, reach(4, 3)))
    two = "kill driver at sink-committed of batch 1, attempt 2"
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (ONE, two), (), CONFIRM if shown == 1 else ALONE)}


def test_a_batch_that_comes_to_the_same_in_one_key_only_is_refuted_by_its_others(make: Make) -> None:
    """Batch 1 has two records of a0 and two of a1, batch 2 two of a0 and two of a2: only a0 ties."""
    accounts = ["a3", "a4"] * 5 + ["a0", "a1"] * 2 + ["a5"] * 6 + ["a0", "a2"] * 2 + ["a6"] * 6 + ["a7"] * 10
    records = [{**record, "account": account} for record, account in zip(values(40), accounts, strict=True)]
    bench = make(COUNTED, records=records)
    out = judged(bench, bench.rows(again=(batch(1),)), (bench.first(2), reach()))
    assert {(each.key["account"], each.faults) for each in out} == {("a0", (ONE,)), ("a1", (ONE,)), ("a5", (ONE,))}


def test_a_batch_that_comes_to_the_same_in_some_keys_is_refuted_by_the_others(make: Make) -> None:
    """Batches 1 and 2 have records of the same accounts, of a1 and a2 not as many."""
    injected, rival = ["a0"] * 3 + ["a1"] * 2 + ["a2"] * 3, ["a0"] * 3 + ["a1"] + ["a2"] * 4
    accounts = ["a9"] * 10 + [*injected, "a3", "a3"] + [*rival, "a3", "a3"] + ["a9"] * 10
    records = [{**record, "account": account} for record, account in zip(values(40), accounts, strict=True)]
    bench = make(COUNTED, records=records)
    twice = judged(bench, bench.rows(again=(batch(1),)), (bench.first(2), reach()))
    never = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()))
    assert (len(twice), len(never)) == (4, 4)
    assert {each.faults for each in (*twice, *never)} == {(ONE,)}


def test_a_batch_hit_twice_and_counted_twice_is_the_second_hits(make: Make) -> None:
    bench = make(TOTALS)
    once, end = bench.first(2), bench.rows(again=(batch(1),))
    out = judged(bench, end, (once, reach()), (once, reach()))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (TWO,), (), ALONE)}
    twice = bench.rows(*batch(0), *batch(1), again=(batch(1),))
    out = judged(bench, end, (once, reach()), (twice, reach()))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (ONE,), (), ALONE)}


def test_a_total_that_was_wrong_otherwise_at_a_later_hit_is_not_explained(make: Make) -> None:
    bench = make(TOTALS)
    end, once = bench.rows(again=(batch(1),)), bench.first(2)
    twice = bench.rows(*batch(0), *batch(1), *batch(2), again=(batch(1),))
    assert {each.faults for each in judged(bench, end, (once, reach()), (twice, reach(3, 2)))} == {(ONE,)}
    astray = other(twice, 5, "a0")
    out = judged(bench, end, (once, reach()), (astray, reach(3, 2)))
    assert {each.key["account"]: each.faults for each in out} == {"a0": (), "a1": (ONE,), "a2": (ONE,), "a3": (ONE,)}
    behind = bench.rows(*batch(0), *batch(1), again=(batch(1),))
    assert {each.faults for each in judged(bench, end, (once, reach()), (behind, reach(3, 2)))} == {(ONE,)}
    after = reach(3, 2, after=True)
    assert {each.faults for each in judged(bench, end, (once, reach()), (behind, after))} == {()}
    assert {each.faults for each in judged(bench, end, (once, reach()), (twice, after))} == {(ONE,)}


def test_a_batch_hit_twice_and_counted_three_times_is_both_hits(make: Make) -> None:
    bench = make(TOTALS)
    once, twice = bench.first(2), bench.rows(*batch(0), *batch(1), again=(batch(1),))
    out = judged(bench, bench.rows(again=(batch(1), batch(1))), (once, reach()), (twice, reach()))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (ONE, TWO), (), ALONE)}
    assert {each.note for each in out} == {"too high by exactly batch 1"}


def test_three_batches_counted_twice_are_their_three_hits(make: Make) -> None:
    bench = make(TOTALS)
    parts = [batch(0), batch(1), batch(2), batch(3)]
    again = (batch(1), batch(2), batch(3))
    looks = [bench.rows(*joined(*parts[: n + 2]), again=again[:n]) for n in range(3)]
    mets = [(rows, reach(n + 2, n + 1)) for n, rows in enumerate(looks)]
    out = judged(bench, bench.rows(again=again), *mets)
    three = tuple(f"kill driver at sink-committed of batch 1, attempt {attempt}" for attempt in (1, 2, 3))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, three, (), ALONE)}
    assert {each.batches for each in out} == {(1, 2, 3)}


def test_two_batches_counted_twice_are_their_two_hits(make: Make) -> None:
    bench = make(TOTALS)
    at = bench.rows(*batch(0), *batch(1), *batch(2), *batch(3), again=(batch(1),))
    out = judged(bench, bench.rows(again=(batch(1), batch(3))), (bench.first(2), reach()), (at, reach(4, 3)))
    two = "kill driver at sink-committed of batch 1, attempt 2"
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (ONE, two), (), ALONE)}
    assert {(each.batches, each.note) for each in out} == {((1, 3), "too high by exactly batches 1 and 3")}
    out = judged(bench, bench.rows(again=(batch(1), batch(3))), (bench.first(2), reach()), (other(at, 5), reach(4, 3)))
    assert {each.key["account"]: each.faults for each in out} == {
        "a0": (ONE, two),
        "a1": (),
        "a2": (ONE, two),
        "a3": (ONE, two),
    }
    more = other(bench.rows(again=(batch(1), batch(3))), 5)
    out = judged(bench, more, (bench.first(2), reach()), (at, reach(4, 3)))
    assert {each.key["account"] for each in out if not each.faults} == {"a1"}


def test_a_batch_still_planned_at_a_later_hit_was_not_lost_by_an_earlier_one(make: Make) -> None:
    bench = make(TOTALS)
    out = judged(bench, bench.rows(without=batch(1)), (bench.first(1), reach()), (bench.first(1), reach()))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (TWO,), (), CONFIRM)}


def test_a_lost_checkpoint_counts_again_what_was_committed(make: Make) -> None:
    bench = make(TOTALS)
    out = judged(bench, bench.rows(again=(batch(0),)), (bench.first(1), reach(again=0)))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (ONE,), (), ALONE)}
    out = judged(bench, bench.rows(again=(batch(0) + batch(1),)), (bench.first(2), reach(again=0)))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (ONE,), (), ALONE)}


def test_a_total_that_no_batch_explains_fits_the_hits_that_touched_it(make: Make) -> None:
    bench = make(TOTALS)
    end = [(row[0], "77", row[2]) if row[0] == "a1" else row for row in bench.rows()]
    (out,) = judged(bench, end, (bench.first(2), reach()))
    assert (out.faults, out.fits) == ((), (ONE,))


def test_a_total_that_nothing_explains_fits_a_slice_that_is_no_batch(make: Make) -> None:
    bench = make(TOTALS)
    slice_ = reach(low={0: 3, 1: 3}, high={0: 7, 1: 7}, next={0: 3, 1: 3}, own=True, last=(), batch=None)
    end: list[Row] = [(row[0], "77", row[2]) if row[0] == "a1" else row for row in bench.rows()]
    (out,) = judged(bench, end, (bench.rows(Span(0, 0, 7), Span(1, 0, 7)), slice_))
    assert (out.faults, out.fits) == ((), (ONE,))


def test_totals_in_fingerprints_show_a_repetition_too(make: Make) -> None:
    bench = make(TOTALS)
    scale = bench.scale(bench.rows(again=(batch(1),)))
    weighed = weigh(scale, injection(bench.marked(bench.first(2))), [reach()])
    assert causes(bench.findings(scale, [weighed])) == {(Kind.WRONG_AGGREGATE, (ONE,), (), ALONE)}


def test_a_slice_of_offsets_kept_by_hand_has_no_batch_to_name(make: Make) -> None:
    bench = make(TOTALS)
    own = reach(own=True, batch=None, checkpoint="")
    out = judged(bench, bench.rows(again=(batch(1),)), (bench.first(2), own))
    assert {(each.faults, each.batches, each.note) for each in out} == {((ONE,), (1,), "too high by exactly batch 1")}


def test_a_hit_is_named_by_its_own_crash_point(make: Make) -> None:
    bench = make(TOTALS)
    scale = bench.scale(bench.rows(without=batch(1)))
    weighed = hit(bench, bench.first(1), scale=scale, outcome=BEFORE)
    assert {each.faults for each in bench.findings(scale, [weighed])} == {
        ("kill driver at batch-planned of batch 1, attempt 1",)
    }


# Totals that are right in the end and were wrong when the fault hit.


def off(
    bench: Bench, at: Sequence[Row], far: Reach | None = None, end: Sequence[Row] | None = None, **more: Any
) -> int:
    scale = bench.scale(end)
    weighed = hit(bench, at, far or reach(), scale=scale)
    moving = replace(weighed.injection, **more)
    return mismatched(scale, replace(weighed, injection=moving))


def other(rows: Sequence[Row], more: int, key: str = "a1") -> list[Row]:
    return [(row[0], str(int(row[1] or 0) + more), *row[2:]) if row[0] == key else row for row in rows]


def test_totals_between_two_batches_are_in_order(make: Make) -> None:
    bench = make(TOTALS)
    part = bench.rows(*batch(0), batch(1)[0])
    for rows in (bench.first(1), bench.first(2), part, [], bench.first(1)[1:]):
        assert off(bench, rows) == 0
    assert off(bench, bench.first(2), reach(after=True)) == 0
    assert off(bench, bench.first(2), reach(2, 2)) == 0


def test_totals_of_half_a_batch_are_in_order_and_those_below_and_above_are_not(make: Make) -> None:
    bench = make(TOTALS, records=[{**record, "account": "a1"} for record in values(40)])
    for n, wrong in ((9, 1), (10, 0), (15, 0), (20, 0), (21, 1)):
        total = bench.rows(*batch(0), batch(1)[0])[0][2]
        assert off(bench, [("a1", str(n), total)]) == wrong
    low, high = bench.first(1)[0], bench.first(2)[0]
    assert off(bench, [("a1", low[1], high[2])]) == 0
    assert off(bench, [("a1", high[1], low[2])]) == 0


def test_totals_beyond_both_batches_are_not(make: Make) -> None:
    bench = make(TOTALS)
    assert off(bench, other(bench.first(2), 1)) == 1
    assert off(bench, other(other(bench.first(1), -1), -1, "a2")) == 2
    assert off(bench, bench.first(1), reach(after=True)) == 4
    assert off(bench, other(bench.first(2), 1), reach(2, 2)) == 1
    assert off(bench, [*bench.first(2), ("zz", "1", "1")]) == 1


def test_totals_that_fall_may_be_between_two_batches(make: Make) -> None:
    falling = [{**record, "account": "a1", "amount": f"-{record['id'] + 1}.00"} for record in values(40)]
    sums = replace(TOTALS, effect="select account, sum(amount) as total from ledger group by account")
    bench = make(sums, records=falling)
    low, high = (int(bench.first(number)[0][1] or 0) for number in (1, 2))
    for total, wrong in ((low + 1, 1), (low, 0), (low - 1, 0), (high, 0), (high - 1, 1)):
        assert off(bench, [("a1", str(total))]) == wrong


LATE = [{**record, "account": "late"} if record["id"] >= 30 else record for record in values(40)]
"""The last batch has an account of its own."""


def test_a_total_of_a_batch_that_was_not_planned_is_not_in_order(make: Make) -> None:
    bench = make(TOTALS, records=LATE)
    assert off(bench, [*bench.first(2), *bench.rows(*batch(3))]) == 1


def test_the_text_of_a_grand_total_is_no_number_in_between(make: Make) -> None:
    bench = make(replace(GRAND, effect="select count(*) as n, max(account) as last from ledger"))
    assert off(bench, bench.first(2), reach(2, 2)) == 0
    assert off(bench, [("20", "zz")], reach(2, 2)) == 1


def behind(bench: Bench, at: Sequence[Row], far: Reach, *, late: bool = True) -> int:
    scale = replace(bench.scale(), late=late)
    return mismatched(scale, hit(bench, at, far, scale=scale))


def test_a_sink_that_is_late_may_show_what_earlier_batches_came_to(make: Make) -> None:
    bench = make(TOTALS, records=[{**record, "account": "a1"} for record in values(40)])
    for batches in (1, 2, 3, 4):
        assert behind(bench, bench.first(batches), reach(4, 3)) == 0
    assert behind(bench, bench.first(1), reach(4, 3), late=False) == 1
    assert behind(bench, bench.rows(*batch(0), batch(1)[0]), reach(4, 3)) == 0, "between two of them"
    assert behind(bench, bench.rows(*batch(0), batch(1)[0]), reach(4, 3), late=False) == 1
    assert behind(bench, bench.rows(batch(0)[0]), reach(4, 3)) == 1, "before the first of them"
    fresh = make(TOTALS, records=[{**each, "account": "late"} if each["id"] >= 20 else each for each in values(40)])
    assert behind(fresh, other(fresh.first(3), -1, "late"), reach(4, 3)) == 1, "between nothing and the first of them"


def test_a_sink_that_is_late_is_never_ahead(make: Make) -> None:
    bench = make(TOTALS, records=[{**record, "account": "a1"} for record in values(40)])
    for at in (bench.first(3), bench.first(4), bench.rows(*batch(0), *batch(1), batch(2)[0])):
        assert behind(bench, at, reach(2, 1)) == 1


def test_totals_that_are_wrong_in_the_end_are_findings_of_their_own(make: Make) -> None:
    bench = make(TOTALS)
    early = other(other(bench.first(2), 1), 1, "a2")
    assert off(bench, early, end=other(bench.rows(), 1)) == 1


def test_a_driver_that_goes_on_may_have_changed_them_meanwhile(make: Make) -> None:
    bench = make(TOTALS)
    assert off(bench, other(bench.first(2), 1), running=True) == 0
    assert off(bench, other(bench.first(2), 1), moving=True) == 1, "it was frozen when it was looked at"


def test_single_records_and_unknown_hits_are_no_totals(make: Make) -> None:
    plain, bench = make(), make(TOTALS)
    assert off(plain, plain.first(2)[3:]) == 0
    scale: Scale = bench.scale()
    assert mismatched(scale, Weighed(injection=Injection(number=1, outcome=HIT))) == 0


def test_what_is_no_finite_number_may_be_in_between(make: Make) -> None:
    bench = make(PEAKS)
    assert off(bench, [(row[0], "NaN") if row[0] == "a1" else row for row in bench.first(1)]) == 0
    assert off(bench, [(row[0], None) if row[0] == "a1" else row for row in bench.first(1)]) == 0
    assert off(bench, bench.first(1) * 2) == 0, "several rows of one key"
    assert off(bench, [(row[0], "999") if row[0] == "a1" else row for row in bench.first(1)]) == 1


def test_what_only_some_sources_had_is_left_out_of_the_totals_that_have_to_be_right(make: Make) -> None:
    bench = make(COUNTED)
    scale, apart = bench.scale(), (Span(0, 5, 6),)
    for (name, *_), count in ((row, int((row[0],) not in scale.keys(apart))) for row in bench.first(2)):
        wrong = other(bench.first(2), 1, str(name))
        assert mismatched(scale, hit(bench, wrong, reach(2, 2), scale=scale)) == 1
        assert mismatched(scale, hit(bench, wrong, reach(2, 2, partial=apart), scale=scale)) == count
    assert 0 < len(scale.keys(apart)) < len(bench.first(2))


def test_rows_of_the_source_that_was_ahead_came_again_too(make: Make) -> None:
    bench = make()
    ahead = (Span(0, 10, 12),)
    again, far = bench.rows(*batch(1), *ahead), replace(reach(), partial=ahead)
    assert causes(judged(bench, bench.rows() + again, (bench.first(1) + again, far))) == {
        (Kind.DUPLICATED, (ONE,), (), ALONE)
    }
    alone = judged(bench, bench.rows() + bench.rows(*ahead), (bench.first(1) + bench.rows(*ahead), far))
    assert causes(alone) == {(Kind.DUPLICATED, (), (ONE,), ALONE)}, "nothing of the batch that both had in flight"


def test_nobody_knows_what_else_was_at_stake_where_sources_stood_apart(make: Make) -> None:
    bench = make()
    end = [row for row in bench.rows() if row not in bench.rows(*batch(2))]
    staked = [judged(bench, end, (bench.first(1), reach(partial=apart))) for apart in ((), (Span(0, 10, 11),))]
    assert [{each.staked for each in out} for out in staked] == [{False}, {None}]


def test_fingerprints_may_be_in_between(make: Make) -> None:
    bench = make(TOTALS)
    scale = bench.scale()
    weighed = weigh(scale, injection(bench.marked(other(bench.first(2), 1))), [reach()])
    assert mismatched(scale, weighed) == 0
    done = weigh(scale, injection(bench.marked(other(bench.first(2), 1))), [reach(2, 2)])
    assert mismatched(scale, done) == 1


@pytest.mark.parametrize(("most", "faults"), [(3, (ONE,)), (2, ())])
def test_a_row_of_a_shared_key_is_explained_if_it_can_be_looked_for_in_every_other_slice(
    make: Make, monkeypatch: pytest.MonkeyPatch, most: int, faults: tuple[str, ...]
) -> None:
    monkeypatch.setattr("harness.judge.cause.causes.SLICES_MAX", most)
    bench = make(BY_ACCOUNT)
    out = judged(bench, bench.rows() + bench.rows(*batch(1)), (bench.first(2), reach()))
    assert {each.faults for each in out} == {faults}


def test_upto_counts_both_partitions() -> None:
    assert upto(2) == {0: 10, 1: 10}


@pytest.mark.parametrize(("most", "faults"), [(4, (ONE,)), (3, ())])
def test_a_total_is_explained_if_it_can_be_held_against_every_slice(
    make: Make, monkeypatch: pytest.MonkeyPatch, most: int, faults: tuple[str, ...]
) -> None:
    monkeypatch.setattr("harness.judge.cause.hit_of_total.SLICES_MAX", most)
    bench = make(TOTALS)
    out = judged(bench, bench.rows(again=(batch(1),)), (bench.first(2), reach()))
    assert {each.faults for each in out} == {faults}


def test_a_window_that_a_later_batch_closed_may_have_come_again_with_it(make: Make) -> None:
    """No record of the hit batch goes into the row that is there twice."""
    bench = make(TOTALS, records=[{**each, "account": "x" if each["id"] < 10 else "y"} for each in values(40)])
    closed = [row for row in bench.rows() if row[0] == "x"]

    def fits(*at: Sequence[Row]) -> set[tuple[str, ...]]:
        return {each.fits for each in judged(bench, bench.rows() + closed, *((rows, reach()) for rows in at))}

    assert fits(bench.first(2)) == {(ONE,)}
    assert fits(bench.first(1)) == {()}, "nothing was begun that could come again"
    assert fits([row for row in bench.first(2) if row[0] != "x"]) == {()}, "it was not there"
    lost = judged(bench, [row for row in bench.rows() if row[0] != "x"], (bench.first(2), reach()))
    assert {(each.kind, each.fits) for each in lost} == {(Kind.LOST, ())}


@pytest.mark.parametrize(("beside", "named"), [(True, "checkpoint"), (False, "")])
def test_a_total_names_the_checkpoint_whose_batch_it_is_only_where_there_are_several(
    make: Make, beside: bool, named: str
) -> None:
    bench = make(TOTALS)
    injected = hit(bench, bench.first(2))
    injected = replace(injected, injection=replace(injected.injection, beside=beside))
    out = bench.findings(bench.scale(bench.rows(again=(batch(1),))), [injected])
    assert {(each.batches, each.checkpoint) for each in out} == {((1,), named)}


def test_one_total_alone_that_a_batch_would_explain_is_not_its_repetition(make: Make) -> None:
    """What harms a batch harms all that the batch has written."""
    bench = make(TOTALS)
    twice = {row[0]: row for row in bench.rows(again=(batch(1),))}
    first, *rest = bench.rows()
    out = judged(bench, [twice[first[0]], *rest], (bench.first(2), reach()))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (), (ONE,), ALONE)}
    out = judged(bench, [twice[row[0]] for row in bench.rows()], (bench.first(2), reach()))
    assert causes(out) == {(Kind.WRONG_AGGREGATE, (ONE,), (), ALONE)}


def test_totals_that_no_look_can_tell_apart_are_explained_by_none(make: Make) -> None:
    floats = "select account, sum(amount)::double as total from ledger group by account"
    bench = make(replace(TOTALS, effect=floats))
    out = judged(bench, bench.rows(again=(batch(1),)), (bench.first(2), reach()))
    assert {(each.kind, each.faults) for each in out} == {(Kind.WRONG_AGGREGATE, ())}


def test_what_no_later_hit_saw_may_have_been_lost_by_the_first(make: Make) -> None:
    bench = make()
    rows = [row for row in bench.rows() if row[0] != "14"]
    there = [row for row in bench.first(3) if row[0] != "14"]
    out = judged(bench, rows, (bench.first(1), reach()), (there, reach(3, 2)))
    assert causes(out) == {(Kind.LOST, (), (ONE,), ALONE)}
    out = judged(bench, rows, (bench.first(1), reach()), (bench.first(3), reach(3, 2)))
    assert causes(out) == {(Kind.LOST, (), (), ALONE)}, "it was there when the second one hit"


@pytest.mark.parametrize(("off", "blamed"), [(0.5, (ONE,)), (2.0, ())])
def test_totals_that_cancel_round_by_a_part_of_what_went_into_them(
    make: Make, off: float, blamed: tuple[str, ...]
) -> None:
    """A billion in, a billion out: the digits behind the point say nothing of the cause."""
    floats = "select account, count(*) as n, sum(amount)::double as total from ledger group by account"
    amounts = ["1000000000"] * 4 + ["-1000000000"] * 4 + [f"{each}.25" for each in range(8, 40)]
    large = [{**each, "amount": amounts[each["id"]]} for each in values(40)]
    bench = make(replace(TOTALS, effect=floats), records=large)
    end: list[Row] = [(a, n, repr(float(total or 0) + off)) for a, n, total in bench.rows(again=(batch(1),))]
    scale = bench.scale(end)
    sizes: dict[Key, list[float]] = {(row[0],): [0.0, 0.0, 1e9] for row in bench.rows()}
    scale = replace(scale, case=replace(scale.case, sizes=sizes))
    out = bench.findings(scale, [hit(bench, bench.first(2), reach(), scale=scale)])
    assert {(each.kind, each.faults) for each in out} == {(Kind.WRONG_AGGREGATE, blamed)}

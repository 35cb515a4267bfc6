"""How far each query was when a fault was injected, and where the next attempt of the driver began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.checkers.offset_ranges import OffsetRange
from harness.errors import UsageError
from harness.faults import fault
from harness.judge.injections import Injection, Seen, _wiped, numbered, read_injections
from harness.judge.progress_at_injection import QueryProgress, feeders, query_progress, taken
from harness.judge.read_folder import read_run
from harness.scenario import CrashPoint, Evidence, Sink, StepOutcome
from harness.scenario.impact import Impact
from harness.snapshot import RESTART, Batch, Position, Progressed, Query, QueryState, Snapshot
from tests.folders import INJECTED, STEP, Folder, Injected, edited

SINK = Sink(kind="postgres", target="t")
STRUCK = Injection(number=1, outcome=INJECTED, impact=Impact.DRIVER_KILLED)


def batch(number: int, start: int, end: int, *, committed: bool = True) -> Batch:
    return Batch(batch=number, ranges={0: (start, end)}, committed=committed)


BATCHES = (batch(0, 0, 10), batch(1, 10, 25), batch(2, 25, 40))
QUERY = Query(checkpoint="checkpoint", batches=BATCHES, first={1: 0, 2: 1})
STATE = QueryState(checkpoint="checkpoint", offsets=(0, 1), commits=(0,), planned={0: 25}, committed={0: 10})
PROGRESS = QueryProgress(
    low={0: 10}, high={0: 25}, next={0: 10}, last=(OffsetRange(0, 0, 10),), batch=1, checkpoint="checkpoint", after=True
)


def injection(*states: QueryState, outcome: StepOutcome = INJECTED, **changes: Any) -> Injection:
    snapshot = Snapshot(step=1, moment="injection", attempt=outcome.attempt, at_s=3.0, queries=states)
    return Injection(number=1, outcome=outcome, at=Seen(snapshot=replace(snapshot, **changes), tables=()))


def progress(
    *states: QueryState, queries: tuple[Query, ...] = (QUERY,), sink: Sink = SINK, **changes: Any
) -> list[QueryProgress]:
    return query_progress(injection(*states, **changes), Progressed(queries=queries, end={0: 40}), sink)


def test_a_batch_that_is_planned_and_not_committed() -> None:
    (found,) = progress(STATE)
    assert found == PROGRESS
    assert (found.taken, found.reread, found.skipped) == ((OffsetRange(0, 10, 25),), (), ())


def test_a_batch_that_is_committed() -> None:
    done = replace(STATE, commits=(0, 1), committed={0: 25})
    (found,) = progress(done, queries=(replace(QUERY, first={1: 0, 2: 2}),))
    assert found == replace(
        PROGRESS, low={0: 25}, next={0: 25}, last=(OffsetRange(0, 10, 25),), batch=None, after=False
    )
    assert (found.taken, found.reread, found.skipped) == ((), (), ())


def test_before_the_first_commit_everything_begins_where_the_first_batch_did() -> None:
    first = QueryState(checkpoint="checkpoint", offsets=(0,), planned={0: 10})
    late = replace(QUERY, batches=(batch(1, 10, 25), batch(0, 4, 10)), first={1: 0, 2: 0})
    (found,) = progress(first, queries=(late,))
    assert found == replace(PROGRESS, low={0: 4}, high={0: 10}, next={0: 4}, last=(), batch=0, after=False)
    (bare,) = progress(QueryState(checkpoint="checkpoint"), queries=(replace(QUERY, batches=(), first={1: 0}),))
    assert bare == QueryProgress(low={}, high={}, checkpoint="checkpoint")


def worked(number: int, start: int, end: int, *attempts: int) -> Batch:
    return replace(batch(number, start, end), attempts=attempts)


def began(*batches: Batch, first: Mapping[int, int] = QUERY.first) -> QueryProgress:
    (found,) = progress(STATE, queries=(replace(QUERY, batches=batches, first=first),))
    return found


def test_an_attempt_that_goes_back_in_the_first_batch_of_its_own_begins_there() -> None:
    one, injected = worked(0, 0, 10, 1), worked(1, 10, 25, 1, 2)
    assert began(one, injected, worked(2, 25, 5, 2), worked(3, 5, 40, 2)) == replace(PROGRESS, next={0: 5})
    assert began(one, injected, worked(2, 25, 5, 2)).reread == (OffsetRange(0, 5, 10),), "it may come to no other one"
    assert began(one, injected, worked(2, 25, 5, 3), worked(3, 5, 40, 3)) == PROGRESS, "another attempt's"
    after = began(one, injected, worked(2, 25, 5, 2), worked(3, 5, 40, 3), first={1: 0, 2: 1, 3: 3})
    assert after == replace(PROGRESS, next={0: 5}), "the next attempt's, whatever came after it"
    assert began(one, injected, worked(2, 25, 30, 2), worked(3, 30, 5, 2), worked(4, 5, 40, 2)) == PROGRESS, (
        "a later one"
    )
    made_again = worked(1, 10, 5, 2)
    assert began(one, made_again, worked(2, 5, 40, 2)) == replace(PROGRESS, next={0: 5}), "its first one"
    later = began(one, worked(1, 10, 30, 2), worked(2, 30, 5, 2), worked(3, 5, 40, 2))
    assert later == PROGRESS, "the one behind a first one of its own"


def test_a_partition_that_an_attempt_comes_to_later_is_none_that_it_goes_back_in() -> None:
    first = replace(worked(1, 10, 25, 1, 2), ranges={0: (10, 25), 1: (7, 9)})
    more = replace(worked(2, 25, 40, 2), ranges={0: (25, 40), 2: (0, 3)})
    assert began(worked(0, 0, 10, 1), first, more).next == {0: 10, 1: 7}
    back = replace(more, ranges={0: (25, 40), 1: (9, 2)})
    assert began(worked(0, 0, 10, 1), first, back).next == {0: 10, 1: 2}


def test_what_an_earlier_batch_had_done_before_its_source_went_back_is_neither_done_nor_in_flight() -> None:
    batches = (worked(0, 0, 20, 1), worked(1, 20, 5, 1), worked(2, 5, 30, 1, 2))
    one = replace(QUERY, batches=batches, first={1: 0, 2: 2})
    (found,) = progress(
        replace(STATE, offsets=(0, 1, 2), commits=(0, 1), planned={0: 30}, committed={0: 5}), queries=(one,)
    )
    assert (found.low, found.high, found.next, found.partial) == ({0: 20}, {0: 30}, {0: 20}, (OffsetRange(0, 5, 20),))
    assert (found.taken, found.reread, found.skipped) == ((OffsetRange(0, 20, 30),), (), ())


def test_a_batch_that_goes_back_is_planned_before_the_fault_and_no_doing_of_its() -> None:
    batches = (worked(0, 0, 20, 1), worked(1, 20, 5, 1, 2), worked(2, 5, 40, 2))
    one = replace(QUERY, batches=batches, first={1: 0, 2: 1})
    (found,) = progress(replace(STATE, planned={0: 5}, committed={0: 20}), queries=(one,))
    assert (found.low, found.high, found.next, found.partial) == ({0: 20}, {0: 20}, {0: 20}, (OffsetRange(0, 5, 20),))
    (found,) = progress(replace(STATE, planned={1: 5}, committed={0: 20}), queries=(one,))
    assert found.partial == (), "a plan that does not name a partition takes nothing back"


def test_what_was_not_planned_and_the_next_attempt_began_beyond() -> None:
    fresh = Query(checkpoint="new", batches=(batch(0, 30, 40),), first={2: 0})
    (found,) = progress(STATE, queries=(replace(QUERY, batches=BATCHES[:2], first={1: 0}), fresh))
    assert (found.taken, found.skipped) == ((OffsetRange(0, 10, 25),), (OffsetRange(0, 10, 30),))


def test_a_committed_batch_that_nobody_kept_is_no_last_one() -> None:
    (found,) = progress(STATE, queries=(replace(QUERY, batches=BATCHES[1:]),))
    assert found == replace(PROGRESS, last=())


def test_a_query_of_whose_commits_nothing_is_kept_says_nothing() -> None:
    assert progress(replace(STATE, committed={}), queries=(replace(QUERY, batches=BATCHES[1:]),)) == []


@pytest.mark.parametrize(
    ("changes", "after"),
    [
        ({}, True),
        ({"checkpoint": ""}, False),
        ({"batch": 2}, False),
        ({"batch": None}, False),
        ({"checkpoint": "other"}, False),
        ({"point": "in words"}, True),
        ({"crash_point": CrashPoint.BATCH_PLANNED}, False),
        ({"crash_point": None}, False),
    ],
)
def test_after_is_what_spark_says_of_this_query(changes: dict[str, Any], after: bool) -> None:
    (found,) = progress(STATE, outcome=replace(INJECTED, **changes))
    assert found.after is after


def test_an_attempt_that_was_killed_before_it_touched_anything_is_passed_over() -> None:
    (found,) = progress(STATE, queries=(replace(QUERY, first={1: 0, 4: 2, 3: 0}),))
    assert (found.next, found.reread) == ({0: 0}, (OffsetRange(0, 0, 10),))


@pytest.mark.parametrize("first", [{1: 0}, {1: 0, 2: 7}])
def test_without_a_next_attempt_nothing_is_known_of_it(first: Mapping[int, int]) -> None:
    (found,) = progress(STATE, queries=(replace(QUERY, first=first),))
    assert (found.next, found.reread, found.skipped, found.other) == (None, (), (), False)


def test_a_driver_that_lives_has_no_next_attempt() -> None:
    """What came after the death of another fault's victim lies beyond the batch in flight, and was not skipped."""
    lives = replace(INJECTED, evidence=Evidence(signalled={"executor 0": "SIGKILL"}))
    queries = (replace(QUERY, first={1: 0, 2: 2}),)
    assert progress(STATE, queries=queries)[0].skipped == (OffsetRange(0, 10, 25),)
    (found,) = progress(STATE, outcome=lives, queries=queries)
    assert (found.next, found.skipped, found.other) == (None, (), False)


def test_a_query_that_was_never_seen_at_work_is_no_earlier_one() -> None:
    never, new = Query(checkpoint="never"), Query(checkpoint="new", batches=BATCHES, first={2: 1})
    (found,) = progress(STATE, queries=(replace(QUERY, first={1: 0}), new, never))
    assert (found.next, found.other) == ({0: 10}, True)


def test_what_was_committed_last_says_how_far_it_was_where_spark_has_purged_it() -> None:
    (found,) = progress(replace(STATE, committed={}))
    assert (found.low, found.high) == ({0: 10}, {0: 25})


def test_an_attempt_that_is_not_known_has_no_next_one() -> None:
    (found,) = progress(STATE, outcome=replace(INJECTED, attempt=0), attempt=1)
    assert found.next is None


def test_a_lost_checkpoint_exposes_everything_that_the_next_one_begins_before() -> None:
    old, new = replace(QUERY, first={1: 0}), replace(QUERY, first={2: 0})
    (found,) = progress(STATE, queries=(old, new))
    assert (found.next, found.reread) == ({0: 0}, (OffsetRange(0, 0, 10),))
    beyond = Query(checkpoint="checkpoint", batches=(batch(0, 30, 40),), first={2: 0})
    (found,) = progress(STATE, queries=(old, beyond))
    assert (found.next, found.skipped) == ({0: 30}, (OffsetRange(0, 10, 30),))
    two = (old, beyond, replace(new, checkpoint="other"))
    (found,) = progress(STATE, queries=two)
    assert (found.next, found.other) == ({0: 0}, True), "the slower of two new ones; it may be another query's"
    more = replace(old, batches=old.batches[:1])
    (found,) = progress(STATE, queries=(more, *two[1:]))
    assert (found.next, found.other) == ({0: 0}, False), "this one had more to do"
    there = (more, replace(new, checkpoint="other", first={1: 0}), replace(new, checkpoint="other"))
    assert progress(STATE, queries=there)[0].next is None, "that of another query, made again"
    named = (more, replace(new, checkpoint="other"))
    assert progress(STATE, queries=named)[0].next == {0: 0}
    assert progress(STATE, queries=named, sink=replace(SINK, query="checkpoint"))[0].next is None
    later = (old, replace(new, first={3: 0}), beyond)
    assert progress(STATE, queries=later)[0].next == {0: 30}, "the first of them"
    foreign = (old, replace(new, ours=False, first={2: 0}), replace(beyond, first={3: 0}))
    assert progress(STATE, queries=foreign)[0].next == {0: 30}
    bare = (old, replace(new, batches=()))
    assert progress(STATE, queries=bare)[0].next is None


def test_batch_2_of_a_second_checkpoint_is_not_the_first_ones() -> None:
    old = replace(QUERY, first={1: 0})
    new = Query(checkpoint="checkpoint", batches=(batch(0, 0, 20), batch(1, 20, 40)), first={2: 0, 3: 1})
    again = QueryState(checkpoint="checkpoint", offsets=(0, 1), commits=(0,), planned={0: 40}, committed={0: 20})
    injected = replace(INJECTED, attempt=2)
    (found,) = progress(STATE, again, queries=(old, new), outcome=injected)
    assert found == QueryProgress(
        low={0: 20},
        high={0: 40},
        next={0: 20},
        last=(OffsetRange(0, 0, 20),),
        batch=1,
        checkpoint="checkpoint",
        after=True,
    )
    (first,) = progress(STATE, queries=(old, new))
    assert (first.low, first.batch, first.next) == ({0: 10}, 1, {0: 0})


def test_a_query_that_the_attempt_has_not_touched_yet_is_still_in_use() -> None:
    injected = replace(INJECTED, attempt=2)
    (found,) = progress(STATE, queries=(replace(QUERY, first={1: 0, 3: 1}),), outcome=injected)
    assert found.next == {0: 10}
    (found,) = progress(
        STATE, queries=(replace(QUERY, first={1: 0, 3: 1}), replace(QUERY, first={3: 0})), outcome=injected
    )
    assert found.next == {0: 10}


@pytest.mark.parametrize(
    "queries",
    [
        (),
        (replace(QUERY, checkpoint="other"),),
        (replace(QUERY, ours=False),),
        (replace(QUERY, first={}),),
        (replace(QUERY, first={2: 0}),),
    ],
)
def test_a_query_that_nobody_saw_at_work_says_nothing(queries: tuple[Query, ...]) -> None:
    assert progress(STATE, queries=queries) == []
    assert progress(replace(STATE, ours=False)) == []


def test_two_queries_are_told_apart_by_the_folder_of_their_checkpoints() -> None:
    a, b = replace(STATE, checkpoint="x/a"), replace(STATE, checkpoint="x/b", offsets=(0,), planned={0: 10})
    queries = (replace(QUERY, checkpoint="x/a"), replace(QUERY, checkpoint="x/b"))
    assert [each.checkpoint for each in progress(a, b, queries=queries)] == ["x/a", "x/b"]
    assert [each.checkpoint for each in progress(b, a, queries=queries)] == ["x/b", "x/a"]
    (found,) = progress(a, b, queries=queries, sink=replace(SINK, query="b"))
    assert (found.checkpoint, found.batch) == ("x/b", None)
    assert progress(a, b, queries=queries, sink=replace(SINK, query="x/b")) == []
    (plain,) = progress(STATE, sink=replace(SINK, query="checkpoint"))
    assert plain == PROGRESS


def by_hand(
    positions: list[tuple[int, float, dict[int, int]]], position: dict[int, int], *, died: bool = True, **changes: Any
) -> QueryProgress:
    outcome = INJECTED if died else replace(INJECTED, evidence=Evidence())
    moved = tuple(Position(attempt=attempt, at_s=at_s, next=offsets) for attempt, at_s, offsets in positions)
    (found,) = query_progress(
        injection(outcome=outcome, position=position, **{"sent": {0: 40}, **changes}), Progressed(positions=moved), SINK
    )
    return found


def test_offsets_kept_by_hand_have_planned_what_was_taken_next() -> None:
    moves = [
        (1, 0.5, {0: 0}),
        (1, 1.0, {0: 5}),
        (1, 2.0, {0: 10}),
        (2, 4.0, {0: 10}),
        (2, 5.0, {0: 25}),
        (2, 6.0, {0: 40}),
    ]
    found = by_hand(moves, {0: 10})
    assert found == QueryProgress(low={0: 10}, high={0: 25}, next={0: 10}, last=(OffsetRange(0, 5, 10),), own=True)
    assert by_hand(moves, {0: 10}, sent={0: 18}).high == {0: 18}, "no more than was sent by then"
    assert by_hand(moves, {0: 10}, sent={0: 4}).high == {0: 10}
    assert by_hand(moves, {0: 10}, died=False) == replace(found, next=None, resumed={0: 10})


def test_offsets_kept_by_hand_at_the_very_moment_of_the_injection_were_before() -> None:
    found = by_hand([(1, 3.0, {0: 5}), (2, 4.0, {0: 20})], {0: 10})
    assert (found.last, found.high, found.next) == ((OffsetRange(0, 5, 10),), {0: 20}, {0: 20})
    assert found.skipped == (OffsetRange(0, 10, 20),)


def test_offsets_that_were_saved_after_the_injection_are_no_last_ones() -> None:
    moves = [(1, 1.0, {0: 5}), (1, 2.0, {0: 10}), (1, 4.0, {0: 20})]
    found = by_hand(moves, {0: 10}, sent={0: 18})
    assert (found.last, found.high) == ((OffsetRange(0, 5, 10),), {0: 18})


def test_offsets_that_were_lost_begin_again() -> None:
    found = by_hand([(1, 1.0, {0: 10}), (2, 4.0, {}), (2, 5.0, {0: 15})], {0: 10})
    assert (found.next, found.reread, found.taken, found.last) == (
        {},
        (OffsetRange(0, 0, 10),),
        (),
        (OffsetRange(0, 0, 10),),
    )


def test_offsets_that_were_never_saved_have_nothing_before_them() -> None:
    assert by_hand([], {}) == QueryProgress(low={}, high={}, own=True)
    found = by_hand([(2, 5.0, {0: 25, 1: 3})], {}, sent={0: 40, 1: 9})
    assert found.taken == (OffsetRange(0, 0, 25), OffsetRange(1, 0, 3))


def test_an_injection_is_named_by_fault_place_batch_and_attempt() -> None:
    assert Injection(number=1, outcome=INJECTED).label == "kill driver at sink-committed of batch 1, attempt 1"
    assert (
        Injection(number=1, outcome=replace(INJECTED, batch=None)).label == "kill driver at sink-committed, attempt 1"
    )
    assert Injection(number=1, outcome=replace(INJECTED, point="")).label == "kill driver of batch 1, attempt 1"
    assert Injection(number=1, outcome=replace(INJECTED, point="", batch=None, attempt=0)).label == "kill driver"
    assert (
        Injection(number=1, outcome=replace(INJECTED, batch=0, attempt=0)).label
        == "kill driver at sink-committed of batch 0"
    )
    one = replace(INJECTED, checkpoint="checkpoints/b")
    assert Injection(number=1, outcome=one, beside=True).label == (
        "kill driver at sink-committed of batch 1 of checkpoints/b, attempt 1"
    )
    for bare in (replace(INJECTED, checkpoint=""), replace(one, batch=None)):
        assert Injection(number=1, outcome=bare, beside=True).label == Injection(number=1, outcome=bare).label


NOTHING = QueryState(checkpoint="checkpoint")


@pytest.mark.parametrize(
    ("late", "wiped"),
    [
        ((STATE,), False),
        ((replace(STATE, offsets=(0, 1, 2), commits=(0, 1)),), False),
        ((replace(STATE, offsets=(1,), commits=()),), True),
        ((replace(STATE, offsets=(0,)),), True),
        ((NOTHING,), True),
        ((replace(STATE, checkpoint="other"),), False),
        ((), False),
    ],
    ids=["as it was", "a zombie went on", "a commit less", "a batch less", "none at all", "another", "not read"],
)
def test_a_second_look_that_shows_less_is_one_at_the_next_attempt(late: tuple[QueryState, ...], wiped: bool) -> None:
    first, second = (injection(*states).at for states in ((STATE,), late))
    assert first is not None and second is not None
    assert _wiped(first.snapshot, second.snapshot) is wiped


def test_batches_are_numbered_by_one_checkpoint_of_several() -> None:
    other = replace(QUERY, checkpoint="other", batches=BATCHES[:1])
    assert numbered(Progressed(queries=(QUERY,), batches=BATCHES)) == ""
    assert numbered(Progressed(queries=(other, QUERY), batches=BATCHES)) == "checkpoint"
    assert numbered(Progressed(queries=(other, QUERY), batches=BATCHES[:1])) == "other"
    assert numbered(Progressed(queries=(replace(QUERY, batches=()), other))) == ""
    assert numbered(Progressed(queries=(QUERY, replace(other, ours=False)), batches=BATCHES)) == ""
    made_again = replace(QUERY, batches=BATCHES[:1], first={2: 0, 3: 0})
    assert numbered(Progressed(queries=(QUERY, made_again), batches=BATCHES[:1])) == "checkpoint since attempt 2"
    assert numbered(Progressed(queries=(QUERY, replace(made_again, first={})), batches=BATCHES[:1])) == "checkpoint"


def test_what_only_some_sources_had_done_is_left_out() -> None:
    ahead = replace(STATE, committed_most={0: 14}, planned_most={0: 31})
    (found,) = progress(ahead)
    assert (found.low, found.high, found.next) == ({0: 14}, {0: 25}, {0: 14})
    assert (found.taken, found.partial) == ((OffsetRange(0, 14, 25),), (OffsetRange(0, 10, 14), OffsetRange(0, 25, 31)))
    assert (found.reread, found.skipped) == ((), ())
    (beyond,) = progress(replace(STATE, committed_most={0: 30}, planned_most={0: 30}))
    assert (beyond.taken, beyond.partial) == ((), (OffsetRange(0, 10, 30),))
    (back,) = progress(ahead, queries=(replace(QUERY, first={1: 0, 2: 0}),))
    assert (back.next, back.reread) == ({0: 0}, (OffsetRange(0, 0, 14),))


def test_a_driver_died_if_the_evidence_has_its_end_whatever_a_victim_is_called() -> None:
    assert Injection(number=1, outcome=INJECTED).died
    for status in (0, 1):
        ended = replace(INJECTED, evidence=Evidence(signalled={"it": "x"}, driver_status=status))
        assert Injection(number=1, outcome=ended).died
    command = Evidence(signalled={"driver-db-restart.sh": "exit status 0"})
    assert not Injection(number=1, outcome=replace(INJECTED, evidence=command)).died


def both(first: Snapshot, late: Snapshot | None) -> Injection:
    at, restart = Seen(snapshot=first, tables=()), Seen(snapshot=late, tables=()) if late is not None else None
    return Injection(number=1, outcome=INJECTED, at=at, restart=restart)


FIRST = Snapshot(step=1, moment="injection", attempt=1, at_s=3.0, queries=(STATE,))
DONE = replace(STATE, commits=(0, 1), committed={0: 25})


def test_the_second_snapshot_says_what_a_zombie_committed_if_it_says_anything() -> None:
    late = replace(FIRST, moment="restart", queries=(DONE,))
    progressed = Progressed(queries=(QUERY,))
    (found,) = query_progress(both(FIRST, late), progressed, SINK)
    assert (found.low, found.taken) == ({0: 25}, ())
    for nothing in (None, replace(late, queries=()), replace(late, position={0: 40})):
        (found,) = query_progress(both(FIRST, nothing), progressed, SINK)
        assert (found.low, found.taken) == ({0: 10}, (OffsetRange(0, 10, 25),))


def test_the_second_snapshot_says_what_a_zombie_saved() -> None:
    first = replace(FIRST, queries=(), position={0: 10}, sent={0: 40})
    moved = tuple(
        Position(attempt=attempt, at_s=at_s, next={0: offset})
        for attempt, at_s, offset in ((1, 1.0, 10), (1, 3.1, 20), (2, 4.0, 20), (2, 5.0, 30))
    )
    late = replace(first, moment="restart", at_s=4.1, position={0: 20})
    (found,) = query_progress(both(first, late), Progressed(positions=moved), SINK)
    assert (found.low, found.high, found.next) == ({0: 20}, {0: 30}, {0: 20})
    (found,) = query_progress(both(first, replace(late, position=None)), Progressed(positions=moved), SINK)
    assert found.low == {0: 10}


def named(name: str, *attempts: int, **changes: Any) -> Query:
    return replace(QUERY, checkpoint=name, first=dict.fromkeys(attempts, 0), **changes)


@pytest.mark.parametrize(
    ("queries", "query", "many"),
    [
        ((), None, 0),
        ((named("a", 1, 2),), None, 1),
        ((named("a", 1), named("b", 2)), None, 1),
        ((named("a", 1, 2), named("b", 2)), None, 2),
        ((named("x/a", 1, 2), named("x/b", 2)), "b", 1),
        ((named("a", 1, 2), named("b", 2, ours=False)), None, 1),
        ((named("a", 1, 2), named("b", 2), named("c", 3)), None, 2),
    ],
)
def test_as_many_queries_may_feed_a_sink_as_worked_on_the_topic_at_once(
    queries: tuple[Query, ...], query: str | None, many: int
) -> None:
    assert feeders(Progressed(queries=queries), replace(SINK, query=query)) == many


def test_slices_are_batches_or_the_moves_of_a_saved_position() -> None:
    a, b = named("x/a", 1, batches=(batch(0, 0, 10), batch(1, 10, 25))), named("x/b", 1, batches=(batch(0, 0, 40),))
    progressed = Progressed(queries=(a, b, named("c", 1, ours=False)))
    first, second, third = (0, (OffsetRange(0, 0, 10),)), (1, (OffsetRange(0, 10, 25),)), (0, (OffsetRange(0, 0, 40),))
    assert taken(progressed, SINK) == [[first, second], [third]]
    assert taken(progressed, replace(SINK, query="b")) == [[third]]
    moves = tuple(Position(attempt=1, at_s=1.0, next=each) for each in ({}, {0: 5}, {0: 5}, {0: 9, 1: 2}))
    assert taken(Progressed(positions=moves), SINK) == [
        [
            (None, (OffsetRange(0, 0, 5),)),
            (None, (OffsetRange(0, 5, 9), OffsetRange(1, 0, 2))),
        ]
    ]
    assert taken(Progressed(), SINK) == []


def test_the_injections_are_read_with_both_looks(folder: Folder) -> None:
    folder.claim(schedule=(STEP, replace(STEP, do=fault("kill executor")), STEP))
    folder.steps = [replace(INJECTED, injected=False), INJECTED, INJECTED, INJECTED]
    folder.injections = [Injected(step=2, holds=15), Injected(step=2, moment=RESTART), Injected(step=3, holds=10)]
    one, two, three = read_injections(read_run(folder.write()))
    assert (one.number, one.why) == (2, "")
    assert one.at is not None and one.restart is not None
    assert [len(each.rows) for each in (*one.at.tables, *one.restart.tables) if each] == [15, 20]
    assert (one.at.snapshot.moment, one.restart.snapshot.moment) == ("injection", "restart")
    assert (two.number, two.restart) == (3, None)
    assert three == Injection(number=4, outcome=INJECTED, why="no snapshot was taken when the fault was injected")


def change(folder: Folder, name: str, **changes: Any) -> None:
    edited(folder.path, name, **changes)


def test_a_snapshot_of_which_nothing_is_known_says_why(folder: Folder) -> None:
    folder.write()
    change(folder, "1-injection", error="the count failed")
    (part,) = read_injections(read_run(folder.path))
    assert part.at is not None
    change(folder, "1-injection", error="the server is gone", queries=[])
    (none,) = read_injections(read_run(folder.path))
    assert none == Injection(
        number=1, outcome=INJECTED, impact=Impact.DRIVER_KILLED, why="its snapshot failed: the server is gone"
    )
    change(folder, "1-injection", position={"0": 10})
    (own,) = read_injections(read_run(folder.path))
    assert own.at is not None


def test_a_kill_that_names_no_victim_or_that_nobody_could_look_after_shows_nothing(folder: Folder) -> None:
    folder.write()
    change(folder, "1-injection", alive=None)
    (unseen,) = read_injections(read_run(folder.path))
    words = "the process table could not be read, so its victims may live"
    assert unseen == replace(STRUCK, why=words)
    nobody = replace(INJECTED, evidence=replace(INJECTED.evidence, signalled={}))
    run = replace(read_run(folder.path), steps=(nobody,))
    (none,) = read_injections(run)
    assert none == replace(STRUCK, outcome=nobody, why="its evidence names no victim")


def test_victims_that_live_on_leave_nothing_to_look_at(folder: Folder) -> None:
    folder.write()
    change(folder, "1-injection", alive=["4712"])
    assert read_injections(read_run(folder.path))[0].why == ""
    change(folder, "1-injection", alive=["4712", "4711", "driver 1"])
    (injected,) = read_injections(read_run(folder.path))
    assert injected == Injection(
        number=1,
        outcome=INJECTED,
        impact=Impact.DRIVER_KILLED,
        why="4711, driver 1 lived on when the fault was injected",
    )
    plan = folder.path / "plan.json"
    plan.write_text(plan.read_text().replace('"impact": "driver killed"', '"impact": "driver paused"'))
    assert read_injections(read_run(folder.path))[0].why == ""


def test_a_kill_after_which_the_driver_is_not_known_to_have_ended_shows_nothing(folder: Folder) -> None:
    folder.write()
    lived = replace(INJECTED, evidence=replace(INJECTED.evidence, driver_status=None))
    (injected,) = read_injections(replace(read_run(folder.path), steps=(lived,)))
    assert injected == Injection(
        number=1, outcome=lived, impact=Impact.DRIVER_KILLED, why="its evidence does not say how the driver ended"
    )


def test_a_damaged_snapshot_is_a_clear_error(folder: Folder) -> None:
    folder.write()
    change(folder, "1-injection", attempt="x")
    with pytest.raises(UsageError, match=r"line 1 of .*history\.jsonl is damaged.*snapshot\.attempt"):
        read_run(folder.path)
    (folder.path / "history.jsonl").write_text("{\n")
    with pytest.raises(UsageError, match=r"line 1 of .*history\.jsonl is damaged"):
        read_run(folder.path)


LATER = "its snapshot was taken after the injection: batch 1 was planned by then"


@pytest.mark.parametrize(
    ("logs", "why"),
    [
        ({}, ""),
        ({"offsets": (0, 1), "commits": (0,)}, ""),
        ({"offsets": (0,), "commits": (0,)}, LATER),
        ({"commits": (0,)}, LATER),
    ],
)
def test_a_killed_executors_snapshot_is_not_held_against_logs_that_nobody_read(
    folder: Folder, logs: dict[str, tuple[int, ...]], why: str
) -> None:
    kill = replace(STEP, do=fault("kill executor"))
    folder.claim(schedule=(kill,))
    evidence = Evidence(signalled={"5000": "SIGKILL"}, checkpoint_after=logs, in_flight="records")
    folder.steps = [replace(INJECTED, name=kill.name, evidence=evidence)]
    (found,) = read_injections(read_run(folder.write()))
    assert (found.number, found.why) == (1, why)


@pytest.mark.parametrize(("which", "executors", "only"), [("all", 2, ""), ("one", 2, "checkpoint"), ("one", 1, "")])
def test_where_one_of_several_executors_died_it_is_the_query_of_the_batch_that_was_struck(
    folder: Folder, which: str, executors: int, only: str
) -> None:
    kill = replace(STEP, do=fault("kill executor", which=which))
    folder.claim(schedule=(kill,), pipeline=replace(folder.scenario.pipeline, executors=executors))
    folder.steps = [replace(INJECTED, name=kill.name, evidence=Evidence(signalled={"5000": "SIGKILL"}))]
    (found,) = read_injections(read_run(folder.write()))
    assert found.only == only


def test_a_kill_of_all_executors_beside_a_kill_of_one(folder: Folder) -> None:
    """Each step by its own option; without a snapshot the batch that was struck says whose executor it was."""
    kills = [replace(STEP, do=fault("kill executor", which=which)) for which in ("all", "one", "all")]
    folder.claim(schedule=tuple(kills), pipeline=replace(folder.scenario.pipeline, executors=2))
    folder.steps = [replace(INJECTED, name="kill executor", evidence=Evidence(signalled={"5000": "SIGKILL"}))] * 3
    folder.injections = []
    assert [found.only for found in read_injections(read_run(folder.write()))] == ["", "checkpoint", ""]


@pytest.mark.parametrize(("name", "running"), [("kill driver", False), ("disconnect driver", True)])
def test_who_does_not_stand_still_while_the_snapshot_is_taken(folder: Folder, name: str, running: bool) -> None:
    folder.claim(schedule=(replace(STEP, do=fault(name)),))
    (found,) = read_injections(read_run(folder.write()))
    assert found.running is running


@pytest.mark.parametrize(
    ("changes", "restart_read"),
    [
        ({}, False),
        ({"writing": {"t": ["idle in transaction"]}, "left": None}, True),
        ({"left": {"t": ["idle in transaction"]}}, True),
        ({"left": {"": ["idle in transaction"]}}, False),
        ({"alive": ["4712"]}, True),
        ({"alive": None}, False),
    ],
)
def test_of_offsets_kept_by_hand_a_second_look_counts_while_somebody_may_write(
    folder: Folder, changes: dict[str, Any], restart_read: bool
) -> None:
    folder.injections = [Injected(position={0: 10}), Injected(position={0: 10}, moment=RESTART)]
    folder.write()
    change(folder, "1-injection", **{"alive": [], "writing": {}, "left": {}} | changes)
    (found,) = read_injections(read_run(folder.path))
    assert (found.restart is not None) is restart_read

"""Items 3, 4, 9: a pipeline that keeps its offsets itself. They say what it saved, and not what it had in hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from harness.scenario import Guarantee, Kind
from tests.corpus.case import adversary, held, violated, void
from tests.corpus.counters import counting
from tests.corpus.scene import Scene, blame

ROWS = "after 15 rows"
HALF = blame(None, window=ROWS)


def by_hand(run: Scene, position: int, *moves: int, window: str = ROWS, holds: int) -> None:
    """Killed while `position` was saved. The next attempt saved `moves` one after the other."""
    run.claim(pipeline=replace(run.scenario.pipeline, frontier="group"))
    run.strike(None, window=window, checkpoint="", position={0: position}, holds=holds, again=None)
    run.batches = []
    before = [offset for offset in (0, 10, 20, 30) if offset <= position]
    run.positions = [
        *({"attempt": 1, "at_s": 0.1 * place, "next": {"0": at}} for place, at in enumerate(before, 1)),
        *({"attempt": 2, "at_s": 4.0 + place, "next": {"0": at}} for place, at in enumerate((position, *moves))),
    ]


@adversary(4, void("another slice comes to the same totals"), twin=held("1 repetition"))
def a_slice_doubled_and_its_like_lost(run: Scene) -> Iterator[str]:
    """All slices come to the same. One of them doubled and another one lost gives the totals of an honest run."""
    counting(run, 5, 5, 5, 5)
    by_hand(run, 10, 20, 30, 40, holds=20)
    yield "the struck one is the largest"
    run.batch_sizes(8, 14, 8, 8)
    by_hand_again(run, 8, 22, 30, 38)


def by_hand_again(run: Scene, position: int, *moves: int) -> None:
    """The same with other slices."""
    run.found(position={0: position}, holds=moves[0])
    run.positions = [
        {"attempt": 1, "at_s": 0.1, "next": {"0": 0}},
        {"attempt": 1, "at_s": 0.2, "next": {"0": position}},
        *({"attempt": 2, "at_s": 4.0 + place, "next": {"0": at}} for place, at in enumerate((position, *moves))),
    ]


@adversary(9, void("at-least-once allows it", shown=("1 repetition",)), twin=held("1 loss", "1 repetition"))
def the_next_slice_is_longer(run: Scene) -> Iterator[str]:
    """All of the slice in hand was in the sink. The next attempt took it together with what was sent meanwhile, and
    only that was not there."""
    run.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    by_hand(run, 10, 40, holds=20)
    yield "somebody was still writing"
    run.found(writing={"0": ("insert into payments",)})


@adversary(
    9,
    void("nothing shows that a slice was in hand", kinds={Kind.LOST: 1}, fits=None),
    twin=void("at-most-once allows it", shown=("1 loss",), kinds={Kind.LOST: 5}, faults=(HALF,), fits=None),
)
def offsets_saved_before_rows_that_are_written_one_by_one(run: Scene) -> Iterator[str]:
    """No transaction is open between two rows. One row that is missing may be all that was left, or be missing for any
    reason: nothing was tested, and without faults it arrives."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    by_hand(run, 20, 30, 40, holds=19)
    run.tables = [run.rows((0, 19), (20, 40))]
    run.calm()
    yield "half of the slice is missing, from one record on"
    run.found(holds=15)
    run.tables = [run.rows((0, 15), (20, 40))]


@adversary(
    9,
    violated(Kind.LOST, 5, batches=None, fits=None, unhurt=True),
    twin=void("nothing shows that a slice was in hand", kinds={Kind.LOST: 5}, fits=None),
)
def offsets_saved_before_rows_in_another_order(run: Scene) -> Iterator[str]:
    """The program sorts a slice by account before it writes it row by row, and some of them are missing: those that it
    loses without faults too."""
    run.claim(guarantee=Guarantee.AT_MOST_ONCE)
    by_hand(run, 20, 30, 40, holds=10)
    there = [row for row in run.rows((0, 20)) if row[0] not in {"10", "13", "14", "17", "18"}]
    run.found(tables=[there])
    run.tables = [there + run.rows((20, 40))]
    run.calm(*[run.tables] * 3)
    yield "without faults they arrive"
    run.calm()

"""Where a pipeline that manages its own offsets stood: each move, and each launch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from harness.component import remembered
from harness.errors import SetupError
from harness.history import History
from harness.run.progress.positions import Positions
from harness.wait import until


@dataclass
class Table:
    """The pipeline's own table of offsets."""

    now: dict[int, int] = field(default_factory=dict)
    broken: bool = False

    def read(self) -> dict[int, int]:
        if self.broken:
            raise SetupError("asked the pipeline's progress query; saw nonsense")
        return dict(self.now)


@dataclass
class Followed:
    table: Table
    positions: Positions

    def move(self, **ends: int) -> None:
        """Save an offset; returns when that was seen."""
        self.table.now = {int(name[1:]): end for name, end in ends.items()}
        until("the move", lambda: self.positions.seen()[-1].next == self.table.now, within_s=60.0)


@pytest.fixture
def followed() -> Iterator[Followed]:
    table = Table()
    made = Positions(table.read, History(None))
    yield Followed(table, made)
    made.close()


def test_each_launch_and_each_move_is_kept_with_its_attempt(followed: Followed) -> None:
    positions = followed.positions
    assert positions.launched(1) == {}
    positions.start()
    assert not positions.moved(1)
    followed.move(p1=3, p0=5)
    assert positions.moved(1)
    assert positions.launched(2) == {0: 5, 1: 3}
    assert not positions.moved(2)
    followed.move(p0=9, p1=3)
    assert [(each.attempt, dict(each.next)) for each in positions.seen()] == [
        (1, {}),
        (1, {0: 5, 1: 3}),
        (2, {0: 5, 1: 3}),
        (2, {0: 9, 1: 3}),
    ]
    assert positions.moved(2)
    times = [each.at_s for each in positions.seen()]
    assert times == sorted(times)


def test_a_position_that_cannot_be_read_is_no_silence(followed: Followed) -> None:
    followed.positions.healthy()
    followed.positions.launched(1)
    followed.table.broken = True
    followed.positions.start()
    until("the failure", lambda: followed.positions.failure, within_s=60.0)
    with pytest.raises(SetupError, match="saw nonsense"):
        followed.positions.healthy()


def test_a_position_that_cannot_be_asked_for_is_the_last_one() -> None:
    answers = iter([None, {0: 1}, None, {0: 2}])
    told = remembered(lambda: next(answers))
    assert [told() for _ in range(4)] == [{}, {0: 1}, {0: 1}, {0: 2}]

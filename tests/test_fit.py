"""Whether effect and sink can be compared: every way in which they cannot has words that name the columns."""

from __future__ import annotations

import pytest

from harness.checkers.fit import Column, misfit
from harness.scenario import Order, Sink

ID, NAME, AT = Column("id", "bigint", "number"), Column("name", "text", "text"), Column("at", "bigint", "number")
SINK = Sink(backend="postgres", target="t", effect="select 1", key=("id",))


def test_the_same_columns_in_any_order_fit() -> None:
    assert misfit(SINK, [ID, NAME], [NAME, ID]) == []


@pytest.mark.parametrize(
    ("effect", "table", "words"),
    [
        ([ID, NAME], [ID], "postgres t: the effect has columns id, name; the sink has id"),
        ([ID], [ID, NAME], "postgres t: the effect has columns id; the sink has id, name"),
        ([ID], [], "postgres t: the effect has columns id; the sink has none"),
        ([ID, ID], [ID], "postgres t: two columns have one name in the effect or in the sink"),
        ([ID], [ID, ID], "postgres t: two columns have one name in the effect or in the sink"),
        ([NAME], [NAME], "postgres t: the key id is not among the effect's columns name"),
        (
            [ID],
            [Column("id", "text", "text")],
            "postgres t: column id is bigint in the effect and text in the sink; "
            "cast one of them, so that the values can be compared exactly",
        ),
    ],
)
def test_each_misfit_is_named(effect: list[Column], table: list[Column], words: str) -> None:
    assert misfit(SINK, effect, table) == [words]


def test_the_column_that_gives_the_order_may_be_the_sinks_alone() -> None:
    ordered = Sink(
        backend="postgres", target="t", effect="x", key=("id",), order=Order(by="at", follows="id", per=("id",))
    )
    assert misfit(ordered, [ID], [ID, AT]) == []
    assert misfit(ordered, [ID], [ID, AT, NAME]) == ["postgres t: the effect has columns id; the sink has id, at, name"]
    assert misfit(SINK, [ID], [ID, AT]) == ["postgres t: the effect has columns id; the sink has id, at"]

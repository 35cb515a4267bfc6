"""Whether `expected` and sink can be compared: every way in which they cannot has words that name the columns."""

from __future__ import annotations

import re

import pytest

from harness.checkers.schema_check import Column, schema_mismatch
from harness.scenario import Order, Sink

ID, NAME, AT = Column("id", "bigint", "number"), Column("name", "text", "text"), Column("at", "bigint", "number")
SINK = Sink(kind="postgres", target="t", expected="select 1", key=("id",))


def test_the_same_columns_in_any_order_fit() -> None:
    assert schema_mismatch(SINK, [ID, NAME], [NAME, ID]) == []


@pytest.mark.parametrize(
    ("expected", "table", "words"),
    [
        ([ID, NAME], [ID], "postgres t: `expected` has columns id, name; the sink has id"),
        ([ID], [ID, NAME], "postgres t: `expected` has columns id; the sink has id, name"),
        ([ID], [], "postgres t: `expected` has columns id; the sink has none"),
        ([ID, ID], [ID], "postgres t: two columns have one name in `expected` or in the sink"),
        ([ID], [ID, ID], "postgres t: two columns have one name in `expected` or in the sink"),
        ([NAME], [NAME], "postgres t: the key id is not among the columns of `expected` name"),
        (
            [ID],
            [Column("id", "text", "text")],
            "postgres t: column id is bigint in `expected` and text in the sink; "
            "cast one of them, so that the values can be compared exactly",
        ),
        (
            [Column("id", "TIMESTAMP", "timestamp")],
            [Column("id", "timestamp(6)", "instant")],
            "postgres t: column id is TIMESTAMP in `expected` and timestamp(6) in the sink, and only the sink has a "
            "time zone; cast one of them, so that the values can be compared exactly",
        ),
        (
            [Column("id", "TIMESTAMP WITH TIME ZONE", "instant")],
            [Column("id", "datetime(6)", "timestamp")],
            "postgres t: column id is TIMESTAMP WITH TIME ZONE in `expected` and datetime(6) in the sink, and only "
            "`expected` has a time zone; cast one of them, so that the values can be compared exactly",
        ),
    ],
)
def test_each_misfit_is_named(expected: list[Column], table: list[Column], words: str) -> None:
    assert schema_mismatch(SINK, expected, table) == [words]


FITS = [
    ("number", "DECIMAL(18,2)", "numeric"),
    ("number", "DECIMAL(18,2)", "numeric(12,2)"),
    ("number", "DECIMAL(18,2)", "numeric(12,4)"),
    ("number", "DECIMAL(18,0)", "bigint"),
    ("number", "BIGINT", "integer"),
    ("number", "HUGEINT", "numeric(38,0)"),
    ("number", "BIGINT", "numeric(12,2)"),
    ("float", "DOUBLE", "double precision"),
    ("float", "FLOAT", "real"),
    ("timestamp", "TIMESTAMP", "timestamp without time zone"),
    ("timestamp", "TIMESTAMP", "timestamp(6) without time zone"),
    ("timestamp", "TIMESTAMP_MS", "timestamp(3) without time zone"),
    ("timestamp", "TIMESTAMP_MS", "timestamp without time zone"),
    ("timestamp", "TIMESTAMP_S", "timestamp(0) without time zone"),
    ("instant", "TIMESTAMP WITH TIME ZONE", "timestamp with time zone"),
    ("time", "TIME", "time without time zone"),
    ("time", "TIME", "time(6) without time zone"),
    ("text", "VARCHAR", "character varying(3)"),
    ("text", "VARCHAR", "mood"),
    ("date", "DATE", "date"),
]
"""Family, `expected`'s type, the sink's: no value loses anything on its way."""

LOSES = [
    ("float", "DOUBLE", "real", "rounds .* make the sink's column double precision, or cast it in `expected` to FLOAT"),
    ("float", "FLOAT", "double precision", "rounds .* make the sink's column real, or cast it in `expected` to DOUBLE"),
    ("float", "DOUBLE", "float", "rounds .* make the sink's column double, or cast it in `expected` to FLOAT"),
    ("float", "FLOAT", "double", "rounds .* make the sink's column float, or cast it in `expected` to DOUBLE"),
    ("timestamp", "TIMESTAMP", "datetime(0)", "keeps 0 of 6 decimals"),
    ("number", "DECIMAL(18,2)", "numeric(12,1)", "keeps 1 of 2 decimals of a number; .* to DECIMAL\\(17,1\\)"),
    ("number", "DECIMAL(18,2)", "numeric(12,0)", "keeps 0 of 2 decimals of a number; .* to DECIMAL\\(16,0\\)"),
    ("number", "DECIMAL(18,2)", "bigint", "keeps 0 of 2 decimals of a number; .* to DECIMAL\\(16,0\\)"),
    ("number", "DECIMAL(2,2)", "smallint", "keeps 0 of 2 decimals of a number; .* to DECIMAL\\(1,0\\)"),
    ("number", "BIGINT", "numeric(3,-2)", "keeps -2 of 0 decimals of a number; .* to DECIMAL\\(18,0\\)"),
    ("timestamp", "TIMESTAMP", "timestamp(0) without time zone", "keeps 0 of 6 decimals .* to TIMESTAMP_S"),
    ("timestamp", "TIMESTAMP", "timestamp(3) without time zone", "keeps 3 of 6 decimals .* to TIMESTAMP_MS"),
    ("timestamp", "TIMESTAMP", "timestamp(5) without time zone", "keeps 5 of 6 decimals .* casts it to TIMESTAMP"),
    ("timestamp", "TIMESTAMP_MS", "timestamp(2) without time zone", "keeps 2 of 3 decimals of a second"),
    ("timestamp", "TIMESTAMP_NS", "timestamp without time zone", "keeps 6 of 9 decimals .* to TIMESTAMP"),
    ("instant", "TIMESTAMP WITH TIME ZONE", "timestamp(0) with time zone", "keeps 0 of 6 decimals of a second"),
    ("time", "TIME", "time(0) without time zone", "keeps 0 of 6 decimals .* casts it to TIME"),
]
"""The same where some values do, and what is said of it."""


@pytest.mark.parametrize(("family", "expected", "there"), FITS)
def test_a_sink_that_is_as_fine_as_the_expected_rows_fits(family: str, expected: str, there: str) -> None:
    assert schema_mismatch(SINK, [ID, Column("x", expected, family)], [ID, Column("x", there, family)]) == []


@pytest.mark.parametrize(("family", "expected", "there", "words"), LOSES)
def test_a_sink_that_is_coarser_does_not_fit(family: str, expected: str, there: str, words: str) -> None:
    (said,) = schema_mismatch(SINK, [ID, Column("x", expected, family)], [ID, Column("x", there, family)])
    assert said.startswith(f"postgres t: column x is {expected} in `expected` and {there} in the sink, which ")
    assert re.search(words, said)


def test_a_sink_of_several_is_called_what_its_scenario_calls_it() -> None:
    (said,) = schema_mismatch(SINK, [ID], [ID, NAME], name="postgres t (sink 2)")
    assert said.startswith("postgres t (sink 2): `expected` has")


def test_the_column_that_gives_the_order_may_be_the_sinks_alone() -> None:
    ordered = Sink(
        kind="postgres", target="t", expected="x", key=("id",), order=Order(by="at", follows="id", per=("id",))
    )
    assert schema_mismatch(ordered, [ID], [ID, AT]) == []
    assert schema_mismatch(ordered, [ID], [ID, AT, NAME]) == [
        "postgres t: `expected` has columns id; the sink has id, at, name"
    ]
    assert schema_mismatch(SINK, [ID], [ID, AT]) == ["postgres t: `expected` has columns id; the sink has id, at"]

"""Canonical cells: equal values have one text, different values have two."""

from __future__ import annotations

import json
import math
import time as clock
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.cells import FAMILIES, canonical, canonical_rows

DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20)


@pytest.mark.parametrize(
    ("value", "family", "text"),
    [
        (0, "number", "0"),
        (-0, "number", "0"),
        ("-0", "number", "0"),
        ("-0.00", "number", "0"),
        ("0.0", "number", "0"),
        ("007", "number", "7"),
        ("+5", "number", "5"),
        ("1.50", "number", "1.5"),
        ("100", "number", "100"),
        ("100.0", "number", "100"),
        ("-12.340", "number", "-12.34"),
        ("1E+3", "number", "1000"),
        ("1e-3", "number", "0.001"),
        (Decimal("1E+20"), "number", "100000000000000000000"),
        (9007199254740993, "number", "9007199254740993"),
        ("NaN", "number", "NaN"),
        ("-NaN", "number", "NaN"),
        ("Infinity", "number", "Infinity"),
        ("-Infinity", "number", "-Infinity"),
        ("1e10000", "number", "1" + "0" * 10000),
        ("1e10001", "number", "1E10001"),
        ("-12.50e20000", "number", "-1.25E20001"),
        ("0e20000", "number", "0"),
        (0.1, "float", "0.1"),
        ("0.10", "float", "0.1"),
        ("1e+20", "float", "1e+20"),
        ("-0.0", "float", "-0.0"),
        ("0", "float", "0.0"),
        ("NaN", "float", "nan"),
        ("Infinity", "float", "inf"),
        ("-Infinity", "float", "-inf"),
        ("0.1 ", "text", "0.1 "),
        ("", "text", ""),
        (12, "text", "12"),
        (True, "bool", "true"),
        (False, "bool", "false"),
        ("t", "bool", "true"),
        ("f", "bool", "false"),
        ("2026-01-31 23:59:59", "timestamp", "2026-01-31T23:59:59.000000"),
        ("2026-01-31T23:59:59.1", "timestamp", "2026-01-31T23:59:59.100000"),
        ("2026-01-31 23:59:59.123456789", "timestamp", "2026-01-31T23:59:59.123456789"),
        ("2026-01-31 23:59:59.1234560070", "timestamp", "2026-01-31T23:59:59.123456007"),
        ("2026-01-31 23:59:59.123456000", "timestamp", "2026-01-31T23:59:59.123456"),
        ("0044-03-15 12:00:00 BC", "timestamp", "0044-03-15T12:00:00.000000 BC"),
        ("0044-03-15 12:00:00 (BC)", "timestamp", "0044-03-15T12:00:00.000000 BC"),
        ("0044-03-15 (BC) 12:00:00", "timestamp", "0044-03-15T12:00:00.000000 BC"),
        ("0044-03-15 (BC) 12:00:00+00", "instant", "0044-03-15T12:00:00.000000Z BC"),
        ("infinity", "timestamp", "infinity"),
        (datetime(2026, 1, 31, 1, 2, 3, 4), "timestamp", "2026-01-31T01:02:03.000004"),
        ("2026-01-31 23:59:59+00", "instant", "2026-01-31T23:59:59.000000Z"),
        ("2026-01-31 23:59:59.5Z", "instant", "2026-01-31T23:59:59.500000Z"),
        ("2026-01-31 23:59:59.5+00:00", "instant", "2026-01-31T23:59:59.500000Z"),
        ("2026-02-01 01:29:59.1234567+01:30", "instant", "2026-01-31T23:59:59.1234567Z"),
        ("20260-01-31 10:00:00Z", "instant", "20260-01-31T10:00:00.000000Z"),
        ("20260-01-31 10:00:00+00", "instant", "20260-01-31T10:00:00.000000Z"),
        ("2026-01-31 18:59:59-05", "instant", "2026-01-31T23:59:59.000000Z"),
        ("0044-03-15 12:00:00+00 BC", "instant", "0044-03-15T12:00:00.000000Z BC"),
        ("-infinity", "instant", "-infinity"),
        ("2026-01-31", "date", "2026-01-31"),
        ("0044-03-15 (BC)", "date", "0044-03-15 BC"),
        ("20260-01-31", "date", "20260-01-31"),
        ("infinity", "date", "infinity"),
        (date(2026, 1, 31), "date", "2026-01-31"),
        ("10:11:12", "time", "10:11:12.000000"),
        (time(10, 11, 12, 5), "time", "10:11:12.000005"),
        ("\\x00FF", "bytes", "00ff"),
        ("00FF", "bytes", "00ff"),
        (b"\x00\xff", "bytes", "00ff"),
        (bytearray(b"\x01"), "bytes", "01"),
        (memoryview(b"\x01"), "bytes", "01"),
        ('{"b": 1.50, "a": [true, null, "ü"]}', "json", '{"a":[true,null,"ü"],"b":1.5}'),
        ("9" * 5000, "json", "9" * 5000),
        ({"b": 1, "a": 2}, "json", '{"a":2,"b":1}'),
        ([1, 2], "json", "[1,2]"),
        ("12345678901234567890", "json", "12345678901234567890"),
        ("0.1000000000000000055511151231257827", "json", "0.1000000000000000055511151231257827"),
        (UUID("ABCDEF00-0000-0000-0000-000000000001"), "uuid", "abcdef00-0000-0000-0000-000000000001"),
        ("ABCDEF00-0000-0000-0000-000000000001", "uuid", "abcdef00-0000-0000-0000-000000000001"),
    ],
)
def test_one_text_for_one_value(value: object, family: str, text: str) -> None:
    assert canonical(value, family) == text


@pytest.mark.parametrize("family", FAMILIES)
def test_null_stays_null(family: str) -> None:
    assert canonical(None, family) is None


@pytest.mark.parametrize(
    ("value", "family", "words"),
    [
        ("abc", "number", "'abc' is no number"),
        ("", "number", "'' is no number"),
        ("yes", "bool", "'yes' is no bool"),
        ("1", "bool", "'1' is no bool"),
        ("today", "timestamp", "'today' is no timestamp without time zone"),
        ("2026-01-31 10:00:00+00", "timestamp", "is no timestamp without time zone"),
        ("2026-01-31 10:00:00", "instant", "is no timestamp with time zone"),
        ("now", "instant", "'now' is no timestamp with time zone"),
        ("31.01.2026", "date", "'31.01.2026' is no date"),
        ("10:11", "time", "'10:11' is no time of day"),
        ("1", "integer", "no family 'integer'; there are number, float"),
    ],
)
def test_what_is_no_value_is_refused(value: str, family: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refusal:
        canonical(value, family)
    assert words in str(refusal.value)


def test_an_instant_does_not_depend_on_where_the_harness_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock.tzset()
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        clock.tzset()
        assert canonical("2026-01-31 10:00:00+02", "instant") == "2026-01-31T08:00:00.000000Z"
    clock.tzset()


@given(DECIMALS, st.integers(0, 8))
def test_scale_is_not_value(number: Decimal, zeros: int) -> None:
    text = format(number, "f")
    longer = text + "0" * zeros if "." in text else f"{text}.{'0' * zeros}"
    assert canonical(longer, "number") == canonical(number, "number")
    assert Decimal(str(canonical(number, "number"))) == number


@given(st.integers(), st.integers())
def test_integers_differ_as_their_texts_do(one: int, other: int) -> None:
    assert (canonical(one, "number") == canonical(other, "number")) == (one == other)


@given(st.floats())
def test_a_float_reads_back_the_same(number: float) -> None:
    back = float(str(canonical(number, "float")))
    assert (
        math.isnan(back)
        if math.isnan(number)
        else (back, math.copysign(1, back))
        == (
            number,
            math.copysign(1, number),
        )
    )


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 1, 1)), st.integers(-14 * 60, 14 * 60))
def test_an_instant_does_not_depend_on_its_zone(moment: datetime, minutes: int) -> None:
    there = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    assert canonical(there, "instant") == f"{moment.isoformat(timespec='microseconds')}Z"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(st.text(), s)
    )
)
def test_json_is_read_back_the_same_and_blanks_do_not_count(data: object) -> None:
    text = canonical(json.dumps(data, indent=2), "json")
    assert json.loads(str(text)) == data
    assert canonical(json.dumps(data), "json") == text


def test_rows_take_a_family_for_each_column() -> None:
    rows = canonical_rows([(1, "1.50", None), ("02", Decimal("2"), "x")], ["number", "number", "text"])
    assert rows == [("1", "1.5", None), ("2", "2", "x")]
    with pytest.raises(ValueError, match="argument 2 is"):
        canonical_rows([(1, 2)], ["number"])

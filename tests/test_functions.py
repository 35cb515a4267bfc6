"""DuckDB's own catalogue of functions, in the version that is installed: what of it `expected` may ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import duckdb
import pytest

from harness.ledger.functions import OUTSIDE, STEADY, known, with_macros
from harness.run_folder.database import connection

Overload = tuple[str, str, list[str]]
"""Name, stability, and types of what it takes."""
_OVERLOADS = """
select function_name, stability, parameter_types || case when varargs is null then [] else [varargs, varargs] end
from duckdb_functions() where function_type = 'scalar' and function_name not like '\\_\\_internal%' escape '\\'
order by all
"""
WORDS = ("day", "Europe/Berlin")
"""For a text: a part of a time, and a time zone."""
SAMPLES = {
    "BOOLEAN": "true",
    "DATE": "date '2026-03-29'",
    "DOUBLE": "1.5::double",
    "INTERVAL": "interval '36 hours'",
    "TIME": "time '01:30:00'",
    "TIME WITH TIME ZONE": "'01:30:00+02'::timetz",
    "TIMESTAMP": "timestamp '2026-03-29 01:30:00'",
    "TIMESTAMP WITH TIME ZONE": "timestamptz '2026-03-29 01:30:00+00'",
    "TIMESTAMPTZ_NS": "(timestamptz '2026-03-29 01:30:00+00')::timestamptz_ns",
    "TIMESTAMP_NS": "'2026-03-29 01:30:00'::timestamp_ns",
    "VARCHAR": "'{word}'",
    "VARCHAR[]": "['{word}']",
}
"""Times on a day on which clocks are changed. What is none of these is given a number."""
ELSEWHERE = """
import json, sys
from tests.test_functions import answers
json.dump(answers(), sys.stdout)
"""


@cache
def overloads() -> list[Overload]:
    with connection() as db:
        return db.execute(_OVERLOADS).fetchall()


def calls() -> Iterator[str]:
    """A call of each overload that is allowed, though DuckDB does not call it consistent or it takes nothing."""
    for name, stability, types in overloads():
        if name not in known().unsteady and (stability != "CONSISTENT" or not types):
            taken = ", ".join(SAMPLES.get(each, "1") for each in types)
            yield from {f'"{name}"({taken})'.replace("{word}", word) for word in WORDS}


def answers() -> dict[str, str]:
    """What each of these calls answers; the name of the error of one that does not."""
    out = {}
    with connection() as db:
        for call in sorted(calls()):
            try:
                out[call] = str(db.execute(f"select ({call})::varchar").fetchall())
            except duckdb.Error as wrong:
                out[call] = type(wrong).__name__
    return out


@pytest.mark.subprocess
def test_what_is_allowed_answers_the_same_at_another_time_and_place() -> None:
    """The zone of `expected`'s clock is locked, so what asks for the zone is made of its arguments."""
    here = answers()
    elsewhere = {**os.environ, "TZ": "America/New_York"}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], env=elsewhere, capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(done.stdout) == here
    answered = {call for call, answer in here.items() if answer.startswith("[")}
    named = {call.partition("(")[0].strip('"') for call in answered}
    assert {"pi", "current_schema", "current_schemas", "in_search_path"} <= named
    zoned = {name for name, stability, types in overloads() if stability == "CONSISTENT_WITHIN_QUERY" and types}
    assert zoned - named <= OUTSIDE | {"getvariable"}, "each of them answered, for one of the words"


def test_an_overload_is_refused_with_all_of_its_name_or_with_none() -> None:
    """A refusal is by name, so no overload that is consistent may be lost to another one that is not."""
    refused = known().unsteady
    lost = {name for name, stability, types in overloads() if stability == "CONSISTENT" and name in refused}
    assert lost <= OUTSIDE


def test_what_is_made_of_the_clock_or_of_chance_is_refused() -> None:
    allowed = {
        name
        for name, stability, types in overloads()
        if name not in known().unsteady and (stability == "VOLATILE" or (stability != "CONSISTENT" and not types))
    }
    assert allowed == STEADY
    refused = "now random uuid gen_random_uuid nextval currval setseed today current_date current_time localtimestamp"
    assert {*refused.split(), "current_timestamp", "transaction_timestamp", *OUTSIDE} <= known().unsteady


def test_what_is_made_of_its_arguments_is_allowed_with_every_type() -> None:
    pure = "+ - date_trunc date_part date_diff hour day year strftime timezone time_bucket age hash getvariable"
    assert known().unsteady.isdisjoint(pure.split())


def test_a_macro_does_what_the_functions_do_that_it_calls() -> None:
    macros = {"ago": {"current_timestamp", "i"}, "long_ago": {"ago"}, "half": {"i"}, "error": {"now"}}
    assert with_macros({"current_timestamp", "now"}, macros) == {"current_timestamp", "now", "ago", "long_ago"}
    with connection() as db:
        macro = db.execute("select count(*) from duckdb_functions() where function_name = 'ago'").fetchall()
    # DuckDB has it since 1.5, and refuses it by itself before.
    assert ("ago" in known().unsteady) is (macro != [(0,)])

"""The nouns in words: what a reader of a plan or a verdict sees of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.scenario import CrashPoint, Expected, Kind, Sink, Trigger, Word
from harness.sinks.names import sink_names
from harness.triggers import trigger

CASES = [
    (trigger("rows", 3), "after row 3 in the sink"),
    (trigger("rows", 0, batch=2), "before the first row in the sink of batch 2"),
    (
        trigger("point", CrashPoint.SINK_COMMITTED, batch=3, query="totals"),
        "sink-committed of batch 3 of query totals",
    ),
    (Expected(), "held"),
    (Expected(word=Word.VIOLATED, kinds=(Kind.LOST, Kind.DUPLICATED)), "violated: lost, duplicated"),
    (
        Expected(word=Word.VIOLATED, kinds=(Kind.LOST,), without_faults=True),
        "violated: lost, also without faults",
    ),
]


@pytest.mark.parametrize(("noun", "words"), CASES, ids=lambda each: str(each))
def test_a_noun_in_words(noun: Trigger | Expected, words: str) -> None:
    assert str(noun) == words


def sinks(*targets: str) -> list[Sink]:
    return [Sink(kind="postgres", target=target) for target in targets]


def test_sinks_whose_names_meet_are_told_by_their_places() -> None:
    long = "select id from a_table_with_a_name_that_is_far_too_long_for_a_line where x = "
    cut = "postgres select id from a_table_with_a_name_that_is_far_too_long_f..."
    assert sink_names(sinks("t", f"{long}1", f"{long}2")) == ("postgres t", f"{cut} (sink 2)", f"{cut} (sink 3)")
    assert sink_names(sinks("t", "u")) == ("postgres t", "postgres u")
    assert sink_names([]) == ()


def test_a_target_that_looks_like_a_place_is_no_namesake() -> None:
    assert sink_names(sinks("t", "t (sink 1)", "t")) == (
        "postgres t (sink 1)",
        "postgres t (sink 1) (sink 2)",
        "postgres t (sink 3)",
    )


@given(st.lists(st.sampled_from(["t", "u", "t (sink 1)", "t (sink 2)", "t (sink 1) (sink 2)", "x" * 70]), max_size=6))
def test_no_two_sinks_of_a_scenario_are_called_alike(targets: list[str]) -> None:
    names = sink_names(sinks(*targets))
    assert len(set(names)) == len(names) == len(targets)

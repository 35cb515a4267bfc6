"""The nouns in words: what a reader of a plan or a verdict sees of them."""

from __future__ import annotations

import pytest

from harness.scenario import Expect, Kind, Trigger, When, Window, Word

CASES = [
    (Trigger(kind=When.ROWS, count=3), "after row 3 in the sink"),
    (Trigger(kind=When.ROWS, count=0, batch=2), "before the first row in the sink of batch 2"),
    (
        Trigger(kind=When.WINDOW, window=Window.SINK_COMMITTED, batch=3, query="totals"),
        "sink-committed of batch 3 of query totals",
    ),
    (Expect(), "held"),
    (Expect(word=Word.VIOLATED, kinds=(Kind.LOST, Kind.DUPLICATED)), "violated: lost, duplicated"),
    (Expect(word=Word.VIOLATED, kinds=(Kind.LOST,), unhurt=True), "violated: lost, also without faults"),
]


@pytest.mark.parametrize(("noun", "words"), CASES, ids=lambda each: str(each))
def test_a_noun_in_words(noun: Trigger | Expect, words: str) -> None:
    assert str(noun) == words

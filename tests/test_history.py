"""The history of a run: what is written is read back, and no line of another form is an event."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.history import EVENTS, BatchPlanned, Event, History, Line, OffsetsSaved, Phase, markdown, read, text
from tests.histories import events
from tests.limits import examples


@given(st.lists(events(), max_size=5))
@settings(max_examples=examples(100), deadline=None)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, given_: list[Event]) -> None:
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    history = History(path)
    written = [history.write(event) for event in given_]
    history.close()
    assert [line.n for line in written] == list(range(len(given_)))
    assert [*read(path)] == written


def test_a_line_says_who_saw_it_and_leaves_defaults_out() -> None:
    line = Line(4, 1.25, BatchPlanned(query="checkpoint", batch=3, attempt=1))
    assert json.loads(text(line)) == {
        "n": 4, "at_s": 1.25, "by": "harness", "what": "batch-planned", "query": "checkpoint", "batch": 3, "attempt": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    "written",
    [
        "12", "[]", "{}",
        '{"n": 1, "what": "phase", "name": "x"}', '{"n": 1, "at_s": -1, "what": "phase", "name": "x"}',
        '{"n": 1, "at_s": "soon", "what": "phase", "name": "x"}', '{"n": 1, "at_s": 1, "what": "phase"}',
        '{"n": 1, "at_s": 1, "what": "another", "name": "x"}', '{"at_s": 1, "what": "phase", "name": "x"}',
    ],
)  # fmt: skip
def test_a_line_of_no_known_form_is_left_out(tmp_path: Path, written: str) -> None:
    path = tmp_path / "history.jsonl"
    whole = Line(0, 0.5, Phase(name="feeding"))
    path.write_text(f"{written}\n{text(whole)}\n", encoding="utf-8")
    assert [*read(path)] == [whole]


def test_a_torn_line_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    whole = Line(0, 0.5, Phase(name="feeding"))
    path.write_text(f"{text(whole)}\n{text(whole)[:20]}", encoding="utf-8")
    assert [*read(path)] == [whole]


def test_partitions_are_numbers_again(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = History(path)
    history.write(OffsetsSaved(attempt=1, next={0: 5, 1: 7}))
    history.close()
    (line,) = read(path)
    assert line.event == OffsetsSaved(attempt=1, next={0: 5, 1: 7})


def test_every_event_has_a_name_of_its_own_and_says_its_fields() -> None:
    assert len({*EVENTS}) == len({*EVENTS.values()})
    for kind in EVENTS.values():
        assert kind.__doc__ and not kind.__doc__.startswith(kind.__name__)
        assert {each.name for each in fields(kind)}.isdisjoint({"n", "at_s", "by", "what"})


def test_listeners_hear_each_line(tmp_path: Path) -> None:
    heard: list[Any] = []
    history = History(None)
    history.listen(heard.append)
    line = history.write(Phase(name="feeding"))
    assert heard == [line]


def test_the_page_of_events_is_that_of_the_module() -> None:
    page = Path(__file__).parent.parent / "docs" / "history.md"
    assert page.read_text(encoding="utf-8").rstrip("\n") == "\n".join(markdown()), (
        "python -m harness.history > docs/history.md"
    )

"""Snapshots and baseline runs as the page shows them, from whole folders and from damaged ones."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness.history import read, readings
from harness.report import render, snapshots
from harness.report.causes.sentences import MOST_WORDS
from harness.run_folder.store import RunFolder
from harness.snapshot import Snapshot
from tests import sample_runs as sample


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return sample.stored(tmp_path, sample.verdict())


def shown_of(folder: RunFolder) -> list[snapshots.SnapshotText]:
    return snapshots.snapshots(folder.path, readings(read(folder.history)))


def test_an_injection_stands_beside_the_restart_that_followed(folder: RunFolder) -> None:
    sample.keep(folder, sample.INJECTION, rows=299)
    sample.keep(folder, sample.RESTART, rows=300)
    (shown,) = shown_of(folder)
    assert shown.step == 1
    assert shown.lines == [
        ("Begun at", "12.40 s", "12.90 s"),
        ("Attempt", "1", "1"),
        ("Query checkpoint", "planned 0-3, committed 0-2", "planned 0-3, committed 0-2"),
        ("Query other", "planned none, committed none; it does not read the source", "-"),
        ("Acknowledged (next offsets)", "0/200, 1/199", "0/200, 1/200"),
        ("Open transactions", "1 transaction in postgres payments: insert into payments values ($1)", "none"),
        ("Rows counted by the row breakpoint", "299, 200 before the batch", "-"),
        ("Rows in sink 1, postgres payments", "299", "300"),
    ]


def test_injections_are_in_order_and_one_without_a_restart_has_none(folder: RunFolder) -> None:
    for step in (10, 2):
        sample.keep(folder, replace(sample.INJECTION, step=step, handed={}, position={1: 7, 0: 3}), rows=0)
    (folder.path / "snapshots" / "x-injection").mkdir()
    (folder.path / "snapshots" / "3-restart").mkdir()
    shown = shown_of(folder)
    assert [each.step for each in shown] == [2, 10]
    assert ("Saved (next offsets)", "0/3, 1/7", "-") in shown[0].lines
    assert "Rows counted by the row breakpoint" not in {name for name, _, _ in shown[0].lines}


def test_a_write_beside_the_sinks_is_told_as_one(folder: RunFolder) -> None:
    injection = replace(sample.INJECTION, writing={"": ("update a", "update b"), "s": ()}, handed={"0": (299, None)})
    sample.keep(folder, injection, rows=0)
    lines = {name: text for name, text, _ in shown_of(folder)[0].lines}
    assert lines["Open transactions"] == "2 transactions in tables beside the sinks: update a; update b"
    assert lines["Rows counted by the row breakpoint"] == "299"


def test_a_sink_that_is_kept_by_its_place_is_told_by_its_name(folder: RunFolder) -> None:
    sample.keep(folder, replace(sample.INJECTION, writing={"0": ("insert",), "7": ("update",)}), rows=0)
    lines = {name: text for name, text, _ in shown_of(folder)[0].lines}
    assert lines["Open transactions"] == "1 transaction in postgres payments: insert; 1 transaction in 7: update"


OPEN = replace(sample.INJECTION, writing={"0": ("insert",)})
AFTER = replace(sample.RESTART, handed={"0": (310, None)})
HELD = "At the injection, 1 open transaction held 19 rows of postgres payments; with 11 inserted later they were "


@pytest.mark.parametrize(
    ("then", "told"),
    [
        (OPEN, HELD + "rolled back, and 280 rows stayed."),
        (
            replace(OPEN, attempt=2),
            "At the injection, 1 transaction had written into postgres payments; it was ",
        ),
        (
            replace(OPEN, handed={"1": (299, 200)}),
            "At the injection, 1 transaction had written into postgres payments; it was ",
        ),
        (
            replace(OPEN, handed={"0": (299, 281)}),
            "At the injection, 1 transaction had written into postgres payments; it ",
        ),
        (
            replace(OPEN, writing={"0": ("a", "b")}, handed={}),
            "At the injection, 2 transactions had ",
        ),
        (replace(OPEN, writing={"": ("insert",), "0": ()}), ""),
    ],
)
def test_rows_that_were_open_at_the_injection_and_rolled_back_are_one_sentence(
    folder: RunFolder, then: Snapshot, told: str
) -> None:
    sample.keep(folder, then, rows=280)
    sample.keep(folder, AFTER, rows=280)
    said = shown_of(folder)[0].open_rows
    assert [text[: len(told)] for text in said] == ([told] if told else [])
    assert all(len(text.split()) <= MOST_WORDS for text in said)
    page = render.write(folder.path).read_text()
    assert page.count("<dt>Open at the injection</dt>") == len(said)


def test_of_rows_that_are_there_later_or_may_be_nothing_is_said(folder: RunFolder) -> None:
    stored = sample.keep(folder, OPEN, rows=280)
    assert shown_of(folder)[0].open_rows == []
    later = sample.keep(folder, AFTER, rows=299)
    assert shown_of(folder)[0].open_rows == []
    (later / "sink" / "0.json").write_text((stored / "sink" / "0.json").read_text())
    assert shown_of(folder)[0].open_rows
    for unsure in (replace(AFTER, writing={"0": ("insert",)}), replace(AFTER, error="the server was away")):
        sample.told(folder, unsure)
        assert shown_of(folder)[0].open_rows == []


def test_a_sink_that_could_not_be_read_says_why(folder: RunFolder) -> None:
    stored = sample.keep(folder, sample.INJECTION, rows=0)
    (stored / "sink" / "1.json").write_text(json.dumps({"name": "b", "rows": 0, "unreadable": "no such table"}))
    (stored / "sink" / "2.json").write_text("torn {")
    (stored / "sink" / "x.json").write_text("{}")
    lines = {name: text for name, text, _ in shown_of(folder)[0].lines}
    assert lines["Rows in sink 2, b"] == "not readable: no such table"
    assert lines["Rows in sink 3, without a name"] == "not readable"
    assert len([name for name in lines if name.startswith("Rows in sink")]) == 3


def test_no_link_is_followed_out_of_the_folder(folder: RunFolder, tmp_path: Path) -> None:
    elsewhere = sample.stored(tmp_path, sample.verdict(), run_id="r2")
    sample.keep(elsewhere, sample.INJECTION, rows=1)
    sample.baseline_run(elsewhere, "1", seconds=1)
    (folder.path / "snapshots").symlink_to(elsewhere.path / "snapshots")
    (folder.path / "baseline").mkdir()
    (folder.path / "baseline" / "1").symlink_to(elsewhere.path / "baseline" / "1")
    assert shown_of(folder) == []
    assert snapshots.baseline_runs(folder.path) == []


def test_baseline_runs_are_listed_by_name(folder: RunFolder) -> None:
    sample.baseline_run(folder, "2", cached=True, outcome={"caught_up": True, "seconds": 11.04})
    sample.baseline_run(folder, "1", seconds=12, cached=False, outcome={"caught_up": False})
    sample.baseline_run(folder, "3", outcome={"error": "it crashed"})
    (sample.baseline_run(folder, "4") / "run.json").unlink()
    sample.baseline_run(folder, ".5.half", seconds=1)
    assert [(c.name, c.seconds, c.cached, c.caught_up) for c in snapshots.baseline_runs(folder.path)] == [
        ("1", "12.0", "no", "no"),
        ("2", "11.0", "yes", "yes"),
        ("3", "-", "not said", "no: it ended in an error"),
        ("4", "-", "not said", "not said"),
    ]


def test_the_page_names_the_step_of_a_snapshot_and_counts_the_baseline_runs(folder: RunFolder) -> None:
    sample.keep(folder, sample.INJECTION, rows=299)
    sample.keep(folder, replace(sample.INJECTION, step=7), rows=0)
    sample.baseline_run(folder, "1", seconds=12, outcome={"caught_up": True})
    text = render.write(folder.path).read_text()
    # The fault's own part holds its snapshot; that of a step that is in no schedule stands by itself.
    fault = text[text.index('id="fault-1"') : text.index("</article>", text.index('id="fault-1"'))]
    assert "kill driver" in fault and "Snapshots: where everything stood" in fault
    assert "Snapshot of step 7, which is not in the schedule" in text
    assert "1 baseline run of the same input without faults" in text


def test_a_snapshot_of_a_step_that_missed_says_so(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, sample.verdict(steps=(replace(sample.STEP, injected=False),)))
    sample.keep(folder, sample.INJECTION, rows=299)
    text = render.write(folder.path).read_text()
    fault = text[text.index('id="fault-1"') : text.index("</article>", text.index('id="fault-1"'))]
    assert "✗ missed" in fault and "Snapshots: where everything stood" in fault

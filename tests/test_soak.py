"""The soak's pure parts: what is drawn, what the truth is, and when a verdict is called wrong."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import soak
from bench.soak import BROKEN, REPAIRED, Ahead, Drawn, Seen, Truth, Twin, draw
from harness.load import dump, load
from harness.report.summary import Run
from harness.scenario import Finding, Harm, Kind, Verdict, Victim, When, Window, Word, plain
from harness.sinks import SinkColumn, SinkTable, save
from harness.snapshot import QueryState, Snapshot
from tests import folders
from tests import sample_runs as sample

HOUSE = Path(__file__).parents[1]
UPSERT, APPEND = REPAIRED[0], BROKEN[0]
BEFORE = BROKEN[-1]
EARLIER = Ahead(surplus=(99,), batches=frozenset({3}))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(HOUSE / "pipelines", root / "pipelines")
    (root / "scenarios").mkdir()
    return root / "scenarios" / "it.yaml"


@given(st.integers(0, 10**6), st.integers(0, 500))
@settings(max_examples=150)
def test_every_schedule_is_one_that_the_loader_takes(project: Path, seed: int, index: int) -> None:
    scenario = draw(seed, index).scenario()
    project.write_text(dump(scenario))
    assert replace(load(project), path="") == replace(scenario, path="")


@given(st.integers(0, 10**6), st.integers(0, 500))
def test_a_seed_and_an_index_are_one_schedule(seed: int, index: int) -> None:
    drawn = draw(seed, index)
    assert drawn == draw(seed, index)
    assert (drawn.twin in BROKEN) == bool(index % 2)
    assert 1 <= len(drawn.schedule) <= 3
    batches = [step.when.batch for step in drawn.schedule if step.when.batch is not None]
    assert batches == sorted(set(batches))
    assert all(1 <= batch <= soak.LAST_BATCH for batch in batches)


def test_every_twin_window_and_fault_is_drawn_in_time() -> None:
    drawn = [draw(0, index) for index in range(400)]
    assert {each.twin.file for each in drawn} == {twin.file for twin in (*REPAIRED, *BROKEN)}
    steps = [step for each in drawn for step in each.schedule]
    assert Counter(step.when.window for step in steps).keys() == {*Window, None}
    assert {step.when.kind for step in steps} == set(When)
    assert {step.do.victim for step in steps} == set(Victim)
    assert not any(s.when.window is Window.OFFSETS_COMMITTED for e in drawn if len(e.schedule) == 1 for s in e.schedule)


def violated(*findings: Finding, **changes: Any) -> Verdict:
    return sample.verdict(findings=findings, **changes)


def held(**changes: Any) -> Verdict:
    return replace(sample.held(), **changes)


@pytest.mark.parametrize(
    ("twin", "seen", "expected"),
    [
        (UPSERT, Seen(verdict=held(), ahead=(EARLIER,)), Truth.NEVER),
        (APPEND, Seen(verdict=held(), ahead=(EARLIER,)), Truth.MUST),
        (APPEND, Seen(verdict=held(stakes=()), ahead=(EARLIER,)), Truth.MUST),
        (APPEND, Seen(verdict=held(), ahead=(Ahead(surplus=(0,)),)), Truth.MAY),
        (APPEND, Seen(verdict=held(stakes=(sample.loss(),)), ahead=(Ahead(surplus=(-1,)),)), Truth.NEVER),
        (BEFORE, Seen(verdict=held(), ahead=(Ahead(surplus=(-1,)),)), Truth.MUST),
        (BEFORE, Seen(verdict=held(), ahead=(EARLIER,)), Truth.MAY),
        (APPEND, Seen(verdict=held(stakes=())), Truth.NEVER),
    ],
)
def test_the_truth_is_what_the_snapshots_say(twin: Twin, seen: Seen, expected: Truth) -> None:
    assert soak.truth(twin, seen) is expected


DOUBLED = sample.duplicated()


@pytest.mark.parametrize(
    ("twin", "verdict", "said"),
    [
        (UPSERT, held(), ""),
        (UPSERT, held(stakes=()), "held, and nothing that was at stake would show"),
        (UPSERT, held(word=Word.VOID, stakes=(sample.loss(shown=False),)), ""),
        (UPSERT, held(word=Word.VOID), "void, and what was at stake would show: "),
        (UPSERT, held(word=Word.VOID, steps=(replace(sample.STEP, hit=False),)), ""),
        (UPSERT, violated(DOUBLED), "violated, and nothing that it cannot survive was at stake"),
        (UPSERT, held(word=Word.UNKNOWN, reasons=("late",)), "unknown: late"),
        (UPSERT, held(word=Word.ERROR, reasons=("no Java",)), "error: no Java"),
        (APPEND, violated(DOUBLED), ""),
        (APPEND, violated(DOUBLED, Finding(kind=Kind.RECOVERED, sink="s")), ""),
        (APPEND, held(), "held, and the snapshots show that it cannot be"),
        (APPEND, violated(sample.lost()), "violated by lost, not by duplicated"),
        (APPEND, violated(replace(DOUBLED, faults=())), "violated, and no fault is named"),
        (APPEND, violated(replace(DOUBLED, batches=(2, 3))), "batches [2, 3] are blamed, and only [3] were in hand"),
        (APPEND, violated(DOUBLED, stakes=(sample.loss(),)), "violated, and no repetition was said to be at stake"),
    ],
)
def test_a_verdict_is_right_or_it_is_said_why_not(twin: Twin, verdict: Verdict, said: str) -> None:
    assert soak.wrong(twin, Seen(verdict=verdict, ahead=(EARLIER,))) == said


def test_without_a_restart_the_batches_are_those_of_the_hits() -> None:
    assert soak.wrong(APPEND, Seen(verdict=violated(DOUBLED))) == ""
    other = replace(DOUBLED, batches=(1,))
    assert "only [3] were in hand" in soak.wrong(APPEND, Seen(verdict=violated(other)))


def stored(path: Path, *, rows: int, committed: int | None, position: dict[int, int] | None = None) -> Path:
    """A run of 40 records in batches of 10, and a snapshot before its restart."""
    made = folders.Folder(path / "run", tables=[folders.payments(folders.values(40))])
    folder = made.write()
    room = folder / "snapshots" / "1-restart"
    room.mkdir(parents=True)
    columns = tuple(SinkColumn(name=n, type=t, family=f) for n, t, f in folders.TYPES["payments"])
    table = SinkTable(
        name="postgres payments",
        backend="postgres",
        target="payments",
        columns=columns,
        rows=folders.payments(folders.values(rows)),
    )
    save(room, 0, table)
    query = QueryState(checkpoint="c", offsets=(0, 1), commits=(0,), committed={0: committed or 0})
    other = QueryState(checkpoint="a", ours=False, offsets=(0, 1, 2), commits=())
    queries = () if committed is None else (other, query)
    snapshot = Snapshot(step=1, moment="restart", attempt=1, at_s=1.0, queries=queries, position=position)
    (room / "snapshot.json").write_text(json.dumps(plain(snapshot)))
    return folder


@pytest.mark.parametrize(("rows", "surplus"), [(20, 10), (10, 0), (7, -3)])
def test_a_sink_is_weighed_against_what_was_committed(tmp_path: Path, rows: int, surplus: int) -> None:
    folder = stored(tmp_path, rows=rows, committed=10)
    assert soak.ahead(folder, APPEND) == (Ahead(surplus=(surplus,), batches=frozenset({1})),)


def test_a_sink_is_weighed_against_the_position_that_a_program_has_saved_itself(tmp_path: Path) -> None:
    folder = stored(tmp_path, rows=20, committed=None, position={0: 30})
    assert soak.ahead(folder, BEFORE) == (Ahead(surplus=(-10,)),)


def test_a_run_without_a_restart_has_nothing_ahead(tmp_path: Path) -> None:
    assert soak.ahead(tmp_path, APPEND) == ()


def test_totals_are_weighed_by_their_sum() -> None:
    assert soak.weight(["minute", "errors"], [("a", "3"), ("b", "4"), ("c", None)], "errors") == 7


def drawn(twin: Twin) -> Drawn:
    return Drawn(seed=7, index=3, twin=twin, schedule=sample.scenario().schedule)


def line(twin: Twin, verdict: Verdict) -> dict[str, Any]:
    run = Run(scenario="a", verdict=verdict, seconds=12.34)
    return soak.line(drawn(twin), run, Seen(verdict=verdict, ahead=(EARLIER,)))


def test_a_line_keeps_schedule_verdict_batch_and_fault() -> None:
    kept = json.loads(json.dumps(line(APPEND, violated(DOUBLED))))
    assert kept["schedule"] == ["kill driver at sink-committed of batch 3"]
    assert (kept["seed"], kept["index"], kept["verdict"], kept["truth"], kept["wrong"]) == (
        7,
        3,
        "violated",
        "must",
        "",
    )
    assert (kept["kinds"], kept["batches"], kept["faults"]) == ({"duplicated": 1}, [3], ["kill driver"])
    assert (kept["surplus"], kept["seconds"]) == ([[99]], 12.3)


COUNTED = """\
twins     violated?  held  unknown  void  violated  error  wrong
repaired  never      2     0        0     1         0      1
broken    must       1     0        0     1         0      1
broken    may        0     0        0     0         0      0
broken    never      0     0        0     0         0      0"""


def test_words_are_counted_against_the_truth() -> None:
    kept = [
        line(UPSERT, held()),
        line(UPSERT, held()),
        line(UPSERT, violated(DOUBLED)),
        line(APPEND, violated(DOUBLED)),
        line(APPEND, held()),
    ]
    assert soak.counted(kept) == COUNTED


def test_a_sitting_keeps_each_line_and_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = soak.asked(["2", "--seed", "7", "--out", str(tmp_path / "out" / "lines.jsonl")])
    sitting = soak.Soak(options)
    good, bad = (Run(scenario="a", verdict=verdict) for verdict in (held(), violated(DOUBLED)))
    assert [sitting.add(drawn(UPSERT), run) for run in (good, bad)] == [False, True]
    kept = [json.loads(text) for text in options.out.read_text().splitlines()]
    assert [each["verdict"] for each in kept] == ["held", "violated"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("kill driver at sink-committed of batch 3: held (never): right")
    assert said[1].endswith("WRONG: violated, and nothing that it cannot survive was at stake")


def test_a_right_run_leaves_no_folder_and_a_damaged_snapshot_is_wrong(tmp_path: Path) -> None:
    options = soak.asked(["2", "--seed", "7", "--out", str(tmp_path / "lines.jsonl")])
    folder = sample.stored(tmp_path, held())
    assert not soak.Soak(options).add(drawn(UPSERT), Run.read(folder.path))
    assert not folder.path.exists()
    torn = sample.stored(tmp_path, held(), run_id="r2")
    (torn.path / "snapshots" / "1-restart").mkdir(parents=True)
    assert soak.Soak(options).add(drawn(UPSERT), Run.read(torn.path))
    assert torn.path.exists()


def test_a_seed_that_is_not_said_is_drawn_and_the_lines_are_named_by_it() -> None:
    options = soak.asked(["2"])
    assert options.out == Path("reports/soak") / f"soak-{options.seed}.jsonl"


def test_harms_of_the_twins() -> None:
    assert {twin.harm for twin in REPAIRED} == {None}
    assert {twin.harm for twin in BROKEN} == set(Harm)

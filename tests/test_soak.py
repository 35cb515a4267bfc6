"""The soak's pure parts: what is drawn, what the truth is, and when a verdict is called wrong."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import broken_and_fixed, soak, truth
from bench.broken_and_fixed import BROKEN, FIXED, Drawn, Version, draw
from bench.truth import Ahead, Seen, Truth
from harness.history import Line, SinkRead, text
from harness.judge.injections import Injection
from harness.load import dump, load
from harness.report.summary import Run
from harness.scenario import CrashPoint, Finding, Harm, Kind, StepOutcome, Verdict, Victim, Word
from harness.sinks.table import SinkColumn, SinkTable, save
from harness.snapshot import QueryState, Snapshot
from harness.triggers import TRIGGERS
from tests import folders
from tests import sample_runs as sample
from tests.limits import examples

HOUSE = Path(__file__).parents[1]
UPSERT, APPEND = FIXED[0], BROKEN[0]
BEFORE = next(version for version in BROKEN if version.harm is Harm.LOSS)
AT_LEAST, AT_MOST = (
    next(t for t in FIXED if t.guarantee is g) for g in (broken_and_fixed.AT_LEAST, broken_and_fixed.AT_MOST)
)
EARLIER = Ahead(surplus=(99,), batches=frozenset({3}))


@given(st.integers(0, 10**6), st.integers(0, 500))
@settings(max_examples=examples(150))
def test_every_schedule_is_one_that_the_loader_takes(copied: Path, seed: int, index: int) -> None:
    scenario = draw(seed, index).scenario()
    copied.write_text(dump(scenario))
    assert replace(load(copied), path="") == replace(scenario, path="")


@given(st.integers(0, 10**6), st.integers(0, 500))
def test_a_seed_and_an_index_are_one_schedule(seed: int, index: int) -> None:
    drawn = draw(seed, index)
    assert drawn == draw(seed, index)
    assert (drawn.version in BROKEN) == bool(index % 2)
    assert 1 <= len(drawn.schedule) <= 3
    batches = [step.when.batch for step in drawn.schedule if step.when.batch is not None]
    assert batches == sorted(set(batches))
    assert all(1 <= batch <= broken_and_fixed.LAST_BATCH for batch in batches)


def test_every_twin_window_and_fault_is_drawn_in_time() -> None:
    drawn = [draw(0, index) for index in range(400)]
    assert {each.version for each in drawn} == {*FIXED, *BROKEN}
    steps = [step for each in drawn for step in each.schedule]
    elsewhere = {
        CrashPoint.BATCH_PLANNING,
        CrashPoint.BLOCK_RECEIVED,
        CrashPoint.BATCH_CHECKPOINTED,
        CrashPoint.SINK_COMMITTING,
    }
    assert Counter(step.when.point for step in steps).keys() == {*CrashPoint, None} - elsewhere
    # No version keeps its checkpoint on a server; an operation has a scenario of its own.
    assert {step.when.kind for step in steps} == {*TRIGGERS.all()} - {"op", "request", "state_store"}
    assert {step.do.options.get("victim", Victim.TREE) for step in steps} == set(Victim)
    assert all(any(step.when.point is not CrashPoint.BATCH_COMMITTED for step in each.schedule) for each in drawn)
    counted = [(each, step) for each in drawn for step in each.schedule if step.when == replace(step.when, batch=None)]
    loose = [(each.version, step.do.kind) for each, step in counted if step.when.kind == "rows"]
    assert {version for version, _ in loose} == {AT_MOST} and "kill executor" not in {kind for _, kind in loose}
    between = Counter(s.when.point for e in drawn if len(e.schedule) > 1 for s in e.schedule)
    assert between[CrashPoint.BATCH_COMMITTED] > 9


def violated(*findings: Finding, **changes: Any) -> Verdict:
    return sample.verdict(findings=findings, **changes)


def held(**changes: Any) -> Verdict:
    return replace(sample.held(), **changes)


@pytest.mark.parametrize(
    ("version", "seen", "expected"),
    [
        (UPSERT, Seen(verdict=held(), ahead=(EARLIER,)), Truth.NEVER),
        (APPEND, Seen(verdict=held(), ahead=(EARLIER,)), Truth.MUST),
        (APPEND, Seen(verdict=held(exposures=()), ahead=(EARLIER,)), Truth.MUST),
        (APPEND, Seen(verdict=held(), ahead=(Ahead(surplus=(0,)),)), Truth.MAY),
        (APPEND, Seen(verdict=held(exposures=(sample.loss(),)), ahead=(Ahead(surplus=(-1,)),)), Truth.NEVER),
        (BEFORE, Seen(verdict=held(), ahead=(Ahead(surplus=(-1,)),)), Truth.MUST),
        (BEFORE, Seen(verdict=held(), ahead=(EARLIER,)), Truth.MAY),
        (APPEND, Seen(verdict=held(exposures=())), Truth.NEVER),
    ],
)
def test_the_truth_is_what_the_snapshots_say(version: Version, seen: Seen, expected: Truth) -> None:
    assert truth.truth(version, seen) is expected


INJECTED = min(truth.labels(sample.STEP), key=len)
DOUBLED = replace(sample.duplicated(), faults=(INJECTED,))


@pytest.mark.parametrize(
    ("version", "verdict", "said"),
    [
        (UPSERT, held(), ""),
        (UPSERT, held(exposures=()), "held, and nothing that was exposed would show"),
        (UPSERT, held(word=Word.UNTESTED, exposures=(sample.loss(why="x"),)), ""),
        (UPSERT, held(word=Word.UNTESTED), "untested, and what was exposed would show: "),
        (UPSERT, held(word=Word.UNTESTED, steps=(replace(sample.STEP, injected=False),)), ""),
        (UPSERT, violated(DOUBLED), "violated, and nothing that it cannot survive was exposed"),
        (UPSERT, held(word=Word.INCONCLUSIVE, reasons=("late",)), "inconclusive: late"),
        (UPSERT, held(word=Word.ERROR, reasons=("no Java",)), "error: no Java"),
        (APPEND, violated(DOUBLED), ""),
        (APPEND, violated(DOUBLED, Finding(kind=Kind.RECOVERED, sink="s")), ""),
        (APPEND, held(), "held, and the snapshots show that it cannot be"),
        (APPEND, violated(sample.lost()), "violated by lost, not by duplicated"),
        (APPEND, violated(replace(DOUBLED, faults=())), "violated, and no fault is named"),
        (APPEND, violated(replace(DOUBLED, batches=(2, 3))), "batches [2, 3] are blamed, and only [3] were in flight"),
        (APPEND, violated(DOUBLED, exposures=(sample.loss(),)), "violated, and no repetition was said to be exposed"),
        (
            APPEND,
            violated(replace(DOUBLED, faults=("kill driver",))),
            f"blamed is kill driver, which is none of the steps: {INJECTED}",
        ),
        (AT_LEAST, held(exposures=(sample.repetition(allowed=True), sample.loss())), ""),
        (AT_LEAST, held(exposures=(sample.repetition(allowed=True),)), "held, and nothing that was exposed would show"),
        (AT_LEAST, held(word=Word.UNTESTED, exposures=(sample.repetition(allowed=True),)), ""),
        (AT_LEAST, held(word=Word.UNTESTED), "untested, and what was exposed would show: "),
        (AT_LEAST, violated(DOUBLED), "violated, and nothing that it cannot survive was exposed"),
        (AT_MOST, violated(sample.lost()), "violated, and nothing that it cannot survive was exposed"),
    ],
)
def test_a_verdict_is_right_or_it_is_said_why_not(version: Version, verdict: Verdict, said: str) -> None:
    assert truth.wrong(version, Seen(verdict=verdict, ahead=(EARLIER,))) == said


def injected(*attempts: int, injected: bool = True) -> tuple[StepOutcome, ...]:
    return tuple(replace(sample.STEP, batch=number, attempt=number, injected=injected) for number in attempts)


STEPS = injected(1, 2, 3)
LABELS = [min(truth.labels(step), key=len) for step in STEPS]
ALIKE = tuple(sample.repetition(step=number) for number in (1, 2, 3))


def blaming(*numbers: int) -> Verdict:
    return violated(
        replace(DOUBLED, faults=tuple(LABELS[number - 1] for number in numbers)), steps=STEPS, exposures=ALIKE
    )


def states_ahead(*surplus: int, done: tuple[int, ...] = (10, 20, 30)) -> tuple[Ahead, ...]:
    return tuple(Ahead(surplus=(0, rows), step=number, done=done[number - 1]) for number, rows in enumerate(surplus, 1))


NONE = "none of the steps {} is blamed, and the snapshots show repetition there"
ONLY = "steps {} are blamed, and only {} did repetition"


@pytest.mark.parametrize(
    ("blamed", "ahead", "said"),
    [
        ((1,), states_ahead(9, 9, 9), ""),
        ((2,), states_ahead(0, 9, 9), ""),
        ((2, 3), states_ahead(0, 9, 18), ""),
        ((2,), states_ahead(0, 9, 18), NONE.format([3])),
        ((1,), states_ahead(0, 9, 9), ONLY.format([1], [2])),
        ((2, 3), states_ahead(0, 9, 9), ONLY.format([2, 3], [2])),
        # The second attempt died before it had written anything again.
        ((2,), states_ahead(9, 9, 9, done=(10, 10, 20)), ""),
        ((3,), states_ahead(9, 9, 9, done=(10, 10, 20)), ONLY.format([3], [1, 2])),
        # Nobody died of the second step: its rows show before the next restart.
        ((2,), (states_ahead(0)[0], states_ahead(0, 0, 9)[2]), ""),
        ((3,), (states_ahead(0)[0], states_ahead(0, 0, 9)[2]), ""),
        ((1,), (states_ahead(0)[0], states_ahead(0, 0, 9)[2]), ONLY.format([1], [2, 3])),
        # Only exposed: a step may be a candidate.
        ((2,), states_ahead(0, 0, 0), ""),
    ],
)
def test_the_fault_that_is_blamed_is_the_one_that_the_snapshots_show(
    blamed: tuple[int, ...], ahead: tuple[Ahead, ...], said: str
) -> None:
    assert truth.wrong(APPEND, Seen(verdict=blaming(*blamed), ahead=ahead)) == said


def test_a_loss_is_a_sink_that_falls_behind_what_is_committed() -> None:
    seen = Seen(verdict=blaming(1), ahead=states_ahead(-9, -9, -20))
    assert truth.harmed(Harm.LOSS, seen) == [{1}, {3}]
    assert truth.harmed(Harm.REPETITION, seen) == []


def test_the_label_is_the_one_that_findings_have() -> None:
    assert Injection(number=1, outcome=sample.STEP).label == INJECTED
    bare = replace(sample.STEP, batch=None)
    assert truth.labels(bare) == {Injection(number=1, outcome=bare).label}
    one = replace(sample.STEP, checkpoint="checkpoints/b")
    assert truth.labels(one) == {INJECTED, Injection(number=1, outcome=one, beside=True).label}


def test_without_a_restart_the_batches_are_those_of_the_injections() -> None:
    assert truth.wrong(APPEND, Seen(verdict=violated(DOUBLED))) == ""
    other = replace(DOUBLED, batches=(1,))
    assert "only [3] were in flight" in truth.wrong(APPEND, Seen(verdict=violated(other)))


def test_an_injection_that_no_process_died_of_has_the_batch_of_its_step() -> None:
    """The first snapshot before a restart says that batch 3 was planned; an executor was killed in batch 2, later."""
    for number, said in ((2, ""), (1, "batches [1] are blamed, and only [2, 3] were in flight")):
        one = replace(DOUBLED, faults=(LABELS[1],), batches=(number,))
        verdict = violated(one, steps=STEPS[:2], exposures=ALIKE[:2])
        first = Ahead(surplus=(0,), batches=frozenset({3}), step=1)
        assert truth.wrong(APPEND, Seen(verdict=verdict, ahead=(first,))) == said


def stored(path: Path, *, rows: int, committed: int | None, position: dict[int, int] | None = None) -> Path:
    """A run of 40 records in batches of 10, and a snapshot before its restart."""
    made = folders.Folder(path / "run", tables=[folders.payments(folders.values(40))])
    folder = made.write()
    snapshot_folder = folder / "snapshots" / "1-restart"
    snapshot_folder.mkdir(parents=True)
    columns = tuple(SinkColumn(name=n, type=t, family=f) for n, t, f in folders.TYPES["payments"])
    table = SinkTable(
        name="postgres payments",
        kind="postgres",
        target="payments",
        columns=columns,
        rows=folders.payments(folders.values(rows)),
    )
    save(snapshot_folder, 0, table)
    query = QueryState(checkpoint="c", offsets=(0, 1), commits=(0,), committed={0: committed or 0})
    other = QueryState(checkpoint="a", ours=False, offsets=(0, 1, 2), commits=())
    queries = () if committed is None else (other, query)
    snapshot = Snapshot(step=1, moment="restart", attempt=1, at_s=1.0, queries=queries, position=position)
    read = SinkRead(step=1, moment="restart", seconds=0.1, rows=rows, snapshot=snapshot)
    with (folder / "history.jsonl").open("a", encoding="utf-8") as file:
        file.write(f"{text(Line(0, 1.0, read))}\n")
    return folder


@pytest.mark.parametrize(("rows", "surplus"), [(20, 10), (10, 0), (7, -3)])
def test_a_sink_is_weighed_against_what_was_committed(tmp_path: Path, rows: int, surplus: int) -> None:
    folder = stored(tmp_path, rows=rows, committed=10)
    assert truth.ahead(folder, APPEND) == (Ahead(surplus=(surplus,), batches=frozenset({1}), done=10),)


def test_a_sink_is_weighed_against_the_position_that_a_program_has_saved_itself(tmp_path: Path) -> None:
    folder = stored(tmp_path, rows=20, committed=None, position={0: 30})
    assert truth.ahead(folder, BEFORE) == (Ahead(surplus=(-10,), done=30),)


def test_a_run_without_a_restart_has_nothing_ahead(tmp_path: Path) -> None:
    assert truth.ahead(tmp_path, APPEND) == ()


def test_a_sink_that_is_not_readable_keeps_its_place(tmp_path: Path) -> None:
    folder = stored(tmp_path, rows=20, committed=10)
    (folder / "snapshots" / "1-restart" / "sink" / "0.json").unlink()
    assert truth.ahead(folder, APPEND)[0].surplus == (0,)


def test_totals_are_weighed_by_their_sum() -> None:
    assert truth.weight(["minute", "errors"], [("a", "3"), ("b", "4"), ("c", None)], "errors") == 7


def drawn(version: Version) -> Drawn:
    return Drawn(seed=7, index=3, version=version, schedule=sample.scenario().schedule)


def line(version: Version, verdict: Verdict) -> dict[str, Any]:
    run = Run(scenario="a", verdict=verdict, seconds=12.34)
    return soak.line(drawn(version), run, Seen(verdict=verdict, ahead=(EARLIER,)))


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
    assert (kept["kinds"], kept["batches"], kept["faults"]) == ({"duplicated": 1}, [3], [INJECTED])
    assert (kept["surplus"], kept["seconds"]) == ([[99]], 12.3)


COUNTED = """\
version  violated?  held  inconclusive  untested  violated  error  wrong
fixed    never      2     0             0         1         0      1
broken   must       1     0             0         1         0      1
broken   may        0     0             0         0         0      0
broken   never      0     0             0         0         0      0"""


def test_words_are_counted_against_the_truth() -> None:
    kept = [
        line(UPSERT, held()),
        line(UPSERT, held()),
        line(UPSERT, violated(DOUBLED)),
        line(APPEND, violated(DOUBLED)),
        line(APPEND, held()),
    ]
    assert soak.counted(kept) == COUNTED


UNTESTED = held(word=Word.UNTESTED, exposures=())
SPARED = held(word=Word.UNTESTED, exposures=(sample.repetition(allowed=True),))
CAUGHT = line(APPEND, violated(DOUBLED))
AS_IT_HAS_TO_BE = [line(UPSERT, held())] * 57 + [line(UPSERT, UNTESTED)] * 3 + [CAUGHT] * 60


@pytest.mark.parametrize(
    ("more", "right", "said"),
    [
        ([], True, "60 of 63 "),
        ([line(AT_LEAST, SPARED)] * 9, True, "57 of 60 "),
        ([line(UPSERT, UNTESTED)], False, "57 of 61 "),
        ([line(UPSERT, held(word=Word.INCONCLUSIVE))] * 4, False, "57 of 64 "),
        ([line(UPSERT, violated(DOUBLED))], False, "fixed: 1 violated, "),
        ([line(UPSERT, held(word=Word.ERROR))], False, " 1 error, "),
        ([line(UPSERT, held(exposures=()))] * 2, False, "; 2 others wrong; "),
        ([line(APPEND, held())], False, " 60 of 61 caught; "),
        ([line(APPEND, violated(replace(DOUBLED, faults=())))], False, " 60 of 61 caught; "),
        ([line(BEFORE, held(word=Word.INCONCLUSIVE))], False, "; 1 others wrong; "),
    ],
)
def test_the_figures_decide_the_exit_code(more: list[dict[str, Any]], right: bool, said: str) -> None:
    lines = [*AS_IT_HAS_TO_BE, *more] if more else [*AS_IT_HAS_TO_BE, *[line(UPSERT, held())] * 3]
    words, found = soak.figures(lines, len(lines))
    assert found is right and said in words
    assert words.startswith(f"{len(lines)} of {len(lines)} run; ")
    assert words.endswith("; as it has to be" if right else "; NOT as it has to be")
    assert soak.figures(lines, len(lines) + 1)[1] is False, "it was cut short"


def test_a_sitting_without_anything_to_hold_or_to_catch_has_shown_nothing() -> None:
    assert not any(soak.figures(lines, 60)[1] for lines in ([], AS_IT_HAS_TO_BE[:57] * 2, [CAUGHT] * 60))
    assert soak.figures([CAUGHT], 1)[1] and soak.figures(AS_IT_HAS_TO_BE[:1], 1)[1]


def kept(reports: Path, version: Version, index: int) -> Path:
    """A run in a folder of kept ones, whose one step says that it was injected and left nothing that bears it out."""
    scenario = Drawn(seed=7, index=index, version=version, schedule=(folders.STEP,)).scenario()
    folder = reports / f"soak-7-{index}"
    made = folders.Folder(folder / "20260101T000000-r1", tables=[folders.payments(folders.values(40))])
    made.claim(name=scenario.name, schedule=scenario.schedule)
    path = made.complete().path
    (folder / "latest").symlink_to(path.name)
    return path


def test_kept_runs_are_judged_again_without_a_stack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, other = kept(tmp_path, UPSERT, 0), kept(tmp_path, UPSERT, 2)
    assert soak.main(["--judge", str(tmp_path)]) == 0
    out = capsys.readouterr().out.splitlines()
    step = "kill driver at sink-committed of batch 1"
    assert out[0] == f"0 upsert_before_offset_commit: {step}: held (never): right"
    assert out[-1].startswith("2 of 2 run; fixed: 0 violated, 0 error, 2 of 2 held; ")
    verdict = json.loads((good / "verdict.json").read_text())
    (good / "verdict.json").write_text(json.dumps({**verdict, "word": "untested"}))
    (other / "run.json").write_text(json.dumps({**json.loads((other / "run.json").read_text()), "outcome": 7}))
    assert soak.main(["--judge", str(tmp_path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"0 upsert_before_offset_commit: {step}: held (was untested) (never): right"
    assert out[1].startswith(f"2 upsert_before_offset_commit: {step}: error (was held) (never): WRONG: error: ")


def test_a_folder_without_kept_runs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--judge", str(tmp_path)]) == 2
    assert "it holds none. Keep some: --keep DIR" in capsys.readouterr().err
    made = sample.stored(tmp_path, held())
    assert made.path.parent.parent == tmp_path
    assert soak.main(["--judge", str(tmp_path)]) == 2
    assert "is no scenario of a soak" in capsys.readouterr().err
    assert soak.main([]) == 2


@given(st.integers(0, 10**6), st.integers(0, 500))
def test_a_twin_is_found_by_the_name_of_its_scenario(seed: int, index: int) -> None:
    drawn = draw(seed, index)
    assert broken_and_fixed.named(drawn.scenario().name) == (seed, index, drawn.version)


def test_runs_are_kept_where_it_is_asked(tmp_path: Path) -> None:
    options = soak.parsed(["2", "--seed", "7", "--keep", str(tmp_path)])
    assert (options.reports, options.out) == (tmp_path, tmp_path / "soak-7.jsonl")
    folder = sample.stored(tmp_path, held())
    assert not soak.Soak(options).add(drawn(UPSERT), Run.read(folder.path))
    assert folder.path.is_dir()


def test_a_sitting_keeps_each_line_and_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = soak.parsed(["2", "--seed", "7", "--out", str(tmp_path / "out" / "lines.jsonl")])
    sitting = soak.Soak(options)
    good, bad = (Run(scenario="a", verdict=verdict) for verdict in (held(), violated(DOUBLED)))
    assert [sitting.add(drawn(UPSERT), run) for run in (good, bad)] == [False, True]
    kept = [json.loads(text) for text in options.out.read_text().splitlines()]
    assert [each["verdict"] for each in kept] == ["held", "violated"]
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("kill driver at sink-committed of batch 3: held (never): right")
    assert said[1].endswith("WRONG: violated, and nothing that it cannot survive was exposed")


def test_a_right_run_leaves_no_folder_and_a_damaged_snapshot_is_wrong(tmp_path: Path) -> None:
    options = soak.parsed(["2", "--seed", "7", "--out", str(tmp_path / "lines.jsonl")])
    folder = sample.stored(tmp_path, held())
    assert not soak.Soak(options).add(drawn(UPSERT), Run.read(folder.path))
    assert not folder.path.exists()
    torn = sample.stored(tmp_path, held(), run_id="r2")
    torn.history.write_text("torn\n")
    assert soak.Soak(options).add(drawn(UPSERT), Run.read(torn.path))
    assert torn.path.exists()


def test_a_seed_that_is_not_said_is_drawn_and_the_lines_are_named_by_it() -> None:
    options = soak.parsed(["2"])
    assert options.out == Path("reports/soak") / f"soak-{options.seed}.jsonl"


def test_harms_of_the_twins() -> None:
    assert {version.harm for version in FIXED} == {None}
    assert {version.harm for version in BROKEN} == set(Harm)

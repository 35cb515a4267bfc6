"""When a run of bench/sabotage.py is right, and what a sitting says at its end. The runs themselves need a stack."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench import sabotage as bench
from bench.sabotage import AS_IT_WAS, KINDS, Line, counted, wrong
from harness.load import load
from harness.scenario import CrashPoint
from tests import faked, folders

PROVING = Path(__file__).parents[1] / "scenarios" / "proving"
FAULTS_INJECTED = ", and nothing was struck that it cannot survive: why"


def line(stem: str, kind: str, word: str, **changes: Any) -> Line:
    return Line(**{"scenario": f"scenarios/proving/{stem}.yaml", "kind": kind, "word": word, "said": "why", **changes})


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (line("upsert", AS_IT_WAS, "held", as_expected=True), ""),
        (line("append", AS_IT_WAS, "violated", as_expected=True), ""),
        (line("append", AS_IT_WAS, "violated"), "violated, not as expected: why"),
        (line("append", AS_IT_WAS, "untested"), "untested, not as expected: why"),
        (line("append", AS_IT_WAS, "error", raised=True), "it broke: why"),
        (line("append", "nothing", "error", raised=True), "it broke: why"),
        (line("checkpoint_shared", "nothing", "error", raised=True), "it broke: why"),
        (line("append", "idle", "untested"), ""),
        (line("append", "idle", "held", as_expected=True), "talked into green"),
        (line("append", "idle", "violated", as_expected=True), f"violated{FAULTS_INJECTED}"),
        (line("append", "idle", "inconclusive"), f"inconclusive{FAULTS_INJECTED}"),
        (line("append", "idle", "error"), f"error{FAULTS_INJECTED}"),
        (line("checkpoint_missing", "idle", "violated"), ""),
        (line("checkpoint_temporary", "filtered out", "violated"), ""),
        (line("checkpoint_missing", "nothing", "violated"), f"violated{FAULTS_INJECTED}"),
        (line("checkpoint_missing", "idle", "inconclusive"), f"inconclusive{FAULTS_INJECTED}"),
        (line("checkpoint_missing", "idle", "held"), "talked into green"),
        (line("checkpoint_shared", "nothing", "violated"), ""),
        (line("checkpoint_shared", "empty batch", "inconclusive"), ""),
        (line("checkpoint_shared", "idle", "error"), "error: why"),
        (line("checkpoint_shared", "idle", "error", said=f"{faked.UNWELL}: it ended"), ""),
        (line("checkpoint_shared", "idle", "held"), "talked into green"),
    ],
)
def test_a_run_is_right_or_it_is_said_why_not(one: Line, why: str) -> None:
    assert wrong(one) == why


def test_the_end_names_what_is_not_right() -> None:
    lines = [
        line("append", "idle", "untested"),
        line("append", "nothing", "held"),
        line("append", "idle", "error", raised=True),
    ]
    assert counted(lines).splitlines() == [
        "idle: 1 error",
        "idle: 1 untested",
        "nothing: 1 held",
        "WRONG append (nothing): talked into green",
        "WRONG append (idle): it broke: why",
        "1 of 3 were talked into green, 2 are not right",
    ]


def test_every_program_of_the_table_is_in_the_proving_suite() -> None:
    assert {path.stem for path in PROVING.glob("*.yaml")} >= set(faked.BROKEN)
    assert set(bench.WITHOUT_FAULTS) < set(KINDS)


@pytest.mark.parametrize("path", sorted(PROVING.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_is_filtered_out_counts_no_rows_and_strikes_the_same_batch(path: Path) -> None:
    whole = load(path)
    steps = faked.filtered_out(whole).schedule
    assert [step.when.kind for step in steps] == [
        "point" if step.when.kind == "rows" else step.when.kind for step in whole.schedule
    ]
    for step, other in zip(steps, whole.schedule, strict=True):
        if other.when.kind == "rows":
            assert (step.when.point, step.when.batch) == (CrashPoint.SINK_COMMITTED, other.when.batch)
            assert step.do.kind != "kill executor"


class Broken:
    """Stands in for the stack."""

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> Broken:
        return self

    def __exit__(self, *_: object) -> None: ...


def broke(*_: object, **__: object) -> None:
    raise AttributeError("'NoneType' object has no attribute 'verdict'")


def test_a_bench_that_breaks_is_not_green(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(PROVING.parents[1])
    monkeypatch.setattr(bench, "ProcessesStack", Broken)
    monkeypatch.setattr(bench, "run", broke)
    monkeypatch.setattr(sys, "argv", ["sabotage.py", "-k", "append_before_offset", "--kind", "idle"])
    assert bench.main() == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 of 1 were talked into green, 1 are not right"
    monkeypatch.setattr(sys, "argv", ["sabotage.py", "-k", "no such file"])
    assert bench.main() == 2


def test_kept_runs_are_judged_again_without_a_stack(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run in the folder is one that held; of the others there is none."""
    folders.Folder(tmp_path / "r1", tables=[folders.payments(folders.values(40))]).complete()
    lines = [
        line("append", "idle", "untested", folder="r1"),
        line("append", AS_IT_WAS, "untested", folder="r1"),
        line("upsert", "idle", "untested", folder="gone"),
        line("checkpoint_shared", "idle", "error", said=f"{faked.UNWELL}: it ended"),
    ]
    (tmp_path / "lines.jsonl").write_text("\n".join(json.dumps(asdict(one)) for one in lines))
    monkeypatch.setattr(sys, "argv", ["sabotage.py", "--judge", str(tmp_path)])
    assert bench.main() == 1
    out = capsys.readouterr().out.splitlines()
    assert "WRONG append (idle): talked into green" in out
    assert not any(one.startswith(f"WRONG append ({AS_IT_WAS})") for one in out)
    assert any(one.startswith("WRONG upsert (idle): it broke: ") for one in out)
    assert out[-1] == "1 of 4 were talked into green, 2 are not right"


def test_a_folder_without_kept_runs_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["sabotage.py", "--judge", str(tmp_path)])
    assert bench.main() == 2
    assert "Keep some: --keep DIR" in capsys.readouterr().err

"""A run to say things about: one violated verdict with every part filled in, and a run folder that holds it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.faults import fault
from harness.history import FaultInjected, Line, Phase, Sent, SinkRead, text
from harness.run_folder.store import RunFolder
from harness.scenario import (
    CrashPoint,
    Evidence,
    Expected,
    Exposure,
    Finding,
    Harm,
    Kind,
    Pipeline,
    RecordRef,
    Scenario,
    Sink,
    Step,
    StepOutcome,
    Verdict,
    Word,
    plain,
)
from harness.snapshot import QueryState, Snapshot
from harness.triggers import trigger
from tests import histories

NAME = "driver dies after the sink committed"
STEP = StepOutcome(
    name="kill driver",
    point="sink-committed",
    crash_point=CrashPoint.SINK_COMMITTED,
    batch=3,
    injected=True,
    evidence=Evidence(
        signalled={"4711": "SIGKILL", "4720": "SIGKILL"},
        checkpoint_before={"offsets": (0, 1, 2, 3), "commits": (0, 1, 2)},
        checkpoint_after={"offsets": (0, 1, 2, 3), "commits": (0, 1, 2)},
        rows_seen=200,
        in_flight="200 records",
        note="the temporary file was there",
    ),
    at_s=12.345,
    attempt=1,
    checkpoint="checkpoint",
)
UNTRIED = (("postgres payments", "batch-planned"), ("postgres payments", "while rows are written"))


def repetition(**changes: Any) -> Exposure:
    parts: dict[str, Any] = {
        "step": 1,
        "position": 0,
        "sink": "postgres payments",
        "harm": Harm.REPETITION,
        "point": "sink-committed",
        "note": "repetition of batch 3 (99 rows in the sink, not in Spark's commit log)",
        "records": 99,
        "attempt": 1,
        "checkpoint": "checkpoint",
        "batch": 3,
    }
    return Exposure(**(parts | changes))


def loss(**changes: Any) -> Exposure:
    return repetition(**({"harm": Harm.LOSS, "note": "loss of batch 3 (planned, not committed)"} | changes))


def row(number: int = 17, amount: str = "10.00") -> dict[str, str | None]:
    return {"id": str(number), "account": "A-3", "amount": amount}


def duplicated(number: int = 17) -> Finding:
    return Finding(
        kind=Kind.DUPLICATED,
        sink="postgres payments",
        key={"id": str(number)},
        expected=(row(number),),
        found=(row(number),),
        records=(RecordRef(partition=0, offset=200 + number),),
        batches=(3,),
        faults=("kill driver at sink-committed of batch 3, attempt 1",),
    )


def corrupted() -> Finding:
    return Finding(
        kind=Kind.CORRUPTED,
        sink="postgres payments",
        key={"id": "18"},
        expected=(row(18),),
        found=(row(18, "10.01"),),
        records=(RecordRef(partition=1, offset=4),),
        batches=(2,),
    )


def lost() -> Finding:
    return Finding(
        kind=Kind.LOST,
        sink="postgres payments",
        key={"id": "19"},
        expected=(row(19),),
        records=(RecordRef(partition=2, offset=9), RecordRef(partition=2, offset=10)),
        batches=(2, 3),
        note="the batch was committed without it",
    )


def verdict(**changes: Any) -> Verdict:
    parts: dict[str, Any] = {
        "word": Word.VIOLATED,
        "as_expected": False,
        "expected": "held",
        "findings": (duplicated(), corrupted(), lost()),
        "steps": (STEP,),
        "self_tests": {"lost": True, "doubled": True, "flipped": True, "swapped": True},
        "exposures": (repetition(), loss()),
        "untried": UNTRIED,
        "counts": {"records": 600, "expected_rows": 600, "sink_rows": 600, "acknowledged": 600},
    }
    return Verdict(**(parts | changes))


def held() -> Verdict:
    return verdict(word=Word.HELD, as_expected=True, findings=())


def scenario(**changes: Any) -> Scenario:
    step = Step(
        when=trigger("point", CrashPoint.SINK_COMMITTED, batch=3),
        do=fault("kill driver"),
    )
    parts: dict[str, Any] = {
        "name": NAME,
        "why": "the crash point that an append sink cannot survive",
        "pipeline": Pipeline(entry="pipelines/append.py"),
        "sinks": (Sink(kind="postgres", target="payments", expected="select * from ledger", key=("id",)),),
        "schedule": (step,),
        "verdict": Expected(word=Word.HELD),
        "tags": ("quick",),
        "seed": 7,
    }
    return Scenario(**(parts | changes))


QUERY = QueryState(checkpoint="checkpoint", offsets=(0, 1, 2, 3), commits=(0, 1, 2))
INJECTION = Snapshot(
    step=1,
    moment="injection",
    attempt=1,
    at_s=12.4,
    queries=(QUERY, QueryState(checkpoint="other", ours=False)),
    sent={0: 200, 1: 199},
    writing={"postgres payments": ("insert into payments values ($1)",)},
    handed={"0": (299, 200)},
)
RESTART = Snapshot(step=1, moment="restart", attempt=1, at_s=12.9, queries=(QUERY,), sent={0: 200, 1: 200})


def written(history: Iterable[Line]) -> str:
    """A history as its file has it."""
    return "".join(f"{text(line)}\n" for line in history)


def keep(folder: RunFolder, snapshot: Snapshot, *, rows: int) -> Path:
    """A snapshot in a run folder, its one sink with so many rows."""
    path = folder.path / "snapshots" / f"{snapshot.step}-{snapshot.moment}"
    (path / "sink").mkdir(parents=True)
    told(folder, snapshot)
    about = {"name": "postgres payments", "rows": rows, "unreadable": ""}
    (path / "sink" / "0.json").write_text(json.dumps(about), encoding="utf-8")
    return path


def told(folder: RunFolder, snapshot: Snapshot) -> None:
    """A line of the history: where everything stood."""
    read = SinkRead(step=snapshot.step, moment=snapshot.moment, seconds=0.1, rows=0, snapshot=snapshot)
    with folder.history.open("a", encoding="utf-8") as file:
        file.write(written(histories.lines((13.0, read))))


def baseline_run(folder: RunFolder, name: str, **run: Any) -> Path:
    """A baseline run in a run folder."""
    path = folder.path / "baseline" / name
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    return path


def stored(reports: Path, given: Verdict, *, asked: Scenario | None = None, run_id: str = "r1") -> RunFolder:
    """A run folder with everything in it, as the run loop leaves it."""
    asked = asked or scenario()
    folder = RunFolder.create(reports, asked.name, run_id, need_bytes=0)
    run = {
        "run_id": run_id,
        "scenario": asked.name,
        "seed": 7,
        "seconds": 31.25,
        "stack": {"name": "processes", "kafka": {"version": "4.2.0"}},
        "command": "onceproof run scenarios/append.yaml --seed 7",
    }
    folder.save(0, plan={"seed": 7, "scenario": plain(asked)}, scenario=f"name: {asked.name}\n", run=run)
    history = histories.lines(
        (0.1, Phase(name="stack up")),
        (2.0, Sent(records=1, total=600)),
        (3.0, Sent(records=600, total=600)),
        (12.4, FaultInjected(outcome=STEP)),
    )
    folder.history.write_text(written(history), encoding="utf-8")
    folder.save(1)
    folder.save(2, verdict=given)
    return folder

"""The corpus of adversarial cases, judged by the judge of another checkout: which of them does that one get wrong?

    PYTHONPATH=. .venv/bin/python bench/corpus_before.py CHECKOUT

Every case's run folder is written once, with all that this code knows of a run; a judge that knows less leaves out what
it does not know. The folders get the names and fields of its time. A plain run that held is judged first: a
judge that does not call it held cannot read the folders, and is not asked (exit code 2). A case that it cannot read is
counted apart: no verdict is no wrong one.

Wrong is another word, another "as expected", another fault that is blamed or another batch that is named (attempts and
checkpoints are left out of a fault's name). Exits 1 if the other judge gets a case right that is no guard.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.scenario import Word
from tests.corpus import CASES
from tests.corpus.case import Adversary
from tests.corpus.run_builder import run_builder

JUDGE = """
import json, sys
from pathlib import Path
from harness.errors import HarnessError, UsageError
from harness.judge import judge
for folder in sys.argv[1:]:
    try:
        told = judge(Path(folder))
        found = [finding for finding in told.findings if finding.kind != "recovered"]
        out = {"word": told.word, "as_expected": told.as_expected, "reasons": list(told.reasons)}
        out["faults"] = sorted({fault for finding in found for fault in finding.faults})
        out["batches"] = sorted({batch for finding in found for batch in finding.batches})
    except (HarnessError, UsageError) as refusal:
        out = {"word": "error", "as_expected": False, "reasons": [str(refusal)], "faults": [], "batches": []}
        out["refused"] = True
    print(json.dumps(out))
"""
WITHIN_S = 600


def judged(checkout: Path, folders: list[Path]) -> list[dict[str, Any]]:
    """What the judge of a checkout says of each folder."""
    command = [sys.executable, "-c", JUDGE, *map(str, folders)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=True, timeout=WITHIN_S
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


WORDS = {"without_faults": "unhurt"}
FIELDS = {
    "progress": "frontier",
    "timeout_s": "within_s",
    "quiet_period_s": "settle_s",
    "max_restarts": "times",
    "point": "window",
}
"""What keys were called when triggers and faults had fields."""
VALUES = {"batch-planned": "offsets-written", "batch-committed": "offsets-committed"}
"""What crash points were called then."""
AS = {"crash mid-sink": "crash application", "crash before offset commit": "kill driver"}
"""The fault that stood for another one then."""


def with_words(folder: Path) -> Path:
    """Write into a run folder what it held in form 2."""
    _rewrite(folder, "plan.json", lambda plan: {**_renamed(plan, WORDS, {}), "version": 4})
    for injection in sorted(folder.rglob("*-injection")):
        injection.rename(injection.with_name(injection.name.replace("-injection", "-strike")))
    _rewrite(folder, "snapshot.json", lambda seen: _renamed(seen, {}, {"injection": "strike"}))
    return folder


def with_fields(folder: Path) -> Path:
    """Also write what stood in the place of kinds and their options: backend and database of a sink, the fields of
    triggers and faults; crash points by their older names."""
    with_words(folder)
    _rewrite(folder, "plan.json", _plan_with_fields)
    _rewrite(folder, "sink/*.json", lambda table: {**table, "backend": table.get("kind")})
    _rewrite(folder, "checkpoint.json", lambda said: _renamed(said, {"committed": "frontier"}, {}, deep=False))
    _rewrite(folder, "run.json", lambda said: _renamed(said, FIELDS, VALUES))
    return folder


def _rewrite(folder: Path, name: str, change: Callable[[Any], Any]) -> None:
    for path in folder.rglob(name):
        path.write_text(json.dumps(change(json.loads(path.read_text()))))


def _renamed(said: Any, keys: Mapping[str, str], values: Mapping[str, str], *, deep: bool = True) -> Any:
    """The same with other names; `deep` also in what it holds."""
    if isinstance(said, dict):
        inner = ((key, _renamed(value, keys, values) if deep else value) for key, value in said.items())
        return {keys.get(key, key): value for key, value in inner}
    if isinstance(said, list):
        return [_renamed(each, keys, values) for each in said]
    return values.get(said, said) if isinstance(said, str) else said


def _plan_with_fields(plan: dict[str, Any]) -> Any:
    said = plan["scenario"]
    said["sinks"] = [{**sink, "backend": sink["kind"], "database": sink["part"] or "main"} for sink in said["sinks"]]
    said["schedule"] = [
        {"name": step["do"]["kind"], **{key: _fields(value) for key, value in step.items()}}
        for step in said["schedule"]
    ]
    said["input"] = {**said["input"], **said["input"]["options"]}
    said["setup"] = {label.partition(".")[2] or "main": text for label, text in said["setup"].items()}
    return _renamed(plan, FIELDS, VALUES)


OLD_FIELDS = {"point": "window", "failpoint": "failpoint", "records": "count", "rows": "count", "elapsed": "elapsed_s"}
"""Where a trigger's value was, by its kind."""


def _fields(kind: dict[str, Any]) -> dict[str, Any]:
    value = {OLD_FIELDS[kind["kind"]]: kind["value"]} if "value" in kind else {}
    name = {"point": "window", **AS}.get(kind["kind"], kind["kind"])
    return {**kind, **kind.get("options", {}), **value, "kind": name}


def readable(checkout: Path, scratch: Path) -> Callable[[Path], Path] | None:
    """How a folder has to be changed for that judge; None if it reads neither form."""
    for name, change in (("now", lambda folder: folder), ("words", with_words), ("fields", with_fields)):
        run = run_builder(scratch / name)
        run.injection(1)
        (said,) = judged(checkout, [change(run.write())])
        if said["word"] == Word.HELD:
            return change
        reasons = "; ".join(said["reasons"]).replace(f"{scratch}/", "")
        print(f"a run that held, its folder as {name}: {said['word']}: {reasons}")
    return None


def unnumbered(fault: str) -> str:
    """A fault without attempt and checkpoint, which older code did not name."""
    bare = fault.rpartition(", attempt ")[0] or fault
    return re.sub(r"( of batch \d+) of \S+$", r"\1", bare)


def wrong(case: Adversary, said: Mapping[str, Any]) -> list[str]:
    """What the other judge got wrong of a case."""
    right = case.right
    out = [] if said["word"] == right.word else [f"{said['word']} for {right.word}"]
    if said["as_expected"] != right.as_expected:
        out.append(f"as expected: {said['as_expected']}")
    blamed = sorted(set(map(unnumbered, said["faults"])))
    if right.faults is not None and blamed != sorted(set(map(unnumbered, right.faults))):
        out.append(f"blames {', '.join(blamed) or 'nothing'}, not {', '.join(right.faults) or 'nothing'}")
    if right.batches is not None and tuple(said["batches"]) != right.batches:
        out.append(f"batches {said['batches']} for {list(right.batches)}")
    return out


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    checkout = Path(sys.argv[1]).resolve()
    cases = [case for case in CASES if case.item != SEALED]
    with tempfile.TemporaryDirectory() as scratch:
        change = readable(checkout, Path(scratch))
        if change is None:
            return 2
        folders = [change(case.case(Path(scratch) / str(number) / "run").write()) for number, case in enumerate(cases)]
        answers = judged(checkout, folders)
    told = Counter(line(case, said) for case, said in zip(cases, answers, strict=True))
    print(f"{dict(told)} of {len(cases)} cases in {checkout.name}")
    return 1 if told["right"] else 0


def line(case: Adversary, said: Mapping[str, Any]) -> str:
    """Print what became of one case; the word that it counts as."""
    mistakes = wrong(case, said)
    refused = said.get("refused", False) and said["word"] != case.right.word
    state = "not read" if refused else "wrong" if mistakes else "guarded" if case.guard else "right"
    words = "; ".join(said["reasons"] if refused else mistakes) or said["word"]
    print(f"{case.item:3} {case.id:70} {state}: {words}")
    return state


SEALED = 16
"""Cases of sealed folders cannot be made before there is a seal."""

if __name__ == "__main__":
    raise SystemExit(main())

"""The corpus of adversarial cases, judged by the judge of another checkout: which of them does that one get wrong?

    PYTHONPATH=. .venv/bin/python bench/corpus_before.py CHECKOUT

Every case's run folder is written once, with all that this code knows of a run; a judge that knows less leaves out what
it does not know. Wrong is another word, another "as expected", another fault that is blamed or another batch that is
named (attempts and checkpoints are left out of a fault's name). Exits 1 if the other judge gets a case right.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.corpus import CASES
from tests.corpus.case import Adversary

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
    with tempfile.TemporaryDirectory() as room:
        folders = [case.case(Path(room) / str(number) / "run").write() for number, case in enumerate(cases)]
        answers = judged(checkout, folders)
    passed = 0
    for case, said in zip(cases, answers, strict=True):
        mistakes = wrong(case, said)
        passed += not mistakes
        print(f"{case.item:3} {case.id:70} {'; '.join(mistakes) or 'RIGHT: ' + said['word']}")
    print(f"{len(cases) - passed} of {len(cases)} cases wrong in {checkout.name}")
    return 1 if passed else 0


SEALED = 16
"""Cases of sealed folders cannot be made before there is a seal."""

if __name__ == "__main__":
    raise SystemExit(main())

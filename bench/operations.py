"""A kill of the driver at each operation that changes a checkpoint, in six batches of a run: predicted, and played.

    PYTHONPATH=. .venv/bin/python bench/operations.py [--only PROGRAM...] [-- OPTION of `onceproof run`...]

`PREDICTED` was committed before the first run. A scenario is one operation of one program, with a step at every second
batch, so that each step has a whole batch after it. The exit code is 1 where a verdict is not the predicted one, where
a step did not strike in its batch, and where the steps that count, or the causes of what was found, are not these six.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.predicted import divided, played

REPORTS = Path("reports/operations")
BATCHES = range(2, 14, 2)
STATELESS, STATEFUL = ("append", "upsert"), ("totals_appended", "totals_kept")
FOLDERS = dict.fromkeys(STATELESS, "transactions") | dict.fromkeys(STATEFUL, "shapes")
KEYED = ("upsert", "totals_kept")
NOTHING, PLANNED, WRITTEN = "untested", "held", "violated"
"""Nothing of the batch has run, or all of it is over: no step counts. It is planned and the sink has none of it: a loss
would show. The sink has it and Spark does not know: an append gets it twice, and what is written by key holds."""
PREDICTED = {
    "create of offsets": {"before": NOTHING, "after": NOTHING},
    "rename of offsets": {"before": NOTHING, "after": PLANNED},
    "create of state": {"before": PLANNED, "after": PLANNED},
    "rename of state": {"before": PLANNED, "after": PLANNED},
    "create of commits": {"before": WRITTEN, "after": WRITTEN},
    "rename of commits": {"before": WRITTEN, "after": NOTHING},
}
"""By operation and side. The state is committed by tasks, before these programs write their sink."""
SCENARIO = """\
name: {program}, killed {side} {operation}
why: "predicted: {expected}"
pipeline: {entry}
input: {{workload: transactions, records: 1800}}
schedule:
{steps}
verdict: {expected}
restart: {{max_restarts: 30}}
timeout: 900s
"""
STEP = "  - {{when: {{op: {op}, path: {path}, when: {side}, batch: {batch}}}, do: kill driver}}\n"


def scenarios(folder: Path, only: list[str]) -> Iterator[tuple[Path, str]]:
    """Write the scenarios of the programs named `only`, or of all, into the folder; each file with its prediction."""
    for program, where in FOLDERS.items():
        for operation, sides in PREDICTED.items():
            if (only and program not in only) or (operation.endswith("state") and program not in STATEFUL):
                continue
            op, _, path = operation.split()
            for side, word in sides.items():
                steps = "".join(STEP.format(op=op, path=path, side=side, batch=batch) for batch in BATCHES)
                expected = "{violated: [duplicated]}" if word == WRITTEN else word
                text = SCENARIO.format(
                    program=program,
                    side=side,
                    operation=operation,
                    entry=Path(f"pipelines/{where}/{program}.py").resolve(),
                    steps=steps.rstrip("\n"),
                    expected="held" if word == WRITTEN and program in KEYED else expected,
                )
                file = folder / f"{program}_{side}_{op}_of_{path}.yaml"
                file.write_text(text, encoding="utf-8")
                yield file, word


def differences(verdict: dict[str, Any], word: str, *, keyed: bool) -> Iterator[str]:
    """What of a verdict is not as predicted: its word, where a step struck, which steps count, which are causes."""
    if not verdict["as_expected"]:
        yield f"{verdict['word']}: {'; '.join(verdict['reasons'])}"
    struck = [step["batch"] for step in verdict["steps"] if step["injected"]]
    if struck != list(BATCHES):
        yield f"struck in batches {struck}"
    counting = {exposure["step"] for exposure in verdict["exposures"] if not exposure["why"]}
    if counting != (set() if word == NOTHING else set(range(1, len(BATCHES) + 1))):
        yield f"steps that count: {sorted(counting)}"
    causes = {fault for finding in verdict["findings"] for fault in finding["faults"]}
    if len(causes) != (len(BATCHES) if word == WRITTEN and not keyed else 0):
        yield f"causes: {sorted(causes)}"


def main() -> int:
    own, options = divided(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], metavar="PROGRAM", choices=FOLDERS)
    given = parser.parse_args(own)
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    files = dict(scenarios(REPORTS, given.only))
    words = {file.stem: word for file, word in files.items()}

    def wrong(name: str, verdict: dict[str, Any]) -> Iterator[str]:
        return differences(verdict, words[name], keyed=name.startswith(KEYED))

    return played([*files], REPORTS, options, wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Every scenario of the proving suite with its kill replaced by one that hurts nobody, and beside it the run as it was.

    make prove SUITE=sabotage [ARGS="-k upsert"]
    .venv/bin/python bench/sabotage.py [-k WORD] [--out FILE]

No run may say *held*. Void is the answer; *violated* where any restart, or none, is enough to break the program; error
or unknown where control runs say so. Exit code 1 names the runs that were talked into green.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from harness.load import find, load_all
from harness.run.loop import run
from harness.scenario import Scenario, Word
from harness.stack.processes import ProcessesStack
from tests import sabotage

Kind = tuple[Callable[[], AbstractContextManager[None]], Callable[[Scenario], Scenario]]
KINDS: dict[str, Kind] = {
    "as it was": (nullcontext, lambda scenario: scenario),
    "nothing": (sabotage.nothing, lambda scenario: scenario),
    "idle": (sabotage.idle, lambda scenario: scenario),
    "empty batch": (sabotage.empty, sabotage.in_the_first_batch),
    "filtered out": (nullcontext, sabotage.filtered_out),
}


def fits(scenario: Scenario, kind: str) -> bool:
    """Batches without a record are Spark's: a program that keeps its offsets itself has none."""
    return kind != "empty batch" or scenario.pipeline.frontier == "checkpoint"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", dest="word", default="", help="only scenarios whose file name holds WORD")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these kills")
    parser.add_argument("--out", type=Path, help="one JSON line a run")
    args = parser.parse_args()
    scenarios = [s for s in load_all(find([Path("scenarios/proving")])) if args.word in Path(s.path).stem]
    counts, fooled = Counter[tuple[str, str]](), []
    with tempfile.TemporaryDirectory() as room, ProcessesStack(Path(room) / "logs") as stack:
        for scenario in scenarios:
            for kind in args.kind or KINDS:
                if not fits(scenario, kind):
                    continue
                word, said = played(scenario, kind, stack, Path(room))
                counts[kind, word] += 1
                print(f"{Path(scenario.path).stem:40} {kind:12} {word:9} {said}", flush=True)
                if word == Word.HELD and kind != "as it was":
                    fooled.append(f"{scenario.path} ({kind})")
                if args.out:
                    line = json.dumps({"scenario": scenario.path, "kind": kind, "word": word, "said": said})
                    with args.out.open("a") as out:
                        out.write(line + "\n")
    for (kind, word), count in sorted(counts.items()):
        print(f"{kind}: {count} {word}")
    print(f"{len(fooled)} of {sum(counts.values())} were talked into green: {', '.join(fooled) or 'none'}")
    return 1 if fooled else 0


def played(scenario: Scenario, kind: str, stack: ProcessesStack, room: Path) -> tuple[str, str]:
    """The word of one run, and its first reason."""
    around, change = KINDS[kind]
    with around():
        try:
            verdict = run(change(scenario), stack, reports=room).verdict
        except Exception as failure:
            return Word.ERROR.value, str(failure).splitlines()[0]
    shown = [stake.note for stake in verdict.stakes if stake.shown]
    return verdict.word.value, (verdict.reasons or tuple(shown) or ("",))[0]


if __name__ == "__main__":
    sys.exit(main())

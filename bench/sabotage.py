"""Every scenario of the proving suite with its kill replaced by one that strikes nothing, and beside it the run as it
was.

    make prove SUITE=sabotage [ARGS="-k upsert"]
    PYTHONPATH=. .venv/bin/python bench/sabotage.py [-k WORD] [--keep DIR]
    PYTHONPATH=. .venv/bin/python bench/sabotage.py --judge DIR     kept runs judged again, without a stack

Untested is the answer, and *violated* where any restart, or none, is enough to break the program, as `BROKEN` in
tests/faked.py has it, with the other words that such a program may come to. The run as it was has to be as
expected. Exit code 1 names the runs that are not right, those that ended in an error among them, and how many were
talked into green.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness import judge
from harness.errors import HarnessError
from harness.load import find, load_all
from harness.run.loop import run
from harness.scenario import Scenario, Verdict, Word
from harness.stacks.processes.stack import ProcessesStack
from tests import faked

LINES = "lines.jsonl"
"""In the folder of runs that are kept: one line for each."""
AS_IT_WAS = "as it was"
WITHOUT_FAULTS = ("nothing",)
"""Kinds after which nothing is started again."""
Kind = tuple[Callable[[], AbstractContextManager[None]], Callable[[Scenario], Scenario]]
KINDS: dict[str, Kind] = {
    AS_IT_WAS: (nullcontext, lambda scenario: scenario),
    "nothing": (faked.nothing, lambda scenario: scenario),
    "idle": (faked.idle, lambda scenario: scenario),
    "empty batch": (faked.empty, faked.in_the_first_batch),
    "filtered out": (nullcontext, faked.filtered_out),
}


def fits(scenario: Scenario, kind: str) -> bool:
    """Batches without a record are Spark's: a program that keeps its offsets itself has none."""
    return kind != "empty batch" or scenario.pipeline.progress == "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Line:
    """What became of one run. `raised`: it came to no verdict at all; `folder` is its own, in that of all."""

    scenario: str
    kind: str
    word: str
    said: str
    as_expected: bool = False
    raised: bool = False
    folder: str = ""

    @property
    def stem(self) -> str:
        return Path(self.scenario).stem


def wrong(line: Line) -> str:
    """Why a run did not come to what it has to; empty if it did."""
    if line.raised:
        return f"it broke: {line.said}"
    if line.kind == AS_IT_WAS:
        return "" if line.as_expected else f"{line.word}, not as expected: {line.said}"
    if line.word == Word.UNTESTED:
        return ""
    if line.word == Word.HELD:
        return "talked into green"
    broken = faked.BROKEN.get(line.stem)
    if broken is None or line.word not in broken.words or (broken.restarted and line.kind in WITHOUT_FAULTS):
        return f"{line.word}, and nothing was struck that it cannot survive: {line.said}"
    if line.word == Word.ERROR and not line.said.startswith(broken.error):
        return f"{line.word}: {line.said}"
    return ""


def counted(lines: Iterable[Line]) -> str:
    """How often each word was said of each kind of kill, which runs are not right, and the sum."""
    kept = list(lines)
    rows = [
        f"{kind}: {count} {word}" for (kind, word), count in sorted(Counter((e.kind, e.word) for e in kept).items())
    ]
    bad = [f"WRONG {each.stem} ({each.kind}): {why}" for each in kept if (why := wrong(each))]
    fooled = sum(each.word == Word.HELD and each.kind != AS_IT_WAS for each in kept)
    return "\n".join([*rows, *bad, f"{fooled} of {len(kept)} were talked into green, {len(bad)} are not right"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", dest="word", default="", help="only scenarios whose file name holds WORD")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these kills")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep every run's folder, and its line, in DIR")
    parser.add_argument("--judge", type=Path, metavar="DIR", help="judge the runs kept in DIR; nothing is run")
    args = parser.parse_args()
    if args.judge:
        return _again(args.judge)
    files = [path for path in find([Path("scenarios/proving")]) if args.word in path.stem]
    work = [(each, kind) for each in load_all(files) for kind in args.kind or KINDS if fits(each, kind)]
    if not work:
        print(f"asked for scenarios with {args.word!r} in their name; there is none for that kind", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch, ProcessesStack(Path(scratch) / "logs") as stack:
        kept: Path = args.keep or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        return _ended(played(scenario, kind, stack, kept) for scenario, kind in work)


def _again(kept: Path) -> int:
    """Judge the runs again, but for those that came to no verdict."""
    try:
        text = (kept / LINES).read_text(encoding="utf-8")
        lines = [Line(**json.loads(line)) for line in text.splitlines()]
    except (OSError, ValueError, TypeError) as failure:
        print(f"asked to judge the runs in {kept}; {failure}. Keep some: --keep DIR", file=sys.stderr)
        return 2
    return _ended(judged(line, kept) for line in lines)


def _ended(runs: Iterable[Line]) -> int:
    """Say what becomes of each run, and of all."""
    lines: list[Line] = []
    for line in runs:
        lines.append(line)
        mark = f"WRONG: {why}" if (why := wrong(line)) else line.said
        print(f"{line.stem:40} {line.kind:12} {line.word:9} {mark}", flush=True)
    print(counted(lines))
    return 1 if any(map(wrong, lines)) else 0


def judged(line: Line, kept: Path) -> Line:
    """A kept run as the judge sees it now. A run that was not judged, an error, stays as it is."""
    if line.raised or line.word == Word.ERROR:
        return line
    try:
        found = judge.judged(kept / line.folder)
        if found.baseline_runs_needed:
            return replace(line, raised=True, said=f"needs baseline run {found.baseline_runs_needed}, not made")
        return replace(line, **_outcome(found.verdict))
    except HarnessError as failure:
        return replace(line, raised=True, said=str(failure))


def played(scenario: Scenario, kind: str, stack: ProcessesStack, kept: Path) -> Line:
    """One run: its word, what was found, and its first reason."""
    around, change = KINDS[kind]
    with around():
        try:
            result = run(change(scenario), stack, reports=kept)
            line = Line(scenario=scenario.path, kind=kind, **_outcome(result.verdict))
            line = replace(line, folder=str(result.folder.relative_to(kept)))
        except Exception as failure:
            words = (str(failure).splitlines() or [repr(failure)])[0]
            line = Line(scenario=scenario.path, kind=kind, word=Word.ERROR.value, said=words, raised=True)
    with (kept / LINES).open("a", encoding="utf-8") as out:
        out.write(json.dumps(asdict(line)) + "\n")
    return line


def _outcome(verdict: Verdict) -> dict[str, Any]:
    shown = [exposure.note for exposure in verdict.exposures if exposure.would_show]
    found = [", ".join(verdict.kinds())] if verdict.word is Word.VIOLATED else []
    words = ": ".join([*found, (verdict.reasons or tuple(shown) or ("",))[0]])
    return {"word": verdict.word.value, "said": words, "as_expected": verdict.as_expected}


if __name__ == "__main__":
    sys.exit(main())

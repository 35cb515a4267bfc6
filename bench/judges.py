"""What the seven rules (`harness.judge`) say of stored runs, beside what the judge said when they were made.

    PYTHONPATH=. .venv/bin/python bench/judges.py REPORTS...        each run folder below these

One line a run: the words, the exposures that count, the steps that caused findings. A run differs if one of these is
another one, but for a violation of which no baseline run was made: the rules ask for one. The exit code is 1 if a run
differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import HarnessError
from harness.judge import judged
from harness.scenario import Word, plain


class Answer(NamedTuple):
    """What a judge says of a run. `unasked`: no baseline run was made, and it needs one."""

    word: str
    exposures: tuple[str, ...]
    causes: tuple[str, ...]
    unasked: bool = False

    def agrees(self, old: Answer) -> bool:
        """Return whether it says the same as the judge before."""
        word = self.word == old.word or (self.unasked and old.word == Word.VIOLATED)
        return word and self.exposures == old.exposures and set(old.causes) <= set(self.causes)


def answer(verdict: Mapping[str, Any], *, unasked: bool = False) -> Answer:
    """Return what a verdict says, candidates among the causes."""
    exposures = {f"{stake['step']} {stake['harm']}" for stake in verdict["stakes"] if stake["shown"] or stake["came"]}
    causes = {step for finding in verdict["findings"] for step in (*finding["faults"], *finding["fits"] * unasked)}
    return Answer(verdict["word"], tuple(sorted(exposures)), tuple(sorted(causes)), unasked)


def runs(roots: list[str]) -> Iterator[Path]:
    """Yield the run folders below some folders, without those of baseline runs."""
    for root in roots:
        for path in sorted(Path(root).rglob("verdict.json")):
            if "controls" not in path.parts:
                yield path.parent


def main(roots: list[str]) -> int:
    """Compare each run."""
    differing, count = 0, 0
    for folder in runs(roots):
        count += 1
        old = answer(json.loads((folder / "verdict.json").read_text(encoding="utf-8")))
        try:
            found = judged(folder)
        except HarnessError as failure:
            new = Answer(f"{Word.ERROR}: {failure}", (), ())
        else:
            new = answer(plain(found.verdict), unasked=found.wants > 0)
        same = new.agrees(old)
        differing += not same
        print(f"{'same   ' if same else 'DIFFERS'} {folder.name} {folder.parent.name}", flush=True)
        if not same:
            print(f"    old: {old}\n    new: {new}")
    print(f"{count} runs, {differing} differ")
    return 1 if differing or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

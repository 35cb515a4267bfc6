"""`again.json`: that another run of the same plan says otherwise. It lies in the folders of both, sealed with the rest.

The suite writes it once both are over. No judge reads it: a verdict stays what the run's own files say.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.run_folder import sealed, store
from harness.scenario import Disagreement, Verdict, Word, plain

NAME = "again.json"


def write(folder: Path, found: Disagreement) -> None:
    """Put it into a run's folder. Raises HarnessError if that is not as the run left it, or the disk refuses."""
    sealed.opened(folder)
    said = plain(found)
    sides = {side: {**said[side], "run": _short(said[side]["run"])} for side in ("waited", "cold")}
    store.write(folder / NAME, json.dumps({**said, **sides}, indent=1) + "\n")
    sealed.write(folder)


def read(folder: Path) -> Disagreement | None:
    """What is written there, None if no other run disagrees. Raises UsageError for a file that is damaged."""
    path = folder / NAME
    if not path.is_file():
        return None
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: {error}. Run the scenario again") from None
    found: Disagreement = store.noun(Disagreement, data, str(path))
    return found


def beside(verdict: Verdict, folder: Path) -> Verdict:
    """The verdict of the run in `folder`, with what another run says. Raises UsageError as `read` does."""
    found = read(folder)
    if found is None:
        return verdict
    if Path(found.cold.run).name == folder.name:
        return disagreeing(verdict, found)
    return replace(verdict, disagreement=found)


def disagreeing(verdict: Verdict, found: Disagreement) -> Verdict:
    """The verdict of the second run: nobody can tell which of the two is right, so it is never as expected."""
    (waited, cold), (first, second) = (found.waited.answer, found.cold.answer), found.ways
    reason = f"of two runs of this plan one was {waited} ({first}), one {cold} ({second})"
    reasons = (reason, *verdict.reasons)
    return replace(verdict, word=Word.UNKNOWN, as_expected=False, reasons=reasons, disagreement=found)


def _short(run: str) -> str:
    """Its place among the reports: a run folder travels, and says nothing of the machine that it was made on."""
    return "/".join(Path(run).parts[-2:])

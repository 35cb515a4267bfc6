"""Writes the scenario that is proposed for a program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import ScenarioError, UsageError
from harness.fields.paths import project_root
from harness.load import load, near
from harness.proposal.program import imported, read
from harness.proposal.propose import propose


def write(program: Path) -> tuple[Path, Sequence[str]]:
    """Write `scenarios/NAME.yaml` in the program's project; return its path, and a line for each thing that is to be
    found out or to be mended. Raises UsageError for a program that cannot be read, or a file in the way."""
    try:
        found = read(dict(_sources(program)))
    except (OSError, ValueError, SyntaxError, RecursionError) as failure:
        why = getattr(failure, "strerror", None) or failure
        raise UsageError(f"asked for a scenario for {program}; it cannot be read as Python: {why}") from failure
    root = _root(program.resolve())
    name = re.sub(r"[^a-z0-9_]+", "_", program.stem.lower()).strip("_") or "pipeline"
    path = Path(near(root / "scenarios" / f"{name}.yaml"))
    if path.exists():
        raise UsageError(
            f"asked for a scenario for {program}; {path} is there already. Remove it, or rename the program"
        )
    proposal = propose(program.resolve().relative_to(root).as_posix(), name, found)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(proposal.text, encoding="utf-8")
    return path, [*proposal.unclear, *_mistakes(path)]


def _sources(program: Path) -> Iterator[tuple[str, str]]:
    """Yield the program and the files beside it that it imports, also by way of each other, with their texts."""
    left, seen = [program], set[Path]()
    while left:
        path = left.pop(0)
        if path in seen:
            continue
        seen.add(path)
        text = path.read_text(encoding="utf-8")
        yield near(path.absolute()), text
        beside = (program.parent / f"{name.replace('.', '/')}.py" for name in imported(text))
        left += (each for each in beside if each.is_file())


def _root(program: Path) -> Path:
    """Return the program's project; of one in a separate folder, which says no project, where `scenarios` is."""
    root, above = project_root(program), program.parent.parent
    return above if root == program.parent and (above / "scenarios").is_dir() else root


def _mistakes(path: Path) -> list[str]:
    """Return what is wrong with the file as it was written."""
    try:
        load(path)
    except ScenarioError as failure:
        return [str(each) for each in failure.mistakes]
    return []

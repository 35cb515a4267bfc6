"""`digests.json`: what a run folder held when the run had its verdict. A folder that differs is not read.

    {"form": 11, "files": {"ledger/source.parquet": SHA-256, ...}, "digest": SHA-256 of the two before it}

It is written last of all, and has every file that a verdict or the page rests on. Logs and the page itself have no
digest. It shows damage and edits; an attacker can write new digests.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.run_folder import command, store
from harness.run_folder.store import RunFolder

DIGESTS = "digests.json"
FORM = 13
PLANNED = ("plan.json", "run.json", "scenario.yaml")
"""What a run can be run again from."""
FILES = (*PLANNED, "history.jsonl", "verdict.json")
FOLDERS = ("baseline", "ledger", "sink", "snapshots")
"""Folders of which every file has a digest, however deep: a file too many is an error too."""

SHOWN = 20


@dataclass(frozen=True, order=True)
class Mismatch:
    """A file that is not as the run left it, by its name in the run folder, and what is wrong with it."""

    name: str
    what: str

    def __str__(self) -> str:
        # A name of another program's making may hold anything, a line feed too.
        return f"{self.name if self.name.isprintable() else ascii(self.name)}: {self.what}"


def write(folder: Path) -> None:
    """Write the digests of the run folder. Raises HarnessError if a file cannot be read, or the disk refuses."""
    with store.disk("write the digests of the run folder", folder):
        files = {_name(folder, path): store.digest(path) for path in _paths(folder) if _plain(path)}
    store.write(folder / DIGESTS, _text(files, FORM))


def mismatches(folder: Path, *, only: Collection[str] = ()) -> list[Mismatch]:
    """Return what in a run folder is not as the run left it; with `only`, among these names alone. Raises HarnessError
    for one of another form."""
    try:
        saved = _saved(folder / DIGESTS)
    except (OSError, ValueError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else failure
        return [Mismatch(DIGESTS, f"{why}; so no other file can be held against it")]
    there = {_name(folder, path): path for path in _paths(folder)}
    names = [name for name in saved.keys() | there.keys() if not only or name in only]
    compared = [Mismatch(name, _wrong(there.get(name), saved.get(name))) for name in names]
    return sorted(each for each in compared if each.what)


def opened(path: Path, *, only: Collection[str] = (), unjudged: bool = False) -> RunFolder:
    """Return the run folder at `path`, of which every file (or every one of `only`) is as the run left it.

    `unjudged`: also one whose run ended before it had a verdict, and so has no digests. Raises HarnessError that
    names what is wrong, UsageError if it is no run folder."""
    found = RunFolder.find(path)
    if not os.path.lexists(found.path / DIGESTS):
        _without_digests(found, unjudged=unjudged)
    elif wrong := mismatches(found.path, only=only):
        raise HarnessError(_refusal(found.path, wrong))
    return found


def _without_digests(found: RunFolder, *, unjudged: bool) -> None:
    """Raise unless the run ended before it had a verdict, and `unjudged` takes that."""
    request = f"asked for the run in {found.path}"
    try:
        run = found.read("run").get("run", {})
    except HarnessError as failure:
        raise HarnessError(f"{request}; it has no {DIGESTS}, and {failure}") from None
    if os.path.lexists(found.verdict_json) or run.get("stage") == 2:
        raise HarnessError(
            f"{request}; it has no {DIGESTS}, so it is not known whether its files are those of the run. It was made "
            "by hand or by an older version, or its run was killed at the very end. Run the scenario again"
        )
    if not unjudged:
        # What an error says may end with a log of many lines.
        why, more, _ = early(run).partition("\n")
        rest = " (its run.json has the rest)" if more else ""
        raise HarnessError(f"{request}; {why.rstrip(':.')}{rest}. Once that is mended{_once_mended(found.path, run)}")


def _once_mended(folder: Path, run: Mapping[str, Any]) -> str:
    """Return the scenario as it is now: the stored plan has the mistake still, where it was the scenario's own."""
    if file := command.typed(run):
        return f": {file}"
    return f" in the scenario, run it again; where nothing is wrong with that: onceproof replay {folder}"


def early(run: dict[str, object]) -> str:
    """Return why a run has no verdict, by its run.json."""
    outcome = run.get("outcome")
    error = outcome.get("error") if isinstance(outcome, dict) else None
    return f"the run ended before it had a verdict: {error or 'it was interrupted, or is not over'}"


def _refusal(folder: Path, wrong: list[Mismatch]) -> str:
    saw = f"{len(wrong)} files in it are not as the run left them"
    saw = "1 file in it is not as the run left it" if len(wrong) == 1 else saw
    lines = [f"asked for the run in {folder}; {saw}, so nothing is said of it:"]
    lines += [f"  {each}" for each in wrong[:SHOWN]]
    if len(wrong) > SHOWN:
        lines.append(f"  and {len(wrong) - SHOWN} more")
    whole = not {DIGESTS, *PLANNED} & {each.name for each in wrong}
    again = f"run its plan again (onceproof replay {folder})" if whole else "run the scenario again"
    return "\n".join([*lines, f"Put back a copy of the folder as the run left it, or {again}"])


def _saved(path: Path) -> dict[str, str]:
    """Return SHA-256 by name. Raises OSError, or ValueError if the file is not the one that was written."""
    if not _plain(path):
        raise ValueError("is no plain file")
    text = path.read_bytes()
    try:
        data = json.loads(text)
        files = {str(name): str(digest) for name, digest in data["files"].items()}
        form = int(data["form"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("altered: it is torn") from None
    # Byte for byte, or a line that stands twice would pass.
    if text != _text(files, form).encode():
        raise ValueError("altered: its own digest does not match")
    if form != FORM:
        saw = f"{'a newer' if form > FORM else 'an older'} version of onceproof made it, in form {form}"
        raise HarnessError(
            f"asked for the run in {path.parent}; {saw}. This version reads form {FORM}: run the scenario again"
        )
    return files


def _text(files: dict[str, str], form: int) -> str:
    body = {"form": form, "files": dict(sorted(files.items()))}
    digest = sha256(json.dumps(body, separators=(",", ":")).encode()).hexdigest()
    return json.dumps({**body, "digest": digest}, indent=1) + "\n"


def _wrong(path: Path | None, digest: str | None) -> str:
    """Return what is wrong with a file that should have this digest; empty if nothing is."""
    if path is None:
        return "missing"
    if digest is None:
        return "not of the run"
    try:
        if not _plain(path):
            return "is no plain file"
        return "" if store.digest(path) == digest else "altered"
    except OSError as failure:
        return f"unreadable: {failure.strerror or failure}"


def _paths(folder: Path) -> Iterator[Path]:
    """Yield every file that has a digest, or lies where each file has one: no folders, and no link is followed."""
    todo = [path for name in (*FILES, *FOLDERS) if os.path.lexists(path := folder / name)]
    while todo:
        path = todo.pop()
        try:
            folders = stat.S_ISDIR(path.lstat().st_mode) and path.name not in FILES
            todo += path.iterdir() if folders else ()
        except OSError:
            folders = False  # reported as unreadable
        if not folders:
            yield path


def _plain(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _name(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix()

"""The run folder: everything that is kept of one run, saved in stages, readable on its own.

    reports/<scenario slug>/<utc time>-<run id>/     0700, its files 0600
    reports/<scenario slug>/latest                   link to the newest run of that scenario
    reports/latest/                                  folder: what the last suite says of itself

Stage 0 holds what was planned, stage 1 what happened, stage 2 the verdict; `run.json` names the stage and is written
last, so a stage that it names is whole. With a verdict, all of it gets digests (`digests.py`). A disk that is full
or forbids to write becomes one clear error.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, UsageError
from harness.scenario import Scenario, Verdict

NEED_BYTES = 200 * 1024 * 1024
"""What a run of the usual size may write (logs, ledger, sink); a bigger one asks for more."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
PARTS = {
    "run": "run.json",
    "scenario": "scenario.yaml",
    "plan": "plan.json",
    "verdict": "verdict.json",
}
LATEST = "latest"


@dataclass(frozen=True)
class RunFolder:
    """Where the things of one run lie. Make one with `create` or `open`."""

    path: Path

    @classmethod
    def create(cls, reports: Path, scenario_name: str, run_id: str, *, need_bytes: int = NEED_BYTES) -> RunFolder:
        """Return a new, empty run folder and the scenario's `latest` link to it.

        Raises HarnessError if the disk has less than `need_bytes` free, or does not let us write."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", run_id):
            raise ValueError(f"a run id is 1 to 64 letters, digits, dots or dashes, not {run_id!r}")
        with disk("make the run folder", reports):
            reports.mkdir(parents=True, exist_ok=True)
        preflight(reports, need_bytes=need_bytes)
        parent = reports / slug(scenario_name)
        path = parent / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{run_id}"
        with disk("make the run folder", path):
            parent.mkdir(mode=0o700, exist_ok=True)
            if parent.is_symlink():
                raise HarnessError(f"{parent} is a link; a run writes only into its own folders. Remove the link")
            for folder in (path, path / "ledger", path / "sink", path / "logs"):
                folder.mkdir(mode=0o700)
            _point(parent / LATEST, path.name)
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Return the run folder at `path`, which may be a `latest` link or a file in it, with parts that can be read.

        Raises UsageError if it is none."""
        found = cls.find(path)
        if not found.run_json.is_file():
            raise UsageError(f"{path} is not a run folder: it has no run.json.{_runs_below(found.path)}")
        found.read()
        return found

    @classmethod
    def find(cls, path: Path) -> RunFolder:
        """Return the run folder as `open` does, without reading its parts."""
        folder = path.parent if path.is_file() else path
        if not folder.is_dir():
            raise UsageError(f"no run folder at {path}: there is no such folder. See reports/ for the runs there are")
        if not any(os.path.lexists(folder / name) for name in (PARTS["run"], "digests.json")):
            raise UsageError(f"{path} is not a run folder: it has no run.json.{_runs_below(folder)}")
        return cls(folder.resolve())

    @property
    def run_json(self) -> Path:
        return self.path / PARTS["run"]

    @property
    def attempts(self) -> Path:
        return self.path / "ledger" / "attempts.log"

    @property
    def source(self) -> Path:
        return self.path / "ledger" / "source.parquet"

    @property
    def history(self) -> Path:
        return self.path / "history.jsonl"

    @property
    def sink(self) -> Path:
        """The folder of `<i>.parquet` and `<i>.json`, i being the sink's place in the scenario."""
        return self.path / "sink"

    @property
    def verdict_json(self) -> Path:
        return self.path / PARTS["verdict"]

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def report_html(self) -> Path:
        return self.path / "report.html"

    def save(self, stage: int, **parts: Any) -> None:
        """Write the parts that are known now; each appears whole or not at all, `run.json` last.

        `run` (merged into what is there), `plan` and `verdict` are dictionaries or nouns;
        `scenario` is the text of the file. Raises HarnessError when the disk refuses."""
        known = _part(self.run_json) if self.run_json.is_file() else {}
        run = known | dict(parts.pop("run", {}))
        run["stage"] = max(stage, int(run.get("stage", 0)))
        run.setdefault("started", f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        for name, part in {**parts, "run": run}.items():
            text = part if name == "scenario" else _json(part)
            write(self.path / PARTS[name], text)
        self.make_private()

    def read(self, *names: str) -> dict[str, Any]:
        """Return the parts that are there, all or those named, by the names that `save` takes. Raises UsageError if one
        is not readable."""
        wanted = {name: self.path / PARTS[name] for name in names or PARTS}
        return {name: _part(path) for name, path in wanted.items() if path.is_file()}

    def verdict(self) -> Verdict | None:
        """Return the verdict as a noun, None if the run ended before it had one."""
        data = self.read("verdict").get("verdict")
        return None if data is None else noun(Verdict, data, str(self.verdict_json))

    def make_private(self) -> None:
        """Take group and world off everything in the folder; links are not followed."""
        for root, _, files in os.walk(self.path):
            for path, mode in ((Path(root), 0o700), *((Path(root, file), 0o600) for file in files)):
                # Spark cleans its checkpoint while we walk.
                with suppress(FileNotFoundError):
                    if not path.is_symlink():
                        path.chmod(mode)

    def remove(self) -> None:
        """Delete this run, and the scenario's `latest` link if it points here."""
        link = self.path.parent / LATEST
        if link.is_symlink() and link.resolve() == self.path.resolve():
            link.unlink()
        shutil.rmtree(self.path)


def scenario_of(data: Mapping[str, Any]) -> Scenario:
    """The inverse of `harness.scenario.plain` for a scenario, as `plan.json` holds it. Raises UsageError."""
    scenario: Scenario = noun(Scenario, data, "the stored scenario")
    return scenario


def slug(name: str) -> str:
    """Return a folder name for a scenario: `a-z0-9-`, at most 80 characters, never empty and never `latest`.

    What a long or non-Latin name loses is made up for by a few digits of its hash."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    short = re.sub(r"[^a-z0-9]+", "-", ascii_name.lower()).strip("-")
    lost = any(char.isalnum() and ord(char) > 0x24F for char in name)
    if short and short != LATEST and len(short) <= 80 and not lost:
        return short
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{short[:71].strip('-') or 'scenario'}-{digest}"


def latest(reports: Path) -> Path:
    """Return the folder `reports/latest`, made if it is not there."""
    folder = reports / LATEST
    with disk("make the suite's folder", folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def preflight(reports: Path, *, need_bytes: int = NEED_BYTES) -> None:
    """Raise HarnessError if the file system of `reports` has less than `need_bytes` free."""
    free = shutil.disk_usage(reports).free
    if free < need_bytes:
        raise HarnessError(
            f"a run may write {_size(need_bytes)} and {reports.absolute()} has {_size(free)} free. "
            "Free some space, or keep the reports elsewhere (--reports)"
        )


def write(path: Path, text: str) -> None:
    """Write `text` (UTF-8) to `path`, 0600, whole or not at all, and durably. Raises HarnessError."""
    half = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with disk("write", path):
        try:
            half.unlink(missing_ok=True)
            handle = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            half.replace(path)
            _sync_folder(path.parent)
        except OSError:
            with suppress(OSError):
                half.unlink(missing_ok=True)
            raise


@contextmanager
def disk(what: str, path: Path) -> Iterator[None]:
    """Turn an OSError into a HarnessError that says what could not be done, where, and the cure."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        if error.errno in FULL:
            text = f"could not {what}: the disk is full at {where}. Free some space and run it again"
        else:
            text = f"could not {what}: {error.strerror or error} at {where}. Make it writable, or choose another folder"
        raise HarnessError(text) from error


def digest(path: Path) -> str:
    """Return SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _json(part: Any) -> str:
    data = asdict(part) if is_dataclass(part) and not isinstance(part, type) else part
    return json.dumps(data, indent=1, default=str) + "\n"


def _part(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        words = f"{path} cannot be read: {error.strerror}"
        raise UsageError(f"{words}. Make it readable, or run the scenario again") from None
    if path.suffix != ".json":
        return text
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: {error}. Run the scenario again") from None
    if not isinstance(data, dict):
        raise UsageError(f"{path} is damaged: it holds a {type(data).__name__}, not an object")
    return data


def noun(kind: Any, data: Any, where: str) -> Any:
    """`data` as a noun of `kind`. Raises UsageError that names `where` it came from and the first thing wrong."""
    from pydantic import ValidationError

    try:
        return _reader(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        words = f"{where} is damaged, or of another version: {place}: {first['msg']}"
        raise UsageError(f"{words}. Run the scenario again") from None


@cache
def _reader(kind: Any) -> Any:
    # Late, because pydantic costs more to import than the rest of this module together.
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _point(link: Path, target: str) -> None:
    """Make `link` a relative link to `target` in one step, so that it is never missing."""
    half = link.with_name(f".{link.name}.{target}")
    half.symlink_to(target)
    half.replace(link)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _runs_below(folder: Path) -> str:
    runs = sorted(found.parent.name for found in folder.glob("*/run.json") if found.parent.name != LATEST)
    if runs:
        return f" Did you mean {folder / runs[-1]}?"
    return " Name a folder such as reports/<scenario>/<time>-<run id>"


def _size(count: int) -> str:
    return f"{count / 1024 / 1024:,.0f} MB"

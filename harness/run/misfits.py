"""What a program shows that does not fit its run: a checkpoint elsewhere, another topic.

A program that is put under test for the first time often has one of them as a literal. What the program's file says of
it is a help for the reader of an error; no decision is made by it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKPOINT, TOPIC, BROKERS = "checkpointLocation", "subscribe", "kafka.bootstrap.servers"
PACKAGES = "spark.jars.packages"
"""Options of a query's writer and reader, and of a session."""
OFFSETS_SHOWN = 200
RESOLVED = re.compile(r":: resolution report :: resolve (\d+)ms :: artifacts dl (\d+)ms")
"""What Ivy logs of the packages that Spark fetches."""
PLACES = re.compile(r"Checkpoint root \S+ resolved to (\S+)\.(?=\s)|\bcheckpointLocation=([^,\]\s]+)")
"""Where the log of a driver says that a query keeps its checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What is known of a program: its file `entry` by its `name`, the log of its driver, and the folders `within` which
    the run keeps checkpoints. `begun`: a query of it reads the run's source, `other` is what one reads instead.
    `absent` are the sinks that are not there."""

    entry: Path
    name: str
    log: Path | None
    within: Collection[str]
    source: str
    begun: bool
    other: str = ""
    absent: Collection[str] = ()


def packages_s(log: Path) -> float | None:
    """Return the seconds that Spark took for the packages that it was to fetch; None if its log names none."""
    try:
        found = RESOLVED.search(log.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return (int(found[1]) + int(found[2])) / 1000 if found else None


def misfits(shown: Shown) -> str:
    """Return sentences on what does not fit, each with a blank before it; empty where all seems to."""
    return "".join(f" {each}." for each in _sentences(shown))


def _sentences(shown: Shown) -> Iterator[str]:
    if shown.absent:
        yield f"Not there: {', '.join(shown.absent)}; make it in `setup` if the program does not"
    if not shown.begun:
        other = f"; its offsets are not of it: {shown.other[:OFFSETS_SHOWN]}" if shown.other else ""
        written = "".join(literal(shown.entry, option, name=shown.name) for option in (TOPIC, BROKERS))
        yield f"No query of the program read {shown.source}{other}{written}"
    if shown.log and (place := elsewhere(shown.log, shown.within)):
        yield kept_elsewhere(place, shown)
    if packages := literal(shown.entry, PACKAGES, name=shown.name):
        yield f"spark-submit passes over packages that the program names: name them in `conf`{packages}"


def kept_elsewhere(place: str | Path, shown: Shown) -> str:
    """Return a sentence about a checkpoint that is no folder of the run."""
    written = literal(shown.entry, CHECKPOINT, name=shown.name)
    return f"A query keeps its checkpoint in {place}, where the next run finds it{written}; pass it `{{checkpoint}}`"


def literal(entry: Path, option: str, *, name: str) -> str:
    """Return where a program gives `option` a literal: `; jobs/a.py:7 sets subscribe to "payments"`, by its file's
    `name`; empty if it does so nowhere."""
    given = re.compile(rf"""^[^#]*["']?\b{re.escape(option)}["']?\s*[,:=]\s*(["'])(.+?)\1""")
    try:
        lines = entry.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    found = ((number, match[2]) for number, line in enumerate(lines, 1) if (match := given.match(line)))
    return next((f'; {name}:{number} sets {option} to "{text}"' for number, text in found), "")


def elsewhere(log: Path, within: Collection[str]) -> str:
    """Return the checkpoint that the log of a driver names and that is in none of the folders; empty if there is
    none."""
    return next((place for place in _places(log) if not any(_below(place, each) for each in within)), "")


def _places(log: Path) -> Iterator[str]:
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for found in PLACES.finditer(text):
        yield (found[1] or found[2]).removeprefix("file://").removeprefix("file:")


def _below(place: str, folder: str) -> bool:
    return place == folder or place.startswith(f"{folder.rstrip('/')}/")

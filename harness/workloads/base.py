"""What every workload gives: records in a fixed order, and the columns that the ledger makes of them; and what a kind
of workload is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple, Protocol, runtime_checkable

from pydantic import Field

from harness.errors import UsageError
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.scenario import Input

RECORDS_MAX = 10_000_000
KEYS = 50
LOG_BEGIN, LOG_STEP, LOG_LATE_S = datetime(2026, 7, 30, 14, 0, 0), timedelta(milliseconds=250), 30.0


class Record(NamedTuple):
    """One record to send. `seq` counts from 0; without a partition the key decides."""

    seq: int
    key: bytes | None
    value: bytes
    partition: int | None = None


@dataclass(frozen=True)
class Column:
    """A column of the table `ledger`: its DuckDB type, and a DuckDB expression of that type. The expression is over
    `value` and `key` of a record as it is in the source, both VARCHAR."""

    name: str
    type: str
    expression: str


class Workload(Protocol):
    """An input known record by record. The same arguments give the same bytes, as often as they are asked for."""

    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def count(self) -> int:
        """How many records there are."""

    def records(self) -> Iterator[Record]:
        """Return all of them, from the first; each call begins at the first."""


@runtime_checkable
class ClosesWindows(Protocol):
    """A workload whose last records are sent by themselves, once all before them are planned."""

    @property
    def apart(self) -> int:
        """How many."""


class WorkloadKind(Protocol):
    """A kind of workload: a word after `workload`, or a key with its name if its model has one (`replay`)."""

    @property
    def about(self) -> About:
        """Who it is."""

    @property
    def records(self) -> int:
        """How many records are sent where the file does not say; 0 for all that there are."""

    def refusals(self, options: Mapping[str, Any], *, root: Path) -> Refusals:
        """Return what is wrong with its part of the file; `root` is the project's folder."""

    def make(self, input: Input, *, seed: int, root: Path) -> Workload:
        """Return the workload. Raises UsageError for numbers that make no sense, and a file that is missing or
        broken."""


@runtime_checkable
class ReadsFiles(Protocol):
    """A kind whose records come out of files: these decide what a run does."""

    def files(self, input: Input, *, root: Path) -> Sequence[Path]:
        """Return the files. Raises UsageError if one is missing."""


class Generated(Shape):
    """How the records of a generator are spread over keys."""

    keys: Annotated[int, v.whole(1, RECORDS_MAX), Field(description="how many keys the records are spread over")] = KEYS
    skew: Annotated[float, v.number(0, 10), Field(description="exponent of a Zipf law over the keys")] = 0.0


def spread(input: Input) -> tuple[int, float]:
    """Return keys and skew. Raises UsageError for numbers that make no sense."""
    keys, skew = int(input.options.get("keys", KEYS)), float(input.options.get("skew", 0))
    if input.records < 1 or keys < 1 or skew < 0:
        seen = f"records {input.records}, keys {keys}, skew {skew:g}"
        raise UsageError(f"asked for {seen}; records and keys begin at 1, skew at 0. Change them in the scenario")
    return keys, skew


class GeneratedKind:
    """What the generators have in common: a kind of them says who it is, and `generate`s."""

    records = 600

    def refusals(self, options: Mapping[str, Any], *, root: Path) -> Refusals:
        """Its numbers say for themselves what they may be."""
        return iter(())

    def generate(self, count: int, *, keys: int, skew: float, seed: int) -> Workload:
        """So many records."""
        raise NotImplementedError

    def make(self, input: Input, *, seed: int, root: Path) -> Workload:
        """Return the records."""
        keys, skew = spread(input)
        return self.generate(input.records, keys=keys, skew=skew, seed=seed)


class Keys:
    """Draws one of `names`: all alike at skew 0, else by Zipf's law with that exponent, the first name most often."""

    def __init__(self, names: list[str], skew: float, rng: Random) -> None:
        self.names = names
        self._weights = list(accumulate(1.0 / rank**skew for rank in range(1, len(names) + 1)))
        self._rng = rng

    def draw(self) -> str:
        return self._rng.choices(self.names, cum_weights=self._weights)[0]


@dataclass(frozen=True)
class LogLines:
    """Lines of a log, of requests r-00000001 to n of `keys` accounts; `line` writes one, by the number of its record
    and its account."""

    name: str
    columns: tuple[Column, ...]
    line: Callable[[Random, int, str], str]
    count: int
    keys: int
    skew: float
    seed: int

    def records(self) -> Iterator[Record]:
        """Yield all of them, from the first; each call begins at the first."""
        rng = Random(f"{self.name} {self.seed}")
        accounts = Keys([f"user{number}" for number in range(1, self.keys + 1)], self.skew, rng)
        for seq in range(self.count):
            account = accounts.draw()
            yield Record(seq, account.encode(), self.line(rng, seq, account).encode())


@dataclass(frozen=True)
class LogKind(GeneratedKind):
    """A kind of log, drawn from the seed."""

    about: About
    columns: tuple[Column, ...]
    line: Callable[[Random, int, str], str]

    def generate(self, count: int, *, keys: int, skew: float, seed: int) -> LogLines:
        """Drawn from the seed."""
        return LogLines(self.about.name, self.columns, self.line, count=count, keys=keys, skew=skew, seed=seed)


def matched(name: str, pattern: str, group: int, kind: str = "VARCHAR") -> Column:
    """Return a column that is a group of a pattern of the line. DuckDB takes no group beyond the ninth."""
    found = f"regexp_extract(value, '{pattern}', {group})"
    return Column(name, kind, found if kind == "VARCHAR" else f"cast({found} as {kind})")


def log_time(rng: Random, seq: int) -> datetime:
    """It rises by about 250 ms a line, with some lines late."""
    late_s = rng.uniform(0, LOG_LATE_S) if rng.randrange(20) == 0 else 0.0
    return LOG_BEGIN + timedelta(seconds=LOG_LATE_S) + seq * LOG_STEP - timedelta(seconds=late_s)

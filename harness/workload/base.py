"""What every workload gives: records in a fixed order, and the columns that the ledger makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import NamedTuple, Protocol


class Record(NamedTuple):
    """One record to send. `seq` counts from 0; without a partition the key decides."""

    seq: int
    key: bytes | None
    value: bytes
    partition: int | None = None


@dataclass(frozen=True)
class Column:
    """A column of the table `ledger`: its DuckDB type, and a DuckDB expression of that type over the columns
    `value` and `key`, both VARCHAR, of a record as it lies in the source."""

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
        """All of them, from the first; each call begins anew."""


class Keys:
    """Draws one of `names`: all alike at skew 0, else by Zipf's law with that exponent, the first name most often."""

    def __init__(self, names: list[str], skew: float, rng: Random) -> None:
        self.names = names
        self._weights = list(accumulate(1.0 / rank**skew for rank in range(1, len(names) + 1)))
        self._rng = rng

    def draw(self) -> str:
        return self._rng.choices(self.names, cum_weights=self._weights)[0]

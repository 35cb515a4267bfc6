"""The workload `transactions`: payments of accounts, as JSON, keyed by account."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Annotated

from pydantic import Field

from harness.fields import values as v
from harness.kinds import About
from harness.scenario import Input
from harness.workloads.base import Column, Generated, GeneratedKind, Keys, Record, spread

BEGIN = datetime(2026, 1, 1)
STEP = timedelta(milliseconds=250)
LATE_S = 30.0
ONE_IN_LATE = 20
CURRENCIES = ("EUR", "USD", "GBP", "CHF", "JPY")


def _field(name: str, kind: str) -> Column:
    return Column(name, kind, f"cast(json_extract_string(value, '$.{name}') as {kind})")


COLUMNS = (
    _field("id", "BIGINT"),
    _field("account", "VARCHAR"),
    _field("amount", "DECIMAL(18,2)"),
    _field("currency", "VARCHAR"),
    _field("event_time", "TIMESTAMP"),
    _field("seq", "BIGINT"),
)


class Transactions:
    """Ids 1 to n; `seq` counts per account from 1. Event time rises by about 250 ms a record; one record in twenty
    is late, by up to 30 s. Amounts are text with two places, so that they are not read as floats by accident.

    With `last_after_s` the last record lies so much later than it would, and is sent by itself."""

    columns = COLUMNS

    def __init__(self, count: int, *, keys: int, skew: float, seed: int, last_after_s: float = 0.0) -> None:
        self.count = count
        self.apart = int(last_after_s > 0)
        self._last_after = timedelta(seconds=last_after_s)
        self._keys = keys
        self._skew = skew
        self._seed = seed

    def records(self) -> Iterator[Record]:
        """Yield all of them, from the first; each call begins at the first."""
        rng = Random(f"transactions {self._seed}")
        accounts = Keys([f"acct-{number:04d}" for number in range(1, self._keys + 1)], self._skew, rng)
        homes = {account: rng.choice(CURRENCIES) for account in accounts.names}
        seen: Counter[str] = Counter()
        for seq in range(self.count):
            account = accounts.draw()
            seen[account] += 1
            value = {
                "id": seq + 1,
                "account": account,
                "amount": _amount(rng),
                "currency": homes[account],
                "event_time": self._moment(rng, seq).isoformat(timespec="microseconds"),
                "seq": seen[account],
            }
            yield Record(seq, account.encode(), json.dumps(value).encode())

    def _moment(self, rng: Random, seq: int) -> datetime:
        return _event_time(rng, seq) + (self._last_after if seq == self.count - 1 else timedelta())


def _amount(rng: Random) -> str:
    cents = rng.randint(1, 10_000_000)
    return f"{cents // 100}.{cents % 100:02d}"


def _event_time(rng: Random, seq: int) -> datetime:
    late_s = rng.uniform(0, LATE_S) if rng.randrange(ONE_IN_LATE) == 0 else rng.uniform(0, STEP.total_seconds())
    # Counted from a later beginning, so that no event lies before BEGIN.
    return BEGIN + timedelta(seconds=LATE_S) + seq * STEP - timedelta(seconds=late_s)


class Options(Generated):
    """How the payments are spread over accounts, and when the last one was made."""

    last_after: Annotated[
        v.Duration,
        Field(
            None,
            description="how much later in event time the last record lies, such as 1h: then a watermark closes the "
            "windows of all others, once all are planned and it is sent",
        ),
    ]


class Kind(GeneratedKind):
    """Drawn from the seed."""

    about = About(
        name="transactions",
        summary="payments of accounts as JSON, keyed by account",
        example="{workload: transactions, records: 600}",
        options=Options,
    )

    def make(self, input: Input, *, seed: int, root: Path) -> Transactions:
        """Drawn from the seed."""
        keys, skew = spread(input)
        last_after_s = float(input.options.get("last_after") or 0)
        return Transactions(input.records, keys=keys, skew=skew, seed=seed, last_after_s=last_after_s)


KIND = Kind()

"""How a query in append mode writes its windows: data only.

Each record falls into one window. The window is written once, by the first batch whose watermark is not before its end,
and not by the batches that took its records.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """`of` and `closes` are SQL expressions over `ledger`: the time that the watermark follows, and where the window of
    a record ends. The watermark lies `delay_s` seconds behind the latest `of` of the batches before."""

    of: str
    closes: str
    delay_s: float = 0.0

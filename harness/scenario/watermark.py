"""How a query writes windows that a watermark closes: data only.

Each record falls into one window. In append mode the window is written once: by the first batch whose watermark is not
before its end. The batches that took its records do not write it. In update mode each batch writes its records'
windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OutputMode(StrEnum):
    """Of Spark's output modes, those in which a watermark drops records."""

    APPEND = "append"
    UPDATE = "update"


@dataclass(frozen=True, kw_only=True)
class Watermark:
    """`of` and `closes` are SQL expressions over `ledger`: the time that the watermark follows, and where the window of
    a record ends. The watermark lies `delay_s` seconds behind the latest `of` of the batches before."""

    of: str
    closes: str
    delay_s: float = 0.0
    mode: OutputMode = OutputMode.APPEND

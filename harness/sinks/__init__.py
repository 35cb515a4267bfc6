"""Where the effect shows. One module or package each; `harness.sinks.base` says what it has.

reading   reads them back, and keeps them in the run folder
table     what was read of one sink, and how it lies there
"""

from __future__ import annotations

from harness.kinds import Registry
from harness.sinks.base import SinkKind

__all__ = ["SINKS"]

SINKS: Registry[SinkKind] = Registry("sink", "harness.sinks")

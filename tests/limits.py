"""How long a test waits for what ends by itself: a busy machine is slow, not wrong."""

from __future__ import annotations

PROCESS_S = 300.0
"""For a process of ours. Below pytest's own limit, which says nothing of what the process said."""

"""How long a test waits for what ends by itself, and how many examples a property has.

A busy machine is slow, not wrong.
"""

from __future__ import annotations

from hypothesis import settings

PROCESS_S = 300.0
"""For a process of ours. Below pytest's own limit, which says nothing of what the process said."""


def examples(number: int) -> int:
    """Return the number of a property's examples: `number`, or the profile's where that is the one for work."""
    few = settings.get_current_profile_name() == "work"
    return min(number, settings().max_examples) if few else number

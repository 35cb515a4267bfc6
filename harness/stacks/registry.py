"""The stacks that there are, found by their folders. Apart from the package, so that its words cost no import."""

from __future__ import annotations

from harness.kinds import Registry
from harness.stacks import DEFAULT
from harness.stacks.kind import StackKind

STACKS: Registry[StackKind] = Registry("stack", "harness.stacks", StackKind)


def names() -> list[str]:
    """Return the names of all stacks, the default one's first."""
    return sorted(STACKS.all(), key=lambda name: name != DEFAULT)

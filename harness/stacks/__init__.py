"""The stacks: where runs take place. Each says in its own folder what it can do, without what runs it."""

from __future__ import annotations

from harness.kinds import Registry
from harness.stacks.kind import StackKind

DEFAULT = "processes"
"""The stack of a command that names none."""
STACKS: Registry[StackKind] = Registry("stack", "harness.stacks", StackKind)


def names() -> list[str]:
    """Return the names of all stacks, the default one's first."""
    return sorted(STACKS.all(), key=lambda name: name != DEFAULT)

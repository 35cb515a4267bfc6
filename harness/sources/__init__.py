"""Sources: where the input goes in, and where it is read back. One module a kind, beside its component."""

from __future__ import annotations

from harness.kinds import Registry
from harness.sources.base import ForDStreams, SourceKind

SOURCES: Registry[SourceKind] = Registry("source", "harness.sources", SourceKind)


def by_receiver(name: str) -> bool:
    """Return whether DStreams programs read that source by a receiver. False for one that they cannot read."""
    kind = SOURCES[name] if name in SOURCES.all() else None
    return isinstance(kind, ForDStreams) and kind.receiver

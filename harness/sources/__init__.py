"""Sources: where the input goes in, and where it is read back. One module a kind, beside its component."""

from __future__ import annotations

from harness.kinds import Registry
from harness.sources.base import SourceKind

SOURCES: Registry[SourceKind] = Registry("source", "harness.sources", SourceKind)

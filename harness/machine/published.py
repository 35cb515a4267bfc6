"""Which version of a jar goes with a version of Spark: data in each component's `jars.json`, and one rule.

`{spark:3.5.7 4.0.0}` in a coordinate names the releases that Maven Central has, and becomes the nearest of Spark's own
minor version: a connector runs with a neighbouring patch release. `{line:4.0 4.1}` does the same by minor version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import StackError


@dataclass(frozen=True)
class Published:
    """A version of Spark, as `str.format` puts it into a coordinate."""

    version: str

    def __str__(self) -> str:
        return self.version

    def __format__(self, releases: str) -> str:
        return nearest(self.version, releases.split()) if releases else self.version


def nearest(version: str, releases: Sequence[str]) -> str:
    """Return the release of the same minor version whose patch number is nearest, the older of two. Raises StackError
    where there is none."""
    minor, patch = _parts(version)
    found = [(abs(_parts(each)[1] - patch), _parts(each)[1], each) for each in releases if _parts(each)[0] == minor]
    if not found:
        there = ", ".join(releases)
        raise StackError(f"Maven Central has it for Spark {there}, and not for {version}; take one of these")
    return min(found)[2]


def _parts(version: str) -> tuple[str, int]:
    """`4.1` and 3 of `4.1.3`; of `4.1.0.dev1` and of `4.1` the patch is 0."""
    numbers = [*version.split("."), "0"]
    return ".".join(numbers[:2]), int(numbers[2]) if numbers[2].isdecimal() else 0

"""Parts of a suite, one for each machine: `i/n` is the i-th of n.

A part is decided by the sorted paths alone: the n parts have no file in common, hold all of them together, and differ
in size by one at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from harness.errors import UsageError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shard:
    """The part `number`, from 1, of `of` parts."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str, option: str) -> Shard:
        """`2/3`. Raises UsageError that names the `option`."""
        found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        number, of = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= of:
            raise UsageError(f"{option} must be i/n, the i-th of n parts, such as 1/3, not {text!r}")
        return cls(number, of)

    def pick(self, all_: Sequence[Item], path: Callable[[Item], Path]) -> list[Item]:
        """Return those of this part, in the order in which they came; `path` names each as every machine does."""
        order = sorted({path(each).as_posix() for each in all_})
        mine = frozenset(order[self.number - 1 :: self.of])
        return [each for each in all_ if path(each).as_posix() in mine]

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

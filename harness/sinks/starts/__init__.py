"""What `onceproof new` writes: a scenario and a small pipeline, for each kind of sink that has a start.

shapes  what a pipeline does with its input, the same for every sink
write   both files

What a pipeline needs for one sink lies with that sink: `components/postgres/sink/start.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from harness.sinks.starts.shapes import Start

TEXT, NUMBER, TIME = "string", "bigint", "timestamp_ntz"


@dataclass(frozen=True, kw_only=True)
class Table:
    """What a pipeline writes: its `columns` by name, their types in Spark's SQL; `key` is one of them. `once`: one
    batch alone writes a key. Then a row that is there twice was repeated."""

    name: str
    columns: Mapping[str, str]
    key: str
    once: bool = True

    @property
    def values(self) -> tuple[str, ...]:
        """The columns beside the key."""
        return tuple(name for name in self.columns if name != self.key)

    def sql(self, types: Mapping[str, str], *, key: str = "") -> str:
        """Return its columns as a CREATE TABLE has them: types of Spark by `types`, where another name is needed, and
        the `key`'s constraint."""
        words = {name: types.get(kind, kind) for name, kind in self.columns.items()}
        return ", ".join(f"{name} {kind}{key * (name == self.key)}" for name, kind in words.items())

    def hint(self, change: str, indent: str = "") -> str:
        """Return a comment on what breaks the program; none where rows of the same key would show without any fault."""
        return f"{indent}# Try it {change}: the same scenario then finds duplicates.\n" if self.once else ""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a sink adds to a pipeline. In `sink` and `beside`, `$name` stands for what the pipeline is called.

    where     what it is, in a sentence
    sink      lines of its part of a scenario, `expected` and key aside
    why       a sentence on batches that run twice, in the place of the shape's
    options   command-line options beside Kafka's, with their placeholders
    examples  what a user writes instead
    header    lines of the block `# /// onceproof` before the sink's
    library   imports of Python's own library, a line each
    imports   those of its client
    conf      of the Spark session, each value as Python
    before    code of the module
    batch     code in `main` that defines `batch(rows, number)`, `args` and `spark` being there
    writer    calls on the stream's writer that take the place of `foreachBatch(batch)`
    beside    files that go into the pipeline's folder with it: name and text
    """

    where: str
    sink: tuple[str, ...]
    why: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    examples: str = ""
    header: tuple[str, ...] = ()
    library: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    batch: str = ""
    writer: tuple[str, ...] = ()
    beside: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class HasStart(Protocol):
    """A kind of sink that `onceproof new` knows how to begin with."""

    @property
    def start(self) -> Start:
        """Its start."""

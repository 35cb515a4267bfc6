"""The workload `replay`: a user's own file, each row a record, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from harness.errors import UsageError
from harness.fields import values as v
from harness.fields.paths import missing
from harness.fields.shape import Shape
from harness.kinds import About, Refusal, Refusals
from harness.scenario import Input
from harness.workloads.base import Workload


class Replayed(Shape):
    """Which file is replayed, and which of its columns is the record's key."""

    replay: Annotated[v.Line, Field(description="a JSONL, CSV or Parquet file, relative to the project root")]
    key: Annotated[v.Column, Field(None, description="the column of a replayed file that is the record's key")]


class Kind:
    """Sent in the file's own order."""

    about = About(
        name="replay",
        summary="a file of your own, JSONL, CSV or Parquet, each row a record",
        example="{replay: data/orders.jsonl}",
        options=Replayed,
    )
    records = 0

    def refusals(self, options: Mapping[str, Any], *, root: Path) -> Refusals:
        """The file is there."""
        if "replay" in options and (why := missing(options["replay"], root)):
            yield Refusal("replay", why)

    def make(self, input: Input, *, seed: int, root: Path) -> Workload:
        """Return the records; all of the file if the scenario says no number."""
        # Scenario files are read without DuckDB.
        from harness.workloads.replay_file import Replay

        key = input.options.get("key")
        return Replay(self.files(input, root=root)[0], records=input.records, key=None if key is None else str(key))

    def files(self, input: Input, *, root: Path) -> list[Path]:
        """Return the file that is replayed."""
        from harness.workloads.replay_file import located

        if "replay" not in input.options:
            raise UsageError("asked to replay no file; name one: {replay: FILE}")
        return [located(str(input.options["replay"]), root)]


KIND = Kind()

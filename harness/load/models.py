"""The shape of a scenario file and of a pipeline's header block, as pydantic models.

`harness.load.reader` checks a file against them key by key, `harness.load.schema` makes the JSON Schema of them.
What one value must look like is in `harness.load.values`; what several mean together, in `harness.load.meaning`.
A `Field(None)` only says that the key may be left out: the defaults are those of `harness.scenario`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from harness.load import values as v

RECORDS_MAX = 10_000_000
BATCH_MAX = 1_000_000


class Workload(StrEnum):
    """The generators that a file may name."""

    TRANSACTIONS = "transactions"
    ACCESS_LOGS = "access_logs"


class Which(StrEnum):
    """How many executors die."""

    ONE = "one"
    ALL = "all"


class Database(StrEnum):
    """The databases of a stack."""

    MAIN = "main"
    SECOND = "second"


class View(StrEnum):
    """What a sink's query may do to the rows, on purpose."""

    DEDUPLICATED = "deduplicated"


class Shape(BaseModel):
    """A mapping of known keys. `short` names the key that a bare text stands for; `hidden` may only be used so."""

    model_config = ConfigDict(extra="forbid")
    short: ClassVar[str] = ""
    hidden: ClassVar[bool] = False


class LaunchShape(Shape):
    """How the program is started and how far it says it is: in a scenario's `pipeline`, or in the header block."""

    args: Annotated[list[v.Template], Field(None)]
    env: Annotated[dict[v.Variable, v.Template], Field(None)]
    conf: Annotated[dict[v.Conf, v.Template], Field(None, description="Spark's own dotted names")]
    executors: Annotated[int, v.whole(1, 64), Field(None)]
    frontier: Annotated[v.Frontier, Field(None, description="checkpoint, group, or SQL for (partition, next offset)")]
    interval: Annotated[v.Duration, Field(None, description="the longest without a commit while records wait")]


class PipelineShape(LaunchShape):
    """The program under test."""

    short: ClassVar[str] = "entry"
    entry: Annotated[v.Template, Field(description="relative to the project root, or {spark.home}/...")]


class SetupShape(Shape):
    """SQL to run before the pipeline starts, by database."""

    postgres: Annotated[v.Template, Field(None)]
    second: Annotated[v.Template, Field(None, alias="postgres.second")]


class OrderShape(Shape):
    """Rows with equal `per` must have `follows` rising when sorted by `by`."""

    by: v.Column
    follows: v.Column
    per: list[v.Column]


class SinkShape(Shape):
    """Where the effect shows, and what it should be."""

    postgres: Annotated[v.TableOrQuery, Field(None, description="a table or a query")]
    console: Annotated[v.Flag, Field(None, description="a sink that cannot be read back")]
    database: Annotated[Database, v.choice(Database), Field(None)]
    effect: Annotated[v.Query, Field(None, description="SQL over the table `ledger`")]
    key: Annotated[list[v.Column], Field(None, description="the columns that name a row")]
    order: Annotated[OrderShape, Field(None)]
    query: Annotated[v.Folder, Field(None, description="the query that feeds it, by its checkpoint's folder")]
    view: Annotated[View, v.choice(View), Field(None, description="the query folds equal rows on purpose")]


class InputShape(Shape):
    """What the pipeline is fed."""

    workload: Annotated[Workload, v.choice(Workload), Field(None)]
    replay: Annotated[v.Line, Field(None, description="a JSONL, CSV or Parquet file, relative to the project root")]
    records: Annotated[int, v.whole(1, RECORDS_MAX), Field(None)]
    keys: Annotated[int, v.whole(1, RECORDS_MAX), Field(None)]
    partitions: Annotated[int, v.whole(1, 1000), Field(None)]
    rate: Annotated[v.Rate, Field(None)]
    skew: Annotated[float, v.number(0, 10), Field(None, description="exponent of a Zipf law over the keys")]
    key: Annotated[v.Column, Field(None, description="the column of a replayed file that is the record's key")]


class WhenShape(Shape):
    """A trigger: one of window, failpoint, records, rows, elapsed; some take a batch."""

    window: Annotated[v.Place, Field(None)]
    failpoint: Annotated[v.Label, Field(None)]
    records: Annotated[int, v.whole(1, RECORDS_MAX), Field(None)]
    rows: Annotated[int, v.whole(0, RECORDS_MAX), Field(None, description="0: before the first row")]
    elapsed: Annotated[v.Duration, Field(None)]
    batch: Annotated[int, v.whole(0, BATCH_MAX), Field(None)]
    query: Annotated[v.Folder, Field(None, description="a window of this query only, by its checkpoint's folder")]


class StepShape(Shape):
    """One line of a schedule."""

    when: WhenShape
    do: v.Deed
    victim: Annotated[v.Prey, Field(None)]
    which: Annotated[Which, v.choice(Which), Field(None)]
    for_s: Annotated[v.Duration, Field(None, alias="for")]


class RestartShape(Shape):
    """What the supervisor does after a death of the driver."""

    after: Annotated[v.Pause, Field(None)]
    at_most: Annotated[int, v.whole(0, 1000), Field(None, alias="at most")]


class ExpectShape(Shape):
    """What the verdict should be: a bare word, or the exact kinds of finding."""

    short: ClassVar[str] = "word"
    hidden: ClassVar[bool] = True
    word: Annotated[v.PlainWord, Field(None)]
    violated: Annotated[list[v.FindingKind], Field(None)]
    unhurt: Annotated[v.Flag, Field(None, description="true when the violation shows without faults too")]


class DefaultsShape(Shape):
    """What both a scenario and a header block may say; the scenario's own key wins."""

    setup: Annotated[SetupShape, Field(None)]
    sink: Annotated[list[SinkShape], Field(None, description="one or several; the pipeline's header may give it")]
    together: Annotated[v.Flag, Field(None, description="true when the sinks must agree")]
    input: Annotated[InputShape, Field(None)]
    settle: Annotated[v.Duration, Field(None, description="how long the sink must stay unchanged")]


class HeaderShape(LaunchShape, DefaultsShape):
    """What a pipeline's header block may say."""


class ScenarioShape(DefaultsShape):
    """A scenario file."""

    name: v.Line
    why: Annotated[v.Text, Field(None)]
    pipeline: PipelineShape
    guarantee: Annotated[v.Promise, Field(None)]
    schedule: Annotated[list[StepShape], Field(None)]
    restart: Annotated[RestartShape, Field(None)]
    expect: Annotated[ExpectShape, Field(None)]
    within: Annotated[v.Duration, Field(None, description="how long the run may take, e.g. 120s")]
    tags: Annotated[list[v.Tag], Field(None)]
    seed: Annotated[int, v.whole(0, 2**63 - 1), Field(None)]

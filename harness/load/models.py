"""The shape of a scenario file and of a pipeline's header block, as pydantic models.

`harness.load.reader` checks a file against them key by key, `harness.load.schema` makes the JSON Schema of them.
What one value must look like is in `harness.fields.values`; what several mean together, in `harness.load.meaning`.
A `Field(None)` only says that the key may be left out: the defaults are those of `harness.scenario`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from harness.errors import UsageError
from harness.faults import FAULTS
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About
from harness.triggers import TRIGGERS

RECORDS_MAX = 10_000_000
BATCH_MAX = 1_000_000


class Workload(StrEnum):
    """The generators that a file may name."""

    TRANSACTIONS = "transactions"
    ACCESS_LOGS = "access_logs"


class Database(StrEnum):
    """The databases of a stack."""

    MAIN = "main"
    SECOND = "second"


class View(StrEnum):
    """What a sink's query may do to the rows, on purpose."""

    DEDUPLICATED = "deduplicated"


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


class ClaimShape(DefaultsShape):
    """A scenario file without its schedule."""

    name: v.Line
    why: Annotated[v.Text, Field(None)]
    pipeline: PipelineShape
    guarantee: Annotated[v.Promise, Field(None)]
    restart: Annotated[RestartShape, Field(None)]
    expect: Annotated[ExpectShape, Field(None)]
    within: Annotated[v.Duration, Field(None, description="how long the run may take, e.g. 120s")]
    tags: Annotated[list[v.Tag], Field(None)]
    seed: Annotated[int, v.whole(0, 2**63 - 1), Field(None)]


def scenario_shape() -> type[Shape]:
    """The shape of a scenario file, with the triggers and faults that there are here."""
    kinds = (*(kind.about for kind in TRIGGERS), *(kind.about for kind in FAULTS))
    known = tuple(map(id, kinds))
    if known not in _MADE:
        step: Any = _step(_when(kinds[: len(TRIGGERS.all())]), kinds[len(TRIGGERS.all()) :])
        made = create_model(
            "ScenarioShape", __base__=ClaimShape, __doc__="A scenario file.", schedule=(list[step], Field(None))
        )
        _MADE[known] = kinds, made
    return _MADE[known][1]


_MADE: dict[tuple[int, ...], tuple[tuple[About, ...], type[Shape]]] = {}
"""By who they are: kinds of other packages need not be hashable. The kinds are kept, so that no other has their id."""


def options() -> dict[str, str]:
    """By each key that may stand beside a fault, what it says."""
    return {
        info.alias or name: " ".join((kind.about.options.__doc__ or "").split()).rstrip(".")
        for kind in FAULTS
        for name, info in kind.about.options.model_fields.items()
    }


def annotated(info: FieldInfo) -> Any:
    """The type of a field of a model, with all that is annotated."""
    return Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation


def _when(triggers: tuple[About, ...]) -> type[Shape]:
    names = ", ".join(kind.name for kind in triggers)
    named: Any = {kind.name: (kind.options, Field(None, description=kind.summary)) for kind in triggers}
    return create_model(
        "WhenShape",
        __base__=Shape,
        __doc__=f"A trigger: one of {names}; some take a batch.",
        **named,
        batch=(Annotated[int, v.whole(0, BATCH_MAX)], Field(None)),
        query=(v.Folder, Field(None, description="a window of this query only, by its checkpoint's folder")),
    )


def _step(when: type[Shape], faults: tuple[About, ...]) -> type[Shape]:
    keys: dict[str, Any] = {}
    for kind in faults:
        for name, info in kind.options.model_fields.items():
            if name in keys and keys[name][0] != annotated(info):
                saw = f"`{info.alias or name}` of `{kind.name}` is of another type than that of another fault"
                raise UsageError(f"asked for the keys of a step; saw that {saw}. Give it another name")
            keys[name] = (annotated(info), Field(None, alias=info.alias))
    names = [kind.name for kind in faults]
    return create_model(
        "StepShape",
        __base__=Shape,
        __doc__="One line of a schedule.",
        when=(when, ...),
        do=(Annotated[str, v.one_of(names)], ...),
        **keys,
    )

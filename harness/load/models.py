"""The shape of a scenario file and of a pipeline's header block, as pydantic models.

`harness.load.reader` checks a file against them key by key, `harness.load.json_schema` makes the JSON Schema of them.
What one value must look like is in `harness.fields.values`; what several mean together, in `harness.load.cross_checks`.
A `Field(None)` only says that the key may be left out: the defaults are those of `harness.scenario`.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, create_model
from pydantic.fields import FieldInfo

from harness.errors import UsageError
from harness.faults import FAULTS
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Registry
from harness.scenario import Word
from harness.scenario.watermark import OutputMode
from harness.sinks import SINKS
from harness.sources import SOURCES
from harness.triggers import TRIGGERS
from harness.workloads import WORKLOADS
from harness.workloads.base import RECORDS_MAX

BATCH_MAX = 1_000_000


class View(StrEnum):
    """What the reader of a sink does to the rows: a query may fold them on purpose, code of one's own may give all."""

    DEDUPLICATED = "deduplicated"
    COMPLETE = "complete"


VIEWS = "deduplicated: equal rows are folded on purpose; complete: own code gives every row"


class LaunchShape(Shape):
    """How the program is started and how far it says it is: in a scenario's `pipeline`, or in the header block."""

    args: Annotated[list[v.Template], Field(None)]
    env: Annotated[dict[v.Variable, v.Template], Field(None)]
    conf: Annotated[dict[v.Conf, v.Template], Field(None, description="Spark's own dotted names")]
    executors: Annotated[int, v.whole(1, 64), Field(None)]
    progress: Annotated[
        v.Progress,
        Field(None, description="checkpoint, async, dstreams, group, or a query for (partition, next offset)"),
    ]
    progress_in: Annotated[
        v.Queried, Field(None, description="the component that the query is put to, if several may be meant")
    ]
    checkpoint: Annotated[
        v.Kept, Field(None, description="the component that {checkpoint} is in, such as hdfs; else the run's folder")
    ]
    interval: Annotated[v.Duration, Field(None, description="the longest without a commit while records wait")]


class PipelineShape(LaunchShape):
    """The program under test."""

    short: ClassVar[str] = "entry"
    entry: Annotated[v.Template, Field(description="relative to the project root, or {spark.home}/...")]
    spark: Annotated[v.SparkVersion, Field(None, description="the Spark version that it runs on, such as 3.5")]


class OrderShape(Shape):
    """Rows with equal `per` must have `follows` rising when sorted by `by`."""

    by: v.Column
    follows: v.Column
    per: list[v.Column]


class WatermarkShape(Shape):
    """How a query writes windows. In append mode each is written once, by the first batch whose watermark is not before
    its end; in update mode by each batch that takes a record of it."""

    of: Annotated[v.Line, Field(description="the time that the watermark follows: SQL over `ledger`")]
    closes: Annotated[v.Line, Field(description="where the window of a record ends: SQL over `ledger`")]
    delay: Annotated[v.Pause, Field(None, description="how far the watermark lies behind the latest time")]
    mode: Annotated[
        OutputMode, v.choice(OutputMode), Field(None, description="the query's output mode; append if it is left out")
    ]


class ExpectedShape(Shape):
    """The rows that a sink should hold, whatever its kind."""

    expected: Annotated[v.Query, Field(None, description="SQL over the table `ledger`")]
    key: Annotated[list[v.Column], Field(None, description="the columns that name a row")]
    order: Annotated[OrderShape, Field(None)]
    part: Annotated[v.Part, Field(None, description="another part of its component: second for postgres.second")]
    query: Annotated[v.Folder, Field(None, description="the query that feeds it, by its checkpoint's folder")]
    watermark: Annotated[
        WatermarkShape,
        Field(None, description="its query writes windows, and a watermark drops what comes after their end"),
    ]
    view: Annotated[View, v.choice(View), Field(None, description=VIEWS)]


class RestartShape(Shape):
    """What the supervisor does after a death of the driver."""

    after: Annotated[v.Pause, Field(None)]
    max_restarts: Annotated[int, v.whole(0, 1000), Field(None)]
    spark: Annotated[
        v.SparkVersion, Field(None, description="another Spark version from the second attempt on: an upgrade")
    ]


class OutcomeShape(Shape):
    """What is expected at one crash point: a bare word, or the exact kinds of finding."""

    short: ClassVar[str] = "word"
    hidden: ClassVar[bool] = True
    word: Annotated[v.PlainWord, Field(None)]
    violated: Annotated[list[v.FindingKind], Field(None)]


class VerdictShape(OutcomeShape):
    """What the verdict should be: a bare word, or the exact kinds of finding; of a sweep also by crash point."""

    others: ClassVar[str] = "at"
    default: Annotated[
        Word, v.choice((Word.HELD,)), Field(None, description="of a sweep, at the crash points that are not named")
    ]
    at: Annotated[dict[str, OutcomeShape], Field(None, description="of a sweep, by the name of a crash point")]
    without_faults: Annotated[v.Flag, Field(None, description="true when the violation shows without faults too")]


class KnownShape(Shape):
    """A failure that is being worked on: it is shown apart until that day. `run` and pytest ask for its kinds."""

    issue: Annotated[v.Line, Field(description="where it is written down, such as a URL")]
    until: Annotated[v.Day, Field(description="the last day on which it is no news, such as 2026-12-31")]
    violated: Annotated[
        list[v.FindingKind], Field(None, description="its kinds of finding; one with another kind is a failure")
    ]


class DefaultsShape(Shape):
    """What both a scenario and a header block may say, but for sinks and input; the scenario's own key wins."""

    setup: Annotated[
        dict[v.Prepared, v.Template], Field(None, description="by component, such as SQL before the start")
    ]
    together: Annotated[v.Flag, Field(None, description="true when the sinks must agree")]
    quiet_period: Annotated[v.Duration, Field(None, description="how long the sink must stay unchanged")]


class StartShape(LaunchShape, DefaultsShape):
    """What a pipeline's header block may say, but for sinks and input."""


class ClaimShape(DefaultsShape):
    """A scenario file without its sinks, its input and its schedule."""

    name: v.Line
    why: Annotated[v.Text, Field(None)]
    pipeline: PipelineShape
    guarantee: Annotated[v.Promise, Field(None)]
    restart: Annotated[RestartShape, Field(None)]
    verdict: Annotated[VerdictShape, Field(None)]
    crash_points: Annotated[v.CrashPoints, Field(None, description="those that a sweep tries, in place of a schedule")]
    timeout: Annotated[v.Duration, Field(None, description="how long the run may take, e.g. 120s")]
    tags: Annotated[list[v.Tag], Field(None)]
    seed: Annotated[int, v.whole(0, 2**63 - 1), Field(None)]
    known: Annotated[KnownShape, Field(None)]


REGISTRIES: tuple[Registry[Any], ...] = (TRIGGERS, FAULTS, WORKLOADS, SINKS, SOURCES)
SEVERAL = "one or several; the pipeline's header may give it"


class Shapes(NamedTuple):
    """The shapes of whole texts: a scenario file, and a header block."""

    scenario: type[Shape]
    header: type[Shape]


def shapes() -> Shapes:
    """With the kinds that there are here."""
    kinds = tuple(tuple(kind.about for kind in registry) for registry in REGISTRIES)
    known = tuple(tuple((about.name, about.summary, id(about.options)) for about in part) for part in kinds)
    if known not in _MADE:
        triggers, faults, workloads, sinks, sources = kinds
        step: Any = _step(_when(triggers), faults)
        both: Any = {
            "sink": (list[_sink(sinks)], Field(None, description=SEVERAL)),  # type: ignore[misc]
            "input": (_input(workloads, sources), Field(None)),
        }
        steps: Any = {"schedule": (list[step], Field(None))}
        claim = create_model("ScenarioShape", __base__=ClaimShape, __doc__="A scenario file.", **both, **steps)
        header = create_model("HeaderShape", __base__=StartShape, __doc__="A header.", **both)
        _MADE[known] = kinds, Shapes(claim, header)
    return _MADE[known][1]


_MADE: dict[tuple[tuple[tuple[str, str, int], ...], ...], tuple[Any, Shapes]] = {}
"""By what is in them of a kind, which may say who it is in other words each time that it is asked. Its keys need not be
hashable; they are kept, so that no others have their id."""


def keys(registry: Registry[Any]) -> dict[str, str]:
    """By each key that a kind of a registry may have beside its name, what it says."""
    return {
        info.alias or name: meaning(kind.about, info)
        for kind in registry
        for name, info in kind.about.options.model_fields.items()
    }


def meaning(kind: About, info: FieldInfo) -> str:
    """Return what a key of a kind says: its own description, else that of the model."""
    return info.description or " ".join((kind.options.__doc__ or "").split()).rstrip(".")


def own(kind: About) -> dict[str, str]:
    """Return by each key of a kind, the name that its model has for it."""
    return {info.alias or name: name for name, info in kind.options.model_fields.items()}


def implicit(kind: About) -> bool:
    """Return whether its name is a key of the file, and not a value."""
    return kind.name in own(kind)


def annotated(info: FieldInfo) -> Any:
    """Return the type of a field of a model, with all that is annotated."""
    return Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation


def _when(triggers: tuple[About, ...]) -> type[Shape]:
    names = ", ".join(kind.name for kind in triggers)
    fields = {name: info for kind in triggers if kind.beside for name, info in kind.beside.model_fields.items()}
    if taken := {"batch", "query", *fields} & {kind.name for kind in triggers}:
        saw = f"a trigger is called {taken.pop()!r}, which narrows any of them"
        raise UsageError(f"asked for the keys of `when`; saw that {saw}. Give it another name")
    named: Any = {kind.name: (kind.options, Field(None, description=kind.summary)) for kind in triggers}
    beside: Any = {name: (annotated(info), Field(None, description=info.description)) for name, info in fields.items()}
    return create_model(
        "WhenShape",
        __base__=Shape,
        __doc__=f"A trigger: one of {names}; some take a batch.",
        **named,
        **beside,
        batch=(Annotated[int, v.whole(0, BATCH_MAX)], Field(None)),
        query=(v.Folder, Field(None, description="a crash point of this query only, by its checkpoint's folder")),
    )


def _sink(sinks: tuple[About, ...]) -> type[Shape]:
    doc = "Where the pipeline writes, and the rows that it should hold."
    return create_model(
        "SinkShape", __base__=ExpectedShape, __doc__=doc, **_merged("sink", sinks, ExpectedShape.model_fields)
    )


def _input(workloads: tuple[About, ...], sources: tuple[About, ...]) -> type[Shape]:
    names = [kind.name for kind in workloads if not implicit(kind)]
    return create_model(
        "InputShape",
        __base__=Shape,
        __doc__="What the pipeline is fed.",
        workload=(Annotated[str, v.one_of(names)], Field(None)),
        source=(Annotated[str, v.one_of([kind.name for kind in sources])], Field(None)),
        records=(v.counted(1, RECORDS_MAX), Field(None)),
        rate=(v.Rate, Field(None)),
        **_merged("input", (*workloads, *sources), ("workload", "source", "records", "rate")),
    )


def _step(when: type[Shape], faults: tuple[About, ...]) -> type[Shape]:
    return create_model(
        "StepShape",
        __base__=Shape,
        __doc__="One line of a schedule.",
        when=(when, ...),
        do=(Annotated[str, v.one_of([kind.name for kind in faults])], ...),
        **_merged("step", faults, ("when", "do")),
    )


def _merged(place: str, kinds: tuple[About, ...], taken: Collection[str]) -> dict[str, Any]:
    """Return the fields of all kinds. Raises UsageError for a key that is `taken`, and where two read one
    differently."""
    fields: dict[str, Any] = {}
    known: dict[str, tuple[str, Any]] = {}
    for kind in kinds:
        for name, info in kind.options.model_fields.items():
            key = info.alias or name
            if key in taken or known.setdefault(key, (name, annotated(info))) != (name, annotated(info)):
                saw = f"`{key}` of `{kind.name}` is another one's, or is read differently by another one"
                raise UsageError(f"asked for the keys of `{place}`; saw that {saw}. Give it another name")
            fields[name] = (annotated(info), Field(None, alias=info.alias, description=info.description))
    return fields

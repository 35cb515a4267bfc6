"""Writes a scenario and a pipeline to start from. They work as they are written."""

from __future__ import annotations

import re
import sys
import textwrap
from importlib.metadata import packages_distributions
from pathlib import Path
from string import Template

from harness.errors import UsageError
from harness.sinks import SINKS
from harness.sinks.starts import HasStart, Parts
from harness.sinks.starts.shapes import SHAPES, PipelineShape, Start

WIDTH = 120
NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")

SCENARIO = Template("""\
name: $name when its driver dies between the sink's commit and the offsets' commit
why: that batch runs a second time, and only a sink that does not mind gets it right
pipeline: pipelines/$name.py         # its header block says how it is started and what its sink should hold
guarantee: exactly-once
input: {workload: transactions, records: 600, keys: 50, partitions: 3$input}     # or {replay: data/your.jsonl}
schedule:
  - {when: {point: sink-committed, batch: 3}, do: kill driver}
verdict: $expected
timeout: 240s
""")
HELD = "held                            # of a broken version: {violated: [duplicated]}"

PIPELINE = Template('''\
"""$what into $where.

$why

    spark-submit $name.py --bootstrap localhost:9092 --topic payments$examples \\\\
        --checkpoint /data/checkpoints/$name
"""

# /// onceproof
# args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}",$options
#   --checkpoint, "{checkpoint}"]
$header# ///

$imports
PAYMENT = "id bigint, account string, amount decimal(12, 2), event_time timestamp_ntz"
$before

def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ($names):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    spark = (
        SparkSession.builder.appName("$name")
        .config("spark.sql.shuffle.partitions", "3")
$conf        .getOrCreate()
    )
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 60)
        .load()
    )
    payments = records.selectExpr(f"from_json(cast(value as string), '{PAYMENT}') as p").select("p.*")
    $rows
$batch
    query = (
        rows.writeStream$writer
        .option("checkpointLocation", args.checkpoint)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
''')


def scaffold(name: str, sink: str, shape: str, folder: Path) -> list[Path]:
    """Write the files under `folder`; returns their paths, the scenario's first. Raises UsageError for a bad name, a
    sink without a start, a shape that it does not take, or a file in the way."""
    if not NAME.fullmatch(name):
        raise UsageError(f"asked for the name {name!r}; use small letters, digits and '_', beginning with a letter")
    # An editable install of ours names no files.
    ours = __name__.partition(".")[0]
    if name in sys.stdlib_module_names or name in packages_distributions() or name == ours:
        hides = f"a program of that name hides the module {name} from itself and from those beside it"
        raise UsageError(f"asked for the name {name!r}; {hides}. Take another one")
    start = _start(sink, shape)
    wanted = start.shapes[shape]
    parts = start.parts(wanted.table)
    files = {
        folder / "scenarios" / f"{name}.yaml": _scenario(name, start, wanted),
        folder / "pipelines" / f"{name}.py": _pipeline(name, parts, wanted),
        **{folder / "pipelines" / _called(file, name): _called(text, name) for file, text in parts.beside.items()},
    }
    for path in files:
        if path.exists():
            raise UsageError(f"asked to write {path}; it is there already. Take another name, or remove it")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)


def starts() -> dict[str, Start]:
    """Return each kind of sink that has one, and its start."""
    return {name: kind.start for name, kind in SINKS.all().items() if isinstance(kind, HasStart)}


def _start(sink: str, shape: str) -> Start:
    known = starts()
    if sink not in known:
        raise UsageError(f"asked for the sink {sink!r}; there are starts for {', '.join(known)}")
    if shape not in SHAPES:
        raise UsageError(f"asked for the shape {shape!r}; there are {', '.join(SHAPES)}")
    if shape not in known[sink].shapes:
        takes = ", ".join(known[sink].shapes)
        others = ", ".join(name for name, start in known.items() if shape in start.shapes)
        raise UsageError(f"asked for the shape {shape!r} into {sink}; it takes {takes}. {others} take {shape}")
    return known[sink]


def _scenario(name: str, start: Start, shape: PipelineShape) -> str:
    expected = f"{{violated: [{', '.join(start.broken)}]}}" if start.broken else HELD
    return SCENARIO.substitute(name=name, input=shape.input, expected=expected)


def _called(text: str, name: str) -> str:
    return Template(text).safe_substitute(name=name)


def _pipeline(name: str, parts: Parts, shape: PipelineShape) -> str:
    names = ["bootstrap", "topic", *(option.removeprefix("--") for option in parts.options), "checkpoint"]
    writer = parts.writer or (f'.outputMode("{shape.mode}")', ".foreachBatch(batch)")
    sink = [
        "sink:",
        *(f"  {_called(line, name)}" for line in parts.sink),
        "  expected: |",
        *(f"    {line}" for line in shape.expected),
    ]
    lines = [*parts.header, *sink, f"  key: [{shape.table.key}]", *(f"  {line}" for line in shape.sink)]
    return PIPELINE.substitute(
        name=name,
        what=shape.what,
        where=parts.where,
        why=textwrap.fill(parts.why or f"A batch that runs twice does no harm: {shape.why}.", WIDTH),
        examples=parts.examples,
        options="".join(f' {option}, "{value}",' for option, value in parts.options.items()),
        header="".join(f"# {line}\n" for line in lines),
        imports=_imports(parts, shape),
        before=f"{parts.before.rstrip()}\n" if parts.before else "",
        names=", ".join(f'"{each}"' for each in names),
        conf="".join(f'        .config("{key}", {value})\n' for key, value in {**shape.conf, **parts.conf}.items()),
        rows=shape.rows,
        batch=parts.batch,
        writer="\n        ".join(writer),
    )


def _imports(parts: Parts, shape: PipelineShape) -> str:
    used = [name for name in ("DataFrame", "Row", "SparkSession") if name in parts.batch or name == "SparkSession"]
    spark = [f"from pyspark.sql import {', '.join(used)}"]
    functions = ["from pyspark.sql import functions as f"] if "f." in shape.rows + parts.batch else []
    others = sorted([*parts.imports, *spark, *functions], key=_order)
    return "\n".join([*sorted(["import argparse", *parts.library], key=_order), "", *others, ""])


def _order(line: str) -> tuple[bool, str]:
    """Whole modules first, as ruff has it."""
    return line.startswith("from"), line.split()[1]

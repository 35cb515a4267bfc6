"""What happens to which program, into which sink, at which crash point: a table made from runs.

    make prove SUITE=all
    PYTHONPATH=. .venv/bin/python bench/catalogue.py reports/latest/summary.json [MORE...] > docs/catalogue.md

A run is a row; runs that agree are one. The files name their runs' scenarios by run folder, which have to be there.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from harness.fields.paths import SPARK_HOME
from harness.load import load
from harness.load.pipeline_header import header
from harness.scenario import CrashPoint, Guarantee, Scenario
from harness.scenario.progress import DSTREAMS
from harness.stacks.supported import Named, unsupported

ROOT = Path(__file__).parent.parent
READ = ("reader", "format", "drop_duplicates")
"""Options of a sink that say how it is read."""
SIZES = ("partitions", "records_per_file")
LIMIT = "--max-records"
"""A flag of our programs that is a size too."""
HEAD = """\
# What happens
Made by `bench/catalogue.py` from runs of the scenarios here; run it again rather than edit this page. *Seen at the hit*
is what the snapshot taken at the hit showed: what the sink held, how far Spark's logs were, what that put at stake;
*missed* is a fault that did not hit. [../pipelines/README.md](../pipelines/README.md) says why each program
breaks or holds."""


NOT_RUN = "## Not run yet"
Key = tuple[str, ...]
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


class Row(NamedTuple):
    """One line of the page."""

    sink: str
    program: str
    asked: str
    window: str
    fault: str
    seen: str
    verdict: str
    stack: str


WINDOWS = {
    CrashPoint.BATCH_PLANNED: "batch planned, nothing written",
    CrashPoint.SINK_COMMITTED: "sink committed, `commits/N` being written",
    CrashPoint.BATCH_COMMITTED: "`commits/N` there, next batch not planned",
}
BY_TIME = {
    CrashPoint.BATCH_PLANNED: "batch of DStreams allocated",
    CrashPoint.BATCH_CHECKPOINTED: "batch of DStreams begun, `checkpoint-T` there",
    CrashPoint.BATCH_COMMITTED: "batch of DStreams done, `checkpoint-T` says so",
}
"""What a crash point is, in Spark's words; a sink of Spark's own is hit in the same place as one of `foreachBatch`."""
HEADER = ["program", "asked", "where the batch was", "fault", "seen at the hit", "verdict", "stack", "runs"]


def main(paths: Sequence[str]) -> int:
    runs = [run for path in paths for run in json.loads(Path(path).read_text(encoding="utf-8"))["runs"]]
    print(HEAD)
    rows = [*map(row_of, runs)]
    there = {(row.program, row.asked, row.window, row.fault) for row in rows}
    print("\n".join([*tables(rows), *not_run(lacking(there))]))
    return 0


def tables(rows: Iterable[Row]) -> Iterator[str]:
    """The lines of the page: a table for each kind of sink, equal rows once, with how many there were."""
    counts = Counter(rows)
    for sink, own in groupby(sorted(counts), key=attrgetter("sink")):
        yield from ["", f"## {sink}", _line(HEADER), _line("---" for _ in HEADER)]
        yield from (_line([*row[1:], str(counts[row])]) for row in own)


def row_of(run: dict[str, Any]) -> Row:
    """One run of a summary; its folder names the scenario."""
    told = json.loads((Path(run["folder"]) / "run.json").read_text(encoding="utf-8"))
    scenario = load(ROOT / Path(told["path"]).relative_to(Path(told["path"]).parents[2]))
    found = ", ".join(run["findings"])
    missed = [] if all(fault["hit"] for fault in run["faults"]) else ["missed"]
    seen = "; ".join(dict.fromkeys([*map(_without_sink, run["points_hit"]), *missed]))
    program, window, fault = put(scenario, [(str(each["point"]), each["name"]) for each in run["faults"]])
    return Row(
        sink=" and ".join(dict.fromkeys(sink.kind for sink in scenario.sinks)),
        program=program,
        asked=asked(scenario),
        window=window,
        fault=fault,
        seen=seen or "nothing at stake",
        verdict=f"{run['verdict']}: {found}" if found else run["verdict"],
        stack=run["stack"],
    )


def claimed(scenario: Scenario) -> Key:
    """What the rows of its runs begin with: program, what is asked, where the batch is to be, and fault."""
    program, window, fault = put(scenario, [(step.when.place, step.name) for step in scenario.schedule])
    return program, asked(scenario), window, fault


def lacking(there: Collection[Key]) -> list[str]:
    """The scenarios that `processes` can run and have no such row, by their place below scenarios/."""
    paths = sorted(ROOT.glob("scenarios/*/*.yaml"))
    able = [(path, each) for path in paths if not unsupported(each := load(path), Named("processes"))]
    return [
        path.relative_to(ROOT / "scenarios").with_suffix("").as_posix()
        for path, each in able
        if claimed(each) not in there
    ]


def not_run(names: Sequence[str]) -> Iterator[str]:
    """The lines that name them, at the end of the page."""
    if names:
        yield from ["", NOT_RUN, "Their predictions are committed; none of them has a verdict."]
        yield from (f"- [{name}](../scenarios/{name}.yaml)" for name in names)


def put(scenario: Scenario, steps: Sequence[tuple[str, str]]) -> tuple[str, str, str]:
    """Program, where the batch was, and fault, as a row has them; of each step, its place and its fault."""
    program = f"`{scenario.pipeline.entry.removeprefix('pipelines/')}`"
    words = BY_TIME if scenario.pipeline.progress == DSTREAMS else WINDOWS
    window = "; ".join(dict.fromkeys(_window(place, words) for place, _ in steps)) or "no fault"
    return program, window, ", ".join(fault for _, fault in steps) or "none"


def asked(scenario: Scenario) -> str:
    """What of a scenario decides besides program and fault: what flags its program is given that it has not by itself,
    where its checkpoint lies and how it is put there, how the sink is read, what the source does, what is claimed."""
    kept = [f"checkpoint: {scenario.pipeline.checkpoint}"] if scenario.pipeline.checkpoint else []
    kept += [each.rpartition(".")[2] for name, each in scenario.pipeline.conf.items() if name == MANAGER]
    read = [f"{name}: {value}" for sink in scenario.sinks for name, value in sink.options.items() if name in READ]
    fed = [f"{name}: {value}" for name, value in scenario.input.source_options.items() if name not in SIZES]
    claimed = [] if scenario.guarantee is Guarantee.EXACTLY_ONCE else [str(scenario.guarantee)]
    return ", ".join(dict.fromkeys([*flags(scenario), *kept, *read, *fed, *claimed])) or "-"


def flags(scenario: Scenario) -> list[str]:
    """The flags of a scenario's program, with their values, that are not as in its own header; none where it has no
    header to differ from."""
    entry = scenario.pipeline.entry
    own = () if entry.startswith(SPARK_HOME) else header(ROOT / entry, file=entry, mistakes=[]).get("args", ())
    usual, given = _grouped(own), _grouped(scenario.pipeline.args) if own else []
    return [f"`{each}`" for each in given if each not in usual and not each.startswith(LIMIT)]


def _grouped(args: Sequence[str]) -> list[str]:
    """Each flag with the values that follow it."""
    out: list[str] = []
    for each in args:
        if each.startswith("--") or not out:
            out.append(each)
        else:
            out[-1] += f" {each}"
    return out


def _window(point: str, words: Mapping[CrashPoint, str]) -> str:
    return words[CrashPoint(point)] if point in [*CrashPoint] else f"batch being written ({point})"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _without_sink(point: str) -> str:
    return point.partition(": ")[2] or point


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

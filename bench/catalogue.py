"""What happens to which program, into which sink, at which crash point: a table made from runs.

    make prove SUITE=all
    PYTHONPATH=. .venv/bin/python bench/catalogue.py reports/latest/summary.json [MORE...] > bench/records/catalogue.md

The runs are kept in bench/records/runs.jsonl, a line each, so that a suite can be played in parts: those of a summary
take the place of earlier ones of the same scenario and stack, unless they are of the same commit. Each cell of a sweep
is a line. Their run folders have to be there, in a checkout of that commit. A row of the page is what runs agree in,
with their scenarios. A line has the digest of what was run (bench/ran.py), so that the page names what has changed
since. A run that came out otherwise than its scenario expects goes into bench/records/otherwise.jsonl, and stays there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from bench.ran import digest
from harness.fields.paths import SPARK_HOME
from harness.load import load
from harness.load.pipeline_header import header
from harness.operation import Side
from harness.scenario import CrashPoint, Guarantee, Scenario, Trigger
from harness.scenario.progress import DSTREAMS
from harness.spark.settings import MANAGER
from harness.stacks import DEFAULT
from harness.stacks.other_versions import on
from harness.stacks.registry import STACKS
from harness.stacks.supported import unsupported
from harness.sweep.cells import CHANGES, FILES
from harness.triggers import TRIGGERS
from harness.triggers.base import AtOperations

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "bench" / "records" / "runs.jsonl"
OTHERWISE = ROOT / "bench" / "records" / "otherwise.jsonl"
READ = ("reader", "format", "drop_duplicates")
"""Options of a sink that say how it is read."""
SIZES = ("partitions", "records_per_file")
LIMIT = "--max-records"
"""A flag of our programs that is a size too."""
HEAD = """\
# What happens
Made by `bench/catalogue.py` from [runs](runs.jsonl) of the scenarios here; run it again rather than
edit this page. *Seen at the injection* is what the snapshots of an injection showed, the later one where there are two
(taken before the next attempt worked): what the sink held, how far Spark's logs were, what that exposed; *missed* is a
fault that was not injected. *Asked* is what the scenario sets beside the program: how the sink is read, a weaker
guarantee, where the checkpoint lies. [The programs](../../pipelines/README.md) say why each of them breaks or holds;
[crash-points.md](../../docs/crash-points.md) goes by the kind of sink and the place in a batch. Runs that came out
otherwise than expected are kept in [otherwise.jsonl](otherwise.jsonl)."""


NOT_RUN = "## Not run yet"
CHANGED = "## Changed since their run"


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
    CrashPoint.BATCH_PLANNING: "batch before committed, `offsets/N` being written",
    CrashPoint.BATCH_PLANNED: "batch planned, nothing written",
    CrashPoint.SINK_COMMITTING: "tasks done, the sink's own commit being written",
    CrashPoint.SINK_COMMITTED: "sink committed, `commits/N` being written",
    CrashPoint.BATCH_COMMITTED: "`commits/N` there, next batch not planned",
}
BY_TIME = {
    CrashPoint.BLOCK_RECEIVED: "block stored, in no batch of DStreams",
    CrashPoint.BATCH_PLANNED: "batch of DStreams allocated",
    CrashPoint.BATCH_CHECKPOINTED: "batch of DStreams begun, `checkpoint-T` there",
    CrashPoint.BATCH_COMMITTED: "batch of DStreams done, `checkpoint-T` says so",
}
"""What a crash point is, in Spark's words; a sink of Spark's own is struck in the same place as one of
`foreachBatch`."""
HEADER = ["program", "asked", "where the batch was", "fault", "seen at the injection", "verdict", "stack", "scenarios"]


def main(paths: Sequence[str]) -> int:
    # A scenario that is gone has no row.
    judged = [run for path in paths for run in summarised(Path(path)) if here(name_of(run))]
    fine = map(kept, filter(itemgetter("as_expected"), judged))
    runs = [each for each in merged(read(), fine) if here(each["scenario"])]
    written(RUNS, runs)
    new = [otherwise(run) for run in judged if not run["as_expected"]]
    written(OTHERWISE, sorted([*read(OTHERWISE), *new], key=itemgetter("scenario", "commit")))
    print(HEAD)
    print("\n".join(page(runs)))
    return 0


def summarised(path: Path) -> Iterator[dict[str, Any]]:
    """The runs of `reports/latest/summary.json` that were judged; their folders are said from where the command ran."""
    for run in json.loads(path.read_text(encoding="utf-8"))["runs"]:
        folder = path.resolve().parents[2] / (run["folder"] or "")
        if (folder / "verdict.json").exists():
            yield {**run, "folder": str(folder)}


def read(path: Path = RUNS) -> list[dict[str, Any]]:
    """The runs that are kept."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def written(path: Path, runs: Iterable[Mapping[str, Any]]) -> None:
    """Keep these runs there, a line each."""
    path.write_text("".join(json.dumps(each) + "\n" for each in runs), encoding="utf-8")


def here(name: str) -> bool:
    """Whether a scenario is still there."""
    return (ROOT / "scenarios" / f"{name}.yaml").is_file()


def page(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of the page below its head."""
    yield from tables((Row(**each["row"]), each["scenario"]) for each in runs)
    yield from not_run(lacking({each["scenario"] for each in runs if each["row"]["stack"] == own(each["scenario"])}))
    yield from changed(runs)


def otherwise(run: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run of a summary whose verdict was not the expected one."""
    found = kept(run)
    row = found.pop("row")
    return {**found, "stack": row["stack"], "expected": run["expected"], "verdict": row["verdict"]}


def kept(run: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run of a summary: scenario, commit, whether it was as expected, seconds, and its row."""
    command = ["git", "-C", run["folder"], "rev-parse", "--show-toplevel", "--short", "HEAD"]
    there, commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    name, version = name_of(run), spark_version_of(run)
    found = {"scenario": name, "commit": commit, "as_expected": run["as_expected"], "seconds": run["seconds"]}
    found["ran"] = digest(Path(there), name)
    return {**found, **({"spark": version} if version else {}), "row": row_of(run)._asdict()}


def merged(old: Iterable[dict[str, Any]], new: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Both, without the older runs that new ones of the same scenario, stack and Spark version replace; by scenario."""
    fresh = [*new]
    latest = {_ran(each): each["commit"] for each in fresh}
    stay = [each for each in old if latest.get(_ran(each), each["commit"]) == each["commit"]]
    return sorted([*stay, *fresh], key=_ran)


def own(scenario: str) -> str:
    """The stack on which a scenario is to have run: its folder may be named by one."""
    folder = scenario.partition("/")[0]
    return folder if folder in STACKS.all() else DEFAULT


def _ran(each: Mapping[str, Any]) -> tuple[str, str, str]:
    return each["scenario"], each["row"]["stack"], each.get("spark", "")


def tables(rows: Iterable[tuple[Row, str]]) -> Iterator[str]:
    """The lines of the page: a table for each kind of sink, equal rows once, with the scenarios that they are of."""
    ran: dict[Row, Counter[str]] = {}
    for row, scenario in rows:
        ran.setdefault(row, Counter())[scenario] += 1
    counts = Counter[str]()
    for sink, own in groupby(sorted(ran), key=lambda row: row.sink):
        yield from ["", f"## {sink}", table_line(HEADER), table_line("---" for _ in HEADER)]
        yield from (table_line([*row[1:], "<br>".join(_times(ran[row], counts))]) for row in own)


def _times(ran: Mapping[str, int], counts: Counter[str]) -> Iterator[str]:
    """Yield the scenarios of a row, each at another anchor; `counts` has how many rows each has had."""
    for name in sorted(ran):
        counts[name] += 1
        yield anchored(name, counts[name]) + (f" {times} times" if (times := ran[name]) > 1 else "")


def anchored(name: str, nth: int = 1) -> str:
    """A link to a scenario, with an anchor for its nth row."""
    again = f"-{nth}" if nth > 1 else ""
    return f'<a id="{name.replace("/", "-")}{again}"></a>{link(name)}'


def link(name: str) -> str:
    """To a scenario, from a page in bench/records/; by its place below scenarios/."""
    return f"[{name}](../../scenarios/{name}.yaml)"


def name_of(run: dict[str, Any]) -> str:
    """Return the place of its scenario below scenarios/, by the file that the summary names."""
    path = Path(run["file"])
    return path.relative_to(path.parents[1]).with_suffix("").as_posix()


def spark_version_of(run: dict[str, Any]) -> str:
    """Return the Spark version that its command names; empty if it names none."""
    run_json = json.loads((Path(run["folder"]) / "run.json").read_text(encoding="utf-8"))
    words = str(run_json.get("command", "")).split()
    return words[words.index("--spark") + 1] if "--spark" in words[:-1] else ""


def row_of(run: dict[str, Any]) -> Row:
    """One run of a summary."""
    scenario = on(load(ROOT / "scenarios" / f"{name_of(run)}.yaml"), spark_version_of(run))
    found = ", ".join(run["findings"])
    missed = [] if all(fault["injected"] for fault in run["faults"]) else ["missed"]
    seen = "; ".join(dict.fromkeys([*map(_without_sink, run["points_reached"]), *missed]))
    program, window, fault = put(scenario, [(str(each["point"]), each["name"]) for each in run["faults"]])
    return Row(
        sink=" and ".join(dict.fromkeys(sink.kind for sink in scenario.sinks)),
        program=program,
        asked=conditions(scenario),
        window=window,
        fault=fault,
        seen=seen or "nothing exposed",
        verdict=f"{run['verdict']}: {found}" if found else run["verdict"],
        stack=run["stack"],
    )


def lacking(ran: Collection[str]) -> list[str]:
    """The scenarios that their stack can run and that are not among these, by their place below scenarios/."""
    paths = sorted(ROOT.glob("scenarios/*/*.yaml"))
    named = {path.relative_to(ROOT / "scenarios").with_suffix("").as_posix(): path for path in paths}
    left = {name: path for name, path in named.items() if name not in ran}
    return [name for name, path in left.items() if not unsupported(load(path), own(name))]


def not_run(names: Sequence[str]) -> Iterator[str]:
    """The lines that name them, at the end of the page."""
    if names:
        yield from ["", NOT_RUN, "Their predictions are committed; none of them has a verdict."]
        yield from (f"- {link(name)}" for name in names)


def changed_since(runs: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """The scenarios of which a run was of another scenario or program than are there now, with the stacks of those
    runs."""
    ran = {(each["scenario"], each["row"]["stack"], each.get("ran")) for each in runs}
    now = {name: digest(ROOT, name) for name, _, _ in ran}
    old: dict[str, set[str]] = {}
    for name, stack, then in sorted(ran, key=str):
        if then != now[name]:
            old.setdefault(name, set()).add(stack)
    return old


def changed(runs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The lines that name them."""
    old = changed_since(runs)
    if old:
        yield from ["", CHANGED, "Their rows are of a scenario or a program that has been changed since."]
    for name in sorted(old):
        where = "" if old[name] == {"processes"} else f" ({', '.join(sorted(old[name]))})"
        yield f"- {link(name)}{where}"


def put(scenario: Scenario, steps: Sequence[tuple[str, str]]) -> tuple[str, str, str]:
    """Program, where the batch was, and fault, as a row has them; of each step, its place and its fault."""
    program = f"`{scenario.pipeline.entry.removeprefix('pipelines/')}`"
    words = BY_TIME if scenario.pipeline.progress == DSTREAMS else WINDOWS
    points = {
        **{str(each): each for each in CrashPoint},
        **{each.place: each.point for each in operations()},
        **{each.when.place: each.when.point for each in scenario.schedule},
    }
    window = "; ".join(dict.fromkeys(_window(place, points.get(place), words) for place, _ in steps)) or "no fault"
    return program, window, ", ".join(fault for _, fault in steps) or "none"


@cache
def operations() -> tuple[Trigger, ...]:
    """The operations on a checkpoint, where a sweep crashes the driver."""
    kinds = [kind for kind in TRIGGERS if isinstance(kind, AtOperations)]
    return tuple(kind.at(op, side, log) for kind in kinds for op in CHANGES for side in Side for log in FILES)


def conditions(scenario: Scenario) -> str:
    """What of a scenario decides besides program and fault: what flags its program is given that it has not by itself,
    on which Spark it runs, where its checkpoint lies and how it is put there, how the sink is read, what the source
    does, what is claimed."""
    kept = [f"checkpoint: {scenario.pipeline.checkpoint}"] if scenario.pipeline.checkpoint else []
    lines = [scenario.pipeline.spark, scenario.restart.spark and f"then {scenario.restart.spark}"]
    kept += [f"spark: {', '.join(filter(None, lines))}"] if any(lines) else []
    kept += [each.rpartition(".")[2] for name, each in scenario.pipeline.conf.items() if name == MANAGER]
    read = [f"{name}: {value}" for sink in scenario.sinks for name, value in sink.options.items() if name in READ]
    fed = [f"{name}: {value}" for name, value in scenario.input.source_options.items() if name not in SIZES]
    claimed = [] if scenario.guarantee is Guarantee.EXACTLY_ONCE else [str(scenario.guarantee)]
    return ", ".join(dict.fromkeys([*flags(scenario), *kept, *read, *fed, *claimed])) or "-"


def flags(scenario: Scenario) -> list[str]:
    """The flags of a scenario's program, with their values, that are not as in its own header; none where it has no
    header to differ from."""
    entry = scenario.pipeline.entry
    block = None if entry.startswith(SPARK_HOME) else header(ROOT / entry, file=entry, mistakes=[])
    own = block.get("args", ()) if block else ()
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


def _window(place: str, point: CrashPoint | None, words: Mapping[CrashPoint, str]) -> str:
    """Where a batch stands at the `place` of a trigger that waits for `point`, if it waits for one."""
    if point is None:
        return f"batch being written ({place})"
    return words[point] if place == point else f"{words[point]} ({place})"


def table_line(cells: Iterable[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _without_sink(point: str) -> str:
    return point.partition(": ")[2] or point


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

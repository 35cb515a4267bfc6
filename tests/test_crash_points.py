"""docs/crash-points.md and docs/hdfs-outages.md: their tables name scenarios that exist and that crash there."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from harness.scenario import CrashPoint, Expected, Impact, Scenario, Step, Trigger
from tests.shipped import scenario as shipped
from tests.shipped import scenarios, step

HOUSE = Path(__file__).parents[1]
PAGE = HOUSE / "docs" / "crash-points.md"
HDFS = PAGE.with_name("hdfs-outages.md")
LINK = re.compile(r"\[([^]]*)\]\(([^)]*)\)")
REASONS = ("none: ", "not reached", "not run: ")
BEFORE_A_COMMIT = {"all-sent", "all-written", "sink-written"}
"""Failpoints that stand behind the last row and before a commit of the program's own, as far as it has one."""

OFFSETS_NOTED = {"pipelines/transactions/offsets_before.py": "offsets-saved"}
"""By program, a failpoint where the offsets are noted and nothing is written: what `offsets/N` is to the others."""

SINK_DONE = {
    f"pipelines/{name}.py": "sink-written"
    for name in (
        "error_counts/appended_group",
        "error_counts/kept_by_id_group",
        "flights/count_per_day",
        "transactions/append_stoppable",
        "transactions/group_append",
        "transactions/group_upsert",
        "transactions/offsets_after",
        "transactions/upsert_stoppable",
    )
} | {
    f"pipelines/{name}.py": "committed" for name in ("error_counts/added_with_offsets", "transactions/offsets_together")
}
"""By program, a failpoint behind the sink's commit, and before the offsets are noted where they are not in it."""

NO_SINK_OF_ITS_OWN = "what is broken, or repaired, is the checkpoint or the start; its sink is that of another row"
NO_PLACE = "a server is away, and what counts is what the program does about the error"
WITHOUT_A_ROW = {
    "pipelines/delta/checkpoint_new.py": NO_SINK_OF_ITS_OWN,
    "pipelines/files/checkpoint_begun_anew.py": NO_SINK_OF_ITS_OWN,
    "pipelines/files/output_cleared.py": NO_SINK_OF_ITS_OWN,
    "pipelines/iceberg/lake_checkpoint_new.py": NO_SINK_OF_ITS_OWN,
    "pipelines/transactions/checkpoint_apart.py": NO_SINK_OF_ITS_OWN,
    "pipelines/transactions/checkpoint_kept.py": NO_SINK_OF_ITS_OWN,
    "pipelines/transactions/checkpoint_missing.py": NO_SINK_OF_ITS_OWN,
    "pipelines/transactions/checkpoint_shared.py": NO_SINK_OF_ITS_OWN,
    "pipelines/transactions/checkpoint_temporary.py": NO_SINK_OF_ITS_OWN,
    "pipelines/error_counts/error_swallowed.py": NO_PLACE,
    "pipelines/kafka_to_kafka/batch_passed_over.py": NO_PLACE,
    "pipelines/kafka_to_kafka/error_ends_query.py": NO_PLACE,
    "pipelines/search/indexed_failure_logged.py": NO_PLACE,
    "pipelines/search/indexed_retried.py": NO_PLACE,
    "pipelines/transactions/upsert_swallowed.py": NO_PLACE,
}


def rows(head: str = "| kind of sink |", *, page: Path = PAGE) -> list[list[str]]:
    """The cells of the table that begins so, its head first."""
    lines = page.read_text(encoding="utf-8").splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith(head))
    table = lines[begin : lines.index("", begin)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (table[0], *table[2:])]


Struck = Callable[[str, Step], bool]
"""Whether a step of this program's schedule strikes a batch in one place."""


def driver_dies(step: Step) -> bool:
    return step.do.impact == Impact.DRIVER_KILLED


def planned(entry: str, step: Step) -> bool:
    noted = step.when.kind == "failpoint" and OFFSETS_NOTED.get(entry) == step.when.value
    return (noted or step.when.point == CrashPoint.BATCH_PLANNED) and driver_dies(step)


def written_in_part(entry: str, step: Step) -> bool:
    elsewhere = {OFFSETS_NOTED.get(entry), SINK_DONE.get(entry), *BEFORE_A_COMMIT}
    inside = step.when.kind == "rows" or (step.when.kind == "failpoint" and step.when.value not in elsewhere)
    return inside and driver_dies(step)


def tried_again(entry: str, step: Step) -> bool:
    return step.do.kind == "kill executor" and step.when.kind in ("rows", "failpoint")


def before_its_commit(entry: str, step: Step) -> bool:
    there = step.when.kind == "failpoint" and step.when.value in BEFORE_A_COMMIT
    there = there or step.when.point == CrashPoint.SINK_COMMITTING
    return there and SINK_DONE.get(entry) != step.when.value and driver_dies(step)


def sink_committed(entry: str, step: Step) -> bool:
    done = step.when.kind == "failpoint" and SINK_DONE.get(entry) == step.when.value and driver_dies(step)
    return done or step.when.point == CrashPoint.SINK_COMMITTED


def batch_committed(entry: str, step: Step) -> bool:
    return step.when.point == CrashPoint.BATCH_COMMITTED


WHERE: tuple[Struck, ...] = (
    planned,
    written_in_part,
    tried_again,
    before_its_commit,
    sink_committed,
    batch_committed,
)
TABLE = rows()
OF_HDFS = {
    "hadoop": rows("| where the batch is | sink |", page=HDFS),
    "yarn": rows("| where the batch is, on YARN | sink |", page=HDFS),
}
"""By the folder of its scenarios."""
CELLS = [(row, column, row[2 + column]) for row in TABLE[1:] for column in range(len(WHERE))]


def programs(row: list[str]) -> set[str]:
    return {f"pipelines/{name}" for name in re.findall("`([^`]*)`", row[1])}


def steps(scenario: Scenario) -> list[tuple[Step, Expected]]:
    """Its steps, those that a sweep names too, each with what is expected of it."""
    swept = [(step(name), expected) for name, expected in scenario.verdict.at.items()]
    return [*((step, scenario.verdict) for step in scenario.schedule), *swept]


def said(expected: Expected) -> str:
    """What is expected, as the page says it."""
    return ", ".join(kind.value for kind in expected.kinds) or str(expected.word)


def test_each_row_has_all_places_and_no_more() -> None:
    assert len(TABLE) > 20
    assert {len(row) for row in TABLE} == {2 + len(WHERE)}
    places = [number for cell in TABLE[0][2:] for number in re.findall(r"W(\d)", cell)]
    assert all(int(low) + 1 == int(high) for low, high in pairwise(places)) and places[0] == "2" and places[-1] == "8"


@pytest.mark.parametrize(("row", "column", "cell"), CELLS, ids=lambda value: str(value)[:60])
def test_a_cell_names_its_scenarios_or_says_why_it_has_none(row: list[str], column: int, cell: str) -> None:
    named = LINK.findall(cell)
    reasons = [part for part in cell.split("; ") if not LINK.search(part)]
    assert (named or reasons) and all(part.startswith(REASONS) for part in reasons), cell
    for words, link in named:
        scenario = shipped((PAGE.parent / link).resolve())
        entry = scenario.pipeline.entry
        assert entry in programs(row), link
        assert {said(expected) for step, expected in steps(scenario) if WHERE[column](entry, step)} == {words}, link


@pytest.mark.parametrize(("row", "column", "cell"), CELLS, ids=lambda value: str(value)[:60])
def test_what_is_called_not_run_is_not_run(row: list[str], column: int, cell: str) -> None:
    # A row may be one of two readers of a program's sink: what the other one has is not missing here.
    shared = [other for other in TABLE[1:] if other is not row and programs(other) & programs(row)]
    if LINK.search(cell) or shared:
        return
    its = [each for each in scenarios() if each.pipeline.entry in programs(row)]
    assert [each.name for each in its if any(WHERE[column](each.pipeline.entry, step) for step, _ in steps(each))] == []


def test_every_program_that_writes_a_sink_stands_in_a_row() -> None:
    writing = {
        each.pipeline.entry for each in scenarios() if Path(each.path).resolve().parent.name in ("proving", "sinks")
    }
    assert len(writing) > 60
    assert writing - {name for row in TABLE[1:] for name in programs(row)} == set(WITHOUT_A_ROW)


def kills_of_hdfs() -> list[Path]:
    """Where the scenarios lie that kill a daemon of HDFS."""
    kills = {"kill namenode", "kill datanode"}
    return [Path(each.path) for each in scenarios() if any(step.do.kind in kills for step in each.schedule)]


@pytest.mark.parametrize(
    ("folder", "kills"), [("hadoop", ["kill namenode", "kill datanode"]), ("yarn", ["kill namenode"])]
)
def test_each_kill_of_a_daemon_of_hdfs_stands_in_its_cell(folder: str, kills: list[str]) -> None:
    table = OF_HDFS[folder]
    assert [f"kill {head.split()[0].lower()}" for head in table[0][2:]] == kills
    named, moments = list[str](), dict[str, set[Trigger]]()
    place = ""
    for where, _, *cells in table[1:]:
        # A row without a place is another sink at the same one.
        place = where or place
        for injected, cell in zip(kills, cells, strict=True):
            ((words, link),) = LINK.findall(cell)
            scenario = shipped((PAGE.parent / link).resolve())
            (step,) = scenario.schedule
            assert (words, injected) == (said(scenario.verdict), step.do.kind), link
            moments.setdefault(place, set()).add(step.when)
            named.append(link)
    assert [place for place, found in moments.items() if len(found) != 1] == []
    there = [each.name for each in kills_of_hdfs() if each.parent.name == folder]
    assert sorted(named) == sorted(f"../scenarios/{folder}/{name}" for name in there)


def test_no_other_suite_kills_a_daemon_of_hdfs() -> None:
    assert {path.parent.name for path in kills_of_hdfs()} == OF_HDFS.keys()


def test_each_operation_on_hdfs_that_is_held_stands_in_its_cell() -> None:
    head, *lines = rows("| operation |", page=HDFS)
    named, meant = list[str](), ("", "")
    for operation, _, *cells in lines:
        # The last row is the same operation of another file manager.
        meant = next(iter(re.findall("{op: ([a-z]+), path: ([a-z]+)}", operation)), meant)
        for program, cell in zip(head[2:], cells, strict=True):
            ((words, link),) = LINK.findall(cell)
            scenario = shipped((PAGE.parent / link).resolve())
            (step,) = scenario.schedule
            assert (words, step.do.kind) == (said(scenario.verdict), "kill driver"), link
            assert (step.when.value, step.when.options["path"]) == meant, link
            assert Path(scenario.pipeline.entry).stem == program
            named.append(Path(link).stem)
    there = [Path(each.path).stem for each in scenarios() if each.pipeline.checkpoint == "hdfs"]
    assert sorted(named) == sorted(stem for stem in there if stem.endswith("_held"))

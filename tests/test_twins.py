"""A broken pipeline and its repair name each other, and both are put to the same test."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from harness.scenario import Scenario, Step, Word
from tests.shipped import scenarios

HOUSE = Path(__file__).parents[1]
PROGRAMS = sorted((HOUSE / "pipelines").glob("*/*.py"))
NOTHING_AT_STAKE = {"python_source_counter_in_memory_after_offset_commit", "socket_planned"}
"""A repair that is hit there, or a weaker guarantee, has nothing at stake: its verdict is void, and has to be."""

NEVER_HELD = {"kafka_logged_late_task_begun"}
"""Under a log that is written late no verdict is held (docs/scenarios.md)."""

AN_ERROR = {"kept_checkpoint.py"}
"""No verdict: Spark ends such a query (tests/test_socket_source.py)."""


def named(path: Path, what: str) -> list[Path]:
    """The programs of its own folder that a docstring gives after `what`."""
    found = re.search(rf"^{what}s?: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    names = re.findall(r"(?<![/\w])\w+\.py", found[1]) if found else []
    return [path.parent / name for name in names if (path.parent / name).exists()]


def runs(path: Path) -> list[Scenario]:
    """The scenarios of one program."""
    return [each for each in scenarios() if each.pipeline.entry == str(path.relative_to(HOUSE))]


def hit_as(step: Step, other: Step) -> bool:
    """Is `other` the same hit as `step`, or a harder one at the same place: the executors die with the driver?"""
    worse = (step.do.kind, other.do.kind) == ("kill driver", "crash application")
    return other == step or (worse and other.when == step.when)


def flags(scenario: Scenario) -> dict[str, str]:
    """The arguments of its program that begin with two dashes, each with its value; a switch has none."""
    given = scenario.pipeline.args
    return {
        name: "" if after.startswith("--") else after
        for name, after in pairwise([*given, "--"])
        if name.startswith("--")
    }


def takes(entry: str, flag: str) -> bool:
    """Does a program have this flag, by itself or by a module of its folder that it imports?"""
    program = HOUSE / entry
    text = program.read_text(encoding="utf-8")
    shared = [program.with_name(f"{name}.py") for name in re.findall(r"^import (\w+)$", text, re.MULTILINE)]
    texts = [text, *(path.read_text(encoding="utf-8") for path in shared if path.exists())]
    return any(re.search(rf'"(--)?{flag.removeprefix("--")}"', each) for each in texts)


def told_alike(less: Scenario, more: Scenario) -> bool:
    """Do two scenarios give the flags that both programs have the same values? A flag that is left out has its default,
    which counts as no value of the other one."""
    given, other = flags(less), flags(more)
    entries = (less.pipeline.entry, more.pipeline.entry)
    shared = [flag for flag in given | other if all(takes(entry, flag) for entry in entries)]
    return all(given.get(flag) == other.get(flag) for flag in shared)


def covered(less: Scenario, more: Scenario) -> bool:
    """Is a program fed as another one is, on as many executors under the same settings, with the same flags, and hit by
    all that hits it? It may be hit by more: where a repetition shows in no column, a hit that could only repeat proves
    nothing."""
    alike = [(each.input, dict(each.pipeline.conf), each.pipeline.executors) for each in (less, more)]
    if alike[0] != alike[1] or not told_alike(less, more):
        return False
    return all(any(hit_as(step, other) for other in more.schedule) for step in less.schedule)


BROKEN = [path for path in PROGRAMS if re.search("^Repairs?: ", path.read_text(encoding="utf-8"), re.MULTILINE)]


PAIRS = sorted(
    {(broken, repair) for broken in PROGRAMS for repair in named(broken, "Repair")}
    | {(broken, repair) for repair in PROGRAMS for broken in named(repair, "Broken twin")}
)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_repair_is_hit_as_its_broken_twin_is(broken: Path) -> None:
    breaks = [each for each in runs(broken) if each.expect.word == Word.VIOLATED]
    # The same program holds under a weaker guarantee, or read by somebody who drops what is repeated.
    held = [
        each
        for program in (broken, *named(broken, "Repair"))
        for each in runs(program)
        if each.expect.word == Word.HELD
    ]
    unmatched = [Path(each.path).stem for each in breaks if not any(covered(each, more) for more in held)]
    assert set(unmatched) <= NOTHING_AT_STAKE | NEVER_HELD


def test_what_a_twin_is_fed_and_how_it_is_set_count_as_its_schedule_does() -> None:
    scenario = next(each for each in scenarios() if each.schedule)
    assert covered(scenario, scenario)
    fed = replace(scenario, input=replace(scenario.input, records=scenario.input.records + 1))
    settings = replace(scenario, pipeline=replace(scenario.pipeline, conf={"spark.task.maxFailures": "1"}))
    more = replace(scenario, pipeline=replace(scenario.pipeline, executors=scenario.pipeline.executors + 1))
    assert [covered(scenario, other) for other in (fed, settings, more)] == [False, False, False]


def test_what_a_twin_is_told_counts_where_both_programs_can_be_told_it() -> None:
    scenario = next(each for each in scenarios() if each.pipeline.entry == "pipelines/files/sink_parquet.py")

    def told(*more: str) -> Scenario:
        return replace(scenario, pipeline=replace(scenario.pipeline, args=(*scenario.pipeline.args, *more)))

    larger, unheard_of = told("--max-records", "100000"), told("--shuffled")
    assert [covered(scenario, larger), covered(larger, scenario), covered(larger, larger)] == [False, False, True]
    assert covered(scenario, unheard_of)


@pytest.mark.parametrize(("broken", "repair"), PAIRS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_pair_that_is_named_shares_a_schedule(broken: Path, repair: Path) -> None:
    breaks = [each for each in runs(broken) if each.expect.word == Word.VIOLATED]
    held = [each for each in runs(repair) if each.expect.word == Word.HELD]
    assert any(covered(less, more) for less in breaks for more in held)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_repair_names_its_broken_twin(broken: Path) -> None:
    others = [each for each in named(broken, "Repair") if "Repair" not in each.read_text(encoding="utf-8")]
    assert [each.name for each in others if broken not in named(each, "Broken twin")] == []


def test_every_program_is_put_to_the_test() -> None:
    programs = [path for path in PROGRAMS if "# /// onceproof" in path.read_text(encoding="utf-8")]
    assert len(programs) > 60
    assert [path.name for path in programs if not runs(path) and path.name not in AN_ERROR] == []

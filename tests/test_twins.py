"""A broken pipeline and its repair name each other, and both are put to the same test."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.scenario import Scenario, Step, Word
from tests.shipped import scenarios

HOUSE = Path(__file__).parents[1]
PROGRAMS = sorted((HOUSE / "pipelines").glob("*/*.py"))
NOTHING_AT_STAKE = {"python_source_counter_in_memory_after_offset_commit", "socket_planned"}
"""A repair that is hit there, or a weaker guarantee, has nothing at stake: its verdict is void, and has to be."""

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


def covered(less: Scenario, more: Scenario) -> bool:
    """Is a program fed as another one is, on as many executors under the same settings, and hit by all that hits it? It
    may be hit by more: where a repetition shows in no column, a hit that could only repeat proves nothing."""
    alike = [(each.input, dict(each.pipeline.conf), each.pipeline.executors) for each in (less, more)]
    return alike[0] == alike[1] and all(any(hit_as(step, other) for other in more.schedule) for step in less.schedule)


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
    assert set(unmatched) <= NOTHING_AT_STAKE


def test_what_a_twin_is_fed_and_how_it_is_set_count_as_its_schedule_does() -> None:
    scenario = next(each for each in scenarios() if each.schedule)
    assert covered(scenario, scenario)
    fed = replace(scenario, input=replace(scenario.input, records=scenario.input.records + 1))
    settings = replace(scenario, pipeline=replace(scenario.pipeline, conf={"spark.task.maxFailures": "1"}))
    more = replace(scenario, pipeline=replace(scenario.pipeline, executors=scenario.pipeline.executors + 1))
    assert [covered(scenario, other) for other in (fed, settings, more)] == [False, False, False]


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

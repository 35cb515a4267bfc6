"""The broken and the fixed version of a pipeline name each other, and a scenario gives both the same test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.scenario import Guarantee, Scenario, Step, Word
from tests import shipped
from tests.shipped import FILES, cells, of_file, scenarios

# Every scenario is read.
pytestmark = pytest.mark.slow
HOUSE = Path(__file__).parents[1]
PROGRAMS = sorted((HOUSE / "pipelines").glob("*/*.py"))


class Meant(NamedTuple):
    """A fixed scenario that differs from its broken one: which it is, its word, why, and what differs."""

    fixed: str
    why: str
    differs: frozenset[str] = frozenset()
    word: Word = Word.HELD


AS_ITS_SINK = "the same append sink: the fix is in the checkpoint, which alone gives at least once"
READ_ONCE = "a socket cannot be asked again, so no program over it gives exactly once: the fix is a weaker guarantee"
NOTHING_EXPOSED = "a fault there exposes nothing of the fixed version, so its verdict has to be untested"
RELIABLE = "a socket cannot be asked again: the fix is another source, with a receiver that keeps its place there"
RENAMED = "the fix is in the writer, which renames a whole file into place"
MEANT = {
    "examples/orders": Meant("proving/upsert_before_offset_commit", "a user's own program, whose sink is append.py's"),
    "proving/checkpoint_missing": Meant("proving/checkpoint_kept", AS_ITS_SINK, frozenset({"guarantee"})),
    "proving/checkpoint_temporary": Meant("proving/checkpoint_kept", AS_ITS_SINK, frozenset({"guarantee"})),
    "sinks/kafka_logged_late_task_begun": Meant(
        "sinks/kafka_logged_in_time_task_begun",
        "under a log that is written late no verdict is held (docs/windows.md): the fix is in the log",
        frozenset({"--late-log"}),
    ),
    "hadoop/hdfs_source_blocks_lost_swallowed": Meant(
        "hadoop/hdfs_source_blocks_lost_before_the_batch",
        "no program can read a block that is lost: the fixed version stops",
        word=Word.INCONCLUSIVE,
    ),
    "dstreams/dummy_done": Meant("dstreams/dummy_log_done", READ_ONCE, frozenset({"guarantee"})),
    **{
        f"dstreams/received_{broken}": Meant(
            "dstreams/received_log_written_once_at_most_once", READ_ONCE, frozenset({"guarantee"})
        )
        for broken in ("appended_done", "appended_driver_killed", "overwritten_done")
    },
    "dstreams/received_log_at_a_rate": Meant(
        "dstreams/reliable_kept_at_a_rate", RELIABLE, frozenset({"input", "guarantee"})
    ),
    "dstreams/received_log_executor_killed_at_a_rate": Meant(
        "dstreams/reliable_kept_executor_killed_at_a_rate", RELIABLE, frozenset({"input", "guarantee"})
    ),
    **{
        f"dstreams/received_written_once_{place}": Meant(
            f"dstreams/reliable_kept_{place}", RELIABLE, frozenset({"input"})
        )
        for place in ("received", "planned", "checkpointed", "executor_killed", "executor_killed_received")
    },
    "guarantees/sink_appended_at_most_once": Meant(
        "guarantees/sink_at_most_once",
        "the guarantee allows the loss of the rest of a partition; the fixed version of autocommit.py gives more",
    ),
    "sinks/postgres_away_unlogged": Meant(
        "sinks/postgres_away_between_batches",
        "a logged table loses nothing there: the fix is in the table",
        word=Word.UNTESTED,
    ),
    "sources/files_written_in_place": Meant("sources/files_dropped_whole_kept_by_id", RENAMED, frozenset({"in_place"})),
    "sources/files_torn_kept_by_id": Meant(
        "sources/files_dropped_whole_kept_by_id", RENAMED, frozenset({"in_place", "torn"})
    ),
    "sources/files_text_torn_kept_by_id": Meant(
        "sources/files_text_dropped_whole_kept_by_id", RENAMED, frozenset({"in_place", "torn"})
    ),
    "sources/python_source_counter_in_memory_after_offset_commit": Meant(
        "sources/python_source_counter_taken_up_after_offset_commit", NOTHING_EXPOSED, word=Word.UNTESTED
    ),
    **{
        f"{store}/checkpoint_counter_in_memory_delete_held": Meant(
            f"{store}/checkpoint_counter_taken_up_delete_held", NOTHING_EXPOSED, word=Word.UNTESTED
        )
        for store in ("azure", "s3")
    },
    "sources/socket_before_offset_commit": Meant(
        "sources/socket_at_most_once_before_offset_commit", READ_ONCE, frozenset({"guarantee"}), word=Word.UNTESTED
    ),
    "sources/socket_mid_batch": Meant(
        "sources/socket_at_most_once_mid_batch", READ_ONCE, frozenset({"guarantee"}), word=Word.UNTESTED
    ),
    "sources/socket_planned": Meant(
        "sources/socket_at_most_once_planned", NOTHING_EXPOSED, frozenset({"guarantee"}), word=Word.UNTESTED
    ),
    "yarn/upsert_node_lost_twice": Meant(
        "yarn/upsert_node_lost_twice_four_attempts",
        "the fix is the number of attempts that YARN allows",
        frozenset({"conf"}),
    ),
    "yarn/upsert_only_attempt_lost": Meant(
        "yarn/upsert_nodemanager_killed", "the fix is the number of attempts that YARN allows", frozenset({"conf"})
    ),
}
"""By scenario below scenarios/."""

WEAKER = {
    ("batch_passed_over.py", "error_ends_query.py"),
    *((f"checkpoint_{each}.py", "checkpoint_kept.py") for each in ("missing", "temporary")),
    *((f"received_{each}.py", "received_written_once.py") for each in ("appended", "overwritten")),
}
"""Pairs of which the fixed version claims a weaker guarantee."""

AN_ERROR = {"kept_checkpoint.py"}
"""No verdict: Spark ends such a query (tests/test_socket_source.py)."""


def named(path: Path, what: str) -> list[Path]:
    """The programs of its own folder that a docstring gives after `what`."""
    found = re.search(rf"^{what}s?: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    names = re.findall(r"(?<![/\w])\w+\.py", found[1]) if found else []
    return [path.parent / name for name in names if (path.parent / name).exists()]


def runs(path: Path) -> list[Scenario]:
    """The scenarios of one program, each cell of a sweep alone."""
    return [each for each in cells() if each.pipeline.entry == str(path.relative_to(HOUSE))]


def below(path: Path) -> str:
    """The place of a file below scenarios/, without the suffix."""
    return path.relative_to(HOUSE / "scenarios").with_suffix("").as_posix()


def place(scenario: Scenario) -> str:
    """That of its file."""
    return below(Path(scenario.path).resolve())


def injected_as(step: Step, other: Step) -> bool:
    """Return whether `other` is the fault of `step`, or a harder one at the same place: executors die with the driver.
    A sweep chooses the batch of a cell."""
    some = None in (step.when.batch, other.when.batch)
    step, other = (plainly(each, batch=None if some else each.when.batch) for each in (step, other))
    worse = (step.do.kind, other.do.kind) == ("kill driver", "crash application")
    return other == step or (worse and other.when == step.when)


def plainly(step: Step, *, batch: int | None) -> Step:
    """The step in this batch; `crash before offset commit` as the kill of the driver that it is."""
    when = replace(step.when, batch=batch, implied=False)
    do = replace(step.do, kind="kill driver") if step.do.kind == "crash before offset commit" else step.do
    return Step(when=when, do=do)


def flags(scenario: Scenario) -> dict[str, str]:
    """The arguments of its program that begin with two dashes, each with its value; a switch has none."""
    given = scenario.pipeline.args
    return {
        name: "" if after.startswith("--") else after
        for name, after in pairwise([*given, "--"])
        if name.startswith("--")
    }


def takes(entry: str, flag: str) -> bool:
    """Return whether a program has this flag, by itself or by a module of its folder that it imports."""
    program = HOUSE / entry
    text = program.read_text(encoding="utf-8")
    shared = [program.with_name(f"{name}.py") for name in re.findall(r"^import (\w+)$", text, re.MULTILINE)]
    texts = [text, *(path.read_text(encoding="utf-8") for path in shared if path.exists())]
    return any(re.search(rf'"(--)?{flag.removeprefix("--")}"', each) for each in texts)


def unlike(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """The keys that two mappings have not alike."""
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


def flags_unlike(less: Scenario, more: Scenario) -> set[str]:
    """The flags that both programs have, and are not given alike. A flag that is left out has its default, which counts
    as no value of the other one."""
    entries = (less.pipeline.entry, more.pipeline.entry)
    return {flag for flag in unlike(flags(less), flags(more)) if all(takes(entry, flag) for entry in entries)}


def differs(less: Scenario, more: Scenario) -> set[str]:
    """Return what differs between the tests of two scenarios: input, settings, arguments, schedule, guarantee."""
    bare = [replace(each.input, source_options={}) for each in (less, more)]
    injected = [injected_as(step, other) for step, other in zip(less.schedule, more.schedule, strict=False)]
    found = {
        "input": bare[0] != bare[1],
        "conf": dict(less.pipeline.conf) != dict(more.pipeline.conf),
        "executors": less.pipeline.executors != more.pipeline.executors,
        "checkpoint": less.pipeline.checkpoint != more.pipeline.checkpoint,
        "guarantee": less.guarantee != more.guarantee,
        "schedule": len(less.schedule) != len(more.schedule) or not all(injected),
    }
    options = unlike(less.input.source_options, more.input.source_options)
    return {name for name, unequal in found.items() if unequal} | options | flags_unlike(less, more)


def covered(less: Scenario, more: Scenario) -> bool:
    """Return whether two programs have the same test."""
    return not differs(less, more)


A_VIOLATION = re.compile(r"^(verdict|  [^#]+): \{violated", re.MULTILINE)
VIOLATED = [path for path in FILES if A_VIOLATION.search(path.read_text(encoding="utf-8"))]
"""By their text: to load every scenario takes seconds, also where this file is collected and none of its tests runs."""
BROKEN = [path for path in PROGRAMS if re.search("^Fixed versions?: ", path.read_text(encoding="utf-8"), re.MULTILINE)]


def broken_in(path: Path) -> list[Scenario]:
    """What a file expects to be violated: its scenario, or cells of its sweep."""
    return [each for each in of_file(path) if each.verdict.word == Word.VIOLATED]


PAIRS = sorted(
    {(broken, fixed) for broken in PROGRAMS for fixed in named(broken, "Fixed version")}
    | {(broken, fixed) for fixed in PROGRAMS for broken in named(fixed, "Broken version")}
)


def test_the_text_of_a_scenario_tells_whether_it_is_to_be_violated() -> None:
    assert [path for path in FILES if broken_in(path)] == VIOLATED


@pytest.mark.parametrize("path", VIOLATED, ids=below)
def test_each_violated_scenario_has_a_fixed_version_that_holds_under_the_same_test(path: Path) -> None:
    for broken in broken_in(path):
        meant = MEANT.get(below(path))
        if meant is not None:
            fixed = next(each for each in scenarios() if place(each) == meant.fixed)
            assert (fixed.verdict.word, {*differs(broken, fixed)}) == (meant.word, {*meant.differs})
            continue
        # The same program may hold with other arguments, or read in another way, under the same guarantee.
        program = HOUSE / broken.pipeline.entry
        its = [each for path in (program, *named(program, "Fixed version")) for each in runs(path)]
        held = [place(each) for each in its if each.verdict.word == Word.HELD and covered(broken, each)]
        assert held, broken.schedule


def test_what_is_meant_is_there_and_no_other_scenario_would_do() -> None:
    there = {below(path): shipped.scenario(path) for path in VIOLATED}
    assert there.keys() >= MEANT.keys()
    for name in MEANT:
        program = HOUSE / there[name].pipeline.entry
        its = [each for path in (program, *named(program, "Fixed version")) for each in runs(path)]
        assert not [each for each in its if each.verdict.word == Word.HELD and covered(there[name], each)], name


def test_input_and_settings_of_a_pair_count_as_its_schedule_does() -> None:
    scenario = next(each for each in scenarios() if each.schedule)
    assert covered(scenario, scenario)
    fed = replace(scenario, input=replace(scenario.input, records=scenario.input.records + 1))
    settings = replace(scenario, pipeline=replace(scenario.pipeline, conf={"spark.task.maxFailures": "1"}))
    more = replace(scenario, pipeline=replace(scenario.pipeline, executors=scenario.pipeline.executors + 1))
    lower = replace(scenario, guarantee=Guarantee.AT_LEAST_ONCE)
    again = replace(scenario, schedule=scenario.schedule * 2)
    others = (fed, settings, more, lower, again)
    assert [differs(scenario, other) for other in others] == [
        {"input"},
        {"conf"},
        {"executors"},
        {"guarantee"},
        {"schedule"},
    ]
    assert differs(again, scenario) == {"schedule"}


def test_an_argument_of_a_pair_counts_where_both_programs_take_it() -> None:
    scenario = next(each for each in scenarios() if each.pipeline.entry == "pipelines/files/sink_parquet.py")

    def given(*more: str) -> Scenario:
        return replace(scenario, pipeline=replace(scenario.pipeline, args=(*scenario.pipeline.args, *more)))

    larger, not_taken = given("--max-records", "100000"), given("--shuffled")
    assert [covered(scenario, larger), covered(larger, scenario), covered(larger, larger)] == [False, False, True]
    assert covered(scenario, not_taken)


@pytest.mark.parametrize(("broken", "fixed"), PAIRS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_each_pair_that_is_named_shares_a_schedule(broken: Path, fixed: Path) -> None:
    breaks = [each for each in runs(broken) if each.verdict.word == Word.VIOLATED]
    held = [each for each in runs(fixed) if each.verdict.word == Word.HELD]
    weaker = {"guarantee"} if (broken.name, fixed.name) in WEAKER else set()
    assert any(differs(less, more) == weaker for less in breaks for more in held)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_fixed_version_names_its_broken_version(broken: Path) -> None:
    others = [
        each for each in named(broken, "Fixed version") if "Fixed version" not in each.read_text(encoding="utf-8")
    ]
    assert [each.name for each in others if broken not in named(each, "Broken version")] == []


def test_every_program_has_a_scenario() -> None:
    programs = [path for path in PROGRAMS if "# /// onceproof" in path.read_text(encoding="utf-8")]
    assert len(programs) > 60
    assert [path.name for path in programs if not runs(path) and path.name not in AN_ERROR] == []

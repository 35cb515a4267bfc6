"""What a night draws: the same list each time, and only what the loader takes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.fields.paths import find
from harness.load import dump, load, load_all
from harness.nightly.draw import NAME_MAX, Half, plans, targets
from harness.nightly.possible import Target, faults, inside
from harness.scenario import CrashPoint, Scenario, Victim
from harness.stacks.registry import STACKS
from harness.triggers import trigger
from tests.limits import examples
from tests.strategies import project, scenarios

HOUSE = Path(__file__).parents[1]
MEANS_HERE = STACKS["processes"].means
SEEDS = st.integers(0, 2**31)


@pytest.fixture(scope="module")
def proving() -> list[Scenario]:
    return load_all(find([HOUSE / "scenarios" / "proving"]))


@pytest.fixture(scope="module")
def shipped() -> list[Target]:
    return targets(load_all(find([HOUSE / "scenarios" / name for name in ("proving", "sources")])), MEANS_HERE)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return project(tmp_path_factory.mktemp("project"))


@pytest.mark.slow
@given(scenarios(), SEEDS)
@settings(max_examples=examples(30), deadline=None)
def test_a_plan_for_any_scenario_is_one_that_the_loader_takes(home: Path, base: Scenario, seed: int) -> None:
    for plan in islice(plans(targets([base], MEANS_HERE), means=MEANS_HERE, seed=seed), 4):
        path = home / "drawn.yaml"
        path.write_text(dump(plan.scenario), encoding="utf-8")
        assert replace(load(path), path="") == replace(plan.scenario, path="")


@pytest.mark.slow
@given(SEEDS)
@settings(max_examples=4, deadline=None)
def test_a_plan_for_a_scenario_of_ours_is_one_that_the_loader_takes(
    copied: Path, shipped: list[Target], seed: int
) -> None:
    for plan in islice(plans(shipped, means=MEANS_HERE, seed=seed), 10):
        copied.write_text(dump(plan.scenario), encoding="utf-8")
        assert replace(load(copied), path="") == replace(plan.scenario, path="")


def test_a_plan_is_named_by_its_program_and_its_steps(shipped: list[Target]) -> None:
    drawn = list(islice(plans(shipped[:1], means=MEANS_HERE, seed=3), 12))
    for number, plan in enumerate(drawn):
        first = plan.scenario.schedule[0]
        steps = f"{first.do} at {first.when}" if first.when.point else f"{first.do} {first.when}"
        whole = f"night 3/1/{number}: {plan.scenario.pipeline.entry}, {steps}"
        assert plan.scenario.name.startswith(whole[:NAME_MAX].rstrip())
    assert len({plan.scenario.name.partition(": ")[2] for plan in drawn}) > 6


@given(SEEDS, st.integers(1, 9))
@settings(max_examples=5, deadline=None)
def test_a_seed_and_a_shard_are_one_list(shipped: list[Target], seed: int, shard: int) -> None:
    def drawn(number: int) -> list[str]:
        return [repr(plan) for plan in islice(plans(shipped, means=MEANS_HERE, seed=seed, shard=shard), number)]

    assert drawn(12) == drawn(12)
    assert drawn(5) == drawn(12)[:5]
    assert drawn(5) != [repr(p) for p in islice(plans(shipped, means=MEANS_HERE, seed=seed, shard=shard + 1), 5)]


@given(SEEDS)
@settings(max_examples=4, deadline=None)
def test_what_earlier_nights_struck_changes_the_weighted_half_alone(shipped: list[Target], seed: int) -> None:
    plain = list(islice(plans(shipped, means=MEANS_HERE, seed=seed), 30))
    struck = Counter(cell for plan in plain for cell in plan.cells)
    other = list(
        islice(plans(shipped, means=MEANS_HERE, seed=seed, struck={c: 100 * n for c, n in struck.items()}), 30)
    )
    assert [p for p in plain if p.half is Half.UNIFORM] == [p for p in other if p.half is Half.UNIFORM]
    assert {p.half for p in plain} == set(Half)


def test_the_weighted_half_strikes_more_cells(proving: list[Scenario]) -> None:
    known = targets(proving, MEANS_HERE)[:2]
    drawn = list(islice(plans(known, means=MEANS_HERE, seed=1), 60))
    uniform, weighted = (
        {cell for plan in drawn if plan.half is half for cell in plan.cells} for half in (Half.UNIFORM, Half.WEIGHTED)
    )
    assert len(weighted) > len(uniform)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_weighted_half_soon_kills_a_pipeline_at_each_place(proving: list[Scenario], seed: int) -> None:
    known = targets(proving, MEANS_HERE)[:3]
    drawn = list(islice(plans(known, means=MEANS_HERE, seed=seed), 90))
    for target in known:
        own = [plan for plan in drawn if plan.target == target.name]
        first = [plan for plan in own if plan.half is Half.WEIGHTED][:3]
        places = set[tuple[str, str]]().union(*(plan.kills for plan in own))
        assert len(places) > 2
        assert set[tuple[str, str]]().union(*(plan.kills for plan in first)) == places


def test_each_half_takes_the_targets_in_turn(shipped: list[Target]) -> None:
    drawn = list(islice(plans(shipped, means=MEANS_HERE, seed=3), 2 * len(shipped)))
    for half in Half:
        assert sorted(plan.target for plan in drawn if plan.half is half) == sorted(each.name for each in shipped)
    # So after half of them every target has had one plan.
    first = {plan.target for plan in drawn[: len(shipped) + len(shipped) % 2]}
    assert len(first) >= len(shipped) - 1


def test_the_weighted_half_strikes_batches_in_flight_first(proving: list[Scenario]) -> None:
    known = targets(proving, MEANS_HERE)
    drawn = list(islice(plans(known, means=MEANS_HERE, seed=3), 2 * len(known)))
    misses = {
        half: sum(not inside(step.when) for plan in drawn if plan.half is half for step in plan.scenario.schedule)
        for half in Half
    }
    assert misses[Half.WEIGHTED] < misses[Half.UNIFORM]


def test_every_moment_and_victim_is_drawn_in_time(proving: list[Scenario]) -> None:
    drawn = list(islice(plans(targets(proving, MEANS_HERE), means=MEANS_HERE, seed=0), 200))
    steps = [step for plan in drawn for step in plan.scenario.schedule]
    assert {step.when.point for step in steps} == {*CrashPoint, None} - {
        CrashPoint.BATCH_CHECKPOINTED,
        CrashPoint.BATCH_PLANNING,
        CrashPoint.BLOCK_RECEIVED,
        CrashPoint.SINK_COMMITTING,
    }
    assert {step.when.kind for step in steps} >= {"point", "rows", "records", "elapsed", "failpoint"}
    assert {step.do.options.get("victim", Victim.TREE) for step in steps} == set(Victim)
    kinds = {step.do.kind for step in steps}
    assert {"kill driver", "kill executor", "kill postgres", "kill kafka", "pause driver", "stop driver"} <= kinds
    assert "disconnect driver" not in kinds
    assert {len(plan.scenario.schedule) for plan in drawn} == {1, 2, 3}
    assert len({plan.scenario.input.records for plan in drawn}) > 2
    assert len({plan.scenario.input.options.get("skew") for plan in drawn}) > 1
    assert any(plan.scenario.input.rate_per_s for plan in drawn)


def test_scenarios_of_one_pipeline_are_one_target(proving: list[Scenario]) -> None:
    found = targets(proving, MEANS_HERE)
    assert len(found) < len(proving)
    assert len({target.name for target in found}) == len(found)
    assert not any(target.base.schedule for target in found)
    assert targets([], MEANS_HERE) == []
    assert list(islice(plans([], means=MEANS_HERE, seed=0), 3)) == []
    json.dumps([sorted(plan.cells) for plan in islice(plans(found, means=MEANS_HERE, seed=0), 3)])


@pytest.mark.parametrize(("sink", "drawn"), [("postgres", True), ("hdfs", False)])
def test_what_the_sink_holds_is_not_taken_for_good(proving: list[Scenario], sink: str, drawn: bool) -> None:
    base = replace(proving[0], pipeline=replace(proving[0].pipeline, checkpoint="hdfs"), schedule=())
    base = replace(base, sinks=(replace(base.sinks[0], kind=sink),))
    found = {each.kind for each in faults(Random(1), base, trigger("records", 50), MEANS_HERE)}
    assert ("lose blocks" in found, "lose node" in found, "kill datanode" in found) == (drawn, drawn, True)

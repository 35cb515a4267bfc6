"""Plans drawn from a seed, a shard and a number: pure, the same list for the same targets.

own = targets(scenarios, means)
for plan in plans(own, means=means, seed=7): ...           without an end, numbers from 0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from math import inf
from random import Random

from harness.fields import values as v
from harness.load.models import own
from harness.nightly.possible import Target, exposes, faults, inside, place, triggers
from harness.scenario import Expected, Impact, Input, Scenario, Step
from harness.scenario.impact import ENDS_EXECUTOR
from harness.sources import SOURCES
from harness.sources.base import RefusesOptions
from harness.stack import Means
from harness.triggers.base import most_batches
from harness.workloads import WORKLOADS
from harness.workloads.base import RECORDS_MAX

LAST_BATCH = 5
CANDIDATES = 24
"""Of so many the weighted half takes the one that kills at the most places where the pipeline was not yet killed. Of
those it takes the one that goes where fewest went, then the surest to come while a batch is in flight."""
KILLS = (Impact.DRIVER_KILLED, *ENDS_EXECUTOR)
"""After these something is done again, or never, for certain. A driver that is asked to stop may finish its batch."""
STEPS = (1, 1, 2, 3)
SIZES = (0.5, 1, 1, 2)
MANY = 100_000
"""From so many records on, no more are sent than a file says: a night has better to do."""
SKEWS = (0.0, 0.0, 0.8, 1.5)
SENT_WITHIN_S = (4, 12)
RATE_MAX = 1e8
LONGER_S = 30.0
"""For each crash more than one."""
NAME_MAX = 200

Cell = tuple[str, str, str]
"""Target, place in the protocol, fault."""


class Half(StrEnum):
    """How a plan was drawn. Only the uniform half bounds anything."""

    UNIFORM = "uniform"
    WEIGHTED = "weighted"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One drawn plan, and what it aims at."""

    number: int
    half: Half
    target: str
    scenario: Scenario

    @property
    def cells(self) -> frozenset[Cell]:
        """What each step aims at."""
        return frozenset(cell(self.target, step) for step in self.scenario.schedule)

    @property
    def kills(self) -> frozenset[tuple[str, str]]:
        """Target and place of each step that kills while a batch is in flight."""
        steps = [step for step in self.scenario.schedule if step.do.impact in KILLS and inside(step.when)]
        return frozenset((self.target, place(step.when)) for step in steps)


def claim(scenario: Scenario) -> str:
    """Return what it says of its pipeline, whatever its schedule: scenarios of one claim are one target."""
    bare = replace(
        scenario, name="", why="", schedule=(), crash_points=(), verdict=Expected(), tags=(), seed=0, path=""
    )
    return repr(replace(bare, known=None, timeout_s=1))


def undrawn(scenario: Scenario) -> str:
    """Return its claim without what `given` draws, so that a plan has the claim of the target it was drawn for."""
    sent, kind = scenario.input, WORKLOADS[scenario.input.workload].about
    if not _given(scenario):
        return claim(scenario)
    drawn = {"skew"} if own(kind).get("skew") == "skew" else set()
    options = {name: value for name, value in sorted(kind.normalised(sent.options).items()) if name not in drawn}
    return claim(replace(scenario, input=replace(sent, records=1, rate_per_s=None, options=options)))


def cell(target: str, step: Step) -> Cell:
    """Return where a step of a target aims."""
    return target, place(step.when), str(step.do)


def targets(scenarios: Sequence[Scenario], means: Collection[Means]) -> list[Target]:
    """Return the pipelines that plans can be drawn for: one a pipeline with its sinks, input and guarantee, in the
    order given, by its first scenario. One of which no step can be drawn is left out."""
    found: dict[str, list[Scenario]] = {}
    for each in scenarios:
        found.setdefault(claim(each), []).append(each)
    out = []
    for same in found.values():
        entry, query = same[0].pipeline.entry, {sink.query for sink in same[0].sinks}
        named = {
            step.when: None
            for each in scenarios
            if each.pipeline.entry == entry and {sink.query for sink in each.sinks} == query
            for step in each.schedule
            if not step.when.implied
        }
        target = Target(base=replace(same[0], schedule=(), crash_points=()), named=tuple(named), own=tuple(same))
        if _step(Random(0), target, target.base, 1, means=means):
            out.append(target)
    return out


def plans(
    known: Sequence[Target],
    *,
    means: Collection[Means],
    seed: int,
    shard: int = 1,
    struck: Mapping[Cell, int] | None = None,
) -> Iterator[Plan]:
    """Yield every plan, from number 0, without an end; none without a target. Each half goes over the targets in turn,
    in an order of the seed's, and the two are half a round apart. `struck` says how often earlier nights have struck a
    cell."""
    aimed, killed = Counter(struck or {}), Counter[tuple[str, str]]()
    order = Random(f"{seed}/{shard}").sample(known, len(known))
    for number in count() if known else ():
        turn = number // 2
        if number % 2 == 0:
            plan = draw(Random(f"{seed}/{shard}/{number}"), order[turn % len(order)], means, number)
        else:
            target = order[(turn + len(order) // 2) % len(order)]
            tries = (Random(f"{seed}/{shard}/{number}/{each}") for each in range(CANDIDATES))
            drawn = [draw(random, target, means, number) for random in tries]
            plan = min(drawn, key=lambda each: (_known(each, killed), *_used(each, aimed)))
        aimed.update(plan.cells)
        killed.update(plan.kills)
        yield replace(plan, scenario=_named(plan, seed, shard))


def _known(plan: Plan, killed: Mapping[tuple[str, str], int]) -> float:
    """The less, the more places it kills at where this pipeline was not killed before, or seldom."""
    return -sum(1 / (1 + killed.get(each, 0)) ** 2 for each in plan.kills)


def _used(plan: Plan, aimed: Mapping[Cell, int]) -> tuple[float, float, int]:
    """Return how often its cells were aimed at, how many of its steps may miss every batch, each on an average; then
    the one with the most cells comes first."""
    steps = plan.scenario.schedule
    return (
        sum(aimed.get(cell, 0) for cell in plan.cells) / len(plan.cells),
        sum(not inside(step.when) for step in steps) / len(steps),
        -len(plan.cells),
    )


def draw(random: Random, target: Target, means: Collection[Means], number: int) -> Plan:
    """Return one plan."""
    bare = replace(target.base, input=given(random, target.base), verdict=Expected(), tags=(), known=None)
    scenario = replace(scheduled(random, target, bare, means), seed=random.getrandbits(31))
    half = Half.WEIGHTED if number % 2 else Half.UNIFORM
    return Plan(number=number, half=half, target=target.name, scenario=scenario)


def scheduled(random: Random, target: Target, scenario: Scenario, means: Collection[Means]) -> Scenario:
    """Return the scenario with one to three steps that are possible in it, and time for them."""
    steps: list[Step] = []
    drawn = batches(random, int(min(LAST_BATCH, most_batches(scenario.input.records or inf) - 1)))
    for at, batch in enumerate(drawn, 1):
        idle = at == len(drawn) and not any(exposes(step.when) for step in steps)
        steps += _step(random, target, scenario, batch, means=means, idle=idle)
    more_s = LONGER_S * (len(steps) - 1)
    # A sum of floats is no longer what a file says.
    timeout_s = min(v.DURATION_MAX_S, round(scenario.timeout_s + more_s, 6)) if more_s > 0 else scenario.timeout_s
    return replace(scenario, schedule=tuple(steps), timeout_s=timeout_s)


def batches(random: Random, last: int) -> list[int]:
    """Return the batches of one to three steps, rising, up to the batch `last`."""
    out: list[int] = []
    for _ in range(random.choice(STEPS)):
        before = out[-1] if out else 0
        out.append(before + (random.randint(1, 2) if before < last - 1 else 1))
    return [batch for batch in out if batch <= last]


def given(random: Random, base: Scenario) -> Input:
    """Draw how much is sent, how skewed, how fast. An input that closes windows counts its records, so it stays as it
    is."""
    sent = base.input
    size, skew, slow = random.choice(SIZES), random.choice(SKEWS), random.randrange(4) == 0
    size = min(size, 1) if sent.records and sent.records >= MANY else size
    within_s = min(random.uniform(*SENT_WITHIN_S), base.timeout_s / 2)
    if not _given(base):
        return sent
    kind = WORKLOADS[sent.workload].about
    found = replace(sent, records=min(RECORDS_MAX, max(1, int(sent.records * size))))
    if own(kind).get("skew") == "skew":
        found = replace(found, options=kind.normalised({**sent.options, "skew": skew}))
    source = SOURCES[sent.source]
    if isinstance(source, RefusesOptions) and any(source.refusals(found.source_options, found.records)):
        found = replace(found, records=sent.records)
    rate = max(0.1, round(found.records / within_s, 1)) if slow else None
    in_time = rate is not None and rate < RATE_MAX and found.records / rate < base.timeout_s
    return replace(found, rate_per_s=rate if in_time else sent.rate_per_s if _sent(found, base) else None)


def _given(base: Scenario) -> bool:
    """Return whether anything of its input is drawn."""
    return bool(base.input.records) and not any(sink.watermark for sink in base.sinks)


def _sent(found: Input, base: Scenario) -> bool:
    """Return whether it is sent in time at the rate that the scenario had."""
    return not found.rate_per_s or found.records / found.rate_per_s < base.timeout_s


def _step(
    random: Random, target: Target, scenario: Scenario, batch: int, *, means: Collection[Means], idle: bool = False
) -> list[Step]:
    """Return one step: first a moment, then a fault. With `idle` one that can expose something, if there is any; none
    if there is none at all."""
    found = list(triggers(random, target, scenario, batch))
    random.shuffle(found)
    for when in sorted(found, key=lambda when: idle and not exposes(when)):
        if there := list(faults(random, scenario, when, means)):
            return [Step(when=when, do=random.choice(there))]
    return []


def _named(plan: Plan, seed: int, shard: int) -> Scenario:
    base = plan.scenario
    why = f"drawn for {plan.target}: seed {seed}, shard {shard}, number {plan.number}, {plan.half} half"
    steps = ", then ".join(f"{each.do} {'at ' if each.when.point else ''}{each.when}" for each in base.schedule)
    name = f"night {seed}/{shard}/{plan.number}: {base.pipeline.entry}, {steps}"
    return replace(base, name=name[:NAME_MAX].rstrip(), why=why)

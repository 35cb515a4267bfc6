"""How a suite runs, as the command line and the plugin ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.machine import capacity
from harness.run.plan import with_standby
from harness.scenario import Scenario
from harness.stacks.addresses import Where
from harness.stacks.other_lines import asked
from harness.suite import side_by_side

ONE_AT_A_TIME = ("external", "yarn")
"""The stacks on which no run is played beside another: a cluster that is somebody else's, and one whose NodeManager is
held still while anybody looks at a dead attempt. No driver waits ready there."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a suite runs. `keep`: which run folders stay, `all`, `failed` or `none`; `standby`: a driver waits ready
    for each restart after a planned kill (True), for none (False), or as each scenario says; `spark`: the line of Spark
    of the scenarios that name none, empty for the installed one; `jobs`: runs at once; `own_stack`: not on the one that
    is up; `junit`: where JUnit's XML goes. None: by what the machine has to give."""

    stack: str = "processes"
    where: Where | None = None
    skip_unsupported: bool = False
    seed: int | None = None
    standby: bool | None = None
    spark: str = ""
    jobs: int | None = None
    own_stack: bool = False
    repeat: int = 1
    reports: Path = Path("reports")
    keep: str = "all"
    junit: Path | None = None


def fitted(options: Options, work: Sequence[Scenario]) -> tuple[int, list[Scenario]]:
    """How many runs at once, and the scenarios with a standby or without, as asked or as this machine can."""
    cores = capacity.cores()
    jobs = options.jobs or _jobs(options, work, cores)
    idle = options.stack not in ONE_AT_A_TIME and side_by_side.standby(jobs, cores=cores)

    def one(scenario: Scenario) -> Scenario:
        own = scenario.restart.standby
        # Another line of Spark has none.
        able = idle and not asked(scenario)
        # A scenario that has to begin cold does, whatever is asked of all.
        said = False if own is False else options.standby
        wanted = said if said is not None else able if own is None else own
        return with_standby(scenario, standby=wanted)

    return jobs, [*map(one, work)]


def overlapping(options: Options, jobs: int, work: Sequence[Scenario]) -> bool:
    """Does the next run begin while the one before it is drained, read and judged?"""
    cores, memory = capacity.cores(), capacity.memory()
    return options.stack not in ONE_AT_A_TIME and side_by_side.overlaps(jobs, work, cores=cores, memory=memory)


def _jobs(options: Options, work: Sequence[Scenario], cores: int) -> int:
    return 1 if options.stack in ONE_AT_A_TIME else side_by_side.jobs(work, cores=cores, memory=capacity.memory())

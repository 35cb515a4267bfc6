"""How a suite runs, as the command line and the plugin ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.machine import capacity
from harness.scenario import Scenario
from harness.stacks import DEFAULT
from harness.stacks.addresses import Where
from harness.stacks.kind import OneAtATime
from harness.stacks.registry import STACKS
from harness.suite import side_by_side


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a suite runs. `keep`: which run folders stay, `all`, `failed` or `none`; `spark`: the Spark version of the
    scenarios that name none, empty for the installed one; `jobs`: runs at once, None: by what the machine has to give;
    `own_stack`: not on the one that is up; `junit`: where JUnit's XML goes; `verbose`: print what is not as expected
    with its evidence."""

    stack: str = DEFAULT
    where: Where | None = None
    skip_unsupported: bool = False
    seed: int | None = None
    spark: str = ""
    jobs: int | None = None
    own_stack: bool = False
    repeat: int = 1
    reports: Path = Path("reports")
    keep: str = "all"
    junit: Path | None = None
    verbose: bool = False


def one_at_a_time(options: Options) -> bool:
    """Return whether no run is played beside another on the stack."""
    return isinstance(STACKS.all().get(options.stack), OneAtATime)


def jobs(options: Options, work: Sequence[Scenario]) -> int:
    """Return how many runs at once, as asked or as this machine can."""
    if one_at_a_time(options):
        return 1
    return options.jobs or side_by_side.jobs(work, cores=capacity.cores(), memory=capacity.memory())

"""How often YARN starts a driver: its own policy, which stands in for a scenario's `restart`."""

from __future__ import annotations

from collections.abc import Iterator

from harness.scenario import Impact, Pipeline, Restart, Scenario

ATTEMPTS = "spark.yarn.maxAppAttempts"
VALIDITY = "spark.yarn.am.attemptFailuresValidityInterval"
MOST = 1 + Restart.max_restarts
"""The first attempt, and as many restarts as on any other stack."""
ENDS = (Impact.DRIVER_KILLED, Impact.DRIVER_STOPPED)


def attempts(pipeline: Pipeline) -> int | None:
    """How many attempts YARN gives it: as its own `conf` says; None where that is no such number."""
    said = pipeline.conf.get(ATTEMPTS, str(MOST))
    return int(said) if said.isascii() and said.isdigit() and int(said) else None


def unsupported(scenario: Scenario) -> Iterator[str]:
    """What a scenario asks for and YARN does otherwise, each in words that stand after `asked for`."""
    given, usual = scenario.restart, Restart()
    # What the command says of standbys is said there too.
    for key, differs in (
        ("after", given.delay_s != usual.delay_s),
        ("max_restarts", given.max_restarts != usual.max_restarts),
        ("standby", bool(given.standby)),
    ):
        if differs:
            yield f"restart.{key}"
    most = attempts(scenario.pipeline)
    if most is None:
        yield f"{ATTEMPTS}: {scenario.pipeline.conf[ATTEMPTS]}"
        return
    # Each end counts, the schedule's too, unless YARN forgets those that are old.
    ends = sum(step.do.impact in ENDS for step in scenario.schedule)
    if ends >= most and VALIDITY not in scenario.pipeline.conf:
        yield f"{ends} steps that end the driver, with {ATTEMPTS}: {most}, which they use up"

"""Faults on servers where no process can be affected, and on the parts of one that has none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from harness.component import COMPONENTS, FoundByName, StandsFor, needs
from harness.faults import FAULTS
from harness.load import build
from harness.load.with_header import Claim
from harness.resources import components
from harness.scenario import Word
from harness.stacks.needed_parts import parts


def check_servers(claim: Claim) -> None:
    """Add the steps of a file that is right otherwise whose fault hits a component that the scenario has nothing to do
    with. One that the program's environment leads to is let through: no file says whether it goes there."""
    scenario = build.scenario(claim, path=claim.top.file)
    used = components(parts(replace(scenario, schedule=())))
    for section, step in zip(claim.top.sections("schedule"), scenario.schedule, strict=True):
        for hit in (each for each in needs(FAULTS[step.do.kind]) if each not in used):
            if words := _smaller(hit, used):
                section.wrong(f"{section.path}.do: {step.do.kind} hits {hit}; {words}", "do")
            elif isinstance(COMPONENTS.all().get(hit), FoundByName) and scenario.verdict.word is not Word.UNTESTED:
                words = f"hits {hit}, which neither input, sink nor a placeholder names"
                section.wrong(f"{section.path}.do {words}: hit what the pipeline is connected to", "do")


def _smaller(hit: str, used: Collection[str]) -> str:
    """What the scenario has in the place of a component that a fault hits, and what to say instead; empty if it has
    nothing there."""
    for name in used:
        kind = COMPONENTS.all().get(name)
        if isinstance(kind, StandsFor) and kind.stands_for == hit:
            return f"{name} {kind.apart}: take {hit} in its place, or `do: kill {name}`"
    return ""

"""Faults on servers where no process can be affected, and on the parts of one that has none."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from harness.component import COMPONENTS, FoundByName, Substitutes, needs
from harness.faults import FAULTS
from harness.load import build
from harness.load.with_header import Claim
from harness.resources import components
from harness.scenario import Word
from harness.stacks.needed_parts import parts


def check_servers(claim: Claim) -> None:
    """Add the steps of a file that is right otherwise whose fault strikes a component that the scenario has nothing to
    do with. One that the program's environment leads to is let through: no file says whether it goes there."""
    scenario = build.scenario(claim, path=claim.top.file)
    used = components(parts(replace(scenario, schedule=())))
    for section, step in zip(claim.top.sections("schedule"), scenario.schedule, strict=True):
        for struck in (each for each in needs(FAULTS[step.do.kind]) if each not in used):
            if words := _smaller(struck, used):
                section.wrong(f"{section.path}.do: {step.do.kind} strikes {struck}; {words}", "do")
            elif isinstance(COMPONENTS.all().get(struck), FoundByName) and scenario.verdict.word is not Word.UNTESTED:
                words = f"strikes {struck}, which neither input, sink nor a placeholder names"
                section.wrong(f"{section.path}.do {words}: strike what the pipeline is connected to", "do")


def _smaller(struck: str, used: Collection[str]) -> str:
    """Return what the scenario has in the place of a component that a fault strikes, and what to say instead; empty if
    it has nothing there."""
    for name in used:
        kind = COMPONENTS.all().get(name)
        if isinstance(kind, Substitutes) and kind.substitutes == struck:
            return f"{name} {kind.apart}: take {struck} in its place, or `do: kill {name}`"
    return ""

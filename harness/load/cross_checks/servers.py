"""Faults on servers where nobody can notice."""

from __future__ import annotations

from dataclasses import replace

from harness.component import COMPONENTS, FoundByName, needs
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
    if scenario.expect.word is Word.VOID:
        return
    used = components(parts(replace(scenario, schedule=())))
    for section, step in zip(claim.top.sections("schedule"), scenario.schedule, strict=True):
        for hit in needs(FAULTS[step.do.kind]):
            if hit not in used and isinstance(COMPONENTS.all().get(hit), FoundByName):
                words = f"hits {hit}, which neither input, sink nor a placeholder names"
                section.wrong(f"{section.path}.do {words}: hit what the pipeline is connected to", "do")

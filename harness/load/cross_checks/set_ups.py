"""What `setup` says: texts that their components can read, of parts that the run has to do with."""

from __future__ import annotations

from harness.component import ReadsSetUp, component
from harness.fields.hints import did_you_mean
from harness.fields.placeholders import filled, used
from harness.load import build
from harness.load.with_header import Claim
from harness.stacks.needed_parts import unnamed


def check_set_ups(claim: Claim) -> None:
    """Add what is wrong with the texts, and, in a file that is right otherwise, with its own parts: those of a header
    may be for other scenarios."""
    owner = claim.owner("setup")
    for part, text in claim.get("setup", {}).items():
        kind = component(part)
        if isinstance(kind, ReadsSetUp) and (why := kind.no_set_up(filled(text, dict.fromkeys(used(text), "x")))):
            owner.wrong(f"setup.{part} {why}", "setup", part)
    if claim.top.mistakes or owner is not claim.top:
        return
    for part, others in unnamed(build.scenario(claim, path=claim.top.file)):
        words = f"setup.{part} prepares a part that neither a sink nor a placeholder names"
        owner.wrong(f"{words}{did_you_mean(part, others) or '; leave it out'}", "setup", part)

"""When a run of bench/unsteady.py is right. The runs themselves need a stack."""

from __future__ import annotations

import pytest

from bench import unsteady
from bench.unsteady import breach, left_out
from harness.scenario import Finding, Kind, Verdict, Word

LOST = Finding(kind=Kind.LOST, sink="postgres payments")
BLAMED = Finding(kind=Kind.LOST, sink="postgres payments", faults=("kill driver",))


def verdict(word: Word, *findings: Finding) -> Verdict:
    return Verdict(word=word, as_expected=False, expected="held", findings=findings)


@pytest.mark.parametrize(
    ("program", "said", "lost", "why"),
    [
        ("windows", verdict(Word.HELD), False, ""),
        ("windows", verdict(Word.INCONCLUSIVE, LOST), False, ""),
        ("windows", verdict(Word.VIOLATED, LOST), False, "violated"),
        ("windows", verdict(Word.ERROR), False, "error"),
        ("loser", verdict(Word.HELD), False, ""),
        ("loser", verdict(Word.HELD), True, "a payment was left out, and not found"),
        ("loser", verdict(Word.VIOLATED, LOST), False, "a finding, and no payment was left out"),
        ("loser", verdict(Word.VIOLATED, LOST), True, ""),
        ("loser", verdict(Word.INCONCLUSIVE, LOST), True, ""),
        ("loser", verdict(Word.UNTESTED, LOST), True, "untested with a payment left out"),
        ("loser", verdict(Word.VIOLATED, BLAMED), True, "a fault is blamed"),
        ("loser", verdict(Word.ERROR), True, "error"),
    ],
)
def test_a_run_is_right_or_it_is_said_why_not(program: str, said: Verdict, lost: bool, why: str) -> None:
    assert breach(program, said, lost) == why


def test_one_run_of_three_leaves_out_a_payment() -> None:
    share = sum(left_out(f"r{number:08x}") for number in range(3000)) / 3000
    assert abs(share - 1 / unsteady.ONE_IN) < 0.05

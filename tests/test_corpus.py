"""The corpus: each case has its one right verdict and reason, and its twin, which differs in one fact, has another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import CASES, EVERY
from tests.corpus.case import Adversary, Right, judged_as

pytestmark = pytest.mark.usefixtures("asked_once")

ITEMS = range(1, 16)
"""What is wrong today, as the issue counts it."""
CASES_MIN = 40
TWINS = [case for case in EVERY if case.twin is not None]


def ids(case: Adversary) -> str:
    return case.id


@pytest.mark.parametrize("case", EVERY, ids=ids)
def test_a_case_has_its_one_right_verdict_and_reason(case: Adversary, tmp_path: Path) -> None:
    assert judged_as(case.case(tmp_path / "run")).misses(case.right) == {}, case.title


@pytest.mark.parametrize("case", TWINS, ids=ids)
def test_its_twin_has_another(case: Adversary, tmp_path: Path) -> None:
    twin, (fact,) = case.other(tmp_path / "run")
    assert case.twin is not None
    assert judged_as(twin).misses(case.twin) == {}, f"{case.title} But: {fact}"


def told(right: Right) -> tuple[object, ...]:
    """The verdict without its reasons: word, what is expected, what is blamed."""
    return right.word, right.as_expected, right.faults


@pytest.mark.parametrize("case", TWINS, ids=ids)
def test_case_and_twin_are_told_apart(case: Adversary) -> None:
    assert case.twin is not None
    assert told(case.right) != told(case.twin)
    assert case.title.endswith(".") and len(case.title) > 40


def test_every_item_has_its_cases() -> None:
    names = [case.id for case in EVERY]
    assert len(set(names)) == len(names)
    assert set(ITEMS) <= {case.item for case in CASES}
    assert len(CASES) >= CASES_MIN

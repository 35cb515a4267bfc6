"""What a suite keeps of a run until its end: as much of its findings as anybody is told, and no more."""

from __future__ import annotations

import io
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report import summary, table
from harness.report.ci import github, junit, markdown, run_text, sarif
from harness.report.failure_text import MOST
from harness.report.summary import Run, brief
from harness.scenario import Finding, Kind, Word
from harness.suite import Suite
from harness.suite.options import Options
from harness.suite.progress import progress
from tests import sample_runs as sample

ROWS = st.builds(
    Finding,
    kind=st.sampled_from(list(Kind)),
    sink=st.sampled_from(["postgres payments", "kafka out"]),
    key=st.fixed_dictionaries({"id": st.integers(0, 99).map(str)}),
    note=st.sampled_from(["", "the batch was committed without it"]),
    copies=st.integers(1, 3),
    faults=st.sampled_from([(), ("1",), ("2",)]),
)


def of(findings: list[Finding], *, as_expected: bool, word: Word = Word.VIOLATED) -> Run:
    verdict = sample.verdict(findings=tuple(findings), as_expected=as_expected, word=word)
    return Run(scenario="a", verdict=verdict, file="scenarios/a.yaml", seed=7, seconds=1.5, stack="processes")


@given(st.lists(ROWS, max_size=80), st.booleans(), st.sampled_from([Word.VIOLATED, Word.INCONCLUSIVE, Word.HELD]))
def test_all_that_a_suite_tells_of_a_run_is_told_of_what_it_keeps(
    findings: list[Finding], as_expected: bool, word: Word
) -> None:
    run = of(findings, as_expected=as_expected, word=word)
    kept = brief(run)
    assert summary.entry(kept) == summary.entry(run)
    assert table.cells(kept) == table.cells(run)
    for say in (junit.text, markdown.summary, table.tally):
        assert say([kept]) == say([run])
    if not as_expected:
        assert run_text.failure(kept) == run_text.failure(run)
        assert github.of_run(kept) == github.of_run(run)
        assert len(sarif.document([kept])["runs"][0]["results"]) == len(sarif.document([run])["runs"][0]["results"])
    assert replace(kept.verdict, findings=()) == replace(run.verdict, findings=())


@given(st.lists(ROWS, max_size=200), st.booleans())
def test_few_findings_are_kept_whole(findings: list[Finding], as_expected: bool) -> None:
    kept = brief(of(findings, as_expected=as_expected)).verdict.findings
    assert [(each.kind, each.sink) for each in kept] == [(each.kind, each.sink) for each in findings]
    whole = {id(each) for each in kept if each.key}
    assert len(whole) <= (0 if as_expected else 2 * MOST)
    assert len({id(each) for each in kept} - whole) <= 6 * len(Kind)


@pytest.mark.parametrize("as_expected", [True, False])
def test_a_suite_keeps_no_rows_of_runs_that_are_over(tmp_path: Path, as_expected: bool) -> None:
    """Three hundred findings each."""
    suite = Suite(Options(reports=tmp_path), progress(io.StringIO()))
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(4):
            suite.add(number, of([sample.duplicated(each) for each in range(300)], as_expected=as_expected))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / 4 < 60_000, "bytes a run: whole, these findings are half a million"

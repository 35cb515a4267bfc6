"""The verdict in sentences, findings by cause, and the file with every finding: true, short, and no formula."""

from __future__ import annotations

import csv
import io
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.report import render
from harness.report.causes import table_file
from harness.report.causes.groups import groups, ranges
from harness.report.causes.headline import Case, headline, labels
from harness.report.causes.sentences import MOST_WORDS, batches, sentences, words
from harness.report.causes.shown import findings_summary, shown
from harness.report.timeline.counts import Counts
from harness.scenario import Finding, Guarantee, Harm, Impact, Kind, RecordRef, Verdict, Word
from harness.snapshot import Batch, Progressed, Query
from tests import sample_runs as sample

WRITTEN = "sink written, batch not committed"
"""What the judge calls the crash point that a snapshot shows."""


def progressed(*attempts: int, first: dict[int, int] | None = None) -> Progressed:
    batch = Batch(batch=3, ranges={0: (200, 300)}, committed=True, attempts=attempts)
    queries = (Query(checkpoint="checkpoint", batches=(batch,), first=first or {1: 0}),)
    return Progressed(queries=queries, end={0: 300})


def case(verdict: Verdict, **more: Any) -> Case:
    parts = {"impacts": {1: Impact.DRIVER_KILLED}, "labels": labels(verdict.steps), **more}
    return Case(verdict=verdict, groups=groups(verdict.findings), **parts)


def doubled(count: int, **changes: Any) -> Verdict:
    findings = tuple(sample.duplicated(number) for number in range(count))
    return sample.verdict(**{"findings": findings, "exposures": (sample.repetition(point=WRITTEN),), **changes})


def test_a_batch_that_was_written_twice_is_one_story() -> None:
    told = headline(case(doubled(99), progressed=progressed(1, 2, first={1: 0, 2: 3})))
    assert told == [
        "99 of 600 rows in postgres payments are there twice.",
        "Batch 3 was in the sink; the driver was killed before its offsets were committed (fault 1).",
        "Attempt 2 ran batch 3 again, and wrote it.",
        "Fault 1 did it: baseline runs do not show it.",
        "No row is missing, and none is wrong.",
    ]


def test_nothing_is_said_of_an_attempt_that_nobody_saw() -> None:
    assert not any("Attempt" in text for text in headline(case(doubled(9))))
    assert not any("Attempt" in text for text in headline(case(doubled(9), progressed=progressed(1))))


def test_a_batch_that_was_passed_over_is_told() -> None:
    lost = replace(sample.lost(), faults=sample.duplicated().faults)
    verdict = sample.verdict(findings=(lost,), exposures=(sample.loss(point="batch planned, sink not written"),))
    told = headline(case(verdict, progressed=progressed(1, first={1: 0, 2: 4})))
    assert told[0] == "1 of 600 rows in postgres payments is missing."
    assert "Attempt 2 went on with batch 4; none was seen at batch 3 again." in told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"faults": ()}, "Nothing in the run folder shows the cause."),
        ({"faults": (), "fits": sample.duplicated().faults}, "Fault 1 may explain it; the evidence does not tell."),
        ({"without_faults": True}, "Every baseline run shows it too, so no fault caused it."),
        ({"faults": ("of another version",)}, "What did it: of another version."),
    ],
)
def test_what_is_not_certain_says_so(changes: dict[str, Any], said: str) -> None:
    told = headline(case(sample.verdict(findings=(replace(sample.duplicated(), **changes),))))
    assert told[-1] == said


def test_twice_is_said_only_of_rows_that_should_be_there_once() -> None:
    shared = replace(sample.duplicated(), expected=(sample.row(17),) * 2)
    told = headline(case(sample.verdict(findings=(shared,))))
    assert told[0] == "1 of 600 rows in postgres payments is there more than once, 1 row too many."


def test_two_faults_of_one_name_are_not_mixed_up() -> None:
    verdict = doubled(1, steps=(sample.STEP, sample.STEP))
    assert labels(verdict.steps) == {}
    assert headline(case(verdict))[-1].startswith("What did it: kill driver at sink-committed")


def test_findings_that_were_only_counted_are_not_called_twice() -> None:
    counts = {"records": 10_000, "expected_rows": 10_000, "duplicated": 5000}
    told = headline(case(doubled(1000, counts=counts)))
    assert told[0] == "5,000 of 10,000 rows in postgres payments are there more than once."
    assert told[1] == "The first 1,000 were traced to a cause; the others were only counted."


def cut() -> Verdict:
    """1,000 of 1,500 rows that are there twice, 1,000 of 1,400 that are missing, and one that is altered."""
    twice, lost = (sample.duplicated(n) for n in range(1000)), (sample.lost() for _ in range(1000))
    counts = {"records": 9000, "expected_rows": 9000, "duplicated": 1500, "lost": 1400}
    return sample.verdict(findings=(*twice, *lost, sample.corrupted()), counts=counts)


def test_of_kinds_that_are_cut_each_says_of_how_many_it_has_the_first() -> None:
    verdict = cut()
    assert findings_summary(groups(verdict.findings), verdict) == (
        "2,901 findings, 3 causes among those that are kept. Kept are the first 1,000 of 1,500 duplicated and the "
        "first 1,000 of 1,400 lost; the others were only counted."
    )
    twice, lost, altered = shown(case(verdict))
    assert [each.title.partition(": ")[2] for each in (twice, lost, altered)] == [
        "1,000 of the first 1,000 findings",
        "1,000 of the first 1,000 findings",
        "1 finding",
    ]
    facts = dict(twice.facts)
    assert facts["Rows (of the first 1,000)"] == "1,000 rows too many"
    assert facts["Batches (of the first 1,000)"] == "batch 3"
    assert facts["Records (of the first 1,000)"] == "partition 0, offsets 200 to 1199"
    assert dict(altered.facts)["Rows"] == "1 row wrong"


def test_of_two_sinks_only_the_one_that_may_be_cut_says_so() -> None:
    """A verdict has one count of a kind, over all sinks: how many there are in each nobody knows."""
    other = replace(sample.duplicated(), position=1, sink="postgres other")
    many = tuple(sample.duplicated(number) for number in range(1000))
    verdict = sample.verdict(findings=(*many, other), counts={"duplicated": 1501})
    first, second = shown(case(verdict))
    assert "Rows (of the first 1,000)" in dict(first.facts)
    assert dict(second.facts)["Rows"] == "1 row too many"
    told = headline(case(verdict))
    assert told[:2] == [
        "At least 1,000 rows in postgres payments are there more than once.",
        "The first 1,000 were traced to a cause; the others were only counted.",
    ]
    assert "1 row in postgres other is there twice." in told


@pytest.mark.parametrize("is_cut", [True, False])
def test_the_page_calls_a_file_complete_only_where_it_is(tmp_path: Path, is_cut: bool) -> None:
    page = render.write(sample.stored(tmp_path, cut() if is_cut else sample.verdict()).path).read_text("utf-8")
    assert ("Findings kept: <a" in page, "Every finding: <a" in page) == (is_cut, not is_cut)
    if is_cut:
        assert "1,500 duplicated, 1,400 lost, 1 corrupted" in page


def test_of_a_batch_the_page_says_which_partitions_the_findings_name() -> None:
    batch = Batch(batch=3, ranges={0: (200, 300), 1: (40, 90)}, committed=True, attempts=(1, 2))
    known = Progressed(queries=(Query(checkpoint="checkpoint", batches=(batch,)),))
    counts = Counts({0: array("q", range(300)), 1: array("q", range(90))})
    (group,) = shown(case(doubled(99), progressed=known, counts=counts))
    facts = dict(group.facts)
    assert facts["Of batch 3's records"] == "partition 0: 99 of 100 records; partition 1: 0 of 50 records"
    assert facts["Fault"] == "fault 1: kill driver at sink-committed of batch 3, attempt 1"
    assert facts["Rows"] == "99 rows too many"
    for less in ({"counts": None}, {"progressed": Progressed()}):
        (group,) = shown(case(doubled(99), **({"progressed": known, "counts": counts} | less)))
        assert "Of batch 3's records" not in dict(group.facts)
    unnamed = doubled(1, findings=(replace(sample.duplicated(), records=()),))
    assert "Of batch 3's records" not in dict(shown(case(unnamed, progressed=known, counts=counts))[0].facts)
    cut = doubled(99, counts={"duplicated": 2000})
    assert "Of batch 3's records" not in dict(shown(case(cut, progressed=known, counts=counts))[0].facts)


@pytest.mark.parametrize(
    ("took", "said"),
    [
        ({0: (200, 299), 1: (40, 90)}, "Of batch 3, all records of partition 0 are there twice, none of partition 1."),
        (
            {0: (200, 299), 1: (40, 90), 2: (0, 9), 3: (0, 0)},
            "Of batch 3, all records of partition 0 are there twice, none of partitions 1 and 2.",
        ),
        ({0: (200, 300), 1: (40, 90)}, ""),
        ({0: (200, 299)}, ""),
    ],
)
def test_a_cause_says_which_partitions_came_twice_where_each_did_so_whole_or_not_at_all(
    took: dict[int, tuple[int, int]], said: str
) -> None:
    batch = Batch(batch=3, ranges=took, committed=True)
    known = Progressed(queries=(Query(checkpoint="checkpoint", batches=(batch,)),))
    counts = Counts({each: array("q", range(end)) for each, (_, end) in took.items()})
    (group,) = shown(case(doubled(99), progressed=known, counts=counts))
    assert ("there twice" in group.text) == bool(said) and said in group.text


@pytest.mark.parametrize("word", [Word.UNTESTED, Word.INCONCLUSIVE, Word.ERROR])
def test_a_run_without_an_answer_gives_its_first_reasons(word: Word) -> None:
    told = headline(case(sample.verdict(word=word, findings=(), reasons=("the broker died; its log is full",))))
    assert told[1:] == ["The broker died; its log is full."]


@pytest.mark.parametrize("guarantee", list(Guarantee))
def test_a_held_claims_this_one_run(guarantee: Guarantee) -> None:
    told = headline(case(sample.held(), guarantee=guarantee.value))
    often = str(guarantee).replace("-", " ")
    assert told[0] == f"Each row that is expected of the 600 records is in its sink {often}, in this one run."
    assert told[1] == "1 of 1 fault was injected at its crash point."


KINDS = [kind for kind in Kind if kind is not Kind.RECOVERED]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 7])
def test_every_sentence_is_short_and_whole(kind: Kind, count: int) -> None:
    finding = replace(sample.duplicated(), kind=kind, note="too high by exactly batch 3", sink="postgres " + "x" * 90)
    for verdict in (
        sample.verdict(findings=(finding,) * count),
        sample.verdict(findings=(replace(finding, faults=(), fits=finding.faults),) * count),
    ):
        for text in headline(case(verdict, progressed=progressed(1, 2, first={1: 0, 2: 3}))):
            assert words(text) <= MOST_WORDS, text
            assert text[-1] in ".…!?" and not text[0].islower(), text


ENDS = ["; ", ", and ", ". The broker ", ": ", " (x), ", "\n", ", which "]
REASONS = st.lists(st.sampled_from([f"a driver died{end}" for end in ENDS]), max_size=40)


@given(REASONS.map("".join))
def test_a_reason_becomes_sentences_and_loses_no_word(reason: str) -> None:
    told = sentences(reason)
    assert all(words(text) <= MOST_WORDS for text in told)
    kept = "".join(told).lower()
    assert kept.count("driver") == reason.count("driver") and kept.count("broker") == reason.count("broker")


@given(st.text())
@example(reason=",")
def test_any_reason_is_divided_in_the_end(reason: str) -> None:
    assert all(sentences(reason))


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((3,), "batch 3"),
        ((3, 5), "batches 3 and 5"),
        ((3, 4, 5), "batches 3 to 5"),
        ((3, 5, 9), "3 batches between 3 and 9"),
    ],
)
def test_batches_are_said_in_words(numbers: tuple[int, ...], said: str) -> None:
    assert batches(numbers) == said


def test_one_fault_is_one_group_whatever_the_batches() -> None:
    findings = [replace(sample.duplicated(number), batches=(number % 3,)) for number in range(90)]
    (group,) = groups([*findings])
    assert (len(group.findings), group.batches, group.copies) == (90, (0, 1, 2), 90)
    assert [str(each) for each in group.ranges()] == ["partition 0, offsets 200 to 289"]


def test_other_kinds_sinks_and_causes_are_other_groups() -> None:
    one = sample.duplicated()
    found = groups(
        [
            one,
            replace(one, kind=Kind.LOST),
            replace(one, position=1, sink="postgres other"),
            replace(one, faults=(), fits=one.faults),
            replace(one, kind=Kind.RECOVERED),
            replace(one, kind=Kind.RECOVERED),
            one,
        ]
    )
    assert [len(group.findings) for group in found] == [2, 1, 1, 1, 2]
    assert found[-1].kind is Kind.RECOVERED


@given(st.sets(st.builds(RecordRef, partition=st.integers(0, 3), offset=st.integers(0, 50)), min_size=1))
def test_ranges_cover_the_records_and_count_them(records: set[RecordRef]) -> None:
    found = list(ranges(records))
    assert sum(each.count for each in found) == len(records)
    assert all(any(r.partition == e.partition and e.first <= r.offset <= e.last for e in found) for r in records)


def test_the_page_says_how_many_were_only_counted() -> None:
    verdict = doubled(3, counts={"duplicated": 100_000})
    told = findings_summary(groups(verdict.findings), verdict)
    assert told.startswith(
        "100,000 findings, 1 cause among those that are kept. Kept are the first 3 of 100,000 duplicated;"
    )


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "  =1", "=1+1 fullwidth".replace("=", "\uff1d"), "|calc", "%0A"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_of_the_file_is_a_formula(text: str) -> None:
    row: dict[str, str | None] = {"id": text}
    finding = Finding(kind=Kind.LOST, sink=text, key={text: text}, expected=(row,), faults=(text,), note=text)
    (heads, cells) = csv.reader(io.StringIO(table_file.table_file(groups([finding]))))
    assert len(heads) == len(cells) == len(table_file.HEADS)
    # What cannot be seen is written out, so that a tab is a backslash and a letter.
    assert {cells[2][0], cells[3][0], cells[10][0]} <= {"'", "\\"}
    assert not any(cell.lstrip()[:1] in "=+-@|\uff1d" for cell in cells if cell)


@given(st.text(st.characters()))
def test_any_finding_is_one_line_of_the_file(text: str) -> None:
    row: dict[str, str | None] = {"id": text, "other": None}
    finding = Finding(kind=Kind.CORRUPTED, sink=text, key={"id": text}, expected=(row,), found=(row, row), note=text)
    written = table_file.table_file(groups([finding, finding]))
    written.encode()
    assert len(written.splitlines()) == len(list(csv.reader(io.StringIO(written)))) == 3


def test_every_finding_is_in_the_file_beside_the_page(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, doubled(321))
    render.write(folder.path)
    text = (folder.path / table_file.NAME).read_text(encoding="utf-8")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == 321
    # No baseline run was run, so nobody knows.
    assert {line["also without faults"] for line in lines} == {""}
    folder.save(2, verdict=sample.held())
    render.write(folder.path)
    assert not (folder.path / table_file.NAME).exists()


def test_with_baseline_runs_the_file_says_whether_they_show_it_too() -> None:
    both = groups([sample.duplicated(), replace(sample.duplicated(1), without_faults=True)])
    lines = list(csv.DictReader(io.StringIO(table_file.table_file(both, baseline_runs=True))))
    assert sorted(line["also without faults"] for line in lines) == ["no", "yes"]


def test_a_exposure_of_another_step_is_no_evidence() -> None:
    verdict = doubled(2, exposures=(sample.repetition(point=WRITTEN, step=2),))
    told = headline(case(verdict))
    assert told[1] == "The driver was killed at sink-committed of batch 3 (fault 1)."
    assert {exposure.harm for exposure in verdict.exposures} == {Harm.REPETITION}

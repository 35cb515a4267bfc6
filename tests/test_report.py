"""The page: it says what it must, opens anywhere, and nothing in it was ever markup of the data's own."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UsageError
from harness.history import (
    AttemptDiagnosed,
    AttemptEnded,
    AttemptStarted,
    BatchPlanned,
    FaultMissed,
    Line,
    NotEnded,
    Phase,
    SinkMissing,
    SystemChanged,
)
from harness.report import claims, render, summary
from harness.report.budget import FULL
from harness.report.many.page import Many
from harness.report.many.seen import Seen
from harness.report.page import Parts
from harness.report.snapshots import BaselineText, SnapshotText
from harness.report.summary import Run, error
from harness.run_folder.store import RunFolder
from harness.scenario import Evidence, Finding, Input, Kind, Pipeline, Scenario, Sink, StepOutcome, Verdict, Word
from harness.snapshot import Batch, Progressed, Query
from tests import histories
from tests import sample_runs as sample
from tests.limits import examples

Tag = tuple[str, tuple[tuple[str, str | None], ...]]


class Skeleton(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[Tag] = []
        self.text: list[str] = []
        self.other: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}", ()))

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    def handle_decl(self, decl: str) -> None:
        self.other.append(decl)

    def handle_pi(self, data: str) -> None:
        self.other.append(data)

    def unknown_decl(self, data: str) -> None:
        self.other.append(data)


HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "</title></style></pre></table><h1>held</h1>",
    '" onmouseover="alert(1)" x="',
    "' style='position:fixed' y='",
    "{{ 7 * 7 }}{% raw %}{{ page.__class__ }}",
    "{# gone #}{% include 'style.css' %}",
    "<!-- gone -->",
    "<![CDATA[x]]><?php x ?>",
    "&lt;b&gt;&#60;b&#62;",
    "javascript:alert(1)",
    "x" * 1_000_000,
    "<" * 1_000_000,
    "\u202etxet desrever\u2066\u200f",
    "\x00\x07\x1b[31m\x7f\x9b31m",
    "line\r\nline\u2028line\u2029line\x0b\x0c\x85",
    "\ud800 and \udfff",
    "\ufeff\ufffe\uffff",
]


def parts_with(text: str) -> Parts:
    """A run in which every text that data can reach is `text`."""
    row: dict[str, str | None] = {"id": text, text: text}
    finding = Finding(
        kind=Kind.CORRUPTED,
        sink=text,
        key={text: text},
        expected=(row,),
        found=({"id": None, text: text},),
        faults=(text,),
        note=text,
        fits=(text,),
        without_faults=True,
    )
    step = StepOutcome(
        name=text,
        point=text,
        batch=1,
        injected=True,
        attempt=1,
        checkpoint=text,
        evidence=Evidence(
            signalled={text: text},
            checkpoint_before={text: (1,)},
            checkpoint_after={text: (1,)},
            in_flight=text,
            note=text,
        ),
    )
    verdict = Verdict(
        word=Word.VIOLATED,
        as_expected=False,
        expected=text,
        reasons=(text,),
        findings=(finding,),
        steps=(step,),
        self_tests={text: True},
        counts={text: 1},
        exposures=(sample.repetition(sink=text, point=text, note=text, checkpoint=text),),
        untried=((text, text),),
        notes=(text,),
    )
    plan = Scenario(
        name=text,
        why=text,
        pipeline=Pipeline(entry=text, args=(text,)),
        sinks=(Sink(kind=text, target=text, expected=text, key=(text,)),),
        input=Input(workload=text, source=text, options={text: text}, source_options={text: text}),
    )
    run = {
        "scenario": text,
        "run_id": text,
        "started": text,
        "command": text,
        "versions": {"x" + text: text},
        "list": [text],
    }
    # No folder's name has a slash.
    checkpoint = text.replace("/", "|")
    batches = (Batch(batch=1, ranges={}, committed=True),)
    return Parts(
        folder=text,
        run=run,
        verdict=verdict,
        plan=plan,
        scenario_file="x" + "".join(text.split("\n")),
        history=histories.lines(
            (1.0, NotEnded(why=text)),
            (1.1, SinkMissing(sink=text, why=text)),
            (1.5, SystemChanged(table=text, changes=text)),
            (1.6, AttemptStarted(attempt=1, names={"x" + text: text}, zombies=(text,))),
            (1.7, AttemptDiagnosed(attempt=1, words=f"x{text}")),
            (2.0, BatchPlanned(query=checkpoint, batch=1, attempt=1)),
            (2.1, FaultMissed(outcome=step)),
        ),
        progressed=Progressed(queries=(Query(checkpoint=checkpoint, batches=batches),)),
        logs=[(text, [text])],
        snapshots=[SnapshotText(step=1, lines=[(text, text, text)])],
        baseline_runs=[BaselineText(name=text, seconds=text, cached=text, caught_up=text)],
    )


PLAIN = Skeleton(render.run_page(parts_with("plain")))


def assert_only_text(text: str) -> Skeleton:
    page = render.run_page(parts_with(text))
    page.encode()
    found = Skeleton(page)
    assert found.tags == PLAIN.tags
    assert found.other == ["doctype html"]
    visible = "".join(found.text)
    assert all(char.isprintable() or char == "\n" for char in visible)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_data_is_only_text(text: str) -> None:
    found = assert_only_text(text)
    assert sum(len(piece) for piece in found.text) < 200_000


@given(st.text(st.one_of(st.characters(), st.sampled_from("<>&\"'{}%#/=`\n\r\u202e\ud800")), min_size=1))
@settings(max_examples=examples(300))
def test_any_data_is_only_text(text: str) -> None:
    assert_only_text(text)


@given(st.lists(st.sampled_from(HOSTILE[:11]), min_size=1, max_size=4).map("".join))
@settings(max_examples=examples(200))
def test_any_mixture_of_payloads_is_only_text(text: str) -> None:
    assert_only_text(text)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_in_the_index_are_only_text(tmp_path: Path, text: str) -> None:
    def tags(name: str) -> list[Tag]:
        verdict = replace(sample.verdict(), expected=name)
        many = Many(seen=[Seen.of(Run(scenario=name, verdict=verdict))])
        return Skeleton(render.many_page(tmp_path, many)).tags

    assert tags(text) == tags("plain")


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_logs_and_files_are_only_text(tmp_path: Path, text: str) -> None:
    def page(given: str) -> Skeleton:
        folder = sample.stored(tmp_path, error(given), run_id=f"r{len(list(tmp_path.rglob('run.json')))}")
        data = (given * 2).replace("\n", "").replace("\r", "").encode("utf-8", "surrogatepass")
        (folder.logs / "driver-1.log").write_bytes(data)
        (folder.path / "scenario.yaml").write_bytes(data)
        return Skeleton(render.write(folder.path).read_text())

    hostile = page(text)
    assert hostile.tags == page("plain").tags
    assert all(char.isprintable() or char == "\n" for char in "".join(hostile.text))


def page_of(tmp_path: Path, verdict: Verdict, **changes: Any) -> str:
    folder = sample.stored(tmp_path, verdict, asked=sample.scenario(**changes))
    return "".join(Skeleton(render.write(folder.path).read_text()).text)


def test_the_page_answers_what_a_reviewer_asks(tmp_path: Path) -> None:
    text = page_of(tmp_path, sample.verdict())
    for said in (
        "✗ violated",
        "Every record of the source takes effect in the sink exactly once.",
        "select * from ledger",
        "signalled: 4711: SIGKILL; 4720: SIGKILL",
        "checkpoint before: offsets 0-3, commits 0-2; after: offsets 0-3, commits 0-2",
        "rows that the row breakpoint counted: 200",
        "4 of 4 (lost found, doubled found, flipped found, swapped found)",
        "1 of 1",
        "1 of 600 rows in postgres payments is there twice.",
        "Fault 1 did it: baseline runs do not show it.",
        "id=17",
        "record 0/217 (partition/offset); batch 3",
        "fault 1: kill driver at sink-committed of batch 3, attempt 1",
        "exposed, counts: postgres payments: repetition of batch 3 (99 rows in the sink, not in Spark's",
        "sink-committed (repetition; loss)",
        "while rows are written",
        "No baseline run was made. One is made only where something is found.",
        "onceproof replay ",
        "onceproof run scenarios/append.yaml --seed 7",
        "kafka.version",
        "4.2.0",
        "Loss of power",
    ):
        assert said in text


def test_an_error_that_several_attempts_ended_with_is_on_the_page_once(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, sample.verdict())
    events = [AttemptStarted(attempt=attempt) for attempt in (1, 2, 3)]
    ends = [AttemptEnded(attempt=attempt, status=1, error="KeyError: 'a'") for attempt in (1, 2, 3)]
    lines = histories.lines(*((1.0 + number, event) for number, event in enumerate([*events, *ends])))
    folder.history.write_text(sample.written(lines), encoding="utf-8")
    page = "".join(Skeleton(render.write(folder.path).read_text()).text)
    assert "Attempts 1, 2, 3, ended by no fault: KeyError: 'a'" in page


def test_a_held_page_claims_no_more_than_it_may(tmp_path: Path) -> None:
    text = page_of(tmp_path, sample.held())
    assert "✓ held" in text
    assert (
        "in this one run, on the versions below, 1 fault happened at the places and with the evidence above. The "
        "source holds 600 records. Each row that `expected` makes of them is in its sink exactly once, equal cell for "
        "cell. The sink holds nothing else. The exposures that count are listed above. The checker found 4 of 4 "
        "errors planted in copies of this data. It is not a proof"
    ) in text
    assert "proved" not in text.replace("disproved", "")


def test_a_run_without_a_plan_claims_no_guarantee() -> None:
    assert claims.about(claims.UNPLANNED) == []
    assert [name for name, _ in claims.details(claims.UNPLANNED)] == ["What `ledger` is"]


def test_claim_program_and_the_scenario_s_own_words_are_apart() -> None:
    told = dict(claims.about(sample.scenario()))
    assert told == {
        "Claim": "Every record of the source takes effect in the sink exactly once.",
        "Program": "pipelines/append.py",
        "Sink": "postgres payments",
        "Fault": "kill driver (sink-committed, batch 3)",
        "The scenario's own words": "The crash point that an append sink cannot survive.",
    }
    later = dict(claims.about(sample.scenario(), (replace(sample.STEP, batch=4),)))
    assert later["Fault"] == "kill driver (sink-committed, batch 3; struck at batch 4)"
    assert dict(claims.about(sample.scenario(), (sample.STEP,))) == told


def test_the_command_that_repeats_a_run_stands_first_and_says_how_the_others_differ() -> None:
    run = {"path": "scenarios/a b.yaml", "seed": 7, "stack": {"options": "--stack containers"}}
    commands = claims.again("reports/a/1", run, sample.verdict())
    assert [command for command, _ in commands] == [
        "onceproof replay reports/a/1 --stack containers",
        "onceproof run 'scenarios/a b.yaml' --seed 7 --stack containers",
        "onceproof check reports/a/1",
    ]
    assert len({words for _, words in commands}) == 3
    # The Spark version of the run's own command; a stored plan has it.
    own = {**run, "command": "onceproof run 'scenarios/a b.yaml' --seed 7 --spark 3.5 --stack containers"}
    replay, file, _ = (command for command, _ in claims.again("reports/a/1", own, sample.verdict()))
    assert file == own["command"]
    assert replay == "onceproof replay reports/a/1 --stack containers"
    # The stored plan has the mistake in it.
    assert claims.again("reports/a/1", run, error("no table"))[0] == commands[1]


def test_what_is_acknowledged_and_what_is_committed_are_told_apart() -> None:
    verdict = sample.verdict(counts={"records": 401, "acknowledged": 401, "expected_rows": 242, "sink_rows": 305})
    told = dict(claims.outcome(verdict))
    assert told["Records in the source, as it was read back"] == told["Sends that were acknowledged"] == "401"
    assert told["Rows that the sink should hold, of records that the pipeline committed"] == "242"
    assert ("305", "rows in the sink, 63 more than expected") in claims.figures(verdict)
    fewer = replace(verdict, counts={"expected_rows": 242, "sink_rows": 241})
    assert ("241", "rows in the sink, 1 fewer than expected") in claims.figures(fewer)
    equal = replace(verdict, counts={"expected_rows": 242, "sink_rows": 242})
    assert ("242", "rows in the sink") in claims.figures(equal)
    assert claims.figures(equal, sinks=2)[:2] == [
        ("242", "rows expected, in 2 sinks together"),
        ("242", "rows in 2 sinks together"),
    ]


def test_settings_have_their_names_once(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, sample.verdict())
    change = {"where": "setting", "name": "spark.cores.max", "value": "2", "why": "for two tasks"}
    folder.save(0, run={"changes": [change]})
    folder.save(1, run={"outcome": {"gap_s": 1.5}})
    text = "".join(Skeleton(render.write(folder.path).read_text()).text)
    assert text.count("spark.cores.max") == 1 and "2 (for two tasks)" in text
    assert "longest time without a commit in one attempt, in seconds" in text and "gap_s" not in text


@pytest.mark.parametrize("word", [Word.UNTESTED, Word.INCONCLUSIVE, Word.ERROR])
def test_a_page_without_an_answer_claims_nothing(tmp_path: Path, word: Word) -> None:
    verdict = sample.verdict(word=word, findings=(), steps=(), self_tests={}, reasons=("the reason",))
    text = page_of(tmp_path, verdict)
    assert "nothing about the guarantee" in text
    assert "the reason" in text
    assert "none were planted" in text
    assert "no fault was done in this run" in text


def test_the_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    page = render.write(sample.stored(tmp_path, sample.verdict()).path).read_text()
    tags = Skeleton(page).tags
    policy = ("http-equiv", "Content-Security-Policy")
    assert [attrs for tag, attrs in tags if tag == "meta" and policy in attrs] == [
        (policy, ("content", "default-src 'none'; style-src 'unsafe-inline'"))
    ]
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & {tag for tag, _ in tags}
    assert not {"src", "style", "srcset", "action"} & {name for _, attrs in tags for name, _ in attrs}
    assert {value for _, attrs in tags for name, value in attrs if name == "href"} == {
        "findings.csv",
        "#again",
        "#history",
        "#fault-1",
    }
    assert set(re.findall(r"url\([^)]*\)", page)) == {"url(#hatch)"} and "@import" not in page
    assert "@media print" in page


def test_every_element_is_closed(tmp_path: Path) -> None:
    stack: list[str] = []
    for tag, _ in Skeleton(render.write(sample.stored(tmp_path, sample.verdict()).path).read_text()).tags:
        if tag.startswith("/"):
            assert stack.pop() == tag[1:]
        elif tag not in {"meta", "br"}:
            stack.append(tag)
    assert stack == []


def test_the_same_folder_gives_the_same_page(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, sample.verdict())
    first = render.write(folder.path).read_bytes()
    moved = folder.path.rename(tmp_path / "elsewhere")
    again = render.write(moved).read_bytes()
    old = "/".join(folder.path.parts[-3:]).encode()
    new = "/".join(moved.parts[-3:]).encode()
    assert again == first.replace(old, new)
    assert str(tmp_path).encode() not in first


@pytest.mark.parametrize(
    ("reports", "begins"),
    [("reports/nightly", "reports/nightly"), ("elsewhere", "nightly"), ("", "nightly"), ("/abs/nightly", "nightly")],
)
def test_commands_name_the_folder_from_where_the_run_was_started(tmp_path: Path, reports: str, begins: str) -> None:
    folder = sample.stored(tmp_path / "reports" / "nightly", sample.verdict())
    folder.save(0, run={"reports": reports})
    place = "/".join((begins, *folder.path.parts[-2:]))
    assert f"<code>onceproof replay {place}" in render.write(folder.path).read_text()


@pytest.mark.parametrize("word", [Word.INCONCLUSIVE, Word.ERROR])
def test_a_copy_without_its_times_gives_the_same_page(tmp_path: Path, word: Word) -> None:
    """Artefacts of a CI come back with the time of their unpacking."""
    asked = sample.verdict(word=word, findings=(), as_expected=False, reasons=("the time was up",))
    folder = sample.stored(tmp_path, asked)
    logs = [f"driver-{number}.log" for number in (10, 9, 8, 2, 1)] + ["kafka.log", "postgres.log"]
    for age, name in enumerate(reversed(logs)):
        (folder.logs / name).write_text(f"the end of {name}\n", encoding="utf-8")
        os.utime(folder.logs / name, (1_000_000 + age, 1_000_000 + age))
    first = render.write(folder.path).read_bytes()
    shown = re.findall(r"the end of ([-a-z0-9]+\.log)", first.decode())
    assert shown == logs[: render.MOST_LOGS]
    copy = tmp_path / "copy" / Path(*folder.path.parts[-3:])
    shutil.copytree(folder.path, copy)
    for age, name in enumerate(logs):
        os.utime(copy / "logs" / name, (2_000_000 + age, 2_000_000 + age))
    assert render.write(copy).read_bytes() == first


def test_long_things_are_cut_and_counted() -> None:
    parts = parts_with("plain")
    findings = tuple(sample.duplicated(number) for number in range(FULL.samples + FULL.folded + 7))
    planned = BatchPlanned(query="checkpoint", batch=1, attempt=1)
    many = replace(
        parts,
        verdict=sample.verdict(findings=findings),
        history=histories.lines(*((float(number), planned) for number in range(FULL.events + 5))),
        scenario_file="a\n" * (FULL.lines + 3),
    )
    text = "".join(Skeleton(render.run_page(many)).text)
    assert text.count("duplicated in postgres") == FULL.samples
    assert "160 findings, 1 cause." in text
    assert "150 more of this cause" in text
    assert "7 more findings in findings.csv and verdict.json." in text
    assert "5 lines more are in history.jsonl" in text
    assert "… 3 lines more in scenario.yaml" in text


def test_a_failpoint_says_at_which_crash_point_it_counts(tmp_path: Path) -> None:
    """A failpoint before the sink's commit: the snapshot shows a sink that is written in part."""
    exposure = sample.repetition(point="sink written in part")
    step = replace(sample.STEP, point="before-sink-commit", crash_point=None)
    told = (
        "the crash points below list it under “sink written in part”: so sink and checkpoint stood when it was injected"
    )
    assert told in page_of(tmp_path / "a", sample.verdict(steps=(step,), exposures=(exposure,)))
    assert told not in page_of(tmp_path / "b", sample.verdict(exposures=(exposure,)))
    unshown = replace(exposure, why="x")
    assert told not in page_of(tmp_path / "c", sample.verdict(steps=(step,), exposures=(unshown,)))


def test_a_run_that_ended_early_has_a_page_that_says_why(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "a", "r1", need_bytes=0)
    folder.save(0, run={"scenario": "a", "outcome": {"error": "the broker died"}})
    (folder.logs / "kafka.log").write_text("the last\nwords\n")
    text = "".join(Skeleton(render.write(folder.path).read_text()).text)
    assert "! error" in text
    assert "the broker died" in text
    assert "End of logs/kafka.log" in text and "the last\nwords\n" in text
    assert "The history is empty." in text


def test_a_torn_history_is_told_as_far_as_it_goes(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, sample.verdict())
    with folder.history.open("a") as history:
        history.write(sample.written([Line(4, 12.5, Phase(name="whole"))]))
        history.write('12\n{"n": 5, "at_s": 12.6, "what": "phase", "na')
    text = "".join(Skeleton(render.write(folder.path).read_text()).text)
    assert "name: whole" in text


def test_only_the_last_count_of_sent_records_is_in_the_timeline(tmp_path: Path) -> None:
    text = page_of(tmp_path, sample.verdict())
    assert "records: 600, total: 600" in text
    assert "records: 1, total: 600" not in text


def test_what_a_shape_of_the_timeline_says_is_a_title_of_the_shape(tmp_path: Path) -> None:
    page = render.write(sample.stored(tmp_path, sample.verdict(), asked=sample.scenario()).path).read_text()
    assert re.search(r"<(rect|line|svg) [^>]*><title>[^<]+</title>", page)
    assert "&lt;title" not in page


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        render.write(tmp_path)


def test_the_index_links_to_each_page_that_there_is(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, sample.held())
    render.write(folder.path)
    runs = [Run.read(folder.path), Run(scenario="b", verdict=error("no Java"))]
    index = render.index(tmp_path, runs)
    found = Skeleton(index.read_text())
    links = [dict(attrs)["href"] for tag, attrs in found.tags if tag == "a"]
    assert links and links[0] is not None and len({*links}) == 1
    assert (index.parent / links[0]).resolve() == folder.report_html.resolve()
    text = "".join(found.text)
    assert "2 runs: 1 as expected, 1 not (1 error)" in text
    assert text.index("error") < text.index("held")


def test_the_summary_has_exactly_the_agreed_keys_first(tmp_path: Path) -> None:
    folder = sample.stored(tmp_path, sample.verdict())
    path = summary.write(tmp_path, [Run.read(folder.path)])
    assert path == tmp_path / "latest" / "summary.json"
    data = json.loads(path.read_text())
    assert (list(data), data["exit_code"]) == (["runs", "exit_code"], 1)
    (entry,) = data["runs"]
    assert list(entry)[:7] == ["scenario", "expected", "verdict", "as_expected", "findings", "faults", "seconds"]
    assert entry["findings"] == {"duplicated": 1, "corrupted": 1, "lost": 1}
    assert (entry["verdict"], entry["as_expected"], entry["seconds"]) == ("violated", False, 31.25)
    assert (entry["stack"], entry["folder"]) == ("processes", str(folder.path))
    (fault,) = entry["faults"]
    assert list(fault) == ["name", "point", "batch", "attempt", "injected", "evidence"]
    assert fault["evidence"]["signalled"] == {"4711": "SIGKILL", "4720": "SIGKILL"}


def test_the_summary_lists_what_was_exposed_and_what_was_not_tried() -> None:
    entry = summary.entry(Run(scenario="a", verdict=sample.verdict(notes=("batches tie",))))
    first, second = json.loads(json.dumps(entry["exposures"]))
    assert (first["harm"], first["why"], first["batch"], first["attempt"]) == ("repetition", "", 3, 1)
    assert second["harm"] == "loss"
    assert entry["points_reached"] == ["postgres payments: sink-committed (repetition; loss)"]
    assert entry["untried"] == ["postgres payments: batch-planned", "postgres payments: while rows are written"]
    assert entry["notes"] == ["batches tie"]


def test_empty_evidence_is_left_out_but_zero_rows_are_evidence() -> None:
    step = StepOutcome(name="x", point="w", batch=None, injected=False, evidence=Evidence(rows_seen=0))
    (fault,) = summary.entry(Run(scenario="a", verdict=sample.verdict(steps=(step,))))["faults"]
    assert fault["evidence"] == {"rows_seen": 0}


@pytest.mark.parametrize("make", [sample.verdict, sample.held, lambda: error("x")])
def test_a_run_survives_packing(make: Callable[[], Verdict]) -> None:
    run = Run(scenario="a", verdict=make(), folder=Path("x"), seconds=1.5, stack="processes")
    assert Run.unpack(json.loads(json.dumps(run.pack()))) == run


@pytest.mark.parametrize(("stack", "blind"), [("external", True), ("processes", False)])
def test_a_run_on_a_cluster_says_whom_it_cannot_see(stack: str, blind: bool) -> None:
    said = claims.limits(sample.verdict(), {"stack": {"stack": stack}})
    assert (claims.BLIND in said) is blind

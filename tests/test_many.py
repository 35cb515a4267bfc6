"""The page of many runs: what it says, what it must not, and what it makes of hostile and damaged folders."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.faults import fault
from harness.history import Phase
from harness.report import budget, claims, render, summary
from harness.report.many import about, coverage, durations, matrix, pairs, trend
from harness.report.many.gather import gather
from harness.report.many.hunted import Hunted
from harness.report.many.page import BARE, EVERY, Many, build
from harness.report.many.seen import Seen
from harness.report.summary import Run, error
from harness.run_folder import digests, lines
from harness.run_folder.store import RunFolder
from harness.scenario import Expected, Kind, Pipeline, Scenario, Step, Victim, Word, plain
from harness.suite import report
from tests import histories
from tests import sample_runs as sample
from tests.test_report import HOSTILE, Skeleton

BROKEN = Expected(word=Word.VIOLATED, kinds=(Kind.DUPLICATED,))


def asked(entry: str = "jobs/append.py", expected: Expected | None = None, **changes: Any) -> Scenario:
    return sample.scenario(pipeline=Pipeline(entry=entry), verdict=expected or Expected(), **changes)


def seen(entry: str = "jobs/append.py", expected: Expected | None = None, **changes: Any) -> Seen:
    """A run of a program; `changes` are of the scenario."""
    given = asked(entry, expected, **changes)
    return Seen.of(Run(scenario=given.name, verdict=sample.held(), about=about.planned(given), seconds=10.0))


def kept(reports: Path, verdict: Any = None, run_id: str = "r1", **changes: Any) -> RunFolder:
    """A run folder with digests and with its page."""
    folder = sample.stored(reports, verdict or sample.held(), asked=asked(**changes), run_id=run_id)
    digests.write(folder.path)
    render.write(folder.path)
    return folder


def page(many: Many, folder: Path = Path("/nowhere")) -> str:
    return render.many_page(folder, many)


def words(html: str) -> str:
    return " ".join("".join(Skeleton(html).text).split())


def test_a_pair_is_two_programs_under_one_test_of_which_one_is_expected_to_break() -> None:
    runs = [seen("jobs/append.py", BROKEN), seen("jobs/upsert.py"), seen("jobs/other.py", seed=3, guarantee="x")]
    (pair,) = pairs.find(runs)
    assert {row.pipeline for row in pair.broken} == {"jobs/append.py"}
    assert {row.pipeline for row in pair.fixed} == {"jobs/upsert.py"}
    clusters = pairs.clusters([pairs.row(each) for each in runs], [pair])
    assert [[row.pipeline for row in own] for own in clusters] == [
        ["jobs/append.py", "jobs/upsert.py"],
        ["jobs/other.py"],
    ]


@pytest.mark.parametrize(
    "other",
    [
        seen("jobs/upsert.py", schedule=()),
        seen("elsewhere/upsert.py"),
        seen("jobs/append.py"),
        seen("jobs/append_fixed.py", BROKEN),
        seen("jobs/upsert.py", guarantee="at-least-once"),
        seen("jobs/upsert.py", sinks=(replace(sample.scenario().sinks[0], expected="select 1"),)),
        Seen(scenario="append, fixed", word=Word.HELD, as_expected=True),
    ],
    ids=["schedule", "folder", "program", "expectation", "guarantee", "expected", "no plan"],
)
def test_no_pair_is_claimed_where_nothing_says_so(other: Seen) -> None:
    runs = [seen("jobs/append.py", BROKEN), other]
    assert pairs.find(runs) == []
    assert 'class="tag"' not in page(Many(seen=runs)) and 'class="pair"' not in page(Many(seen=runs))


def test_the_broken_version_is_above_the_fixed_one_in_one_frame() -> None:
    html = page(Many(seen=[seen("jobs/a_fixed.py"), seen("jobs/z_broken.py", BROKEN)]))
    (frame,) = re.findall(r'<tbody class="pair">(.*?)</tbody>', html, re.DOTALL)
    assert re.findall(r"(\w+\.py) <span class=\"tag\">(\w+)<", frame) == [
        ("z_broken.py", "broken"),
        ("a_fixed.py", "fixed"),
    ]


def test_a_cell_was_struck_only_where_a_exposure_says_so() -> None:
    injected = Seen.of(Run(scenario="a", verdict=sample.held()))
    assert [(cell.sink, cell.point, cell.fault) for cell in injected.struck] == [
        ("postgres payments", "sink-committed", "kill driver")
    ]
    grid = coverage.grid([injected], rows=9, heads=9)
    assert {(line.point, line.cells[0].words) for line in grid.lines} == {
        ("sink-committed", "1 held"),
        ("batch-planned", ""),
        ("while rows are written", ""),
    }
    assert (grid.struck, grid.never) == (1, 2)
    # The step was injected, and its name says a crash point: without an exposure that counts for nothing.
    for verdict in (
        replace(sample.held(), exposures=()),
        replace(sample.held(), steps=(replace(sample.STEP, injected=False),)),
    ):
        assert coverage.grid([Seen.of(Run(scenario="a", verdict=verdict))], rows=9, heads=9).struck == 0
    unseen = replace(sample.held(), exposures=(sample.repetition(why="x"),))
    idle = coverage.grid([Seen.of(Run(scenario="a", verdict=unseen))], rows=9, heads=9)
    assert (idle.struck, sum(line.cells[0].idle for line in idle.lines), idle.never) == (0, 1, 2)


def test_never_struck_is_said_in_words() -> None:
    html = page(Many(seen=[Seen.of(Run(scenario="a", verdict=sample.held()))]))
    assert html.count(">never struck<") == 2
    assert "1 cells struck, 2 never struck" in words(html)


def test_a_night_that_was_killed_and_went_on_is_one(tmp_path: Path) -> None:
    path = tmp_path / trend.NAME
    line = {"date": "2026-11-26", "verdicts": {}, "failed": [], "seed": 7, "shard": "1/2", "digest": "d"}
    others: list[dict[str, Any]] = [{"seed": 8}, {"shard": "2/2"}, {"digest": "e"}]
    said = [line | {"plans": 3}, *(line | {"plans": 5} | other for other in others), line | {"plans": 9}]
    path.write_text("".join(json.dumps(each) + "\n" for each in said))
    assert sorted(point.runs for point in trend.read(path, [])) == [5, 5, 5, 9]


def test_what_a_night_was_after_is_a_table_with_what_it_missed_first(tmp_path: Path) -> None:
    found = Hunted(pipeline="found.yaml", plan="drawn 3", own=2, every=4)
    missed = Hunted(pipeline="missed.yaml", plan="", own=5, every=9)
    html = render.index_of(tmp_path, [seen()], [found, missed]).read_text()
    (part,) = re.findall(r'<section id="hunted">(.*?)</section>', html, re.DOTALL)
    said = " ".join(re.sub(r"<[^>]+>", " ", part).split())
    assert said.index("missed.yaml not found 5 9") < said.index(" found.yaml plan drawn 3 2 4")
    assert 'id="hunted"' not in page(Many(seen=[seen()]))


def test_verdicts_have_a_word_and_a_sign() -> None:
    runs = [Seen.of(Run(scenario=word, verdict=replace(sample.held(), word=word), about=seen().about)) for word in Word]
    said = words(page(Many(seen=runs)))
    assert all(f"{matrix.MARKS[word]} {word}" in said for word in Word)


def test_each_run_is_linked_from_its_cell(tmp_path: Path) -> None:
    folders = [kept(tmp_path, run_id=f"r{number}") for number in range(3)]
    runs = [Run.read(folder.path) for folder in folders]
    html = page(Many(seen=[Seen.of(run) for run in runs]), tmp_path / "latest")
    cell = re.findall(r"<td><span class=\"narrow\">.*?</td>", html)
    links = re.findall(r'href="([^"]+)"', cell[0])
    assert {(tmp_path / "latest" / link).resolve() for link in links} == {folder.report_html for folder in folders}


def test_why_there_is_no_answer_is_said_in_a_sentence() -> None:
    untested = replace(sample.held(), word=Word.UNTESTED, reasons=("no fault struck; the second never came",))
    html = page(
        Many(seen=[Seen.of(Run(scenario="a", verdict=untested)), Seen.of(Run(scenario="b", verdict=error("no disk")))])
    )
    said = words(html)
    assert "○ untested a. No fault struck; the second never came." in said
    assert "! error b. Expected: held. No disk." in said
    assert said.index("no disk".capitalize()) < said.index("No fault struck")


def test_seconds_are_divided_by_what_the_history_says(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    lines = histories.lines((1.0, Phase(name="warm-up")), (4.0, Phase(name="feeding")))
    history.write_text(sample.written(lines), encoding="utf-8")
    assert about.phases(history, 10.0) == (("warm-up", 3.0), ("feeding", 6.0))
    assert about.phases(tmp_path / "none", 10.0) == ()
    run = replace(seen(), seconds=10.0, about=about.About(phases=about.phases(history, 10.0)))
    found = durations.durations([replace(seen(), seconds=9.0), run], most=1)
    assert [each.seconds for each, _ in found.runs] == [10.0]
    assert "warm-up 3, feeding 6" in page(Many(seen=[run]))
    assert found.left == 1
    assert {name: seconds for _, name, seconds in found.phases} == {
        "feeding": "6",
        "warm-up": "3",
        durations.BEFORE_PHASES: "10",
    }


def test_a_suite_leaves_a_line_that_the_next_page_shows(tmp_path: Path) -> None:
    runs = [Run(scenario="a", verdict=sample.verdict(), about=replace(seen().about, started="2026-01-02T03:04:05Z"))]
    for _ in range(2):
        trend.append(tmp_path / "trend.jsonl", runs, 1)
    points = trend.read(tmp_path / "trend.jsonl", [])
    assert [(each.date, each.what, each.runs, each.failed, each.verdicts) for each in points] == [
        ("2026-01-02T03:04:05Z", "suite", 1, 1, {"violated": 1})
    ] * 2
    shown = trend.trend([*points, trend.Point(date="2025", what="night", runs=4, failed=1)], 2)
    assert (shown.left, len(shown.bars), shown.most) == (1, 2, 1)
    html = page(Many(seen=[], points=points))
    assert html.count('class="bad"') == 2 and "2026-01-02T03:04:05Z" in html


def test_a_line_that_a_killed_suite_tore_is_cut_off_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    runs = [Run(scenario="a", verdict=sample.held())]
    trend.append(path, runs, 0)
    kept = path.read_bytes()
    # More than is read at once.
    for torn in (kept[:-1], b"x" * (2 * lines.BLOCK + 5)):
        path.write_bytes(kept + torn)
        trend.append(path, runs, 0)
        damaged: list[tuple[str, str]] = []
        assert (len(trend.read(path, damaged)), damaged) == (2, [])
        assert path.read_bytes() == lines.whole(path) == kept * 2
    path.write_bytes(b"torn")
    assert (lines.whole(path), path.read_bytes(), lines.whole(tmp_path / "none")) == (b"", b"", b"")


def test_lines_of_a_night_are_points_and_torn_ones_are_named(tmp_path: Path) -> None:
    path = tmp_path / "trend.jsonl"
    night = {"date": "2026-01-01", "plans": 9, "verdicts": {"held": 8, "violated": 1, "x": "<b>"}, "failed": ["a"]}
    path.write_bytes(
        json.dumps(night).encode() + b'\n{"date"\n[]\n\xff\n' + json.dumps(night | {"plans": 1e999}).encode()
    )
    damaged: list[tuple[str, str]] = []
    (point,) = trend.read(path, damaged)
    assert (point.what, point.runs, point.failed, point.verdicts) == ("night", 9, 1, {"held": 8, "violated": 1})
    assert [name for name, _ in damaged] == [f"{path}:{number}" for number in (2, 3, 4, 5)]


def many_runs(count: int, text: Callable[[int], str]) -> Many:
    """So many runs, every one of which has another of everything."""

    def one(number: int) -> Seen:
        told = text(number)
        given = asked(f"{told}/{told}.py", name=told, sinks=(replace(sample.scenario().sinks[0], target=told),))
        exposure = sample.repetition(sink=told, point=told)
        step = replace(sample.STEP, name=told)
        verdict = replace(
            sample.verdict(), steps=(step,), exposures=(exposure,), untried=((told, told),), reasons=(told,)
        )
        planned = replace(about.planned(given), schedule=((told, told, told),))
        return Seen.of(Run(scenario=told, verdict=verdict, about=planned, seconds=float(number)))

    points = [trend.Point(date=text(number), what=text(number), runs=number, failed=1) for number in range(count)]
    return Many(seen=[one(n) for n in range(count)], points=points, damaged=[(text(n), text(n)) for n in range(count)])


@pytest.mark.parametrize(
    "text",
    [
        lambda n: f"run {n}",
        lambda n: f"{n} " + "long words " * 50,
        lambda n: f"{n}" + "x" * 100_000,
        lambda n: f"{n}😀" * 60,
    ],
    ids=["short", "words", "one word", "wide"],
)
def test_the_page_of_500_runs_stays_small_and_says_what_is_left_out(text: Callable[[int], str]) -> None:
    html = page(many_runs(500, text))
    assert len(html.encode()) <= budget.MOST_BYTES
    assert "Left out: " in words(html)


def test_500_runs_of_a_few_pipelines_are_all_in_the_matrix() -> None:
    runs = [replace(seen(f"jobs/{n % 20}.py"), scenario=f"scenario {n}", folder=None) for n in range(500)]
    html = page(Many(seen=runs))
    assert len(html.encode()) <= budget.MOST_BYTES
    assert words(html).count("✓ held") == 1 + 20


@pytest.mark.parametrize(("pipelines", "faults"), [(1, 1), (100, 12), (5_000, 1), (1, 5_000)])
def test_the_page_of_5000_runs_at_distinct_places_stays_small(pipelines: int, faults: int) -> None:
    run = seen()

    def one(number: int) -> Seen:
        step = (f"fault {number // pipelines % faults}", f"at the place of number {number}", "3")
        wrong = number == 4_999
        return replace(
            run,
            about=replace(run.about, pipeline=f"jobs/{number % pipelines}.py", schedule=(step,)),
            word=Word.VIOLATED if wrong else Word.HELD,
            kinds={"lost": 1} if wrong else {},
            as_expected=not wrong,
            folder=None,
        )

    html = page(Many(seen=[one(number) for number in range(5_000)]))
    assert len(html.encode()) <= budget.MOST_BYTES
    told = words(html.partition('id="matrix"')[2])
    # The one that matters is there, wherever it stands in the order.
    assert "✗ violated lost not as expected" in told
    assert "at the place of number 4999" in told
    assert "Left out: " in words(html)


def test_a_cell_says_how_many_places_are_left_out_and_what_came_out_there() -> None:
    def at(place: str, word: Word, good: bool) -> Seen:
        run = seen()
        return replace(
            run, about=replace(run.about, schedule=(("kill", place, ""),)), word=word, as_expected=good, expected="held"
        )

    runs = [at(f"p{number}", Word.HELD, good=True) for number in range(7)]
    runs += [at("p1", Word.HELD, good=True), at("p8", Word.VIOLATED, good=False), at("p9", Word.UNTESTED, good=False)]

    def told(entries: int) -> tuple[list[str], str, int]:
        found = matrix.matrix(runs, lambda folder: None, matrix.Most(rows=9, heads=9, entries=entries, links=9))
        cell = found.sections[0].clusters[0][0].cells[0]
        return [entry.place for entry in cell.entries], cell.left, found.places_left

    assert told(4) == (["p8", "p9", "p0", "p1"], "and 5 more places: 5 held", 5)
    assert told(1) == (["p8"], "and 8 more places: 8 held, 1 untested, of which 1 not as expected", 8)
    assert told(9)[1:] == ("", 0)
    runs.append(at("p8", Word.INCONCLUSIVE, good=True))
    assert told(9)[1:] == ("and more at these places: 1 inconclusive", 0)


def test_what_does_not_fit_is_counted() -> None:
    shown = build(many_runs(200, lambda n: f"run {n:03}"), lambda folder: None, BARE)
    assert len(shown["wrong"]) == BARE.listed
    wrong = f"Left out: {200 - BARE.listed} runs in the list of those that are not as expected."
    assert wrong in shown["left"]
    assert shown["matrix"].left == 200 - BARE.rows
    assert [text for text in shown["left"] if "runs among the durations" in text] == [
        f"Left out: {200 - 1 - BARE.bars} runs among the durations: shorter ones."
    ]
    assert BARE in EVERY


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_are_only_text(text: str) -> None:
    def tags(given: str) -> Any:
        found = Skeleton(page(many_runs(1, lambda n: given.replace("/", "|"))))
        assert found.other == ["doctype html"]
        assert all(char.isprintable() or char == "\n" for char in "".join(found.text))
        return found.tags

    assert tags(text) == tags("plain")


def test_the_page_forbids_what_it_does_not_need() -> None:
    html = page(many_runs(3, str))
    assert "default-src 'none'; style-src 'unsafe-inline'" in html
    tags = Skeleton(html).tags
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & {tag for tag, _ in tags}
    assert [name for _, attrs in tags for name, _ in attrs if name.startswith("on") or name in ("src", "style")] == []


def test_the_same_runs_give_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    many = many_runs(20, lambda n: f"run {n % 7}")
    assert page(many) == page(Many(seen=many.seen[::-1], damaged=many.damaged, points=many.points[::-1]))


def test_runs_of_several_machines_make_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = kept(tmp_path / "ci" / "one"), kept(tmp_path / "ci" / "two", run_id="r2", entry="jobs/other.py")
    # Its folder was not kept, so the summary is all there is.
    bare = Run(scenario="gone with its folder", verdict=sample.verdict(), about=about.planned(asked("jobs/gone.py")))
    summary.write(tmp_path / "ci" / "two", [Run.read(second.path), bare])
    assert report([tmp_path / "ci"], out=tmp_path / "out") == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out' / 'index.html'}\n"
    html = (tmp_path / "out" / "index.html").read_text()
    assert words(html).startswith("Onceproof: 3 runs: 2 as expected, 1 not (1 violated)")
    links = {(tmp_path / "out" / link).resolve() for link in re.findall(r'href="([^"]+)"', html)}
    assert links == {first.report_html, second.report_html}
    assert all(name in html for name in ("append.py", "other.py", "gone.py"))
    # The suite of the second machine is a point.
    assert len(re.findall(r'class="good"', html)) == 1


def test_a_failure_without_its_folder_is_no_pass_for_code_scanning(tmp_path: Path) -> None:
    kept(tmp_path / "ci")
    for verdict, good in ((sample.held(), True), (sample.verdict(), False)):
        summary.write(tmp_path / "ci", [Run(scenario="gone", verdict=verdict)])
        assert report([tmp_path / "ci"], tmp_path / "all.sarif", tmp_path / "out") == 0
        (log,) = json.loads((tmp_path / "all.sarif").read_text())["runs"]
        assert log["invocations"][0]["executionSuccessful"] is good


def test_the_same_artefact_twice_is_one_run(tmp_path: Path) -> None:
    folder = kept(tmp_path / "a")
    shutil.copytree(folder.path, tmp_path / "b" / folder.path.parent.name / folder.path.name)
    found = gather([tmp_path, tmp_path / "a"])
    assert (len(found.seen), found.damaged) == (1, [])


def test_damaged_folders_are_named_and_not_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, forged, torn = (kept(tmp_path / "ci", run_id=f"r{number}") for number in range(3))
    summary.write(tmp_path / "ci", [Run.read(folder.path) for folder in (whole, forged, torn)])
    forged.verdict_json.write_text(forged.verdict_json.read_text().replace('"held"', '"untested"'))
    torn.run_json.unlink()
    (tmp_path / "ci" / "torn").mkdir()
    (tmp_path / "ci" / "torn" / "summary.json").write_text('{"runs": [{"scenario": 3}, 7]')
    assert report([tmp_path / "ci"], out=tmp_path / "out") == 4
    html = (tmp_path / "out" / "index.html").read_text()
    told = capsys.readouterr().err
    # What the summary said of them is not taken for them.
    assert "1 run: 1 as expected" in html
    said = words(html)
    for path in (forged.path, torn.path, tmp_path / "ci" / "torn" / "summary.json"):
        assert str(path) in said and str(path) in told
    assert "verdict.json: altered" in said and "run.json: missing" in said


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"asked for the runs in .*; saw no run folder and no summary\.json below"):
        report([tmp_path])


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = kept(tmp_path / "outside")
    inside = kept(tmp_path / "ci", run_id="r2")
    (tmp_path / "ci" / "sneaky").symlink_to(outside.path.parent)
    inside.report_html.unlink()
    inside.report_html.symlink_to("/etc/passwd")
    found = gather([tmp_path / "ci"])
    assert [run.folder for run in found.runs] == [inside.path]
    assert [name for name, _ in found.damaged] == [str(tmp_path / "ci" / "sneaky")]
    assert "href" not in page(Many(seen=found.seen), tmp_path)
    inside.run_json.unlink()
    inside.run_json.symlink_to(outside.run_json)
    found = gather([tmp_path / "ci"])
    assert found.runs == [] and any("run.json is a link" in why for _, why in found.damaged)


def test_names_that_are_no_text_are_shown_and_linked(tmp_path: Path) -> None:
    folder = kept(tmp_path / "ci")
    odd = os.fsdecode(b"\xff<img onerror=x>\n\xe2\x80\xae")
    renamed = tmp_path / "ci" / odd
    folder.path.parent.rename(renamed)
    (found,) = gather([tmp_path / "ci"]).seen
    html = page(Many(seen=[found]), tmp_path)
    assert "%FF%3Cimg%20onerror%3Dx%3E%0A%E2%80%AE" in html and "<img" not in html
    html.encode()
    (renamed / folder.path.name / "verdict.json").unlink()
    damaged = page(Many(seen=[], damaged=gather([tmp_path / "ci"]).damaged), tmp_path)
    assert "\\udcff&lt;img onerror=x&gt;\\n\\u202e" in damaged and "<img" not in damaged


ENTRY = json.loads(json.dumps(summary.entry(Run(scenario="a", verdict=sample.held())), default=str))


@pytest.mark.parametrize(
    "change",
    [
        {"scenario": None},
        {"verdict": "proved"},
        {"as_expected": "maybe"},
        {"seconds": "x" * 100},
        {"reasons": {"a": 1}},
        {"about": {"phases": [["x", "y"]]}},
        {"unstruck": [["one"]]},
        {"struck": [{"sink": "x"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_entry_that_is_none_is_named_and_the_others_count(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "summary.json").write_text(json.dumps({"runs": [ENTRY, ENTRY | change, 7]}))
    found = gather([tmp_path])
    assert [each.scenario for each in found.seen] == ["a"]
    assert [name for name, _ in found.damaged] == [f"{tmp_path / 'summary.json'}, run {number}" for number in (2, 3)]


def test_a_summary_says_of_a_run_what_its_folder_does(tmp_path: Path) -> None:
    run = Run.read(kept(tmp_path).path)
    entry = json.loads(json.dumps(summary.entry(run), default=str))
    assert replace(Seen.read(entry, "here"), folder=run.folder) == Seen.of(run)


def test_a_summary_of_an_older_version_is_read() -> None:
    older = {name: value for name, value in ENTRY.items() if name not in ("about", "unstruck")}
    old = Seen.read(older, "here")
    assert (old.about, old.unstruck, len(old.struck)) == (about.NOTHING, (), 1)
    assert old.steps == [("kill driver", "sink-committed", "3")]


def test_a_run_without_a_plan_is_still_shown() -> None:
    html = page(Many(seen=[Seen.of(Run(scenario="a", verdict=sample.held(), file="scenarios/a.yaml"))]))
    assert matrix.UNKNOWN in html and "scenarios/a.yaml" in html


def test_a_run_survives_the_wire_with_what_it_is_about() -> None:
    run = Run(scenario="a", verdict=sample.held(), about=replace(seen().about, phases=(("x", 1.0),)))
    assert Run.unpack(json.loads(json.dumps(run.pack(), default=str))) == run


def test_schedules_name_their_steps() -> None:
    step: Step = sample.scenario().schedule[0]
    assert about.planned(asked(schedule=(step,))).schedule == (("kill driver", "sink-committed", "3"),)
    assert plain(about.NOTHING)["schedule"] == ()


def test_a_planned_fault_has_the_name_of_the_one_that_is_done() -> None:
    step = replace(sample.scenario().schedule[0], do=fault("kill driver", victim=Victim.JVM))
    scenario = asked(schedule=(step,))
    done = replace(sample.STEP, name=step.name)
    run = Run(scenario="a", verdict=replace(sample.held(), steps=(done,)), about=about.planned(scenario))
    grid = coverage.grid([Seen.of(run)], rows=9, heads=9)
    # A name of its own for the plan would be a fault that was never struck.
    assert grid.heads == [step.name] == ["kill driver (jvm)"]
    assert (grid.struck, grid.never) == (1, 2)
    assert dict(claims.about(scenario, (done,)))["Fault"] == "kill driver (jvm) (sink-committed, batch 3)"

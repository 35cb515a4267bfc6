"""The bench of kills on YARN: its scenarios, which place of a batch the evidence of a kill shows, and how it goes on
from its record. The runs themselves need a stack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bench import yarn_aimed
from bench.yarn_aimed import AIMS, KILLS, Aim, Tally, finished, line, read, shown, table, tally
from harness.components.yarn import policy
from harness.judge.exposure import PLANNED, WRITING, WRITTEN
from harness.load import load
from harness.report import summary
from harness.scenario import Evidence, Exposure, Harm, Kind, Scenario, StepOutcome, Verdict, Word

NOW = "0123abcd"
BEGUN = datetime(2026, 11, 28, 3, 10, tzinfo=UTC)
W6 = AIMS["append:W6"]
POINTS = {"W2": PLANNED, "W3": WRITING, "W6": WRITTEN, "W7": WRITTEN}


def listing(batch: int, place: str) -> dict[str, tuple[int, ...]]:
    """A checkpoint as a kill there leaves it. An earlier kill has left a temporary file."""
    commits = tuple(range(batch + (place == "W8")))
    begun = (1, batch) if place == "W7" else (1,)
    return {"offsets": tuple(range(batch + 1)), "commits": commits, "begun": begun}


def killed(batch: int, place: str, *, injected: bool = True) -> StepOutcome:
    evidence = Evidence(signalled={"driver": "SIGKILL"}, checkpoint_after=listing(batch, place))
    return StepOutcome(
        name="kill driver", point="failpoint sink-written", batch=batch, injected=injected, evidence=evidence
    )


def exposure(step: int, point: str, harm: Harm = Harm.REPETITION) -> Exposure:
    return Exposure(step=step, position=0, sink="postgres payments", harm=harm, point=point, note="")


def run(*places: str, word: Word = Word.HELD, as_expected: bool = True) -> dict[str, Any]:
    """The entry of a run in a summary, as a summary has it, of so many kills; `""` is one that was not injected."""
    steps = tuple(killed(2 + number, place or "W8", injected=bool(place)) for number, place in enumerate(places))
    exposures = [exposure(number, POINTS[place]) for number, place in enumerate(places, 1) if place in POINTS]
    # In the middle of a batch both harms are exposed.
    exposures += [exposure(at.step, at.point, Harm.LOSS) for at in exposures if at.point == WRITING]
    verdict = Verdict(word=word, as_expected=as_expected, expected="held", steps=steps, exposures=tuple(exposures))
    entry = summary.entry(summary.Run(scenario="append:W6", verdict=verdict, seconds=213.6))
    told: dict[str, Any] = json.loads(json.dumps(entry, default=str))
    return told


@pytest.fixture(params=AIMS)
def aim(request: pytest.FixtureRequest) -> Aim:
    return AIMS[request.param]


@pytest.fixture
def scenario(copied: Path, aim: Aim) -> Scenario:
    copied.write_text(yarn_aimed.scenario(aim), encoding="utf-8")
    return load(copied, queries=True)


def test_each_scenario_kills_ten_times_as_yarn_lets_it(scenario: Scenario) -> None:
    assert len({step.when.batch for step in scenario.schedule}) == len(scenario.schedule) == KILLS
    assert {step.do.kind for step in scenario.schedule} == {"kill driver"}
    assert list(policy.unsupported(scenario)) == []


def test_each_scenario_expects_what_is_predicted(scenario: Scenario, aim: Aim) -> None:
    kinds = [kind.value for kind in scenario.verdict.kinds]
    assert aim.expected == ": ".join([scenario.verdict.word, *kinds])
    broken = aim.program == "append" and aim.place in ("W3", "W6", "W7")
    assert (scenario.verdict.word is Word.VIOLATED, Kind.DUPLICATED.value in kinds) == (broken, broken)


def test_where_no_file_tells_of_a_place_the_program_names_it(scenario: Scenario, aim: Aim) -> None:
    program = (yarn_aimed.ROOT / scenario.pipeline.entry).read_text(encoding="utf-8")
    named = {step.when.value for step in scenario.schedule if step.when.kind == "failpoint"}
    assert bool(named) is (aim.place == "W6")
    assert all(f'failpoint.reach("{name}", batch=number)' in program for name in named)


@pytest.mark.parametrize("place", yarn_aimed.PLACES)
def test_a_kill_s_evidence_shows_its_place_and_no_other(place: str) -> None:
    entry = run(place)
    assert shown(entry["faults"][0], {each["point"] for each in entry["exposures"]}) == place


@pytest.mark.parametrize(
    ("changed", "points"),
    [
        ({}, set[str]()),
        ({}, {PLANNED, WRITTEN}),
        ({"offsets": [0, 1]}, {WRITTEN}),
        # A commit that is begun while the sink lacks rows is no place of this protocol.
        ({"begun": [2]}, {WRITING}),
    ],
)
def test_evidence_that_shows_nothing_proves_no_place(changed: Mapping[str, Any], points: set[str]) -> None:
    after = {"offsets": [0, 1, 2], "commits": [0, 1], "begun": [], **changed}
    assert shown({"batch": 2, "evidence": {"checkpoint_after": after}}, points) == ""
    assert shown({"batch": 2, "evidence": {}}, points) == ""


def test_a_kill_elsewhere_is_no_injection_and_a_late_try_is_a_miss() -> None:
    assert tally("W6", run("W6", "W6", "W7", "", "W6"), 2) == Tally(right=3, misses=3, elsewhere=1)
    assert tally("W7", run("W6", "W7"), 0) == Tally(right=1, elsewhere=1)
    assert tally("W3", run("W3", "W2"), 0) == Tally(right=1, elsewhere=1)


def test_a_run_that_came_to_nothing_has_no_injections() -> None:
    assert tally("W6", summary.entry(summary.Run(scenario="a", verdict=summary.error("no Java"))), 0) == Tally()


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return tmp_path / "kills.txt"


def kept(record: Path, *runs: tuple[dict[str, Any], int, str]) -> None:
    told = [line(W6, entry, late, now, BEGUN) for entry, late, now in runs]
    record.write_text("\n".join(["# What it is.", *told, ""]), encoding="utf-8")


def test_a_line_of_the_record_is_read_as_it_was_written(record: Path) -> None:
    entry = run("W6", "W7", word=Word.VIOLATED)
    entry["findings"] = {"duplicated": 998, "lost": 1}
    kept(record, (entry, 1, f"{NOW} with changes"))
    assert record.read_text(encoding="utf-8").splitlines()[1] == (
        f"2026-11-28 03:10 UTC, commit {NOW} with changes, append:W6: 1 in place, 1 misses, 1 elsewhere; "
        "violated: 998 duplicated, 1 lost, as predicted; 214 s"
    )
    (told,) = read(record)
    assert (told.commit, told.aim, told.tally, told.predicted) == (f"{NOW} with changes", str(W6), Tally(1, 1, 1), True)


def test_the_bench_goes_on_with_what_lacks_injections_of_this_commit(record: Path) -> None:
    ten, six = run(*["W6"] * 10), run(*["W6"] * 6)
    assert finished(read(record), NOW) == set()
    kept(record, (ten, 0, NOW))
    assert finished(read(record), NOW) == {str(W6)}
    assert finished(read(record), f"{NOW} with changes") == set()
    kept(record, (six, 0, NOW), (ten, 0, "98765432"))
    assert finished(read(record), NOW) == set()
    kept(record, (six, 0, NOW), (six, 3, NOW))
    assert finished(read(record), NOW) == {str(W6)}


def test_a_verdict_that_was_not_predicted_is_never_done(record: Path) -> None:
    kept(record, (run(*["W6"] * 10, as_expected=False), 0, NOW), (run(*["W6"] * 10), 0, NOW))
    assert [each.predicted for each in read(record)] == [False, True]
    assert finished(read(record), NOW) == set()
    assert f"{W6} (sink committed, commits/N not begun): 20 in place, 0 misses, 0 elsewhere, not as predicted" in table(
        read(record), NOW
    )


def test_the_table_counts_the_misses_of_this_commit(record: Path) -> None:
    kept(record, (run(*["W6"] * 6), 2, NOW), (run(*["W6"] * 6), 1, NOW), (run("W6"), 7, "98765432"))
    told = list(table(read(record), NOW))
    assert len(told) == 1 + len(AIMS)
    assert "append:W6 (sink committed, commits/N not begun): 12 in place, 3 misses, 0 elsewhere, as predicted" in told
    assert "upsert:W7 (commits/N being written): no run" in told


def test_the_command_line_takes_what_it_knows_and_hands_on_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    options, handed_on = yarn_aimed.parsed(["--only", "append:W6", "--seed", "7", "--only", "upsert:W2"])
    assert (options.only, handed_on) == ([W6, AIMS["upsert:W2"]], ["--seed", "7"])
    with pytest.raises(SystemExit):
        yarn_aimed.parsed(["--only", "append:W5"])
    assert "append:W5" in capsys.readouterr().err


def test_the_lines_that_are_kept_are_those_of_runs() -> None:
    """The record may have lines of an earlier form, which count for no commit."""
    assert all(each.aim in AIMS for each in read(yarn_aimed.ROOT / yarn_aimed.RECORD))

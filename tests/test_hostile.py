"""Cases that once talked a verdict into green, or into red, on the real stack. Each has a twin that differs in one fact
and has another verdict; a twin in what is claimed is judged on the same run.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import store
from harness.judge import judge
from harness.load import load
from harness.run.loop import Result
from harness.scenario import Finding, Harm, Scenario, Verdict, Word, plain

pytestmark = pytest.mark.stack
HOUSE = Path(__file__).parents[1]
ADDRESS = ("--bootstrap", "{kafka.bootstrap}", "--topic", "{topic}", "--folder", "{folder}")
CRASH = "crash before offset commit"
SCHEDULE = [{"when": {"batch": 3}, "do": CRASH}]
ONCE = {"postgres": "create table payments (id bigint primary key, account text, amount numeric(12, 2))"}

Play = Callable[..., Result]


@pytest.fixture
def play(tmp_path: Path, run_scenario: Callable[[Scenario], Result]) -> Play:
    """`play("payments", "--once", ...)` runs that program of ours with these flags; keywords are the scenario's."""
    shutil.copytree(HOUSE / "tests" / "programs", tmp_path / "programs")
    shutil.copytree(HOUSE / "pipelines", tmp_path / "pipelines")
    (tmp_path / "scenarios").mkdir()

    def run(program: str, *flags: str, pipeline: dict[str, Any] | None = None, **keys: Any) -> Result:
        start = {"entry": f"programs/{program}.py", "args": [*ADDRESS, *flags]}
        if program.startswith("pipelines/"):
            start = {"entry": f"{program}.py"}
        path = tmp_path / "scenarios" / "it.yaml"
        # JSON is YAML.
        path.write_text(
            json.dumps({"name": program, "pipeline": {**start, **(pipeline or {})}, "schedule": SCHEDULE} | keys)
        )
        return run_scenario(load(path))

    return run


def claimed(result: Result, place: Path, change: Callable[[Scenario], Scenario]) -> Verdict:
    """The same run, had its scenario claimed something else."""
    folder = place / "claimed"
    shutil.copytree(result.folder, folder)
    path = folder / "plan.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "scenario": plain(change(_scenario(result)))}))
    return judge(folder)


def _scenario(result: Result) -> Scenario:
    scenario: Scenario = store.noun(Scenario, json.loads((result.folder / "plan.json").read_text())["scenario"], "plan")
    return scenario


def sink(**keys: Any) -> Callable[[Scenario], Scenario]:
    return lambda scenario: replace(scenario, sinks=(replace(scenario.sinks[0], **keys),))


def said(verdict: Verdict) -> str:
    return "\n".join((*verdict.reasons, *verdict.notes))


def blamed(findings: tuple[Finding, ...]) -> set[tuple[str, ...]]:
    return {finding.faults for finding in findings}


# 1: the first batch.


def test_the_first_batch_with_records_is_struck_and_named(play: Play) -> None:
    verdict = play(
        "payments", schedule=[{"when": {"window": "sink-committed", "batch": 0}, "do": "kill driver"}]
    ).verdict
    (step,) = verdict.steps
    assert (verdict.word, set(verdict.kinds())) == (Word.VIOLATED, {"duplicated"})
    assert blamed(verdict.findings) == {(f"kill driver at sink-committed of batch {step.batch}, attempt 1",)}


# 2: what reaches the judged sink.


@pytest.mark.parametrize(("last", "word"), [(40, Word.VOID), (400, Word.VIOLATED)])
def test_a_struck_batch_counts_by_what_its_filter_lets_through(play: Play, last: int, word: Word) -> None:
    kept = f"id < {last}"
    effect = f"select id, account, amount from ledger where {kept}"
    to = {"postgres": "payments", "effect": effect, "key": ["id"]}
    verdict = play("payments", "--where", kept, sink=to).verdict
    assert verdict.steps[0].hit
    assert verdict.word is word
    assert ("records pass the effect" in said(verdict)) == (word is Word.VOID)


@pytest.mark.parametrize(("query", "word"), [("audit", Word.VOID), ("payments", Word.VIOLATED)])
def test_a_fault_in_one_query_says_nothing_of_a_sink_that_another_one_feeds(play: Play, query: str, word: Word) -> None:
    when = {"window": "sink-committed", "batch": 2, "query": query}
    verdict = play("payments_then_audit", "--records", "600", schedule=[{"when": when, "do": "kill driver"}]).verdict
    assert verdict.steps[0].hit and verdict.steps[0].checkpoint == f"checkpoints/{query}"
    assert verdict.word is word


# 4: errors that cancel.

TOTAL = {
    "input": {"records": 600, "partitions": 1, "rate": "20000/s"},
    "schedule": [{"when": {"batch": 4}, "do": CRASH}],
}
COUNT = {
    "postgres": "select one, n from total",
    "effect": "select 1 as one, count(*) as n from ledger",
    "key": ["one"],
}


@pytest.mark.parametrize("when", [{"batch": 4}, {"failpoint": "sink-written", "batch": 4}])
def test_a_batch_lost_unhurt_and_one_of_its_size_counted_twice_are_never_held(play: Play, when: dict[str, Any]) -> None:
    same = ("--max-records", "50", "--lose", "2")
    verdict = play("total", *same, **TOTAL | {"schedule": [{"when": when, "do": CRASH}], "sink": COUNT}).verdict
    assert verdict.steps[0].hit
    assert (verdict.findings, verdict.word) in [((), Word.UNKNOWN), ((), Word.VOID)]


def test_where_their_sizes_differ_the_total_is_wrong_without_faults_too(play: Play) -> None:
    same = ("--max-records", "50", "--lose", "2", "--lose-records", "20")
    verdict = play("total", *same, **TOTAL | {"sink": COUNT}).verdict
    assert (verdict.word, set(verdict.kinds())) == (Word.ERROR, {"wrong aggregate"})
    assert "effect and pipeline do not fit" in said(verdict)


# 6: an effect that is wrong.


def test_a_wrong_effect_is_no_violation(play: Play, tmp_path: Path) -> None:
    effect = "select id, account, cast(amount * 2 as decimal(12, 2)) as amount from ledger"
    to = {"postgres": "payments", "effect": effect, "key": ["id"]}
    result = play("payments", "--once", setup=ONCE, sink=to)
    assert (result.verdict.word, set(result.verdict.kinds())) == (Word.ERROR, {"corrupted"})
    assert "effect and pipeline do not fit" in said(result.verdict)
    assert blamed(result.verdict.findings) == {()}
    right = claimed(result, tmp_path, sink(effect="select id, account, amount from ledger"))
    assert (right.word, right.findings) == (Word.HELD, ())


def test_an_effect_with_ties_is_an_error(play: Play, tmp_path: Path) -> None:
    number = "select id, account, row_number() over (partition by account order by {}) as seq from ledger"
    to = {"postgres": "payments", "effect": number.format("currency"), "key": ["id"]}
    setup = {"postgres": "create table payments (id bigint primary key, account text, seq bigint)"}
    result = play("payments", "--once", "--columns", "id,account,seq", setup=setup, sink=to)
    assert result.verdict.word is Word.ERROR
    assert "when the ledger lies in another order" in said(result.verdict)
    right = claimed(result, tmp_path, sink(effect=number.format("_offset")))
    assert (right.word, right.findings) == (Word.HELD, ())


# 8: who stops by himself.


@pytest.mark.parametrize(("flags", "word"), [(("--dies-at", "4"), Word.ERROR), (("--never-again",), Word.VIOLATED)])
def test_a_program_that_dies_unhurt_too_is_no_violation(play: Play, flags: tuple[str, ...], word: Word) -> None:
    schedule = [{"when": {"window": "offsets-written", "batch": 2}, "do": "kill driver"}]
    result = play("payments", "--once", *flags, setup=ONCE, schedule=schedule, restart={"at most": 1})
    assert result.verdict.steps[0].hit
    assert result.verdict.word is word
    if word is Word.ERROR:
        assert "fatal: no such account in batch" in said(result.verdict)
    else:
        assert set(result.verdict.kinds()) == {"stalled"}


@pytest.mark.parametrize(("every", "word"), [(40, Word.UNKNOWN), (2, Word.HELD)])
def test_a_long_trigger_interval_is_no_stall(play: Play, every: int, word: Word) -> None:
    schedule = [{"when": {"window": "offsets-written", "batch": 1}, "do": "kill driver"}]
    flags = ("--once", "--every", f"{every} seconds")
    keys = {"setup": ONCE, "schedule": schedule, "within": "30s", "pipeline": {"interval": f"{every}s"}}
    verdict = play("payments", *flags, **keys).verdict
    assert (verdict.word, verdict.findings) == (word, ())


# 9: at most once.

BEFORE = [{"when": {"failpoint": "offsets-saved", "batch": 2}, "do": "kill driver"}]
LOSER = """
create table payments (id bigint, account text, amount numeric(12, 2), currency text, event_time timestamp);
create table progress (partition int primary key, next_offset bigint not null, batch bigint not null);
create function lose() returns trigger language plpgsql as
  'begin if new.id = 590 then return null; end if; return new; end';
create trigger lose before insert on payments for each row execute function lose()
"""


@pytest.mark.parametrize(("more", "word"), [({}, Word.HELD), ({"setup": {"postgres": LOSER}}, Word.VIOLATED)])
def test_at_most_once_allows_the_loss_of_what_was_at_stake_and_no_more(
    play: Play, more: dict[str, Any], word: Word
) -> None:
    keys = {"guarantee": "at-most-once", "schedule": BEFORE, **more}
    verdict = play("pipelines/transactions/offsets_before", **keys).verdict
    assert verdict.word is word
    assert set(verdict.kinds()) == {"lost"}
    beyond = [finding for finding in verdict.findings if not finding.staked]
    assert [finding.key["id"] for finding in beyond] == ([] if word is Word.HELD else ["590"])
    assert blamed(tuple(beyond)) <= {()}


# 12: a query with two sources on the topic.


@pytest.mark.parametrize(("flags", "word"), [(("--once",), Word.HELD), ((), Word.VIOLATED)])
def test_a_query_with_two_sources_is_drained_by_the_slower_one(play: Play, flags: tuple[str, ...], word: Word) -> None:
    setup = {"postgres": f"create table halves (half text, id bigint{', primary key (half, id)' if flags else ''})"}
    result = play("both_halves", *flags, setup=setup, schedule=[{"when": {"batch": 2}, "do": CRASH}])
    assert result.verdict.word is word
    assert set(result.verdict.kinds()) == (set() if flags else {"duplicated"})
    assert result.verdict.counts["unseen"] == 0


# 14: a query that folds.

DISTINCT = {
    "postgres": "select distinct id, account from payments",
    "effect": "select id, account from ledger",
    "key": ["id"],
}


def test_a_query_that_folds_duplicates_has_to_say_so(play: Play, tmp_path: Path) -> None:
    result = play("payments", sink=DISTINCT)
    assert (result.verdict.word, result.verdict.findings) == (Word.VOID, ())
    assert "view: deduplicated" in said(result.verdict)
    meant = claimed(result, tmp_path, sink(folds=True))
    assert meant.word is Word.VOID
    assert "view: deduplicated" not in "\n".join(meant.reasons)
    assert [(stake.harm, stake.shown) for stake in meant.stakes] == [(Harm.REPETITION, False)]


def test_a_query_that_folds_duplicates_on_purpose_shows_a_loss(play: Play, tmp_path: Path) -> None:
    schedule = [{"when": {"window": "offsets-written", "batch": 3}, "do": "kill driver"}]
    result = play("payments", sink={**DISTINCT, "view": "deduplicated"}, schedule=schedule)
    assert (result.verdict.word, result.verdict.findings) == (Word.HELD, ())
    assert result.verdict.notes
    unsaid = claimed(result, tmp_path, sink(folds=False))
    assert unsaid.word is Word.VOID
    assert "view: deduplicated" in said(unsaid)


# 15: one row in all.


@pytest.mark.parametrize(("flags", "word"), [(("--once",), Word.HELD), ((), Word.VIOLATED)])
def test_a_grand_total_is_judged(play: Play, flags: tuple[str, ...], word: Word) -> None:
    verdict = play("total", *flags).verdict
    assert verdict.word is word
    assert set(verdict.kinds()) == (set() if flags else {"wrong aggregate"})
    batch = verdict.steps[0].batch
    assert blamed(verdict.findings) <= {(f"{CRASH} at sink-committed of batch {batch}, attempt 1",)}


@pytest.mark.parametrize(("rows", "harms"), [(0, {Harm.LOSS}), (5, {Harm.LOSS, Harm.REPETITION})])
def test_before_the_first_row_only_loss_is_at_stake(play: Play, rows: int, harms: set[Harm]) -> None:
    schedule = [{"when": {"rows": rows, "batch": 2}, "do": "crash mid-sink"}]
    verdict = play("payments", schedule=schedule).verdict
    assert (verdict.word, verdict.findings) == (Word.HELD, ())
    assert {stake.harm for stake in verdict.stakes if stake.shown} == harms

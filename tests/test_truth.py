"""The verdict is true: on the real stack, with what was done to the run known beforehand.

A repaired pipeline that is broken again turns red; a fault without effect is untested; a late sink is not a lost one;
an answer that was cut says nothing about the pipeline; a row taken out by hand is named.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kafka import KafkaProducer

from harness.faults import fault
from harness.faults.base import killing
from harness.hosts import signals
from harness.load import load
from harness.run.loop import Result
from harness.scenario import CrashPoint, Kind, Scenario, Step, Victim, Word
from harness.triggers import trigger
from tests.socks import Socks

pytestmark = pytest.mark.stack
HOUSE = Path(__file__).parents[1]
Run = Callable[[Scenario], Result]

UPSERT = """
name: {name}
pipeline: pipelines/transactions/upsert.py
{more}
schedule:
  - {{when: {{batch: 3}}, do: crash before offset commit}}
verdict: {expected}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's repository with a copy of our pipelines."""
    shutil.copytree(HOUSE / "pipelines", tmp_path / "pipelines")
    (tmp_path / "scenarios").mkdir()
    return tmp_path


def scenario(project: Path, *, expected: str = "held", more: str = "", name: str = "upsert") -> Scenario:
    path = project / "scenarios" / "it.yaml"
    path.write_text(UPSERT.format(expected=expected, more=more, name=name))
    return load(path)


def ids(result: Result, kind: Kind) -> set[str | None]:
    return {finding.key["id"] for finding in result.verdict.findings if finding.kind is kind}


def test_a_repaired_twin_that_loses_its_upsert_turns_red_with_ids_batch_and_fault(
    project: Path, run_scenario: Run
) -> None:
    program = project / "pipelines" / "transactions" / "upsert.py"
    text = program.read_text()
    head, _, tail = text.partition("    on conflict (id) do update set\n")
    program.write_text((head + '"""' + tail.partition('"""')[2]).replace(" primary key", ""))
    result = run_scenario(scenario(project))
    verdict = result.verdict
    assert (verdict.word, verdict.as_expected) == (Word.VIOLATED, False)
    assert set(verdict.kinds()) == {"duplicated"}
    batch = verdict.steps[0].batch
    assert batch is not None
    for finding in verdict.findings:
        assert finding.batches == (batch,)
        assert finding.faults == (f"crash before offset commit at sink-committed of batch {batch}, attempt 1",)
        assert len(finding.records) == 1
    assert len(ids(result, Kind.DUPLICATED)) == len(verdict.findings) > 10
    assert verdict.steps[0].point == "sink-committed"


# In CI: test_sabotage.py, whose evidence lies on top of it.
@pytest.mark.prove
def test_a_kill_without_query_is_untested_and_never_held(
    project: Path, run_scenario: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spared(processes: list[Any]) -> dict[str, str]:
        return {p.name: "alive" if p.alive() else "gone" for p in processes}

    monkeypatch.setattr(
        killing, "signals", SimpleNamespace(**{**vars(signals), "kill": spared, "freeze": lambda ps: ps})
    )
    verdict = run_scenario(scenario(project)).verdict
    assert verdict.word is Word.UNTESTED
    assert verdict.steps[0].injected is False
    assert any("was not injected" in reason for reason in verdict.reasons)


GRACEFUL = """
    import signal, threading

    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    while not asked.wait(0.1):
        pass
    query.processAllAvailable()
    query.stop()
"""


@pytest.mark.prove
def test_a_driver_that_ends_cleanly_when_it_is_asked_to_is_not_held_before_its_next_life_was_seen(
    project: Path, run_scenario: Run
) -> None:
    program = project / "pipelines" / "transactions" / "checkpoint_temporary.py"
    program.write_text(program.read_text().replace("    query.awaitTermination()\n", GRACEFUL))
    path = project / "scenarios" / "it.yaml"
    path.write_text(
        "name: graceful\npipeline: pipelines/transactions/checkpoint_temporary.py\n"
        "schedule: [{when: {records: 600}, do: stop driver}]\nverdict: {violated: [duplicated]}\n"
    )
    verdict = run_scenario(load(path)).verdict
    # All that was in flight was done before it ended: nothing was struck. The next attempt begins from nothing all the
    # same.
    assert verdict.word is Word.VIOLATED
    assert verdict.kinds() == {"duplicated": 600}
    assert verdict.steps[0].evidence.signalled["driver 1"] == "exit status 0"


@pytest.mark.prove
def test_rows_that_show_five_seconds_late_are_never_lost(project: Path, run_scenario: Run) -> None:
    more = """
setup:
  postgres: |
    create table payments (
      id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp,
      written timestamptz default clock_timestamp()
    )
sink:
  postgres: >-
    select id, account, amount, currency, event_time from payments
    where written < clock_timestamp() - interval '5 seconds'
  expected: select id, account, amount, currency, event_time from ledger
  key: [id]
"""
    assert run_scenario(scenario(project, more=more)).verdict.word is Word.HELD


# In CI: test_producer.py, without a pipeline.
@pytest.mark.prove
def test_answers_that_are_cut_fake_no_verdict(
    project: Path, run_scenario: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    socks = Socks()
    pieces = iter(range(10**9))
    socks.cut = lambda: next(pieces) % 4 == 3
    monkeypatch.setitem(KafkaProducer.DEFAULT_CONFIG, "proxy_url", socks.url)
    try:
        verdict = run_scenario(scenario(project)).verdict
    finally:
        socks.close()
    assert socks.cuts >= 2
    assert verdict.word is Word.HELD


@pytest.mark.prove
def test_a_row_taken_out_by_hand_is_lost_and_named(project: Path, run_scenario: Run) -> None:
    more = """
setup:
  postgres: |
    create table payments (
      id bigint primary key, account text, amount numeric(12, 2), currency text, event_time timestamp
    );
    create function lose() returns trigger language plpgsql as
      'begin if new.id = 17 then return null; end if; return new; end';
    create trigger lose before insert on payments for each row execute function lose()
quiet_period: 2s
"""
    result = run_scenario(scenario(project, more=more))
    (finding,) = result.verdict.findings
    assert (result.verdict.word, finding.kind, finding.key) == (Word.VIOLATED, Kind.LOST, {"id": "17"})
    assert len(finding.records) == 1
    assert finding.expected[0]["id"] == "17"


# In CI: test_tutorial.py.
@pytest.mark.prove
def test_a_users_program_under_its_own_argument_names_gets_a_true_verdict(run_scenario: Run) -> None:
    verdict = run_scenario(load(HOUSE / "scenarios" / "examples" / "orders.yaml")).verdict
    assert (verdict.word, verdict.as_expected) == (Word.VIOLATED, True)


@pytest.mark.prove
def test_sparks_own_wordcount_is_launched_struck_restarted_and_untested(run_scenario: Run) -> None:
    result = run_scenario(load(HOUSE / "scenarios" / "examples" / "wordcount.yaml"))
    assert result.verdict.word is Word.UNTESTED
    assert result.verdict.steps[0].injected
    assert any("console sink cannot be read back" in reason for reason in result.verdict.reasons)
    assert (result.folder / "logs" / "driver-2.log").exists()


def steps() -> Iterator[st.SearchStrategy[Step]]:
    for point in (CrashPoint.BATCH_PLANNED, CrashPoint.SINK_COMMITTED, CrashPoint.BATCH_COMMITTED):
        yield st.builds(
            lambda batch, kind, victim, point=point: Step(
                when=trigger("point", point, batch=batch),
                do=fault(kind, victim=victim if kind == "kill driver" else Victim.TREE),
            ),
            st.integers(1, 3),
            st.sampled_from(["kill driver", "crash application"]),
            st.sampled_from([Victim.TREE, Victim.JVM]),
        )


def predicted(run_scenario: Run, step: Step, *, broken: bool) -> None:
    """Spark re-runs a batch that has no commit: an append sink has it twice if it had written it, an upsert never.
    Between two batches nothing is in flight, so nothing was tested."""
    name = "append_before_offset_commit" if broken else "upsert_before_offset_commit"
    base = load(HOUSE / "scenarios" / "proving" / f"{name}.yaml")
    verdict = run_scenario(replace(base, schedule=(step,))).verdict
    twice = broken and step.when.point is CrashPoint.SINK_COMMITTED
    assert [outcome.injected for outcome in verdict.steps] == [True]
    idle = step.when.point is CrashPoint.BATCH_COMMITTED
    assert verdict.word is (Word.VIOLATED if twice else Word.UNTESTED if idle else Word.HELD)
    assert set(verdict.kinds()) == ({"duplicated"} if twice else set())
    assert all(finding.batches == (verdict.steps[0].batch,) for finding in verdict.findings)


@pytest.mark.prove
def test_an_application_that_crashes_gives_what_the_protocol_predicts(run_scenario: Run) -> None:
    when = trigger("point", CrashPoint.SINK_COMMITTED, batch=2)
    predicted(run_scenario, Step(when=when, do=fault("crash application", victim=Victim.TREE)), broken=True)


@pytest.mark.prove
@settings(
    max_examples=4,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(step=st.one_of(*steps()), broken=st.booleans())
def test_any_schedule_gives_what_the_protocol_predicts(run_scenario: Run, step: Step, broken: bool) -> None:
    predicted(run_scenario, step, broken=broken)

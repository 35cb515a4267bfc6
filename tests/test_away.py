"""What an injection exposes whose driver lives: it was only paused, its server was away, it was off the network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.context import Reached
from harness.faults import disconnect_driver, fault
from harness.scenario import Evidence, Guarantee, Word
from harness.snapshot import QueryState
from tests.corpus.run_builder import query, run_builder, state
from tests.folders import BEFORE, PER_RECORD, STEP, Folder, Injected, judge
from tests.test_outage import STEP as KILL
from tests.test_outage import undisturbed, world
from tests.test_schedule import Boxed

__all__ = ["undisturbed"]
KAFKA = replace(STEP, do=fault("kill kafka", for_s=3.0))


def away(**newest: int) -> Evidence:
    """Kafka was killed; what each query had committed by the time it was back."""
    return Evidence(signalled={"kafka": "gone"}, in_flight="records", committed_meanwhile=newest)


@pytest.mark.slow
def test_a_pause_exposes_nothing_whoever_kills_the_driver_later(tmp_path: Path) -> None:
    folder = run_builder(tmp_path / "r")
    folder.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    folder.injection(1, point="batch-planned", holds=10)
    folder.moments[0].again = None
    paused = Evidence(signalled={"4711": "paused for 2 s"}, in_flight="records")
    folder.steps[0] = replace(folder.steps[0], name="pause driver", evidence=paused)
    folder.injection(1, attempt=1)
    folder.claim(schedule=(replace(STEP, do=fault("pause driver", for_s=2.0)), STEP))
    assert judge(folder).word is Word.UNTESTED


@pytest.mark.parametrize(
    ("newest", "word"),
    [({}, Word.HELD), ({"a": 1, "b": 0}, Word.HELD), ({"a": 0, "b": 1}, Word.UNTESTED)],
    ids=["nobody knows", "the other query", "its own"],
)
def test_a_batch_of_another_query_that_was_committed_says_nothing_of_this_one(
    tmp_path: Path, newest: dict[str, int], word: Word
) -> None:
    folder = run_builder(tmp_path / "r")
    folder.sink(replace(PER_RECORD, query="b"))
    folder.queries = [query(each, 10, 20, 30, 40, first={1: 0}) for each in ("a", "b")]
    states = tuple(state(each, planned=(2, 20), committed=(1, 10)) for each in ("a", "b"))
    folder.injection(1, point="failpoint x", holds=10, checkpoint="", states=states)
    folder.moments[0].again = None
    folder.steps[0] = replace(folder.steps[0], name="kill kafka", evidence=away(**newest))
    folder.claim(schedule=(KAFKA,))
    assert judge(folder).word is word


def test_what_was_planned_after_the_server_was_back_was_not_exposed(folder: Folder) -> None:
    folder.claim(schedule=(replace(STEP, do=fault("kill postgres", for_s=1.0)),))
    then, now = {"offsets": (0, 1), "commits": (0,)}, {"offsets": (0, 1, 2), "commits": (0, 1)}
    evidence = Evidence(signalled={"redis 7": "gone"}, in_flight="b", checkpoint_before=then, checkpoint_after=now)
    folder.steps = [replace(BEFORE, name="restart redis", evidence=evidence)]
    folder.injections = [Injected(planned=3, committed=2, holds=20, again=None)]
    assert judge(folder).word is Word.UNTESTED


def test_what_a_later_step_repeats_and_the_guarantee_allows_is_right(tmp_path: Path) -> None:
    folder = run_builder(tmp_path / "r")
    folder.claim(guarantee=Guarantee.AT_LEAST_ONCE)
    folder.injection(1, point="batch-planned", holds=10)
    folder.moments[0].again = None
    folder.steps[0] = replace(folder.steps[0], name="kill kafka", evidence=away(checkpoint=1))
    folder.injection(2, attempt=1)
    folder.injection(3, attempt=2)
    folder.moments[2].again = 1
    folder.claim(schedule=(KAFKA, STEP, STEP))
    folder.tables = [folder.rows((0, 40), again=[(10, 40)])]
    assert judge(folder).word is Word.UNTESTED


def test_what_is_committed_off_the_network_is_told() -> None:
    run: Any = world(connected=True)
    run.observer = SimpleNamespace(states=lambda: (QueryState(checkpoint="a", commits=(0, 1, 2, 3)),))
    run.supervisor.processes, run.history = lambda: [Boxed()], SimpleNamespace(elapsed_s=lambda: 0.0)
    step = replace(KILL, do=fault("disconnect driver", for_s=0.1))
    done = disconnect_driver.KIND.inject(run, step, Reached(3, folder=Path("c")))
    assert done.signalled and done.committed_meanwhile == {"a": 3}

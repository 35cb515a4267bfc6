"""The trigger `op`: a pipeline that reports its operations is struck at each of them, at the batch that was asked
for."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.checkpoint import PLANNING
from harness.errors import ScenarioError
from harness.load import load
from harness.operation import Op, Side
from harness.scenario import CrashPoint
from harness.triggers import trigger
from tests.strategies import project
from tests.worlds import step, world

BATCH = 3
TEMPORARY = {(Op.CREATE, Side.AFTER), (Op.RENAME, Side.BEFORE)}


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("op", [Op.CREATE, Op.RENAME])
@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_a_driver_is_killed_at_an_operation(tmp_path: Path, log: str, op: Op, side: Side) -> None:
    with world(tmp_path, agent=True) as w:
        (outcome,) = w.play(step(trigger("op", op, batch=BATCH, path=log, when=side), "kill driver"))
    assert outcome.injected, outcome.evidence.note
    assert (outcome.batch, outcome.point) == (BATCH, f"{side} {op} of {log}")
    after = outcome.evidence.checkpoint_after
    assert (BATCH in after[log]) is ((op, side) == (Op.RENAME, Side.AFTER))
    begun = after.get(PLANNING if log == "offsets" else "begun", ())
    assert (BATCH in begun) is ((op, side) in TEMPORARY)


def test_who_lives_on_goes_on(tmp_path: Path) -> None:
    """The thread is let go once the step is over."""
    with world(tmp_path, agent=True) as w:
        when = trigger("op", "create", batch=BATCH, path="commits", when="before")
        (outcome,) = w.play(step(when, "pause driver", for_s=0.1), finish=True)
    assert outcome.injected, outcome.evidence.note
    assert outcome.crash_point is CrashPoint.SINK_COMMITTED
    assert w.copies() == dict.fromkeys(range(w.batches), 1)


def test_a_program_that_is_asked_to_end_finishes_the_batch_whose_thread_was_held(tmp_path: Path) -> None:
    with world(tmp_path, "--broken", "polite", agent=True) as w:
        when = trigger("op", "create", batch=BATCH, path="commits", when="before")
        (outcome,) = w.play(step(when, "stop driver"))
    assert outcome.injected, outcome.evidence.note
    assert outcome.evidence.driver_status == 0
    assert max(outcome.evidence.checkpoint_before["commits"]) == BATCH - 1
    assert max(outcome.evidence.checkpoint_after["commits"]) == BATCH


def test_a_program_that_ends_at_once_leaves_the_batch_whose_thread_was_held(tmp_path: Path) -> None:
    """Its thread is held until the program is gone: let go with the signal, it might commit first."""
    with world(tmp_path, agent=True) as w:
        when = trigger("op", "create", batch=BATCH, path="commits", when="before")
        (outcome,) = w.play(step(when, "stop driver"))
    assert outcome.injected, outcome.evidence.note
    assert max(outcome.evidence.checkpoint_after["commits"]) == BATCH - 1


def test_without_an_agent_it_never_comes_and_that_is_said(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        (outcome,) = w.play(step(trigger("op", "create", batch=BATCH), "kill driver"))
    assert not outcome.injected and not outcome.evidence.signalled
    assert "never came: the checkpoint's folder was watched: no agent in Spark" in outcome.evidence.note
    assert "does the program set spark.sql.streaming.checkpointFileManagerClass itself?" in outcome.evidence.note


SCENARIO = """\
name: an operation
pipeline: pipelines/pay.py
sink: {postgres: payments, expected: select id from ledger, key: [id]}
schedule:
  - {when: {op: rename, path: %s, batch: 3}, do: kill driver}
"""


@pytest.mark.parametrize("path", ["offsets", "commits", "state", "state/0/1"])
def test_the_files_of_a_batch_are_operated_on(tmp_path: Path, path: str) -> None:
    file = project(tmp_path) / "s.yaml"
    file.write_text(SCENARIO % path, encoding="utf-8")
    assert load(file).schedule[0].when.options["path"] == path


NONE = ("comits", "commits/7", "commits/../offsets", "metadata", "state/../offsets", "/state")


@pytest.mark.parametrize("path", NONE)
def test_a_path_of_no_batch_is_refused(tmp_path: Path, path: str) -> None:
    file = project(tmp_path) / "s.yaml"
    file.write_text(SCENARIO % path, encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"s\.yaml:5:\d+: .*path must be offsets, commits, state, or a path below"):
        load(file)


def test_a_driver_is_killed_once_the_state_of_a_batch_is_committed(tmp_path: Path) -> None:
    with world(tmp_path, "--broken", "stateful", agent=True) as w:
        (outcome,) = w.play(step(trigger("state_store", "committed", batch=BATCH), "kill driver"))
    assert outcome.injected, outcome.evidence.note
    assert (outcome.batch, outcome.point) == (BATCH, "state store committed")
    assert f"driver was held after rename of state/0/0/{BATCH + 1}.delta" in outcome.evidence.note
    assert max(outcome.evidence.checkpoint_after["commits"]) == BATCH - 1
    assert w.copies()[BATCH] == 0, "the sink had nothing of the batch"

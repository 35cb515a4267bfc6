"""The trigger `request`: when it is met, what is let go and what is dropped, what the evidence says, who is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from harness.context import Reached
from harness.errors import ScenarioError
from harness.faults import FAULTS, fault
from harness.load import load
from harness.remote.proxy.commits import HeldRequest, Rename, Wanted
from harness.remote.proxy.exchange import Exchange, State
from harness.scenario import CrashPoint, StepOutcome, Trigger
from harness.stacks.needed_parts import parts, proxied
from harness.stacks.supported import unsupported
from harness.triggers import TRIGGERS, trigger
from harness.triggers.base import Planned
from tests.shipped import scenario as shipped
from tests.worlds import World, at, step, world

HOUSE = Path(__file__).parents[1]


@dataclass
class Held:
    """A request that is held without a proxy; `early`: it went on as soon as it was met."""

    early: bool = False
    state: State = State.HELD
    why: str = ""
    exchange: Exchange = field(default_factory=lambda: Exchange("DELETE", "/b/k", {}))

    def let_go(self, *, drop: bool) -> None:
        if self.state is State.HELD:
            self.state, self.why = (State.DROPPED, "its driver is dead") if drop else (State.SENT, "let go")


@dataclass
class Requests:
    """Those of the fake pipeline, which has no server: one is there while its checkpoint stands at the place."""

    world: World
    early: int = 0
    """How many go on by themselves."""
    met: list[Held] = field(default_factory=list)

    @contextmanager
    def armed(self, wanted: Wanted) -> Iterator[Callable[[], HeldRequest | None]]:
        found: list[HeldRequest] = []

        def held() -> HeldRequest | None:
            here = [each for each in self.world.observer.listing().get("commits", ()) if wanted("", each)]
            if here and not found:
                self.met.append(Held(early=len(self.met) < self.early))
                (self.world.world.own.checkpoint / "commits" / f".{here[0]}.x.tmp").touch()
                found.append(request(here[0], self.met[-1]))
            return found[0] if found else None

        yield held


def request(batch: int, held: Any) -> HeldRequest:
    key, to = f"b/c/commits/.{batch}.x.tmp", f"b/c/commits/{batch}"
    return HeldRequest(Rename("", batch, key, to, Exchange("PUT", f"/{to}", {}, status=202)), held)


def played(w: World, kind: str = "kill driver", *, early: int = 0, **options: Any) -> tuple[StepOutcome, Requests]:
    """A step at batch 3, where the pipeline stands, and at 4 if that one is passed over."""
    asked = Requests(w, early)
    w.world = replace(w.world, requests=asked)
    held = [at(CrashPoint.BATCH_COMMITTED, batch) for batch in (3, 4)]
    (outcome,) = w.play(step(DELETE, kind, **options), held=held)
    return outcome, asked


DELETE = trigger("request", "delete", batch=3)


def test_a_driver_is_killed_between_copy_and_deletion(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        outcome, asked = played(w)
    assert (outcome.injected, outcome.batch, outcome.point) == (True, 3, "request delete")
    assert [each.state for each in asked.met] == [State.DROPPED]
    note = outcome.evidence.note
    assert "the copy to b/c/commits/3 before it had been answered with status 202" in note
    assert "left in the checkpoint: commits/.3.*.tmp and commits/3" in note


def test_a_request_that_went_on_too_early_is_a_miss_and_the_next_batch_is_tried(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        outcome, asked = played(w, early=1)
    assert (outcome.injected, outcome.batch) == (True, 4)
    assert [each.state for each in asked.met] == [State.SENT, State.DROPPED]
    assert "batch 3 was missed, batch 4 was tried instead" in outcome.evidence.note


def test_a_driver_that_lives_on_has_its_request_sent_on(tmp_path: Path) -> None:
    with world(tmp_path) as w:
        outcome, asked = played(w, "pause driver", for_s=0.2)
    assert outcome.injected
    assert [each.state for each in asked.met] == [State.SENT]
    assert "it was sent on afterwards: let go" in outcome.evidence.note


def test_a_batch_without_a_record_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with world(tmp_path) as w:
        monkeypatch.setattr(w.observer, "took_nothing", lambda folder, batch: batch == 3)
        asked = Requests(w)
        w.world = replace(w.world, requests=asked)
        (outcome,) = w.play(step(DELETE, "kill driver"), held=[at(CrashPoint.BATCH_COMMITTED, 4)])
    assert (outcome.injected, outcome.batch) == (True, 4)
    assert [each.state for each in asked.met] == [State.SENT, State.DROPPED]


@pytest.mark.parametrize(
    ("requests", "why"),
    [(False, "no proxy sees the requests of the checkpoint"), (True, "never came: all batches are done")],
)
def test_one_that_never_comes_says_why(tmp_path: Path, requests: bool, why: str) -> None:
    with world(tmp_path) as w:
        w.world = replace(w.world, requests=Requests(w) if requests else None)
        (outcome,) = w.play(step(trigger("request", "delete", batch=77), "kill driver"))
    assert not outcome.injected
    assert why in outcome.evidence.note


HERE: Mapping[str, tuple[int, ...]] = {"offsets": (1, 2, 3), "commits": (1, 2, 3), "begun": (3,)}
"""Batch 3 is committed, and its temporary file still there."""


@pytest.mark.parametrize(
    ("listing", "agrees"), [(HERE, True), ({**HERE, "begun": ()}, False), ({**HERE, "commits": (1, 2)}, False)]
)
def test_the_checkpoint_has_to_agree_with_the_request_that_is_held(
    listing: Mapping[str, tuple[int, ...]], agrees: bool
) -> None:
    kind = TRIGGERS["request"]
    assert kind.agrees(DELETE, Reached(3, request=request(3, Held())), {**listing}) is agrees
    assert not kind.agrees(DELETE, Reached(3, request=request(3, Held(early=True))), {**listing})


def test_such_a_trigger_knows_where_the_batch_stands() -> None:
    assert DELETE.point is CrashPoint.BATCH_COMMITTED
    assert str(DELETE) == "request delete of batch 3"


NOWHERE = "never comes: no checkpoint lies on azure or s3"


@pytest.mark.parametrize(
    ("when", "planned", "said"),
    [
        (DELETE, Planned(), ""),
        (DELETE, Planned(proxied=True), ""),
        (trigger("request", "delete"), Planned(), "is missing: of which batch?"),
        (DELETE, Planned(proxied=False), NOWHERE),
        (DELETE, Planned(checkpoint=False), NOWHERE),
        (DELETE, Planned(late_log=True), "cannot be seen: progress is async"),
    ],
)
def test_where_no_request_is_seen_it_is_refused(when: Trigger, planned: Planned, said: str) -> None:
    words = [each.words for each in TRIGGERS["request"].refusals(when, planned)]
    assert len(words) == bool(said)
    assert all(each.startswith(said) for each in words)


def test_requests_are_held_of_object_stores() -> None:
    assert proxied("s3") and proxied("azure")
    assert not any(map(proxied, ("hdfs.second", "minidfs", "", "postgres", "another")))


SCENARIO = """\
name: a request
pipeline: {entry: pay.py, checkpoint: %s}
sink: {postgres: payments, expected: select id from ledger, key: [id]}
schedule:
  - {when: {request: %s, batch: 3}, do: kill driver}
"""


@pytest.mark.parametrize(
    ("kept", "part", "said"),
    [
        (
            "hdfs", "delete",
            "it.yaml:5:22: schedule[0].when.request never comes: no checkpoint lies on azure or s3, whose requests are "
            "seen; say `checkpoint: s3`, for example",
        ),
        (
            "s3", "copy",
            "it.yaml:5:22: schedule[0].when.request must be one of delete, not 'copy'",
        ),
    ],
)  # fmt: skip
def test_one_that_the_server_does_not_know_is_refused_where_it_stands(
    tmp_path: Path, kept: str, part: str, said: str
) -> None:
    (tmp_path / "pay.py").write_text("")
    (tmp_path / "it.yaml").write_text(SCENARIO % (kept, part))
    with pytest.raises(ScenarioError, match=f"{re.escape(said)}$"):
        load(tmp_path / "it.yaml")


def test_a_crash_point_that_only_a_held_request_shows_is_none_to_ask_for(tmp_path: Path) -> None:
    (tmp_path / "pay.py").write_text("")
    text = (SCENARIO % ("s3", "delete")).replace("request: delete", "point: batch-planning")
    (tmp_path / "it.yaml").write_text(text)
    with pytest.raises(
        ScenarioError, match=r"it\.yaml:5:20: .*point must be one of block-received, batch-planned, .*, not"
    ):
        load(tmp_path / "it.yaml")


@pytest.mark.parametrize(
    ("kind", "options"),
    [("kill driver", {"victim": "python"}), ("kill executor", {}), ("crash before offset commit", {})],
)
def test_what_would_strike_nothing_while_an_operation_is_held_is_refused(kind: str, options: dict[str, str]) -> None:
    when = trigger("op", "rename", batch=3, path="commits")
    assert [*FAULTS[kind].refusals(fault(kind, **options), when, Planned())]


def test_only_a_run_with_such_a_step_is_given_a_proxy() -> None:
    names = ("checkpoint_append_delete_held", "checkpoint_append_before_offset_commit")
    held, not_held = (parts(shipped(HOUSE / "scenarios" / "s3" / f"{name}.yaml"))["s3"] for name in names)
    assert (held, not_held) == ({"checkpoint": True, "proxy": True}, {"checkpoint": True})


@pytest.mark.parametrize("stack", ["processes", "yarn", "external", "containers"])
def test_where_no_proxy_can_stand_the_scenario_is_refused(stack: str) -> None:
    found = unsupported(shipped(HOUSE / "scenarios" / "s3" / "checkpoint_append_delete_held.yaml"), stack)
    lacks = "kill driver: no request can be held on its way to the server that keeps the checkpoint"
    assert (lacks in found) == (stack in ("external", "containers"))

"""The crash point `sink-committing`: a sink's own commit is a file that is being written, and not renamed yet."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from harness.components.delta.sink import becomes as of_delta
from harness.components.files.sink import becomes as of_files
from harness.components.iceberg.sink import becomes as of_iceberg
from harness.context import SinkCommit
from harness.errors import HarnessError
from harness.faults import FAULTS, fault
from harness.history import FaultMissed, Line
from harness.resources import RunResources
from harness.run.sink_commits import SinkCommits, committed_to
from harness.scenario import CrashPoint, Pipeline, Scenario, Sink
from harness.sinks import SINKS
from harness.sinks.base import CommitLog
from harness.triggers import TRIGGERS
from harness.triggers.base import Planned
from tests.worlds import WITHIN_S, World, at, step, world

UUID = "0b1f6f2e-3c50-4c7d-9a55-2f0d8b1c7e11"


@pytest.mark.parametrize(
    ("name", "final"),
    [
        (f".7.{UUID}.tmp", "7"),
        (f".9.compact.{UUID}.tmp", "9.compact"),
        (f"..7.{UUID}.tmp.crc", None),
        ("7", None),
        (f"part-00000-{UUID}-c000.snappy.parquet", None),
    ],
)
def test_a_manifest_of_sparks_file_sink_is_told_by_its_temporary_file(name: str, final: str | None) -> None:
    assert of_files(Path(name)) == final


@pytest.mark.parametrize(
    ("name", "final"),
    [
        (f".00000000000000000004.json.{UUID}.tmp", "00000000000000000004.json"),
        (f".00000000000000000004.crc.{UUID}.tmp", None),
        (f"..00000000000000000004.json.{UUID}.tmp.crc", None),
        ("00000000000000000004.json", None),
        (f".00000000000000000004.checkpoint.parquet.{UUID}.tmp", None),
    ],
)
def test_a_version_of_a_delta_table_is_told_by_its_temporary_file(name: str, final: str | None) -> None:
    assert of_delta(Path(name)) == final


@pytest.mark.parametrize(
    ("name", "final"),
    [
        (f"{UUID}.metadata.json", "v11.metadata.json"),
        (f"{UUID}.gz.metadata.json", "v11.gz.metadata.json"),
        (f"{UUID}-m0.avro", None),
        (f"{UUID}-version-hint.temp", None),
        (f".{UUID}.metadata.json.crc", None),
        ("v11.metadata.json", None),
    ],
)
def test_a_version_of_an_iceberg_table_comes_after_the_newest(tmp_path: Path, name: str, final: str | None) -> None:
    for version in (2, 10, 9):
        (tmp_path / f"v{version}.metadata.json").touch()
    assert of_iceberg(tmp_path / name) == final


def test_the_first_version_of_an_iceberg_table_is_one(tmp_path: Path) -> None:
    assert of_iceberg(tmp_path / f"{UUID}.metadata.json") == "v1.metadata.json"


def log_in(root: Path) -> CommitLog:
    return CommitLog(root, root / "table" / "log", of_files)


@pytest.mark.parametrize("polling", [False, True])
def test_a_commit_is_told_once_and_what_a_dead_attempt_left_is_none(
    tmp_path: Path, polling: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if polling:
        monkeypatch.setattr(sys, "platform", "elsewhere")
    log, seen, met = log_in(tmp_path), list[SinkCommit](), threading.Event()
    log.folder.mkdir(parents=True)
    (log.folder / ".2.dead.tmp").touch()

    def hook(commit: SinkCommit) -> None:
        seen.append(commit)
        met.set()

    with SinkCommits([(None, log)]).armed(hook, first=False):
        (log.folder / "part-0.parquet").touch()
        (log.folder / ".3.0a-1b.tmp").touch()
        assert met.wait(WITHIN_S)
        assert seen[0].pending()
        (log.folder / ".3.0a-1b.tmp").rename(log.folder / "3")
        assert not seen[0].pending()
        met.clear()
        (log.folder / ".4.0a-1c.tmp").touch()
        assert met.wait(WITHIN_S)
    assert [(commit.temporary.name, commit.final.name) for commit in seen] == [
        (".3.0a-1b.tmp", "3"),
        (".4.0a-1c.tmp", "4"),
    ]


def test_a_sink_that_has_a_log_of_its_own_has_committed_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def log(kind: object, sink: Sink, own: object) -> CommitLog:
        return CommitLog(tmp_path, tmp_path / sink.target / "log", of_files)

    monkeypatch.setattr(type(SINKS["delta"]), "commit_log", log)
    of = (("delta", "a"), ("delta", "b"), ("postgres", "c"))
    sinks = tuple(Sink(kind=kind, target=name, query=name) for kind, name in of)
    scenario = Scenario(name="n", pipeline=Pipeline(entry="p.py"), sinks=sinks)
    own = RunResources(run_id="r", parts={}, spark_master="", spark_home=tmp_path, folder=tmp_path, checkpoint=tmp_path)
    assert committed_to(scenario, own) == []
    (tmp_path / "b" / "log").mkdir(parents=True)
    assert committed_to(scenario, own) == ["b"]


def test_a_table_that_is_made_later_is_seen(tmp_path: Path) -> None:
    log, met = log_in(tmp_path), threading.Event()
    with SinkCommits([(None, log)]).armed(lambda commit: met.set(), first=False):
        log.folder.mkdir(parents=True)
        (log.folder / ".0.0a-1b.tmp").touch()
        assert met.wait(WITHIN_S)


def test_in_the_first_attempt_one_that_is_being_written_already_is_told(tmp_path: Path) -> None:
    log, seen, met = log_in(tmp_path), list[str](), threading.Event()
    log.folder.mkdir(parents=True)
    (log.folder / ".2.0a-1b.tmp").touch()

    def hook(commit: SinkCommit) -> None:
        seen.append(commit.temporary.name)
        met.set()

    with SinkCommits([(None, log)]).armed(hook, first=True):
        assert met.wait(WITHIN_S)
    assert seen == [".2.0a-1b.tmp"]


def test_a_watch_that_dies_ends_the_wait_with_its_reason(tmp_path: Path) -> None:
    log, called = log_in(tmp_path), threading.Event()
    log.folder.mkdir(parents=True)

    def hook(commit: SinkCommit) -> None:
        called.set()
        raise ValueError("the disk is gone")

    with (
        pytest.raises(HarnessError, match="the disk is gone"),
        SinkCommits([(None, log)]).armed(hook, first=False) as _,
    ):
        (log.folder / ".0.0a-1b.tmp").touch()
        assert called.wait(WITHIN_S)


@pytest.mark.parametrize(
    ("asked", "logs", "refused"),
    [
        (None, [None], False),
        (None, ["totals"], False),
        ("totals", [None], False),
        ("totals", ["other", "totals"], False),
        ("totals", ["other"], True),
        (None, [], True),
        ("totals", None, False),
    ],
)
def test_a_query_that_feeds_no_sink_with_such_a_log_is_refused(
    asked: str | None, logs: list[str | None] | None, refused: bool
) -> None:
    trigger = replace(at(CrashPoint.SINK_COMMITTING, 3), query=asked)
    words = [each.words for each in TRIGGERS["point"].refusals(trigger, Planned(sink_logs=logs))]
    assert ["no sink here commits by renaming a file into a commit log" in each for each in words] == [True] * refused


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("kill driver", {"victim": "python"}, "commits the sink all the same"),
        ("kill executor", {}, "no executor has anything in flight"),
    ],
)
def test_who_cannot_stop_the_commit_is_refused_there(kind: str, options: dict[str, str], words: str) -> None:
    refused = FAULTS[kind].refusals(fault(kind, **options), at(CrashPoint.SINK_COMMITTING, 3), Planned())
    assert [words in each.words for each in refused] == [True]


def watched(w: World, folder: Path, query: str | None = None) -> None:
    w.world = replace(w.world, commits=SinkCommits([(query, log_in(folder))]))


def hold(w: World, batch: int) -> None:
    w.holds.mkdir(exist_ok=True)
    (w.holds / f"table-log-{batch}-begun").touch()


def test_a_kill_leaves_the_temporary_file_and_no_commit(tmp_path: Path) -> None:
    with world(tmp_path, "--broken", "logged") as w:
        watched(w, tmp_path / "run")
        hold(w, 3)
        (outcome,) = w.play(step(at(CrashPoint.SINK_COMMITTING, 3), "kill driver"), finish=True)
        assert outcome.injected and outcome.batch == 3, outcome
        after = outcome.evidence.checkpoint_after
        assert (max(after["offsets"]), max(after["commits"]), after["committing"]) == (3, 2, (3,))
        assert "was written and never renamed to 3" in outcome.evidence.note
        assert w.copies()[3] == 2


def test_a_commit_that_was_done_when_the_driver_stood_still_is_missed_and_the_next_batch_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits: list[SinkCommit] = []

    def late(commit: SinkCommit) -> bool:
        commits.append(commit)
        if len(commits) == 1:
            return False
        return commit.temporary.exists() and not commit.final.exists()

    monkeypatch.setattr(SinkCommit, "pending", late)
    with world(tmp_path, "--broken", "logged") as w:
        watched(w, tmp_path / "run")
        missed: list[int | None] = []

        def heard(line: Line) -> None:
            if isinstance(line.event, FaultMissed):
                missed.append(line.event.outcome.batch)

        w.world.history.listen(heard)
        for batch in (2, 3, 4):
            hold(w, batch)
        (outcome,) = w.play(step(at(CrashPoint.SINK_COMMITTING, 2), "kill driver"))
        assert missed == [2]
        assert outcome.injected and outcome.batch == 3, outcome


@pytest.mark.parametrize(("fed_by", "asked"), [("totals", None), ("totals", "checkpoint"), (None, "totals")])
def test_the_commit_of_another_query_is_not_met(tmp_path: Path, fed_by: str | None, asked: str | None) -> None:
    with world(tmp_path, "--broken", "logged") as w:
        watched(w, tmp_path / "run", query=fed_by)
        (outcome,) = w.play(step(replace(at(CrashPoint.SINK_COMMITTING, 2), query=asked), "kill driver"))
        assert not outcome.injected and "never came" in outcome.evidence.note

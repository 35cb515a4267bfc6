"""The digests of a run folder: they show every file that is not as the run left it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import HarnessError, UsageError
from harness.history import AttemptDiagnosed, History
from harness.run import loop
from harness.run_folder import digests, store
from harness.run_folder.digests import DIGESTS, Mismatch, mismatches, opened
from harness.run_folder.store import RunFolder
from tests import sample_runs as sample


@pytest.fixture
def run(held_run: RunFolder) -> RunFolder:
    return held_run


def forge(path: Path, **changes: Any) -> None:
    """Change the file of digests and leave its own digest as it was."""
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, **changes}, indent=1) + "\n")


def test_everything_that_a_verdict_rests_on_has_a_digest_and_nothing_else(run: RunFolder) -> None:
    for name in ("logs/driver-1.log", "baseline/1/sink/0.json", "snapshots/1-injection/sink/0.parquet"):
        (run.path / name).parent.mkdir(parents=True, exist_ok=True)
        (run.path / name).write_text(name)
    run.report_html.write_text("<html>")
    digests.write(run.path)
    assert list(json.loads((run.path / DIGESTS).read_text())["files"]) == [
        "baseline/1/sink/0.json",
        "history.jsonl",
        "ledger/attempts.log",
        "ledger/source.parquet",
        "plan.json",
        "run.json",
        "scenario.yaml",
        "sink/0.json",
        "sink/0.parquet",
        "snapshots/1-injection/sink/0.json",
        "snapshots/1-injection/sink/0.parquet",
        "verdict.json",
    ]
    (run.logs / "driver-1.log").unlink()
    run.report_html.unlink()
    assert mismatches(run.path) == []
    assert opened(run.path).path == run.path
    assert (run.path / DIGESTS).stat().st_mode & 0o077 == 0


def link(path: Path) -> None:
    """Put a link to a faithful copy in its place."""
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(elsewhere)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("how", "what"),
    [
        (Path.unlink, "missing"),
        (lambda path: path.write_bytes(path.read_bytes() + b"\n"), "altered"),
        (link, "is no plain file"),
        (folder, "is no plain file"),
        (pipe, "is no plain file"),
    ],
)
@pytest.mark.parametrize("name", ["run.json", "verdict.json"])
def test_each_kind_of_damage_is_told(run: RunFolder, name: str, how: Callable[[Path], None], what: str) -> None:
    how(run.path / name)
    assert mismatches(run.path) == [Mismatch(name, what)]
    with pytest.raises(HarnessError, match=f"{name}: {what}"):
        opened(run.path)


def test_a_file_that_cannot_be_read_is_told(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(store, "digest", refuse)
    assert Mismatch("plan.json", "unreadable: Permission denied") in mismatches(run.path)
    with pytest.raises(HarnessError, match="could not write the digests of the run folder: Permission denied"):
        digests.write(run.path)


def test_a_folder_that_cannot_be_listed_is_told(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Path.iterdir

    def refuse(path: Path) -> Any:
        if path.name == "sink":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert [str(each) for each in mismatches(run.path)] == [
        "sink: not of the run",
        "sink/0.json: missing",
        "sink/0.parquet: missing",
        "snapshots/1-injection/sink: not of the run",
        "snapshots/1-injection/sink/0.json: missing",
        "snapshots/1-injection/sink/0.parquet: missing",
    ]


def test_a_folder_that_is_a_link_is_not_entered(run: RunFolder) -> None:
    run.sink.rename(run.path.parent / "elsewhere")
    run.sink.symlink_to(run.path.parent / "elsewhere")
    names = ["sink: not of the run", "sink/0.json: missing", "sink/0.parquet: missing"]
    assert [str(each) for each in mismatches(run.path)] == names


def test_what_is_too_much_is_told_however_it_is_called(run: RunFolder) -> None:
    (run.sink / "1.json").write_text("{}")
    (run.path / "baseline" / "0" / "sink").mkdir(parents=True)
    (run.path / "baseline" / "0" / "sink" / "a\nb").write_text("{}")
    (run.path / "beside.txt").write_text("a note of mine")
    said = ["'baseline/0/sink/a\\nb': not of the run", "sink/1.json: not of the run"]
    assert [str(each) for each in mismatches(run.path)] == said


def test_many_mismatches_are_counted(run: RunFolder) -> None:
    for number in range(25):
        (run.sink / f"x{number:02}").write_text("")
    with pytest.raises(HarnessError, match=r"25 files in it are not(?s:.)*sink/x19: .*\n  and 5 more\n"):
        opened(run.path)


@pytest.mark.parametrize(
    ("tear", "what"),
    [
        (lambda path: path.write_text("{"), "altered: it is torn"),
        (lambda path: path.write_text("[" * 100_000), "altered: it is torn"),
        (lambda path: path.write_text("[]"), "altered: it is torn"),
        (lambda path: path.write_text('{"form": 1, "files": []}'), "altered: it is torn"),
        (lambda path: path.write_bytes(b"\xff"), "altered: it is torn"),
        (lambda path: path.write_text(path.read_text() + " "), "altered: its own digest does not match"),
        (lambda path: forge(path, files={}), "altered: its own digest does not match"),
        (lambda path: forge(path, digest="0" * 64), "altered: its own digest does not match"),
        (lambda path: forge(path, form=1), "altered: its own digest does not match"),
        (lambda path: forge(path, form="4"), "altered: its own digest does not match"),
        (folder, "is no plain file"),
        (lambda path: (path.unlink(), path.symlink_to("nowhere")), "is no plain file"),
    ],
)
def test_torn_digests_are_told_apart_from_torn_files(run: RunFolder, tear: Callable[[Path], None], what: str) -> None:
    run.verdict_json.unlink()
    tear(run.path / DIGESTS)
    assert mismatches(run.path) == [Mismatch(DIGESTS, f"{what}; so no other file can be held against it")]
    with pytest.raises(HarnessError, match="run the scenario again"):
        opened(run.path, only=digests.PLANNED, unjudged=True)


@pytest.mark.parametrize(("form", "whose"), [(digests.FORM - 1, "an older"), (digests.FORM + 1, "a newer")])
def test_a_folder_of_another_form_is_refused_by_name(
    run: RunFolder, form: int, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "FORM", form)
    digests.write(run.path)
    monkeypatch.undo()
    saw = f"{whose} version of onceproof made it, in form {form}. This version reads form {digests.FORM}: run the"
    with pytest.raises(HarnessError, match=saw):
        opened(run.path)


@pytest.mark.parametrize("cut", [0, 0.5, 0.99])
def test_a_file_of_digests_that_is_cut_is_told(run: RunFolder, cut: float) -> None:
    text = (run.path / DIGESTS).read_bytes()
    (run.path / DIGESTS).write_bytes(text[: int(len(text) * cut)])
    assert [each.name for each in mismatches(run.path)] == [DIGESTS]


def test_only_some_files_may_be_asked_for(run: RunFolder) -> None:
    run.verdict_json.unlink()
    assert mismatches(run.path, only=digests.PLANNED) == []
    (run.path / "scenario.yaml").write_text("name: other\n")
    assert mismatches(run.path, only=digests.PLANNED) == [Mismatch("scenario.yaml", "altered")]


@pytest.mark.parametrize("unjudged", [False, True])
@pytest.mark.parametrize("gone", [(), ("verdict.json",)])
def test_a_folder_without_digests_is_nobodys_word(run: RunFolder, gone: tuple[str, ...], unjudged: bool) -> None:
    """Also where the verdict was taken along: its run.json says that it had come so far."""
    for name in (DIGESTS, *gone):
        (run.path / name).unlink()
    with pytest.raises(HarnessError, match=r"it has no digests\.json, so it is not known") as refusal:
        opened(run.path, unjudged=unjudged)
    assert refusal.value.exit_code == 4


def test_without_digests_a_damaged_run_json_is_told(run: RunFolder) -> None:
    (run.path / DIGESTS).unlink()
    run.run_json.write_text("{")
    with pytest.raises(HarnessError, match=r"it has no digests\.json, and .*run\.json is damaged") as refusal:
        opened(run.path, unjudged=True)
    assert refusal.value.exit_code == 4


def test_a_run_that_ended_early_is_taken_where_no_verdict_is_asked_for(tmp_path: Path) -> None:
    failed = RunFolder.create(tmp_path, "a", "r1", need_bytes=0)
    failed.save(0, run={"outcome": {"error": "the broker died"}})
    assert opened(failed.path, unjudged=True).path == failed.path
    with pytest.raises(HarnessError, match=r"died\. Once that is mended in .*: onceproof replay /"):
        opened(failed.path)
    failed.save(0, run={"outcome": {"error": "the broker died; its log ends:\nINFO a\nFATAL b."}})
    with pytest.raises(HarnessError, match=r"its log ends \(its run\.json has the rest\)\. Once that is mended"):
        opened(failed.path)


def test_a_run_that_ended_early_is_run_again_from_its_file(tmp_path: Path) -> None:
    """Its stored plan has the mistake still; only a run of what no file says has nothing else than that plan."""
    failed = RunFolder.create(tmp_path, "a", "r1", need_bytes=0)
    run = {"path": "s/a b.yaml", "seed": 7, "command": "onceproof run 's/a b.yaml' --seed 7 --stack containers"}
    stack = {"options": "--stack containers"}
    failed.save(0, run={**run, "stack": stack, "outcome": {"error": "`expected` of sink is no query"}})
    with pytest.raises(HarnessError) as refusal:
        opened(failed.path)
    assert str(refusal.value).endswith(f"no query. Once that is mended: {run['command']}")
    failed.save(0, run={"path": "", "seed": 7, "command": "", "outcome": {"error": "`expected` of sink is no query"}})
    with pytest.raises(
        HarnessError, match="mended in the scenario, run it again; where nothing is wrong with that: onc"
    ):
        opened(failed.path)


def test_a_folder_without_its_run_json_is_still_known_by_its_digests(run: RunFolder, tmp_path: Path) -> None:
    run.run_json.unlink()
    with pytest.raises(HarnessError, match=r"run\.json: missing"):
        opened(run.path)
    with pytest.raises(UsageError, match=r"it has no run\.json"):
        RunFolder.open(run.path)
    with pytest.raises(UsageError, match=r"is not a run folder"):
        opened(tmp_path)


workload: Any = None


def live(folder: RunFolder, *, fails: bool = False) -> Any:
    """What the loop asks of a run, without a stack: its history and its end say a secret."""
    history = History(folder.history)

    def perform(workload: object) -> None:
        if fails:
            raise HarnessError("the broker died")

    def close() -> None:
        history.write(AttemptDiagnosed(attempt=1, words="geheim-4711"))
        (folder.logs / "driver-1.log").write_text("geheim-4711")
        raise OSError("its topic is gone already")

    return SimpleNamespace(
        folder=folder, history=history, perform=perform, close=close, own=SimpleNamespace(secrets=("geheim-4711",))
    )


def test_the_loop_seals_a_run_when_all_else_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_verdict", lambda live, workload: sample.held())
    monkeypatch.setattr(loop, "play", lambda live, workload: live.perform(workload))
    folder = RunFolder.create(tmp_path, "a", "r1", need_bytes=0)
    assert loop._judged(live(folder), workload, 0.0) == sample.held()
    assert "geheim" not in folder.history.read_text()
    assert '"what": "not-ended"' in folder.history.read_text()
    assert opened(folder.path).verdict() == sample.held()


def test_the_loop_does_not_seal_a_run_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "play", lambda live, workload: live.perform(workload))
    folder = RunFolder.create(tmp_path, "a", "r1", need_bytes=0)
    with pytest.raises(HarnessError, match="the broker died"):
        loop._judged(live(folder, fails=True), workload, 0.0)
    with pytest.raises(HarnessError, match="the run ended before it had a verdict: the broker died"):
        opened(folder.path)

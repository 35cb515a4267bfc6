"""The run folder: private, whole or not at all, clear when the disk refuses."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError, UsageError
from harness.run_folder import store
from harness.run_folder.store import RunFolder
from harness.scenario import Finding, Kind, plain
from tests import sample_runs as sample


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o077 for path in [folder, *folder.rglob("*")]}


def test_a_run_folder_has_its_folders_and_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = RunFolder.create(tmp_path / "reports", "Driver dies!", "r1", need_bytes=0)
        made.save(0, run={"seed": 1}, scenario="name: x\n")
        made.history.write_text("{}\n")
        made.save(1)
    finally:
        os.umask(before)
    assert made.path.parent == tmp_path / "reports" / "driver-dies"
    assert made.path.name.endswith("-r1")
    assert made.attempts.parent.is_dir() and made.sink.is_dir() and made.logs.is_dir()
    assert modes(made.path) == {0}


def test_latest_points_at_the_newest_run(tmp_path: Path) -> None:
    first = RunFolder.create(tmp_path, "a", "r1", need_bytes=0)
    second = RunFolder.create(tmp_path, "a", "r2", need_bytes=0)
    link = tmp_path / "a" / "latest"
    assert link.resolve() == second.path.resolve()
    assert not link.readlink().is_absolute()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(
        [first.path.name, second.path.name, "latest"]
    )


def test_parts_come_back_as_they_went_in(tmp_path: Path) -> None:
    made = sample.stored(tmp_path, sample.verdict())
    parts = RunFolder.open(made.path).read()
    assert parts["run"]["stage"] == 2
    assert parts["scenario"] == f"name: {sample.NAME}\n"
    assert made.verdict() == sample.verdict()
    assert store.scenario_of(parts["plan"]["scenario"]) == sample.scenario()


def test_run_is_merged_and_its_stage_never_falls(tmp_path: Path) -> None:
    made = sample.stored(tmp_path, sample.verdict())
    made.save(1, run={"extra": 1})
    run = made.read()["run"]
    assert (run["stage"], run["extra"], run["seed"]) == (2, 1, 7)


@given(st.text(st.characters()), st.text(st.characters()))
def test_any_text_survives_in_a_verdict(tmp_path_factory: pytest.TempPathFactory, key: str, note: str) -> None:
    finding = Finding(kind=Kind.LOST, sink="s", key={key: note}, expected=({key: None},), note=note)
    made = RunFolder.create(tmp_path_factory.mktemp("any"), "a", "r1", need_bytes=0)
    made.save(2, verdict=sample.verdict(findings=(finding,)))
    assert made.verdict() == sample.verdict(findings=(finding,))


def test_open_takes_links_and_files_of_the_folder(tmp_path: Path) -> None:
    made = sample.stored(tmp_path, sample.verdict())
    assert RunFolder.open(made.path.parent / "latest").path == made.path.resolve()
    assert RunFolder.open(made.run_json).path == made.path.resolve()


def test_open_says_what_is_not_a_run_folder(tmp_path: Path) -> None:
    made = sample.stored(tmp_path, sample.verdict())
    with pytest.raises(UsageError, match="no such folder"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=rf"no run\.json\. Did you mean .*{made.path.name}\?"):
        RunFolder.open(made.path.parent)
    with pytest.raises(UsageError, match="Name a folder such as"):
        RunFolder.open(store.latest(tmp_path))


@pytest.mark.parametrize("damage", ["", "{", "[]", '"x"', "[" * 100_000])
def test_a_damaged_part_is_named(tmp_path: Path, damage: str) -> None:
    made = sample.stored(tmp_path, sample.verdict())
    made.run_json.write_text(damage)
    with pytest.raises(UsageError, match=r"run\.json is damaged"):
        RunFolder.open(made.path)


def test_a_verdict_of_another_shape_is_named(tmp_path: Path) -> None:
    made = sample.stored(tmp_path, sample.verdict())
    data = plain(sample.verdict()) | {"word": "perhaps"}
    made.verdict_json.write_text(json.dumps(data))
    with pytest.raises(UsageError, match=r"verdict\.json is damaged, or of another version: word: "):
        made.verdict()


def test_no_verdict_yet(tmp_path: Path) -> None:
    made = RunFolder.create(tmp_path, "a", "r1", need_bytes=0)
    made.save(0, run={})
    assert made.verdict() is None


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_a_full_disk_is_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    made = RunFolder.create(tmp_path, "a", "r1", need_bytes=0)
    made.save(0, run={"seed": 1})
    monkeypatch.setattr(os, call, full)
    with pytest.raises(HarnessError) as caught:
        made.save(2, verdict=sample.verdict())
    monkeypatch.undo()
    assert caught.value.exit_code == 4
    assert str(caught.value) == (
        f"could not write: the disk is full at {made.verdict_json}. Free some space and run it again"
    )
    # The stage before is whole, and nothing half-written is left.
    assert made.read()["run"]["stage"] == 0
    assert [path.name for path in made.path.iterdir() if path.name.endswith(".tmp")] == []


def test_a_full_disk_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=3 * 1024 * 1024))
    with pytest.raises(HarnessError, match=r"a run may write 200 MB and .* has 3 MB free\. Free some space"):
        RunFolder.create(tmp_path, "a", "r1")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("")
    with pytest.raises(HarnessError, match=r"could not make the run folder: .* at .*reports\. Make it writable"):
        RunFolder.create(tmp_path / "reports", "a", "r1", need_bytes=0)


def test_a_link_in_place_of_the_scenarios_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "a").symlink_to(elsewhere)
    with pytest.raises(HarnessError, match="is a link"):
        RunFolder.create(tmp_path / "reports", "a", "r1", need_bytes=0)
    assert list(elsewhere.iterdir()) == []


def test_a_link_in_place_of_a_part_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    made = RunFolder.create(tmp_path / "reports", "a", "r1", need_bytes=0)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    made.verdict_json.symlink_to(victim)
    made.save(2, verdict=sample.verdict())
    assert victim.read_text() == "mine"
    assert made.verdict() == sample.verdict()


def test_remove_takes_the_link_along(tmp_path: Path) -> None:
    made = sample.stored(tmp_path, sample.verdict())
    made.remove()
    assert list((tmp_path / store.slug(sample.NAME)).iterdir()) == []


def test_a_run_id_is_no_path(tmp_path: Path) -> None:
    for bad in ("../x", "", "a/b", "x" * 65, ".x"):
        with pytest.raises(ValueError, match="run id"):
            RunFolder.create(tmp_path, "a", bad)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("driver dies, twice", "driver-dies-twice"),
        ("Crème brûlée", "creme-brulee"),
        ("../../etc/passwd", "etc-passwd"),
    ],
)
def test_slugs(name: str, expected: str) -> None:
    assert store.slug(name) == expected


@given(st.text(st.characters()))
def test_a_slug_is_always_a_plain_folder_name(name: str) -> None:
    made = store.slug(name)
    assert 0 < len(made) <= 80
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert made != "latest" and not made.startswith("-")


def test_names_that_lose_most_of_themselves_keep_apart() -> None:
    names = ["latest", "支払い", "支払", "", "x" * 90, "x" * 91]
    assert len({store.slug(name) for name in names}) == len(names)

"""What is fetched is announced with its size, and its progress is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import wait
from harness.machine import fetch_progress
from harness.machine.fetch_progress import MEGABYTE

WAIT_S = 30.0


def test_a_fetch_is_announced_followed_and_summed_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_progress, "EVERY_S", 0.01)
    (tmp_path / "earlier").write_bytes(bytes(MEGABYTE))
    lines = list[str]()

    def followed() -> bool:
        lines.extend(capsys.readouterr().err.splitlines())
        return any(line.startswith("onceproof: fetching the jars of search: 3 MB in ") for line in lines)

    with fetch_progress.shown("the jars of search", [tmp_path], 53):
        (tmp_path / "jar").write_bytes(bytes(3 * MEGABYTE))
        wait.until("the progress", followed, within_s=WAIT_S)
    assert lines[0] == "onceproof: fetching the jars of search (once, about 53 MB)"
    assert capsys.readouterr().err.splitlines()[-1].startswith("onceproof: fetched the jars of search: 3 MB in ")


def test_a_fetch_that_fails_does_not_say_that_it_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError), fetch_progress.shown("Azurite", [tmp_path]):
        raise OSError
    assert capsys.readouterr().err == "onceproof: fetching Azurite (once)\n"

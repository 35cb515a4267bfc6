"""Secrets leave by their value, in every dress, across every seam."""

from __future__ import annotations

import base64
import errno
import html
import json
import urllib.parse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.run_folder import redact
from harness.run_folder.redact import MARK, Redactor, redact_file, redact_folder

SECRET = "p@ss/w0rd+\"é'<&"
DRESSES = {
    "plain": SECRET,
    "json": json.dumps(SECRET),
    "json as it is": json.dumps(SECRET, ensure_ascii=False),
    "url": urllib.parse.quote(SECRET),
    "url part": f"postgresql://me:{urllib.parse.quote(SECRET, safe='')}@127.0.0.1/x",
    "url small": urllib.parse.quote(SECRET, safe="").replace("%C3%A9", "%c3%a9").replace("%2F", "%2f").lower(),
    "form": urllib.parse.urlencode({"password": SECRET}),
    "html": html.escape(SECRET),
    "libpq": "password='" + SECRET.replace("'", "\\'") + "'",
    "hex": SECRET.encode().hex(),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 of a pair": base64.b64encode(f"m:{SECRET}:x".encode()).decode(),
    "base64 of another pair": base64.b64encode(f"me:{SECRET}".encode()).decode(),
    "base64 for urls": base64.urlsafe_b64encode(f"user:{SECRET}".encode()).decode(),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_every_dress_is_taken_off(dress: str) -> None:
    clean = Redactor([SECRET]).text(f"before {DRESSES[dress]} after")
    assert MARK in clean
    assert clean.startswith("before ") and clean.endswith(" after")


def test_a_secret_that_begins_like_another_leaves_no_tail() -> None:
    assert Redactor(["hunter", "hunter2"]).text("hunter2 hunter") == f"{MARK} {MARK}"


def test_without_secrets_nothing_changes(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("text")
    assert Redactor(["", *[]]).text("text") == "text"
    assert redact_file(log, [""]) == 0
    assert redact_file(tmp_path / "none.log", ["secret"]) == 0


def test_data_keeps_its_shape() -> None:
    data = {"a": ["hunter2", 1, None, ("x hunter2",)], "hunter2": {"b": True}}
    assert Redactor(["hunter2"]).data(data) == {"a": [MARK, 1, None, [f"x {MARK}"]], MARK: {"b": True}}


@given(st.lists(st.sampled_from([b"hunter2", b"hunter", b"x", b"\xff", b"aHVudGVyMg==", b"h", b"2"])))
def test_a_file_comes_to_what_its_text_comes_to(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("redact") / "a.log"
    path.write_bytes(b"".join(parts))
    whole = Redactor(["hunter2"])
    assert whole._pattern is not None
    expected, count = whole._pattern.subn(MARK.encode(), path.read_bytes())
    assert redact_file(path, ["hunter2"]) == count
    assert path.read_bytes() == expected
    assert [found.name for found in path.parent.iterdir()] == ["a.log"]


def test_on_a_full_disk_the_secrets_are_blotted_out_where_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.log"
    log.write_text("one hunter2, two hunter2")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(redact, "_rewrite", full)
    assert redact_file(log, ["hunter2"]) == 2
    assert log.read_text() == "one *******, two *******"


def test_a_folder_is_cleaned_and_links_are_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("hunter2")
    logs = tmp_path / "logs"
    (logs / "deep").mkdir(parents=True)
    (logs / "deep" / "a.log").write_text("hunter2 hunter2")
    (logs / "clean.log").write_text("nothing")
    (logs / "link.log").symlink_to(outside)
    assert redact_folder(logs, ["hunter2"]) == 2
    assert (logs / "deep" / "a.log").read_text() == f"{MARK} {MARK}"
    assert (logs / "deep" / "a.log").stat().st_mode & 0o077 == 0
    assert outside.read_text() == "hunter2"
    assert sorted(path.name for path in logs.iterdir()) == ["clean.log", "deep", "link.log"]

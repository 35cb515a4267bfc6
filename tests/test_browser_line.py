"""The line that the browser suite leaves for its record."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from bench import browser_line, chromium


@pytest.mark.subprocess
def test_the_line_says_when_which_commit_which_browser_and_how_many() -> None:
    said: list[str] = []
    reports: dict[str, list[Any]] = {"passed": [1, 2, 3], "failed": [4], "warnings": [5]}
    browser_line.pytest_terminal_summary(SimpleNamespace(stats=reports, write_line=said.append))
    (line,) = said
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC, (commit [0-9a-f]{7,}( with changes)?|no commit), ", line)
    assert re.search(r": 3 passed, 1 failed, 0 error, 0 skipped in \d+ s$", line)


@pytest.mark.subprocess
def test_without_a_browser_the_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chromium.VARIABLE, "/none")
    assert ", no browser: " in browser_line.line(dict.fromkeys(browser_line.OUTCOMES, 0), 1.0)

"""Chromium, found or said to be missing, and started for tests and screenshots of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

VARIABLE = "ONCEPROOF_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CURE = f"install Chromium (Debian: chromium), or name one in {VARIABLE}"


class NoBrowser(Exception):
    """There is no browser, or nothing to drive it; the text has the cure."""


def path() -> str:
    """The browser's program. Raises NoBrowser."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise NoBrowser(
            f"asked for a browser; {f'{named} is no program' if named else 'there is none on PATH'}. {CURE}"
        )
    return found


@contextmanager
def started() -> Iterator[Any]:
    """A headless browser, as Playwright drives it; gone afterwards. Raises NoBrowser."""
    program = path()
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        words = "asked for a browser; there is no package playwright. pip install -r requirements-browser.lock"
        raise NoBrowser(words) from None
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()

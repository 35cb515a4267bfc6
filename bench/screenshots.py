"""Screenshots of the pages, to be inspected: light, dark, a telephone, a 4K screen, and print as PDF.

    PYTHONPATH=. .venv/bin/python bench/screenshots.py OUT [FILE.html or address]...
    PYTHONPATH=. .venv/bin/python bench/screenshots.py --readme RUN/report.html      README's picture, docs/run-page.png

Without a page it takes those of a store that it makes by hand. Each section of a page is one picture.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from bench import chromium, sample_store

WAYS = (("light", 1400, "light"), ("dark", 1400, "dark"), ("phone", 400, "light"), ("wide", 3840, "dark"))
HIGHEST = 2000
README = 1080, 1130


def main() -> int:
    out, *pages = sys.argv[1:] or ["screenshots"]
    if out == "--readme":
        return readme(*pages)
    Path(out).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, chromium.started() as browser:
        if not pages:
            runs = sample_store.made(Path(scratch))
            pages = [str(Path(scratch) / "latest" / "index.html"), *(f"{run.folder}/report.html" for run in runs[:4])]
        for number, page in enumerate(pages):
            taken(browser, page if "://" in page else Path(page).resolve().as_uri(), f"{out}/{number}")
    return 0


def readme(page: str) -> int:
    """Verdict and timeline of a run."""
    with chromium.started() as browser:
        shown = browser.new_page(viewport={"width": README[0], "height": README[1]}, color_scheme="light")
        shown.goto(Path(page).resolve().as_uri())
        shown.screenshot(path="docs/run-page.png")
        shown.close()
    print("docs/run-page.png")
    return 0


def taken(browser: Any, address: str, stem: str) -> None:
    """Every picture of one page."""
    for name, width, scheme in WAYS:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.goto(address)
        for part in page.query_selector_all("header, section, main > form, footer"):
            box = part.bounding_box()
            title = part.get_attribute("id") or part.evaluate("e => e.tagName").lower()
            clip = {"x": 0, "y": box["y"], "width": width, "height": max(1, min(box["height"], HIGHEST))}
            path = f"{stem}-{name}-{title}.png"
            page.screenshot(path=path, clip=clip, full_page=True)
            print(path)
        if name == "light":
            page.pdf(path=f"{stem}-print.pdf", format="A4", print_background=True)
            print(f"{stem}-print.pdf")
        page.close()


if __name__ == "__main__":
    sys.exit(main())

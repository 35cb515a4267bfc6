"""What the articles claim, our scenario, and what happened: a page made from bench/seeds.yaml and from the runs whose
rows are in docs/catalogue.md.

    PYTHONPATH=. .venv/bin/python bench/seeds.py > docs/seeds.md
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from bench.catalogue import changed_since, link, read, table_line
from harness.scenario import Guarantee

ROOT = Path(__file__).parents[1]
CLAIMS = ROOT / "bench" / "seeds.yaml"
CATALOGUE = ROOT / "docs" / "catalogue.md"
NOT_RUN = "not run yet: "
CHANGED = "*changed since*"
HEAD = """\
# What the articles claim
Made by `bench/seeds.py` from [bench/seeds.yaml](../bench/seeds.yaml) and the runs in [catalogue.md](catalogue.md); run
it again rather than edit this page. A scenario stands with the verdicts of its stored runs, each linked to its row;
*changed since* says that the scenario or its program is another one now, and has not been run again. The articles are
of DStreams; what is shown here is of Structured Streaming, unless it says otherwise."""

Runs = Mapping[str, Mapping[str, str]]
"""By scenario, its place below scenarios/: the verdicts of its runs, each with the anchor of its row."""


class Found(NamedTuple):
    """The runs, and the scenarios that are not as they were run."""

    runs: Runs
    changed: Collection[str] = ()


SCENARIO = re.compile(r'<a id="([\w-]+)"></a>\[[^]]+\]\(\.\./scenarios/([\w/-]+)\.yaml\)')


def main() -> int:
    print("\n".join(page(YAML(typ="safe").load(CLAIMS), known())))
    return 0


def known() -> Found:
    """What the catalogue says, and the digests of what is there now."""
    return Found(runs(CATALOGUE.read_text(encoding="utf-8")), changed_since(read()))


def page(told: Mapping[str, Any], found: Found) -> Iterator[str]:
    """The lines of the page."""
    yield from [HEAD, "", "The articles:"]
    yield from (f"- *{name}*: {title}" for name, title in told["articles"].items())
    yield from ["", "## Points of failure", "", table_line(["point of failure", *Guarantee]), table_line(["---"] * 4)]
    for each in told["points"]:
        yield table_line([each["point"], *("<br>".join(_cell(each[promise], found)) for promise in Guarantee)])
    yield from ["", "## Claims", "", table_line(["the article's claim", "article", "our scenario, what happened"])]
    yield table_line(["---"] * 3)
    for each in told["claims"]:
        words = [f"*{each['so']}*"] if "so" in each else []
        yield table_line([each["claim"], ", ".join(each["of"]), "<br>".join([*_cell(each, found), *words])])


def runs(catalogue: str) -> Runs:
    """What the catalogue's rows say, in their order."""
    out: dict[str, dict[str, str]] = {}
    for line in catalogue.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        for anchor, name in SCENARIO.findall(cells[-1]) if line.startswith("| `") else ():
            out.setdefault(name, {}).setdefault(cells[5], anchor)
    return out


def _cell(each: Mapping[str, Any], found: Found) -> Iterator[str]:
    yield from (_shown(name, found) for name in each.get("shows", ()))
    if "not_run" in each:
        yield f"{NOT_RUN}{each['not_run']}"


def _shown(name: str, found: Found) -> str:
    linked = [f"[{verdict}](catalogue.md#{anchor})" for verdict, anchor in found.runs.get(name, {}).items()]
    since = [CHANGED] if name in found.changed else []
    return f"{link(name)}: " + (", ".join([*linked, *since]) if linked else f"{NOT_RUN}no row in the catalogue")


if __name__ == "__main__":
    sys.exit(main())

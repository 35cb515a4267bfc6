"""What the articles claim, our scenario, and what happened: a page made from bench/seeds.yaml (the rows), from
bench/seed_claims.yaml (where in the articles each is claimed), and from the runs whose rows are in
bench/records/catalogue.md.

    PYTHONPATH=. .venv/bin/python bench/seeds.py > bench/records/seeds.md
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
ROWS = ROOT / "bench" / "seeds.yaml"
CLAIMS = ROOT / "bench" / "seed_claims.yaml"
CATALOGUE = ROOT / "bench" / "records" / "catalogue.md"
NOT_RUN = "not run yet"
NO_SCENARIO = "no scenario: "
WRONG = "**wrong**: "
CHANGED = "*changed since*"
HEAD = """\
# What the articles claim
Made by `bench/seeds.py` from [bench/seeds.yaml](../seeds.yaml), from
[bench/seed_claims.yaml](../seed_claims.yaml), which has the claims of each article by paragraph, and from the
runs in [catalogue.md](catalogue.md); run it again rather than edit this page. Numbers are paragraphs of an article.
A scenario stands with the verdicts of its stored runs, each linked to its row; *changed since* says that the scenario
or its program is another one now, and has not been run again. **Wrong** says what is the case instead. The articles are
of DStreams; what is shown here is of Structured Streaming, unless it says otherwise."""

Runs = Mapping[str, Mapping[str, str]]
"""By scenario, its place below scenarios/: the verdicts of its runs, each with the anchor of its row."""


class Found(NamedTuple):
    """The runs, and the scenarios that are not as they were run."""

    runs: Runs
    changed: Collection[str] = ()


SCENARIO = re.compile(r'<a id="([\w-]+)"></a>\[[^]]+\]\(\.\./\.\./scenarios/([\w/-]+)\.yaml\)')


def main() -> int:
    print("\n".join(page(loaded(), known())))
    return 0


def loaded() -> dict[str, Any]:
    """Points of failure, rows, and the articles with their claims."""
    yaml = YAML(typ="safe")
    return {**yaml.load(ROWS), "articles": yaml.load(CLAIMS)}


def known() -> Found:
    """What the catalogue says, and the digests of what is there now."""
    return Found(runs(CATALOGUE.read_text(encoding="utf-8")), changed_since(read()))


def page(catalogue: Mapping[str, Any], found: Found) -> Iterator[str]:
    """The lines of the page."""
    yield from [HEAD, "", "The articles:"]
    yield from (f"- *{name}*: {each['title']}" for name, each in catalogue["articles"].items())
    yield from _points(catalogue, found)
    yield from ["", "## Claims", "", table_line(["the article's claim", "article", "our scenario, what happened"])]
    yield table_line(["---"] * 3)
    for each in catalogue["claims"]:
        of = "<br>".join(_cited([each["row"]], catalogue["articles"]))
        yield table_line([each["claim"], of, "<br>".join(_cell(each, found))])


def _points(catalogue: Mapping[str, Any], found: Found) -> Iterator[str]:
    yield from ["", "## Points of failure", ""]
    yield from [table_line(["point of failure", "the articles' claim", *Guarantee]), table_line(["---"] * 5)]
    for each in catalogue["points"]:
        point = [each["point"], *_cited([each["point"]], catalogue["articles"])]
        claim = [each["claim"], *_cited(each["rows"], catalogue["articles"])]
        cells = (_cell(each[promise], found) for promise in Guarantee)
        yield table_line("<br>".join(cell) for cell in (point, claim, *cells))


def _cited(rows: Collection[str], articles: Mapping[str, Any]) -> Iterator[str]:
    """Each article that has a claim of these rows, or names these points of failure, with the paragraphs."""
    for name, article in articles.items():
        if paragraphs := dict.fromkeys(str(at) for at, of, _ in article["claims"] if of in rows):
            yield f"{name} {', '.join(paragraphs)}"


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
    if "wrong" in each:
        yield f"{WRONG}*{each['wrong']}*"
    if "so" in each:
        yield f"*{each['so']}*"
    if "no_scenario" in each:
        yield f"{NO_SCENARIO}{each['no_scenario']}"


def _shown(name: str, found: Found) -> str:
    linked = [f"[{verdict}](catalogue.md#{anchor})" for verdict, anchor in found.runs.get(name, {}).items()]
    since = [CHANGED] if name in found.changed else []
    return f"{link(name)}: " + (", ".join([*linked, *since]) if linked else NOT_RUN)


if __name__ == "__main__":
    sys.exit(main())

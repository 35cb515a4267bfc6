"""The table of what happens (`bench/catalogue.py`): what of a run makes a row, and that equal rows are one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.catalogue import (
    CHANGED,
    HEAD,
    anchored,
    changed,
    lacking,
    link,
    merged,
    name_of,
    page,
    read,
    row_of,
    tables,
)
from bench.ran import digest
from bench.seeds import runs
from harness.scenario import Word
from tests.shipped import scenario

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "bench" / "records" / "catalogue.md"
SCENARIOS = [*ROOT.glob("scenarios/*/*.yaml")]
ANCHOR = re.compile(r'<a id="([^"]*)"></a>')


def run(root: Path, scenario: str, point: str, verdict: str, *found: str) -> dict[str, Any]:
    """A run of a summary, whose folder is there."""
    folder = root / Path(scenario).stem
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text("{}")
    return {
        "file": f"/elsewhere/{scenario}",
        "folder": str(folder),
        "faults": [{"name": "kill driver", "point": point, "injected": True}],
        "points_reached": ["files payments: sink written in part (repetition; loss)"],
        "findings": dict.fromkeys(found, 3),
        "verdict": verdict,
        "stack": "processes",
    }


def test_a_row_says_how_the_sink_is_read_where_the_batch_was_and_what_came_of_it(tmp_path: Path) -> None:
    listed = row_of(
        run(tmp_path, "scenarios/sinks/files_parquet_listed_mid_batch.yaml", "failpoint x", "violated", "duplicated")
    )
    manifest = row_of(run(tmp_path, "scenarios/sinks/files_parquet_manifest_mid_batch.yaml", "batch-planned", "held"))
    assert (listed.sink, listed.program) == ("files", "`files/sink_parquet.py`")
    assert (listed.asked, manifest.asked) == ("-", "reader: manifest"), "one program, read in two ways"
    assert (listed.window, manifest.window) == (
        "batch being written (failpoint x)",
        "batch planned, nothing written",
    )
    assert listed.seen == "sink written in part (repetition; loss)"
    assert (listed.verdict, manifest.verdict) == ("violated: duplicated", "held")


def test_what_is_claimed_and_what_the_source_does_are_told(tmp_path: Path) -> None:
    socket = row_of(run(tmp_path, "scenarios/sources/socket_at_most_once_mid_batch.yaml", "rows 5", "held"))
    assert "at-most-once" in socket.asked
    torn = row_of(run(tmp_path, "scenarios/sources/files_written_in_place.yaml", "sink-committed", "violated", "lost"))
    assert "in_place: True" in torn.asked


def test_a_fault_that_missed_is_told_from_one_that_exposed_nothing(tmp_path: Path) -> None:
    one = run(tmp_path, "scenarios/sinks/files_uuid_mid_batch.yaml", "batch-committed", "untested")
    assert row_of({**one, "points_reached": []}).seen == "nothing exposed"
    missed = {"name": "kill driver", "point": "batch-committed", "injected": False}
    assert row_of({**one, "points_reached": [], "faults": [missed]}).seen == "missed"
    both = row_of({**one, "faults": [*one["faults"], missed]})
    assert both.seen == "sink written in part (repetition; loss); missed"


def test_a_run_on_another_spark_version_is_another_row(tmp_path: Path) -> None:
    one = run(tmp_path, "scenarios/proving/append_before_offset_commit.yaml", "sink-committed", "violated")
    assert row_of(one).asked == "-"
    told = {"path": "/elsewhere/scenarios/proving/append_before_offset_commit.yaml", "command": "x --spark 3.5"}
    (Path(one["folder"]) / "run.json").write_text(json.dumps(told))
    assert row_of(one).asked == "spark: 3.5"
    upgrade = "scenarios/upgrades/append_from_3_5_before_offset_commit.yaml"
    assert row_of(run(tmp_path, upgrade, "sink-committed", "violated")).asked == "spark: 3.5, then 4.0"
    known = {"scenario": "a/b", "commit": "1", "row": {"stack": "processes"}}
    assert len(merged([known], [{**known, "commit": "2", "spark": "3.5"}])) == 2


def test_equal_rows_are_one_with_the_scenarios_that_they_are_of(tmp_path: Path) -> None:
    one = run(tmp_path, "scenarios/sinks/files_uuid_mid_batch.yaml", "failpoint x", "violated", "duplicated")
    row, name = row_of(one), name_of(one)
    assert name == "sinks/files_uuid_mid_batch"
    lines = [*tables([(row, name), (row, "sinks/another"), (row, name)])]
    assert lines[1] == "## files" and len(lines) == 5
    assert lines[4].endswith(f"| processes | {anchored('sinks/another')}<br>{anchored(name)} 2 times |")


def test_each_row_of_a_scenario_has_an_anchor_of_its_own(tmp_path: Path) -> None:
    one = run(tmp_path, "scenarios/sinks/files_uuid_mid_batch.yaml", "failpoint x", "violated", "duplicated")
    rows = [row_of(one), row_of({**one, "stack": "yarn"}), row_of({**one, "verdict": "held", "findings": {}})]
    made = "\n".join(tables([*((row, "sinks/a_b") for row in rows), (rows[0], "sinks/c")]))
    assert ANCHOR.findall(made) == ["sinks-a_b", "sinks-a_b-2", "sinks-c", "sinks-a_b-3"]
    page = ANCHOR.findall(PAGE.read_text(encoding="utf-8"))
    assert len(page) == len({*page}) > 400


def test_flags_of_the_program_that_are_not_its_own_tell_rows_apart(tmp_path: Path) -> None:
    names = ("files_text_appended_before_offset_commit", "files_parquet_appended_before_offset_commit")
    text, parquet = (
        row_of(run(tmp_path, f"scenarios/sources/{name}.yaml", "sink-committed", "held")) for name in names
    )
    assert text.program == parquet.program
    assert ("`--text`" in text.asked, "`--parquet`" in parquet.asked) == (True, True)
    sized = "scenarios/sinks/mariadb_by_partition_mid_sink.yaml"
    assert row_of(run(tmp_path, sized, "after row 1", "held")).asked == "-", "the size of a batch decides nothing"
    bare = "scenarios/examples/orders.yaml"
    assert row_of(run(tmp_path, bare, "batch-planned", "held")).asked == "-", "a program without a header"


@pytest.mark.slow
def test_the_page_is_the_one_that_is_made() -> None:
    """Each scenario that its stack can run has a row or is named as not run."""
    made = "\n".join([HEAD, *page(read())])
    assert PAGE.read_text(encoding="utf-8") == f"{made}\n", "bench/catalogue.py > bench/records/catalogue.md"
    names = {path.relative_to(ROOT / "scenarios").with_suffix("").as_posix() for path in SCENARIOS}
    assert {each["scenario"] for each in read()} <= names and lacking(()) != []
    assert [each["scenario"] for each in read() if not each.get("ran")] == []


SCENARIO = "name: {name}\npipeline: pipelines/own/{program}.py\ninput: {{workload: transactions, records: {records}}}\n"
PROGRAM = '''"""{about}"""
# /// onceproof
# sink: {{python: reads:rows, key: [{key}]}}
# ///
import helper

helper.go({number})
'''
HELPER = 'import deeper  # {about}\n\n\ndef go(n):\n    """{about}"""\n    deeper.go(n, {number})\n'

DEEPER = "LIMIT = {limit}\n\n\ndef go(n, m):\n    return LIMIT, {deeper}\n\n\ndef other():\n    return {other}\n"


def digest_of(root: Path, texts: Mapping[str, str]) -> str:
    """That of the scenario `own/it`, where these files are below the root."""
    for place, text in texts.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return digest(root, "own/it")


def tree(root: Path, **changes: str) -> str:
    """The digest of a scenario whose program imports a module that imports another one, and has a reader of its own."""
    given = {"name": "a", "records": "6", "about": "a", "key": "id", "program": "main", "number": "1"} | changes
    helper, reads = (changes.get(name, "1") for name in ("helper", "reads"))
    deeper = {name: changes.get(name, "1") for name in ("limit", "deeper", "other")}
    texts = {
        "scenarios/own/it.yaml": SCENARIO.format(**given),
        f"pipelines/own/{given['program']}.py": PROGRAM.format(**given),
        "pipelines/own/helper.py": HELPER.format(about=given["about"], number=helper),
        "pipelines/other/deeper.py": DEEPER.format(**deeper),
        "pipelines/own/reads.py": f"def rows():\n    yield {reads}\n",
        "pipelines/own/apart.py": f"NUMBER = {changes.get('apart', '1')}\n",
    }
    return digest_of(root, texts)


def test_a_digest_tells_what_is_run_and_not_how_it_is_worded(tmp_path: Path) -> None:
    first = tree(tmp_path / "first")
    for place, same in enumerate(({}, {"name": "b"}, {"about": "b"}, {"apart": "2"}, {"other": "2"})):
        assert tree(tmp_path / f"same-{place}", **same) == first, same
    names = ("records", "number", "key", "program", "helper", "deeper", "limit", "reads")
    others = {tree(tmp_path / name, **{name: "2"}) for name in names}
    assert len(others | {first}) == 1 + len(names)


def test_a_digest_tells_the_java_that_a_program_names(tmp_path: Path) -> None:
    def of(java: str, said: str = "It.java") -> str:
        root = tmp_path / java / said
        texts = {
            "scenarios/own/it.yaml": SCENARIO.format(name="a", program="main", records="6"),
            "pipelines/own/main.py": f"import shared\n\nshared.run({said!r})\n",
            "pipelines/own/shared.py": "def run(java):\n    return java\n",
            "pipelines/own/It.java": f"class It {{ {java} }}",
        }
        return digest_of(root, texts)

    assert len({of("int a;"), of("int b;"), of("int a;", "Other.java"), of("int b;", "Other.java")}) == 3


def test_the_page_names_what_has_changed_since_its_run() -> None:
    name = "sinks/files_uuid_mid_batch"
    now = {"scenario": name, "ran": digest(ROOT, name), "row": {"stack": "processes"}}
    boxed, old = {**now, "row": {"stack": "containers"}}, {"ran": "0" * 12}
    assert [*changed([now, now])] == []
    lines = [*changed([{**now, **old}, now, {**now, "ran": "1" * 12}, boxed])]
    assert lines[1] == CHANGED and lines[3:] == [f"- {link(name)}"]
    assert [*changed([now, {**boxed, **old}])][3:] == [f"- {link(name)} (containers)"]
    assert [*changed([{**now, **old}, {**boxed, **old}])][3:] == [f"- {link(name)} (containers, processes)"]


def test_a_run_takes_the_place_of_earlier_ones_unless_they_are_of_its_commit() -> None:
    def kept(scenario: str, commit: str, stack: str = "processes") -> dict[str, Any]:
        return {"scenario": scenario, "commit": commit, "row": {"stack": stack}}

    old = [kept("a", "1"), kept("a", "1", "yarn"), kept("b", "1"), kept("c", "2")]
    new = [kept("a", "2"), kept("c", "2")]
    assert merged(old, new) == [kept("a", "2"), kept("a", "1", "yarn"), kept("b", "1"), kept("c", "2"), kept("c", "2")]


@pytest.mark.slow
def test_what_each_run_came_to_is_what_its_scenario_expects() -> None:
    for name, verdicts in runs(PAGE.read_text(encoding="utf-8")).items():
        found = scenario(ROOT / "scenarios" / f"{name}.yaml")
        every = found.verdict.at.values() if found.crash_points else [found.verdict]
        assert {said(verdict) for verdict in verdicts} == {(each.word, frozenset(each.kinds)) for each in every}, name


def said(verdict: str) -> tuple[str, frozenset[str]]:
    """The word and, where it is violated, the kinds of `violated: lost, duplicated`."""
    word, _, kinds = verdict.partition(": ")
    return word, frozenset(kinds.split(", ") if word == Word.VIOLATED else ())

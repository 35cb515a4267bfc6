"""The table of what happens (`bench/catalogue.py`): what of a run makes a row, and that equal rows are one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bench.catalogue import NOT_RUN, lacking, row_of, tables
from bench.seeds import runs

ROOT = Path(__file__).parents[1]
SCENARIOS = [*ROOT.glob("scenarios/*/*.yaml")]


def run(root: Path, scenario: str, point: str, verdict: str, *found: str) -> dict[str, Any]:
    """A run of a summary, whose folder is there."""
    folder = root / Path(scenario).stem
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps({"path": f"/elsewhere/{scenario}"}))
    return {
        "folder": str(folder),
        "faults": [{"name": "kill driver", "point": point, "hit": True}],
        "points_hit": ["files payments: sink written in part (repetition; loss)"],
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


def test_a_fault_that_missed_is_told_from_one_that_put_nothing_at_stake(tmp_path: Path) -> None:
    one = run(tmp_path, "scenarios/sinks/files_uuid_after_offset_commit.yaml", "batch-committed", "void")
    assert row_of({**one, "points_hit": []}).seen == "nothing at stake"
    missed = {"name": "kill driver", "point": "batch-committed", "hit": False}
    assert row_of({**one, "points_hit": [], "faults": [missed]}).seen == "missed"
    both = row_of({**one, "faults": [*one["faults"], missed]})
    assert both.seen == "sink written in part (repetition; loss); missed"


def test_equal_rows_are_one_with_their_number(tmp_path: Path) -> None:
    one = run(tmp_path, "scenarios/sinks/files_uuid_mid_batch.yaml", "failpoint x", "violated", "duplicated")
    lines = [*tables([row_of(one), row_of(one)])]
    assert lines[1] == "## files" and len(lines) == 5
    assert lines[4].endswith("| processes | 2 |")


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


def test_each_scenario_has_a_row_in_the_page() -> None:
    """Of those that `processes` can run, as `make prove SUITE=all` does, or it is named as not run: if this fails, make
    the page again."""
    page = (ROOT / "docs" / "catalogue.md").read_text(encoding="utf-8")
    there, told = runs(page), page.partition(f"\n{NOT_RUN}\n")[2]
    assert there and SCENARIOS
    assert lacking(there) == re.findall(r"^- \[([\w/]+)\]", told, re.MULTILINE)

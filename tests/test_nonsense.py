"""A run folder that holds nonsense where a file is well-formed: the judge says which file, and what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness import ledger
from harness.errors import HarnessError, UsageError
from harness.ledger import Ledger, Source
from harness.snapshot import Batch
from tests.folders import Folder, edited, judge, recorded


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("progress", ("batches", 0, "ranges"), {"x": [0, 10]}),
        ("progress", ("batches", 0, "ranges"), {"0": [0]}),
        ("progress", ("batches", 0, "ranges"), {"0": [0, 2**200]}),
        ("progress", ("batches", 0, "batch"), None),
        ("progress", ("batches",), 7),
        ("progress", ("committed",), {"0": 2**63}),
        ("progress", ("committed",), []),
        ("progress", ("caught_up",), "perhaps"),
        ("run.json", ("outcome",), 7),
        ("run.json", ("outcome", "reasons"), 7),
        ("run.json", ("outcome", "stalled"), "for long"),
        ("plan.json", ("columns",), [1]),
        ("plan.json", ("columns", 0, "name"), "_batch"),
        ("plan.json", ("columns", 0, "name"), "\ud800"),
        ("plan.json", ("scenario", "sinks", 0, "expected"), "select '\ud800' as id from ledger"),
        ("plan.json", ("columns", 0, "expression"), "1) from raw; drop table records; select (1"),
        ("plan.json", ("columns", 0, "expression"), "(select max(content) from read_text('/etc/passwd'))"),
        ("plan.json", ("scenario", "sinks", 0, "expected"), "select " + "- " * 900 + "id as id from ledger"),
        ("sink/0.json", ("columns", 0, "family"), "colour"),
        ("sink/0.json", ("rows",), "many"),
        ("sink/0.json", ("columns",), None),
    ],
)
def test_a_part_that_holds_nonsense_is_a_clear_error(
    folder: Folder, name: str, place: tuple[Any, ...], value: Any
) -> None:
    path = folder.write()
    data = recorded(path, name) if name == "progress" else json.loads((path / name).read_text())
    holder = data
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    if name == "progress":
        edited(path, name, **data)
    else:
        (path / name).write_text(json.dumps(data))
    with pytest.raises(HarnessError, match=r"Run the scenario again|Mend|is no query|Call them something else"):
        judge(path)


def test_a_part_nested_without_end_is_a_clear_error(folder: Folder) -> None:
    path = folder.write()
    (path / "history.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(UsageError, match=r"history\.jsonl is damaged"):
        judge(path)


def test_a_loop_in_a_column_is_stopped(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "SECONDS_MAX", 0.2)
    endless = "(with recursive r as (select 1 as n union all select n + 1 from r where n > 0) select max(n) from r)"
    folder.columns = [{"name": "id", "type": "BIGINT", "expression": endless}]
    with pytest.raises(UsageError, match="for the columns id; DuckDB said: INTERRUPT"):
        judge(folder)


def test_batches_beyond_every_number_are_a_clear_error() -> None:
    """Also where somebody else than a run folder gives them."""
    for number, end in ((2**70, 1), (1, 2**64)):
        batch = Batch(batch=number, ranges={0: (0, end)}, committed=True)
        with pytest.raises(HarnessError, match=r"the batches in the history are damaged"):
            Ledger(Source(parquet=None, columns=(), batches=[batch]), where="x")

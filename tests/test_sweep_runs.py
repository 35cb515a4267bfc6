"""A sweep on the real stack: of a broken and a fixed pipeline every cell comes out as predicted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.load import load
from harness.scenario import Word
from harness.suite.options import Options
from harness.sweep.command import SweepOptions, sweep

pytestmark = [pytest.mark.stack, pytest.mark.prove, pytest.mark.timeout(3600)]
HOUSE = Path(__file__).parents[1]
SCENARIO = """
name: payments
pipeline: pipelines/transactions/{program}.py
input: {{workload: transactions, records: 1200}}
verdict: held
"""
NOTHING, EXPOSED, WRITTEN = Word.UNTESTED, Word.HELD, Word.VIOLATED
PREDICTED = {
    "before create of offsets": NOTHING,
    "after create of offsets": NOTHING,
    "before rename of offsets": NOTHING,
    "after rename of offsets": EXPOSED,
    "before create of commits": WRITTEN,
    "after create of commits": WRITTEN,
    "before rename of commits": WRITTEN,
    "after rename of commits": NOTHING,
}
"""By place, what a kill of the driver comes to where rows are appended. What is violated there holds by key."""


@pytest.mark.parametrize(("program", "code"), [("append", 1), ("upsert", 0)])
def test_each_cell_is_as_predicted(tmp_path: Path, program: str, code: int) -> None:
    shutil.copytree(HOUSE / "pipelines", tmp_path / "pipelines")
    path = tmp_path / "scenarios" / "payments.yaml"
    path.parent.mkdir()
    path.write_text(SCENARIO.format(program=program))
    reports = tmp_path / "reports"
    assert sweep([path], Options(reports=reports, own_stack=True), SweepOptions()) == code
    kept = json.loads((reports / "latest" / "sweep-payments.json").read_text(encoding="utf-8"))
    words = {
        (cell["place"], cell["batch"]): Word(cell["result"]["word"])
        for cell in kept["cells"]
        if cell["fault"] == "kill driver" and cell["place"] in PREDICTED
    }
    held = {place: EXPOSED if word is WRITTEN and program == "upsert" else word for place, word in PREDICTED.items()}
    assert words == {(place, batch): held[place] for place in held for batch in ("first batch", "later batch")}
    assert not (reports / "sweep-payments.jsonl").exists()
    failing = [load(path) for path in (reports / "failing").glob("*.yaml")]
    assert len(failing) == sum(cell["result"]["word"] == Word.VIOLATED for cell in kept["cells"])

"""`onceproof explain`: one record's story from the run folder alone, and one clear error for what is not there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.errors import UsageError
from harness.report.story.record_key import parsed
from harness.run_folder.ledger import State
from tests.corpus.run_builder import run_builder
from tests.folders import PER_RECORD, TOTALS
from tests.windows import SINK, TOLD, windowed


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Path]:
    """A run of four batches of ten, of which batch 1 was written twice."""
    run = run_builder(tmp_path / "run")
    run.injection(1)
    run.tables = [[*run.rows((0, 40)), *run.rows((10, 20))]]
    folder = run.complete()
    yield folder.path


def explain(*words: str) -> Result:
    return CliRunner().invoke(main, ["explain", *words])


def test_a_record_s_story_is_told_from_send_to_rows(stored: Path) -> None:
    told = explain(str(stored), "15").output
    for said in (
        "record: partition 0, offset 15",
        "as number 15 of the input",
        "acknowledged at partition 0, offset 15",
        '{"id": 15',
        "batch      1 of checkpoint: ",
        "committed in the end",
        "postgres payments: id=15",
        "hold 1 row",
        "holds      2 rows",
        "duplicated in postgres payments: id=15, 1 row too many",
        "fault 1, kill driver at sink-committed of batch 1, attempt 1; baseline runs are without it",
        "verdict of the run: violated",
    ):
        assert said in told


@pytest.mark.parametrize("key", ["15", "id=15", "@0/15", "#15"])
def test_a_record_is_named_by_key_by_place_or_by_number(stored: Path, key: str) -> None:
    done = explain(str(stored), key)
    assert done.exit_code == 0
    assert "record: partition 0, offset 15" in done.output and "holds      2 rows" in done.output


def test_a_record_that_is_right_has_no_finding(stored: Path) -> None:
    told = explain(str(stored), "3").output
    assert "holds      1 row\n" in told and "finding    none" in told


@pytest.mark.parametrize("key", ["4711", "id=4711", "account=a1", "@0/4711", "@7/0", "#4711", "a,b,c", "NULL", "@0"])
def test_a_key_that_is_not_there_is_one_clear_error(stored: Path, key: str) -> None:
    done = explain(str(stored), key)
    assert done.exit_code == 2
    (line,) = done.output.strip().splitlines()
    assert line.startswith("Error: asked for") and "Its keys: id" in line and key in line


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_a_key_that_is_none_is_one_clear_error(stored: Path, key: str) -> None:
    done = explain(str(stored), key)
    assert (done.exit_code, len(done.output.strip().splitlines())) == (2, 1)


def test_a_folder_that_is_no_run_is_one_clear_error(tmp_path: Path) -> None:
    done = explain(str(tmp_path / "nowhere"), "1")
    assert (done.exit_code, len(done.output.strip().splitlines())) == (2, 1)


def test_an_altered_run_is_not_explained(stored: Path) -> None:
    path = stored / "ledger" / "source.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    done = explain(str(stored), "15")
    assert done.exit_code == 4 and "ledger/source.parquet: altered" in done.output


def test_a_total_says_what_it_is_made_of(tmp_path: Path) -> None:
    run = run_builder(tmp_path / "run")
    run.sink(TOTALS)
    run.injection(1)
    run.tables = [[*run.rows((0, 40), again=((10, 20),))]]
    told = explain(str(run.complete().path), "a1").output
    assert "folds several records into one row" in told
    assert "made of    batch 1" in told and "too high by exactly batch 1" in told
    # The key is a column of the ledger too: each of its ten records is told.
    assert "record 10 of 10: partition 0, offset 37" in told


def test_a_key_of_the_second_sink_that_the_ledger_lacks_is_not_called_a_key_of_no_record(tmp_path: Path) -> None:
    run = run_builder(tmp_path / "run")
    named = replace(
        TOTALS,
        key=("who",),
        expected="select account as who, count(*) as n, sum(amount) as total from ledger group by 1",
    )
    run.sink(PER_RECORD, named)
    done = explain(str(run.complete().path), "a1")
    assert done.exit_code == 0, done.output
    assert "records: not known, the key is no column of the ledger" in done.output
    assert "totals: who=a1" in done.output and "should     hold 1 row" in done.output


LATE = (TOLD[0], TOLD[1], TOLD[2], (31_000, 9_000, 15_000), *TOLD[4:])
"""In batch 3, a record of window 0, which has ended by then."""


@pytest.mark.parametrize(
    ("key", "window"),
    [
        ("@0/0", "written by batch 2"),
        ("@0/8", "does not count (`_late`): it had ended when the record came"),
        ("@0/10", "does not count (`_open`): no watermark has closed it"),
    ],
)
def test_of_windows_it_is_said_which_batch_wrote_them_and_what_does_not_count(
    key: str, window: str, tmp_path: Path
) -> None:
    run = windowed(tmp_path / "run", LATE)
    run.injected(3, written=True)
    done = explain(str(run.complete().path), key)
    assert (done.exit_code, f"  window     postgres windows: {window}" in done.output) == (0, True), done.output


def test_a_window_is_told_by_its_key(tmp_path: Path) -> None:
    run = windowed(tmp_path / "run", LATE)
    run.injected(3, written=True)
    run.rows_[0] = run.row(0, (0, 1, 2, 4, 5, 8))
    told = explain(str(run.complete().path), "0").output
    assert "should     hold 1 row\n               w=0 n=5 " in told
    assert "holds      1 row\n               w=0 n=6 " in told


@pytest.mark.parametrize("key", [("w",), ()])
def test_where_the_watermark_of_a_batch_is_not_known_it_is_said(key: tuple[str, ...], tmp_path: Path) -> None:
    run = windowed(tmp_path / "run")
    run.holds = replace(SINK, key=key)
    run.made()
    run.marks[3] = None
    path = str(run.complete().path)
    why = "not known: it is not known which batch wrote a window of postgres windows: no reading of Spark's log"
    told = explain(path, "0" if key else ",".join(str(cell) for cell in run.rows_[0])).output
    assert f"should     {why}" in told and "holds      1 row\n" in told
    assert f"window     postgres windows: {why}" in explain(path, "@0/0").output


def test_a_send_that_failed_is_told_though_no_record_lies_anywhere(tmp_path: Path) -> None:
    run = run_builder(tmp_path / "run")
    run.states = lambda seq: State.FAILED if seq == 7 else State.ACKNOWLEDGED
    run.gone = frozenset({7})
    told = explain(str(run.complete().path), "#7").output
    assert "record: not in the source" in told and "answer     failed" in told


def test_data_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    run = run_builder(tmp_path / "run")
    run.records[5]["account"] = "\x1b[31m\u202ered</script>"
    told = explain(str(run.complete().path), "5").output
    assert "\x1b" not in told and "\u202e" not in told
    assert all(char.isprintable() or char == "\n" for char in told)


@given(st.text())
def test_any_key_means_something_or_is_refused(text: str) -> None:
    try:
        found = parsed(text)
    except UsageError as refusal:
        assert "A key is" in str(refusal)
    else:
        assert found.cells or found.place is not None or found.seq is not None

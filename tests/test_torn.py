"""Run folders torn at random: `check` of one is an error that names what is torn, and never a verdict; the judge by
itself, which reads no digests, may come to a verdict, and never to a traceback.

`ONCEPROOF_TORN` sets how many folders are torn for `check` (default 300; a fifth as many for the judge), and
`ONCEPROOF_TORN_SEED` what they are drawn from.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from harness import suite
from harness.errors import HarnessError
from harness.judge.baseline_runs import read_baseline_runs
from harness.judge.read_folder import read_run
from harness.scenario import Word
from tests import torn
from tests.folders import PER_RECORD, TOTALS, Folder, judge, payments
from tests.torn import Files

COUNT = int(os.environ.get("ONCEPROOF_TORN", "300"))
SEED = os.environ.get("ONCEPROOF_TORN_SEED", "1")


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> list[Files]:
    """Five runs with digests: one that held, with a snapshot; one of two sinks, not caught up, with a loss; and three
    with a loss that nothing explains, held against baseline runs of which none, each, or not every one shows it."""
    place = tmp_path_factory.mktemp("whole")
    plain = Folder(place / "plain")
    plain.tables = [payments(plain.records)]
    both = Folder(place / "both", progress=30)
    both.claim(sinks=(PER_RECORD, TOTALS), together=True)
    totals = [(f"a{i}", "10", "1") for i in range(4)]
    both.tables = [[*payments(both.records)[1:31], payments(both.records)[5]], list(totals)]
    controlled = [lossy(place / str(number), *short) for number, short in enumerate([(0, 0, 0), (1, 1, 1), (0, 1)])]
    return [torn.read(folder.complete().path) for folder in (plain, both, *controlled)]


def lossy(path: Path, *short: int) -> Folder:
    """A run that lost a record of a batch which no fault struck, and baseline runs that lost so many."""
    folder = Folder(path)
    rows = payments(folder.records)
    folder.tables = [rows[1:]]
    folder.baseline_runs = [[rows[less:]] for less in short]
    return folder


ALONE = "1 findings may be there without faults too: no baseline run was made"
DIFFER = "not deterministic without faults: baseline runs differ in 1 findings"


@pytest.mark.parametrize(
    ("number", "expected"),
    [(2, (3, Word.VIOLATED, ())), (3, (3, Word.VIOLATED, ())), (4, (2, Word.INCONCLUSIVE, (DIFFER,)))],
)
def test_a_whole_run_is_judged_with_its_baseline_runs(
    wholes: list[Files], folder: Path, number: int, expected: tuple[int, Word, tuple[str, ...]]
) -> None:
    torn.lay(wholes[number], folder)
    baseline_runs, verdict = read_baseline_runs(read_run(folder), lambda run: []), judge(folder)
    assert (len(baseline_runs), verdict.word, verdict.reasons) == expected
    assert [finding.without_faults for finding in verdict.findings] == [number == 3]
    shutil.rmtree(folder / "baseline")
    assert (judge(folder).word, judge(folder).reasons) == (Word.INCONCLUSIVE, (ALONE,))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "run"
    shutil.rmtree(tmp_path / "run", ignore_errors=True)


def test_check_of_a_torn_folder_is_an_error_and_never_a_verdict(
    wholes: list[Files], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for whole in wholes:
        suite.check(torn.lay(whole, folder))
        shutil.rmtree(folder)
    capsys.readouterr()
    for number in range(COUNT):
        rng = Random(f"{SEED} {number}")
        whole = wholes[number % len(wholes)]
        files = torn.torn(whole, rng, torn.BYTES)
        torn.lay(files, folder)
        with pytest.raises(HarnessError) as refusal:
            suite.check(folder)
        said = capsys.readouterr()
        assert (said.out, said.err) == ("", ""), f"folder {number} of seed {SEED}"
        if "digests.json" in files:
            assert refusal.value.exit_code == 4
            wrong = {name for name in whole | files if whole.get(name) != files.get(name)}
            named = {"digests.json"} & wrong or wrong
            assert all(f"\n  {name}: " in str(refusal.value) for name in named), f"folder {number} of seed {SEED}"
        shutil.rmtree(folder)


def test_the_judge_of_a_torn_folder_never_fails_in_an_unforeseen_way(wholes: list[Files], folder: Path) -> None:
    words = set()
    for number in range(COUNT // 5):
        files = torn.torn(wholes[number % len(wholes)], Random(f"judge {SEED} {number}"), torn.MEANING)
        torn.lay(files, folder)
        try:
            words.add(judge(folder).word)
        except HarnessError as refusal:
            assert str(refusal)
        except Exception as failure:
            raise AssertionError(f"folder {number} of seed {SEED}: {failure!r}") from failure
        shutil.rmtree(folder)
    assert words


def test_the_page_of_a_torn_folder_without_verdict_never_fails_in_an_unforeseen_way(
    wholes: list[Files], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that ended early has no digests, and a page all the same."""
    whole = {name: data for name, data in wholes[0].items() if name in ("plan.json", "history.jsonl", "scenario.yaml")}
    whole["run.json"] = b'{"stage": 1, "scenario": "by hand", "seconds": 1.5, "outcome": {"error": "a disk"}}\n'
    for number in range(COUNT // 5):
        files = torn.torn(whole, Random(f"page {SEED} {number}"), torn.BYTES)
        torn.lay(files, folder)
        try:
            suite.report([folder])
            capsys.readouterr()
        except HarnessError as refusal:
            assert str(refusal)
        except Exception as failure:
            raise AssertionError(f"folder {number} of seed {SEED}: {failure!r}") from failure
        shutil.rmtree(folder)

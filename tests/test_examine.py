"""How one sink is examined, and what is said of it beside another one."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from harness.checkers.cells import Row
from harness.judge.examine import SHUFFLES
from harness.judge.sinks import VAGUE
from harness.ledger import WHOLE, Ledger, Table
from harness.scenario import Guarantee, Kind, Sink, Word
from tests.corpus.own_offsets import by_hand
from tests.corpus.run_builder import RunBuilder, run_builder
from tests.folders import COLUMNS, PER_RECORD, TOTALS, TYPES, Folder, Injected, judge, payments, totals

COUNTS = replace(TOTALS, expected="select account, count(*) as n from ledger group by account")
HONEST: list[Row] = [("a0", "20"), ("a1", "20")]


def tied(folder: Folder) -> None:
    """Every batch comes to the same counts, and would hide another one."""
    for record in folder.records:
        record["account"] = f"a{record['id'] % 2}"


def test_totals_that_tie_are_put_to_the_test_beside_rows(folder: Folder) -> None:
    tied(folder)
    folder.claim(sinks=(PER_RECORD, COUNTS))
    folder.types = [TYPES["payments"], TYPES["totals"][:2]]
    folder.tables = [payments(folder.records), HONEST]
    verdict = judge(folder)
    assert (verdict.word, verdict.notes) == (Word.HELD, ())


def test_neither_of_two_sinks_that_were_tried_is_named_nor_one_that_nobody_could_read(folder: Folder) -> None:
    folder.claim(sinks=(PER_RECORD, TOTALS))
    folder.tables = [payments(folder.records), totals(folder.records)]
    assert judge(folder).notes == ()
    other = Folder(folder.path.parent / "other", scenario=folder.scenario, tables=[payments(folder.records), None])
    assert not any("not put to the test" in note for note in judge(other).notes)


def test_a_single_total_under_another_key_is_another_table_s(folder: Folder) -> None:
    """Where its value is all the key that it has, it is a wrong total; with a key of its own it is apart."""
    folder.claim(sinks=(replace(TOTALS, expected="select 'all' as account, count(*) as n, 1.5 as total from ledger"),))
    folder.tables = [[("other", "40", "1.5")]]
    folder.baseline_runs = [folder.tables]
    verdict = judge(folder)
    assert (verdict.word, any("holds not one of the keys" in each for each in verdict.reasons)) == (Word.UNTESTED, True)


@pytest.mark.parametrize(("most", "orders"), [(40, [*SHUFFLES]), (39, [*SHUFFLES[:1]])])
def test_a_long_ledger_is_tried_in_one_other_order(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, most: int, orders: list[int]
) -> None:
    tried, table = [], Ledger.table

    def asked(ledger: Ledger, sql: str, **options: Any) -> Table:
        tried.append(options.get("cut", WHOLE).order)
        return table(ledger, sql, **options)

    monkeypatch.setattr(Ledger, "table", asked)
    monkeypatch.setattr(import_module("harness.judge.examine"), "SHUFFLED_MAX", most)
    folder.claim(sinks=(TOTALS,))
    folder.tables = [totals(folder.records)]
    judge(folder)
    assert [order for order in tried if order] == orders


def test_an_infinite_total_hides_no_error_of_another_one(folder: Folder) -> None:
    expected = (
        "select account, sum(case when id = 0 then 'inf'::double else amount::double end) / 10 as mean from ledger "
    )
    folder.claim(sinks=(replace(TOTALS, expected=f"{expected} group by account"),))
    folder.types = [[("account", "text", "text"), ("mean", "double precision", "float")]]
    means = {f"a{n}": sum(float(r["amount"]) for r in folder.records if r["account"] == f"a{n}") / 10 for n in range(4)}
    folder.tables = [[("a0", "inf"), ("a1", "7.0"), ("a2", str(means["a2"])), ("a3", str(means["a3"]))]]
    verdict = judge(folder)
    assert [finding.key for finding in verdict.findings] == [{"account": "a1"}]


def test_a_shared_key_is_named_with_all_its_columns(folder: Folder) -> None:
    folder.records[4] = {**folder.records[0], "id": 4}
    folder.claim(sinks=(replace(PER_RECORD, key=("account", "amount")),))
    folder.tables = [payments(folder.records)]
    words = "postgres payments: 40 rows share 39 keys (account, amount): a finding speaks of all rows of its key"
    assert judge(folder).notes == (words,)


def test_a_tiny_total_allows_no_error(folder: Folder) -> None:
    """What sums round by is a part of the numbers that went in, however small these are."""
    expected = "select account, sum(id * 1e-13::double) as total from ledger group by account"
    folder.claim(sinks=(replace(TOTALS, expected=expected),))
    folder.types = [[("account", "text", "text"), ("total", "double precision", "float")]]
    sums = {f"a{n}": sum(r["id"] * 1e-13 for r in folder.records if r["account"] == f"a{n}") for n in range(4)}
    folder.tables = [[*((account, repr(total)) for account, total in sums.items() if account != "a1"), ("a1", "1e-13")]]
    assert [finding.key for finding in judge(folder).findings] == [{"account": "a1"}]


@pytest.mark.parametrize("large", ["-1000000000", "1000000000"])
def test_a_sum_rounds_by_a_part_of_the_largest_number_that_went_in(folder: Folder, large: str) -> None:
    """Whichever sign it has, and however small the sum is."""
    folder.records[0]["amount"] = large
    for record in folder.records[4::4]:
        record["amount"] = "111111111" if large[0] == "-" else "-111111111"
    folder.claim(
        sinks=(replace(TOTALS, expected="select account, sum(amount::double) as total from ledger group by 1"),)
    )
    folder.types = [[("account", "text", "text"), ("total", "double precision", "float")]]
    sums = {f"a{n}": sum(float(r["amount"]) for r in folder.records if r["account"] == f"a{n}") for n in range(4)}
    folder.tables = [[("a0", repr(sums["a0"] + 0.5)), *((f"a{n}", repr(sums[f"a{n}"])) for n in (1, 2, 3))]]
    verdict = judge(folder)
    assert (verdict.word, verdict.findings) == (Word.INCONCLUSIVE, ())
    assert verdict.reasons[0].startswith("1 totals of postgres totals differ only by rounding")


def test_every_kind_that_was_cut_is_named_under_a_weaker_guarantee(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("harness.judge.examine"), "FINDINGS_MAX", 3)
    folder.claim(guarantee=Guarantee.AT_MOST_ONCE)
    rows = payments(folder.records)
    folder.tables = [[*rows[4:], *rows[10:14]]]
    words = "too many findings in postgres payments to compare each under at-most-once: duplicated (4), lost (4)"
    assert words in judge(folder).reasons
    other = Folder(folder.path.parent / "other", scenario=folder.scenario, tables=[[*rows[3:], *rows[10:13]]])
    assert not any("too many" in reason for reason in judge(other).reasons)


def test_of_a_query_that_hides_what_happened_the_note_says_why_nobody_can_tell(folder: Folder) -> None:
    few = "select account, count(*) as n from ledger group by account having count(*) < 11"
    folder.claim(guarantee=Guarantee.AT_MOST_ONCE, sinks=(replace(TOTALS, expected=few),))
    folder.types = [TYPES["totals"][:2]]
    folder.tables = [[("a0", "9"), ("a1", "9"), ("a2", "10"), ("a3", "10")]]
    verdict = judge(folder)
    assert VAGUE.format("postgres totals") in verdict.notes
    assert verdict.reasons[-1] == "2 findings may hide what the guarantee forbids, or be what it allows"


def test_rows_that_several_records_give_are_vague_and_their_query_is_not(folder: Folder) -> None:
    alike = replace(PER_RECORD, expected="select account from ledger", key=())
    folder.claim(guarantee=Guarantee.AT_MOST_ONCE, sinks=(alike,))
    folder.types = [TYPES["payments"][1:2]]
    folder.tables = [[(record["account"],) for record in folder.records[1:]]]
    verdict = judge(folder)
    assert [finding.vague for finding in verdict.findings] == [True]
    assert not any("does not tell what became of one record" in note for note in verdict.notes)
    assert verdict.reasons[-1] == "1 findings may hide what the guarantee forbids, or be what it allows"


def test_a_query_that_cannot_be_run_over_a_part_exposes_nothing(folder: Folder) -> None:
    whole = "case when count(*) < 10 then error('too few')::bigint else count(*) end"
    folder.claim(sinks=(replace(TOTALS, expected=f"select account, {whole} as n from ledger group by account"),))
    folder.types = [TYPES["totals"][:2]]
    folder.tables = [[("a0", "11"), *((f"a{n}", "10") for n in (1, 2, 3))]]
    folder.injections = [Injected(tables=[[("a0", "5"), ("a1", "5")]])]
    verdict = judge(folder)
    (reason,) = [each for each in verdict.reasons if "too few" in each]
    assert "`expected` of postgres totals cannot be run with records left out or counted twice" in reason
    assert (verdict.word, [each.key for each in verdict.findings]) == (Word.VIOLATED, [{"account": "a0"}])


def test_one_that_keeps_its_offsets_itself_may_be_struck_where_it_has_saved_them_early(tmp_path: Path) -> None:
    own = run_builder(tmp_path / "own")
    by_hand(own, 10, 20, 30, 40, holds=15)
    early = ("postgres payments", "offsets committed, sink not written")
    assert early in judge(own).untried
    assert early not in judge(Folder(tmp_path / "run", tables=[payments(own.records)]).write()).untried


def twins(path: Path, sink: Sink = PER_RECORD) -> RunBuilder:
    """Two sinks of one name, the first one in order."""
    run = run_builder(path)
    run.sink(sink, sink, types=[TYPES["payments"], TYPES["payments"]])
    run.injection()
    return run


def test_of_two_sinks_of_one_name_the_place_says_which_does_not_fit(tmp_path: Path) -> None:
    run = twins(tmp_path / "run")
    run.types = [TYPES["payments"], [*TYPES["payments"][:2], ("amount", "text", "text")]]
    (reason,) = [each for each in judge(run).reasons if "amount" in each]
    assert "(sink 2)" in reason and "(sink 1)" not in reason


@pytest.mark.parametrize("said", [False, True])
def test_of_two_sinks_of_one_name_the_place_says_which_folds_equal_rows(tmp_path: Path, said: bool) -> None:
    run = twins(tmp_path / "run", replace(PER_RECORD, folds=True) if said else PER_RECORD)
    run.edits = {"sink/1.json": {"folds": True, "folding": "it says distinct"}, "sink/0.json": {"folds": False}}
    verdict = judge(run)
    told = [each for each in (*verdict.reasons, *verdict.notes) if "folds equal rows" in each]
    assert any("(sink 2)" in each for each in told) and not any("(sink 1)" in each for each in told)


def test_a_key_whose_ledger_column_has_no_exact_text_still_names_its_finding(folder: Folder) -> None:
    """`expected` makes a number of a list of that name: which record is missing cannot be looked up by the key."""
    listed = {"name": "id", "type": "INTEGER[]", "expression": "[(value ->> '$.id')::integer]"}
    folder.columns = [listed, *COLUMNS[1:]]
    folder.claim(sinks=(replace(PER_RECORD, expected="select id[1] as id, account, amount from ledger"),))
    assert judge(folder).word is Word.HELD
    folder.path = folder.path.with_name("short")
    folder.tables = [payments(folder.records)[:-1]]
    (lost,) = judge(folder).findings
    assert (lost.kind, dict(lost.key), lost.records) == (Kind.LOST, {"id": "39"}, ())

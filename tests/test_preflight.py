"""What is checked before the first record: `expected`, its fit, and rows that an earlier run left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.checkers.cells import Row
from harness.errors import SetupError, StackError, UsageError, WaitError
from harness.load import load
from harness.run import preflight
from harness.scenario import Scenario, Sink
from harness.sinks.base import Missing, Reading, Unmade
from harness.sinks.table import SinkColumn, SinkTable
from harness.workloads import make

TEXT = """\
name: s
pipeline: {{entry: p.py}}
input: {{workload: transactions, records: 600}}
sink: {{postgres: public.kept, expected: "{expected}", key: [{key}]}}
schedule: [{{when: {{batch: 1}}, do: crash before offset commit}}]
verdict: held
"""
PLAIN, TOTAL = "select id, amount from ledger", "select 1 as id, count(*) as amount from ledger"
TOTALS = "select id, sum(amount) as amount from ledger group by id"
TYPES = {"id": ("bigint", "number"), "amount": ("numeric", "number"), "note": ("text", "text")}


def scenario(folder: Path, expected: str, key: str = "id", *, kind: str = "postgres: public.kept") -> Scenario:
    (folder / "p.py").touch()
    (folder / "s.yaml").write_text(TEXT.format(expected=expected, key=key).replace("postgres: public.kept", kind))
    return load(folder / "s.yaml")


def table(*names: str, rows: list[Row] | None = None, missing: str = "") -> SinkTable:
    columns = tuple(SinkColumn(name=name, type=TYPES[name][0], family=TYPES[name][1]) for name in names)
    about: dict[str, Any] = {"name": "kept", "kind": "postgres", "target": "public.kept"}
    return SinkTable(**about, columns=columns, rows=rows or [], unreadable=missing, absent=bool(missing))


def check(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    new: SinkTable,
    expected: str = PLAIN,
    kind: str = "postgres: public.kept",
) -> set[int]:
    made = scenario(folder, expected, kind=kind)
    monkeypatch.setattr(preflight, "read", lambda sink, parts: new)
    workload = make(made.input, seed=1, root=folder)
    own: Any = SimpleNamespace(folder=folder, parts={})
    return preflight.check(made, workload, own)


NONE_YET = table(missing="the database has none of that name")


@pytest.mark.parametrize("rows", [[], [("7", "0")]])
def test_a_table_made_in_setup_may_hold_totals_at_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Row]
) -> None:
    check(tmp_path, monkeypatch, new=table("id", "amount", rows=rows), expected=TOTALS)


def test_a_table_that_the_pipeline_makes_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(tmp_path, monkeypatch, new=NONE_YET) == set()


def test_a_table_that_is_there_needs_no_second_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(tmp_path, monkeypatch, new=table("id", "amount")) == {0}


def test_a_query_that_is_wrong_whatever_the_pipeline_makes_is_told_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(sink: Sink, parts: Any) -> None:
        raise UsageError('asked Postgres to read the sink select amuont; it said: column "amuont" does not exist')

    monkeypatch.setattr(preflight, "columns", wrong)
    # One that is not there yet is not asked for a second time.
    assert check(tmp_path, monkeypatch, new=NONE_YET) == set()
    with pytest.raises(SetupError, match='column "amuont" does not exist'):
        check(tmp_path, monkeypatch, new=replace(NONE_YET, absent=False))


@pytest.mark.parametrize("kind", ["mariadb", "opensearch", "files"])
def test_what_setup_makes_is_told_before_the_run_and_files_are_not(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(sink: Sink, parts: Any) -> None:
        raise UsageError("the index kept has a field id that cannot be read exactly")

    monkeypatch.setattr(preflight, "columns", wrong)
    there = replace(NONE_YET, absent=False)
    with nullcontext() if kind == "files" else pytest.raises(SetupError, match="has a field id that"):
        assert check(tmp_path, monkeypatch, new=there, kind=f"{kind}: kept") == set()


def test_a_query_by_a_function_that_the_pipeline_may_make_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unmade(sink: Sink, parts: Any) -> None:
        raise Unmade("function of_the_pipeline() does not exist")

    monkeypatch.setattr(preflight, "columns", unmade)
    assert check(tmp_path, monkeypatch, new=replace(NONE_YET, absent=False)) == set()


class Open:
    """A sink that says of itself what it is told to; `rows` makes it one that keeps its rows for good."""

    def __init__(self, says: Exception | None = None, *, rows: Exception | list[Row] | None = None) -> None:
        self._says, self._rows = says, rows
        self.keeps_rows = rows is not None
        self.asked: list[str] = []

    def columns(self) -> tuple[SinkColumn, ...]:
        self.asked.append("columns")
        if self._says is not None:
            raise self._says
        return ()

    @contextmanager
    def reading(self, *, wait_ms: int = 0) -> Iterator[Reading]:
        self.asked.append("rows")

        def parts() -> Iterator[list[Row]]:
            if isinstance(self._rows, Exception):
                raise self._rows
            yield self._rows or []

        yield Reading((), parts(), lambda: False)


def first(folder: Path, monkeypatch: pytest.MonkeyPatch, found: Open | None, *compared: int) -> list[tuple[str, str]]:
    monkeypatch.setattr(preflight, "opened", lambda sink, parts: found)
    own: Any = SimpleNamespace(parts={})
    return list(preflight.first(scenario(folder, PLAIN), own, compared))


def test_a_sink_that_is_not_there_after_the_first_batch_is_named_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = first(tmp_path, monkeypatch, Open(Missing('relation "public.kept" does not exist')))
    assert told == [("postgres public.kept", 'relation "public.kept" does not exist')]


@pytest.mark.parametrize(
    "found", [None, Open(), Open(rows=[]), Open(rows=[("1", "2")]), Open(StackError("away")), Open(rows=WaitError("x"))]
)
def test_a_sink_that_is_there_or_empty_or_whose_server_is_away_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Open | None
) -> None:
    assert first(tmp_path, monkeypatch, found) == []


@pytest.mark.parametrize(
    "found",
    [Open(UsageError("column x does not exist")), Open(rows=UsageError("offset 3: column x does not exist"))],
)
def test_what_never_can_be_read_is_an_error_after_the_first_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Open
) -> None:
    with pytest.raises(SetupError, match=r"after the first committed batch: .*column x does not exist"):
        first(tmp_path, monkeypatch, found)


def test_a_sink_that_was_looked_at_is_not_asked_for_its_columns_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, kept = Open(UsageError("no column has values yet")), Open(UsageError("x"), rows=[])
    for found, asked in ((plain, []), (kept, ["rows"])):
        assert first(tmp_path, monkeypatch, found, 0) == []
        assert found.asked == asked


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ({"spark.cores.max": "2"}, {"c/totals": 200}),
        ({"spark.cores.max": "16"}, {}),
        ({}, {}),
        ({"spark.cores.max": "many"}, {}),
    ],
)
def test_many_shuffle_partitions_on_few_cores_are_told_early(conf: dict[str, str], told: dict[str, int]) -> None:
    assert preflight.crowded({"c/totals": 200, "c/few": 3}, conf) == told


class Late:
    """A scenario of several sinks, and what a server would say of each when it is asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *queries: str | None) -> None:
        self.scenario = scenario(folder, PLAIN)
        (one,) = self.scenario.sinks
        self.scenario = replace(self.scenario, sinks=tuple(replace(one, expected=expected) for expected in queries))
        self.workload = make(self.scenario.input, seed=1, root=folder)
        self.says: list[tuple[SinkColumn, ...] | Exception | None] = [None for _ in queries]
        self.asked: list[int] = []
        self.compared: set[int] = set()
        monkeypatch.setattr(preflight, "columns", self.columns)

    def columns(self, sink: Sink, parts: Any) -> tuple[SinkColumn, ...] | None:
        place = next(place for place, each in enumerate(self.scenario.sinks) if each is sink)
        self.asked.append(place)
        said = self.says[place]
        if isinstance(said, Exception):
            raise said
        return said

    def check(self) -> list[int]:
        """Check once; the places that were asked for."""
        self.asked.clear()
        own: Any = SimpleNamespace(parts={})
        preflight.late(self.scenario, self.workload, own, self.compared)
        return list(self.asked)


def test_a_sink_is_looked_at_once_when_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late(tmp_path, monkeypatch, PLAIN, None, PLAIN)
    assert late.check() == [0, 2]
    late.says[2] = table("id", "amount").columns
    assert (late.check(), late.compared) == ([0, 2], {2})
    late.says[0] = table("amount", "id").columns
    assert (late.check(), late.compared) == ([0], {0, 2})
    assert late.check() == []


def test_a_sink_that_does_not_fit_is_told_when_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = Late(tmp_path, monkeypatch, PLAIN, PLAIN)
    coarse = SinkColumn(name="amount", type="numeric(12,1)", family="number")
    late.says[1] = (table("id").columns[0], coarse)
    said = (
        r"postgres public\.kept \(sink 2\): column amount is DECIMAL\(18,2\) in `expected` and numeric\(12,1\) in the"
    )
    with pytest.raises(SetupError, match=said + r" sink.*\. Mend `expected`, `key`, or the table in `setup`"):
        late.check()


def test_a_sink_that_cannot_be_compared_at_all_is_told_when_it_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Late(tmp_path, monkeypatch, PLAIN)
    late.says[0] = UsageError("the sink has a column x of type point, which cannot be compared exactly")
    with pytest.raises(SetupError, match="of type point, which cannot be compared exactly"):
        late.check()


def test_a_server_that_does_not_answer_is_asked_again_at_the_next_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Late(tmp_path, monkeypatch, PLAIN, PLAIN)
    late.says[0] = StackError("it raised ConnectionError: refused")
    late.says[1] = table("id", "amount").columns
    assert (late.check(), late.compared) == ([0, 1], {1})
    late.says[0] = table("amount", "id").columns
    assert (late.check(), late.compared) == ([0], {0, 1})


def test_a_console_is_not_looked_at(tmp_path: Path) -> None:
    made = replace(scenario(tmp_path, PLAIN), sinks=(Sink(kind="console", target=""),))
    own: Any = SimpleNamespace(folder=tmp_path, parts={})
    held = preflight.sinks_now(made, own)
    assert [each.rows for each in held] == [[]]
    preflight.check(made, make(made.input, seed=1, root=tmp_path), own)


def test_rows_that_setup_left_there_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = table("id", "amount", rows=[("1", "5"), ("2", "6"), ("2", "6")])
    with pytest.raises(SetupError, match=r"saw 3 rows in public\.kept before the first record .* without a schema"):
        check(tmp_path, monkeypatch, new=held)


@pytest.mark.parametrize(
    ("expected", "held", "left"),
    [
        (TOTALS, table("id", "amount", rows=[("1", "0.00"), ("2", None), ("3", "5")]), 1),
        # Of a record that is no total, zero is what the pipeline writes.
        (PLAIN, table("id", "amount", rows=[("1", "0.00"), ("2", None), ("3", "5")]), 3),
        # With all columns as the key any row is a right one, also where `expected` folds records into it.
        ("select id from ledger", table("id", rows=[("15",)]), 1),
        ("select distinct id from ledger", table("id", rows=[("15",)]), 1),
        (
            "select id, min(currency) as note from ledger group by id",
            table("id", "note", rows=[("1", "0"), ("2", None)]),
            1,
        ),
    ],
)
def test_rows_that_setup_puts_there_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: str, held: SinkTable, left: int
) -> None:
    said = rf"saw {left} rows in public\.kept before the first record .* or insert no row"
    with pytest.raises(SetupError, match=said):
        check(tmp_path, monkeypatch, new=held, expected=expected)


@pytest.mark.parametrize(("count", "refused"), [("0", False), ("57", True)])
def test_a_total_has_a_row_of_no_record_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: str, refused: bool
) -> None:
    # In the sink's own order of columns.
    held = table("amount", "id", rows=[(count, "1")])
    if refused:
        with pytest.raises(SetupError, match="saw 1 rows"):
            check(tmp_path, monkeypatch, new=held, expected=TOTAL)
    else:
        check(tmp_path, monkeypatch, new=held, expected=TOTAL)


def test_columns_that_do_not_fit_are_told_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match=r"`expected` has columns id, amount; the sink has id, note\. Mend `expected`"):
        check(tmp_path, monkeypatch, new=table("id", "note"))


def test_a_query_that_cannot_run_is_told_even_if_the_table_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"(?s)nowhere.*columns of `ledger`: id, "):
        check(tmp_path, monkeypatch, new=NONE_YET, expected="select nowhere as id from ledger")

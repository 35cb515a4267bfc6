"""Queries that are tried while a scenario is read: each mistake at its own line, beside all others of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import ScenarioError
from harness.fields.hints import did_you_mean
from harness.fields.placeholders import wrong_in
from harness.fields.values import is_query
from harness.load import dump, load, load_all
from tests.shipped import FILES
from tests.strategies import DATA, ENTRY, project

NAMED = "name: n\npipeline: pipelines/pay.py\n"
SINK = "sink: {{postgres: t, expected: '{expected}', key: [id]}}\n"
WRONG = SINK.format(expected="select acount as id from ledger")
UNKNOWN = 'is no query that DuckDB can run: Binder Error: Referenced column "acount" not found'


def written(folder: Path, text: str) -> Path:
    home = folder / "scenarios"
    path = (home if home.is_dir() else project(folder)) / "s.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def told(folder: Path, text: str) -> list[tuple[str, int, int, str]]:
    """File, line, column and words of each mistake."""
    with pytest.raises(ScenarioError) as failure:
        load(written(folder, text), queries=True)
    return [(Path(each.file).name, each.line, each.column, each.text) for each in failure.value.mistakes]


def test_a_wrong_query_is_told_at_its_place_beside_other_mistakes(tmp_path: Path) -> None:
    expected, guarantee = told(tmp_path, NAMED + WRONG + "guarantee: at-leest-once\n")
    assert expected[:3] == ("s.yaml", 3, 31)
    assert expected[3].startswith(f"`expected` of sink {UNKNOWN}") and "columns of `ledger`: id, " in expected[3]
    assert "\n" not in expected[3]
    assert guarantee[:3] == ("s.yaml", 4, 12)


def test_each_sink_has_its_own(tmp_path: Path) -> None:
    sinks = [
        SINK.format(expected=f"select {what} from ledger").removeprefix("sink: ") for what in ("id", "(id", "no as id")
    ]
    text = "sink:\n" + "".join(f"  - {sink}" for sink in sinks)
    second, third = told(tmp_path, NAMED + text)
    assert (second[1], third[1]) == (5, 6)
    assert second[3].startswith("`expected` of sink[1] is no query") and third[3].startswith("`expected` of sink[2]")


def test_the_columns_are_those_of_the_input(tmp_path: Path) -> None:
    logs = "input: {workload: access_logs}\n"
    load(written(tmp_path, NAMED + SINK.format(expected="select 1 as id, status from ledger") + logs), queries=True)
    assert "amount" in told(tmp_path, NAMED + SINK.format(expected="select amount as id from ledger") + logs)[0][3]


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (
            "kafka: t, columns: 'id bigint, amount decimal(18, 2)', expected: select id from ledger",
            "`expected` has columns id; the sink has id, amount. Mend `expected`, `key` or `columns`",
        ),
        (
            "kafka: t, columns: id string, expected: select id from ledger",
            "column id is BIGINT in `expected` and string in the sink; cast one of them, so that the values can be "
            "compared exactly. Mend `expected`, `key` or `columns`",
        ),
        ("kafka: t, expected: select id from ledger", "`expected` has columns id; the sink has key, value. Mend "),
        (
            "files: t, format: json, columns: 'id int, amount decimal(9, 1)', "
            "expected: 'select id, amount from ledger'",
            "column amount is DECIMAL(18,2) in `expected` and decimal(9,1) in the sink, which keeps 1 of 2 decimals ",
        ),
        (
            "opensearch: t, columns: id bigint, expected: 'select id, account from ledger'",
            "`expected` has columns id, account; the sink has id. Mend ",
        ),
        (
            "postgres: t, expected: 'select id, seq as id from ledger'",
            "two columns have one name in `expected` or in the sink. Mend `expected` or `key`",
        ),
        (
            "delta: t, expected: select id as number from ledger",
            "the key id is not among the columns of `expected` number. Mend `expected` or `key`",
        ),
        (
            "postgres: t, expected: 'select id, [seq] as seqs from ledger'",
            "has a column seqs of type BIGINT[], which cannot be compared exactly. Cast it to a plain type, ",
        ),
        *(
            (
                f"postgres: t, expected: 'select id, {made} as amount from ledger'",
                f"has a column amount of type {type_}, which cannot be compared exactly. Cast it to a plain type, ",
            )
            for made, type_ in (
                ("[amount]", "DECIMAL(18,2)[]"),
                ("[[amount]]", "DECIMAL(18,2)[][]"),
                ("array_value(amount)", "DECIMAL(18,2)[1]"),
            )
        ),
    ],
)
def test_a_query_fits_its_sink(tmp_path: Path, sink: str, said: str) -> None:
    (mistake,) = told(tmp_path, NAMED + f"sink: {{{sink}, key: [id]}}\n")
    assert mistake[:3] == ("s.yaml", 3, 18 + sink.index("expected: ")) and said in mistake[3]


def test_what_fits_is_no_mistake(tmp_path: Path) -> None:
    columns = "columns: 'id bigint, account string of key, at bigint of offset'"
    order = "order: {by: at, follows: id, per: [account]}"
    expected = "expected: 'select id, account from ledger'"
    load(written(tmp_path, NAMED + f"sink: {{kafka: t, {columns}, {expected}, key: [id], {order}}}\n"), queries=True)


def test_of_windows_the_ledger_says_which_records_are_late(tmp_path: Path) -> None:
    late = SINK.format(expected="select count(*) as id from ledger where not (_late or _open)")
    closed = late.replace("key: [id]", "key: [id], watermark: {of: event_time, closes: event_time}")
    load(written(tmp_path, NAMED + closed), queries=True)
    for expected, name in ((late, "_late"), (late.replace("(_late or _open)", "_OPEN"), "_OPEN")):
        (only,) = told(tmp_path, NAMED + expected)
        assert only[3].endswith(f"; only a sink with `watermark` has '{name}': add `sink.watermark`")
    assert "watermark" not in told(tmp_path, NAMED + WRONG)[0][3]


WINDOWED = (
    "sink: {postgres: t, expected: QUERY, key: [id], watermark: {of: event_time, closes: event_time, mode: MODE}}\n"
)


@pytest.mark.parametrize(
    ("expected", "mode"),
    [
        ("select id from ledger where not columns('_late|_open')", "append"),
        ("select id from ledger where not columns('_late|_open')", "update"),
        ("select id from ledger where not _late and not columns('_op.*')", "append"),
        ("select id from ledger where not columns(lambda c: c in ('_late', '_open'))", "append"),
        ("select id from ledger natural join (values (false, false)) as v(_late, _open)", "append"),
        ("select id from ledger join (values (false, false)) as v(_late, _open) using (_late, _open)", "append"),
        ("with ledger as (from ledger where not (_late or _open)) select id from ledger", "append"),
    ],
)
def test_a_query_may_ask_for_late_records_without_naming_them(tmp_path: Path, expected: str, mode: str) -> None:
    text = WINDOWED.replace("QUERY", json.dumps(expected)).replace("MODE", mode)
    load(written(tmp_path, NAMED + text), queries=True)


@pytest.mark.parametrize(
    ("expected", "lacking"),
    [
        ("select id from ledger where not _late", "`_open`"),
        ("select id from ledger where columns('id') > 3", "`_late` and `_open`"),
        ("select * from ledger", "`_late` and `_open`"),
        ("select id from ledger where not _late and columns('^id$') > 3", "`_open`"),
    ],
)
def test_a_query_that_does_not_ask_for_them_is_refused(tmp_path: Path, expected: str, lacking: str) -> None:
    text = WINDOWED.replace("QUERY", json.dumps(expected)).replace("MODE", "append")
    assert told(tmp_path, NAMED + text)[0][3].startswith(
        f"sink.expected does not ask for {lacking}, and counts records"
    )


def test_a_query_under_a_watermark_that_is_no_query_is_one_mistake(tmp_path: Path) -> None:
    wrong = SINK.format(expected="select id from from ledger")
    closed = wrong.replace("key: [id]", "key: [id], watermark: {of: event_time, closes: event_time}")
    (mistake,) = told(tmp_path, NAMED + closed)
    assert "is no query that DuckDB can run" in mistake[3]


@pytest.mark.parametrize(
    ("watermark", "said"),
    [
        (
            "of: event_time, closes: 'unnest([event_time, event_time])'",
            "closes asks unnest, which gives a record several rows. Say one time of each record",
        ),
        ("of: event_time, closes: now()", "closes asks now, which answers otherwise each time. It may depend on the "),
        ("closes: event_time, of: current_timestamp", "of asks current_timestamp, which answers otherwise each time"),
    ],
)
def test_a_window_ends_at_one_time_of_its_records(tmp_path: Path, watermark: str, said: str) -> None:
    sink = (
        f"sink: {{postgres: t, expected: select id from ledger where not (_late or _open), watermark: {{{watermark}}}"
    )
    (mistake,) = told(tmp_path, NAMED + f"{sink}, key: [id]}}\n")
    assert mistake[:3] == ("s.yaml", 3, sink.rindex(": ") + 3)
    assert mistake[3].startswith(f"sink.watermark.{said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "saw no rows in it"),
        ("\n\n", "saw no rows in it"),
        ("hello\n", "saw its line 1, which is no JSON object: 'hello'"),
        ('{"id": 1}\n\n[2]\n', "saw its line 3, which is no JSON object: '[2]'"),
    ],
)
def test_a_replayed_file_without_records_is_told_at_its_name(tmp_path: Path, text: str, said: str) -> None:
    home = project(tmp_path)
    (tmp_path / DATA).write_text(text, encoding="utf-8")
    path = home / "s.yaml"
    path.write_text(NAMED + SINK.format(expected="select id from ledger") + f"input: {{replay: {DATA}}}\n", "utf-8")
    with pytest.raises(ScenarioError) as failure:
        load(path, queries=True)
    (mistake,) = failure.value.mistakes
    assert (mistake.line, mistake.column) == (4, 17)
    assert mistake.text.startswith("asked to replay ") and said in mistake.text


@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize(
    ("column", "watermark", "where"),
    [("_partition", True, "sink[0].watermark"), ("_batch", False, "sink[0]"), ("_late", True, "sink[0]")],
)
def test_a_column_that_hides_where_a_record_lies_is_told_at_the_input_once(
    tmp_path: Path, column: str, watermark: bool, where: str, queries: bool
) -> None:
    home = project(tmp_path)
    (tmp_path / DATA).write_text(json.dumps({"id": 1, column: 3, "event_time": "2026-01-01T00:00:00"}), "utf-8")
    closing = ", watermark: {of: event_time::timestamp, closes: event_time::timestamp}" if watermark else ""
    sink = f"{{postgres: t, expected: select id from ledger where not (_late or _open), key: [id]{closing}}}"
    path = home / "s.yaml"
    path.write_text(f"{NAMED}sink: [{sink}, {sink}]\ninput: {{replay: {DATA}}}\n", "utf-8")
    if not queries and where == "sink[0]":
        # Nobody has asked for the columns of these yet.
        load(path)
        return
    with pytest.raises(ScenarioError) as failure:
        load(path, queries=queries)
    (mistake,) = failure.value.mistakes
    assert (mistake.line, mistake.column) == (4, 17)
    columns = f"the columns id, {column}, event_time; {column} would hide where a record lies. Call them something else"
    assert mistake.text == f"asked the records of {where} for {columns}"


def test_of_an_input_that_a_missing_pipeline_may_say_nothing_is_known(tmp_path: Path) -> None:
    (mistake,) = told(tmp_path, NAMED.replace("pay.py", "nope.py") + WRONG)
    assert mistake[1] == 2 and "no such file" in mistake[3]


@pytest.mark.parametrize("given", ["input: {workload: transaction}\n", "input: 7\n", "input: {nope: 1}\n"])
def test_of_an_input_that_is_wrong_nothing_is_known(tmp_path: Path, given: str) -> None:
    assert [mistake[1] for mistake in told(tmp_path, NAMED + WRONG + given)] == [4]


def test_a_wrong_query_in_a_header_is_told_there_and_once(tmp_path: Path) -> None:
    home = project(tmp_path)
    (tmp_path / ENTRY).write_text(f"# /// onceproof\n# {WRONG}# ///\n", encoding="utf-8")
    paths = [home / "a.yaml", home / "b.yaml"]
    for path in paths:
        path.write_text(NAMED.replace("name: n", f"name: {path.stem}"), encoding="utf-8")
    with pytest.raises(ScenarioError) as failure:
        load_all(paths, queries=True)
    (mistake,) = failure.value.mistakes
    assert (Path(mistake.file).name, mistake.line, mistake.column) == (Path(ENTRY).name, 2, 33)


def test_queries_are_tried_only_where_that_is_asked_for(tmp_path: Path) -> None:
    assert load(written(tmp_path, NAMED + WRONG)).name == "n"


def test_the_queries_of_every_scenario_that_we_ship_can_be_run() -> None:
    assert len(FILES) > 30
    assert len(load_all(FILES, queries=True)) == len(FILES)


@pytest.mark.parametrize(
    "expected",
    [
        "-- rows\nselect id from ledger",
        "/* rows; * */ select id from ledger",
        "(select id from ledger)",
        "( /* a */ (select id from ledger));",
        "from ledger select id",
        "FROM ledger",
        "table ledger",
        "select id from ledger; -- the end",
        "select id from ledger union all values (1)",
        "from ledger where id in (select max(id) from ledger group by account)",
    ],
)
def test_a_query_is_whatever_duckdb_reads_as_one_query(tmp_path: Path, expected: str) -> None:
    load(
        written(tmp_path, NAMED + f"sink: {{postgres: t, expected: {json.dumps(expected)}, key: [id]}}\n"), queries=True
    )


@pytest.mark.parametrize("queries", [False, True])
@pytest.mark.parametrize(
    "expected",
    [
        "select columns('i.') from ledger",
        "select COLUMNS (lambda c: c like 'i%') from ledger",
        """select unnest(json_transform(value, concat('{"i', 'd": "BIGINT"}'))) from ledger""",
        "select l.* from ledger l",
    ],
)
def test_a_column_that_a_query_gives_without_naming_it_may_be_a_key(
    tmp_path: Path, expected: str, queries: bool
) -> None:
    text = NAMED + f"sink: {{postgres: t, expected: {json.dumps(expected)}, key: [id]}}\n"
    load(written(tmp_path, text), queries=queries)


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ("postgres: t, expected: select idd from ledger, key: [id]", 'Referenced column "idd" not found'),
        ("postgres: t, expected: select id from leger, key: [id]", "Table with name leger does not exist"),
        (
            "postgres: t, expected: \"from read_csv('/etc/passwd')\", key: [id]",
            "asks read_csv, which is not made of its arguments",
        ),
        (
            'postgres: t, expected: "with a as (delete from ledger returning *) from a", key: [id]',
            "is no query that DuckDB",
        ),
        ("postgres: t, expected: select 1 as id; from ledger, key: [id]", "it holds 2 statements"),
        (
            "snowflake: t, expected: select id from ledger, key: [id]",
            "names no place that is known: 'snowflake' is none",
        ),
        (
            "postgres: t, expected: select id from ledger where not _late, key: [id], watermrk: {of: a, closes: b}",
            "unknown key 'sink.watermrk'; did you mean 'watermark'?",
        ),
        ("postgres: t, expected: from ledger, key: [idd]", "the key idd is not among the columns of `expected`"),
        ("postgres: t, expected: select idd as a from ledger, key: [b]", 'Referenced column "idd" not found'),
    ],
)
def test_one_mistake_is_said_once(tmp_path: Path, sink: str, said: str) -> None:
    (mistake,) = told(tmp_path, NAMED + f"sink: {{{sink}}}\n")
    assert said in mistake[3]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("select 1", True),
        ("-- rows\nselect 1", True),
        ("/* rows */ (select 1) union all (select 2)", True),
        ("table payments", True),
        ("values (1)", True),
        ("values", False),
        ("payments", False),
        ("/* select 1 */", False),
        ("/* a */ drop */ select 1", False),
        ("selected", False),
    ],
)
def test_a_sink_is_a_query_or_the_name_of_a_table(text: str, is_one: bool) -> None:
    assert is_query(text) is is_one


TOPIC = (
    "sink: {kafka: t, columns: 'id bigint, seq bigint, at bigint of offset', expected: 'select id, seq from ledger', "
)


@pytest.mark.parametrize(
    ("order", "column", "said"),
    [
        ("{by: att, follows: seq, per: [id]}", "att,", "by 'att' is no column of `columns`; did you mean 'at'?"),
        ("{by: at, follows: sec, per: [id]}", "sec,", "follows 'sec' is no column of `columns`; did you mean 'seq'?"),
        ("{by: at, follows: seq, per: [id, accounts]}", "accounts]", "per 'accounts' is no column of `columns`"),
    ],
)
def test_an_order_is_of_columns_that_are_there(tmp_path: Path, order: str, column: str, said: str) -> None:
    load(written(tmp_path, NAMED + TOPIC + "key: [id], order: {by: at, follows: seq, per: [id]}}\n"), queries=True)
    line = f"{TOPIC}key: [id], order: {order}}}\n"
    assert told(tmp_path, NAMED + line) == [("s.yaml", 3, line.index(column) + 1, f"sink.order.{said}")]


def test_an_order_in_a_table_is_by_a_column_beside_those_of_the_expected_rows(tmp_path: Path) -> None:
    order = "order: {{by: n, follows: {}, per: [id]}}"
    sink = f"sink: {{{{postgres: t, expected: 'select id, seq from ledger', key: [id], {order}}}}}"
    load(written(tmp_path, NAMED + sink.format("seq")), queries=True)
    (mistake,) = told(tmp_path, NAMED + sink.format("sequel"))
    assert mistake[3] == "sink.order.follows 'sequel' is no column of `expected`; did you mean 'seq'?"


@pytest.mark.parametrize(
    "asked",
    [
        "random()",
        "uuid()",
        "now()",
        "today()",
        "current_timestamp",
        "CURRENT_DATE",
        "localtimestamp",
        "current_localtime()",
    ],
)
def test_a_query_that_asks_more_than_the_records_is_refused_by_name(tmp_path: Path, asked: str) -> None:
    (mistake,) = told(tmp_path, NAMED + SINK.format(expected=f"select id, {asked} as x from ledger"))
    assert mistake[3].startswith(f"`expected` of sink asks {asked.lower().removesuffix('()')}, which answers otherwise")


def test_a_column_may_have_the_name_of_a_clock(tmp_path: Path) -> None:
    expected = "select id, current_date from (select id, seq as current_date from ledger)"
    load(written(tmp_path, NAMED + SINK.format(expected=expected)), queries=True)


def test_what_duckdb_says_of_a_query_is_short(tmp_path: Path) -> None:
    (mistake,) = told(tmp_path, NAMED + SINK.format(expected="select id, amount + account as x from ledger"))
    assert (
        "Candidate" not in mistake[3]
        and "; expected: select id" in mistake[3]
        and "; columns of `ledger`" in mistake[3]
    )


def test_hints_are_of_the_same_part_and_the_same_words() -> None:
    assert next(wrong_in("{postgres.second.jdb}")).endswith("did you mean 'postgres.second.jdbc'?")
    assert did_you_mean("kill files", ["kill s3", "kill driver"]) == ""
    assert did_you_mean("kil drivr", ["kill s3", "kill driver"]) == "; did you mean 'kill driver'?"


NAMES = ("order id", "order-id", "größe", "1st", 'a "b"', "x'y", "id")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["t", "select * from t", "select id as {0} from t"])
def test_a_key_is_called_what_its_column_is_called(tmp_path: Path, name: str, place: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    sink = {"postgres": place.format(quoted), "expected": f"select id as {quoted} from ledger", "key": [name]}
    kept = load(written(tmp_path, f"{NAMED}sink: {json.dumps(sink)}\n"), queries=True)
    assert kept.sinks[0].key == (name,)
    assert load(written(tmp_path, dump(kept)), queries=True).sinks == kept.sinks


@pytest.mark.parametrize("name", NAMES[:-1])
def test_a_key_that_is_no_column_of_the_expected_rows_is_named(tmp_path: Path, name: str) -> None:
    sink = {"postgres": "t", "expected": "select id from ledger", "key": [name]}
    (only,) = told(tmp_path, f"{NAMED}sink: {json.dumps(sink)}\n")
    assert f"the key {name} is not among" in only[3] or f"sink.key {name!r} is no column" in only[3]


@pytest.mark.parametrize("name", [" ", "a\\nb", "x" * 201])
def test_what_is_no_name_is_no_key(tmp_path: Path, name: str) -> None:
    sink = f'sink: {{postgres: t, expected: select id from ledger, key: ["{name}"]}}\n'
    assert "sink.key[0] must be a column name (one line of 1 to 200" in told(tmp_path, NAMED + sink)[0][3]

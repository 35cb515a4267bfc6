"""The sink `opensearch` without a server: what a mapping keeps, and rows of documents, exact or refused by id."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.components.opensearch.address import OpenSearchThere
from harness.components.opensearch.run_indexes import Indexes, prefix
from harness.components.opensearch.server import whole
from harness.components.opensearch.sink import KIND
from harness.components.opensearch.sink.documents import row_of
from harness.components.opensearch.sink.mapping import Index, columns_of, described, fields_of
from harness.components.opensearch.sink.open_index import OpenIndex
from harness.components.opensearch.sink.refresh import OURS, in_time, soon
from harness.errors import StackError, UsageError
from harness.sinks.base import Missing
from harness.sinks.json_columns import Wanted, parsed
from harness.sinks.json_values import fields as exactly

PLAIN = {"type": "keyword"}


def index(**mapping: Any) -> Index:
    return Index(name="run-r.t", uuid="u", shards=1, mapping=mapping)


def cell(kept: dict[str, Any] | None, column: str, written: str, **beside: Any) -> str | None:
    """The cell of a document `{"x": written}`, whose field is mapped so."""
    there = index(x=kept) if kept else index()
    hit = {"_id": "7", "_version": exactly('{"v": 3}')["v"], "_source": exactly(f'{{"x": {written}}}'), **beside}
    (found,) = row_of(hit, fields_of(there, parsed(column) if column else ()), index="t", all_of_it=not column)
    return found


EXACT = [
    ({"type": "long"}, "", "9007199254740993", "9007199254740993"),
    ({"type": "byte"}, "", "-128", "-128"),
    ({"type": "unsigned_long"}, "x decimal(20,0)", "18446744073709551615", "18446744073709551615"),
    ({"type": "double"}, "", "0.1", "0.1"),
    ({"type": "double"}, "", "-0.0", "-0.0"),
    ({"type": "float"}, "x float", "0.1", "0.10000000149011612"),
    ({"type": "boolean"}, "", "true", "true"),
    ({"type": "keyword"}, "", '"Ü\\n\\ud83d\\ude00 "', "Ü\n😀 "),
    ({"type": "text"}, "", '""', ""),
    ({"type": "ip"}, "", '"::1"', "::1"),
    ({"type": "keyword"}, "x decimal(12,2)", "1.50", "1.5"),
    ({"type": "binary"}, "", '"AP8="', "00ff"),
    ({"type": "scaled_float", "scaling_factor": 100.0}, "x decimal(18,2)", "90071992547409.91", "90071992547409.91"),
    ({"type": "scaled_float", "scaling_factor": 1000}, "x decimal(12,2)", "-1.50", "-1.5"),
    ({"type": "date"}, "x timestamp_ntz", '"2026-01-31T10:00:00.120"', "2026-01-31T10:00:00.120000"),
    ({"type": "date"}, "x timestamp_ntz", '"2026-01-31T10:00:00.120000"', "2026-01-31T10:00:00.120000"),
    ({"type": "date"}, "x timestamp", '"2026-01-31T12:00:00.5+02:00"', "2026-01-31T10:00:00.500000Z"),
    ({"type": "date", "format": "yyyy-MM-dd"}, "x date", '"2026-01-31"', "2026-01-31"),
    ({"type": "date_nanos"}, "x timestamp_ntz", '"2026-01-31T10:00:00.123456789"', "2026-01-31T10:00:00.123456789"),
    (None, "x bigint", "5", "5"),
    ({"type": "long"}, "", "null", None),
    ({"type": "long"}, "x int of field _version", "5", "3"),
    ({"type": "keyword", "ignore_above": 4}, "", '"\U0001f600\U0001f600"', "\U0001f600\U0001f600"),
    ({"type": "keyword", "ignore_above": 4, "index": False}, "", '"1234"', "1234"),
    ({"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 4}}}, "", '"12345"', "12345"),
    ({"type": "long"}, "x string of field _id", "5", "7"),
    ({"type": "long"}, "x bigint of field _id", "5", "7"),
]  # fmt: skip


@pytest.mark.parametrize(("kept", "column", "written", "there"), EXACT)
def test_every_type_arrives_exactly(kept: dict[str, Any] | None, column: str, written: str, there: str | None) -> None:
    assert cell(kept, column, written) == there


INEXACT = [
    ({"type": "long"}, "", "1.0", "1.0 is no bigint"),
    ({"type": "long"}, "", '"1"', '"1" is no bigint'),
    ({"type": "long"}, "", "[1, 2]", '["1", "2"] is no bigint'),
    ({"type": "keyword"}, "", '["a"]', '["a"] is no string'),
    ({"type": "keyword"}, "", "1", "1 is no string"),
    ({"type": "keyword"}, "", '"\\ud800"', "half of a surrogate pair is no character"),
    ({"type": "keyword"}, "", '{"a": 1}', "is no string"),
    ({"type": "boolean"}, "", '"true"', '"true" is no boolean'),
    ({"type": "double"}, "", "1e400", "it does not fit"),
    ({"type": "date"}, "x timestamp_ntz", "1769853600123", "1769853600123 is no timestamp_ntz"),
    ({"type": "date"}, "x timestamp_ntz", '"2026-01-31T10:00:00.1234"', "its index keeps 3 decimals of the second"),
    ({"type": "date"}, "x timestamp", '"2026-01-31T10:00:00.1234Z"', "its index keeps 3 decimals of the second"),
    ({"type": "date"}, "x timestamp_ntz", '"31/01/2026 10:00:00"', "is no timestamp_ntz"),
    ({"type": "keyword", "ignore_above": 4}, "", '"12345"', "leaves out what is longer than 4, and it has 5"),
    ({"type": "keyword", "ignore_above": 4}, "x decimal(12,2)", "100.00", "leaves out what is longer than 4"),
    # Two units of UTF-16 each.
    ({"type": "keyword", "ignore_above": 4}, "", '"\U0001f600\U0001f600\U0001f600"', "longer than 4, and it has 6"),
    ({"type": "wildcard", "ignore_above": 4}, "", '"12345"', "leaves out what is longer than 4"),
    ({"type": "scaled_float", "scaling_factor": 100}, "x decimal(18,2)", "90071992547409.93", "its index rounds 9"),
    ({"type": "scaled_float", "scaling_factor": 100}, "x decimal(18,2)", "1.505", "it has more decimals"),
]


@pytest.mark.parametrize(("kept", "column", "written", "words"), INEXACT)
def test_what_is_not_exact_is_refused_by_the_documents_id(
    kept: dict[str, Any], column: str, written: str, words: str
) -> None:
    with pytest.raises(UsageError, match=r"the document '7' of t cannot be read exactly: column x: ") as refused:
        cell(kept, column, written)
    assert words in str(refused.value)


def test_a_field_that_the_index_has_left_out_is_refused() -> None:
    with pytest.raises(UsageError, match="its index has left it out"):
        cell(PLAIN, "", '"long"', _ignored=["x"])
    assert cell(PLAIN, "", '"long"', _ignored=["x.keyword"]) == "long"


def test_missing_and_null_are_null_and_a_field_beside_the_mapping_is_refused() -> None:
    there = fields_of(index(x=PLAIN, y=PLAIN), ())
    assert row_of({"_id": "1", "_source": {"y": None}}, there, index="t", all_of_it=True) == (None, None)
    more = {"_id": "1", "_source": {"x": "a", "z": 1}}
    with pytest.raises(UsageError, match="it has z, which the mapping has not"):
        row_of(more, there, index="t", all_of_it=True)
    assert row_of(more, there, index="t", all_of_it=False) == ("a", None)
    with pytest.raises(UsageError, match="it has no `_source`"):
        row_of({"_id": "1"}, there, index="t", all_of_it=False)


READ = ["yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]", "uuuu-MM-dd HH:mm:ssX||epoch_millis", "strict_date_optional_time_nanos"]


@pytest.mark.parametrize("format_", READ)
def test_a_format_that_reads_the_text_as_it_is_read_here(format_: str) -> None:
    fields_of(index(x={"type": "date_nanos", "format": format_}), parsed("x timestamp_ntz"))


REFUSED = [
    ({"type": "float"}, "", "float, of which no exact type follows: name its type under `columns` (float)"),
    ({"type": "half_float"}, "", "its mapping is half_float"),
    ({"type": "half_float"}, "x float", "which cannot be compared exactly"),
    ({"type": "scaled_float", "scaling_factor": 100}, "", "name its type under `columns` (decimal)"),
    ({"type": "scaled_float", "scaling_factor": 10}, "x decimal(12,2)", "rounds decimal(12,2)"),
    ({"type": "scaled_float", "scaling_factor": 150}, "x decimal(12,2)", "rounds decimal(12,2)"),
    ({"type": "date"}, "", "name its type under `columns` (timestamp, timestamp_ntz, date)"),
    ({"type": "date"}, "x string", "which is read as timestamp, timestamp_ntz, date, not as string"),
    ({"type": "long"}, "x decimal(12,2)", "cuts the decimals of decimal(12,2)"),
    ({"type": "float"}, "x double", "which is read as float, not as double"),
    ({"type": "geo_point"}, "", "name other columns"),
    ({"properties": {"y": PLAIN}}, "", "its mapping is object"),
    ({"properties": {"y": PLAIN}}, "x string", "its mapping is object"),
    ({"type": "nested"}, "", "its mapping is nested"),
    ({"type": "alias", "path": "y"}, "x string", "its mapping is alias"),
    ({"type": "long", "null_value": 0}, "", "its index keeps 0 for null"),
    ({"type": "long", "null_value": 0}, "x bigint", "its index keeps 0 for null"),
    ({"type": "keyword", "normalizer": "lowercase"}, "", "its index keeps what the normalizer lowercase makes of it"),
    ({"type": "keyword", "normalizer": "own"}, "x string", "its index keeps what the normalizer own makes of it"),
    ({"type": "keyword", "index": False, "doc_values": False}, "", "(`index` and `doc_values` are off)"),
    ({"type": "long", "index": "false", "doc_values": "false"}, "x bigint", "(`index` and `doc_values` are off)"),
    ({"type": "text", "index": False}, "", "(`index` and `doc_values` are off)"),
    ({"type": "constant_keyword", "value": "a"}, "", "a search finds its constant in each document"),
    ({"type": "constant_keyword", "value": "a"}, "x string", "a search finds its constant in each document"),
    ({"type": "date", "format": "YYYY-MM-dd"}, "x date", "another moment by its `format` (YYYY-MM-dd)"),
    ({"type": "date", "format": "strict_date||yyyy-dd-MM"}, "x date", "another moment by its `format`"),
    ({"type": "date_nanos", "format": "yyyy-MM-dd'T'hh:mm:ss"}, "x timestamp_ntz", "another moment by its `format`"),
    (None, "x string of field x.y", "a name with a dot is that of a field within an object"),
]  # fmt: skip


@pytest.mark.parametrize(("kept", "column", "words"), REFUSED)
def test_a_field_that_cannot_be_read_exactly_is_refused_by_name(
    kept: dict[str, Any] | None, column: str, words: str
) -> None:
    there = index(x=kept) if kept else index()
    with pytest.raises(UsageError, match=r"the index run-r\.t has a field x\S* that cannot be read") as refused:
        fields_of(there, parsed(column) if column else ())
    assert words in str(refused.value)


def test_columns_have_the_decimals_that_the_index_keeps() -> None:
    there = index(a={"type": "date"}, b={"type": "date_nanos"}, c={"type": "date"}, d={"type": "long"})
    found = columns_of(fields_of(there, parsed("a timestamp_ntz, b timestamp, c date, d bigint")))
    assert [(column.type, column.family) for column in found] == [
        ("timestamp_ntz(3)", "timestamp"), ("timestamp", "instant"), ("date", "date"), ("bigint", "number"),
    ]  # fmt: skip
    with pytest.raises(Missing, match="it has no field yet"):
        fields_of(index(), ())


def answer(**mapping: Any) -> dict[str, Any]:
    return {"run-r.t": {"mappings": mapping, "settings": {"index": {"uuid": "u", "number_of_shards": "2"}}}}


def test_a_field_of_which_a_search_finds_what_no_document_says_is_refused() -> None:
    there = described(
        "run-r.t",
        answer(
            properties={"x": {"type": "keyword", "copy_to": "y"}, "y": PLAIN, "w": PLAIN, "o": {
                "properties": {"p": {"type": "long", "copy_to": ["z", "y"]}}
            }},
            derived={"w": {"type": "keyword"}, "v": {"type": "long"}},
        ),
    )  # fmt: skip
    for name, words in (("y", "`copy_to`"), ("z", "`copy_to`"), ("w", "a script makes it"), ("v", "a script makes it")):
        with pytest.raises(UsageError, match=f"a field {name} that cannot be read exactly: .*{words}"):
            fields_of(there, parsed(f"{name} string"))
    assert len(fields_of(there, parsed("x string, _id string"))) == 2
    with pytest.raises(UsageError, match="`copy_to`"):
        fields_of(described("run-r.t", answer(properties={"y": {"type": "keyword", "copy_to": "y"}})), ())


@pytest.mark.parametrize("dynamic", [False, "false", "false_allow_templates"])
def test_a_column_that_no_search_finds_is_refused(dynamic: object) -> None:
    closed = described("run-r.t", answer(properties={"x": PLAIN}, dynamic=dynamic))
    named = [Wanted(name=name, type="string", source=name) for name in ("x", "_id", "y")]
    assert [each.wanted.name for each in fields_of(closed, named[:2])] == ["x", "_id"]
    with pytest.raises(UsageError, match=r"a field y that cannot be read exactly: its mapping lacks the field"):
        fields_of(closed, named)
    assert len(fields_of(described("run-r.t", answer(properties={"x": PLAIN})), named)) == 3, "one may come yet"


def test_an_alias_or_documents_kept_in_part_or_unsearched_are_refused() -> None:
    assert described("run-r.t", answer(properties={"x": PLAIN})).shards == 2
    with pytest.raises(UsageError, match=r"the index other; it is an alias of run-r\.t"):
        described("other", answer())
    for part in ({"enabled": False}, {"excludes": ["x"]}):
        with pytest.raises(UsageError, match="keeps documents in part"):
            described("run-r.t", answer(_source=part))
    with pytest.raises(UsageError, match="no search finds a field"):
        described("run-r.t", answer(enabled=False))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_arrives_as_it_is(text: str) -> None:
    assert cell(PLAIN, "", json.dumps(text)) == text


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("x string of key", "x: a document has fields alone"),
        ("x string of header y", "x: a document has fields alone"),
        ("x string of field _version", "x: _version is read as tinyint, smallint, int, bigint, not as string"),
        ("x double of field _id", "x: _id is read as string, binary, decimal"),
    ],
)
def test_columns_that_no_document_has(columns: str, words: str) -> None:
    (refused,) = KIND.refusals({"columns": columns})
    assert refused.key == "columns" and words in refused.words


def test_no_prefix_of_a_part_begins_with_another_one() -> None:
    found = [prefix(run, part) for run in ("r1", "R12", "r1-2") for part in ("", "second", "sec")]
    assert len(set(found)) == len(found)
    assert not [(one, other) for one in found for other in found if one != other and one.startswith(other)]
    assert found == [name.lower() for name in found]


@pytest.mark.parametrize("part", [{"_shards": {"failed": 1}}, {"timed_out": True}])
def test_an_answer_in_part_is_none(part: dict[str, Any]) -> None:
    with pytest.raises(StackError, match="of its shards failed"):
        whole(part, "asked")
    whole({"_shards": {"failed": 0}, "timed_out": False}, "asked")


@pytest.mark.parametrize("said", ["1s", "1000ms", "200ms", "1S", "1000000micros", "1000000000nanos"])
def test_an_index_that_shows_within_a_second_what_was_written(said: str) -> None:
    assert in_time(said)


@pytest.mark.parametrize(
    "said",
    ["-1", "0", "0s", "500micros", "999999nanos", "1001ms", "1000001micros", "2s", "30s", "1m", "1h", "1d", "soon"],
)
def test_an_index_that_does_not(said: str) -> None:
    assert not in_time(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("its", "clusters", "where"),
    [
        ("1s", '{"persistent": {"cluster": {"default": {"index": {"refresh_interval": "30s"}}}}}', ""),
        ("-1", "{}", "`refresh_interval: -1`"),
        ("", "{}", ""),
        ("", '{"defaults": {"cluster": {"default": {"index": {"refresh_interval": "1s"}}}}}', ""),
        (
            "",
            '{"persistent": {"cluster": {"default": {"index": {"refresh_interval": "30s"}}}}}',
            "`cluster.default.index.refresh_interval: 30s`",
        ),
    ],
)
def test_an_index_that_is_refreshed_sooner_to_be_read_is_refused(its: str, clusters: str, where: str) -> None:
    told = answer(properties={"x": PLAIN})
    told["run-r.t"]["settings"]["index"] |= {"refresh_interval": its} if its else {}
    with answering(clusters.encode()) as url:
        there = OpenSearchThere(url).server
        if not where:
            return soon(there, described("run-r.t", told))
        with pytest.raises(UsageError, match=r"Say `refresh_interval: 1s`, or nothing, for the run") as refused:
            soon(there, described("run-r.t", told))
        assert where in str(refused.value)


@pytest.mark.slow
def test_a_program_that_has_searched_has_done_so_also_after_its_server_was_killed() -> None:
    index, counted = described("run-r.t", answer(properties={"x": PLAIN})), []
    own = Indexes(server=OpenSearchThere("http://localhost:1").server, prefix="run-r.")
    for every, ours in ((3, 3), (5, 3), (0, 0), (2, 2)):
        search = {"query_total": every, "groups": {OURS: {"query_total": ours}}}
        with answering(json.dumps({"_all": {"total": {"search": search}}}).encode()) as url:
            there = OpenIndex(replace(own, server=OpenSearchThere(url).server), "t", (), ())
            counted.append(there._searched(index))
    assert counted == [False, True, True, True]


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """The address of a web server that answers everything with 200 and this body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("body", "told"), [(b"<html>\n <b>It works!</b></html>", "<html> <b>It works!</b></html>"), (b"", "nothing")]
)
def test_a_web_server_that_is_no_opensearch_is_said_in_words(body: bytes, told: str) -> None:
    words = rf"asked OpenSearch at http\S+ to .*; saw an answer .* no JSON .*: {told}. Is it OpenSearch that answers"
    with answering(body) as url:
        there = OpenSearchThere(url)
        with pytest.raises(StackError, match=words):
            there.describe()
        with pytest.raises(StackError, match=words):
            there.server.exactly("read", "POST", "/_search", {})


def test_an_address_of_opensearch(monkeypatch: pytest.MonkeyPatch) -> None:
    found = OpenSearchThere("https://me:pa%40ss@there:9201")
    assert (found.plain, found.server.user, found.server.password) == ("https://there:9201", "me", "pa@ss")
    assert OpenSearchThere(found.address, ours=True).server == found.server
    assert (found.shared, OpenSearchThere(found.address, ours=True).shared) == (True, False)
    assert "pa@ss" not in repr(found.server)
    assert OpenSearchThere("http://there").address == "http://there:9200"
    monkeypatch.setenv("OPENSEARCH_PASSWORD", "secret")
    assert OpenSearchThere("http://me@there").server.password == "secret"


@pytest.mark.parametrize(
    "given", ["there:9200", "http://", "ftp://there", "http://there:x", "http://me:secret@there/p"]
)
def test_an_address_of_opensearch_that_is_none(given: str) -> None:
    with pytest.raises(UsageError, match="--at opensearch=… must be an address as http://") as refused:
        OpenSearchThere(given)
    assert "secret" not in str(refused.value)

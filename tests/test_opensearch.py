"""The sink `opensearch` and its server: what is read back, how it changes, what is left after a kill or a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.checkers.cells import Row
from harness.component import COMPONENTS, SetsUp
from harness.components.opensearch.address import OpenSearchThere
from harness.components.opensearch.process import OpenSearchServer
from harness.components.opensearch.run_indexes import Indexes
from harness.components.opensearch.server import Refused
from harness.components.opensearch.sink import open_index, refresh
from harness.errors import SetupError, StackError, UsageError
from harness.machine import java
from harness.run import preflight
from harness.scenario import Sink
from harness.session.session import Session
from harness.sinks.json_columns import parsed
from harness.sinks.reading import busy, columns, mark, read
from harness.wait import until
from tests.folders import SCENARIO
from tests.laws import FAULTS
from tests.limits import examples
from tests.planted import is_found, plant
from tests.provided import Own, parts_of, running
from tests.test_sinks import IN_OPENSEARCH, are_as_fine

pytestmark = pytest.mark.stack
WITHIN_S = 60.0
PAYMENTS = """
payments:
  settings:
    number_of_shards: 2
  mappings:
    properties:
      id:
        type: long
      account:
        type: keyword
      amount:
        type: keyword
"""
COLUMNS = "id bigint, account string, amount decimal(38, 9)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchServer]:
    logs = tmp_path_factory.mktemp("logs")
    with Session() as session, running(OpenSearchServer(session, java.find(), logs=logs)) as made:
        yield made


@pytest.fixture
def own(server: OpenSearchServer, request: pytest.FixtureRequest) -> Iterator[Own]:
    with parts_of(server, request) as made:
        yield made


def at(own: Own) -> Indexes:
    found: Indexes = own["opensearch"].at
    return found


def t(own: Own) -> open_index.OpenIndex:
    """The index `t`."""
    return open_index.OpenIndex(at(own), "t", parsed("x bigint"), ())


def make(own: Own, text: str) -> None:
    kind = COMPONENTS["opensearch"]
    assert isinstance(kind, SetsUp)
    kind.set_up(own["opensearch"], text)


def ask(own: Own, method: str, index: str, path: str = "", body: Any = None, **asked: str) -> Any:
    there = at(own)
    return there.server.ask("serve a test", method, f"/{there.named(index)}{path}", body, **asked)


def sent(own: Own, index: str, *documents: str) -> None:
    """Documents as the texts that they are, each under its place as the id."""
    there = at(own)
    for number, text in enumerate(documents):
        path = f"{there.server.url}/{there.named(index)}/_doc/{number}"
        headers = {"Content-Type": "application/json"}
        answer = there.server._pool.request("PUT", path, body=text.encode(), headers=headers)
        assert answer.status < 300, answer.data


def put(own: Own, rows: list[Row]) -> None:
    """Make `payments` hold exactly these rows, under ids of the server's own."""
    if columns(sink("payments"), own) is not None:
        ask(own, "DELETE", "payments")
    make(own, PAYMENTS)
    lines = []
    for id_, account, amount in rows:
        lines.append('{"index": {}}\n')
        lines.append(f'{{"id": {id_ or "null"}, "account": {json.dumps(account)}, "amount": {amount or "null"}}}\n')
    path = f"{at(own).server.url}/{at(own).named('payments')}/_bulk"
    if lines:
        headers = {"Content-Type": "application/json"}
        answer = at(own).server._pool.request("POST", path, body="".join(lines).encode(), headers=headers)
        assert json.loads(answer.data)["errors"] is False


def sink(target: str, columns: str = "", **changes: Any) -> Sink:
    return Sink(kind="opensearch", target=target, options={"columns": columns} if columns else {}, **changes)


@pytest.mark.parametrize("fault", FAULTS)
def test_all_fourteen_planted_faults_are_found(own: Own, fault: str) -> None:
    rows, found, must = plant(fault)
    put(own, found)
    is_found(rows, read(sink("payments", COLUMNS), own), must)


@pytest.mark.parametrize(
    "path", [path for path in IN_OPENSEARCH if "two_systems" not in path.stem], ids=lambda path: path.stem
)
def test_the_sinks_of_a_scenario_that_we_ship_are_as_fine_as_its_expected_rows(
    request: pytest.FixtureRequest, path: Path
) -> None:
    are_as_fine(request, path)


def test_documents_arrive_as_they_were_sent(own: Own) -> None:
    make(own, "t:\n  mappings:\n    properties:\n      x:\n        type: long\n      y:\n        type: keyword\n")
    sent(own, "t", '{"x": 9007199254740993, "y": "\\u00dc \\ud83d\\ude00"}', '{"y": null}', "{}")
    there = read(sink("t"), own)
    assert sorted(there.rows, key=str) == [("9007199254740993", "Ü 😀"), (None, None), (None, None)]
    assert [(column.name, column.type, column.family) for column in there.columns] == [
        ("x", "bigint", "number"), ("y", "string", "text"),
    ]  # fmt: skip
    assert columns(sink("t"), own) == there.columns
    beside = read(sink("t", "doc bigint of field _id, version bigint of field _version"), own)
    assert sorted(beside.rows) == [("0", "1"), ("1", "1"), ("2", "1")]


def test_the_text_of_a_number_is_what_was_sent(own: Own) -> None:
    make(own, "t:\n  mappings:\n    properties:\n      x:\n        type: scaled_float\n        scaling_factor: 100\n")
    sent(own, "t", '{"x": 90071992547409.90}', '{"x": 1.50}')
    assert sorted(read(sink("t", "x decimal(18,2)"), own).rows) == [("1.5",), ("90071992547409.9",)]
    sent(own, "t", '{"x": 1.505}')
    assert "'0' of" in (said := read(sink("t", "x decimal(18,2)"), own).unreadable) and "more decimals" in said


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=500), min_size=1))
def test_any_text_arrives_as_it_is(own: Own, texts: list[str | None]) -> None:
    put(own, [(str(i), text, "1") for i, text in enumerate(texts)])
    assert sorted(read(sink("payments", COLUMNS), own).rows, key=lambda row: int(row[0] or 0)) == [
        (str(i), text, "1") for i, text in enumerate(texts)
    ]


def test_more_documents_than_a_page(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_index, "QUERY", {**open_index.QUERY, "size": 100})
    put(own, [(str(number), "a", "1") for number in range(1001)])
    rows = read(sink("payments", COLUMNS), own).rows
    assert (len(rows), len(set(rows))) == (1001, 1001)


def test_documents_of_one_id_on_two_shards_are_both_read(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_index, "QUERY", {**open_index.QUERY, "size": 1})
    make(own, PAYMENTS)
    for routing in map(str, range(8)):
        ask(own, "PUT", "payments", "/_doc/1", {"id": 1}, routing=routing)
    there = read(sink("payments", "doc string of field _id", key=("doc",)), own)
    assert there.rows == [("1",), ("1",)] and not there.unique


def test_whether_a_key_is_unique(own: Own) -> None:
    make(own, "one:\n  mappings:\n    properties:\n      x:\n        type: long\n")
    for key, unique in (("doc", True), ("x", False)):
        assert read(sink("one", "doc string of field _id, x bigint", key=(key,)), own).unique is unique


def test_each_write_changes_the_mark_and_a_read_does_not(own: Own) -> None:
    assert mark(sink("t"), own) == "no such index"
    make(own, "t:")
    seen = [mark(sink("t"), own)]
    for method, body in (("PUT", {"x": 1}), ("PUT", {"x": 1}), ("DELETE", None)):
        ask(own, method, "t", "/_doc/1", body)
        seen.append(mark(sink("t"), own))
        read(sink("t"), own)
        assert mark(sink("t"), own) == seen[-1]
    ask(own, "DELETE", "t")
    make(own, "t:")
    assert len({*seen, mark(sink("t"), own)}) == 5
    assert busy(sink("t"), own) == ""


def test_a_write_that_nobody_waits_for_is_work(own: Own) -> None:
    put(own, [(str(number), "a", "1") for number in range(50)])
    ask(own, "POST", "payments", "/_refresh")
    slowly = {"requests_per_second": "1", "scroll_size": "1", "wait_for_completion": "false", "conflicts": "proceed"}
    task = ask(own, "POST", "payments", "/_update_by_query", {}, **slowly)["task"]
    said = until("the server at work", lambda: busy(sink("payments"), own), within_s=WITHIN_S)
    # It writes by requests of its own, and either task may be the one that is told.
    assert said.startswith(("indices:data/write/update/byquery", "indices:data/write/bulk"))
    assert at(own).prefix in said
    at(own).server.ask("end it", "POST", f"/_tasks/{task}/_cancel")
    until("the server idle", lambda: not busy(sink("payments"), own), within_s=WITHIN_S)


def test_what_cannot_be_read_is_said(own: Own) -> None:
    missing = read(sink("nowhere"), own)
    assert missing.absent and "Make it in `setup`" in missing.unreadable and columns(sink("nowhere"), own) is None
    make(own, "t:\n  mappings:\n    properties:\n      x:\n        type: float\n")
    assert "has a field x that cannot be read exactly: its mapping is float" in read(sink("t"), own).unreadable
    make(own, f"u:\n  aliases:\n    {at(own).named('other')}: {{}}\n")
    assert "is an alias of" in read(sink("other"), own).unreadable
    ask(own, "POST", "u", "/_close")
    closed = read(sink("u", "x bigint"), own)
    assert not closed.absent and "it said: closed" in closed.unreadable


def test_a_field_that_was_left_out_as_malformed_is_refused(own: Own) -> None:
    field = "type: long\n        ignore_malformed: true"
    make(own, f"t:\n  mappings:\n    properties:\n      x:\n        {field}\n")
    sent(own, "t", '{"x": "no number"}')
    assert "its index has left it out" in read(sink("t"), own).unreadable


def test_a_text_that_no_search_finds_since_it_is_too_long_is_refused(own: Own) -> None:
    field = "type: keyword\n        ignore_above: 4"
    make(own, f"t:\n  mappings:\n    properties:\n      x:\n        {field}\n")
    sent(own, "t", '{"x": "1234"}')
    assert read(sink("t"), own).rows == [("1234",)]
    sent(own, "t", '{"x": "12345"}')
    assert "cannot be read exactly: column x: its index" in read(sink("t"), own).unreadable
    # The index has been refreshed to be read.
    found = [ask(own, "GET", "t", "/_search", q=query)["hits"]["total"]["value"] for query in ("*:*", "x:12345")]
    assert found == [1, 0]


UNLIKE = [
    ("type: constant_keyword\n        value: a", "{}", {"term": {"x": "a"}}),
    ("type: keyword\n      y:\n        type: keyword\n        copy_to: x", '{"y": "a"}', {"term": {"x": "a"}}),
    (
        "type: date\n        format: YYYY-MM-dd",
        '{"x": "2026-06-30"}',
        {"range": {"x": {"lt": "2026-01-31", "format": "yyyy-MM-dd"}}},
    ),
]


@pytest.mark.parametrize(("field", "document", "query"), UNLIKE)
def test_a_field_of_which_a_search_finds_what_no_document_says_is_refused(
    own: Own, field: str, document: str, query: dict[str, Any]
) -> None:
    make(own, f"t:\n  mappings:\n    properties:\n      x:\n        {field}\n")
    sent(own, "t", document)
    column = "x date" if "date" in field else "x string"
    assert "has a field x that cannot be read exactly" in read(sink("t", column), own).unreadable
    ask(own, "POST", "t", "/_refresh")
    assert ask(own, "POST", "t", "/_search", {"query": query})["hits"]["total"]["value"] == 1


def test_an_index_that_is_not_searched_is_refused(own: Own) -> None:
    make(own, "t:\n  mappings:\n    enabled: false\n")
    sent(own, "t", '{"x": "a"}')
    assert "no search finds a field" in read(sink("t", "x string"), own).unreadable


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("settings: {refresh_interval: 30s}", "`refresh_interval: 30s`"),
        ("mappings: {properties: {id: {type: long}, x: {type: long, copy_to: id}}}", "`copy_to` of another field"),
        ("mappings: {properties: {x: {type: long}}, dynamic: false}", "lacks the field and adds none"),
    ],
)
def test_an_index_that_setup_makes_is_looked_at_before_the_run(own: Own, made: str, said: str) -> None:
    make(own, f"t:\n  {made}")
    there = sink("t", "id bigint", expected="select 1::bigint as id from ledger", key=("id",))
    given: Any = SimpleNamespace(parts=own, columns=())
    with pytest.raises(SetupError, match=said):
        preflight.check(replace(SCENARIO, sinks=(there,)), given, given)


def found(own: Own, query: str = "*:*") -> int:
    return int(ask(own, "GET", "t", "/_search", q=query)["hits"]["total"]["value"])


@pytest.mark.parametrize("interval", ["-1", "30s", "0"])
def test_an_index_that_is_refreshed_late_is_refused_and_left_as_it_is(own: Own, interval: str) -> None:
    make(own, "t:\n  settings:\n    refresh_interval: 1s\n")
    ask(own, "PUT", "t", "/_settings", {"index": {"refresh_interval": interval}})
    sent(own, "t", '{"x": 1}')
    there = sink("t", "x bigint")
    assert f"`refresh_interval: {interval}`" in read(there, own).unreadable and found(own) == 0
    with pytest.raises(UsageError, match="for the run"):
        columns(there, own)
    # A program that sets it back is read again, by the next reading.
    ask(own, "PUT", "t", "/_settings", {"index": {"refresh_interval": None}})
    assert read(there, own).rows == [("1",)]


def test_so_is_one_whose_cluster_refreshes_late(own: Own) -> None:
    make(own, "t:")
    setting = "cluster.default.index.refresh_interval"
    for said, word in (("7s", f"`{setting}: 7s`"), (None, "")):
        at(own).server.ask("set it", "PUT", "/_cluster/settings", {"persistent": {setting: said}})
        assert word in read(sink("t", "x bigint"), own).unreadable


def test_a_snapshot_lets_the_index_refresh_itself_first(own: Own) -> None:
    make(own, "t:\n  settings:\n    number_of_shards: 3\n    refresh_interval: 1s\n")
    there = at(own)
    index = t(own).described()
    sent(own, "t", '{"x": 1}', '{"x": 2}')
    refresh.by_itself(there.server, index, t(own)._writes(index), within_s=WITHIN_S)
    assert found(own) == 2
    ask(own, "PUT", "t", "/_settings", {"index": {"refresh_interval": "-1"}})
    sent(own, "t", '{"x": 1}', '{"x": 2}', '{"x": 3}')
    refresh.by_itself(there.server, index, t(own)._writes(index), within_s=0.2)
    assert found(own) == 2, "it asks for no refresh"


def test_a_snapshot_waits_only_for_an_index_that_others_search(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    make(own, "t:\n  settings:\n    number_of_shards: 2\n")
    there, waits = at(own), list[float]()
    by_itself = refresh.by_itself

    def noted(*given: Any, within_s: float) -> None:
        waits.append(within_s)
        by_itself(*given, within_s=within_s)

    monkeypatch.setattr(refresh, "by_itself", noted)

    def rows(wait_ms: int) -> int:
        with t(own).reading(wait_ms=wait_ms) as told:
            return sum(map(len, told.parts))

    sent(own, "t", '{"x": 1}', '{"x": 2}')
    assert [rows(0), rows(2000), rows(2000)] == [2, 2, 2] and waits == []
    index = t(own).described()
    by_itself(there.server, index, {0: 0}, within_s=0.1)
    assert not refresh.searched(there.server, index), "these are ours too"
    assert found(own) == 2
    assert [rows(0), rows(2000)] == [2, 2] and waits == [2.0]


def test_a_search_misses_what_an_id_does_not(own: Own) -> None:
    make(own, "t:\n  settings:\n    refresh_interval: -1\n")
    ask(own, "PUT", "t", "/_create/7", {"x": 1})
    assert found(own, "x:1") == 0
    with pytest.raises(Refused) as refused:
        ask(own, "PUT", "t", "/_create/7", {"x": 1})
    assert refused.value.kind == "version_conflict_engine_exception"


def test_setup_makes_indexes_and_says_what_it_cannot(own: Own) -> None:
    for wrong in ("payments", "payments: 1", "a: [", "Payments:", "t:\n  mappings:\n    nonsense: 1"):
        with pytest.raises(SetupError, match=r"asked opensearch to run the scenario's setup; .* Mend `setup`"):
            make(own, wrong)


def test_who_searched_before_its_server_was_killed_has_searched(server: OpenSearchServer, own: Own) -> None:
    make(own, "t:")
    there, index = at(own), t(own).described()
    sent(own, "t", '{"x": 1}')
    found(own)
    assert t(own)._searched(index)
    server.stop()
    server.start()
    assert not refresh.searched(there.server, index), "it counts from nothing again"
    assert t(own)._searched(index)


def test_it_comes_back_with_what_it_acknowledged_after_a_kill(server: OpenSearchServer, own: Own) -> None:
    make(own, PAYMENTS)
    ask(own, "PUT", "payments", "/_doc/1", {"id": 1})
    before, process = mark(sink("payments"), own), server._process
    assert process is not None
    process.kill()
    process.wait(WITHIN_S)
    with pytest.raises(StackError, match="opensearch ended with signal 9"):
        server.check()
    with pytest.raises(StackError, match=r"asked OpenSearch at .* to describe the index payments; saw "):
        read(sink("payments"), own)
    server.start()
    server.check()
    assert read(sink("payments", COLUMNS), own).rows == [("1", None, None)]
    assert mark(sink("payments"), own) == before
    server.stop()
    # Nobody misses it: it was meant.
    server.check()
    server.start()


def test_a_server_that_is_there_is_left_as_it_was(server: OpenSearchServer) -> None:
    there = OpenSearchThere(server.lent())
    assert there.describe()["version"] == server.describe()["version"] == "2.19.1"
    given = there.provide("rgone", {"": {}, "second": {}})
    first, second = (each.at for each in given.values())
    for own in (first, second):
        own.server.ask("take a document", "PUT", f"/{own.named('t')}/_doc/1", {})
    there.drop("rgone", [""])
    with pytest.raises(Refused):
        first.server.ask("describe", "GET", f"/{first.named('t')}")
    second.server.ask("describe", "GET", f"/{second.named('t')}")
    there.drop("rgone", ["", "second"])
    there.drop("rgone", ["", "second"])
    assert server.server.ask("name all", "GET", "/run-rgone*/_settings") == {}
    there.close()

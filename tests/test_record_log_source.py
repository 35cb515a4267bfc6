"""The source `record_log`: what is served, what is read back, and what a reader's own offset says of it."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.components.record_log.server import RecordLog, answer
from harness.components.record_log.source import OpenLog, RecordLogSource
from harness.errors import HarnessError, SetupError, StackError
from harness.history import History
from harness.load import load
from harness.run.loop import Result
from harness.run.progress.observer import Observer
from harness.run_folder.ledger import Attempts, State
from harness.scenario import Input, Scenario
from harness.session.run_servers import RunServers
from harness.sources import SOURCES
from harness.sources.base import TellsBeginning
from harness.sources.lines import Line, is_line
from harness.sources.producer import Producer
from harness.wait import until
from harness.workloads import make
from harness.workloads.base import Record

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def log() -> Iterator[RecordLog]:
    with closing(RecordLog()) as found:
        yield found


def asked(log: RecordLog, path: str) -> bytes:
    with urlopen(f"{log.placeholders['url']}{path}", timeout=60) as said:
        return bytes(said.read())


def test_what_is_sent_is_served_again_and_read_back(log: RecordLog, tmp_path: Path) -> None:
    source = OpenLog(log)
    workload = make(Input(workload="transactions", records=20), seed=1, root=tmp_path)
    producer = Producer(workload, Attempts(tmp_path / "attempts.log"), source.sender())
    assert asked(log, "/end") == b"0" and asked(log, "/records?start=0&end=0") == b""
    assert [producer.send(n) for n in (7, 13)] == [7, 13]
    producer.close()
    assert source.ends() == producer.reached == {0: 20}
    values = [record.value for record in workload.records()]
    assert asked(log, "/records?start=5&end=8") == asked(log, "/records?end=8&start=5")
    assert asked(log, "/records?start=0&end=20").splitlines() == values
    assert source.read_back(tmp_path / "source.parquet", within_s=1.0) == {0: 20}
    rows = pq.read_table(tmp_path / "source.parquet").to_pylist()
    assert [(row["partition"], row["offset"], row["value"]) for row in rows] == [
        (0, at, value) for at, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", HTTPStatus.NOT_FOUND),
        ("/records", HTTPStatus.BAD_REQUEST),
        ("/records?start=0", HTTPStatus.BAD_REQUEST),
        ("/records?start=0&end=x", HTTPStatus.BAD_REQUEST),
        ("/records?start=0&end=1&end=2", HTTPStatus.BAD_REQUEST),
        ("/records?start=0&end=3", HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE),
        ("/records?start=2&end=1", HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE),
        ("/records?start=-1&end=1", HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE),
    ],
)
def test_what_there_is_not_is_refused(log: RecordLog, path: str, status: HTTPStatus) -> None:
    log.append([b"a", b"b"])
    with pytest.raises(HTTPError) as refused:
        asked(log, path)
    refused.value.close()
    assert refused.value.code == status


@given(values=st.lists(st.binary(min_size=1, max_size=5).filter(is_line), max_size=12), data=st.data())
def test_a_range_is_its_lines(values: list[bytes], data: st.DataObject) -> None:
    end = data.draw(st.integers(0, len(values)))
    start = data.draw(st.integers(0, end))
    status, body = answer([Line(value, 0) for value in values], f"/records?start={start}&end={end}")
    assert status is HTTPStatus.OK and body.split(b"\n")[:-1] == values[start:end]


def test_a_part_of_the_offset_without_a_key_is_refused() -> None:
    def said(offset: str) -> list[str]:
        return [each.words for each in RecordLogSource().refusals({"offset": offset}, None)]

    assert said("a..b") == said(".a") == said("a.") == ["has to have a key before and after each dot"]
    assert said("a.b") == []


def test_a_record_that_is_no_line_is_refused_and_has_no_number(log: RecordLog) -> None:
    answers = OpenLog(log).send([Record(seq, None, value) for seq, value in enumerate([b"a", b"", b"b\nc", b"d"])])
    assert [(each.state, each.offset) for each in answers] == [
        (State.ACKNOWLEDGED, 0), (State.FAILED, None), (State.FAILED, None), (State.ACKNOWLEDGED, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("offset", "line", "found"),
    [
        ("offset", '{"offset": 2}', {0: 2}),
        ("offset", '{"offset": 0, "more": [1]}', {0: 0}),
        ("feed.next", '{"feed": {"next": 1}}', {0: 1}),
        ("feed.next", '{"feed": 1}', None),
        ("offset", '{"topic": {"0": 17}}', None),
        ("offset", '{"logOffset": 4}', None),
        ("offset", "17", None),
        ("offset", "-", None),
        ("offset", "", None),
    ],
)
def test_the_number_stands_where_the_scenario_says(
    log: RecordLog, tmp_path: Path, offset: str, line: str, found: object
) -> None:
    log.append([b"a", b"b"])
    assert OpenLog(log, offset).offsets(line, tmp_path) == found


@pytest.mark.parametrize("number", ["3", "-1", "true", '"1"', "1.0", "null", "{}"])
def test_what_is_no_number_of_a_record_is_an_error(log: RecordLog, tmp_path: Path, number: str) -> None:
    log.append([b"a", b"b"])
    with pytest.raises(HarnessError, match=r"asked for the number of the next record at `offset`.*there are 2 records"):
        OpenLog(log).offsets(f'{{"offset": {number}}}', tmp_path)


def test_the_number_of_the_last_record_is_one_less(log: RecordLog, tmp_path: Path) -> None:
    log.append([b"a", b"b"])
    source = OpenLog(log, inclusive=True)
    assert [source.offsets(f'{{"offset": {number}}}', tmp_path) for number in (-1, 0, 1)] == [{0: 0}, {0: 1}, {0: 2}]
    with pytest.raises(HarnessError, match="of the last record"):
        source.offsets('{"offset": 2}', tmp_path)


def test_a_record_is_read_whole_whatever_else_breaks_lines(log: RecordLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "pipelines" / "python_source"))
    feed = importlib.import_module("feed")
    records = ["plain", *(f"before{breaks}after" for breaks in "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e"), "a\u2028"]
    log.append([record.encode() for record in records])
    reader = feed.FeedReader({"url": log.placeholders["url"], "limit": "40"})
    assert list(reader.read(feed.Numbers(0, len(records)))) == [(record,) for record in records]
    assert list(reader.read(feed.Numbers(1, 1))) == []


def planned(checkpoint: Path, batch: int, line: str) -> None:
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    hidden = checkpoint / "offsets" / f".{batch}.x.tmp"
    hidden.write_text(f"v1\n{{}}\n{line}")
    hidden.rename(checkpoint / "offsets" / str(batch))


def test_a_reader_that_steps_back_is_followed(log: RecordLog, tmp_path: Path) -> None:
    source = OpenLog(log, "position")
    assert isinstance(source, TellsBeginning)
    log.append([b"x"] * 50)
    with closing(Observer(tmp_path, source.offsets, History(None), begins=source.begins)) as observer:
        for batch, position in enumerate([0, 40, 10, 10, 50]):
            planned(tmp_path / "c", batch, json.dumps({"position": position}))
        until("the last batch", lambda: observer.newest_batch() == 4, within_s=60.0)
        assert observer.planned() == {0: 50}
        assert [observer.took_nothing(tmp_path / "c", batch) for batch in range(5)] == [True, False, True, True, False]
        (query,) = observer.queries()
        assert [batch.ranges[0] for batch in query.batches] == [(0, 0), (0, 40), (40, 10), (10, 10), (10, 50)]


def test_a_checkpoint_begun_anew_in_its_place_is_another_one(log: RecordLog, tmp_path: Path) -> None:
    source = OpenLog(log, "position")
    log.append([b"x"] * 50)
    with closing(Observer(tmp_path, source.offsets, History(None), begins=source.begins)) as observer:
        for batch, position in enumerate([0, 40]):
            planned(tmp_path / "c", batch, json.dumps({"position": position}))
            (tmp_path / "c" / "commits").mkdir(exist_ok=True)
            (tmp_path / "c" / "commits" / str(batch)).touch()
        until("the commit", lambda: observer.committed() == {0: 40}, within_s=60.0)
        shutil.rmtree(tmp_path / "c")
        planned(tmp_path / "c", 0, json.dumps({"position": 0}))
        until("the other checkpoint", lambda: len(observer.queries()) == 2, within_s=60.0)
        assert observer.committed() == {}, "what the first one had committed is not the second one's"
        assert [query.batches[-1].batch for query in observer.queries()] == [1, 0]


def test_an_offset_that_says_nothing_ends_the_run(log: RecordLog, tmp_path: Path) -> None:
    source = OpenLog(log, "position")
    with closing(Observer(tmp_path, source.offsets, History(None), begins=source.begins)) as observer:
        planned(tmp_path / "c", 0, '{"position": 1}')

        def told() -> bool:
            try:
                observer.healthy()
            except HarnessError as failure:
                return "there are 0 records" in str(failure)
            return False

        until("the error", told, within_s=60.0)


@pytest.mark.stack
@pytest.mark.prove
def test_an_offset_without_the_key_is_shown(run_scenario: Callable[[Scenario], Result]) -> None:
    scenario = load(ROOT / "scenarios" / "sources" / "python_source_kept_by_id_mid_batch.yaml")
    wrong = replace(scenario.input, source_options={"offset": "place"})
    shown = r'its offsets are not of the source record_log: \{"position": ?\d+\}'
    with pytest.raises(SetupError, match=shown):
        run_scenario(replace(scenario, input=wrong, timeout_s=60.0))


def test_a_run_has_a_server_of_its_own_which_ends_with_it() -> None:
    servers = RunServers("record_log", RecordLog)
    servers.start()
    kind, asked_for = (
        SOURCES["record_log"],
        Input(source="record_log", source_options={"offset": "a.b", "inclusive": True}),
    )
    given = {each.label: each for each in servers.provide("r1", {"": {}}).values()}
    other = servers.provide("r2", {"": {}})[""]
    source = kind.open(asked_for, given)
    assert isinstance(source, OpenLog) and (source.offset, source.inclusive) == ("a.b", True)
    source.send([Record(0, None, b"a")])
    assert asked(given["record_log"].at, "/end") == b"1" and asked(other.at, "/end") == b"0"
    servers.check()
    servers.drop("r1", ["", "other"])
    servers.drop("r1", [""])
    assert not given["record_log"].at.alive() and other.at.alive()
    servers.close()
    assert not other.at.alive()


def test_a_server_that_died_is_said(log: RecordLog) -> None:
    servers = RunServers("record_log", lambda: log)
    servers.provide("r1", {"second": {}})
    log.close()
    with pytest.raises(StackError, match=r"record_log\.second of the run r1 answers no more"):
        servers.check()


def test_a_port_that_cannot_be_had_is_said() -> None:
    def refused() -> RecordLog:
        raise OSError(98, "Address already in use")

    with pytest.raises(StackError, match="asked for a loopback port for record_log; Address already in use"):
        RunServers("record_log", refused).provide("r1", {"": {}})

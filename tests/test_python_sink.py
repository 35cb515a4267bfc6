"""The sink `python`: code of the user's own that reads rows, in real processes; whatever that code does."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any

import psutil
import pyarrow as pa
import pytest

from harness import load as scenarios
from harness.checkers.schema_check import folded, folding_note
from harness.components.python import callee, calls, places
from harness.components.python.namespaces import Namespaces, RunNamespace
from harness.components.python.sink.arrow_types import refusal
from harness.errors import HarnessError, ScenarioError, StackError, UsageError
from harness.load import dump
from harness.resources import Resources
from harness.run.baseline.runs import digest
from harness.run.loop import Result
from harness.run_folder.store import digest as file_sum
from harness.scenario import Pipeline, Scenario, Sink, Word
from harness.session import reaper
from harness.session.session import Session
from harness.sinks import counted
from harness.sinks.arrow import FETCH_ROWS
from harness.sinks.reading import busy, columns, keep, mark, opened, read, tried
from harness.sinks.table import SinkTable, load, save
from harness.stacks.needed_parts import code, parts
from harness.wait import Waiting, until
from tests import arrow_values
from tests.arrow_values import Value, payments
from tests.folders import recorded
from tests.laws import FAULTS
from tests.limits import PROCESS_S
from tests.planted import is_found, plant
from tests.provided import Own

HEAD = "import os, sys, time, threading, subprocess, signal\nimport pyarrow as pa\nfrom pathlib import Path\n\n\n"
TWO = 'pa.table({"id": [1, 2], "account": ["a", None]})'
GONE_S = 120.0


def reader(*, within_s: float = 30.0, target: str = "readback:rows", options: str = "{}", part: str = "") -> Sink:
    return Sink(kind="python", target=target, part=part, options={"within": within_s, "options": options})


class World:
    """A session with namespaces, and a folder for the user's code."""

    def __init__(self, session: Session, folder: Path) -> None:
        self.session, self.folder = session, folder
        self.namespaces = Namespaces(session, session.folder / "runs")
        self.namespaces.start()

    def wrote(self, text: str, name: str = "readback") -> Path:
        """A module."""
        path = self.folder / f"{name}.py"
        path.write_text(HEAD + dedent(text))
        return path

    def given(self, *sinks: Sink, run_id: str = "r1") -> Own:
        """What a run gets that reads these sinks."""
        given = parts(Scenario(name="", pipeline=PIPELINE, sinks=sinks, path=str(self.folder / "it.yaml")))
        asked = {label.partition(".")[2]: each for label, each in given.items() if label.startswith("python")}
        return {each.label: each for each in self.namespaces.provide(run_id, asked).values()}

    def says(self, body: str, **more: Any) -> Own:
        """A run whose reader has this body."""
        self.now_says(body)
        return self.given(reader(**more))

    def now_says(self, body: str) -> None:
        """The reader has another body."""
        self.wrote("def rows(namespace):\n" + "".join(f"    {line}\n" for line in dedent(body).strip().splitlines()))


PIPELINE = Pipeline(entry="pay.py")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "pytest.ini").touch()
    with Session(temporary=tmp_path) as session:
        yield World(session, folder)


def run_namespace(own: Own, label: str = "python") -> RunNamespace:
    found: RunNamespace = own[label].at
    return found


def hurried(own: Own, *, within_s: float) -> Own:
    """The same with less time for each reading: its module was read in peace."""
    at = run_namespace(own)
    code = {key: replace(each, within_s=within_s) for key, each in at.code.items()}
    return {"python": replace(own["python"], at=replace(at, code=code))}


# --- what is read


@pytest.mark.subprocess
@pytest.mark.parametrize("fault", FAULTS)
def test_all_fourteen_planted_faults_are_found(world: World, fault: str) -> None:
    good, found, must = plant(fault)
    half = len(found) // 2
    for name, part in (("a", found[:half]), ("b", found[half:])):
        with pa.OSFile(str(world.folder / f"{name}.arrow"), "wb") as file, pa.ipc.new_file(file, SCHEMA) as out:
            out.write_table(payments(part))
    own = world.says(
        f"""
        for name in "ab":
            yield pa.ipc.open_file(pa.OSFile({str(world.folder)!r} + f"/{{name}}.arrow")).read_all()
        """
    )
    is_found(good, read(reader(), own), must)


SCHEMA = payments([]).schema
EXACT: list[Value] = [
    *arrow_values.EXACT,
    (pa.int8(), -128, "number", "-128"),
    (pa.uint8(), 255, "number", "255"),
    (pa.uint64(), 2**64 - 1, "number", "18446744073709551615"),
    (pa.decimal128(38, 38), Decimal("1E-38"), "number", "0." + "0" * 37 + "1"),
    (pa.large_string(), "ü", "text", "ü"),
    (pa.large_binary(), b"", "bytes", ""),
    (pa.date32(), date(1, 1, 1), "date", "0001-01-01"),
    (pa.timestamp("s"), datetime(1600, 1, 1), "timestamp", "1600-01-01T00:00:00.000000"),
    (pa.timestamp("ms"), datetime(2026, 1, 1, 0, 0, 0, 1000), "timestamp", "2026-01-01T00:00:00.001000"),
    (pa.timestamp("s", "UTC"), datetime(2300, 1, 1, tzinfo=UTC), "instant", "2300-01-01T00:00:00.000000Z"),
    (pa.timestamp("us", "Asia/Tokyo"), datetime(2026, 1, 1, tzinfo=UTC), "instant", "2026-01-01T00:00:00.000000Z"),
    (pa.time64("us"), time(1, 2, 3, 4), "time", "01:02:03.000004"),
    (pa.time32("s"), time(1, 2, 3), "time", "01:02:03.000000"),
]


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory: pytest.TempPathFactory) -> SinkTable:
    """One row with all of them, read once: a reading is two processes of Python."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "pytest.ini").touch()
    table = pa.table({f"x{place}": pa.array([case[1]], case[0]) for place, case in enumerate(EXACT)})
    with pa.OSFile(str(folder / "x.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as out:
        out.write_table(table)
    with Session(temporary=tmp_path_factory.mktemp("session")) as session:
        own = World(session, folder).says(f"return pa.ipc.open_file({str(folder / 'x.arrow')!r}).read_all()")
        found = read(reader(), own)
        assert columns(reader(), own) == found.columns
    return found


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("place", "case"), [pytest.param(place, case, id=str(case)) for place, case in enumerate(EXACT)]
)
def test_every_type_arrives_exactly(side_by_side: SinkTable, place: int, case: Value) -> None:
    _, _, family, cell = case
    column = side_by_side.columns[place]
    assert (side_by_side.unreadable, len(side_by_side.columns), len(side_by_side.rows)) == ("", len(EXACT), 1)
    assert (column.name, column.family, side_by_side.rows[0][place]) == (f"x{place}", family, cell)


STRANGE = [
    pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.time64("ns"), pa.date64(), pa.duration("us"), pa.float16(),
    pa.decimal256(60, 2), pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64()),
    pa.dictionary(pa.int32(), pa.string()), pa.null(), pa.binary(4), pa.month_day_nano_interval(), pa.uuid(),
    pa.string_view(), pa.json_(), pa.decimal128(5, -2),
]  # fmt: skip


@pytest.mark.parametrize("kind", STRANGE, ids=str)
def test_a_type_that_cannot_be_compared_exactly_is_refused_by_name(kind: pa.DataType) -> None:
    said = refusal(pa.schema([("id", pa.int64()), ("x", kind)]))
    assert said.startswith(f"it gave a column x of type {kind}, which cannot be compared exactly. ")


@pytest.mark.subprocess
def test_a_strange_type_makes_the_sink_unreadable(world: World) -> None:
    own = world.says('return pa.table({"id": [1], "x": pa.array([1], pa.timestamp("ns"))})')
    assert "readback:rows for its rows; it gave a column x of type timestamp[ns]" in read(reader(), own).unreadable


@pytest.mark.subprocess
@pytest.mark.parametrize(
    "body",
    [
        f"return {TWO}",
        f"return {TWO}.to_batches()[0]",
        f"return {TWO}.to_reader()",
        f"return {TWO}.to_batches()",
        f"yield {TWO}.slice(0, 0)\nyield {TWO}.slice(0, 1)\nyield {TWO}.slice(1).to_batches()[0]",
    ],
)
def test_rows_are_taken_in_each_form_that_pyarrow_has(world: World, body: str) -> None:
    found = read(reader(), world.says(body))
    assert (found.unreadable, found.rows) == ("", [("1", "a"), ("2", None)])


@pytest.mark.subprocess
def test_no_rows_is_an_empty_sink_and_nothing_at_all_is_none_yet(world: World) -> None:
    own = world.says(f"yield {TWO}.schema.empty_table()")
    found = read(reader(), own)
    assert (found.unreadable, found.rows, len(found.columns)) == ("", [], 2)
    assert mark(reader(), own).startswith("0 rows")
    world.wrote("def rows(namespace):\n    return iter(())\n")
    found = read(reader(), own)
    assert found.absent and "gave neither a batch nor a schema" in found.unreadable
    assert columns(reader(), own) is None and mark(reader(), own) == "nothing yet"


@pytest.mark.subprocess
def test_its_mark_is_that_of_the_rows_and_not_of_their_order_or_batches(world: World) -> None:
    own = world.says(f"return {TWO}")
    seen = mark(reader(), own)
    world.now_says(f"yield {TWO}.slice(1)\nyield {TWO}.slice(0, 1)")
    assert mark(reader(), own) == seen
    others = set()
    for body in (f"yield {TWO}\nyield {TWO}", f"return {TWO}.slice(1)", f'return {TWO}.rename_columns(["id", "b"])'):
        world.now_says(body)
        others.add(mark(reader(), own))
    assert len({seen, *others}) == 4


@pytest.mark.subprocess
def test_what_it_is_told(world: World) -> None:
    own = world.says(
        """
        given = [namespace.name, namespace.path, namespace.run, namespace.options["table"]]
        words = [*given, os.environ["TOKEN_OF_A_TEST"], os.getcwd()]
        return pa.table({"said": words})
        """,
        options='{"table": "t"}',
        part="second",
    )
    os.environ["TOKEN_OF_A_TEST"] = "secret"
    try:
        found = read(reader(options='{"table": "t"}', part="second"), own)
    finally:
        del os.environ["TOKEN_OF_A_TEST"]
    given = own["python.second"]
    assert [row[0] for row in found.rows][:5] == [
        given.placeholders["namespace"], given.placeholders["path"], "r1", "t", "secret",
    ]  # fmt: skip
    assert given.placeholders["namespace"] == "onceproof_r1_second" and Path(given.placeholders["path"]).is_dir()


@pytest.mark.subprocess
def test_it_is_read_anew_each_time_and_may_change_meanwhile(world: World) -> None:
    own = world.says(f"return {TWO}")
    assert len(read(reader(), own).rows) == 2
    world.wrote(f"def rows(namespace):\n    return {TWO}.slice(1)\n")
    assert len(read(reader(), own).rows) == 1


@pytest.mark.subprocess
def test_no_cache_of_ours_is_left_beside_the_code(world: World) -> None:
    read(reader(), world.says(f"return {TWO}"))
    assert [path.name for path in sorted(world.folder.iterdir())] == ["pytest.ini", "readback.py"]
    assert not [*run_namespace(world.given(reader(), run_id="r2")).scratch.iterdir()]


@pytest.mark.subprocess
def test_what_it_prints_disturbs_nothing(world: World) -> None:
    own = world.says(
        f"""
        print("noise" * 100_000)
        os.write(1, b"\\xff" * 10_000)
        os.write(2, b"ARROW1")
        sys.stdout.close()
        os.closerange(0, 3)
        return {TWO}
        """
    )
    assert len(read(reader(), own).rows) == 2


@pytest.mark.subprocess
def test_a_million_rows_come_in_small_parts(world: World) -> None:
    own = world.says(
        """
        for at in range(10):
            yield pa.table({"id": range(at * 100_000, (at + 1) * 100_000), "text": ["x" * 10] * 100_000})
        """
    )
    found = opened(reader(), own)
    assert found is not None
    before = psutil.Process().memory_info().rss
    with found.reading() as reading:
        sizes = [len(part) for part in reading.parts]
    assert sum(sizes) == 1_000_000 and max(sizes) <= FETCH_ROWS
    # The stream has 26 MB, and its rows as Python's objects 150 MB and more.
    assert psutil.Process().memory_info().rss - before < 100_000_000
    assert mark(reader(), own).startswith("1000000 rows")


@pytest.mark.subprocess
def test_a_snapshot_keeps_it(world: World, tmp_path: Path) -> None:
    assert keep(tmp_path / "kept", 0, reader(), world.says(f"return {TWO}"), rows_max=10, wait_ms=1000) == 2
    kept = load(tmp_path / "kept", 0)
    assert kept is not None and kept.rows == [("1", "a"), ("2", None)]


@pytest.mark.subprocess
def test_nobody_can_try_what_it_leaves_out_and_that_is_said(world: World, tmp_path: Path) -> None:
    own, unsaid = world.says(f"return {TWO}"), reader()
    untried = tried(unsaid, read(unsaid, own), own, after={})
    assert (untried.folds, untried.note) == (None, "")
    assert "say `view: complete`" in folded(unsaid, untried)
    sink = replace(unsaid, complete=True)
    table = tried(sink, read(sink, own), own, after={})
    assert not folded(sink, table) and not folding_note(sink, table)
    save(tmp_path, 0, table)
    kept = load(tmp_path, 0)
    assert kept is not None and kept.folds is None and kept.folding == ""
    assert kept.note == "its rows are those that readback:rows gives: a repetition that it leaves out does not show"
    folding = replace(sink, folds=True)
    table = tried(folding, read(folding, own), own, after={})
    assert table.folds and folding_note(folding, table).endswith("a repetition does not show in it")


# --- what it does wrong


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return [1]", "it gave an object of type int among its batches"),
        ("return 5", "it gave an object of type int, and not tables or batches of pyarrow"),
        ("return None", "it gave an object of type NoneType, and not tables"),
        ('return {"id": [1]}', "it gave an object of type dict, and not tables"),
        (f"yield {TWO}\nyield b'x'", "it gave an object of type bytes among its batches"),
        (f"yield {TWO}\nyield pa.table({{'id': ['x'], 'account': ['a']}})", "and a later one has id string, account"),
        (f"yield {TWO}\nyield {TWO}.select(['id'])", "columns id int64, account string, and a later one has id int64"),
        (f"yield {TWO}\nyield {TWO}.select(['account', 'id'])", "and a later one has account string, id int64"),
        ("yield pa.table([[1], [2]], names=['id', 'id'])", "its batches have the column 'id' twice"),
        ("yield pa.table({})", "its batches have no column"),
        (
            "yield pa.table({'x': pa.StringArray.from_buffers(1, pa.py_buffer(b'\\0\\0\\0\\0\\1\\0\\0\\0'),"
            " pa.py_buffer(b'\\xff'))})",
            "a batch of it is damaged",
        ),
    ],
)
def test_what_it_should_not_give_makes_the_sink_unreadable(world: World, body: str, words: str) -> None:
    found = read(reader(), world.says(body))
    assert words in found.unreadable and found.unreadable.startswith("asked readback:rows for its rows; ")
    assert not found.absent and found.rows == []


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise ValueError('no\\nroute')", "it raised ValueError: no route, at readback.py:7 in rows (`raise"),
        (f"yield {TWO}\nraise OSError", "it raised OSError, at readback.py:8 in rows (`raise OSError`)"),
        (f"yield {TWO}\nsys.exit(0)", "it raised SystemExit: 0, at readback.py:8"),
        (f"yield {TWO}\nraise KeyboardInterrupt", "it raised KeyboardInterrupt, at readback.py:8"),
        ("raise RuntimeError('x' * 100_000)", " …, at readback.py:7"),
        (
            "class Bad(Exception):\n    def __str__(self): raise ValueError\nraise Bad",
            "(its words cannot be had: ValueError), at readback.py:9",
        ),
        (f"yield {TWO}\nos._exit(0)", "its process ended with exit status 0 before it had come to its end"),
        (
            "print('so far')\nsys.stdout.flush()\nos._exit(3)",
            "exit status 3 before it had come to its end. It printed last: so far",
        ),
        (f"yield {TWO}\nos.kill(os.getpid(), signal.SIGKILL)", "its process was killed by SIGKILL before"),
        (
            "import ctypes\nctypes.string_at(0)",
            "was killed by SIGSEGV before it had come to its end. It printed last: ",
        ),
    ],
)
def test_one_that_fails_is_no_shorter_sink_and_says_where(world: World, body: str, words: str) -> None:
    own = world.says(body)
    with pytest.raises(StackError) as failure:
        read(reader(), own)
    assert words in str(failure.value) and len(str(failure.value)) < 1200
    assert str(failure.value).startswith("asked readback:rows for its rows; ")
    with pytest.raises(StackError):
        mark(reader(), own)


@pytest.mark.subprocess
def test_a_system_that_is_away_is_told_to_who_takes_a_snapshot(world: World, tmp_path: Path) -> None:
    away = world.folder / "away"
    own = world.says(f"if Path({str(away)!r}).exists(): raise ConnectionError('refused')\nreturn {TWO}")
    away.touch()
    with pytest.raises(StackError, match="it raised ConnectionError: refused"):
        keep(tmp_path / "kept", 0, reader(), own, rows_max=10, wait_ms=1000)
    assert load(tmp_path / "kept", 0) is None
    away.unlink()
    assert keep(tmp_path / "kept", 0, reader(), own, rows_max=10, wait_ms=1000) == 2


@pytest.mark.subprocess
def test_the_places_are_those_of_the_users_code_alone(world: World) -> None:
    world.wrote("import json\ndef opened(text):\n    return json.loads(text)\n", "beside")
    own = world.says("import beside\nreturn beside.opened('{')")
    with pytest.raises(StackError) as failure:
        read(reader(), own)
    first, then = (
        "readback.py:8 in rows (`return beside.opened('{')`)",
        "beside.py:8 in opened (`return json.loads(text)`)",
    )
    assert str(failure.value).endswith(f", at {first}, then {then}")


@pytest.mark.subprocess
@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        f"yield {TWO}\ntime.sleep(600)",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.kill(os.getpid(), signal.SIGSTOP)",
        f"while True: yield {TWO}.slice(0, 0)",
    ],
)
def test_one_that_hangs_is_ended_by_its_deadline(world: World, body: str) -> None:
    own = hurried(world.says(body), within_s=2.0)
    with pytest.raises(StackError, match=r"readback:rows for its rows; it had not come to its end after 2 s"):
        read(reader(), own)
    mark = f"{reaper.MARKER}={world.session.id}"
    assert [row for row in reaper.table().values() if reaper.carries(row.id.pid, mark)] == []


def lives(pid: int) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.mark.subprocess
@pytest.mark.parametrize("ends", ["", "time.sleep(600)", "raise ValueError"])
def test_what_it_has_started_is_killed_with_it(world: World, ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pids = world.folder / "pids"

    def started(what: str, condition: Callable[[], bool], **more: Any) -> bool:
        """The time for it begins when they are there."""
        until(what, lambda: condition() or (pids.exists() and pids.read_text()), within_s=PROCESS_S)
        return until(what, condition, **more)

    monkeypatch.setattr(calls, "until", started)
    own = world.says(
        f"""
        held = subprocess.Popen(["sleep", "600"])
        apart = subprocess.Popen(["setsid", "sleep", "601"], start_new_session=True)
        if not (forked := os.fork()):
            os.setsid()
            time.sleep(602)
        threading.Thread(target=time.sleep, args=(603,)).start()
        Path({str(pids)!r}).write_text(f"{{held.pid}} {{apart.pid}} {{forked}} {{os.getpid()}}")
        yield {TWO}
        {ends}
        """
    )
    if ends:
        with pytest.raises(StackError):
            read(reader(), hurried(own, within_s=0.5))
    else:
        assert len(read(reader(), own).rows) == 2
    gone = [int(pid) for pid in pids.read_text().split()]
    assert len(gone) == 4

    def dead() -> bool | Waiting:
        left = [pid for pid in gone if lives(pid)]
        return not left or Waiting(f"processes {left}")

    until("all of them to be gone", dead, within_s=GONE_S)


@pytest.mark.subprocess
def test_a_fork_that_comes_back_out_of_it_writes_nothing(world: World) -> None:
    own = world.says(
        """
        forked = os.fork()
        for at in range(50):
            yield pa.table({"id": [at if forked else -1]})
        """
    )
    assert sorted(int(row[0] or 0) for row in read(reader(), own).rows) == [*range(50)]


@pytest.mark.subprocess
def test_a_sink_that_never_gives_the_same_rows_never_settles(world: World) -> None:
    own = world.says('return pa.table({"id": [time.time_ns()]})')
    assert len({mark(reader(), own) for _ in range(3)}) == 3


# --- the namespace


@pytest.mark.subprocess
def test_its_module_makes_and_removes_the_namespace(world: World) -> None:
    told = world.folder / "told"
    world.wrote(
        f"""
        def say(word, namespace):
            with open({str(told)!r}, "a") as file:
                file.write(f"{{word}} {{namespace.name}} {{namespace.options}}\\n")

        def prepare(namespace): say("made", namespace)
        def remove(namespace): say("removed", namespace)
        def busy(namespace): return "a copy of " + namespace.name
        def rows(namespace): return {TWO}
        def others(namespace): return {TWO}
        """
    )
    sinks = [reader(), reader(target="readback:others"), reader(options='{"table": "t"}')]
    own = world.given(*sinks)
    assert [len(read(sink, own).rows) for sink in sinks] == [2, 2, 2]
    assert busy(sinks[0], own) == "a copy of onceproof_r1"
    made = ["made onceproof_r1 {}", "made onceproof_r1 {'table': 't'}"]
    assert told.read_text().splitlines() == made
    world.namespaces.drop("r1", [""])
    world.namespaces.drop("r1", [""])
    assert told.read_text().splitlines() == [*made, *(line.replace("made", "removed") for line in made)]
    assert not run_namespace(own).namespace.path.exists()
    assert not [*world.session.folder.glob("*closing-message*")]


@pytest.mark.subprocess
def test_one_without_more_functions_is_asked_for_none(world: World) -> None:
    own = world.says(f"return {TWO}")
    assert busy(reader(), own) == ""
    assert not [*world.session.folder.glob("*closing-message*")]


@pytest.mark.subprocess
@pytest.mark.parametrize("rest", ["None", "False", "0", '""', "[]"])
def test_what_is_nothing_is_at_rest(world: World, rest: str) -> None:
    world.wrote(f"""
        def busy(namespace): return {rest}
        def rows(namespace): return {TWO}
        """)
    assert busy(reader(), world.given(reader())) == ""


@pytest.mark.subprocess
@pytest.mark.parametrize("how", ["drop", "session", "killed"])
def test_a_namespace_that_is_not_removed_is_told_and_tried_again(tmp_path: Path, how: str) -> None:
    folder, told = tmp_path / "theirs", tmp_path / "told"
    folder.mkdir()
    (folder / "pytest.ini").touch()
    text = f"""
        def remove(namespace):
            if not os.path.exists({str(tmp_path / "up")!r}):
                raise OSError("the system is away")
            with open({str(told)!r}, "a") as file:
                file.write(namespace.name)
        def rows(namespace): return {TWO}
        """
    if how == "killed":
        (tmp_path / "up").touch()
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path), str(folder), text], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None and child.stdout.readline() == "made\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        # The file is there before what is written into it is.
        until("the reaper to remove the namespace", lambda: told.exists() and told.read_text(), within_s=GONE_S)
        assert told.read_text() == "onceproof_r1"
        return
    with Session(temporary=tmp_path) as session:
        world = World(session, folder)
        world.wrote(text)
        world.given(reader())
        with pytest.raises(
            StackError, match=r"asked readback:remove; it raised OSError: the system is away, at readback"
        ):
            world.namespaces.drop("r1", [""])
        (tmp_path / "up").touch()
        if how == "drop":
            world.namespaces.drop("r1", [""])
            assert told.read_text() == "onceproof_r1"
    assert told.read_text() == "onceproof_r1" and not session.folder.exists()


KILLED = """
import sys
from pathlib import Path
from harness.session import reaper
from harness.session.session import Session
from harness.wait import pause
from tests.test_python_sink import World, reader
session = Session(temporary=Path(sys.argv[1]))
world = World(session, Path(sys.argv[2]))
world.wrote(sys.argv[3])
world.given(reader())
print("made", flush=True)
pause(600)
"""


@pytest.mark.subprocess
def test_a_namespace_whose_making_fails_is_removed_and_no_run_begins(world: World) -> None:
    removed = world.folder / "removed"
    world.wrote(
        f"""
        def prepare(namespace): raise PermissionError("may not create a schema")
        def remove(namespace): Path({str(removed)!r}).touch()
        def rows(namespace): return {TWO}
        """
    )
    with pytest.raises(StackError, match=r"asked readback:prepare; it raised PermissionError: may not create a schema"):
        world.given(reader())
    assert removed.exists() and not [*world.session.folder.glob("*closing-message*")]


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "raise ImportError('no driver')\ndef rows(namespace): ...",
            "it raised ImportError: no driver, at readback.py:6",
        ),
        ("def rows(namespace):\nreturn", "it raised IndentationError: expected an indented block after function"),
        ("rows = 5", "its module has no function rows"),
        (
            "from os import *\ndef rows(namespace): ...",
            "its module has a remove that it imports from elsewhere: write `def ",
        ),
        ("import no_such_module_at_all\ndef rows(namespace): ...", "it raised ModuleNotFoundError: No module named"),
    ],
)
def test_code_that_cannot_be_called_is_told_before_the_run_begins(world: World, text: str, words: str) -> None:
    world.wrote(text)
    with pytest.raises(HarnessError) as failure:
        world.given(reader())
    assert words in str(failure.value) and str(failure.value).startswith("asked for readback:rows; ")
    assert not [*world.session.folder.glob("*closing-message*")]


@pytest.mark.subprocess
def test_a_module_that_has_the_name_of_another_one_is_refused(world: World) -> None:
    world.wrote(f"def rows(namespace): return {TWO}", "json")
    with pytest.raises(UsageError, match=r"its module json is found at .*: give the module another name"):
        world.given(reader(target="json:rows"))


@pytest.mark.subprocess
def test_a_reader_that_is_gone_meanwhile_is_told(world: World) -> None:
    own = world.says(f"return {TWO}")
    (world.folder / "readback.py").unlink()
    assert "names the module readback, and there is no readback.py in" in read(reader(), own).unreadable


def test_a_run_without_the_namespace_has_no_rows() -> None:
    assert opened(reader(), {}) is None
    assert opened(reader(), {"python.second": Resources(label="python.second", at=None)}) is None


# --- the file


SCENARIO = """\
name: x
pipeline: jobs/pay.py
sink:
  python: {target}
  expected: select id from ledger
  key: [id]
"""


def project(folder: Path, text: str, *, readers: dict[str, str]) -> Path:
    """A project with a scenario in its own folder."""
    for name, words in {"pytest.ini": "", "jobs/pay.py": "", "scenarios/it.yaml": text, **readers}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(words)
    return folder / "scenarios" / "it.yaml"


@pytest.mark.parametrize(
    ("where", "target"),
    [
        ("scenarios/readback.py", "readback:rows"),
        ("jobs/readback.py", "readback:rows"),
        ("readback.py", "readback:rows"),
        ("jobs/our/sinks/readback.py", "our.sinks.readback:rows"),
        ("jobs/our/__init__.py", "our:rows"),
    ],
)
def test_a_module_is_found_beside_the_scenario_or_its_program(tmp_path: Path, where: str, target: str) -> None:
    path = project(tmp_path, SCENARIO.format(target=target), readers={where: "def rows(namespace): ..."})
    scenario = scenarios.load(path)
    assert tmp_path / where in code(scenario)
    assert scenario.sinks[0].target == target and counted(scenario.sinks) is None


READER = "names readback.py, whose function"


@pytest.mark.parametrize(
    ("target", "module", "words"),
    [
        ("readback:rows", None, "names the module readback, and there is no readback.py in "),
        ("readback:rows", "def row(namespace): ...", "names the function rows, and readback.py has none of that name"),
        ("readback:rows", "def rows(:", "names readback.py, which is no Python: "),
        ("readback:rows", "rows = [1]", "names rows, which is no function in readback.py, but a value"),
        ("readback:rows", "def rows(): ...", f"{READER} rows takes (), and is called with the namespace alone"),
        ("readback:rows", "def rows(a, b): ...", f"{READER} rows takes (a, b), and is called with the namespace alone"),
        (
            "readback:rows",
            "def rows(a, *, b): ...",
            f"{READER} rows takes (a, *, b), and is called with the namespace alone",
        ),
        ("readback:rows", "async def rows(a): ...", f"{READER} rows is async, and is called without awaiting it. Let "),
        ("readback:rows", "def rows(a): ...\ndef remove(): ...", f"{READER} remove takes (), and is called with the "),
        ("readback:rows", "def rows(a): ...\nfrom os import remove", f"{READER} remove is that of os, which lies "),
        (
            "readback:rows",
            "from os import remove as busy\ndef rows(a): ...",
            f"{READER} busy is that of os, which lies ",
        ),
        ("readback:rows", "import os as o\nprepare = o.mkdir\ndef rows(a): ...", f"{READER} prepare is that of os, "),
        (
            "readback:rows",
            "from a.b import c\nd = c.e\nremove = d\ndef rows(a): ...",
            f"{READER} remove is that of a.b, ",
        ),
        ("readback.py:rows", "", "names the module readback.py, and there is no readback/py.py in "),
        ("readback", "", "must be module:function, such as readback:rows, not 'readback'"),
        ("../readback:rows", "", "must be module:function, such as readback:rows, not '../readback:rows'"),
    ],
)
def test_a_reader_that_is_not_there_is_a_mistake_with_its_place(
    tmp_path: Path, target: str, module: str | None, words: str
) -> None:
    readers = {} if module is None else {"scenarios/readback.py": module}
    path = project(tmp_path, SCENARIO.format(target=target), readers=readers)
    with pytest.raises(ScenarioError) as failure:
        scenarios.load(path)
    (mistake,) = failure.value.mistakes
    assert (mistake.line, mistake.column) == (4, 11) and mistake.text.startswith(f"sink.python {words}")


@pytest.mark.parametrize(
    "module", ["from other import *", "from other import x as rows", "if 1:\n    def rows(r): ...",
               "try:\n    from a import rows\nexcept ImportError:\n    rows = None",
               "import other\nrows = other.of('x')", "rows, more = [len, 1]", "rows = None\nrows = len",
               "rows = []\ndef made():\n    global rows\n    rows = len", "@given\ndef rows(): ...",
               "def rows(*all): ...", "def rows(namespace, limit=5, *, more=1):\n    rows = namespace\n    return rows",
               "def rows(namespace=None): ...\nfrom other import *", "remove = None\ndef rows(namespace): ...",
               "from it import remove\nfrom .it import busy\ndef rows(r): ...",
               "import beside.it as more\nprepare = more.made\ndef rows(r): ...",
               "from os import remove as gone\nremove = lambda r: gone(r.path)\ndef rows(r): ...",
               "import os\nfrom functools import partial\nremove = partial(os.remove)\nimport busy\ndef rows(r): ...",
               "try:\n    from os import remove\nexcept ImportError:\n    remove = None\ndef rows(r): ...",
               "from os import *\ndef rows(r): ..."],
)  # fmt: skip
def test_nothing_is_refused_that_may_be_there(tmp_path: Path, module: str) -> None:
    beside = {"jobs/it.py": "", "beside/it.py": "", "jobs/m.py": module}
    scenarios.load(project(tmp_path, SCENARIO.format(target="m:rows"), readers=beside))


@pytest.mark.parametrize(
    ("module", "has"),
    [
        ("def rows(r): ...\ndef busy(r): ...", ["prepare", "remove", "busy"]),
        ("from os import *\ndef rows(r): ...\ndef busy(r): ...", ["busy"]),
        ("from os import *\nfrom .it import *\ndef rows(r): ...", ["prepare", "remove", "busy"]),
        ("from os import *\nfrom it import *\ndef rows(r): ...", ["prepare", "remove", "busy"]),
        ("def rows(r): ...\nfrom os import remove", ["prepare", "busy"]),
        ("def rows(:", ["prepare", "remove", "busy"]),
    ],
)
def test_which_functions_beside_a_reader_may_be_its_own(tmp_path: Path, module: str, has: list[str]) -> None:
    (tmp_path / "it.py").write_text("")
    (tmp_path / "m.py").write_text(module)
    assert places.own(tmp_path / "m.py", [tmp_path]) == has


def test_the_functions_beside_a_reader_are_those_that_are_called() -> None:
    assert places.BESIDE == callee.OTHERS


def test_what_a_reader_cannot_do_is_refused_by_name(tmp_path: Path) -> None:
    """`format` is known as an option of `files`."""
    more = (
        "  within: soon\n  options: [a]\n  format: json\nschedule: [{when: {rows: 5, batch: 2}, do: crash mid-sink}]\n"
    )
    path = project(tmp_path, SCENARIO.format(target="m:rows") + more, readers={"jobs/m.py": "def rows(r): ..."})
    with pytest.raises(ScenarioError) as failure:
        scenarios.load(path)
    said = [str(each).partition("it.yaml:")[2] for each in failure.value.mistakes]
    assert said == [
        "7:11: sink.within must be a duration such as 250ms, 3s or 2m, not 'soon'",
        "8:12: sink.options must be a mapping of names to texts, not a list",
        "9:11: sink.format means nothing for python",
        "10:26: schedule[0].when.rows cannot be counted: no sink counts its rows; "
        "name a table of the run's own in a sink that counts rows, or take a failpoint",
    ]


def test_an_option_that_is_no_text_is_named(tmp_path: Path) -> None:
    more = "  options: {table: [a]}\n"
    path = project(tmp_path, SCENARIO.format(target="m:rows") + more, readers={"jobs/m.py": "def rows(r): ..."})
    with pytest.raises(ScenarioError, match=r"sink\.options must be a mapping of names to texts, and table has a list"):
        scenarios.load(path)


@pytest.mark.parametrize("view", ["deduplicated", "complete"])
def test_it_is_written_as_it_was_read(tmp_path: Path, view: str) -> None:
    more = f'  within: 250ms\n  options: {{table: "1", "with blanks": "a: b # c", none: ""}}\n  view: {view}\n'
    more += "  part: second\n"
    path = project(tmp_path, SCENARIO.format(target="m:rows") + more, readers={"jobs/m.py": "def rows(r): ..."})
    before = scenarios.load(path)
    (sink,) = before.sinks
    assert json.loads(str(sink.options["options"])) == {"table": "1", "with blanks": "a: b # c", "none": ""}
    assert (sink.folds, sink.complete) == (view == "deduplicated", view == "complete")
    assert sink.options["within"] == 0.25
    path.write_text(dump(before))
    assert scenarios.load(path).sinks == before.sinks
    assert list(parts(before)) == ["kafka", "python.second"]


def test_kept_baseline_runs_are_those_of_the_same_reader(tmp_path: Path) -> None:
    readers = {"scenarios/m.py": "def rows(r): ...", "scenarios/beside.py": ""}
    scenario = scenarios.load(project(tmp_path, SCENARIO.format(target="m:rows"), readers=readers))

    def now() -> str:
        return digest(scenario, {}, seed=1, root=tmp_path)

    first = now()
    assert now() == first
    seen = {first}
    for name in readers:
        (tmp_path / name).write_text("def rows(r): return 1")
        seen.add(now())
    assert len(seen) == 3
    assert [file_sum(path) for path in code(scenario)]


# --- a run


AWAY = """\
from pathlib import Path
import batches
import {program}

run = batches.run


def away(args, save):
    flag = Path(args.into).with_name("away")
    flag.unlink(missing_ok=True)

    def saved(batch, number):
        if number == 3:
            flag.touch()
        save(batch, number)
        flag.unlink(missing_ok=True)

    run(args, saved)


batches.run = away
{program}.main()
"""
FLAKY = """\
from pathlib import Path
import read_sqlite


def payments(namespace):
    if (Path(namespace.path) / "away").exists():
        raise ConnectionError("refused")
    yield from read_sqlite.payments(namespace)
"""
AWAY_SCENARIO = """\
name: a system that is away while the fault strikes
pipeline:
  entry: away.py
  args: [--bootstrap, "{kafka.bootstrap}", --topic, "{topic}", --into, "{python.path}/payments.db",
    --checkpoint, "{checkpoint}"]
sink:
  python: flaky:payments
  expected: select id, account, amount, currency, event_time from ledger
  key: [id]
  view: complete
input: {workload: transactions, records: 600}
schedule:
  - {when: {failpoint: half-written, batch: 3}, do: kill driver}
timeout: 240s
"""


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.parametrize(
    ("program", "word", "found"),
    [
        ("sqlite_with_batch", Word.UNTESTED, {}),
        ("sqlite_appended", Word.VIOLATED, {"duplicated": 49}),
    ],
)
def test_a_kill_while_the_system_was_away_is_never_held_and_the_cause_of_nothing(
    tmp_path: Path, run_scenario: Callable[..., Result], program: str, word: Word, found: dict[str, int]
) -> None:
    shutil.copytree(Path(__file__).parents[1] / "pipelines" / "own_reader", tmp_path, dirs_exist_ok=True)
    for name, text in {"pytest.ini": "", "away.py": AWAY.format(program=program), "flaky.py": FLAKY}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "it.yaml").write_text(AWAY_SCENARIO)
    result = run_scenario(scenarios.load(tmp_path / "it.yaml"))
    assert (result.verdict.word, result.verdict.kinds(), result.verdict.exposures) == (word, found, ())
    assert not any(finding.faults for finding in result.verdict.findings)
    said = recorded(result.folder, "1-injection")["error"]
    assert "asked flaky:payments for its rows; it raised ConnectionError: refused, at flaky.py:7 in payments" in said

"""The source `files`: what is dropped, what is read back, and what Spark's own log says of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.components.files import dropped
from harness.components.files.dropped import Dropped, FileSender
from harness.components.files.forms import FORMS, Afterwards, Format
from harness.components.files.source import OpenFolder
from harness.errors import ScenarioError, StackError
from harness.load import load
from harness.run_folder.ledger import Answer, Attempts, State
from harness.scenario import Input
from harness.session.part_folders import RunFolders
from harness.sources import SOURCES
from harness.sources.lines import is_line
from harness.sources.producer import Producer
from harness.workloads import make
from harness.workloads.base import Record

HOUSE = Path(__file__).parents[1]
SCENARIOS = HOUSE / "scenarios" / "sources"


def opened(folder: Path, per_file: int = 3) -> OpenFolder:
    folder.mkdir(parents=True, exist_ok=True)
    return OpenFolder(Dropped(folder), per_file)


def named(number: int) -> str:
    return f"records-{number:06}.txt"


def sent(source: OpenFolder, values: Sequence[bytes], *, first: int = 0) -> list[Answer]:
    sender = source.sender()
    return sender.send([sender.placed(Record(seq, b"k", value)) for seq, value in enumerate(values, first)])


def entry(file: Path, batch: int) -> str:
    return json.dumps({"path": f"file://{quote(str(file))}", "timestamp": 17, "batchId": batch})


def noted(log: Path, name: str, files: Mapping[Path, int]) -> None:
    """Write an entry of the log as Spark does."""
    log.mkdir(parents=True, exist_ok=True)
    (log / name).write_text("\n".join(["v1", *(entry(file, batch) for file, batch in files.items())]))


def test_a_portion_makes_files_of_so_many_records_at_most(tmp_path: Path) -> None:
    source = opened(tmp_path / "in")
    producer = Producer(
        make(Input(workload="transactions", records=20), seed=1, root=tmp_path),
        Attempts(tmp_path / "attempts.log"),
        source.sender(),
    )
    assert [producer.send(n) for n in (7, 13)] == [7, 13]
    producer.close()
    assert producer.acknowledged == 20
    assert source.ends() == producer.reached == {0: 3, 1: 3, 2: 1, 3: 3, 4: 3, 5: 3, 6: 3, 7: 1}
    assert source.read_back(tmp_path / "source.parquet", within_s=1.0) == source.ends()
    rows = pq.read_table(tmp_path / "source.parquet").to_pylist()
    lines = [line for number in range(8) for line in (source.dropped.folder / named(number)).read_bytes().splitlines()]
    assert [row["value"] for row in rows] == lines and len(lines) == 20
    assert [path.name for path in sorted(source.dropped.folder.iterdir())] == [named(number) for number in range(8)]


@given(values=st.lists(st.binary(max_size=6), min_size=1, max_size=12))
def test_what_is_taken_is_read_back_and_what_is_no_line_is_refused(
    values: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("in")
    source = opened(folder / "in")
    answers = sent(source, values)
    taken = [value for value, answer in zip(values, answers, strict=True) if answer.state is State.ACKNOWLEDGED]
    assert taken == [value for value in values if is_line(value)]
    source.read_back(folder / "source.parquet", within_s=1.0)
    rows = pq.read_table(folder / "source.parquet").to_pylist()
    assert [row["value"] for row in rows] == taken
    places = [(answer.partition, answer.offset) for answer in answers if answer.state is State.ACKNOWLEDGED]
    assert [(row["partition"], row["offset"]) for row in rows] == places


def test_a_folder_that_refuses_a_file_has_none_of_it(tmp_path: Path) -> None:
    source = opened(tmp_path / "in")
    (source.dropped.folder / named(0)).mkdir()
    answers = sent(source, [b"a", b"b"])
    assert [answer.state for answer in answers] == [State.FAILED] * 2
    assert "could not be written" in (answers[0].error or "")
    assert source.ends() == {} and [path.name for path in source.dropped.folder.iterdir()] == [named(0)]


def test_a_file_that_was_changed_is_an_error_and_one_that_was_cleaned_is_as_it_was(tmp_path: Path) -> None:
    source = opened(tmp_path / "in", 1)
    sent(source, [b"a", b"b"])
    (source.dropped.folder / named(0)).unlink()
    assert source.read_back(tmp_path / "source.parquet", within_s=1.0) == {0: 1, 1: 1}
    assert pq.read_table(tmp_path / "source.parquet")["value"].to_pylist() == [b"a", b"b"]
    (source.dropped.folder / named(1)).write_bytes(b"c\n")
    with pytest.raises(StackError, match=r"records-000001\.txt as it was dropped; it was changed"):
        source.read_back(tmp_path / "again.parquet", within_s=1.0)


def test_a_file_in_place_is_half_until_a_batch_has_taken_it(tmp_path: Path) -> None:
    source, log = OpenFolder(Dropped(tmp_path), 4, in_place=True), tmp_path / "c" / "sources" / "0"
    file, commits = tmp_path / named(0), tmp_path / "c" / "commits"
    commits.mkdir(parents=True)
    (commits / "4").touch()
    sender = source.sender()
    assert isinstance(sender, FileSender)
    answers = sender.send([sender.placed(Record(seq, None, bytes([97 + seq]))) for seq in range(4)])
    assert [answer.state for answer in answers] == [State.ACKNOWLEDGED] * 4
    noted(log, "0", {file: 0})
    assert source.offsets('{"logOffset":0}', log) == {0: 4}
    thread = threading.Thread(target=sender.close)
    thread.start()
    assert file.read_bytes() == b"a\nb\n" and thread.is_alive(), "no batch is done since"
    (commits / "5").touch()
    thread.join(60.0)
    assert file.read_bytes() == b"a\nb\nc\nd\n" and not sender.unmet


def in_place(folder: Path, many: int) -> FileSender:
    """Who has written half of each of so many files of two records."""
    sender = OpenFolder(Dropped(folder / "in"), 2, in_place=True).sender()
    (folder / "in").mkdir()
    sender.send([sender.placed(Record(seq, None, bytes([97 + seq]))) for seq in range(2 * many)])
    assert isinstance(sender, FileSender)
    return sender


def test_the_next_portion_completes_no_file_that_no_batch_has_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dropped, "TAKEN_S", 0.1)
    sender = in_place(tmp_path, 1)
    sender.send([sender.placed(Record(2, None, b"c")), sender.placed(Record(3, None, b"d"))])
    assert [file.read_bytes() for file in sorted((tmp_path / "in").iterdir())] == [b"a\n", b"c\n"]
    sender.close()
    assert [file.read_bytes() for file in sorted((tmp_path / "in").iterdir())] == [b"a\nb\n", b"c\nd\n"]
    assert sender.unmet == "no file was seen before it was whole: none of 2 was in a batch that was committed by then"
    sender.close()
    assert sender.unmet


def test_one_file_that_was_taken_before_it_was_whole_is_what_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dropped, "TAKEN_S", 0.1)
    sender = in_place(tmp_path, 3)
    monkeypatch.setattr(Dropped, "taken", lambda self, number: number == 1)
    sender.close()
    assert not sender.unmet


def test_a_file_that_is_gone_before_its_rest_is_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = in_place(tmp_path, 2)
    (tmp_path / "in" / named(1)).unlink()
    monkeypatch.setattr(Dropped, "taken", lambda self, number: True)
    sender.close()
    assert sender.unmet == "1 files were gone before the rest of their records was written"
    assert not (tmp_path / "in" / named(1)).exists()


@pytest.mark.parametrize("many", [1, 2, 5])
def test_a_file_that_is_torn_ends_within_a_record_until_it_is_completed(
    tmp_path: Path, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = OpenFolder(Dropped(tmp_path), many, in_place=True, torn=True)
    values = [b'{"id": %d}' % seq for seq in range(many)]
    sender = source.sender()
    sender.send([sender.placed(Record(seq, None, value)) for seq, value in enumerate(values)])
    *lines, last = (tmp_path / named(0)).read_bytes().split(b"\n")
    assert lines == values[: many // 2]
    assert last and last != values[many // 2] and values[many // 2].startswith(last)
    monkeypatch.setattr(dropped, "TAKEN_S", 0.1)
    sender.close()
    assert source.read_back(tmp_path.parent / "source.parquet", within_s=1.0) == {0: many}
    assert pq.read_table(tmp_path.parent / "source.parquet")["value"].to_pylist() == values


def test_a_file_is_torn_only_where_it_is_seen_before_it_is_whole(tmp_path: Path) -> None:
    written = (SCENARIOS / "files_torn_kept_by_id.yaml").read_text()
    text = written.replace("in_place: true, ", "").replace("pipelines/", f"{HOUSE}/pipelines/")
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(
        ScenarioError, match=r"s\.yaml:5:\d+: input\.torn is for a file that is seen before it is whole"
    ):
        load(tmp_path / "s.yaml")


@given(batches=st.lists(st.integers(1, 3), min_size=1, max_size=12), compact=st.integers(0, 12), data=st.data())
def test_a_line_of_the_offset_log_counts_the_files_up_to_it(
    batches: list[int], compact: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("it is") / "in é"
    source, log = opened(folder, 2), folder.parent / "sources" / "0"
    sent(source, [b"x"] * 2 * sum(batches))
    numbers = data.draw(st.permutations(range(sum(batches))))
    files: dict[Path, int] = {}
    for batch, many in enumerate(batches):
        new = {folder / named(number): batch for number in numbers[len(files) : len(files) + many]}
        files |= new
        noted(log, str(batch), new)
        if batch == compact:
            # The ones before it may be gone, or still there.
            noted(log, f"{batch}.compact", files)
            (log / str(batch)).unlink()
    (log / ".99.crc").write_bytes(b"\0")
    for batch in range(len(batches)):
        found = source.offsets(json.dumps({"logOffset": batch}), log)
        assert found == {int(file.name[8:14]): 2 for file, its in files.items() if its <= batch}


def test_a_line_about_something_else_is_none_of_ours(tmp_path: Path) -> None:
    source, log = opened(tmp_path / "in"), tmp_path / "sources" / "0"
    sent(source, [b"a"])
    assert source.offsets('{"logOffset":0}', log) is None, "nothing is known of it"
    noted(log, "0", {tmp_path / "elsewhere" / named(0): 0})
    lines = [
        "",
        "-",
        "v1",
        '{"topic":{"0":1}}',
        '{"logOffset":true}',
        '{"logOffset":0,"x":1}',
        '{"logOffset":0}',
        "[0]",
    ]
    assert [source.offsets(line, log) for line in lines] == [None] * len(lines)
    assert source.offsets('{"logOffset":-1}', log) == {}
    noted(
        log,
        "1",
        {
            source.dropped.folder / named(0): 1,
            source.dropped.folder / "README.txt": 1,
            source.dropped.folder / named(7): 1,
        },
    )
    (log / "1").write_text((log / "1").read_text() + '\n{"path":"file:///x"}\n{"path":')
    assert source.offsets('{"logOffset":1}', log) == {0: 1}


def test_a_parquet_file_holds_each_record_as_it_is_and_is_read_back(tmp_path: Path) -> None:
    source = OpenFolder(Dropped(tmp_path, FORMS[Format.PARQUET]), 2)
    values = [b"a\nb", b"", b"\xff\0", b"c"]
    assert [answer.state for answer in sent(source, values)] == [State.ACKNOWLEDGED] * 4
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["records-000000.parquet", "records-000001.parquet"]
    assert [row for name in files for row in pq.read_table(tmp_path / name)["value"].to_pylist()] == values
    assert source.read_back(tmp_path.parent / "source.parquet", within_s=1.0) == {0: 2, 1: 2}
    assert pq.read_table(tmp_path.parent / "source.parquet")["value"].to_pylist() == values
    (tmp_path / files[1]).write_bytes((tmp_path / files[0]).read_bytes())
    with pytest.raises(StackError, match="it was changed"):
        source.read_back(tmp_path.parent / "again.parquet", within_s=1.0)


@pytest.mark.parametrize("afterwards", [Afterwards.RENAMED, Afterwards.REWRITTEN])
@pytest.mark.parametrize("form", [Format.LINES, Format.PARQUET])
def test_a_file_is_renamed_or_written_anew_once_a_batch_has_taken_it(
    tmp_path: Path, afterwards: Afterwards, form: Format
) -> None:
    folder, log, commits = tmp_path / "in", tmp_path / "c" / "sources" / "0", tmp_path / "c" / "commits"
    folder.mkdir()
    commits.mkdir(parents=True)
    source = OpenFolder(Dropped(folder, FORMS[form]), 2, afterwards=afterwards)
    file = source.dropped.file(0)
    sender = source.sender()
    sender.send([sender.placed(Record(seq, None, b"%d" % seq)) for seq in range(2)])
    before = file.stat().st_ino
    noted(log, "0", {file: 0})
    source.offsets('{"logOffset":0}', log)
    thread = threading.Thread(target=sender.close)
    thread.start()
    assert file.exists() and file.stat().st_ino == before, "no batch is done since"
    (commits / "0").touch()
    thread.join(60.0)
    moved = folder / f"moved-{file.name}"
    if afterwards is Afterwards.RENAMED:
        assert [*folder.iterdir()] == [moved]
    else:
        assert [*folder.iterdir()] == [file] and file.stat().st_ino != before
    noted(log, "1", {moved: 1})
    assert source.offsets('{"logOffset":1}', log) == {0: 2}, "a file of another name is no partition"
    assert source.read_back(tmp_path / "source.parquet", within_s=1.0) == {0: 2}
    assert pq.read_table(tmp_path / "source.parquet")["value"].to_pylist() == [b"0", b"1"]


def test_a_file_whose_batch_is_not_done_yet_is_not_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped, "TAKEN_S", 0.1)
    source = OpenFolder(Dropped(tmp_path), 1, afterwards=Afterwards.RENAMED)
    sender = source.sender()
    sender.send([sender.placed(Record(0, None, b"a"))])
    sender.send([sender.placed(Record(1, None, b"b"))])
    sender.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [named(0), named(1)]
    assert isinstance(sender, FileSender)
    assert sender.unmet == "no file was renamed once it was taken: none of 2 was in a batch that was committed by then"
    checkpoint = tmp_path / "c"
    (checkpoint / "commits").mkdir(parents=True)
    source.dropped.is_planned(0, checkpoint)
    (checkpoint / "commits" / "0").touch()
    sender.close()
    assert (tmp_path / f"moved-{named(0)}").exists() and (tmp_path / named(1)).exists()
    assert not sender.unmet


@pytest.mark.parametrize("other", ["format: parquet", "afterwards: renamed"])
def test_half_of_a_file_is_for_lines_that_nothing_else_happens_to(tmp_path: Path, other: str) -> None:
    written = (SCENARIOS / "files_written_in_place.yaml").read_text()
    text = written.replace("in_place: true", f"in_place: true, {other}").replace("pipelines/", f"{HOUSE}/pipelines/")
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=r"s\.yaml:5:\d+: .*in_place"):
        load(tmp_path / "s.yaml")


def test_a_run_has_its_own_folder_and_leaves_nothing(tmp_path: Path) -> None:
    folders = RunFolders(tmp_path / "files", component="files", plain="output")
    folders.start()
    kind, asked = SOURCES["files"], Input(source="files", source_options={"records_per_file": 5, "in_place": True})
    given = {each.label: each for each in folders.provide("r1", {"": {}, "input": {}}).values()}
    source = kind.open(asked, given)
    assert isinstance(source, OpenFolder)
    assert (source.per_file, source.in_place, str(source.dropped.folder)) == (
        5,
        True,
        given["files.input"].placeholders["path"],
    )
    assert given["files"].placeholders["path"] != str(source.dropped.folder)
    sent(source, [b"a"])
    folders.drop("r1", ["input"])
    assert [path.name for path in (tmp_path / "files" / "r1").iterdir()] == ["output"]
    folders.drop("r1", ["", "input"])
    assert not [*(tmp_path / "files").iterdir()]
    folders.root.rmdir()
    with pytest.raises(StackError, match="is gone"):
        folders.check()

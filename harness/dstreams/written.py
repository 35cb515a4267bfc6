"""The files that a program of Spark Streaming writes under its checkpoint, read as data. Pure but for the reading.

`checkpoint-T` (org.apache.spark.streaming.Checkpoint) is written twice for each batch time T: when its jobs are
submitted, with T among the pending times, and when they are done. It appears by a rename, the older one becomes
`checkpoint-T.bk`. Where the program is late, a file has the content of an earlier time than its name says.

`receivedBlockMetadata/log-*` grows by records of a length and a Java stream: an array of events, each of which is
another stream. A block is added once the receiver has stored it, then all that are there are allocated to a batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow

from harness.dstreams.java_stream import MAGIC, JavaObject, NoJavaStreamError, read

CHECKPOINT = re.compile(r"checkpoint-(\d+)(\.bk)?")
LOG, BLOCKS = re.compile(r"log-(\d+)-(\d+)"), "receivedBlockMetadata"
LZ4, LZ4_HEADER = b"LZ4Block", 21
RAW, PACKED = 0x10, 0x20
BLOCK_MS = 200
"""Spark's own `spark.streaming.blockInterval`."""
KEPT = "WriteAheadLogBasedStoreResult"
LONGEST = 1 << 28


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One `checkpoint-T`; times are milliseconds since 1970. `zero_ms` is where the program's batches are counted from,
    `files` what each batch took of a folder."""

    time_ms: int
    zero_ms: int
    interval_ms: int
    pending_ms: tuple[int, ...]
    files: dict[int, tuple[str, ...]] = field(default_factory=dict)
    block_ms: int = BLOCK_MS

    def number(self, time_ms: int) -> int:
        """Return the batch of a time, from 0."""
        return (time_ms - self.zero_ms) // self.interval_ms - 1


@dataclass(frozen=True)
class Block:
    """What a receiver has stored: `number` is its name, about the time in milliseconds since 1970 when it was begun.
    `kept`: in the write-ahead log too; `first`: the number that the receiver gave as its metadata, if it did."""

    stream: int
    number: int
    records: int
    kept: bool
    first: int | None = None


@dataclass(frozen=True)
class Allocated:
    """The blocks of a batch time, as names: (stream, number)."""

    time_ms: int
    blocks: tuple[tuple[int, int], ...]


@contextmanager
def _as_known(what: str) -> Iterator[None]:
    """Whatever the bytes are, one error says that they have another form. Raises NoJavaStreamError."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError) as failure:
        raise NoJavaStreamError(f"{what} has another form than is known here: {failure!r}") from failure


def of_checkpoint(data: bytes) -> Checkpoint:
    """Return the content of a `checkpoint-T`. Raises NoJavaStreamError for one that is not whole, or of another
    form."""
    with _as_known("a checkpoint of Spark Streaming"):
        top = read(_unpacked(data))
        if not isinstance(top, JavaObject) or not top.name.endswith("streaming.Checkpoint"):
            raise NoJavaStreamError(f"asked for a checkpoint of Spark Streaming; saw {getattr(top, 'name', top)!r}")
        graph = top["graph"]
        settings = {str(pair["_1"]): str(pair["_2"]) for pair in top["sparkConfPairs"]}
        interval_ms = _millis(graph["batchDuration"])
        if interval_ms <= 0:
            raise NoJavaStreamError(f"a checkpoint of Spark Streaming has batches of {interval_ms} ms")
        return Checkpoint(
            time_ms=_millis(top["checkpointTime"]),
            zero_ms=_millis(graph["zeroTime"]),
            interval_ms=interval_ms,
            pending_ms=tuple(sorted(map(_millis, top["pendingTimes"]))),
            files=_files(graph),
            block_ms=_milliseconds(settings.get("spark.streaming.blockInterval", "")),
        )


def _millis(time: JavaObject) -> int:
    """Return the milliseconds of a Time or a Duration. Raises TypeError where they are no number."""
    millis = time["millis"]
    if not isinstance(millis, int):
        raise TypeError(f"a time is {millis!r}")
    return millis


def events(data: bytes) -> tuple[list[Block | Allocated], int]:
    """Return the events in the whole records of a log of blocks, and how many bytes these take: the last record may be
    on its way. Raises NoJavaStreamError."""
    out, at = list[Block | Allocated](), 0
    while len(data) >= at + 4:
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        if not 0 < size < LONGEST:
            raise NoJavaStreamError(f"a log of received blocks has a record of {size} bytes at {at}")
        if len(data) < at + 4 + size:
            break
        with _as_known("a log of received blocks"):
            out += _events(data[at + 4 : at + 4 + size])
        at += 4 + size
    return out, at


def _events(record: bytes) -> Iterator[Block | Allocated]:
    found = read(record)
    for each in found if isinstance(found, list) else [record]:
        event = read(each) if isinstance(each, bytes) and each.startswith(MAGIC) else None
        if not isinstance(event, JavaObject):
            raise NoJavaStreamError("a log of received blocks has a record that is no event")
        if event.name.endswith("BlockAdditionEvent"):
            yield _block(event["receivedBlockInfo"])
        elif event.name.endswith("BatchAllocationEvent"):
            infos = [each for each in walk(event["allocatedBlocks"]) if each.name.endswith("ReceivedBlockInfo")]
            names = {(block.stream, block.number): None for block in map(_block, infos)}
            yield Allocated(_millis(event["time"]), tuple(names))


def _block(info: JavaObject) -> Block:
    stored = info["blockStoreResult"]
    name, count = stored["blockId"], _long(info["numRecords"])
    if count is None:
        raise NoJavaStreamError(f"block {name['uniqueId']} does not say how many records it has")
    kept, first = stored.name.endswith(KEPT), _long(info.fields.get("metadataOption"))
    return Block(int(name["streamId"]), int(name["uniqueId"]), count, kept, first)


def _long(option: Any) -> int | None:
    """Return the number in an Option of Scala's; None if there is none."""
    return next((int(each["value"]) for each in walk(option) if each.name == "java.lang.Long"), None)


def _files(graph: JavaObject) -> dict[int, tuple[str, ...]]:
    out: dict[int, tuple[str, ...]] = {}
    for each in walk(graph):
        if each.name.endswith("FileInputDStreamCheckpointData"):
            for time, files in _taken(each["data"]):
                out[time] = tuple(dict.fromkeys([*out.get(time, ()), *files]))
    return out


def _taken(data: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the files of each time in a map as Scala 2.13 writes one: pairs. Raises NoJavaStreamError for another map:
    files that are not seen would be records that no batch took."""
    pairs = [each for each in walk(data) if each.name == "scala.Tuple2" and isinstance(each["_2"], list)]
    entries = data if isinstance(data, list) else data.more
    times = sum(each.name.endswith("streaming.Time") for each in walk(data))
    if times != len(pairs) or (not pairs and any(not isinstance(entry, bytes) for entry in entries)):
        raise NoJavaStreamError("the files that a checkpoint of Spark Streaming names have another form than is known")
    for pair in pairs:
        yield _millis(pair["_1"]), list(map(str, pair["_2"]))


def walk(top: Any) -> Iterator[JavaObject]:
    """Yield every object in one, itself too, each once."""
    seen, left = set[int](), [top]
    while left:
        each = left.pop()
        if not isinstance(each, (JavaObject, list)) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, JavaObject):
            yield each
            left += [*each.more, *each.fields.values()]
        else:
            left += each


def _milliseconds(text: str) -> int:
    """Return a duration as Spark writes one; its own default where it is none that is known."""
    found = re.fullmatch(r"(\d+)(ms|s|m|min)?", text.strip().lower())
    unit = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, None: 1}
    return int(found[1]) * unit[found[2]] if found else BLOCK_MS


def _unpacked(data: bytes) -> bytes:
    """As Spark's default codec writes it: lz4-java's blocks. Raises NoJavaStreamError for another codec."""
    if data.startswith(MAGIC):
        return data
    out, at = list[bytes](), 0
    while data[at : at + len(LZ4)] == LZ4 and len(data) >= at + LZ4_HEADER:
        method = data[at + 8] & 0xF0
        packed, size = (int.from_bytes(data[at + place : at + place + 4], "little") for place in (9, 13))
        at += LZ4_HEADER
        if size == 0:
            return b"".join(out)
        part = data[at : at + packed]
        if len(part) < packed or size > LONGEST or method not in (RAW, PACKED):
            break
        try:
            out.append(part if method == RAW else pyarrow.decompress(part, size, codec="lz4_raw", asbytes=True))
        except (pyarrow.ArrowException, OSError) as failure:
            raise NoJavaStreamError(f"a checkpoint of Spark Streaming is damaged: {failure}") from failure
        at += packed
    cure = "it is not whole, or `spark.io.compression.codec` is not lz4"
    raise NoJavaStreamError(f"a checkpoint of Spark Streaming cannot be read: {cure}")


def written(folder: Path) -> list[Path]:
    """Return the files `checkpoint-T` of a folder as a restart tries them: the newest first, each before its `.bk`."""
    try:
        found = [(match, entry) for entry in folder.iterdir() if (match := CHECKPOINT.fullmatch(entry.name))]
    except OSError:
        return []
    return [entry for match, entry in sorted(found, key=lambda each: (-int(each[0][1]), bool(each[0][2])))]

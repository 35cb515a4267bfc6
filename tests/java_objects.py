"""Writes streams of Java objects as Spark Streaming does, as far as the tests of what reads them need it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow

from harness.dstreams.java_stream import MAGIC

SCALA = "org.apache.spark.streaming"


class Java(NamedTuple):
    """An object: the class's name and its fields; a field's value is a number (long), a text, an array or an object.
    `more` is what its own `writeObject` adds."""

    name: str
    fields: Mapping[str, Any] = {}
    more: Sequence[Any] = ()


def stream(thing: Any) -> bytes:
    """One object as a stream of its own."""
    return MAGIC + _content(thing)


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def _content(thing: Any) -> bytes:
    if thing is None:
        return b"\x70"
    if isinstance(thing, str):
        return b"\x74" + _utf(thing)
    if isinstance(thing, bytes):
        return b"\x75" + _described("[B", ()) + struct.pack(">i", len(thing)) + thing
    if isinstance(thing, (list, tuple)) and not isinstance(thing, Java):
        return (
            b"\x75"
            + _described("[Ljava.lang.Object;", ())
            + struct.pack(">i", len(thing))
            + b"".join(map(_content, thing))
        )
    assert isinstance(thing, Java)
    kinds = [(name, "J" if isinstance(value, int) else "L") for name, value in thing.fields.items()]
    values = (struct.pack(">q", v) if isinstance(v, int) else _content(v) for v in thing.fields.values())
    added = b"".join(map(_content, thing.more)) + b"\x78" if thing.more else b""
    return b"\x73" + _described(thing.name, kinds, writes=bool(thing.more)) + b"".join(values) + added


def _described(name: str, kinds: Sequence[tuple[str, str]], *, writes: bool = False) -> bytes:
    fields = (
        kind.encode() + _utf(field) + (_content("Ljava/lang/Object;") if kind == "L" else b"") for field, kind in kinds
    )
    flags = bytes([3 if writes else 2])
    return b"\x72" + _utf(name) + bytes(8) + flags + struct.pack(">H", len(kinds)) + b"".join(fields) + b"\x78\x70"


def time(milliseconds: int) -> Java:
    """A Time or a Duration: Scala mangles the name of a private field."""
    return Java(f"{SCALA}.Time", {"org$apache$spark$streaming$Time$$millis": milliseconds})


def _info(stream_id: int, number: int, records: int, kept: bool, first: int | None = None) -> Java:
    result = "WriteAheadLogBasedStoreResult" if kept else "BlockManagerBasedStoreResult"
    name = Java("org.apache.spark.storage.StreamBlockId", {"streamId": stream_id, "uniqueId": number})
    metadata = Java("scala.None$") if first is None else _some(first)
    stored = Java(f"{SCALA}.receiver.{result}", {"blockId": name})
    fields = {"numRecords": _some(records), "metadataOption": metadata, "blockStoreResult": stored}
    return Java(f"{SCALA}.scheduler.ReceivedBlockInfo", fields)


def _some(number: int) -> Java:
    return Java("scala.Some", {"value": Java("java.lang.Long", {"value": number})})


def added(number: int, records: int, *, stream_id: int = 0, kept: bool = True, first: int | None = None) -> bytes:
    """The event of a block that was stored; `first` is the number that its receiver gave as metadata."""
    info = _info(stream_id, number, records, kept, first)
    return stream(Java(f"{SCALA}.scheduler.BlockAdditionEvent", {"receivedBlockInfo": info}))


def allocated(at: int, *numbers: int) -> bytes:
    """The event of a batch that was given blocks."""
    infos = Java("scala.collection.Map", {}, [_info(0, number, 1, True) for number in numbers] or [None])
    return stream(Java(f"{SCALA}.scheduler.BatchAllocationEvent", {"time": time(at), "allocatedBlocks": infos}))


def record(*events: bytes) -> bytes:
    """A record of the log of received blocks."""
    whole = stream(list(events))
    return struct.pack(">i", len(whole)) + whole


def checkpoint(
    at: int, *pending: int, zero: int = 0, interval: int = 1000, files: Mapping[int, Sequence[str]] | None = None
) -> bytes:
    """The content of a `checkpoint-T`."""
    return checkpoint_of(
        graph=graph([pair(time(each), list(names)) for each, names in (files or {}).items()], zero, interval),
        checkpointTime=time(at),
        pendingTimes=list(map(time, pending)),
    )


def checkpoint_of(**fields: Any) -> bytes:
    """The same with fields of any form."""
    honest = {"graph": graph([]), "checkpointTime": time(1000), "pendingTimes": [], "sparkConfPairs": []}
    return packed(stream(Java(f"{SCALA}.Checkpoint", {**honest, **fields})))


def graph(taken: Any, zero: int = 0, interval: int = 1000) -> Java:
    """The program, with one stream of files and what its batches took."""
    data = Java(f"{SCALA}.dstream.FileInputDStream$FileInputDStreamCheckpointData", {"data": taken})
    return Java(f"{SCALA}.DStreamGraph", {"zeroTime": time(zero), "batchDuration": time(interval), "inputs": [data]})


def pair(first: Any, second: Any) -> Java:
    """A pair of Scala's."""
    return Java("scala.Tuple2", {"_1": first, "_2": second})


def packed(data: bytes) -> bytes:
    """In lz4-java's blocks, as Spark's default codec writes them."""
    inner: bytes = pyarrow.compress(data, codec="lz4_raw", asbytes=True)
    sizes = struct.pack("<iii", len(inner), len(data), 0)
    return b"LZ4Block\x25" + sizes + inner + b"LZ4Block\x15" + bytes(12)

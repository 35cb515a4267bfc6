"""The ledger: ground truth of the input, in two halves.

First half, `ledger/attempts.log`: every record meant and each send's answer, append-only. One block is

    magic (4 bytes)  kind (1)  length of the payload (4)  CRC-32 of kind, length and payload (4)  payload

big-endian; the payload is an Arrow IPC stream with zstd: typed, columnar, no encoding of our own. A *meant* block is
on the disk before any of its records is sent, an *answers* block once they are known. A block that a crash has torn
ends the file: everything before it counts, and the reader says at which byte it stopped.

Second half, `ledger/source.parquet`: the source as committed, read back. `producer_report` judges the producer and the
broker by comparing the two; the pipeline is judged by the second half alone.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.errors import HarnessError
from harness.run_folder.database import connection

MAGIC = b"\x89OPL"
MEANT, ANSWERS = 1, 2
DIGEST_BYTES = 16
_HEAD = struct.Struct(">4sBII")
_SIGNED = struct.Struct(">BI")

_MEANT = pa.schema(
    [("seq", pa.int64()), ("key", pa.binary()), ("digest", pa.binary(DIGEST_BYTES)), ("wanted", pa.int32())]
)
_ANSWERS = pa.schema(
    [
        ("seq", pa.int64()),
        ("state", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("error", pa.string()),
    ]
)
_SCHEMAS = {MEANT: _MEANT, ANSWERS: _ANSWERS}
SOURCE = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("seq", pa.int64()),
    ]
)
"""Columns of source.parquet. `seq` is null where a record does not carry our header."""


class State(StrEnum):
    """What is known of a send: it is in the log, it cannot be, or that is not known."""

    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Meant(Protocol):
    """What the ledger needs of a record before it is sent."""

    @property
    def seq(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes: ...
    @property
    def partition(self) -> int | None: ...


class Answer(NamedTuple):
    """What became of one send. Only an acknowledged one has a partition and an offset."""

    seq: int
    state: State
    partition: int | None = None
    offset: int | None = None
    error: str | None = None


class Attempts:
    """Writes the first half. `meant` and `answers` return when the block is on the disk.

    Raises HarnessError if the file exists or the disk refuses; after a refusal nothing more is taken, because what
    would follow a torn block could never be read. Raises ValueError for an answer to a record that is not open."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW
        try:
            self._file: int | None = os.open(path, flags, 0o600)
        except OSError as refusal:
            raise _refused(f"create the ledger {path}", refusal) from refusal
        self._path = path
        self._last = -1
        self._open: set[int] = set()

    def meant(self, records: Sequence[Meant]) -> None:
        """Put down what is about to be sent; sequence numbers must rise."""
        seqs = [record.seq for record in records]
        for seq in seqs:
            if seq <= self._last:
                raise ValueError(f"record {seq} was put down after record {self._last}")
            self._last = seq
        columns: list[Any] = [
            seqs,
            [record.key for record in records],
            [digest(record.value) for record in records],
            [record.partition for record in records],
        ]
        self._append(MEANT, columns)
        self._open.update(seqs)

    def answers(self, answers: Sequence[Answer]) -> None:
        """Put down what became of records that were meant; each is answered once."""
        for answer in answers:
            if answer.seq not in self._open:
                raise ValueError(f"record {answer.seq} is not waiting for an answer")
            self._open.discard(answer.seq)
        self._append(ANSWERS, [list(column) for column in zip(*answers, strict=True)])

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _append(self, kind: int, columns: list[Any]) -> None:
        if self._file is None:
            raise HarnessError(f"the ledger {self._path} is closed; nothing more can be put down in it")
        block = memoryview(_block(kind, columns))
        try:
            while block:
                block = block[os.write(self._file, block) :]
            os.fdatasync(self._file)
        except OSError as refusal:
            self.close()
            raise _refused(f"write the ledger {self._path}", refusal) from refusal


def digest(value: bytes) -> bytes:
    """Return the first 16 bytes of the SHA-256 of a record's value."""
    return sha256(value).digest()[:DIGEST_BYTES]


def _block(kind: int, columns: list[Any]) -> bytes:
    schema = _SCHEMAS[kind]
    if not columns:
        columns = [[] for _ in schema]
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_batch(pa.record_batch(arrays, schema=schema))
    payload = sink.getvalue().to_pybytes()
    check = crc32(payload, crc32(_SIGNED.pack(kind, len(payload))))
    return _HEAD.pack(MAGIC, kind, len(payload), check) + bytes(payload)


def _refused(action: str, refusal: OSError) -> HarnessError:
    return HarnessError(f"asked to {action}; saw {refusal.strerror}. Free disk space or give permission, and run again")


@dataclass(frozen=True)
class Torn:
    """Where the log stops making sense: `at` counts bytes from 0, `left` is how many bytes follow unread."""

    at: int
    left: int
    why: str

    def __str__(self) -> str:
        return f"torn at byte {self.at}: {self.why}; {self.left} bytes not read"


@dataclass(frozen=True)
class AttemptsRead:
    """The first half as recovered. `table` has a row for each record meant, in order: seq, key, digest, wanted,
    state, partition, offset, error. A record without an answer is unknown."""

    table: pa.Table
    acknowledged: int
    failed: int
    unknown: int
    torn: Torn | None


def read(path: Path) -> AttemptsRead:
    """Recover the first half: the longest prefix of whole blocks. Raises HarnessError if there is no such file."""
    found: dict[int, list[pa.RecordBatch]] = {MEANT: [], ANSWERS: []}
    try:
        torn = _blocks(path, found)
    except OSError as refusal:
        raise HarnessError(f"asked for the ledger {path}; saw {refusal.strerror}. Is this a run's folder?") from refusal
    table = _joined(pa.Table.from_batches(found[MEANT], _MEANT), pa.Table.from_batches(found[ANSWERS], _ANSWERS))
    seen = {row["values"]: row["counts"] for row in pc.value_counts(table["state"]).to_pylist()}
    counts = {state.value: seen.get(state.value, 0) for state in State}
    return AttemptsRead(table=table, torn=torn, **counts)


def _blocks(path: Path, found: dict[int, list[pa.RecordBatch]]) -> Torn | None:
    """Put the whole blocks into `found`, by kind; say where and why it stopped, if before the end."""
    at, size = 0, path.stat().st_size
    with path.open("rb") as file:
        while at < size:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                return Torn(at, size - at, "the head of a block is cut")
            magic, kind, length, check = _HEAD.unpack(head)
            if magic != MAGIC or kind not in found:
                return Torn(at, size - at, "no block begins here")
            if length > size - at - _HEAD.size:
                return Torn(at, size - at, "a block is cut")
            payload = file.read(length)
            if crc32(payload, crc32(_SIGNED.pack(kind, length))) != check:
                return Torn(at, size - at, "a block's checksum is wrong")
            try:
                found[kind] += _batches(payload, kind)
            except (pa.ArrowException, OSError, ValueError) as failure:
                return Torn(at, size - at, f"what a block holds is not readable ({str(failure).splitlines()[0]})")
            at += _HEAD.size + length
    return None


def _batches(payload: bytes, kind: int) -> list[pa.RecordBatch]:
    """Return what a block holds. Raises ArrowException, OSError or ValueError if it is none of ours."""
    with pa.ipc.open_stream(payload) as stream:
        if stream.schema != _SCHEMAS[kind]:
            raise ValueError("other columns than ours")
        batches = list(stream)
    for batch in batches:
        batch.validate(full=True)
        if batch["seq"].null_count:
            raise ValueError("records without a number")
        if kind == ANSWERS and not set(batch["state"].to_pylist()) <= set(State):
            raise ValueError("answers without a meaning")
    return batches


def _joined(meant: pa.Table, answers: pa.Table) -> pa.Table:
    row = pc.index_in(meant["seq"], value_set=answers["seq"])
    columns = {name: answers[name].take(row) for name in _ANSWERS.names[1:]}
    columns["state"] = pc.fill_null(columns["state"], State.UNKNOWN.value)
    for name, column in columns.items():
        meant = meant.append_column(name, column)
    return meant


def write_source(path: Path, batches: Iterable[pa.RecordBatch]) -> int:
    """Write the second half from batches of `SOURCE` and return how many records it holds. It appears whole or not
    at all; one that is there already is replaced. Raises HarnessError if the disk refuses."""
    part = path.with_name(f".{path.name}.part")
    rows = 0
    try:
        part.unlink(missing_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            with pq.ParquetWriter(file, SOURCE, compression="zstd", write_page_checksum=True) as writer:
                for batch in batches:
                    writer.write_batch(batch)
                    rows += batch.num_rows
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as refusal:
        raise _refused(f"write {path}", refusal) from refusal
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return rows


def read_source(path: Path) -> pa.Table:
    """Return the second half, columns as in `SOURCE`. Raises HarnessError if it is not there, or broken."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
        table.validate(full=True)
        if table.schema != SOURCE or any(table[f.name].null_count for f in SOURCE if not f.nullable):
            raise ValueError("other columns than ours, or records without a place")
    except (OSError, ValueError, pa.ArrowException) as failure:
        why = (str(failure) or repr(failure)).splitlines()[0]
        raise HarnessError(f"asked for the source as read back, {path}; saw {why}. Run the scenario again") from failure
    return table


class Placed(NamedTuple):
    """A record and where it lies, or should lie."""

    seq: int
    partition: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class ProducerReport:
    """How producer and broker did. Records that are lost, changed or duplicated are broken promises."""

    acknowledged: int
    failed: int
    unknown: int
    source: int
    """Records in the source."""
    lost: tuple[Placed, ...]
    """Acknowledged, and nothing lies at the place that was named."""
    changed: tuple[Placed, ...]
    """Acknowledged, and what lies there is another record or another value."""
    duplicated: tuple[Placed, ...]
    """Every place of a record that is in the source more than once."""
    recovered: tuple[int, ...]
    """Unknown, and there: legal."""
    foreign: int
    """Records in the source that we never sent: another producer writes to it."""


_AT = "from attempts a {how} join source s on a.partition = s.partition and a.offset = s.offset"
_SAME = "from attempts a {how} join source s on a.seq = s.seq"
_PLACED = {
    "lost": f"select a.seq, a.partition, a.offset {_AT.format(how='anti')} where a.state = 'acknowledged'",
    "changed": f"""select a.seq, a.partition, a.offset {_AT.format(how="")} where a.state = 'acknowledged'
        and (a.seq <> s.seq or left(sha256(s.value), 32) is distinct from lower(hex(a.digest)))""",
    "duplicated": f"""select s.seq, s.partition, s.offset {_SAME.format(how="")}
        qualify count(*) over (partition by s.seq) > 1""",
}
_RECOVERED = f"select a.seq {_SAME.format(how='semi')} where a.state = 'unknown' order by all"
# A source may lack our header: there a record is known by the place that its acknowledgement named.
_FOREIGN = """select s.seq from source s where not exists (from attempts a where a.seq = s.seq)
    and not exists (from attempts a where a.partition = s.partition and a.offset = s.offset)"""


def producer_report(attempts: AttemptsRead, source: pa.Table) -> ProducerReport:
    """Compare what was promised with the source as read back; both in memory, nothing else is touched."""
    with connection() as db:
        db.register("attempts", attempts.table)
        db.register("source", source)

        def placed(name: str) -> tuple[Placed, ...]:
            return tuple(map(Placed._make, db.sql(f"from ({_PLACED[name]}) order by all").fetchall()))

        return ProducerReport(
            acknowledged=attempts.acknowledged,
            failed=attempts.failed,
            unknown=attempts.unknown,
            source=source.num_rows,
            lost=placed("lost"),
            changed=placed("changed"),
            duplicated=placed("duplicated"),
            recovered=tuple(seq for (seq,) in db.sql(_RECOVERED).fetchall()),
            foreign=len(db.sql(_FOREIGN).fetchall()),
        )

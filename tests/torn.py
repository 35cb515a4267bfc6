"""Tears run folders at random, from a seed: what a failing disk, a bad copy or a curious hand does to files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.parquet as pq

from harness.run_folder import ledger

Files = dict[str, bytes]
"""What a folder holds, by name."""

WILD: tuple[Any, ...] = (
    0, -1, 1, 2, 7, 2**31, 2**63 - 1, 2**63, 2**200, 1.5, -0.0, 1e308, float("nan"), float("inf"), True, None,
    "", "0", "x", "-1", "1e5", "\x00", "\ud800", "'; --", "select 1", "x" * 5000, [], [1], [[1, 2]], {}, {"x": 1},
)  # fmt: skip
CELLS: tuple[Any, ...] = (
    None, "", "x", "1e9", "1E999999999", "NaN", "Infinity", "-0", "007", "true", "2026-02-31", "\x00", "é",
)  # fmt: skip


def read(folder: Path) -> Files:
    """Every file below `folder`."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def lay(files: Files, folder: Path) -> Path:
    """Write the files into `folder`, which is made."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def torn(files: Files, rng: Random, tears: tuple[Callable[[Files, Random], None], ...]) -> Files:
    """A copy with one to three tears, which is not what it was."""
    out = dict(files)
    while out == files:
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if out:
                rng.choice(tears)(out, rng)
    return out


def _one(files: Files, rng: Random, suffix: str = "") -> str:
    return rng.choice([name for name in files if name.endswith(suffix)] or list(files))


def flip(files: Files, rng: Random) -> None:
    name = _one(files, rng)
    data = bytearray(files[name])
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    files[name] = bytes(data)


def truncate(files: Files, rng: Random) -> None:
    name = _one(files, rng)
    files[name] = files[name][: rng.randrange(len(files[name]) + 1)]


def drop(files: Files, rng: Random) -> None:
    del files[_one(files, rng)]


def swap(files: Files, rng: Random) -> None:
    one, other = _one(files, rng), _one(files, rng)
    files[one], files[other] = files[other], files[one]


def zero(files: Files, rng: Random) -> None:
    name = _one(files, rng)
    data, length = files[name], rng.choice((1, 16, 512))
    at = rng.randrange(len(data) + 1)
    files[name] = data[:at] + bytes(min(length, len(data) - at)) + data[at + length :]


def double_line(files: Files, rng: Random) -> None:
    name = _one(files, rng)
    lines = files[name].splitlines(keepends=True)
    if lines:
        at = rng.randrange(len(lines))
        files[name] = b"".join([*lines[: at + 1], *lines[at:]])


def double_block(files: Files, rng: Random) -> None:
    name = _one(files, rng)
    data, length = files[name], rng.choice((4, 64, 512))
    at = rng.randrange(len(data) + 1)
    files[name] = data[: at + length] + data[at:]


def append(files: Files, rng: Random) -> None:
    files[_one(files, rng)] += rng.choice((b"\n", b" ", b"}", b"\x00", rng.randbytes(64)))


def stray(files: Files, rng: Random) -> None:
    """A file that is none of the run."""
    folder = rng.choice(("ledger", "sink", "snapshots/1-injection", "baseline/9"))
    files[f"{folder}/{rng.choice(('0.json', 'x', '9.parquet'))}"] = rng.randbytes(8)


def number(files: Files, rng: Random) -> None:
    """Another number in a JSON file."""
    _in_json(files, rng, lambda old: rng.choice([old + 1, old - 1, old * 10, -old, 0]), (int, float))


def value(files: Files, rng: Random) -> None:
    """Anything at all in place of something in a JSON file."""
    _in_json(files, rng, lambda old: rng.choice(WILD), (object,))


def _in_json(files: Files, rng: Random, change: Callable[[Any], Any], kinds: tuple[type, ...]) -> None:
    name = _one(files, rng, ".json")
    try:
        data = json.loads(files[name])
    except (ValueError, RecursionError):
        return
    places = [(holder, key) for holder, key in _places(data) if isinstance(holder[key], kinds)]
    if places:
        holder, key = rng.choice(places)
        if isinstance(key, str) and rng.random() < 0.1:
            holder[rng.choice(("", "x", "-1", "99999999999999999999", "\ud800"))] = holder.pop(key)
        else:
            holder[key] = change(holder[key])
        files[name] = (json.dumps(data, indent=1) + "\n").encode()


def _places(data: Any) -> list[tuple[Any, Any]]:
    """Everything in a JSON document, as what holds it and by which key."""
    keys = list(data) if isinstance(data, dict) else list(range(len(data))) if isinstance(data, list) else []
    return [place for key in keys for place in ((data, key), *_places(data[key]))]


def cell(files: Files, rng: Random) -> None:
    """A Parquet file, whole and well-formed, with other cells, columns or rows."""
    name = _one(files, rng, ".parquet")
    try:
        table = pq.ParquetFile(io.BytesIO(files[name])).read()
    except (pa.ArrowException, OSError):
        return
    if not table.num_columns:
        return
    at = rng.randrange(table.num_columns)
    column = table.column_names[at]
    rows = table[at].to_pylist()
    how = rng.randrange(6)
    if how == 0:
        table = table.remove_column(at)
    elif how == 1:
        table = table.slice(0, rng.randrange(table.num_rows + 1))
    elif how == 2:
        table = table.rename_columns([*table.column_names[:at], "other", *table.column_names[at + 1 :]])
    elif how == 3:
        table = table.set_column(at, column, pa.array([repr(row) for row in rows], pa.large_string()))
    elif rows:
        rows[rng.randrange(len(rows))] = _wild_cell(table.schema.field(at).type, rng)
        field = pa.field(column, table.schema.field(at).type)
        table = table.set_column(at, field, pa.array(rows, field.type))
        if how == 5 and column in ledger.SOURCE.names and table.column_names == ledger.SOURCE.names:
            table = table.cast(ledger.SOURCE) if not table[at].null_count else table
    out = io.BytesIO()
    pq.write_table(table, out)
    files[name] = out.getvalue()


def _wild_cell(kind: pa.DataType, rng: Random) -> Any:
    if pa.types.is_integer(kind):
        return rng.choice((None, 0, -1, 3, 2**31 - 1, -(2**31)))
    if pa.types.is_binary(kind):
        return rng.choice((None, b"", b"\xff\xfe", b"{", b"null", b'{"id": "x"}', b'{"amount": "1e99"}'))
    return rng.choice(CELLS) if pa.types.is_string(kind) else None


def block(files: Files, rng: Random) -> None:
    """A block of the log of attempts whose checksum is right and whose payload is not."""
    name, data = "ledger/attempts.log", bytearray(files.get("ledger/attempts.log", b""))
    head = ledger._HEAD.size
    if len(data) < head or data[:4] != ledger.MAGIC:
        return
    _, kind, length, _ = ledger._HEAD.unpack(data[:head])
    payload = bytearray(data[head : head + length])
    if len(payload) < length or not payload:
        return
    for _ in range(rng.choice((1, 1, 8))):
        payload[rng.randrange(length)] ^= 1 << rng.randrange(8)
    kind = rng.choice((kind, kind, ledger.MEANT, ledger.ANSWERS))
    check = crc32(payload, crc32(ledger._SIGNED.pack(kind, length)))
    files[name] = ledger._HEAD.pack(ledger.MAGIC, kind, length, check) + payload + data[head + length :]


BYTES = (flip, truncate, drop, swap, zero, double_line, double_block, append, stray, number, value)
"""Tears that take a file for what it is on the disk, or for JSON."""
MEANING = (*BYTES, value, value, number, cell, cell, cell, block)
"""And some that leave a file well-formed and say another thing with it."""

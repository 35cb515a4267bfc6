"""What was read of one sink, and how it is in the run folder.

`sink/<i>.parquet` has every column as nullable text in canonical form, `sink/<i>.json` what the columns are. A sink
that could not be read is kept too, with the words that say why: silence must not look like an empty table. One of too
many rows is kept as fingerprints: of each row the cells of the sink's key, and in a last column the row's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.checkers.cells import FAMILIES, Row
from harness.errors import HarnessError
from harness.run_folder.database import connection
from harness.run_folder.store import noun

_WRITTEN = {
    "number": r"^(-?[0-9]+(\.[0-9]+)?(E(-[0-9]{1,7}|[0-9]{1,6}))?|-?Infinity|NaN)$",
    "float": r"^(-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,3})?|-?inf|nan)$",
}
"""How the cells look that are counted with; a family that is only compared may hold any text."""

WHOLE, FINGERPRINTS = "whole", "fingerprints"


@dataclass(frozen=True, kw_only=True)
class SinkColumn:
    """A column: its name, the engine's type, and the family of its cells."""

    name: str
    type: str
    family: str


@dataclass(frozen=True, kw_only=True)
class _Described:
    """What is said of the rows of one sink. `unreadable` says why there are none; empty if it could be read; `absent`
    that it was not there yet. `form` is `whole`, or `fingerprints`: then the last column is the `fingerprint` of a row,
    the others are the sink's key.

    `unique`: it is a table that lets no two rows have one key. `folds`: it is a query under which a doubled row does
    not show, as tried on a copy of the rows; None if that was not or could not be tried. `folding` says it in words.
    `version` is what a sink that keeps versions calls the one that was read, `note` what limits what its rows say."""

    name: str
    kind: str
    target: str
    unreadable: str = ""
    absent: bool = False
    form: str = WHOLE
    unique: bool = False
    folds: bool | None = None
    folding: str = ""
    version: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class SinkTable(_Described):
    """The canonical rows of one sink. `dropped` are the rows that its reader has left out as repetitions; None where it
    drops none, or does not keep them."""

    columns: tuple[SinkColumn, ...] = ()
    rows: list[Row] = field(default_factory=list, repr=False)
    dropped: list[Row] | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class _About(_Described):
    """`sink/<i>.json`, with how many rows there are and were dropped."""

    columns: tuple[SinkColumn, ...]
    rows: int
    dropped: int | None = None


def fingerprint(row: Row) -> str:
    """Return what stands for a canonical row, its columns in the sink's order: blake2b of 16 bytes, in hex."""
    return blake2b(json.dumps(row).encode(), digest_size=16).hexdigest()


def save(folder: Path, index: int, table: SinkTable) -> None:
    """Write the sink with place `index` in the scenario into the run folder. Raises HarnessError."""
    save_parts(folder, index, table, [table.rows])


def save_parts(
    folder: Path,
    index: int,
    table: SinkTable,
    parts: Iterable[list[Row]],
    *,
    end: Callable[[SinkTable], SinkTable] = lambda table: table,
) -> int:
    """Write a sink as `save` does, from rows that come in parts, of which one at a time is in memory. Return how many
    there were. `end` fills in what is known after the last of them. Raises HarnessError, and whatever `parts` raises;
    then nothing is there."""
    tables = folder / "sink"
    try:
        tables.mkdir(mode=0o700, parents=True, exist_ok=True)
        count = _put(tables / f"{index}.parquet", len(table.columns), parts)
        table = end(table)
        if table.dropped is not None:
            _put(_dropped(tables, index), len(table.columns), [table.dropped])
        dropped = None if table.dropped is None else len(table.dropped)
        columns = [asdict(column) for column in table.columns]
        about = {**vars(table), "columns": columns, "rows": count, "dropped": dropped}
        (tables / f"{index}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    except OSError as refusal:
        request = f"asked to write {tables / str(index)}.parquet"
        words = f"saw {refusal.strerror or refusal}. Free disk space or give permission"
        raise HarnessError(f"{request}; {words}") from refusal
    return count


def load(folder: Path, index: int) -> SinkTable | None:
    """Return the sink as saved; None if it never was. Raises HarnessError if it is damaged, or rows are missing in
    it."""
    paths = folder / "sink" / f"{index}.json", folder / "sink" / f"{index}.parquet"
    if not paths[0].is_file():
        return None
    try:
        about: _About = noun(_About, json.loads(paths[0].read_text(encoding="utf-8")), str(paths[0]))
        rows = _rows(paths[1], about.columns, about.rows)
        beside = _dropped(folder / "sink", index)
        dropped = None if about.dropped is None else _rows(beside, about.columns, about.dropped)
    except (OSError, ValueError, KeyError, RecursionError, pa.ArrowException) as failure:
        raise HarnessError(f"{paths[0]} or {paths[1].name} is damaged: {failure}. Run the scenario again") from failure
    return SinkTable(**{**vars(about), "rows": rows, "dropped": dropped})


def gone(before: Path, after: Path, index: int) -> tuple[int, int]:
    """Return how many rows of the sink with place `index` are gone or changed from `before` to `after`, as saved there.
    Also return how many there were; none of a sink that could not be read. Raises HarnessError for damage."""
    files = [folder / "sink" / f"{index}.json" for folder in (before, after)]
    try:
        was, now = (noun(_About, json.loads(file.read_text(encoding="utf-8")), str(file)) for file in files)
        if was.unreadable or (now.unreadable and not now.absent):
            return 0, was.rows
        if now.absent or was.form != now.form:
            # Fingerprints and whole rows have nothing but their number to be compared by.
            return max(0, was.rows - (0 if now.absent else now.rows)), was.rows
        with closing(connection()) as engine:
            for name, file in zip(("was", "now"), files, strict=True):
                engine.register(name, _table(file.with_suffix(".parquet")))
            found = engine.execute("select count(*) from (from was except all from now)").fetchone()
    except (OSError, ValueError, RecursionError, pa.ArrowException, duckdb.Error) as failure:
        raise HarnessError(f"{files[0]} or {files[1]} is damaged: {failure}. Run the scenario again") from failure
    assert found is not None
    return int(found[0]), was.rows


def _dropped(tables: Path, index: int) -> Path:
    return tables / f"{index}.dropped.parquet"


def _put(path: Path, width: int, parts: Iterable[list[Row]]) -> int:
    """Write rows of so many columns, a part at a time; how many there were."""
    names = [str(at) for at in range(width)]
    count = 0

    def write(part: Path) -> None:
        nonlocal count
        # Columns are named by place: a query may give two columns one name.
        schema = pa.schema([(name, pa.string()) for name in names])
        with pq.ParquetWriter(part, schema, compression="zstd", write_page_checksum=True) as out:
            for rows in parts:
                out.write_table(pa.table({name: _cells(rows, at) for at, name in enumerate(names)}, schema=schema))
                count += len(rows)

    _whole(path, write)
    return count


def _rows(path: Path, columns: Sequence[SinkColumn], count: int) -> list[Row]:
    """So many rows as `_put` wrote them. Raises HarnessError if there are others, ValueError for cells that cannot be
    these columns'."""
    data = _table(path)
    cells = [_column(data, at, column) for at, column in enumerate(columns)]
    if data.num_rows != count:
        raise HarnessError(
            f"{path} has {data.num_rows} rows, and {count} were read from the sink. Run the scenario again"
        )
    return list(zip(*cells, strict=True))


def _table(path: Path) -> pa.Table:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read()
    table.validate(full=True)
    return table


def _column(data: pa.Table, at: int, column: SinkColumn) -> list[str | None]:
    """Return one column's cells. Raises ValueError if they are none of its family."""
    cells = data[str(at)]
    if column.family not in FAMILIES or cells.type != pa.string():
        raise ValueError(f"the column {column.name} is {column.family} as {cells.type}")
    form = _WRITTEN.get(column.family)
    if form and pc.all(pc.match_substring_regex(cells, form)).as_py() is False:
        raise ValueError(f"the column {column.name} holds what is no {column.family}")
    out: list[str | None] = cells.to_pylist()
    return out


def _cells(rows: list[Row], at: int) -> pa.Array:
    return pa.array([row[at] for row in rows], pa.string())


def _whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let a file appear whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        write(part)
        part.chmod(0o600)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

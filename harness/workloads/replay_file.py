"""The workload `replay`: a user's own JSONL, CSV or Parquet file, each row sent as one JSON object, in its order.

A line of a JSONL file goes out as it stands there. Of the others DuckDB makes the JSON. It reads the file and says its
types; the ledger gets the same columns with the same types back out of the JSON, but for times in JSONL: they are text.
What JSON has no exact word for goes as text: decimals, times, NaN and infinities; bytes go
as hex; what is nested stays JSON.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import duckdb

from harness.errors import UsageError
from harness.fields.paths import PACKAGE, package_folder
from harness.workloads.base import Column, Record

BATCH = 2000
_CSV = "read_csv(?, header=true, sample_size=-1)"
# Without these DuckDB makes a map of rows that have few fields in common.
_NO_MAPS = "records=true, map_inference_threshold=-1, field_appearance_threshold=0"
_JSON = f"read_json(?, format='newline_delimited', {_NO_MAPS}, sample_size=-1)"
_LINES = "read_ndjson_objects(?)"
_READERS = {".csv": _CSV, ".tsv": _CSV, ".jsonl": _JSON, ".ndjson": _JSON, ".parquet": "read_parquet(?)"}
_EXACT = {
    *("tinyint", "smallint", "integer", "bigint", "hugeint", "boolean"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
}
_NESTED = {"struct", "list", "array", "map", "union", "variant"}
_TIMES = {"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone"}


def located(name: str, root: Path) -> Path:
    """Return the file that a scenario names: a path, taken from `root` unless absolute, or `package:NAME/PATH` for a
    file that is in an installed Python package. Raises UsageError if it is not there or leads out of `root`."""
    path = _in_package(name.removeprefix(PACKAGE)) if name.startswith(PACKAGE) else root / name
    request = f"asked to replay {name}"
    if not path.is_file():
        raise UsageError(f"{request}; saw no file at {path}. Name a JSONL, CSV or Parquet file, as seen from {root}")
    inside = path.resolve().is_relative_to(root.resolve())
    if not (inside or Path(name).is_absolute() or name.startswith(PACKAGE)):
        raise UsageError(f"{request}; saw that it leads out of {root}. Copy the file, or name its absolute path")
    return path.resolve()


def _in_package(name: str) -> Path:
    package, _, inside = name.partition("/")
    home = package_folder(package)
    if home is None:
        raise UsageError(f"asked to replay a file of the package {package!r}; saw no such package. Install it")
    return home / inside


class Replay:
    """A file's rows as records: the first `records` of them, or all of them if it is 0 or more than there are.
    Column `key`, if named, is the Kafka key. The file is read once, so a change to it later changes nothing."""

    def __init__(self, path: Path, *, records: int = 0, key: str | None = None) -> None:
        # What DuckDB lacks it would fetch from the network.
        self._connection = duckdb.connect(config={"autoinstall_known_extensions": False})
        self._connection.execute("set TimeZone = 'UTC'")
        _load(self._connection, path, records)
        kinds = self._connection.sql("from rows")
        self._raw = bool(self._connection.sql("from duckdb_tables() where table_name = 'lines'").fetchall())
        text = _TIMES | {"date", "time"} if self._raw else set()
        self.columns = tuple(
            _column(name, duckdb.sqltypes.VARCHAR if kind.id in text else kind)
            for name, kind in zip(kinds.columns, kinds.types, strict=True)
        )
        self.count = int(self._connection.sql("select count(*) from rows").fetchall()[0][0])
        self._refuse(path, kinds, key)
        fields = [_sent(name, kind) for name, kind in zip(kinds.columns, kinds.types, strict=True)]
        chosen = "null" if key is None else f"json_extract_string(v, {_pointer(key)})"
        packed = f"select to_json(struct_pack({', '.join(fields)})) as v from rows"
        self._query = f"select {chosen} as k, v from ({'select v from lines' if self._raw else packed})"

    def _refuse(self, path: Path, kinds: duckdb.DuckDBPyRelation, key: str | None) -> None:
        """Raise UsageError for what cannot be sent as JSON and read back from it."""
        request = f"asked to replay {path}"
        if self.count == 0:
            raise UsageError(f"{request}; saw no rows in it. Name a file that has some")
        if key is not None and key not in kinds.columns:
            raise UsageError(
                f"{request} with the key {key!r}; saw the columns {', '.join(kinds.columns)}. Name one of them"
            )
        for name, kind in zip(kinds.columns, kinds.types, strict=True):
            if _is_nested(kind) and self._beyond_json(_name(name)):
                raise UsageError(f"{request}; saw NaN or an infinity inside the column {name!r}. Take it out")

    def _beyond_json(self, column: str) -> bool:
        """Return whether a nested column has a number that JSON cannot express; DuckDB writes it all the same."""
        texts = f"select cast(to_json({column}) as varchar) as text from rows"
        suspects = self._connection.sql(f"from ({texts}) where text like '%NaN%' or text like '%Infinity%'")
        return any(not _is_json(row[0]) for row in suspects.fetchall())

    def records(self) -> Iterator[Record]:
        """Yield all of them, from the first; each call begins at the first."""
        seq = 0
        with self._connection.cursor() as cursor:
            for batch in cursor.sql(self._query).to_arrow_reader(BATCH):
                for key, value in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                    yield Record(seq, None if key is None else str(key).encode(), str(value).encode())
                    seq += 1


def _load(connection: duckdb.DuckDBPyConnection, path: Path, records: int) -> None:
    try:
        with tempfile.TemporaryDirectory(prefix="onceproof-") as folder:
            plain = _unpacked(path, Path(folder))
            if plain.stat().st_size == 0:
                raise UsageError(f"asked to replay {path}; saw no rows in it. Name a file that has some")
            limit, reader = f"limit {records}" if records > 0 else "", _reader(plain)
            try:
                connection.execute(f"create table rows as from {reader} {limit}", [_literal(plain)])
            except duckdb.Error:
                if reader == _JSON and (wrong := _wrong_line(plain)):
                    raise UsageError(f"asked to replay {path}; saw {wrong}. Mend the file, or name another") from None
                raise
            if reader == _JSON:
                connection.execute(f"create table lines as select json as v from {_LINES} {limit}", [_literal(plain)])
        columns = connection.sql("from rows").columns
        if reader == _CSV and len(columns) == 1 and set(columns[0]) & set(",;|\t"):
            # DuckDB would rather see one column than rows of several lengths.
            saw = f"saw one column called {columns[0]!r}, so its rows are of several lengths"
            raise UsageError(f"asked to replay {path}; {saw}. Mend the rows")
    except (duckdb.Error, OSError, zipfile.BadZipFile) as failure:
        # DuckDB ends with the query, which is ours and not the user's.
        why = " ".join(str(failure).partition("LINE 1:")[0].split())[:300].rstrip(".")
        raise UsageError(f"asked to replay {path}; saw {why}. Mend the file, or name another") from failure


def _wrong_line(path: Path) -> str:
    """Return in words which line is no record; empty if that is not the cause. DuckDB's own message counts lines in
    another way, and names options that a scenario does not have."""
    if path.suffix == ".gz":
        return ""
    empty = True
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                empty = False
                try:
                    found = json.loads(line)
                except ValueError:
                    found = None
                if not isinstance(found, dict):
                    return f"its line {number}, which is no JSON object: {line.decode(errors='replace').strip()[:60]!r}"
    return "no rows in it" if empty else ""


def _unpacked(path: Path, folder: Path) -> Path:
    if path.suffix.lower() != ".zip":
        return path
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise UsageError(f"asked to replay {path}; saw {len(members)} files in it. Pack one file, or unpack it")
        # A name of ours: the one in the archive may point anywhere.
        out = folder / f"member{Path(members[0].filename).suffix}"
        with archive.open(members[0]) as packed, out.open("wb") as plain:
            while piece := packed.read(1 << 20):
                plain.write(piece)
    return out


def _reader(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    reader = _READERS.get(suffixes[-1]) if suffixes else None
    if reader is None:
        known = ", ".join(_READERS)
        raise UsageError(f"asked to replay {path}; saw no format in its name. Name it with one of {known}")
    return reader


def _literal(path: Path) -> str:
    if any(sign in str(path) for sign in "*?["):
        raise UsageError(f"asked to replay {path}; saw *, ? or [ in its path, which stand for other files. Rename it")
    return str(path)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _json_value(column: str, kind: duckdb.sqltypes.DuckDBPyType) -> str:
    """Return a SQL expression for the column as JSON should have it."""
    name, family = _name(column), kind.id
    if family in _EXACT or _is_nested(kind):
        return name
    if family in ("float", "double"):
        return f"case when isfinite({name}) then to_json({name}) else to_json(cast({name} as varchar)) end"
    if family == "blob":
        return f"hex({name})"
    text = f"cast({name} as varchar)"
    if family in _TIMES:
        # ISO 8601, which every parser of JSON reads: a T in the middle and Z for UTC.
        text = rf"regexp_replace(regexp_replace({text}, '^([0-9]+-[0-9]+-[0-9]+) ', '\1T'), '\+00$', 'Z')"
    return text


def _pointer(column: str) -> str:
    """Return where the column is in a record's JSON, as a SQL literal; RFC 6901 takes any name, unlike a JSON path."""
    return "'/" + column.replace("~", "~0").replace("/", "~1").replace("'", "''") + "'"


def _is_json(text: str) -> bool:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


def _is_nested(kind: duckdb.sqltypes.DuckDBPyType) -> bool:
    # To DuckDB, JSON is text under another name.
    return kind.id in _NESTED or str(kind) == "JSON"


def _sent(column: str, kind: duckdb.sqltypes.DuckDBPyType) -> str:
    return f"{_name(column)} := {_json_value(column, kind)}"


def _column(name: str, kind: duckdb.sqltypes.DuckDBPyType) -> Column:
    pointer = _pointer(name)
    if _is_nested(kind):
        return Column(name, "JSON", f"nullif(json_extract(value, {pointer}), cast('null' as JSON))")
    text = f"json_extract_string(value, {pointer})"
    if kind.id == "blob":
        return Column(name, "BLOB", f"unhex({text})")
    return Column(name, str(kind), text if str(kind) == "VARCHAR" else f"cast({text} as {kind})")

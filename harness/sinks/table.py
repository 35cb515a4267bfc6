"""What was read of one sink, and how it lies in the run folder.

`sink/<i>.parquet` has every column as nullable text in canonical form, `sink/<i>.json` what the columns are. A sink
that could not be read is kept too, with the words that say why: silence must not look like an empty table.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.checkers.cells import FAMILIES, Row
from harness.errors import HarnessError
from harness.store import noun

_WRITTEN = {
    "number": r"^(-?[0-9]+(\.[0-9]+)?(E(-[0-9]{1,7}|[0-9]{1,6}))?|-?Infinity|NaN)$",
    "float": r"^(-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]{1,3})?|-?inf|nan)$",
}
"""How the cells look that are counted with; a family that is only compared may hold any text."""


@dataclass(frozen=True, kw_only=True)
class SinkColumn:
    """A column: its name, the engine's type, and the family of its cells."""

    name: str
    type: str
    family: str


@dataclass(frozen=True, kw_only=True)
class SinkTable:
    """The canonical rows of one sink. `unreadable` says why there are none; empty if it could be read."""

    name: str
    backend: str
    target: str
    columns: tuple[SinkColumn, ...] = ()
    rows: list[Row] = field(default_factory=list, repr=False)
    unreadable: str = ""


@dataclass(frozen=True, kw_only=True)
class _About:
    """`sink/<i>.json`."""

    name: str
    backend: str
    target: str
    columns: tuple[SinkColumn, ...]
    rows: int
    unreadable: str = ""


def save(folder: Path, index: int, table: SinkTable) -> None:
    """Write the sink with place `index` in the scenario into the run folder. Raises HarnessError."""
    room = folder / "sink"
    about = {
        "name": table.name,
        "backend": table.backend,
        "target": table.target,
        "columns": [asdict(column) for column in table.columns],
        "rows": len(table.rows),
        "unreadable": table.unreadable,
    }
    # Columns are named by place: a query may give two columns one name.
    cells = {str(at): pa.array([row[at] for row in table.rows], pa.string()) for at in range(len(table.columns))}
    try:
        room.mkdir(mode=0o700, exist_ok=True)
        _whole(room / f"{index}.parquet", pa.table(cells))
        (room / f"{index}.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    except OSError as refusal:
        asked = f"asked to write {room / str(index)}.parquet"
        raise HarnessError(f"{asked}; saw {refusal.strerror or refusal}. Make room or permission") from refusal


def load(folder: Path, index: int) -> SinkTable | None:
    """The sink as saved; None if it never was. Raises HarnessError if it is damaged, or rows are missing in it."""
    paths = folder / "sink" / f"{index}.json", folder / "sink" / f"{index}.parquet"
    if not paths[0].is_file():
        return None
    try:
        about: _About = noun(_About, json.loads(paths[0].read_text(encoding="utf-8")), str(paths[0]))
        data = _table(paths[1])
        cells = [_cells(data, at, column) for at, column in enumerate(about.columns)]
    except (OSError, ValueError, KeyError, RecursionError, pa.ArrowException) as failure:
        raise HarnessError(f"{paths[0]} or {paths[1].name} is damaged: {failure}. Run the scenario again") from failure
    if data.num_rows != about.rows:
        raise HarnessError(
            f"{paths[1]} has {data.num_rows} rows, and {about.rows} were read from the sink. Run the scenario again"
        )
    return SinkTable(
        name=about.name,
        backend=about.backend,
        target=about.target,
        columns=about.columns,
        rows=list(zip(*cells, strict=True)),
        unreadable=about.unreadable,
    )


def _table(path: Path) -> pa.Table:
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read()
    table.validate(full=True)
    return table


def _cells(data: pa.Table, at: int, column: SinkColumn) -> list[str | None]:
    """One column's cells. Raises ValueError if they are none of its family."""
    cells = data[str(at)]
    if column.family not in FAMILIES or cells.type != pa.string():
        raise ValueError(f"the column {column.name} is {column.family} as {cells.type}")
    form = _WRITTEN.get(column.family)
    if form and pc.all(pc.match_substring_regex(cells, form)).as_py() is False:
        raise ValueError(f"the column {column.name} holds what is no {column.family}")
    out: list[str | None] = cells.to_pylist()
    return out


def _whole(path: Path, table: pa.Table) -> None:
    """Write a Parquet file that appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    pq.write_table(table, part, compression="zstd", write_page_checksum=True)
    part.chmod(0o600)
    part.replace(path)

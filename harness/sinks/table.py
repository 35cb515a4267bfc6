"""What was read of one sink, and how it lies in the run folder.

`sink/<i>.parquet` has every column as nullable text in canonical form, `sink/<i>.json` what the columns are. A sink
that could not be read is kept too, with the words that say why: silence must not look like an empty table.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.checkers.cells import Row
from harness.errors import HarnessError


@dataclass(frozen=True, kw_only=True)
class SinkColumn:
    """A column: its name, the engine's type, and the family of its cells."""

    name: str
    type: str
    family: str


@dataclass(frozen=True, kw_only=True)
class SinkTable:
    """The canonical rows of one sink. `unreadable` says why there are none; empty if it could be read.

    `unique`: it is a table that lets no two rows have one key. `folds`: it is a query under which a doubled row does
    not show, as tried on a copy of the rows; None if that was not or could not be tried. `folding` says it in words."""

    name: str
    backend: str
    target: str
    columns: tuple[SinkColumn, ...] = ()
    rows: list[Row] = field(default_factory=list, repr=False)
    unreadable: str = ""
    unique: bool = False
    folds: bool | None = None
    folding: str = ""


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
        "unique": table.unique,
        "folds": table.folds,
        "folding": table.folding,
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
        about = json.loads(paths[0].read_text(encoding="utf-8"))
        data = pq.read_table(paths[1])
        columns = tuple(SinkColumn(**column) for column in about["columns"])
        cells = [data[str(at)].to_pylist() for at in range(len(columns))]
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as failure:
        raise HarnessError(f"{paths[0]} or {paths[1].name} is damaged: {failure}. Run the scenario again") from failure
    if data.num_rows != about["rows"]:
        raise HarnessError(f"{paths[1]} has {data.num_rows} rows, and {about['rows']} were read from the sink")
    return SinkTable(
        name=about["name"],
        backend=about["backend"],
        target=about["target"],
        columns=columns,
        rows=list(zip(*cells, strict=True)),
        unreadable=about.get("unreadable", ""),
        unique=about.get("unique") is True,
        folds=about.get("folds") if isinstance(about.get("folds"), bool) else None,
        folding=str(about.get("folding", "")),
    )


def _whole(path: Path, table: pa.Table) -> None:
    """Write a Parquet file that appears whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    pq.write_table(table, part, compression="zstd")
    part.chmod(0o600)
    part.replace(path)

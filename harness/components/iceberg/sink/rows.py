"""Reads the current snapshot of an Iceberg table in a Hadoop catalog, by pyiceberg.

The newest `vN.metadata.json` is the table: a commit is a rename to the next number, and the hint beside it may be late.
A data file that no snapshot names is no row.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError, NotInstalledError, ValidationError
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import StaticTable

from harness.sinks import arrow
from harness.sinks.base import Missing

METADATA = "metadata"
NUMBERED = re.compile(r"v([0-9]+)(\.gz)?\.metadata\.json")
FORMAT_MAX = 2
"""The format version of which tests say that it is read right: 3 has deletion vectors and more types."""
TRIES = 5
FAILURES = (ValidationError, NoSuchTableError, NotInstalledError, NotImplementedError, ArithmeticError, EOFError,
            LookupError, TypeError, ValueError)  # fmt: skip
"""What pyiceberg raises of a table that is damaged, or that it does not know how to read."""


def version_of(table: StaticTable) -> str:
    """Return which snapshot of which table."""
    snapshot = table.metadata.current_snapshot_id
    return f"snapshot {snapshot if snapshot is not None else 'none'} of {table.metadata.table_uuid}"


def opened(folder: Path) -> StaticTable:
    """As it stands. Raises Missing, StackError; UsageError for a table that may not be read right."""
    table, tries = None, TRIES
    while table is None:
        tries -= 1
        table = _newest(folder, last=not tries)
    if table.metadata.format_version > FORMAT_MAX:
        raise named(folder).not_known(f"format version {table.metadata.format_version}")
    return table


def _newest(folder: Path, *, last: bool) -> StaticTable | None:
    """Return the newest version; None if a writer that keeps few of them removed it meanwhile, unless it is the last
    try."""
    words = named(folder)
    numbers = {int(found[1]): found[0] for found in map(NUMBERED.fullmatch, _names(folder / METADATA)) if found}
    if not numbers:
        where = f"there is none in {folder.parent}. Mend its name in `sink`, or in the program"
        raise Missing(f"asked to read {words.what}; {where}")
    file = folder / METADATA / numbers[max(numbers)]
    with words.stack_errors():
        try:
            return StaticTable.from_metadata(str(file))
        except FileNotFoundError:
            if last or file.exists():
                raise
            return None


def schema(table: StaticTable) -> pa.Schema:
    """Return its columns."""
    return table.schema().as_arrow()


def scanned(table: StaticTable) -> pa.RecordBatchReader:
    """Return its rows, one data file after the other; pyiceberg's own reader decodes all of them ahead of who asks."""
    _refuse(table)
    scan = table.scan()
    wanted = schema_to_pyarrow(scan.projection())
    rows = ArrowScan(table.metadata, scan.io, scan.projection(), scan.row_filter)
    batches = (batch for task in scan.plan_files() for batch in rows.to_record_batches([task]))
    return pa.RecordBatchReader.from_batches(wanted, batches).cast(wanted)


def _refuse(table: StaticTable) -> None:
    """Raise UsageError for a file that pyiceberg does not read, or that no test here has."""
    snapshot, words = table.current_snapshot(), named(Path(table.location()))
    entries = (
        entry.data_file
        for manifest in (snapshot.manifests(table.io) if snapshot else ())
        for entry in manifest.fetch_manifest_entry(table.io)
    )
    for file in entries:
        if file.content is DataFileContent.EQUALITY_DELETES:
            raise words.not_known("equality deletes")
        if file.file_format is not FileFormat.PARQUET:
            raise words.not_known(f"a file in the format {file.file_format.value}")


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def named(folder: Path) -> arrow.Table:
    """Return what it is called in words, and what pyiceberg raises."""
    return arrow.Table(f"the Iceberg table {folder.name}", FAILURES)

"""Every finding of a verdict as a row of `findings.csv`, for a spreadsheet or a program.

A cell that a spreadsheet would take for a formula begins with an apostrophe; what cannot be seen stands as an escape,
so that a row is always one line.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Mapping, Sequence

from harness.report.causes.groups import Group
from harness.report.escape import visible
from harness.scenario import Finding

NAME = "findings.csv"
HEADS = (
    "cause",
    "kind",
    "sink",
    "key",
    "rows missing or too many",
    "batches",
    "records (partition/offset)",
    "after fault",
    "may be explained by",
    "also without faults",
    "note",
    "expected rows",
    "sink's rows too many or wrong",
)
LONGEST = 20_000
"""Characters of a cell; a spreadsheet takes no more than 32,767."""
FORMULA = frozenset("=+-@|%\t\r\n")


def table_file(groups: Sequence[Group], *, baseline_runs: bool = True) -> str:
    """Return the file's text, rows in the order of the causes. Without `baseline_runs` it is not known what a run
    without faults shows."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(HEADS)
    for number, group in enumerate(groups, 1):
        writer.writerows(
            [safe(cell) for cell in _row(number, finding, baseline_runs=baseline_runs)] for finding in group.findings
        )
    return out.getvalue()


def safe(text: str) -> str:
    """Return a cell that no spreadsheet calculates: blanks and full-width signs are skipped."""
    shown = visible(text, LONGEST)
    first = unicodedata.normalize("NFKC", shown.lstrip())[:1]
    return f"'{shown}" if first in FORMULA and first else shown


def _row(number: int, finding: Finding, *, baseline_runs: bool) -> list[str]:
    return [
        str(number),
        finding.kind.value,
        finding.sink,
        ", ".join(f"{column}={'NULL' if value is None else value}" for column, value in finding.key.items()),
        str(finding.copies),
        " ".join(map(str, finding.batches)),
        " ".join(f"{ref.partition}/{ref.offset}" for ref in finding.records),
        "; ".join(map(_fault, finding.faults)),
        "; ".join(map(_fault, finding.fits)),
        "yes" if finding.without_faults else ("no" if baseline_runs else ""),
        finding.note,
        _rows(finding.expected),
        _rows(finding.found),
    ]


def _fault(label: str) -> str:
    """Return `kill driver after row 85 in the sink of batch 2`: some places begin with a preposition already."""
    return label.replace(" at after ", " after ").replace(" at before ", " before ")


def _rows(rows: Sequence[Mapping[str, str | None]]) -> str:
    return json.dumps([dict(row) for row in rows], ensure_ascii=False) if rows else ""

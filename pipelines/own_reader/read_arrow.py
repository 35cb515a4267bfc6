"""Reads the Arrow files back that the pipelines beside write: what `sink: {python: read_arrow:rows}` calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.feather as feather


def rows(namespace: SimpleNamespace) -> Iterator[pa.Table]:
    """Those of each file, as the folder is listed: a file appears whole, and none is ever changed."""
    for path in sorted((Path(namespace.path) / namespace.options["folder"]).glob("*.arrow")):
        yield feather.read_table(path)

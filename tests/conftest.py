"""What tests of the judge share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.folders import Folder, payments


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A run of an honest pipeline, to be changed and written."""
    made = Folder(tmp_path / "run")
    made.tables = [payments(made.records)]
    return made

"""What a sweep knows so far, a line a cell, so that one that was killed goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from harness.errors import UsageError
from harness.run_folder import store
from harness.sweep.cells import Cell
from harness.sweep.results import Result


class State:
    """The file of results. `digest` is of all that a run depends on: with another one the sweep begins again."""

    def __init__(self, path: Path, digest: str, cells: Sequence[Cell]) -> None:
        self._path, self._cells = path, cells
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self.results = [*self._read(lines[1:])] if lines[:1] == [_head(digest)] else []
        self._lock = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole, also after a line that a kill has torn.
        store.write(path, "\n".join([_head(digest), *map(self._line, self.results), ""]))

    def _read(self, lines: Sequence[str]) -> list[Result]:
        """Return the results of cells that are still there. A last line may be torn."""
        places = {_key(cell): place for place, cell in enumerate(self._cells)}
        out: dict[int, Result] = {}
        for line in lines:
            try:
                given = json.loads(line)
                key, result = str(given["key"]), store.noun(Result, given["result"], str(self._path))
            except (ValueError, KeyError, TypeError, UsageError):
                continue
            if key in places:
                out[places[key]] = replace(result, cell=places[key])
        return list(out.values())

    def add(self, results: Sequence[Result]) -> None:
        """Keep results. Raises OSError when the disk refuses."""
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.writelines(f"{self._line(each)}\n" for each in results)

    def _line(self, result: Result) -> str:
        return json.dumps({"key": _key(self._cells[result.cell]), "result": asdict(result)}, default=str)

    def end(self) -> None:
        """Forget them: the sweep is over."""
        self._path.unlink(missing_ok=True)


def _head(digest: str) -> str:
    return json.dumps({"sweep": 1, "digest": digest})


def _key(cell: Cell) -> str:
    return json.dumps([cell.place, cell.fault, cell.batch])

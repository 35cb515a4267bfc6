"""Calls one function of the user's own code and writes down what it returns. It runs as a script in a new process
(`python -P callee.py FOLDER`) and needs nothing of the harness.

`FOLDER/call.json` says what to call. Rows go to `FOLDER/rows.arrow`, an Arrow IPC stream. `FOLDER/said.json` is written
last of all, once the function has come to its end: without it nothing of the rest counts. Its one key says what became
of the call: `gave`, `nothing`, `wrong` or `raised`.
"""

from __future__ import annotations

import importlib
import json
import linecache
import os
import shutil
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any

import pyarrow as pa

ROWS = 20_000
"""Rows of one batch as it is written."""
FREE_BYTES = 256 * 1024 * 1024
"""What has to stay free on the disk."""
WORDS, FRAMES = 600, 6
"""How much of an exception is shown: characters, and places of the user's code."""
OTHERS = ("prepare", "remove", "busy")


class Wrong(Exception):
    """It gave what cannot be taken, in words."""


def main(folder: Path) -> None:
    """Call, write down, end: without a word to whatever else the code has started."""
    call = json.loads((folder / "call.json").read_text(encoding="utf-8"))
    owner = os.getpid()
    try:
        outcome = done(call, folder, owner)
    except Wrong as wrong:
        outcome = {"wrong": str(wrong)}
    except BaseException as failure:
        outcome = {"raised": described(failure, call["folders"])}
    if os.getpid() == owner:
        half = folder / "said.half"
        half.write_text(json.dumps(outcome), encoding="utf-8")
        half.replace(folder / "said.json")
    sys.stdout.flush()
    sys.stderr.flush()
    # Its threads and its exit handlers are not waited for: the reading is complete.
    os._exit(0)


def done(call: dict[str, Any], folder: Path, owner: int) -> dict[str, Any]:
    """Return the outcome of the call. Raises Wrong, and whatever the code raises."""
    module = imported(call)
    namespace = SimpleNamespace(**call["namespace"])
    if call["do"] == "read":
        return written(function(module, call["function"])(namespace), folder, owner)
    if call["do"] == "check":
        function(module, call["function"])
    has = others(module, call["own"])
    answer = getattr(module, call["do"])(namespace) if call["do"] in has else None
    return {"gave": {"has": has, "answer": clipped(str(answer)) if answer else ""}}


def others(module: ModuleType, own: list[str]) -> list[str]:
    """Return which other functions it has. Raises Wrong for an imported one: `from os import *` gives a `remove`
    too."""
    has = [name for name in OTHERS if callable(getattr(module, name, None))]
    if strange := [name for name in has if name not in own]:
        name = strange[0]
        raise Wrong(
            f"its module has a {name} that it imports from elsewhere: write `def {name}(namespace)`, or no `import *`"
        )
    return has


def imported(call: dict[str, Any]) -> ModuleType:
    """Return the module, which is that of the file and no other one of its name."""
    sys.path[:0] = call["folders"]
    module = importlib.import_module(call["module"])
    found = getattr(module, "__file__", None)
    if found is None or Path(found).resolve() != Path(call["file"]).resolve():
        raise Wrong(f"its module {call['module']} is found at {found}: give the module another name")
    return module


def function(module: ModuleType, name: str) -> Any:
    """Return one of the module's own."""
    found = getattr(module, name, None)
    if not callable(found):
        raise Wrong(f"its module has no function {name}")
    return found


def written(given: Any, folder: Path, owner: int) -> dict[str, Any]:
    """Return all rows as one stream, and what stands for its being whole. Raises Wrong."""
    path, writer, rows = folder / "rows.arrow", None, 0
    with pa.OSFile(str(path), "wb") as file:
        for batch in batches(given):
            if os.getpid() != owner:
                # A fork of the user's that came back out of the function: it has the same file open.
                os._exit(1)
            if writer is None:
                schema = sound(batch.schema)
                writer = pa.ipc.new_stream(file, schema)
            for part in parts(batch, schema):
                if shutil.disk_usage(folder).free < FREE_BYTES:
                    raise Wrong(f"it gave {rows} rows so far, and the disk is full")
                writer.write_batch(part)
                rows += part.num_rows
        if writer is None:
            return {"nothing": True}
        writer.close()
    return {"gave": {"count": rows, "bytes": path.stat().st_size}}


def batches(given: Any) -> Iterator[pa.RecordBatch | pa.Table]:
    """Yield what a function may give: a table, a batch, or several of them one after the other."""
    if isinstance(given, pa.RecordBatch | pa.Table):
        yield given
        return
    if isinstance(given, str | bytes | dict) or not hasattr(given, "__iter__"):
        raise Wrong(f"it gave {kind(given)}, and not tables or batches of pyarrow")
    if isinstance(given, pa.RecordBatchReader):
        # Its columns are known where it has no batch.
        yield given.schema.empty_table()
    for each in given:
        if not isinstance(each, pa.RecordBatch | pa.Table):
            raise Wrong(f"it gave {kind(each)} among its batches, and not a table or batch of pyarrow")
        yield each


def sound(schema: pa.Schema) -> pa.Schema:
    """Return the columns, each with another name. Raises Wrong."""
    names = schema.names
    if not names:
        raise Wrong("its batches have no column")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise Wrong(f"its batches have the column {twice[0]!r} twice")
    return pa.schema([pa.field(each.name, each.type) for each in schema])


def parts(given: pa.RecordBatch | pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a batch in small ones, with just these columns. Raises Wrong."""
    if [(each.name, each.type) for each in given.schema] != [(each.name, each.type) for each in schema]:
        raise Wrong(f"its first batch has the columns {shown(schema)}, and a later one has {shown(given.schema)}")
    whole = given.to_batches(max_chunksize=ROWS) if isinstance(given, pa.Table) else [given]
    for batch in whole:
        for at in range(0, batch.num_rows, ROWS):
            part = pa.RecordBatch.from_arrays(batch.slice(at, ROWS).columns, schema=schema)
            try:
                part.validate(full=True)
            except pa.ArrowException as failure:
                raise Wrong(f"a batch of it is damaged: {clipped(str(failure))}") from failure
            yield part


def kind(given: Any) -> str:
    """Return what it is."""
    return f"an object of type {type(given).__module__}.{type(given).__qualname__}".replace("builtins.", "")


def shown(schema: pa.Schema) -> str:
    """Return its columns as text."""
    return clipped(", ".join(f"{each.name} {each.type}" for each in schema))


def described(failure: BaseException, folders: list[str]) -> str:
    """Return an exception in words, and where in the user's code it was raised: the innermost place last."""
    try:
        words = clipped(str(failure))
    except BaseException as worse:
        words = f"(its words cannot be had: {type(worse).__name__})"
    name = type(failure).__qualname__
    frames = [*places(failure.__traceback__, folders)]
    if isinstance(failure, SyntaxError) and failure.filename:
        frames.append(f"{theirs(failure.filename, folders) or failure.filename}:{failure.lineno}")
    where = ", then ".join(frames[-FRAMES:])
    return (f"{name}: {words}" if words else name) + (f", at {where}" if where else "")


def places(trace: TracebackType | None, folders: list[str]) -> Iterator[str]:
    """File and line of each call of the user's own code."""
    for frame in traceback.extract_tb(trace):
        if path := theirs(frame.filename, folders):
            source = linecache.getline(frame.filename, frame.lineno or 0).strip()[:120]
            yield f"{path}:{frame.lineno} in {frame.name} (`{source}`)"


def theirs(name: str, folders: list[str]) -> str:
    """Return a file of the user's own code, as seen from where it was searched for; empty for one that is none."""
    path = Path(name)
    home = next((folder for folder in folders if path.is_relative_to(folder)), None)
    return "" if home is None or "site-packages" in path.parts else str(path.relative_to(home))


def clipped(words: str) -> str:
    """On one line, and not too long."""
    line = " ".join(words.split())
    return line if len(line) <= WORDS else f"{line[:WORDS]} …"


if __name__ == "__main__":
    main(Path(sys.argv[1]))

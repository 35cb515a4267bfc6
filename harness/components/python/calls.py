"""Calls one function of the user's own code, in a new process with a deadline.

The process is new for each call. So nothing that the code remembers from before a fault (a connection, a cache, a
cursor) can pass for what the system says after it; a call costs a start of Python and its imports. What the process
prints goes to one file, what it returns comes by files in a new folder: nothing that it does to its
output reaches the harness. When it has ended, or its time is up, it is killed with all that it has started.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness.components.python import callee
from harness.components.python.places import located, own, split
from harness.errors import OwnCodeError, StackError, UsageError, WaitError
from harness.session import reaper
from harness.wait import until

MARK = "ONCEPROOF_CALL"
"""The variable that a call's processes carry."""
EVERY_S, KILL_S = 0.02, 5.0
PRINTED = 400
"""Characters of its last output, which are shown if it died."""

Spawn = Callable[[list[str], Path, Mapping[str, str]], "subprocess.Popen[bytes]"]
"""Starts a command with a file for its output and a whole environment, in a new session."""


class NothingThere(UsageError):
    """It gave neither batch nor schema."""


@dataclass(frozen=True, kw_only=True)
class Called:
    """Which code: `target` is `module:function`, searched for in `folders`. `options` are the scenario's, `within_s` is
    how long one call may take."""

    target: str
    folders: tuple[Path, ...]
    within_s: float
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def module(self) -> str:
        """Its module."""
        return split(self.target)[0]


@dataclass(frozen=True, kw_only=True)
class Namespace:
    """The namespace of a run: `name` is for any system to use, `path` is a folder."""

    name: str
    path: Path
    run: str


def directly(argv: list[str], log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Return a child of this process, of no session of ours."""
    with log.open("ab") as output:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=dict(env), start_new_session=True
        )


@contextmanager
def call(
    spawn: Spawn, code: Called, namespace: Namespace, do: str, *, scratch: Path
) -> Iterator[tuple[dict[str, Any], Path]]:
    """What the function gave, and the folder that holds it until the block ends. `do` is `read` for that of the target,
    `check` for whether it is there, or another one of its module, which need not be there.

    Raises OwnCodeError where it raises, dies or is late; UsageError for what it should not give; NothingThere."""
    with _disk_errors(code, do):
        folder = Path(tempfile.mkdtemp(prefix="call-", dir=scratch))
    try:
        yield _answer(folder, _run(spawn, code, namespace, do, folder), f"asked {_called(code, do)}"), folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(spawn: Spawn, code: Called, namespace: Namespace, do: str, folder: Path) -> str:
    """Write the call down, wait for the process's end, and return how it ended, in words."""
    request, mark = f"asked {_called(code, do)}", secrets.token_hex(8)
    try:
        file, _ = located(code.module, code.folders)
    except UsageError as missing:
        raise UsageError(f"{request}; it {missing}") from None
    known = {
        "do": do,
        "module": code.module,
        "function": split(code.target)[1],
        "file": str(file),
        "own": own(file, code.folders),
        "folders": list(map(str, code.folders)),
        "namespace": {**asdict(namespace), "path": str(namespace.path), "options": dict(code.options)},
    }
    with _disk_errors(code, do):
        (folder / "call.json").write_text(json.dumps(known), encoding="utf-8")
    # -B: no cache of ours is left beside the user's files.
    argv = [sys.executable, "-P", "-B", "-X", "faulthandler", callee.__file__, str(folder)]
    process = spawn(argv, folder / "printed", {**os.environ, MARK: mark})
    try:
        until(request, lambda: process.poll() is not None, within_s=code.within_s, every_s=EVERY_S)
    except WaitError as late:
        raise OwnCodeError(
            f"{request}; it had not come to its end after {code.within_s:g} s{_printed(folder)}"
        ) from late
    finally:
        _end(process, f"{MARK}={mark}")
    return _died(process.returncode)


@contextmanager
def _disk_errors(code: Called, do: str) -> Iterator[None]:
    """Turn what the disk refuses into a StackError."""
    try:
        yield
    except OSError as refused:
        raise StackError(f"asked {_called(code, do)}; cannot write down the call: {refused.strerror}") from refused


def _answer(folder: Path, died: str, request: str) -> dict[str, Any]:
    file = folder / "said.json"
    if not file.is_file():
        raise OwnCodeError(f"{request}; its process {died} before it had come to its end{_printed(folder)}")
    ((what, words),) = json.loads(file.read_text(encoding="utf-8")).items()
    if what == "raised":
        raise OwnCodeError(f"{request}; it raised {words}")
    if what == "wrong":
        raise UsageError(f"{request}; {words}")
    if what == "nothing":
        raise NothingThere(
            f"{request}; it gave neither a batch nor a schema. A table without rows says that it is empty"
        )
    found: dict[str, Any] = words
    return found


def _end(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill what is left of a call: its process, what descends from it, and what carries its mark."""
    top = reaper.identify(process.pid) if process.poll() is None else None
    carrying = {row.id for row in reaper.table().values() if reaper.carries(row.id.pid, mark)}
    if roots := carrying | ({top} if top else set()):
        reaper.fell(roots, within_s=KILL_S)
    with suppress(subprocess.TimeoutExpired):  # the kernel does not let go of it: the error is reported
        process.wait(KILL_S)


def _called(code: Called, do: str) -> str:
    known = {"read": f"{code.target} for its rows", "check": f"for {code.target}"}
    return known.get(do, f"{code.module}:{do}")


def _died(status: int | None) -> str:
    if status is None:
        return "could not be killed"
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"


def _printed(folder: Path) -> str:
    """Return what it printed last."""
    try:
        with (folder / "printed").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - PRINTED))
            words = " ".join(file.read().decode(errors="replace").split())
    except OSError:
        return ""
    return f". It printed last: {words}" if words else ""

"""A pipeline without Spark: speaks the same checkpoint protocol, in a process tree of the same shape.

    java fake_pipeline.py CHECKPOINT SINK BATCHES STEP_S [--broken WORD]

A process called `java` that starts a Python program and ends as that does. It writes `offsets/N`, appends N to the
sink, writes `commits/N` by temporary file and rename, slowly enough that every crash point can be struck, quickly
enough for a test. The program ends with it. `--broken crash` ends at once with status 3; `idle` never commits; `deaf`
ignores SIGTERM; `polite` finishes its batch first; `late` finds no record in batches 0 and 3; `hop` has a second query
that reads another topic and follows the first; `async` has the thread by which Spark logs offsets late; `logged` names
each batch in a log of the sink's own, `table/log/N` beside it; `slow` goes on after a restart only once a file `go`
lies beside its sink. At a crash point that a file in the folder `holds` names it stands until the file `NAME.held`,
which it makes of that, is gone: once, so not after a restart. With ONCEPROOF_AGENT it reports its operations on a
checkpoint there.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

STEP_S = float(sys.argv[4])
HELD_S, LOOK_S = 120.0, 0.01
ROWS = 10
PYTHON = os.environ["FAKE_PYTHON"]


def rest(seconds: float) -> None:
    threading.Event().wait(seconds)


def taken(folder: Path, point: str) -> Path | None:
    """The hold on a crash point that is about to come: taken before, since it may be the last thing that is seen."""
    hold = Path(sys.argv[2]).parent.with_name("holds") / f"{folder.parent.name}-{folder.name}-{point}"
    with contextlib.suppress(FileNotFoundError):
        return hold.rename(hold.with_name(f"{hold.name}.held"))
    return None


def stand(held: Path | None) -> None:
    """At a crash point: for a step, and for as long as it is held."""
    rest(STEP_S)
    for _ in range(round(HELD_S / LOOK_S)):
        if held is None or not held.exists():
            break
        rest(LOOK_S)


def jvm(checkpoint: Path, sink: Path, batches: int, broken: str) -> None:
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    for folder in (offsets, commits):
        folder.mkdir(parents=True, exist_ok=True)
    batch = max((int(p.name) for p in commits.iterdir() if p.name.isdecimal()), default=-1) + 1
    if broken == "async":
        threading.Thread(target=log_writer, daemon=True).start()
    while broken == "slow" and batch and not (sink.parent / "go").exists():
        rest(STEP_S)
    if broken == "late" and not batch:
        (checkpoint / "sources" / "0").mkdir(parents=True)
        appear(checkpoint / "sources" / "0", 0, '\0v1\n{"topic":{"0":0}}')
    while batch < batches:
        empty = [n for n in (0, 3) if broken == "late" and n <= batch]
        if not (offsets / str(batch)).exists():
            appear(offsets, batch, f'v1\n{{}}\n{{"topic":{{"0":{(batch + 1 - len(empty)) * ROWS}}}}}')
        else:
            rest(STEP_S)
        if broken == "stateful":
            state = checkpoint / "state" / "0" / "0" / f"{batch + 1}.delta"
            state.parent.mkdir(parents=True, exist_ok=True)
            with reported("rename", state):
                state.touch()
        with sink.open("a") as rows:
            rows.write(f"{batch}\n")
        if broken == "logged":
            log = sink.parent / "table" / "log"
            log.mkdir(parents=True, exist_ok=True)
            appear(log, batch, "v1")
        appear(commits, batch, "v1\n{}")
        if broken == "hop":
            hop(checkpoint.with_name("hop"), batch)
        batch += 1
    rest(60)


def log_writer() -> None:
    # As the kernel calls it: Python's own name of a thread stays in Python.
    ctypes.CDLL(None).prctl(15, b"async-log-write")
    rest(HELD_S)


def hop(checkpoint: Path, batch: int) -> None:
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    appear(checkpoint / "offsets", batch, f'v1\n{{}}\n{{"other":{{"0":{batch + 1}}}}}')
    appear(checkpoint / "commits", batch, "v1\n{}")


def appear(folder: Path, batch: int, text: str) -> None:
    temporary, final = folder / f".{batch}.{os.getpid():08x}-0000.tmp", folder / str(batch)
    held = taken(folder, f"{batch}-begun")
    with reported("create", final):
        temporary.write_text(text)
    stand(held)
    held = taken(folder, str(batch))
    with reported("rename", final):
        temporary.rename(final)
    stand(held)


@contextlib.contextmanager
def reported(op: str, path: Path) -> Iterator[None]:
    """As the agent in Spark does, where it is asked to: it waits for an answer before the operation and after it."""
    host, _, port = os.environ.get("ONCEPROOF_AGENT", "").partition(":")
    if not port:
        yield
        return
    event = {"what": "checkpoint-op", "op": op, "path": str(path), "process": "driver", "waits": True}
    with socket.create_connection((host, int(port))) as harness:
        harness.sendall(json.dumps({**event, "when": "before"}).encode() + b"\n")
        harness.recv(1)
        yield
        harness.sendall(json.dumps({**event, "when": "after"}).encode() + b"\n")
        harness.recv(1)


def main() -> None:
    checkpoint, sink, batches = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    broken = sys.argv[6] if "--broken" in sys.argv else ""
    if broken == "crash":
        sys.exit("ImportError: no module named nowhere")
    if broken == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.environ.get("FAKE_PROGRAM"):
        if broken == "polite":
            signal.signal(signal.SIGTERM, lambda *_: finish(checkpoint))
        os.write(1, b"!")
        sys.stdin.read()
        sys.exit(1)
    argv, environment = [PYTHON, *sys.argv], {**os.environ, "FAKE_PROGRAM": "1"}
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    # It is the program that asks for all that follows.
    assert child.stdout is not None
    child.stdout.read(1)
    threading.Thread(target=end_with, args=(child,), daemon=True).start()
    if broken == "idle":
        rest(60)
    jvm(checkpoint, sink, batches, broken)


def end_with(child: subprocess.Popen[bytes]) -> None:
    status = child.wait()
    os._exit(status if status >= 0 else 128 - status)


def finish(checkpoint: Path) -> None:
    while len(list((checkpoint / "commits").glob("[0-9]*"))) < len(list((checkpoint / "offsets").glob("[0-9]*"))):
        rest(STEP_S / 4)
    sys.exit(0)


if __name__ == "__main__":
    main()

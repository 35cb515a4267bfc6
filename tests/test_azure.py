"""The component `azure`: how its emulator is asked, and what is a folder there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.components.azure import blob, process
from harness.components.azure.blob import EMULATED, BlobService, emulator
from harness.components.azure.process import Azurite
from harness.components.azure.run_prefix import CONTAINER, EMULATOR
from harness.errors import StackError
from harness.hosts.ports import LOOPBACK
from harness.machine import java
from harness.remote import Entry
from harness.remote.objects import Object, ObjectFolder
from harness.session.reaper import MARKER
from harness.session.session import Session
from tests.provided import running


class Held(BlobService):
    """Some blobs, without an emulator."""

    names = ("r1/plain/checkpoint", "r1/plain/checkpoint/offsets", "r1/plain/checkpoint/offsets/0")

    def listed(self, container: str, prefix: str, *, deep: bool) -> Iterator[Object]:
        """As the service cuts names at the next `/`."""
        below = [name.removeprefix(prefix) for name in self.names if name.startswith(prefix)]
        cut = [name if deep or "/" not in name else f"{name.partition('/')[0]}/" for name in below]
        return iter([Object(f"{prefix}{name}", 2, "tag") for name in dict.fromkeys(cut)])


def test_a_blob_that_marks_a_folder_is_that_folder() -> None:
    store = Held(EMULATED, LOOPBACK)
    prefix = ObjectFolder(store=store, bucket=CONTAINER, root=EMULATOR, prefix="r1/plain/")
    assert prefix.entries("") == [Entry("checkpoint", folder=True)]
    assert prefix.entries("checkpoint") == [Entry("offsets", folder=True)]
    assert prefix.entries("checkpoint/offsets") == [Entry("0", size=2, stamp="tag")]
    assert prefix.below("checkpoint").url == "wasb://onceproof@devstoreaccount1/r1/plain/checkpoint"


def test_no_deletion_names_the_container_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[str] = []
    store = Held(EMULATED, LOOPBACK)
    monkeypatch.setattr(Held, "delete", lambda self, container, name: gone.append(name))
    ObjectFolder(store=store, bucket=CONTAINER, root=EMULATOR, prefix="").delete("")
    ObjectFolder(store=store, bucket=CONTAINER, root=EMULATOR, prefix="r1/plain/").delete("checkpoint")
    assert gone == [*sorted(Held.names, reverse=True), *sorted(Held.names[1:], reverse=True), Held.names[0]]


def test_a_port_that_a_dead_harness_left_behind_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as left:
        number = left.getsockname()[1]
        monkeypatch.setattr(process, "FREE_S", 0.2)
        with pytest.raises(StackError, match=rf"waited 0.2 s for port {number} to be free for Azurite.*end who has it"):
            process.free_port(number)
        monkeypatch.setattr(process, "FREE_S", 60.0)
        reaper = threading.Timer(0.3, left.close)
        reaper.start()
        port = process.free_port(number)
        reaper.join()
    assert port.number == number
    port.release()


NPM = """#!/bin/sh
echo "$@" > "$HERE/asked"
env > "$HERE/environment"
mkdir -p node_modules/azurite/dist/src/blob
touch node_modules/azurite/dist/src/blob/main.js
"""


@pytest.mark.subprocess
def test_npm_runs_no_script_and_is_the_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SOME_SECRET", "s")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    npm = tmp_path / "npm"
    npm.write_text(NPM.replace("$HERE", str(tmp_path)))
    npm.chmod(0o700)
    left = tmp_path / "cache" / "azurite" / f".{process.VERSION}.left"
    left.mkdir(parents=True)
    with Session() as session:
        assert process.installed(npm, session, log=tmp_path / "azure.log").is_file()
    assert "--ignore-scripts" in (tmp_path / "asked").read_text().split()
    names = {line.partition("=")[0] for line in (tmp_path / "environment").read_text().splitlines()}
    assert {MARKER, "https_proxy"} < names
    assert "SOME_SECRET" not in names
    assert not left.exists()


@pytest.mark.stack
@pytest.mark.prove
def test_what_is_put_is_there_until_its_run_ends(tmp_path: Path) -> None:
    with Session() as session, running(Azurite(session, java.find(), logs=tmp_path)) as made:
        prefix: ObjectFolder = made.provide("r1", {"": {}})[""].at
        prefix.write("offsets/.0.a b.tmp", b"v1")
        assert prefix.read("offsets/.0.a b.tmp") == b"v1"
        assert prefix.entries("") == [Entry("offsets", folder=True)]
        assert [entry.name for entry in prefix.entries("offsets")] == [".0.a b.tmp"]
        assert prefix.read("nothing") is None
        # As the connector asks: through the proxy, at the one port that it knows.
        assert (made.service.port == blob.PORT, emulator().containers()) == (False, [CONTAINER])
        made.drop("r1", [""])
        assert list(made.service.listed(CONTAINER, "", deep=True)) == []
        made.stop()
        for service in (made.service, emulator()):
            with pytest.raises(StackError, match=r"asked Azurite at .*; saw"):
                service.containers()


def test_who_waits_too_long_for_the_only_port_is_told_who_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "port_lock", lambda: tmp_path / "lock")
    monkeypatch.setattr(process, "LOCK_S", 0.05)
    with (
        process.alone(),
        pytest.raises(StackError, match="another run of onceproof has its Azurite there"),
        process.alone(),
    ):
        pass
    with process.alone():
        pass

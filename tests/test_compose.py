"""docker-compose.yml is valid, comes up, and is a cluster that scenarios run against as `external`, left as it was."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import psycopg2
import pytest
from kafka import KafkaAdminClient

from harness.session.session import Session
from tests import container_engine

pytestmark = [pytest.mark.stack, pytest.mark.containers, pytest.mark.prove]
HOUSE = Path(__file__).parents[1]
COMPOSE = ["docker", "compose", "--project-name", "onceproof-test", "--file", str(HOUSE / "docker-compose.yml")]
KAFKA, POSTGRES = "127.0.0.1:9092", "postgresql://onceproof:not-a-secret@127.0.0.1:5432/onceproof"
MASTER = "spark://127.0.0.1:7077"
PORTS = (9092, 9093, 5432, 7077, 8080, 8081, 8082)
UP_S, RUN_S = 240, 3000
CHOICE = os.environ.get("ONCEPROOF_COMPOSE", "append_before_offset_commit upsert_before_offset_commit").split()
"""The scenarios of the proving suite to run; `_` takes all."""


def compose(*words: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMPOSE, *words], env=env, capture_output=True, text=True, timeout=UP_S, check=False)


@pytest.fixture(scope="module")
def plain() -> dict[str, str]:
    """Our environment, if there is a docker compose 2."""
    there = shutil.which("docker") is not None
    if not there or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        container_engine.lacking("docker compose 2")
    return dict(os.environ)


@pytest.fixture(scope="module")
def cluster(plain: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The compose stack, up; the folder that it shares. Gone afterwards, also when we are killed."""
    container_engine.found().close()
    for port in PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"not run: somebody listens at port {port}, which docker-compose.yml needs")
    shared = tmp_path_factory.mktemp("shared")
    env = {**plain, "ONCEPROOF_SHARED": str(shared), "ONCEPROOF_USER": f"{os.getuid()}:{os.getgid()}"}
    with Session() as session:
        session.at_the_end(json.dumps({"argv": [*COMPOSE, "down", "--volumes", "--timeout", "3"], "env": env}))
        done = compose("up", "--detach", "--wait", env=env)
        assert done.returncode == 0, done.stderr + compose("logs", "--tail", "20", env=env).stdout
        yield shared


def test_its_file_is_valid(plain: dict[str, str]) -> None:
    done = compose("config", "--quiet", env=plain)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def made() -> tuple[set[str], set[str]]:
    """The topics and schemas that are there and not the servers' own."""
    admin = KafkaAdminClient(bootstrap_servers=KAFKA)
    try:
        topics = {name for name in admin.list_topics() if not name.startswith("__")}
    finally:
        admin.close()
    with psycopg2.connect(POSTGRES) as connection, connection.cursor() as cursor:
        cursor.execute("select nspname from pg_namespace where nspname !~ '^(pg_|information_schema|public)'")
        return topics, {row[0] for row in cursor.fetchall()}


@pytest.mark.timeout(RUN_S)
def test_the_suite_runs_against_it_and_leaves_nothing(cluster: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "harness", "run", "scenarios/proving", "--skip-unsupported", "--stack", "external"]
    argv += [
        "--at",
        f"kafka={KAFKA}",
        "--at",
        f"postgres={POSTGRES}",
        "--spark-master",
        MASTER,
        "--shared-dir",
        str(cluster),
    ]
    argv += [word for name in CHOICE for word in ("-k", name)]
    done = subprocess.run(
        [*argv, "--reports", str(tmp_path)], cwd=HOUSE, capture_output=True, text=True, timeout=RUN_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.search(r"^(\d+) runs?: (\d+) as expected", done.stdout, re.MULTILINE)
    assert ran and ran[1] == ran[2]
    assert made() == (set(), set())
    assert list((cluster / "runs").iterdir()) == []

"""What tests share."""

from __future__ import annotations

import gc
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.net.inet import KafkaNetSocket

from harness.run_folder.store import RunFolder
from harness.stacks.processes import shared
from tests.asked_once import asked_once as asked_once
from tests.folders import Folder, payments

HERE = Path(__file__).parent
# They assert for others, who see the values that differed.
pytest.register_assert_rewrite("tests.planted", "tests.arrow_values", "tests.spark_tables")


UNCLOSED = ("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")


LONGEST_FIRST = """
    proving containers leaks truth sinks shared_stack stack bad_input hostile early_errors external outsider
    mariadb settling example_repo sabotage archives driver_start tutorial starts iceberg_sink python_sink opensearch
    producer
"""
PLACE = {f"test_{name}.py": place for place, name in enumerate(LONGEST_FIRST.split())}
"""Of the files that run for long with servers."""
SLOWEST = """
    azure_account brief cause baseline_runs certain corpus crash_points delta_sink dependencies
    examine explain feed file_source hdfs_faults house iceberg_sink judge judged_updates judged_windows kinds ledger
    load_expected many nightly nightly_command nightly_draw outage page_causes plan plugin producer record_log_source
    proxy remote request_trigger rules rules_corpus s3 session setup side_by_side sink_commits soak socket_source starts
    timeline torn workload yarn_attempts yarn_aimed
"""
LEFT_OUT = re.compile(r"not \((\w+ or )*slow( or \w+)*\)")
"""An expression of marks that no slow test meets, whatever else it is marked."""
SLOW = {f"test_{name}.py" for name in SLOWEST.split()}
"""Files of tests that take seconds without a server: marked `slow`, as some tests of other files are."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of slow tests is not read where they are left out (`make check`)."""
    left_out = LEFT_OUT.fullmatch(config.option.markexpr)
    return True if left_out and collection_path.name in SLOW else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a test leaves open fails it, or a later one where only the collector finds it. Not where servers run: what
    their clients leave then is collected at any time, in tests of others.

    A long file of real runs goes before a short one: files are dealt in this order to the processes that run them
    (`make test`), and none of them has a long one left when the others have nothing to do."""
    items.sort(key=lambda item: PLACE.get(item.path.name, len(PLACE)))
    for item in items:
        if item.path.name in SLOW:
            item.add_marker(pytest.mark.slow)
        if item.path.is_relative_to(HERE) and item.get_closest_marker("stack") is None:
            for each in UNCLOSED:
                item.add_marker(pytest.mark.filterwarnings(each))


@pytest.fixture(scope="module")
def all_closed() -> Iterator[None]:
    """What a module's tests left open is found in that module, and what others left before it is not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    yield
    gc.collect()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file for a scenario, in a project with our pipelines."""
    root = tmp_path_factory.mktemp("copied")
    shutil.copytree(HERE.parent / "pipelines", root / "pipelines")
    (root / "scenarios").mkdir()
    return root / "scenarios" / "it.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A run of an honest pipeline, to be changed and written."""
    made = Folder(tmp_path / "run")
    made.tables = [payments(made.records)]
    return made


@pytest.fixture(scope="session")
def held_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that held, as the loop leaves it: judged once for all tests, which take copies of it."""
    made = Folder(tmp_path_factory.mktemp("held") / "run")
    made.tables = [payments(made.records)]
    return made.complete().path


@pytest.fixture
def held_run(held_once: Path, tmp_path: Path) -> RunFolder:
    """A copy of it, to be damaged."""
    return RunFolder.open(Path(shutil.copytree(held_once, tmp_path / "run")))


@pytest.fixture(scope="session", autouse=True)
def sessions_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees the folder of a session that is not the tests': each start sweeps what earlier ones left on the
    machine, and says what it could not. The path is short, since sockets are in it."""
    tmp_path_factory.getbasetemp()
    with tempfile.TemporaryDirectory(prefix="op-") as folder, pytest.MonkeyPatch.context() as patch:
        # Root's harness runs Postgres as `nobody`, who has to get to its folder.
        Path(folder).chmod(0o711)
        patch.setitem(os.environ, "TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(scope="session", autouse=True)
def failed_connections_closed() -> Iterator[None]:
    """kafka-python leaves the socket of a connection that fails to the collector; what else is left open is ours."""
    connects = KafkaNetSocket.sock_connect

    async def closing(self: Any, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None) -> Any:
        try:
            return await connects(self, net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KafkaNetSocket, "sock_connect", closing)
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_stack_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test uses a stack that is up for somebody else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, shared.VARIABLE, str(tmp_path_factory.mktemp("shared-stack")))
        yield

"""The stack `external`: only its own topic, schemas and folder, only the faults it supports, clear words."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from click.testing import CliRunner
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from harness.cli import main
from harness.components.mariadb.address import MariaDBThere
from harness.components.postgres.address import databases
from harness.errors import StackError, UsageError
from harness.faults import FAULTS
from harness.load import load
from harness.run.loop import run
from harness.scenario import Word
from harness.stack import Means
from harness.stacks.addresses import Where
from harness.stacks.external.stack import ExternalStack, master_of
from harness.stacks.lasting import remembered
from harness.stacks.needed_parts import needed
from harness.stacks.processes.stack import ProcessesStack
from harness.stacks.provision import Made
from harness.stacks.registry import names
from harness.stacks.supported import refuse, supported, unsupported
from harness.suite import only_suite
from harness.wait import Waiting, until
from tests.provided import broker, database
from tests.shipped import alone

PROVING = Path(__file__).parents[1] / "scenarios" / "proving"
GROUPS_S = 60.0
NOBODY = {"kafka": "127.0.0.1:1", "postgres": "postgresql://a@127.0.0.1:1/b"}
NOWHERE = Where(at=NOBODY, spark_master="spark://127.0.0.1:1")


THERE = [word for name, address in NOBODY.items() for word in ("--at", f"{name}={address}")]


def onceproof(*words: str) -> tuple[int, str]:
    return onceproof_of(str(PROVING / "upsert_driver_killed_mid_batch.yaml"), *words)


def onceproof_of(path: str, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["run", path, *words])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--stack", "external"], "it also needs --spark-master"),
        (["--stack", "external", "--at", "kafka=a:1"], "it also needs --spark-master"),
        (
            ["--stack", "external", "--spark-master", "spark://127.0.0.1:1"],
            "it also needs --at kafka=ADDRESS, --at postgres=ADDRESS",
        ),
        (["--at", "kafka=a:1"], "asked for --at on the stack processes; that goes with external"),
        (["--stack", "external", "--at", "a:1"], "--at must be NAME=ADDRESS, such as kafka=HOST:PORT"),
        (
            ["--stack", "external", "--spark-master", "spark://a:1", "--at", "mysql=a:1"],
            "asked for the component 'mysql'; there are azure, delta, eventhubs, files, hdfs, iceberg, kafka, mari",
        ),
    ],
)
def test_addresses_and_stack_go_together(words: list[str], said: str, tmp_path: Path) -> None:
    # Also while another suite writes there: a mistake of the command line has nothing to wait for.
    with only_suite(tmp_path):
        code, output = onceproof(*words, "--reports", str(tmp_path))
    assert said in output
    assert code == 2


@pytest.mark.parametrize("url", ["127.0.0.1:7077", "http://a:1", "spark://", "spark://a:b"])
def test_a_master_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match="--spark-master must be spark://HOST:PORT"):
        master_of(url)


def test_a_master_has_a_port() -> None:
    assert master_of("spark://there:7000") == ("there", 7000)
    assert master_of("spark://there") == ("there", 7077)


def test_an_address_of_postgres_that_is_none() -> None:
    with pytest.raises(UsageError, match="--at postgres=… must be a libpq address"):
        databases("nonsense nonsense")


def test_both_databases_are_one_with_schemas_of_their_own() -> None:
    found = databases("postgresql://me:pa%40ss@there:5433/db")
    assert (found.host, found.port, found.user, found.password) == ("there", 5433, "me", "pa@ss")
    assert found.dsn("", "run_a").endswith("/db?options=-c%20search_path%3Drun_a")
    assert found.dsn("second", "run_a").endswith("/db?options=-c%20search_path%3Drun_a_second")
    assert "pa%40ss" in found.dsn("", "run_a") and "password=pa%40ss" in found.jdbc("", "run_a")
    assert "pa@ss" not in repr(found)
    assert found.plain() == "postgresql://me@there:5433/db"


def test_an_address_of_mariadb() -> None:
    found = MariaDBThere("mysql://me:pa%40ss@there:3307")
    assert (found.server.host, found.server.port, found.server.user) == ("there", 3307, "me")
    assert found.server.password == "pa@ss" and "pa@ss" not in repr(found.server)
    assert (found.plain, found.address) == ("mysql://me@there:3307", "mysql://me:pa%40ss@there:3307/")
    assert MariaDBThere(found.address, ours=True).server == found.server
    assert (found.shared, MariaDBThere(found.address, ours=True).shared) == (True, False)


@pytest.mark.parametrize(
    "given",
    [
        "",
        "there",
        "mysql://there",
        "mysql://me:s3cret@",
        "postgresql://me:s3cret@there",
        "mysql://me:s3cret@there:99999",
    ],
)
def test_an_address_of_mariadb_that_is_none(given: str) -> None:
    with pytest.raises(UsageError, match="--at mariadb=… must be an address as mysql://") as refused:
        MariaDBThere(given)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("more", ["/shop", "?ssl=1", "#x"])
def test_an_address_of_mariadb_names_no_database(more: str) -> None:
    with pytest.raises(UsageError, match="each run makes its own databases"):
        MariaDBThere(f"mysql://me@there{more}")


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("option", "given"),
    [
        ("postgres", "postgresql://me:s3cret/x@there:5432/db"),
        ("postgres", "postgres//me:s3cret@there/db"),
        ("postgres", "postgresql://me:s3cret@there:99999/db"),
        ("spark_master", "spark://me:s3cret@there:7077"),
        ("kafka", "me:s3cret@there:9092"),
    ],
)
def test_a_password_in_an_address_that_is_none_is_not_said(option: str, given: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be") as refused:
        said = {"kafka": "a:1", "postgres": NOBODY["postgres"], "spark_master": "spark://a", option: given}
        where = Where(spark_master=said.pop("spark_master"), at=said)
        ExternalStack(where, tmp_path, needs=NOBODY).up()
    assert "s3cret" not in str(refused.value)


def test_a_folder_that_is_not_there() -> None:
    code, output = onceproof(
        "--stack", "external", *THERE,
        "--spark-master", NOWHERE.spark_master, "--shared-dir", "/nonexistent/x",
    )  # fmt: skip
    assert (code, "asked for --shared-dir /nonexistent/x; there is none here" in output) == (2, True)


def test_what_it_does_not_support_is_refused_before_anything_starts(tmp_path: Path) -> None:
    stack = ExternalStack(NOWHERE, tmp_path)
    scenarios = [load(path) for path in sorted(PROVING.glob("*.yaml"))]
    lacking = [scenario for scenario in scenarios if unsupported(scenario, stack.name)]
    assert lacking and len(lacking) < len(scenarios)
    with pytest.raises(UsageError) as refused:
        refuse(scenarios, stack.name)
    words = str(refused.value)
    for scenario in lacking:
        assert f"{scenario.path}: asked for `" in words
    assert "the stack `external` does not support it (processes, containers and yarn do)" in words
    for scenario in scenarios:
        if scenario not in lacking:
            refuse([scenario], stack.name)


@pytest.mark.parametrize(
    ("path", "stack", "said"),
    [
        ("sinks/delta_checkpoint_new", "containers", "asked for `delta`; the stack `containers` does not support it"),
        ("sinks/files_uuid_mid_batch", "external", "asked for `files`; the stack `external` does not support it"),
        ("sources/socket_planned", "containers", "asked for `socket`; the stack `containers` does not support it"),
    ],
)
def test_a_component_that_a_stack_has_not_is_refused_in_one_line(path: str, stack: str, said: str) -> None:
    scenario = load(PROVING.parent / f"{path}.yaml")
    with pytest.raises(UsageError) as refused:
        refuse([scenario], stack)
    line, _ = str(refused.value).splitlines()
    assert line == f"{scenario.path}: {said} (processes and yarn do)"
    refuse([scenario], "processes")


def test_code_of_ones_own_reads_a_sink_on_every_stack() -> None:
    scenario = load(PROVING.parent / "sinks" / "python_sqlite_with_batch.yaml")
    for stack in names():
        refuse([scenario], stack)
    code, output = onceproof_of(scenario.path, "--stack", "external", "--spark-master", "spark://127.0.0.1:1")
    assert (code, "it also needs --at kafka=ADDRESS\n" in output) == (2, True)


@pytest.mark.parametrize("verb", [["validate"], ["run", "--dry-run"]], ids=lambda verb: verb[0])
def test_nothing_needs_to_start_to_be_refused(verb: list[str]) -> None:
    path = PROVING.parent / "containers" / "upsert_driver_disconnected.yaml"
    for stack, code in (("processes", 2), ("containers", 0)):
        done = CliRunner().invoke(main, [*verb, str(path), "--stack", stack])
        assert done.exit_code == code
        assert ("does not support it (containers does)" in done.output) is (code == 2)
    left = CliRunner().invoke(main, ["run", "--dry-run", "--skip-unsupported", str(path)])
    assert (left.exit_code, left.output) == (0, "")


@pytest.mark.subprocess
def test_each_part_that_does_not_answer_is_named(tmp_path: Path) -> None:
    code, output = onceproof(
        "--stack", "external", *THERE,
        "--spark-master", NOWHERE.spark_master, "--reports", str(tmp_path),
    )  # fmt: skip
    assert code == 4
    assert "asked for Kafka at 127.0.0.1:1; it does not answer" in output


SHELVES = """
from pathlib import Path
from typing import Any
from types import SimpleNamespace
from harness.component import COMPONENTS
from harness.fields.shape import Shape
from harness.kinds import About

class Shelf:
    gives, bare = (), ()

    def __init__(self, name):
        self.about = About(name=name, summary="", example="", options=Shape)

    def at(self, address):
        def drop(run_id, names):
            if address == "stuck":
                raise RuntimeError("the shelf is stuck")
            for name in names:
                (Path(address) / f"{run_id} {name}").touch()

        return SimpleNamespace(address=address, plain=address, drop=drop, close=lambda: None)

for each in ("high_shelf", "low_shelf"):
    COMPONENTS.register(Shelf(each))
"""


@pytest.mark.subprocess
@pytest.mark.parametrize("conftest", [SHELVES, "import nowhere\n" + SHELVES])
def test_what_is_dropped_at_last_is_known_by_a_conftest_and_one_failure_keeps_no_other(
    conftest: str, tmp_path: Path
) -> None:
    # A repository above it is not where the conftest lies. Above `tmp_path` it would be one to every other test.
    (tmp_path / ".git").mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "conftest.py").write_text(conftest)
    folders = [root / "a", root / "b"]
    made = [Made(run_id=each.name, labels=("high_shelf", "low_shelf.x"), folder=each, root=root) for each in folders]
    for each in folders:
        each.mkdir()
    again = {"high_shelf": ("at", "stuck"), "low_shelf": ("at", str(root))}
    (tmp_path / "made.json").write_text(json.dumps(remembered(again, made), default=str))
    argv = [sys.executable, "-m", "harness.stacks.lasting", str(tmp_path / "made.json")]
    done = subprocess.run(argv, cwd="/", env={"PYTHONPATH": str(PROVING.parents[1])}, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert [each.exists() for each in folders] == [False, False]
    assert [(root / f"{each.name} x").exists() for each in folders] == [conftest is SHELVES] * 2


def place(stack: ProcessesStack) -> Where:
    """The servers of another stack, as a cluster that is already there."""
    stack.ensure(["kafka", "postgres"])
    return Where(
        at={"kafka": broker(stack).bootstrap, "postgres": database(stack).databases.whole()},
        spark_master=stack.spark.master,
        executor_python=sys.executable,
    )


def groups(admin: KafkaAdminClient) -> tuple[set[str]] | Waiting:
    """The ids of all groups, in a tuple, because none is an answer too. While the broker loads them after its start, it
    answers with a retriable error."""
    try:
        return ({str(each["group_id"]) for each in admin.list_groups()},)
    except KafkaError as error:
        if not error.retriable:
            raise
        return Waiting(type(error).__name__)


def held(stack: ProcessesStack) -> tuple[set[str], set[str], set[str]]:
    """The schemas of runs, the topics and the consumer groups that are there now."""
    with psycopg2.connect(place(stack).at["postgres"]) as connection, connection.cursor() as cursor:
        cursor.execute("select nspname from pg_namespace where nspname like 'run_%%'")
        schemas = {row[0] for row in cursor.fetchall()}
    admin = KafkaAdminClient(bootstrap_servers=broker(stack).bootstrap)
    try:
        # The broker makes the ones with underscores for itself.
        topics = {name for name in admin.list_topics() if not name.startswith("__")}
        found = until("the broker's groups", lambda: groups(admin), within_s=GROUPS_S)
        assert isinstance(found, tuple)
        return schemas, topics, found[0]
    finally:
        admin.close()


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.parametrize(
    ("name", "word"),
    [("two_systems_append_between", Word.VIOLATED), ("group_upsert_in_offset_commit", Word.HELD)],
)
def test_a_cluster_that_is_there_is_used_and_left_as_it_was(
    name: str, word: Word, stack: ProcessesStack, tmp_path: Path
) -> None:
    before, password = held(stack), database(stack).databases.password
    with ExternalStack(place(stack), tmp_path / "logs") as external:
        result = run(load(PROVING / f"{name}.yaml"), external, reports=tmp_path / "reports")
        assert held(stack) == before
    assert (result.verdict.word, result.verdict.as_expected) == (word, True)
    command = json.loads((result.folder / "run.json").read_text())["command"].split(" --stack ")[1]
    assert command.startswith(f"external --at kafka={broker(stack).bootstrap} --at postgres=postgresql://")
    assert f"--spark-master {stack.spark.master}" in command and password not in command
    assert password not in "".join(path.read_text(errors="replace") for path in result.folder.rglob("*.json"))


@pytest.mark.stack
@pytest.mark.prove
def test_mariadb_at_an_address_is_used_and_left_as_it_was(stack: ProcessesStack, tmp_path: Path) -> None:
    stack.ensure(["kafka", "mariadb"])
    mariadb: Any = stack.servers["mariadb"]
    where = replace(place(stack), at={"kafka": broker(stack).bootstrap, "mariadb": mariadb.lent()})
    scenario = load(PROVING.parent / "sinks" / "mariadb_added_before_offset_commit.yaml")
    with ExternalStack(where, tmp_path / "logs", needs=where.at) as external:
        result = run(scenario, external, reports=tmp_path / "reports")
    assert (result.verdict.word, result.verdict.as_expected) == (Word.VIOLATED, True)
    assert mariadb.server.ask("select count(*) from information_schema.schemata where schema_name like 'run%'") == "0"
    command = json.loads((result.folder / "run.json").read_text())["command"]
    assert f"--at mariadb=mysql://{mariadb.server.user}@" in command and mariadb.server.password not in command


@pytest.mark.stack
@pytest.mark.prove
def test_namespaces_of_ones_own_code_are_there_and_gone_after_the_run(stack: ProcessesStack, tmp_path: Path) -> None:
    stack.ensure(["kafka"])
    shared = tmp_path / "shared"
    shared.mkdir()
    where = replace(place(stack), at={"kafka": broker(stack).bootstrap}, shared_dir=shared)
    scenario = alone(
        PROVING.parent / "sinks" / "python_sqlite_with_batch.yaml", "kill driver failpoint half-written (later batch)"
    )
    with ExternalStack(where, tmp_path / "logs", needs=needed([scenario])) as external:
        result = run(scenario, external, reports=tmp_path / "reports")
    assert (result.verdict.word, result.verdict.as_expected) == (Word.HELD, True)
    assert list((shared / "runs").iterdir()) == []


@pytest.mark.stack
def test_mariadb_that_does_not_show_who_writes_is_refused(stack: ProcessesStack, tmp_path: Path) -> None:
    stack.ensure(["mariadb"])
    mariadb: Any = stack.servers["mariadb"]
    shown = "update performance_schema.setup_instruments set enabled = {!r} where name = 'wait/lock/metadata/sql/mdl'"
    with closing(mariadb.server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute(shown.format("NO"))
        try:
            with pytest.raises(StackError, match="performance-schema-instrument"):
                MariaDBThere(mariadb.lent()).describe()
        finally:
            cursor.execute(shown.format("YES"))
    assert "MariaDB" in MariaDBThere(mariadb.lent()).describe()["version"]


def in_mariadb(stack: ProcessesStack) -> set[str]:
    """The databases of runs that are there now."""
    server: Any = stack.servers["mariadb"]
    every = (
        "select coalesce(group_concat(schema_name), '') from information_schema.schemata where schema_name like 'run%'"
    )
    return {name for name in server.server.ask(every).split(",") if name}


def in_opensearch(stack: ProcessesStack) -> set[str]:
    """The indexes that are there now; the server makes the ones with a dot for itself."""
    server: Any = stack.servers["opensearch"]
    names = server.server.text("list its indexes", "GET", "/_cat/indices", h="index").split()
    return {name for name in names if not name.startswith(".")}


def in_kafka(stack: ProcessesStack) -> set[str]:
    """The topics that runs write into and are there now: the part is called `checked` there."""
    return {name for name in held(stack)[1] if name.endswith("-checked")}


def in_postgres(stack: ProcessesStack) -> set[str]:
    """The schemas of runs that are there now."""
    return held(stack)[0]


@pytest.mark.stack
@pytest.mark.prove
@pytest.mark.parametrize(
    ("path", "servers", "inside"),
    [
        pytest.param(path, servers, inside, id=path.rpartition("/")[2])
        for path, servers, inside in (
            ("proving/group_upsert_in_offset_commit", ["kafka", "postgres"], in_postgres),
            ("sinks/mariadb_kept_by_id_group_in_offset_commit", ["kafka", "mariadb"], in_mariadb),
            ("sinks/opensearch_kept_by_id", ["kafka", "opensearch"], in_opensearch),
            ("sinks/kafka_in_transaction", ["kafka"], in_kafka),
        )
    ],
)
def test_a_cluster_is_left_as_it_was_when_the_harness_is_killed(
    path: str,
    servers: list[str],
    inside: Callable[[ProcessesStack], set[str]],
    stack: ProcessesStack,
    tmp_path: Path,
) -> None:
    stack.ensure(servers)
    there: Any = {name: stack.servers[name] for name in servers}
    scenario = PROVING.parent / f"{path}.yaml"

    def now() -> tuple[set[str], ...]:
        return *held(stack), inside(stack)

    before = now()
    argv = [sys.executable, "-m", "harness", "run", str(scenario), "--stack", "external"]
    argv += [word for name, server in there.items() for word in ("--at", f"{name}={server.lent()}")]
    argv += ["--spark-master", stack.spark.master, "--executor-python", sys.executable]
    with (tmp_path / "said").open("wb") as out:
        child = subprocess.Popen(
            [*argv, "--reports", str(tmp_path / "r")], cwd=PROVING.parents[1], stdout=out, stderr=out
        )
    grouped = "group" in scenario.stem

    def new() -> bool | Waiting:
        assert child.poll() is None, (tmp_path / "said").read_text()
        (_, topics, groups, inner), (_, topics_then, groups_then, inner_then) = now(), before
        made = topics > topics_then and inner > inner_then and (groups > groups_then or not grouped)
        return made or Waiting(f"{now()}")

    try:
        until("parts of the run: a topic, what its sink is, a group if it keeps one", new, within_s=300, every_s=0.2)
    finally:
        child.kill()
        child.wait(60)
    until("the cluster as it was", lambda: now() == before or Waiting(str(now())), within_s=120, every_s=0.5)


@pytest.mark.stack
def test_a_master_that_is_not_there(stack: ProcessesStack, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    where = replace(place(stack), spark_master=f"spark://127.0.0.1:{port}")
    with pytest.raises(Exception, match=f"asked for a Spark master at spark://127.0.0.1:{port}; no master answers"):
        ExternalStack(where, tmp_path).up()


def test_containers_support_every_fault_but_those_on_yarn() -> None:
    own = [kind.about.name for kind in FAULTS if Means.RESTART_DAEMONS in kind.needs]
    assert own and supported("containers") == [name for name in FAULTS.all() if name not in own]


def test_it_supports_the_faults_of_its_own_drivers() -> None:
    assert supported("external") == ["crash before offset commit", "kill driver", "pause driver", "stop driver"]

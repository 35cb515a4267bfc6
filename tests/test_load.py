"""Scenario files as properties: what is dumped loads back the same, and no bytes give anything but a ScenarioError."""

from __future__ import annotations

import errno
import json
import os
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from harness.errors import ScenarioError, UsageError
from harness.fields.placeholders import known, label
from harness.load import dump, filled, find, load, project_root, schema
from harness.load.models import shapes
from harness.load.yaml_tree import BYTES_MAX, VALUES_MAX, Node
from harness.scenario import Expected, Kind, Scenario, Word
from tests.limits import PROCESS_S, examples
from tests.shipped import scenario as shipped
from tests.strategies import ENTRY, project, scenarios, texts

ROOT = Path(__file__).resolve().parent.parent
WORST_S = 20.0
SCHEMA = schema()
# Says something else of everything that a header may say: a dumped scenario must not take any of it.
HEADER = """\
# /// onceproof
# args: [other]
# env: {OTHER: other}
# conf: {spark.other: other}
# executors: 7
# progress: group
# interval: 7s
# setup: {postgres: other, postgres.second: other}
# sink: {postgres: other, expected: select * from ledger, key: [other]}
# together: true
# input: {records: 7}
# quiet_period: 7s
# ///
"""
GOOD = """\
name: n
pipeline: pipelines/pay.py
sink: {postgres: t, expected: select id from ledger, key: [id]}
"""
PIECES = [
    *"[]{}:,-?|>&*!%@`'\"#~\n \t\r\0\x85\u2028\ufeffé\U0001f600", "- ", ": ", "\n  ", "---", "...", "%YAML 1.1\n",
    "!!str ", "&a ", "*a",
    "<<: ", '"\\u12', "\\ud800", "|2\n", ">-\n", "null", "name", "name: x\n", "pipeline: ", "schedule:\n",
    "  - {when: {rows: 3}, do: kill driver}\n", "sink: [", "input: {records: 1e9}\n", "verdict: {violated: [lost]}\n",
    "{topic}", "{x", "setup: {postgres: a}\n", "timeout: 3\n", "progress", "pipelines/pay.py\n", GOOD,
]  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `scenarios` of a project."""
    return project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def headed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, of a project whose pipeline has a header that says everything."""
    home = project(tmp_path_factory.mktemp("headed"))
    (home.parent / ENTRY).write_text(HEADER, encoding="utf-8")
    return home


def written(home: Path, text: str, name: str = "s.yaml") -> Path:
    path = home / name
    path.write_text(text, encoding="utf-8")
    return path


@given(scenarios())
@settings(max_examples=examples(150))
def test_a_dumped_scenario_loads_back_the_same(headed: Path, scenario: Scenario) -> None:
    path = written(headed, dump(scenario))
    assert load(path) == replace(scenario, path=str(path))


@pytest.mark.slow
@given(scenarios())
@settings(max_examples=examples(20))
def test_a_dump_is_the_same_text_each_time(scenario: Scenario) -> None:
    assert dump(scenario) == dump(scenario)


def test_a_dump_reads_well(home: Path) -> None:
    text = GOOD + 'why: "two\\nlines"\ntimeout: 1.5ms\nschedule: [{when: {batch: 1}, do: crash before offset commit}]\n'
    text = dump(load(written(home, text)))
    assert "why: |-\n  two\n  lines\n" in text
    assert "timeout: 1.5ms\n" in text
    assert "  - {when: {batch: 1}, do: crash before offset commit}\n" in text


def refused(path: Path, data: bytes) -> None:
    """Loading is over in time, and ends in a ScenarioError or not at all."""
    path.write_bytes(data)
    began = process_time()
    try:
        load(path)
    except ScenarioError as failure:
        assert failure.mistakes
        for mistake in failure.mistakes:
            assert mistake.file in (str(path), str(path.parent.parent / ENTRY))
            assert mistake.line >= 1 and mistake.column >= 1
            str(mistake).encode()
    traced = sys.gettrace() is not None  # by coverage, which makes ruamel several times slower
    assert process_time() - began < WORST_S * (8 if traced else 1)


def test_what_a_file_may_say_is_made_once_for_the_same_kinds() -> None:
    """It takes longer than to read the file."""
    assert shapes() is shapes()


@given(st.binary(max_size=300))
@settings(max_examples=examples(250))
def test_random_bytes_are_refused(home: Path, data: bytes) -> None:
    refused(home / "fuzz.yaml", data)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
@settings(max_examples=examples(500))
@example("&a &a")
@example("\t")
@example('"\\ud800"')
@example("a: b: c")
@example("? [a]\n: b\n")
@example("!!python/object/apply:os.system [true]")
def test_random_pieces_of_yaml_are_refused(home: Path, text: str) -> None:
    refused(home / "fuzz.yaml", text.encode())


@given(scenarios(), st.data())
@settings(max_examples=examples(100))
def test_a_damaged_scenario_is_refused_or_loads(home: Path, scenario: Scenario, data: st.DataObject) -> None:
    text = dump(scenario)
    at = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 20))
    refused(home / "fuzz.yaml", (text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + gone :]).encode())


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
@settings(max_examples=examples(300))
def test_a_random_header_is_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    home = project(tmp_path_factory.mktemp("header"))
    lines = "".join(f"# {line}\n" for line in text.split("\n"))
    (home.parent / ENTRY).write_bytes(f"# /// onceproof\n{lines}# ///\n".encode())
    refused(home / "fuzz.yaml", GOOD.encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b"a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\nd: [*c,*c,*c]\n",
        b"[" * 2000,
        b"{a: " * 2000,
        b"- " * 120_000,
        b"a: b\n" * 50_000,
        b"x" * (BYTES_MAX + 1),
        b"? " * 120_000,
        b"'" + b"x \n" * 80_000 + b"'",
        b"name: " + b"x" * 240_000,
        b"%FOO a\n" * 35_000,
        b"---\n" * 60_000,
        bytes(range(256)) * 100,
    ],
    ids=["aliases", "brackets", "braces", "dashes", "keys", "bytes", "questions", "folded", "long", "directives",
         "documents", "binary"],
)  # fmt: skip
def test_a_hostile_file_is_refused_in_time(home: Path, data: bytes) -> None:
    path = home / "hostile.yaml"
    refused(path, data)
    with pytest.raises(ScenarioError):
        load(path)


def test_a_place_that_is_not_there_is_stepped_over() -> None:
    inner = Node(2, 3)
    assert Node(1, 1, items={"a": inner}).at(("x", "a", "b", 0)) is inner


@pytest.mark.slow
def test_the_bounds_are_named(home: Path) -> None:
    with pytest.raises(ScenarioError, match=f"more than {VALUES_MAX} values"):
        load(written(home, "- x\n" * (VALUES_MAX + 1)))
    with pytest.raises(ScenarioError, match=r"s\.yaml:1:33: more than 32 levels deep"):
        load(written(home, "[" * 2000))
    with pytest.raises(ScenarioError, match=f"s.yaml:1:1: more than {BYTES_MAX} bytes"):
        load(written(home, "x" * (BYTES_MAX + 1)))


def test_the_scenario_of_the_design_loads(home: Path) -> None:
    text = """\
name: driver dies after the sink committed and before the offsets are committed
why: the crash point that an append sink cannot survive
pipeline: pipelines/pay.py                         # a broken twin: we expect to catch it
guarantee: exactly-once                            # or at-least-once, at-most-once
setup: {postgres: "create table payments (id bigint, account text, amount numeric)"}
sink:                                              # one or several; `together: true` when they must agree
  - postgres: payments                             # a table, or a query
    expected: select id, account, amount from ledger # filters, joins with static data, counts per minute: any SQL
    key: [id]
input: {workload: transactions, records: 600, keys: 50, partitions: 3}   # or {replay: data/orders.jsonl}
schedule:
  - {when: {point: sink-committed, batch: 3}, do: kill driver}
verdict: {violated: [duplicated]}                   # an honest pipeline says: held
timeout: 120s
"""
    scenario = load(written(home, text))
    assert scenario.name.startswith("driver dies")
    assert [str(step.when) for step in scenario.schedule] == ["sink-committed of batch 3"]
    assert str(scenario.verdict) == "violated: duplicated"
    assert scenario.setup == {"postgres": "create table payments (id bigint, account text, amount numeric)"}


@pytest.mark.parametrize(
    ("step", "name", "when", "options"),
    [
        ("{when: {rows: 7, batch: 2}, do: crash mid-sink}", "crash mid-sink", "after row 7 in the sink of batch 2", {}),
        ("{when: {batch: 2}, do: crash before offset commit}", "crash before offset commit",
         "sink-committed of batch 2", {}),
        ("{when: {failpoint: f}, do: crash before offset commit, victim: jvm}", "crash before offset commit (jvm)",
         "failpoint f", {"victim": "jvm"}),
        ("{when: {elapsed: 60s}, do: kill executor, which: all}", "kill executor", "after 60.0 s", {"which": "all"}),
        ("{when: {records: 9}, do: pause driver, for: 250ms}", "pause driver", "after 9 records sent", {"for_s": 0.25}),
    ],
)  # fmt: skip
def test_a_step_in_its_own_words(home: Path, step: str, name: str, when: str, options: dict[str, Any]) -> None:
    found = load(written(home, f"{GOOD}schedule: [{step}]\n")).schedule[0]
    assert (found.name, str(found.when), found.do.options) == (name, when, options)


def test_a_loss_may_be_expected_under_at_most_once(home: Path) -> None:
    claim = "guarantee: at-most-once\nverdict: {violated: [lost], without_faults: true}\n"
    assert load(written(home, GOOD + claim)).verdict == Expected(
        word=Word.VIOLATED, kinds=(Kind.LOST,), without_faults=True
    )


def test_a_header_gives_defaults_and_the_scenario_wins(headed: Path) -> None:
    plain = load(written(headed, "name: n\npipeline: pipelines/pay.py\ntogether: false\n"))
    assert (plain.pipeline.args, plain.pipeline.executors, plain.pipeline.progress) == (("other",), 7, "group")
    assert plain.pipeline.env == {"OTHER": "other"} and plain.pipeline.conf == {"spark.other": "other"}
    assert plain.setup == {"postgres": "other", "postgres.second": "other"}
    assert [sink.target for sink in plain.sinks] == ["other"]
    assert (plain.input.records, plain.quiet_period_s, plain.together) == (7, 7.0, False)
    assert plain.pipeline.interval_s == 7.0
    own = load(written(headed, "name: n\ntogether: false\npipeline: {entry: pipelines/pay.py, args: []}\ninput: {}\n"))
    assert own.pipeline.args == () and own.pipeline.executors == 7 and own.input.records == 600


def test_a_pipeline_is_never_run(home: Path, tmp_path: Path) -> None:
    home = project(tmp_path)
    (tmp_path / ENTRY).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(9)\n", encoding="utf-8")
    load(written(home, GOOD))
    assert not (tmp_path / "ran").exists()


@pytest.mark.subprocess
def test_validating_opens_no_socket_and_starts_no_process(home: Path) -> None:
    code = """
import sys
banned = ("socket.", "subprocess.", "os.fork", "os.exec", "os.posix_spawn", "os.system", "ctypes.dlopen")
def watch(event, args):
    if event.startswith(banned):
        print(event, args)
from pathlib import Path
import harness.load, importlib.util
sys.addaudithook(watch)
print(harness.load.load(Path(sys.argv[1])).name)
"""
    path = written(home, GOOD + "input: {replay: 'package:pytest/__init__.py'}\n")
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=PROCESS_S, check=True, cwd=ROOT
    )
    assert done.stdout == "n\n"


@pytest.mark.subprocess
def test_a_scenario_is_read_without_the_client_of_any_server(home: Path) -> None:
    heavy = ("kafka", "duckdb", "pyarrow", "psycopg2", "pyspark", "docker")
    code = f"""
import sys
from pathlib import Path
from harness.load import load
load(Path(sys.argv[1]))
print(*[name for name in {heavy} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(written(home, GOOD))],
        capture_output=True,
        text=True,
        timeout=PROCESS_S,
        cwd=ROOT,
    )
    assert (done.stdout, done.stderr) == ("\n", "")


def test_paths_count_from_the_project(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "scenarios" / "b"
    deep.mkdir(parents=True)
    assert project_root(deep / "s.yaml") == tmp_path / "a"
    (deep / "pytest.ini").touch()
    assert project_root(deep / "s.yaml") == deep
    assert project_root(Path("/s.yaml")) == Path("/")


def test_find_expands_folders(home: Path, tmp_path: Path) -> None:
    for name in ("b/2.yml", "b/1.yaml", "a.yaml", "b/n.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    inside = [tmp_path / "b" / "1.yaml", tmp_path / "b" / "2.yml"]
    assert find([tmp_path]) == [tmp_path / "a.yaml", *inside]
    assert find([tmp_path / "b" / "n.txt", tmp_path / "b", inside[0]]) == [tmp_path / "b" / "n.txt", *inside]
    (tmp_path / "b" / "gone.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"gone\.yaml is a link to nowhere"):
        find([tmp_path])
    with pytest.raises(UsageError, match="no such file or folder"):
        find([tmp_path / "nope"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no \*\.yaml or \*\.yml file there"):
        find([tmp_path / "empty"])


def test_find_passes_over_a_folder_that_is_gone_and_names_one_that_is_shut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test may run as root, whom no folder refuses: the system's answer is made up."""
    listed, answer = os.scandir, dict[str, OSError]()

    def scandir(path: Any) -> Any:
        if (failure := answer.get(Path(path).name)) is not None:
            raise failure
        return listed(path)

    (tmp_path / "inner").mkdir()
    (tmp_path / "a.yaml").touch()
    monkeypatch.setattr(os, "scandir", scandir)
    for number in (errno.ENOENT, errno.ENOTDIR, errno.ESRCH):
        answer["inner"] = OSError(number, os.strerror(number), str(tmp_path / "inner"))
        assert find([tmp_path]) == [tmp_path / "a.yaml"]
    answer["inner"] = OSError(errno.EACCES, "Permission denied", str(tmp_path / "inner"))
    with pytest.raises(UsageError, match=r"asked for the scenarios in .*/inner cannot be read: Permission denied"):
        find([tmp_path])


def test_find_names_a_path_that_cannot_be_looked_at(tmp_path: Path) -> None:
    name = "a" * 300
    with pytest.raises(UsageError, match=r"asked for the scenario .*a{300} cannot be read: File name too long\."):
        find([tmp_path / name])


@given(texts, texts)
def test_placeholders_are_filled_and_braces_escaped(before: str, after: str) -> None:
    def escaped(text: str) -> str:
        return text.replace("{", "{{").replace("}", "}}")

    assert filled(f"{escaped(before)}{{topic}}{escaped(after)}", {"topic": "{x}"}) == f"{before}{{x}}{after}"


def test_a_placeholder_without_a_value_is_named() -> None:
    with pytest.raises(UsageError, match=r"'\{topik\}' has no value on this stack; did you mean 'topic'\?"):
        filled("a {topik}", {"topic": "t"})
    with pytest.raises(UsageError, match="it has group, topic"):
        filled("{zzzzz}", {"topic": "t", "group": "g"})


def test_the_placeholders_are_those_of_a_run_and_of_its_components() -> None:
    assert {"kafka.bootstrap", "topic", "postgres.dsn", "checkpoint"} <= set(known())
    assert {name: label(name) for name in known()}["postgres.jdbc"] == "postgres"
    found = [
        label(name) for name in ("run", "topic", "postgres.second.dsn", "postgres.second", "postgres.a-b.dsn", "x")
    ]
    assert found == ["", "kafka", "postgres.second", None, None, None]


def test_the_schema_is_the_one_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    kept = (ROOT / "scenarios" / "scenario.schema.json").read_text(encoding="utf-8")
    runpy.run_path(str(ROOT / "harness" / "load" / "__main__.py"), run_name="__main__")
    assert kept == capsys.readouterr().out, "run: python -m harness.load > scenarios/scenario.schema.json"
    assert json.loads(kept) == schema()


def shaped(value: Any, form: dict[str, Any]) -> list[str]:
    """What in `value` the JSON Schema does not know: a small validator of the parts that ours uses."""
    if "$ref" in form:
        return shaped(value, SCHEMA["$defs"][form["$ref"].rpartition("/")[2]])
    if "anyOf" in form:
        wrong = [shaped(value, each) for each in form["anyOf"]]
        return [] if [] in wrong else wrong[-1]
    kinds: dict[str, Any] = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    asked = form["type"] if isinstance(form["type"], list) else [form["type"]]
    if not any(isinstance(value, kinds[kind]) for kind in asked) or value not in form.get("enum", [value]):
        return [f"{value!r} is not {asked} {form.get('enum', '')}"]
    if isinstance(value, list):
        return [wrong for each in value for wrong in shaped(each, form["items"])]
    if not isinstance(value, dict):
        return []
    properties, more = form.get("properties", {}), form.get("additionalProperties", "properties" not in form)
    others = [key for key in value if key not in properties]
    unknown = [f"unknown {key}" for key in others if more is False]
    missing = [f"missing {key}" for key in form.get("required", ()) if key not in value]
    known = [(part, properties[key]) for key, part in value.items() if key in properties]
    known += [(value[key], more) for key in others if isinstance(more, dict)]
    return unknown + missing + [wrong for part, inner in known for wrong in shaped(part, inner)]


@given(scenarios())
@settings(max_examples=examples(30))
def test_the_schema_knows_every_scenario(scenario: Scenario) -> None:
    assert shaped(YAML(typ="safe", pure=True).load(dump(scenario)), SCHEMA) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").rglob("*.yaml")), ids=lambda path: path.stem)
def test_the_schema_knows_the_scenarios_that_we_ship(path: Path) -> None:
    shipped(path)
    assert shaped(YAML(typ="safe", pure=True).load(path), SCHEMA) == []


def test_the_schema_refuses_what_it_should() -> None:
    assert shaped({"name": "n", "pipeline": {"entri": "x"}, "verdict": "violated"}, SCHEMA) != []

"""`onceproof init`: what is read off a program's source, and what is said of the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.errors import ScenarioError
from harness.load import load
from harness.proposal.program import read
from harness.proposal.propose import Proposal, propose
from harness.proposal.write import write
from tests.shipped import scenarios

HOUSE = Path(__file__).parents[1]
BODY = """
import argparse, os, sys
import psycopg2
from pyspark.sql import SparkSession

{before}
records = (
    SparkSession.builder.getOrCreate().readStream.format("kafka")
    .option("kafka.bootstrap.servers", {bootstrap}).option("subscribe", {topic}).load()
)

def save(part):
    with psycopg2.connect({database}) as connection:
        connection.cursor().execute({sql})

records.writeStream.foreachBatch(save).option("checkpointLocation", {checkpoint}).start()
"""
SQL = '"insert into payments (id, account, amount) values (%s, %s, %s) on conflict (id) do nothing"'
ARGPARSE = """
parser = argparse.ArgumentParser()
for name in ("brokers", "topic"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--check-point")
parser.add_argument("--mode", required=True)
args = parser.parse_args()
"""


def proposed(before: str = "", sql: str = SQL, **places: str) -> Proposal:
    usual = {"bootstrap": "args.brokers", "topic": "args.topic", "checkpoint": "args.check_point"}
    source = BODY.format(before=before, sql=sql, **{**usual, "database": 'os.environ["WAREHOUSE"]', **places})
    return propose("jobs/a.py", "a", read({"jobs/a.py": source}))


def test_the_example_repositorys_job_is_told_whole(tmp_path: Path) -> None:
    for name in ("jobs", "scenarios"):
        (tmp_path / name).mkdir()
    job = tmp_path / "jobs" / "invoices.py"
    job.write_text((HOUSE / "docs/example-repo/jobs/invoices.py").read_text(encoding="utf-8"), encoding="utf-8")
    path, unclear = write(job)
    assert path == tmp_path / "scenarios" / "invoices.yaml"
    assert unclear == ["the key of invoices was not found: correct `key`"]
    made, own = load(path), load(HOUSE / "docs/example-repo/scenarios/invoices.yaml")
    assert (made.pipeline, made.sinks) == (own.pipeline, own.sinks)
    assert made.crash_points == ("all",)


def test_addresses_are_found_where_the_program_takes_them() -> None:
    found = proposed(ARGPARSE)
    assert "--brokers, '{kafka.bootstrap}', --topic, '{topic}', --check-point, '{checkpoint}', --mode" in found.text
    assert "env: {WAREHOUSE: '{postgres.dsn}'}" in found.text
    assert "create table payments (id bigint, account text, amount numeric(18, 2), primary key (id))" in found.text
    assert "expected: select id, account, amount from ledger" in found.text
    assert found.unclear == ["--mode is needed: give it a value in `args`"]


@pytest.mark.parametrize(
    ("before", "places", "text", "unclear"),
    [
        (
            "",
            {"bootstrap": "sys.argv[1]", "topic": "sys.argv[2]", "checkpoint": "sys.argv[3]"},
            "args: ['{kafka.bootstrap}', '{topic}', '{checkpoint}']",
            [],
        ),
        (
            "brokers, topic, place = sys.argv[1:4]",
            {"bootstrap": "brokers", "topic": "topic", "checkpoint": "place"},
            "args: ['{kafka.bootstrap}', '{topic}', '{checkpoint}']",
            [],
        ),
        (
            "",
            {"bootstrap": 'os.getenv("B", "x")', "topic": 'os.environ.get("T")', "checkpoint": 'os.environ["C"]'},
            "env: {B: '{kafka.bootstrap}', T: '{topic}', WAREHOUSE: '{postgres.dsn}', C: '{checkpoint}'}",
            [],
        ),
        (
            ARGPARSE.replace(", required=True)\nargs", ")\nargs") + 'topic = args.topic or "payments"',
            {"topic": "topic", "checkpoint": 'args.check_point + "/payments"', "database": '""'},
            "--topic, '{topic}', --check-point, '{checkpoint}'",
            [],
        ),
        (
            "",
            {"bootstrap": '"localhost:9092"', "topic": "os.environ['T']", "checkpoint": "place()"},
            "env: {T: '{topic}', WAREHOUSE: '{postgres.dsn}'}",
            [
                "jobs/a.py:9: the option kafka.bootstrap.servers is written into the program ('localhost:9092'): take "
                "it from an argument or a variable",
                "jobs/a.py:16: unknown where the option checkpointLocation comes from: place()",
            ],
        ),
    ],
)  # fmt: skip
def test_whatever_way_it_takes_them(before: str, places: dict[str, str], text: str, unclear: list[str]) -> None:
    found = proposed(before, **places)
    assert text in found.text
    assert list(found.unclear) == unclear


def test_what_the_source_does_not_show_is_said() -> None:
    found = propose("a.py", "a", read({"a.py": "print()"}))
    assert [line.partition(":")[0] for line in found.unclear] == [
        "no source was found",
        "no sink was found",
        "no checkpointLocation was found",
        "the columns of the sink were not found",
    ]
    strange = proposed(ARGPARSE, sql='"merge into orders (id, price) values (1, 2)"').unclear
    assert strange[0].startswith("price: no column of the workload transactions (id, account,")
    several = proposed(ARGPARSE, sql=f'{SQL} or "insert into audit select 1"').unclear
    assert several[0] == "it writes the table audit, too: add a sink for it"
    both = proposed(ARGPARSE, sql=f'{SQL}); rows.write.format("parquet").save(args.mode').unclear
    assert both[0] == "it writes into postgres, too: add a sink for it"
    made = proposed(ARGPARSE, sql=f'"create table if not exists payments (id int)" and {SQL}')
    assert "setup" not in made.text


@pytest.mark.parametrize(
    ("writer", "sink"),
    [
        ('.format("parquet").option("path", args.to)', "files: a\n    format: parquet"),
        ('.format("delta").option("path", args.to)', "delta: a"),
        ('.format("kafka").option("topic", args.to)', "kafka: a"),
    ],
)
def test_sinks_of_spark_are_told_by_their_format(writer: str, sink: str) -> None:
    source = f"import argparse\n{ARGPARSE}\nrows.writeStream{writer}.start()\n".replace('"--mode"', '"--to"')
    found = propose("a.py", "a", read({"a.py": source}))
    assert sink in found.text
    assert "--to, '{" in found.text


def test_files_that_a_program_imports_from_beside_it_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "a.py").write_text("import helper\nhelper.main()\n")
    places = {"bootstrap": "args.brokers", "topic": "args.topic", "checkpoint": "args.check_point"}
    helper = BODY.format(before=ARGPARSE, sql=SQL, database='""', **places)
    (tmp_path / "jobs" / "helper.py").write_text(f"import a\n{helper}")
    path, unclear = write(tmp_path / "jobs" / "a.py")
    assert unclear == ["--mode is needed: give it a value in `args`"]
    assert load(path).pipeline.args[:2] == ("--brokers", "{kafka.bootstrap}")


def test_each_program_here_gets_a_scenario_that_can_be_read(tmp_path: Path) -> None:
    shipped = [each.pipeline for each in scenarios() if "{" not in each.pipeline.entry]
    programs = {HOUSE / each.entry for each in shipped}
    assert len(programs) > 100
    (tmp_path / "scenarios").mkdir()
    for program in programs:
        # As a program is that says nothing of itself.
        text = re.sub("# /// onceproof.*?# ///\n", "", program.read_text(encoding="utf-8"), flags=re.DOTALL)
        (tmp_path / program.name).write_text(text, encoding="utf-8")
        path = tmp_path / "scenarios" / f"{program.stem}.yaml"
        found = propose(program.name, program.stem, read({program.name: text}))
        path.write_text(found.text, encoding="utf-8")
        try:
            assert load(path).crash_points == ("all",)
        except ScenarioError as failure:
            # Of JSON no program says the types.
            known = {"sink[0].columns is missing", "sink is missing"}
            assert {each.text.partition(":")[0] for each in failure.mistakes} <= known


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "it cannot be read as Python: No such file or directory"),
        ("def f(:", "it cannot be read as Python: invalid syntax"),
        ("a = '\0'", "it cannot be read as Python"),
    ],
)
def test_what_is_no_program_is_one_message(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "a.py"
    if text is not None:
        path.write_text(text)
    said = CliRunner().invoke(main, ["init", str(path)])
    assert said.exit_code == 2
    assert words in said.stderr
    assert not (tmp_path / "scenarios").exists()


def test_a_scenario_that_is_there_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "a.py").write_text("print()\n")
    first = CliRunner().invoke(main, ["init", "a.py"])
    assert first.stdout.startswith("wrote scenarios/a.yaml\nto fill in: no source was found")
    assert first.stdout.endswith("next: onceproof validate scenarios/a.yaml, then onceproof run scenarios/a.yaml\n")
    again = CliRunner().invoke(main, ["init", "a.py"])
    assert again.exit_code == 2
    assert "scenarios/a.yaml is there already. Remove it, or rename the program" in again.stderr

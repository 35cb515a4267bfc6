"""A mistake of the sink is told as early as it shows, on the real stack; a sink that is only late is no mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_bad_input import onceproof

PROGRAM = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
source = {"kafka.bootstrap.servers": sys.argv[1], "subscribe": sys.argv[2], "startingOffsets": "earliest"}
stream = spark.readStream.format("kafka").options(**source).load()
"""
INTO_POSTGRES = """
import psycopg2

def save(rows, batch):
    ids = [(row.id,) for row in rows.selectExpr("get_json_object(cast(value as string), '$.id') id").collect()]
    with psycopg2.connect(sys.argv[3]) as connection, connection.cursor() as cursor:
        MAKE
        cursor.executemany("insert into kept (id) values (%s) on conflict do nothing", ids)

stream.writeStream.foreachBatch(save).option("checkpointLocation", sys.argv[4]).start().awaitTermination()
"""
INTO_KAFKA = """
out = stream.selectExpr("concat('{\\"id\\": \\"', get_json_object(cast(value as string), '$.id'), '\\"}') as value")
to = {"kafka.bootstrap.servers": sys.argv[1], "topic": sys.argv[3], "checkpointLocation": sys.argv[4]}
out.writeStream.format("kafka").options(**to).start().awaitTermination()
"""
SCENARIO = """
name: early
pipeline: {{entry: job.py, args: ["{{kafka.bootstrap}}", "{{topic}}", {args}, "{{checkpoint}}"]}}
{setup}
sink: {sink}
schedule: [{{when: {{point: sink-committed, batch: {batch}}}, do: kill driver}}]
verdict: held
timeout: 120s
"""
MAKES = 'cursor.execute("create table if not exists kept (id bigint primary key)")'


def run(
    folder: Path, program: str, sink: str, *, setup: str = "", args: str = '"{postgres.dsn}"', batch: int = 3
) -> tuple[int, str]:
    """Exit code and everything that was said; `batch` is the one that is struck."""
    (folder / "scenarios").mkdir()
    (folder / "job.py").write_text(PROGRAM + program)
    (folder / "scenarios" / "early.yaml").write_text(SCENARIO.format(args=args, setup=setup, sink=sink, batch=batch))
    return onceproof(folder, "run", "scenarios/early.yaml")


@pytest.mark.stack
def test_a_wrong_column_in_the_sink_s_query_is_told_before_the_driver_starts(tmp_path: Path) -> None:
    code, said = run(
        tmp_path,
        INTO_POSTGRES.replace("MAKE", "pass"),
        "{postgres: select idd from kept, expected: select id as idd from ledger, key: [idd]}",
        setup='setup: {postgres: "create table kept (id bigint primary key)"}',
    )
    assert code == 4, said
    assert 'column "idd" does not exist' in said
    assert "] set up" in said and "] warm-up" not in said


@pytest.mark.stack
def test_a_sink_that_the_pipeline_makes_with_other_types_is_told_after_its_first_batch(tmp_path: Path) -> None:
    code, said = run(
        tmp_path,
        INTO_POSTGRES.replace("MAKE", MAKES.replace("id bigint", "id text")),
        "{postgres: kept, expected: select id from ledger, key: [id]}",
    )
    assert code == 4, said
    assert "column id is BIGINT in `expected` and text in the sink" in said
    assert "fault injected" not in said


@pytest.mark.stack
@pytest.mark.prove
def test_a_sink_that_is_not_there_after_the_first_batch_is_named_at_once(tmp_path: Path) -> None:
    code, said = run(
        tmp_path,
        INTO_POSTGRES.replace("MAKE", MAKES),
        "{postgres: select id from kpet, expected: select id from ledger, key: [id]}",
    )
    assert code == 3, said
    early = said.index("is not there after the first committed batch, or not yet")
    assert 'relation "kpet" does not exist' in said[early:].splitlines()[0]
    assert early < said.index("] catching up")


@pytest.mark.stack
@pytest.mark.prove
def test_a_sink_that_the_pipeline_makes_late_is_no_mistake(tmp_path: Path) -> None:
    # The first batches are written together with a later one, long before the fault.
    late = f"waiting.extend(ids)\n        if batch < 4:\n            return\n        ids = waiting\n        {MAKES}"
    code, said = run(
        tmp_path,
        "waiting = []\n" + INTO_POSTGRES.replace("MAKE", late),
        "{postgres: kept, expected: select id from ledger, key: [id]}",
        batch=6,
    )
    assert code == 0, said
    assert "is not there after the first committed batch, or not yet" in said
    assert "HELD, expected held" in said


@pytest.mark.stack
@pytest.mark.prove
def test_a_record_of_a_topic_that_never_can_be_read_is_told_after_the_first_batch(tmp_path: Path) -> None:
    code, said = run(
        tmp_path,
        INTO_KAFKA,
        "{kafka: out, columns: id bigint, expected: select id from ledger, key: [id]}",
        args='"{kafka.out.topic}"',
    )
    assert code == 4, said
    assert "after the first committed batch: " in said and "cannot be read exactly" in said
    assert "fault injected" not in said

"""What a program shows in the warm-up that does not fit its run is an error at once, with its place in the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.errors import SetupError
from harness.history import AttemptEnded, ExecutorAdded, History, PackagesNamed
from harness.run.last_words import last_error
from harness.run.live_run import UNREAD_S, Live
from harness.run.misfits import Shown, elsewhere, literal, misfits, packages_s
from harness.run.progress.observer import Observer
from harness.suite.progress import line
from tests.provided import reader

PROGRAM = """
# writing.option("subscribe", "commented")
options = {"kafka.bootstrap.servers": "localhost:9092"}
stream = spark.readStream.option("subscribe", "payments").load()
stream.writeStream.option("checkpointLocation", f"{args.checkpoint}/a").start()
spark = SparkSession.builder.config('spark.jars.packages', 'a:b:1')
"""
RUN = "/tmp/runs/r1"


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    path = tmp_path / "job.py"
    path.write_text(PROGRAM)
    return path


def shown(entry: Path, **parts: Any) -> Shown:
    whole = {
        "name": "jobs/job.py",
        "log": None,
        "within": [RUN],
        "source": "the run's topic t (`{topic}`)",
        "begun": True,
    }
    return Shown(entry=entry, **{**whole, **parts})


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("subscribe", '; jobs/job.py:4 sets subscribe to "payments"'),
        ("kafka.bootstrap.servers", '; jobs/job.py:3 sets kafka.bootstrap.servers to "localhost:9092"'),
        ("spark.jars.packages", '; jobs/job.py:6 sets spark.jars.packages to "a:b:1"'),
        ("checkpointLocation", ""),
    ],
)
def test_a_literal_of_the_program_is_named_by_its_line(entry: Path, option: str, written: str) -> None:
    assert literal(entry, option, name="jobs/job.py") == written
    assert literal(entry.with_name("none.py"), option, name="jobs/job.py") == ""


def test_a_program_that_reads_another_topic_is_given_the_run_s_and_its_own(entry: Path) -> None:
    (text,) = misfits(shown(entry, begun=False, other='{"payments":{"0":1}}')).split(" spark-submit")[:1]
    assert text == (
        " No query of the program read the run's topic t (`{topic}`); its offsets are not of it: "
        '{"payments":{"0":1}}; jobs/job.py:4 sets subscribe to "payments"; '
        'jobs/job.py:3 sets kafka.bootstrap.servers to "localhost:9092".'
    )


def test_packages_that_the_program_names_are_passed_over(entry: Path) -> None:
    assert misfits(shown(entry)) == (
        " spark-submit passes over packages that the program names: name them in `conf`; "
        'jobs/job.py:6 sets spark.jars.packages to "a:b:1".'
    )


def test_a_sink_that_is_not_there_is_named(entry: Path) -> None:
    entry.write_text("")
    assert misfits(shown(entry, absent=["postgres a", "postgres b"])) == (
        " Not there: postgres a, postgres b; make it in `setup` if the program does not."
    )
    assert misfits(shown(entry)) == ""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"INFO ResolveWriteToStream: Checkpoint root {RUN}/checkpoint resolved to file:{RUN}/checkpoint.\n", ""),
        ("INFO ResolveWriteToStream: Checkpoint root ck resolved to file:/home/me/ck.\n", "/home/me/ck"),
        ("INFO ResolveWriteToStream: Checkpoint root /a resolved to hdfs://host:8020/a.\n", "hdfs://host:8020/a"),
        ("~WriteToMicroBatchDataSourceV1 Sink, 2515, [checkpointLocation=/home/me/ck], Append\n", "/home/me/ck"),
        (f"~WriteToMicroBatchDataSourceV1 Sink, 2515, [checkpointLocation={RUN}], Append\n", ""),
        (f"INFO ResolveWriteToStream: Checkpoint root a resolved to file:{RUN}2/ck.\n", f"{RUN}2/ck"),
        ("nothing of it\n", ""),
    ],
)
def test_a_checkpoint_that_the_log_names_outside_the_run_is_found(tmp_path: Path, text: str, place: str) -> None:
    log = tmp_path / "driver-1.log"
    assert elsewhere(log, [RUN]) == ""
    log.write_text(text)
    assert elsewhere(log, [RUN]) == place


INNER = (
    'Traceback (most recent call last):\n  File "p.py", line 3, in save\n    execute(rows)\npsycopg2.UniqueViolation: x'
)
FAILED = "pyspark.errors.StreamingQueryException: [STREAM_FAILED] Query [id = 1] terminated with exception"
END = "\n=== Streaming Query ===\nLogical Plan:\n~Project [id]\n"
OWN = 'Traceback (most recent call last):\n  File "p.py", line 9, in <module>\n    query.awaitTermination()\n'
GONE = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: no such topic."


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"{OWN}{FAILED}: An exception was raised by the Python Proxy. {INNER}{END}", "psycopg2.UniqueViolation: x"),
        (f"{OWN}{FAILED}: {GONE} SQLSTATE: XXKST{END}", GONE),
        (
            f"java.lang.NullPointerException: no map\n\tat a.b\n{OWN}{FAILED}: no map{END}",
            "java.lang.NullPointerException: no map",
        ),
        (f"{OWN}{FAILED}: Job aborted: Lost task 0.3 in stage 1.0 (TID 5) (h executor 0): a.B: y{END}", "a.B: y"),
        (
            f"{OWN}py4j.protocol.Py4JJavaError: An error occurred while calling o1.start.\n: a.B: y\n\tat c.d\n",
            "a.B: y",
        ),
        ('Exception in thread "main" a.B: y\n\tat c.d\nCaused by: a.C: z\n\tat c.d\n', "a.C: z"),
        ("usage: job.py\njob.py: error: unrecognized arguments: --a\n", "job.py: error: unrecognized arguments: --a"),
        ("26/11/30 19:17:45 INFO A: b\n", ""),
    ],
)
def test_the_error_that_ended_a_program_is_its_own(tmp_path: Path, text: str, error: str) -> None:
    log = tmp_path / "driver-1.log"
    assert last_error(log) == ""
    log.write_text(text)
    assert last_error(log) == error


def test_packages_that_spark_fetches_are_named_with_their_time(tmp_path: Path) -> None:
    log = tmp_path / "driver-1.log"
    assert packages_s(log) is None
    log.write_text("WARNING: a\n")
    assert packages_s(log) is None
    log.write_text("\tfound a\n:: resolution report :: resolve 1740ms :: artifacts dl 260ms\n")
    assert packages_s(log) == 2.0
    assert line(PackagesNamed(packages="a:b:1")) == "Spark fetches spark.jars.packages: a:b:1"
    assert line(PackagesNamed(packages="a:b:1", seconds=2.0)) == "Spark took 2.0 s for spark.jars.packages: a:b:1"


def test_a_local_master_is_named_once_the_driver_has_it() -> None:
    told = line(ExecutorAdded(attempt=1, executor="driver"))
    assert told == "driver 1 runs its tasks in its own JVM: the program sets a local master"
    assert line(ExecutorAdded(attempt=1, executor="0")) is None


def test_the_terminal_has_the_error_of_each_death() -> None:
    ended = AttemptEnded(attempt=2, status=1, error="KeyError: 'a'")
    assert line(ended) == "driver 2 died, status 1, by itself: KeyError: 'a'"


@pytest.fixture
def observer(tmp_path: Path) -> Iterator[Observer]:
    (tmp_path / "run").mkdir()
    with closing(Observer(tmp_path / "run", reader("topic"), History(None))) as made:
        made.attempt = 1
        yield made


def reports(observer: Observer, what: str, **fields: Any) -> None:
    """Have the agent report an event."""
    query = {"query": "a", "query_run": "b"} if what.startswith("query") else {}
    observer._heard({"what": what, "attempt": "1", "process": "driver", "waits": False, **query, **fields})


def writes(observer: Observer, file: Path, text: str = "v1") -> None:
    """Have the agent report that a file of a checkpoint was renamed into place."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    reports(observer, "checkpoint-op", op="rename", when="after", path=str(file))


def plans(topic: str) -> str:
    return f'v1\n{{"batchWatermarkMs":0}}\n{{"{topic}":{{"0":0}}}}'


def test_a_query_with_a_checkpoint_elsewhere_is_seen_by_its_first_batch(observer: Observer, tmp_path: Path) -> None:
    writes(observer, tmp_path / "run" / "checkpoint" / "offsets" / "0", plans("topic"))
    writes(observer, tmp_path / "other" / "offsets" / "0", plans("another"))
    assert observer.outside() is None
    writes(observer, tmp_path / "mine" / "offsets" / "0", plans("topic"))
    assert observer.outside() == tmp_path / "mine"


def test_a_query_that_reads_something_else_is_counted_from_its_beginning(observer: Observer, tmp_path: Path) -> None:
    assert observer.unread_s() == 0.0
    reports(observer, "query-started")
    writes(observer, tmp_path / "run" / "audit" / "offsets" / "0", plans("another"))
    assert observer.unread_s() > 0.0
    writes(observer, tmp_path / "run" / "checkpoint" / "offsets" / "0", plans("topic"))
    assert observer.unread_s() == 0.0


@pytest.mark.parametrize("failed", [None, True, False])
@pytest.mark.parametrize("committed", [True, False])
def test_a_query_that_was_open_when_its_program_ended_is_cut_off(
    observer: Observer, tmp_path: Path, failed: bool | None, committed: bool
) -> None:
    reports(observer, "query-started")
    writes(observer, tmp_path / "run" / "checkpoint" / "offsets" / "0", plans("topic"))
    if committed:
        writes(observer, tmp_path / "run" / "checkpoint" / "commits" / "0")
    if failed is not None:
        reports(observer, "query-ended", failed=failed)
    assert observer.cut_off(1) is (failed is not False and not committed)
    assert not observer.cut_off(2)


def fits(**seen: Any) -> None:
    """Check a program of which the observer has `seen` this."""
    parts: dict[str, Any] = {"cut_off": False, "outside": None, "unread_s": 0.0, **seen}
    fake = SimpleNamespace(
        _clean_ends=lambda: [SimpleNamespace(number=1, log=Path("none"))],
        _shown=lambda: shown(Path("none")),
        _misfits=lambda: " Hint.",
        _log=lambda: "the log",
        observer=SimpleNamespace(
            cut_off=lambda number: parts["cut_off"],
            outside=lambda: parts["outside"],
            unread_s=lambda: parts["unread_s"],
        ),
        scenario=SimpleNamespace(pipeline=SimpleNamespace(interval_s=None)),
    )
    Live._fits(cast(Any, fake))


@pytest.mark.parametrize(
    ("seen", "error"),
    [
        ({"cut_off": True}, r"ended with status 0 while its query ran.*awaitTermination"),
        (
            {"outside": Path("/home/me/ck")},
            r"checkpoint in /home/me/ck, where the next run finds it; pass it `\{checkpoint\}`",
        ),
        ({"unread_s": UNREAD_S + 1}, r"began 61 s ago, and none reads the run's source\. Hint\."),
    ],
)
def test_a_program_that_does_not_fit_is_an_error_of_the_set_up(seen: dict[str, Any], error: str) -> None:
    fits()
    fits(unread_s=UNREAD_S)
    with pytest.raises(SetupError, match=error):
        fits(**seen)

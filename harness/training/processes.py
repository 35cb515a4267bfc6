"""Makes the class data archives (`machine/class_data.py`): one short real run of everything, each JVM ended cleanly.

    python -m harness.training.processes [VERSION…]     make what is missing (about a minute, once), print the folder

A VERSION is another one of Spark than the installed one (`4.0`).

A JVM that is killed writes nothing, so each is asked to end and waited for.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import psutil

from harness import wait
from harness.component import AsProcesses, Started, able
from harness.errors import HarnessError, StackError
from harness.hosts.logs import tail
from harness.hosts.processes import ProcessHost
from harness.machine import agent, cache, class_data, jars, java, spark_versions
from harness.machine.class_data import Kind
from harness.machine.spark_versions import SparkVersion
from harness.resources import Parts, RunResources
from harness.run_folder.ledger import State
from harness.scenario import Input, Pipeline
from harness.session.session import Session
from harness.sources import SOURCES
from harness.spark import driver_process as driver
from harness.spark import other_version
from harness.spark.standalone_processes import MASTER, WORKER, Spark
from harness.stack import Driver, Stack
from harness.workloads.base import Record

TRAINING_APP = Path(__file__).with_name("application.py")
TOPIC = "training"
RECORDS = 240
INPUT = Input(source_options={"partitions": 2})
DRIVER_S = 600.0
DUMP_S = 300.0
LOCK_S = 600.0
KEPT = 3 + len(spark_versions.PINNED)
"""Of those used last: each is some 300 MB, and one more comes with each version of Spark, and with every change of the
JDK or the jars."""
MAKING = "making class archives, which halve a driver's start (about a minute, once)"
WITHOUT = "going on without class archives, which takes about twice as long: {}"


def train(found: java.Java, resolved: jars.Jars, version: SparkVersion | None = None) -> Path:
    """Make the archives if they are missing; returns their folder. `resolved` are the jars of that Spark: the installed
    one without a `version`. Two at once: the second waits for the first.

    Raises StackError when the training run fails; the stack then works without archives, only slower."""
    target = class_data.folder(found, resolved, version)
    if class_data.trained(found, resolved, version):
        return target
    with wait.locked(cache.folder("cds") / ".lock", within_s=LOCK_S):
        if not class_data.trained(found, resolved, version):
            with cache.filling(target) as temporary:
                _run(temporary, found, resolved, version)
            cache.trim(target.parent, most=KEPT)
    return target


def before(notify: Callable[[str], object], name: str = "") -> None:
    """Make the archives for this machine if they are missing, and say so; if they cannot be made, say that it is slower
    without. `name` is another version of Spark than the installed one (`4.0`)."""
    try:
        made(notify, spark_versions.made(name, notify) if name else None)
    except HarnessError as error:
        notify(WITHOUT.format(error))


def made(notify: Callable[[str], object], version: SparkVersion | None = None) -> Path:
    """Make the archives for that Spark if they are missing, and say so; return their folder. Raises StackError."""
    found = java.find()
    resolved = agent.resolve(found, version)
    if found.instead and version is None:
        notify(found.instead)
    if not class_data.trained(found, resolved, version):
        notify(f"Spark {version.release}: {MAKING}" if version else MAKING)
    return train(found, resolved, version)


def after(stack: Stack, notify: Callable[[str], object]) -> None:
    """Nothing: they are made without a stack."""


def needed() -> Parts:
    """Return what the training app is given of the components, by label."""
    return SOURCES[INPUT.source].requested_parts(INPUT)


def label() -> str:
    """Return where its input goes in."""
    (only,) = needed()
    return only


def _run(into: Path, found: java.Java, resolved: jars.Jars, version: SparkVersion | None) -> None:
    logs = into / "logs"
    logs.mkdir()
    flags = {kind: _flags(into, kind) for kind in Kind}
    with Session() as session:
        host = ProcessHost(session=session, logs=logs, java=found, jars=resolved, flags=flags)
        broker: Started = able(label(), AsProcesses, "does not run as child processes").as_processes(host)
        spark = Spark(session, found, logs=logs, flags=flags[Kind.DAEMON], version=version)
        try:
            broker.start()
            if version:
                other_version.install(spark.modules)
            spark.start()
            own = resources(session, broker, spark)
            feed(own)
            _drive(into, session, own, _machine(spark, version, found, resolved, flags))
        finally:
            # Before the servers end, or a client goes on knocking.
            spark.close()
            broker.close()
        # Worker and master write one archive: the master's, written last, stays.
        for main in (WORKER, MASTER):
            _end(main, _archive(into, Kind.DAEMON))
        _end(_archive(into, Kind.BROKER))
    if version:
        Path(_archive(into, Kind.BROKER)).unlink()  # the installed one's fits
    missing = [
        str(kind) for kind in (class_data.OF_SPARK if version else Kind) if not Path(_archive(into, kind)).is_file()
    ]
    if missing:
        raise StackError(
            f"the training run wrote no archive for {', '.join(missing)}; run it again, nothing else beside"
        )
    shutil.rmtree(logs)


def _flags(into: Path, kind: Kind) -> tuple[str, ...]:
    return class_data.training_flags(Path(_archive(into, kind)))


def feed(own: RunResources) -> None:
    """Send the source, which has two partitions, some payments. Raises StackError."""
    records = []
    for number in range(RECORDS):
        payment = {"id": number, "account": f"a{number % 7}", "amount": "1.25", "event_time": "2026-01-01T00:00:00"}
        records.append(Record(number, b"%d" % number, json.dumps(payment).encode(), number % 2))
    with closing(SOURCES[INPUT.source].open(INPUT, own.parts).sender()) as sender:
        answers = sender.send(records)
    if failed := [answer.error for answer in answers if answer.state is not State.ACKNOWLEDGED]:
        raise StackError(f"asked {label()} to take {RECORDS} records to train with; saw {failed[0]}; run it again")


def resources(session: Session, broker: Started, spark: Spark) -> RunResources:
    """Return what the training app is given: a topic, and no database."""
    folder = session.folder / TOPIC
    folder.mkdir()
    given = broker.provide(TOPIC, {"": needed()[label()]})
    return RunResources(
        run_id=TOPIC,
        parts={each.label: each for each in given.values()},
        spark_master=spark.master,
        spark_home=spark.home,
        folder=folder,
        checkpoint=folder / "checkpoint",
    )


def training_app(
    own: RunResources, *, gate: Path | None = None, conf: Mapping[str, str], env: Mapping[str, str] | None = None
) -> Pipeline:
    """Return the program to train with, on a topic that `feed` has filled. `gate`: what it waits for before it
    stops."""
    given = own.part(label()).placeholders
    arguments = (given["bootstrap"], given["topic"], str(RECORDS), str(own.checkpoint))
    return Pipeline(
        entry=str(TRAINING_APP), args=(*arguments, *([str(gate)] if gate else ())), conf=conf, env=env or {}
    )


def drive(launch: Callable[[], Driver], gate: Path, hold: Callable[[], object]) -> None:
    """Run the training app to its end; `hold` is done before it stops. Raises StackError if it fails."""
    driver = launch()

    def seen_everything() -> bool:
        return gate.with_suffix(".requested").exists() or driver.poll() is not None

    wait.until("the training driver to have seen everything", seen_everything, within_s=DRIVER_S)
    hold()
    gate.touch()
    wait.until("the training driver to end", lambda: driver.poll() is not None, within_s=DRIVER_S)
    if driver.poll() != 0:
        raise StackError(f"the training driver failed; its log ends:\n{tail(driver.log)}")


def _machine(
    spark: Spark,
    version: SparkVersion | None,
    found: java.Java,
    resolved: jars.Jars,
    flags: Mapping[Kind, tuple[str, ...]],
) -> driver.Machine:
    """Return what the training driver runs on. The executor writes another archive: with the driver's flags both would
    write the same file."""
    if version:
        return other_version.machine(spark, version, found, resolved, flags)
    return driver.Machine(java=found, jars=resolved, flags=flags[Kind.DRIVER], executor_flags=flags[Kind.EXECUTOR])


def _drive(into: Path, session: Session, own: RunResources, machine: driver.Machine) -> None:
    """Run the training app to its end, and wait until its JVM and its executor have written their archives."""
    (worker,) = _running(WORKER, _archive(into, Kind.DAEMON))
    conf = {"spark.executorEnv.SPARK_CONF_DIR": str(class_data.conf())}
    log, gate = into / "logs" / "driver.log", own.folder / "stop"
    # An archive cannot be made with files on the class path that are in no jar, such as the user's configuration.
    env = {"SPARK_CONF_DIR": str(own.spark_home / "conf")}
    program = training_app(own, gate=gate, conf=conf, env=env)
    drive(lambda: driver.launch(session, own, program, machine, number=1, log=log), gate, worker.suspend)
    for kind in (Kind.DRIVER, Kind.EXECUTOR):
        _gone(_archive(into, kind))
    worker.resume()


def _end(*words: str) -> None:
    """Ask the processes that hold `words` to end, and wait until they have written their archive."""
    for process in _running(*words):
        process.terminate()
    _gone(*words)


def _gone(*words: str) -> None:
    what = f"{words[-1]} to be written and its JVM to end"
    wait.until(what, lambda: not _running(*words), within_s=DUMP_S, every_s=0.2)


def _archive(into: Path, kind: Kind) -> str:
    return str(into / f"{kind}.jsa")


def _running(*words: str) -> list[psutil.Process]:
    """Return the processes whose command line holds all `words`, one of them a path that only we use.

    Not our children: a driver's JVM has no parent once its Python has ended."""
    found = psutil.process_iter(["cmdline", "status"])
    alive = (process for process in found if process.info["status"] != psutil.STATUS_ZOMBIE)
    return [process for process in alive if all(word in " ".join(process.info["cmdline"] or ()) for word in words)]


def main() -> int:
    """Train and print the folder; 0, or 4 with one line."""

    def notify(words: str) -> None:
        print(words, flush=True)

    try:
        wanted = [spark_versions.chosen(text) for text in sys.argv[1:]]
        versions = [
            spark_versions.made(name, notify) if spark_versions.is_other(name) else None for name in wanted or [""]
        ]
        for version in versions:
            print(f"class archives in {made(notify, version)}")
    except HarnessError as error:
        print(f"onceproof: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

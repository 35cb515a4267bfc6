"""The driver of an attempt that is still to come: Python, JVM, session and executors are up, the program has not begun.

Started as `python standby_program.py FOLDER ENTRY ARGS…` in the place of `python ENTRY ARGS…`, with the environment and
the working directory of that attempt. It makes the session that the attempt before made (`settings` in FOLDER holds
what that one gave to spark-submit), runs one micro-batch that reads and writes nothing of the run, says `ready`, and
waits for the word to go. Then it is the program. If that asks for any other session, or has changed what the JVM was
started with, it gets a JVM of its own, as it would have without this.

It imports nothing of ours: what the program finds is its own.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import json
import os
import signal
import sys
import types
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

SETTINGS, READY, GO, USED = "settings", "ready", "go", "used"
"""Files in FOLDER: what to be ready for; it is ready; a pipe, written to once it may go; what the program got."""
SESSION, FRESH = "warm session", "fresh JVM"
"""What the program got."""
BATCH_S = 180.0
Pairs = list[tuple[str, str]]


class Surroundings(NamedTuple):
    """What a JVM takes over from the process that starts it."""

    environment: dict[str, str]
    folder: str
    umask: int


def surroundings() -> Surroundings:
    """Those of this process now."""
    umask = os.umask(0)
    os.umask(umask)
    return Surroundings(dict(os.environ), str(Path.cwd()), umask)


def say(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    made = path.with_name(f".{path.name}")
    made.write_text(text, encoding="utf-8")
    made.rename(path)


def pairs(conf: Any) -> Pairs:
    """The settings of PySpark's conf, in its order."""
    return [(str(name), str(value)) for name, value in conf.getAll()] if conf is not None else []


def touch(rows: Iterable[Any]) -> None:
    """Stands for a write from the executors."""
    for row in rows:
        row.asDict()


def write(rows: Any, number: int) -> None:
    """A micro-batch that is written by the executors' Python."""
    rows.foreachPartition(touch)


def pyspark() -> tuple[Any, Any]:
    """The module of PySpark's context, and the context's class."""
    context: Any = importlib.import_module("pyspark.core.context")
    return context, context.SparkContext


class Standby:
    """The session that is kept ready, and the way by which PySpark comes to it or to another."""

    def __init__(self, folder: Path, settings: Pairs) -> None:
        context, kind = pyspark()
        self._folder, self._settings = folder, settings
        self._found = surroundings()
        self._launch, self._initialize = context.launch_gateway, kind._initialize_context
        self._gateway: Any = None
        self._java: Any = None
        self._jvm_settings: Pairs = []
        self._conf: Any = None

    def prepare(self) -> None:
        """Make the session as PySpark makes the program's, use it once, and leave PySpark as if there were none."""
        from pyspark import SparkConf, SparkFiles
        from pyspark.sql import SparkSession

        _, kind = pyspark()
        interrupt = signal.getsignal(signal.SIGINT)
        conf, path = SparkConf(loadDefaults=False), list(sys.path)
        for name, value in self._settings:
            conf.set(name, value)
        kind._initialize_context = self._made
        context = kind(conf=conf)
        session = SparkSession(context)
        self._use(session)
        known: Any = SparkSession._get_j_spark_session_class(context._jvm)
        known.clearActiveSession()
        known.clearDefaultSession()
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        context._accumulatorServer.shutdown()
        kind._active_spark_context = kind._gateway = kind._jvm = kind._python_includes = None
        SparkFiles._sc = None
        sys.path[:] = path
        # PySpark sets variables and a handler of its own when it makes a context.
        os.environ.clear()
        os.environ.update(self._found.environment)
        signal.signal(signal.SIGINT, interrupt)

    def _made(self, jconf: Any) -> Any:
        """In the place of `SparkContext._initialize_context`, for the session that is kept."""
        self._gateway = pyspark()[1]._gateway
        self._jvm_settings = settled(jconf)
        self._java = self._gateway.jvm.JavaSparkContext(jconf)
        return self._java

    def _use(self, session: Any) -> None:
        rate = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).option("numPartitions", 2)
        writer = rate.load().selectExpr("cast(value as string)", "timestamp").writeStream.foreachBatch(write)
        # Once, so that it ends by itself: a query that is stopped in its next batch fills the log with errors.
        query = writer.option("checkpointLocation", (self._folder / "checkpoint").as_uri()).trigger(once=True).start()
        if not query.awaitTermination(BATCH_S):
            sys.exit(f"a batch of the standby driver was not done within {BATCH_S:g} s")

    def offer(self) -> None:
        """From here on PySpark comes to this session, once."""
        from pyspark import java_gateway

        context, kind = pyspark()

        def initialize(instance: Any, jconf: Any) -> Any:
            return self._context_for(instance, jconf)

        context.launch_gateway = java_gateway.launch_gateway = self._gateway_for
        kind._initialize_context = initialize

    def _gateway_for(self, conf: Any = None, popen_kwargs: Any = None) -> Any:
        found = surroundings()
        differs = popen_kwargs or pairs(conf) != self._settings or found != self._found
        if not self._lives() or differs or not self._for_a_context(sys._getframe(1)):
            self.end()
            return self._launch(conf, popen_kwargs)
        self._conf = conf
        return self._gateway

    def _lives(self) -> bool:
        """Is there a JVM to be had? Nothing else watches it, and its death is none of the program's."""
        return self._gateway is not None and self._gateway.proc.poll() is None

    def _for_a_context(self, caller: types.FrameType) -> bool:
        """Is it a context that asks for the gateway, and one that is made as PySpark makes it?"""
        asks = caller.f_locals.get("instance")
        return asks is not None and type(asks)._initialize_context is pyspark()[1]._initialize_context

    def _context_for(self, instance: Any, jconf: Any) -> Any:
        """The context that is kept, or one in a JVM of its own if the program asks for another after all."""
        from pyspark import SparkConf

        java, self._java = self._java, None
        if java is None:
            return self._initialize(instance, jconf)
        asked = settled(jconf)
        if asked == self._jvm_settings:
            self._gateway = None
            self._tell(SESSION)
            return java
        self.end()
        _, kind = pyspark()
        kind._gateway = self._launch(self._conf)
        kind._jvm = kind._gateway.jvm
        fresh = kind._jvm.SparkConf()
        for name, value in asked:
            fresh.set(name, value)
        instance._conf = SparkConf(_jconf=fresh)
        return self._initialize(instance, fresh)

    def _tell(self, got: str) -> None:
        # A full disk is no error of the program.
        with contextlib.suppress(OSError):
            say(self._folder / USED, got)

    def end(self) -> None:
        """End the JVM that is kept; nothing of the program was in it."""
        gateway, self._gateway, self._java = self._gateway, None, None
        if gateway is None:
            return
        self._tell(FRESH)
        gateway.proc.kill()
        gateway.proc.wait()
        with contextlib.suppress(Exception):
            gateway.shutdown()


def settled(jconf: Any) -> Pairs:
    """The settings of the JVM's conf."""
    return sorted((str(pair._1()), str(pair._2())) for pair in jconf.getAll())


def shadows(entry: str) -> bool:
    """Does the program's folder hold a module of the name of one that was imported before the program could?"""
    names = {name.partition(".")[0] for name in sys.modules}
    return any(path.stem in names for path in Path(entry).resolve().parent.iterdir() if path.suffix in ("", ".py"))


def become(entry: str, arguments: list[str]) -> None:
    """Be the program, as `python ENTRY ARGS…` would be."""
    # A program that starts itself anew takes its command from here. `FOLDER ENTRY ARGS…` and this file go.
    python = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv)]
    sys.orig_argv[:] = [*python, entry, *arguments]
    sys.argv[:] = [entry, *arguments]
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(entry))  # noqa: PTH120
    module = types.ModuleType("__main__")
    found = {"__file__": entry, "__builtins__": builtins, "__cached__": None, "__spec__": None}
    module.__dict__.update(found, __loader__=SourceFileLoader("__main__", entry))
    sys.modules["__main__"] = module
    try:
        exec(compile(Path(entry).read_bytes(), entry, "exec", dont_inherit=True), module.__dict__)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        # As without this file: its frames are no part of the program's traceback.
        at = error.__traceback__
        while at is not None and at.tb_frame.f_code.co_filename == __file__:
            at = at.tb_next
        sys.excepthook(type(error), error.with_traceback(at), at)
        sys.exit(1)


def main() -> None:
    """Be ready, wait, be the program."""
    folder, entry, arguments = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    standby = Standby(folder, [(name, value) for name, value in settings])
    standby.prepare()
    standby.offer()
    say(folder / READY, "")
    with (folder / GO).open("rb") as word:
        word.read()
    if shadows(entry):
        standby.end()
        os.execv(sys.executable, [sys.executable, "-u", entry, *arguments])
    become(entry, arguments)


if __name__ == "__main__":
    main()

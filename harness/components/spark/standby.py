"""A driver that waits ready for the restart after the next planned kill: its JVM, session and executors are up.

What a cold start of Spark does is the same whatever program comes after it. So it is done while the attempt before is
still at work, with the settings that this one gave to spark-submit; the program itself begins at the hand-over
(`standby_program.py`). Until then whoever looks at the run does not see it. It is a process or a container, as every
driver of its stack.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.components.spark import launcher
from harness.components.spark import standby_program as program
from harness.components.spark.driver_process import submit_arguments
from harness.errors import HarnessError, WaitError
from harness.hosts import signals
from harness.hosts.local import LocalProcess, carrying
from harness.resources import RunResources
from harness.scenario import Pipeline, Victim
from harness.stack import Driver, Process, Start
from harness.wait import Waiting, until

READY_WITHIN_S = 10.0
"""How long a restart waits for one; a cold start would take about as long."""
HAND_OVER_S = 5.0
GONE_WITHIN_S = 15.0
EXECUTORS_END_S = 5.0
LISTENS = (
    "spark.extraListeners",
    "spark.plugins",
    "spark.eventLog.",
    "spark.metrics.",
    "spark.serializer",
    "spark.kryo.registrator",
    "spark.sql.queryExecutionListeners",
    "spark.sql.streaming.streamingQueryListeners",
    "spark.sql.streaming.checkpointFileManagerClass",
    "spark.sql.extensions",
    "spark.sql.catalog",
)
"""What the names of settings begin with that load code or open files of the user's in any session."""
Asked = list[tuple[str, str]]
"""The settings that a program gave to spark-submit."""


@dataclass
class StandbyDriver:
    """One that waits. `driver` is the attempt that it becomes, `folder` where it and we leave each other word, `marks`
    what its processes carry, `seen` is called when nobody has to look past them any more."""

    driver: Driver
    folder: Path
    marks: tuple[str, ...]
    seen: Callable[[], None]

    def ready(self, *, stop: Callable[[], bool]) -> bool:
        """Wait until it can begin; False if it never will, or once `stop` is true."""

        def look() -> bool | Waiting:
            there = (self.folder / program.READY).exists()
            return there or stop() or self.driver.poll() is not None or Waiting("no session yet")

        try:
            until("the standby driver", look, within_s=READY_WITHIN_S)
        except WaitError:
            return False
        return self.driver.poll() is None and not stop()

    def go(self) -> bool:
        """Let the program begin; False if the process is gone."""

        def told() -> bool | Waiting:
            if self.driver.poll() is not None:
                raise WaitError("it is gone")
            try:
                # It reads to the end: that somebody opened the pipe and closed it is the word.
                os.close(os.open(self.folder / program.GO, os.O_WRONLY | os.O_NONBLOCK))
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                return Waiting("nobody reads the pipe")
            return True

        try:
            until("the standby driver to take the word", told, within_s=HAND_OVER_S, every_s=0.01)
        except WaitError:
            return False
        self.seen()
        return True

    def got(self) -> Start | None:
        """What the program got of it; None until it has asked for a session."""
        try:
            return Start((self.folder / program.USED).read_text(encoding="utf-8"))
        except OSError:
            return None

    def drop(self) -> None:
        """End it, and see it gone, with its log. Raises HarnessError if it cannot be ended."""

        def left() -> list[Process]:
            self.driver.poll()
            return [*self.driver.processes(), *carrying(*self.marks)]

        def gone(*, kill: bool) -> bool | Waiting:
            if found := left():
                if kill:
                    signals.kill(found)
                return Waiting(", ".join(process.name for process in found))
            return True

        # The master takes a dead driver's executors away. One that dies before it has heard of that is started anew.
        signals.kill(self.driver.processes())
        with contextlib.suppress(WaitError):
            until("the standby driver's executors to end", lambda: gone(kill=False), within_s=EXECUTORS_END_S)
        try:
            until("the standby driver to end", lambda: gone(kill=True), within_s=GONE_WITHIN_S)
        except WaitError as failure:
            raise HarnessError(f"could not end the standby driver: {failure}") from failure
        self.driver.log.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.seen()


def asked(own: RunResources, pipeline: Pipeline, conf: Mapping[str, str], words: Sequence[str]) -> Asked | None:
    """What the program of an attempt gave to spark-submit, of whose arguments `words` are all, and `conf` what the
    harness gave; None where that cannot be told, and where a session that nobody uses would do something of the
    user's."""
    conf = {**conf, **pipeline.conf}
    given = shlex.split(submit_arguments(own, conf))
    if list(words[-len(given) :]) != given:
        return None
    left = words[: -len(given)]
    if any(word != "--conf" for word in left[::2]) or not all("=" in word for word in left[1::2]):
        return None
    found = [(name, value) for name, _, value in (word.partition("=") for word in left[1::2])]
    loads = any(name.startswith(LISTENS) for name in (*conf, *dict(found)))
    return None if loads or Path(pipeline.entry).suffix != ".py" else found


def submitted(driver: Driver) -> list[str]:
    """The arguments of spark-submit, as the command line of the driver's JVM shows them; empty where it does not."""
    jvm = next((each for each in driver.processes(Victim.JVM) if isinstance(each, LocalProcess)), None)
    words = jvm.command() if jvm else []
    return words[words.index(launcher.MAIN) + 1 :] if launcher.MAIN in words else []


def made_folder(parent: Path, asked: Asked) -> Path:
    """Where a standby and we leave each other word. Raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix="standby-", dir=parent))
    (folder / program.SETTINGS).touch(mode=0o600)
    (folder / program.SETTINGS).write_text(json.dumps(asked), encoding="utf-8")
    os.mkfifo(folder / program.GO)
    return folder


def command(folder: Path, pipeline: Pipeline) -> list[str]:
    """What Python is to run in the place of the program."""
    return [program.__file__, str(folder), pipeline.entry, *pipeline.args]

"""One attempt of an application, as a driver: its container's processes, its output, how it ended.

The ApplicationMaster's JVM is the driver's; the Python program is its child. YARN is asked only once that JVM is gone,
or does not show: a poll is cheap, and a crash point does not wait for HTTP.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import BinaryIO

from harness.components.yarn.containers import Contained, contained, master
from harness.components.yarn.rest_api import FINISHED, Manager
from harness.components.yarn.settings import Folders
from harness.components.yarn.submission import Submission
from harness.hosts import local
from harness.hosts.local import LocalProcess, chosen
from harness.run_folder.redact import Redactor
from harness.scenario import Victim

POLL_S, ASK_S = 0.1, 0.5
NAMES = ("prelaunch.err", "stderr", "stdout")
"""The files of a container's output."""
LOST = 1
"""The status of an attempt that is over without an exit status, and has not ended well: its node was lost, say."""
LEFT_OUT = re.compile(r"\s+(at |\.\.\. \d+ more)|For more detailed output, check the application tracking page")
"""A line of a Java stack trace below its message; where more is to be read, on a page that goes with the stack."""
MOST_CHARACTERS = 1000
"""So many characters of its diagnostics are kept; the first ones say what failed."""


class YarnAttempt:
    """Attempt `number`, which YARN counts so too; `secrets` are those of the run. Several threads may ask."""

    def __init__(
        self,
        submission: Submission,
        manager: Manager,
        folders: Folders,
        *,
        mark: str,
        number: int,
        log: Path,
        secrets: Collection[str] = (),
    ) -> None:
        self.number, self.log, self._secrets = number, log, secrets
        self._submission, self._manager, self._folders, self._mark = submission, manager, folders, mark
        self._output = Output(log)
        self._lock = threading.Lock()
        self._master: Contained | None = None
        self._status: int | None = None
        self._read_s = self._requested_s = 0.0

    def poll(self) -> int | None:
        """Exit status, negative for a signal; None while it lives, or while it is not known how it ended."""
        with self._lock:
            if self._status is None:
                self._status = self._read_status()
            return self._status

    def processes(self, victim: Victim = Victim.TREE) -> list[LocalProcess]:
        """Return the JVM first, then the Python program and what is under it."""
        found = self._master
        return chosen(found.process.family(), victim) if found is not None and self._status is None else []

    def names(self) -> Mapping[str, str]:
        """As YARN calls it."""
        found = self._master
        return {
            "application": self._submission.application,
            **({"container": found.container} if found is not None else {}),
        }

    def diagnostics(self) -> str:
        """Return what ResourceManager says of it, on one line, without stack traces and secrets; empty where that is
        nothing, or there is no answer."""
        application = self._submission.application
        return brief(self._manager.diagnostics(application, self.number), self._secrets) if application else ""

    def _read_status(self) -> int | None:
        found = self._found()
        if found is None:
            failed = self._submission.failed() if self.number == 1 else None
            return self._as_yarn_says(self._submission.application) if failed is None else failed
        self._output.follow(self._folders.output(found.application, found.container))
        if found.process.alive():
            return None
        status = self._ended(found)
        if status is not None:
            self._output.follow(self._folders.output(found.application, found.container), last=True)
        return status

    def _found(self) -> Contained | None:
        if self._master is None and self._due("_read_s", POLL_S):
            self._master = master(contained(self._mark, attempt=self.number))
        return self._master

    def _ended(self, found: Contained) -> int | None:
        """Return how its JVM ended: as the shell around it has written down, else as YARN tells it."""
        try:
            return exit_status(int(self._folders.exit_code(found.application, found.container).read_text()))
        except (OSError, ValueError):
            return self._as_yarn_says(found.application)

    def _as_yarn_says(self, application: str) -> int | None:
        """Return the status of one that is over, as YARN tells it; None while it does not."""
        if not application or not self._due("_requested_s", ASK_S):
            return None
        status = self._manager.exit_status(application, self.number)
        return exit_status(status) if status is not None else self._lost(application)

    def _lost(self, application: str) -> int | None:
        """Return the status of one that YARN says none of; None while it is not over. Only the last attempt can end
        well."""
        # In this order: of an application that is over no attempt comes any more.
        over, begun = self._manager.over(application), self._manager.attempts(application)
        if over not in ("", FINISHED) or any(number > self.number for number in begun or ()):
            return LOST
        if not over or begun is None:
            return None
        well = self._manager.ended_well(self._submission.tag)
        return None if well is None else 0 if well else LOST

    def _due(self, what: str, every_s: float) -> bool:
        now = monotonic()
        if now - getattr(self, what) < every_s:
            return False
        setattr(self, what, now)
        return True


def exit_status(status: int) -> int:
    """Return a shell's exit status, or YARN's, as that of a process: negative for a signal."""
    return local.exit_status(status) if status >= 0 else LOST


def brief(diagnostics: str, secrets: Collection[str] = ()) -> str:
    """Return the beginning of YARN's words on one line. Secrets go first: of one that is cut off a part would stay."""
    lines = (line for line in Redactor(secrets).text(diagnostics).splitlines() if not LEFT_OUT.match(line))
    text = " ".join(" ".join(lines).split())
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


class Output:
    """Copies what a container says into the log of its attempt, line by line, as it comes: a NodeManager that starts
    deletes what another one has left, and what is held open here can be read on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._open: dict[str, BinaryIO] = {}
        self._torn: dict[str, bytes] = {}

    def follow(self, folder: Path, *, last: bool = False) -> None:
        """Add what is new; with `last` also a line without an end, and no more after that."""
        for name in NAMES:
            if name not in self._open:
                with suppress(OSError):
                    self._open[name] = (folder / name).open("rb")
            if (file := self._open.get(name)) is None:
                continue
            whole, ended, rest = (self._torn.get(name, b"") + file.read()).rpartition(b"\n")
            new, self._torn[name] = (whole + ended + rest, b"") if last else (whole + ended, rest)
            if new:
                with self._log.open("ab") as log:
                    log.write(new)
            if last:
                file.close()
        if last:
            self._open = {}

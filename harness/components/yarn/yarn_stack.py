"""What runs the stack `yarn`: ResourceManager and NodeManager, and drivers that are submitted to them.

YARN starts a driver again by its own policy, so attempts are watched, not started. The harness examines a dead attempt
holds NodeManager still meanwhile: it would start the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.components.yarn import settings
from harness.components.yarn.attempt import YarnAttempt
from harness.components.yarn.cluster import Yarn, YarnDaemon
from harness.components.yarn.containers import EXECUTOR, contained, runs
from harness.components.yarn.policy import attempts
from harness.components.yarn.rest_api import FINISHED
from harness.components.yarn.submission import Machine, Submission, submit, table
from harness.errors import StackError, WaitError
from harness.hosts import signals
from harness.hosts.local import LocalProcess, carrying
from harness.resources import RunResources
from harness.scenario import Pipeline
from harness.session.session import Session
from harness.spark import driver_process
from harness.stack import Change, Driver, NoMore
from harness.stacks.base import RUNS
from harness.stacks.base.child_processes import ChildProcessesStack
from harness.stacks.provision import Provision
from harness.wait import Waiting, undisturbed, until

END_WITHIN_S = 15.0
"""How long YARN is asked to end an application, until it says that it is over."""


@dataclass(frozen=True)
class Submitted:
    """What was submitted for a run, and how many attempts YARN gives it."""

    submission: Submission
    attempts: int | None


class YarnStack(ChildProcessesStack):
    """One of each component, a ResourceManager and a NodeManager, on ports of our own."""

    name = "yarn"

    def __init__(self, logs: Path, *, needs: Collection[str] = ()) -> None:
        super().__init__(logs, needs=needs)
        self._yarn: Yarn | None = None
        self._submitted: dict[str, Submitted] = {}

    def _runs_drivers(self, session: Session) -> Yarn:
        self._yarn = yarn = Yarn(session, self._java, logs=self.logs)
        return yarn

    def _kept(self) -> list[Yarn]:
        return [self._yarn] if self._yarn is not None else []

    def _forget(self) -> None:
        self._submitted, self._yarn = {}, None

    def _provision(self) -> Provision:
        yarn = self._there()
        return Provision(
            servers=self.servers, spark_master=yarn.master, spark_home=yarn.home, root=self._up().folder / RUNS
        )

    def _there(self) -> Yarn:
        if self._yarn is None:
            raise StackError("the stack is not up")
        return self._yarn

    @property
    def daemons(self) -> Mapping[str, YarnDaemon]:
        """ResourceManager and NodeManager, by name."""
        return self._there().daemons

    def launch(self, own: RunResources, pipeline: Pipeline, *, number: int, log: Path) -> Driver:
        """Submit the pipeline; its first attempt. Its placeholders are already filled in."""
        submission = submit(self._up(), self._there(), own, pipeline, self._machine(), log=log)
        self._submitted[own.run_id] = Submitted(submission, attempts(pipeline))
        return self._attempt(own, number, log)

    def _machine(self) -> Machine:
        return Machine(java=self._java, jars=self._jars, flags=self._flags)

    def _attempt(self, own: RunResources, number: int, log: Path) -> YarnAttempt:
        yarn, submission = self._there(), self._submitted[own.run_id].submission
        mark, secrets = driver_process.mark(own), own.secrets
        return YarnAttempt(submission, yarn.manager, yarn.folders, mark=mark, number=number, log=log, secrets=secrets)

    def next_attempt(self, own: RunResources, *, after: Driver, log: Path) -> Driver | NoMore | None:
        """Return the attempt that YARN has started after a dead one; None while it may still come; that it will not."""
        manager, submitted = self._there().manager, self._submitted[own.run_id]
        if not (application := submitted.submission.application):
            return NoMore("YARN never got to know the application")
        begun = manager.attempts(application)
        if begun is None:
            return None
        if after.number + 1 in begun:
            return self._attempt(own, after.number + 1, log)
        if not (state := manager.over(application)):
            return None
        # The container's exit status does not matter: for YARN, the status that the attempt has reported counts.
        well = manager.ended_well(submitted.submission.tag) if state == FINISHED else False
        if well is None:
            return None
        given = "the program ended well" if well else f"it had {submitted.attempts} attempts"
        why = f"YARN starts the driver no more: {application} is {state} after attempt {after.number}; {given}"
        return NoMore(why, well=well)

    @contextmanager
    def holding(self, own: RunResources) -> Iterator[None]:
        """NodeManager stands still (SIGSTOP), and starts no attempt; so does the one that comes after it meanwhile."""
        nodemanager = self._there().nodemanager
        nodemanager.held = True
        signals.freeze(nodemanager.itself())
        try:
            yield
        finally:
            nodemanager.held = False
            signals.thaw(nodemanager.itself())

    def end(self, own: RunResources) -> None:
        """Have YARN end the application, and return when it says that it is over and NodeManager starts no container of
        it any more; silent if there is none, or if ResourceManager has died. Its processes are ended by the caller
        for that. Raises StackError."""
        submitted = self._submitted.get(own.run_id)
        if submitted is None:
            return
        self._up().end(submitted.submission.process)
        if application := submitted.submission.application:
            with undisturbed():
                self._over(application)

    def _over(self, application: str) -> None:
        yarn = self._there()

        def over() -> bool | Waiting:
            try:
                yarn.manager.end(application)
            except StackError as failure:
                # Without ResourceManager no attempt is started again either; one that a fault has killed comes back.
                return yarn.resourcemanager.gone or Waiting(str(failure))
            if not yarn.manager.over(application):
                return Waiting("it has the request, and has not ended it")
            # A container that was about to be started is no process yet. One that stands still starts none.
            idle = yarn.nodemanager.gone or yarn.nodemanager.held or yarn.node.done(application)
            return idle or Waiting("it is over, and NodeManager has not ended its containers")

        try:
            until(f"YARN to end {application}", over, within_s=END_WITHIN_S, every_s=0.2)
        except WaitError as failure:
            raise StackError(f"{failure}; it may start the driver again") from failure

    def changes(self, own: RunResources, pipeline: Pipeline) -> list[Change]:
        """Return what Spark is given besides the pipeline's own settings and variables, for run.json. It holds no
        secret."""
        return table(own, pipeline, self._there(), self._machine())

    def executors(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """Return the executor processes of this run's applications, oldest first."""
        found = contained(driver_process.mark(own), attempt=attempt)
        return [each.process for each in found if runs(each.process, EXECUTOR)]

    def processes(self, own: RunResources, *, attempt: int | None = None) -> list[LocalProcess]:
        """Return every living process of this run's pipeline; YARN's own shells, which touch nothing of it, are
        none."""
        mark = driver_process.mark(own)
        if attempt is not None:
            return [each.process for each in contained(mark, attempt=attempt)]
        submitted = self._submitted.get(own.run_id)
        pid = submitted.submission.process.pid if submitted is not None else None
        return [*(each.process for each in contained(mark)), *(each for each in carrying(mark) if each.pid == pid)]

    def release(self, own: RunResources, *, keep: bool = False) -> None:
        """Drop what `provide` made; `keep` leaves it until the stack goes down."""
        try:
            self.end(own)
        finally:
            super().release(own, keep=keep)
        if not keep:
            self._submitted.pop(own.run_id, None)

    def describe(self, components: Collection[str] = ()) -> dict[str, Any]:
        """Return versions and settings, for run.json. Holds no secret."""
        yarn = {"settings": {**settings.DAEMONS, **settings.QUEUES}}
        return self._versions(components, {}, options=f"--stack {self.name}", yarn=yarn)

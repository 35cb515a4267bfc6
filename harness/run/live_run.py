"""One run while it lives: what was started for it, in which order, and how each part ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from time import monotonic

from harness.checkpoint import Offsets, caught_up, count
from harness.component import SetsUp, able
from harness.context import CountedSink, RunContext
from harness.errors import SetupError, WaitError
from harness.fields.placeholders import filled
from harness.history import History, PackagesNamed, Phase, ShuffleCrowded, SinkMissing, SystemChanged
from harness.resources import RunResources
from harness.run import misfits, preflight
from harness.run.feed import PATIENCE_S, Feeder, Patience, alone, enough, portions
from harness.run.last_words import last_error, last_words, tail
from harness.run.progress.batch_times import BatchTimes
from harness.run.progress.commit_gaps import Rhythm
from harness.run.progress.observer import Observer
from harness.run.progress.positions import Positions
from harness.run.progress.remote_checkpoint import mirror, requests
from harness.run.progress.reported import Progress, progress
from harness.run.progress.stall_detector import StallDetector
from harness.run.schedule import Schedule
from harness.run.sink_commits import sink_commits
from harness.run.snapshots import Parts, Snapshots
from harness.run.supervisor import Death, Supervisor
from harness.run_folder.ledger import Attempts
from harness.run_folder.store import RunFolder, digest
from harness.scenario import Pipeline, Scenario
from harness.scenario.progress import DSTREAMS
from harness.sinks import countable, counted
from harness.sinks.base import HoldsWriter
from harness.sinks.reading import opened, since
from harness.sources import SOURCES
from harness.sources.base import BeginsWithInput, TellsBeginning
from harness.sources.producer import Producer
from harness.spark.settings import MANAGER, SETTING
from harness.stack import RestartsDrivers, Stack
from harness.stacks.needed_parts import code, only_checkpoint, parts
from harness.triggers import TRIGGERS
from harness.triggers.base import Trait, has
from harness.wait import Deadline, Waiting, until
from harness.workloads.base import Workload

BEGINS_S, COMMITS_S = 180.0, 240.0
"""How long the query may take to begin, and then to commit its first batch: on a busy machine a minute."""
SUBMITTED_S = 180.0
"""What a cluster manager takes of it that runs the driver itself: another JVM, and two containers."""
ENDS_AT_ONCE = 2
"""How often a program that may wait for input ends before a query of it began, however few restarts there are."""
UNREAD_S = 60.0
"""How long a query may be the program's newest one, while none of them reads the run's source."""
LATE_S = 1.0
"""How often the harness checks for a sink that is not there yet."""


class Live:
    """The parts of one run. `close` ends whatever is left, always."""

    def __init__(
        self,
        scenario: Scenario,
        stack: Stack,
        folder: RunFolder,
        history: History,
        *,
        run_id: str,
        root: Path,
        seed: int = 0,
        portions: Sequence[int] = (),
    ) -> None:
        self.scenario = scenario
        self.stack = stack
        self.folder = folder
        self.history = history
        self.root = root
        self.seed = seed
        self._portions = portions
        self.rhythm = Rhythm()
        history.listen(self.rhythm.heard)
        self.own: RunResources = stack.provide(run_id, parts(scenario), root=root.absolute())
        self._exit = ExitStack()
        self._exit.callback(stack.release, self.own)
        self.since: dict[str, int] = {}
        """By server a mark in time from before the pipeline's start."""
        self.start_s = 0.0
        """How long the first attempt took until it was at work, as far as can be seen."""
        more = (scenario.pipeline.interval_s or 0.0) + (SUBMITTED_S if isinstance(stack, RestartsDrivers) else 0.0)
        self._begins_s, self._commits_s = (min(each, scenario.timeout_s) + more for each in (BEGINS_S, COMMITS_S))
        self.deadline = Deadline(scenario.timeout_s + self._begins_s + self._commits_s)

    def _longest_s(self) -> float:
        """Without a commit: a restart may take as long as the first start did."""
        return max(self.start_s, self.rhythm.gap_s())

    def close(self) -> None:
        """End the pipeline and drop what the run was given."""
        self._exit.close()

    def perform(self, workload: Workload) -> None:
        """From empty resources to the end of the schedule."""
        self._phase("set up")
        self._set_up()
        self.since = since(self.scenario.sinks, self.own.parts)
        self._checked = preflight.check(self.scenario, workload, self.own)
        self.tables = [*self._tables()] if not self.scenario.schedule else []
        self._start(workload)
        self._phase("warm-up")
        packages = self._conf.get(misfits.PACKAGES, "")
        if packages:
            self.history.write(PackagesNamed(packages=packages))
        self._warm_up()
        log = self.folder.logs / "driver-1.log"
        if packages and (took_s := misfits.packages_s(log)) is not None:
            self.history.write(PackagesNamed(packages=packages, seconds=took_s))
        self._check_sinks()
        self.deadline = Deadline(self.scenario.timeout_s)
        self.stalls = StallDetector(interval_s=self.scenario.pipeline.interval_s, longest_s=self._longest_s)
        self._phase("feeding")
        self._fed(workload)

    def _phase(self, name: str) -> None:
        self.history.write(Phase(name=name))

    def _set_up(self) -> None:
        for label, text in self.scenario.setup.items():
            found: SetsUp = able(label, SetsUp, "takes no setup")
            found.set_up(self.own.part(label), filled(text, self.own.placeholders()))

    def _start(self, workload: Workload) -> None:
        own, history = self.own, self.history
        self.source = SOURCES[self.scenario.input.source].open(self.scenario.input, own.parts)
        self._mirror = mirror(self.scenario, own)
        self.observer = self._observer()
        own = self.own = replace(own, agent=self.observer.reports_to)
        self._exit.callback(self.observer.close)
        self.progress: Progress = progress(self.scenario, own, self.observer)
        self._exit.callback(self.progress.close)
        self.positions = Positions(self.progress.committed, history)
        self._exit.callback(self.positions.close)
        self.counted = [*self._counted()]
        self.attempts = Attempts(self.folder.attempts)
        self._exit.callback(self.attempts.close)
        self.producer = Producer(workload, self.attempts, self.source.sender())
        self._exit.callback(self.producer.close)
        last = alone(workload, self.scenario.pipeline)
        self.feeder = Feeder(
            self.producer,
            self.progress,
            history,
            rate_per_s=self.scenario.input.rate_per_s,
            sizes=portions(workload.count - last.records, self.seed, enough(self.scenario.schedule)),
            finished=lambda: self.schedule.done,
            exact=self._portions,
            patience=Patience(PATIENCE_S + (self.scenario.pipeline.interval_s or 0.0), self._begins_s),
            at_work=self.has_progress,
            alone=last,
        )
        self._exit.callback(self.feeder.stop)
        pipeline = resolved(self.scenario.pipeline, own, self.root)
        program = {"entry": pipeline.entry, "sha256": digest(Path(pipeline.entry))}
        readers = [{"file": str(path), "sha256": digest(path)} for path in code(self.scenario)]
        changes = self.stack.changes(own, pipeline)
        self._conf = {**{each.name: each.value for each in changes if each.where == SETTING}, **pipeline.conf}
        self.folder.save(0, run={"program": program, "readers": readers, "changes": [*map(asdict, changes)]})
        self.supervisor = Supervisor(self.stack, own, pipeline, history=history, logs=self.folder.logs)
        self._exit.callback(self.supervisor.stop)
        self.snapshots = Snapshots(self._snapshot_parts())
        self._exit.callback(self.snapshots.close)
        self.schedule = Schedule(self.scenario.schedule, self._context())
        self._exit.callback(self.schedule.stop)

    def _observer(self) -> Observer:
        folder, source = self.own.folder, self.source
        file = Path(self.own.agent) if self.own.agent else None
        if self._by_time:
            return BatchTimes(folder, source, self.history, agent_file=file)
        begins = source.begins if isinstance(source, TellsBeginning) else None
        return Observer(folder, source.offsets, self.history, begins=begins, mirror=self._mirror, agent_file=file)

    @property
    def _fed_first(self) -> bool:
        """Return whether records are sent before a query began."""
        return isinstance(self.source, BeginsWithInput) and self.source.begins_with_input and not self._by_time

    @property
    def _by_time(self) -> bool:
        """Return whether it is a DStreams program. It passes over files that were there before it."""
        return self.scenario.pipeline.progress == DSTREAMS

    def _tables(self) -> Iterator[str]:
        """Yield what the sinks are called whose rows can be counted, before the pipeline is there."""
        for place, name in countable(self.scenario.sinks).items():
            found = opened(self.scenario.sinks[place], self.own.parts)
            if isinstance(found, HoldsWriter) and found.is_table():
                yield name

    def _counted(self) -> Iterator[CountedSink]:
        sinks, whens = self.scenario.sinks, [step.when for step in self.scenario.schedule]
        names, counting = countable(sinks), [when for when in whens if has(TRIGGERS[when.kind], Trait.COUNTS_ROWS)]
        for place in sorted({place for when in counting if (place := counted(sinks, when.sink)) is not None}):
            sink = sinks[place]
            found = opened(sink, self.own.parts)
            if isinstance(found, HoldsWriter):
                rows = found.row_breakpoint()
                self._exit.callback(rows.close)
                self.history.write(SystemChanged(table=names[place], changes="adds a row trigger to the sink's table"))
                yield CountedSink(place=place, name=names[place], feeds=sink.query, rows=rows)

    def _context(self) -> RunContext:
        return RunContext(
            stack=self.stack,
            own=self.own,
            supervisor=self.supervisor,
            observer=self.observer,
            history=self.history,
            sent=lambda: self.producer.sent,
            in_flight=self._in_flight,
            hopeless=self._hopeless,
            has_progress=self.has_progress,
            snapshots=self.snapshots,
            commits=sink_commits(self.scenario, self.own),
            requests=requests(self.scenario, self.own),
            counted=self.counted,
            only_checkpoint=only_checkpoint(self.scenario),
        )

    def _snapshot_parts(self) -> Parts:
        by_hand = self.progress.kind != "checkpoint"
        return Parts(
            folder=self.folder.path,
            sinks=self.scenario.sinks,
            own=self.own,
            supervisor=self.supervisor,
            observer=self.observer,
            history=self.history,
            counted=self.counted,
            sent=lambda: self.producer.reached,
            position=self.progress.committed if by_hand else lambda: None,
            moved=self.positions.moved if by_hand else lambda attempt: False,
            start_s=lambda: self.start_s,
            saving=self.progress.saving,
        )

    def _in_flight(self) -> str:
        return self.progress.in_flight(self.producer.acknowledged)

    def observe(self, *, committed: int, outstanding: bool) -> None:
        """Pass on to the stall detector how many records the pipeline has committed, and whether there are more."""
        if self.progress.kind != "checkpoint":
            self.rhythm.position_read(committed, self.observer.attempt, self.history.elapsed_s())
        faults, alive = len(self.schedule.outcomes), self.supervisor.alive
        self.stalls.observe(committed=committed, outstanding=outstanding, faults=faults, alive=alive)

    def has_progress(self, *, all_queries: bool = False) -> bool:
        """Return whether the newest attempt of the driver has done something, and is there; with `all_queries`, whether
        each of its queries has."""
        if not self.supervisor.alive:
            return False
        if self.progress.kind == "checkpoint":
            return self.observer.all_queries_active() if all_queries else self.observer.has_progress()
        return self.progress.committed() != self._found

    def _hopeless(self) -> str:
        if self.supervisor.gave_up:
            return self.supervisor.gave_up
        if self.deadline.over():
            return f"the run was out of time ({self.deadline.seconds:g} s)"
        if self.done():
            return f"the pipeline had done all its input by batch {self.observer.newest_batch()}"
        return ""

    @cached_property
    def ends(self) -> Offsets:
        """End offsets of the source, once everything was sent."""
        return self.source.ends()

    def done(self) -> bool:
        """Return True once all was sent and the pipeline has committed it."""
        return self.feeder.done and caught_up(self.progress.committed(), self.ends)

    def healthy(self) -> None:
        """Raise if a part of the harness or of the stack failed that no fault struck."""
        for part in (self.observer, self.positions, self.feeder, self.schedule, self.supervisor):
            part.healthy()
        self.stack.health()

    def _warm_up(self) -> None:
        """The pipeline commits something, or a fault was there first; anything else is an error of the set-up."""
        began = monotonic()
        if self.progress.kind != "checkpoint":
            self.positions.start()
        fed = self._fed_first
        self.supervisor.start(self.scenario.restart, self._launched, ended=self._ended)
        try:
            if fed:
                self.feeder.start()
            if self.progress.kind == "checkpoint":
                until("the pipeline's query to begin", self._begun, within_s=self._begins_s)
            self.start_s = monotonic() - began
            self.schedule.start()
            if not fed:
                self.feeder.start()
            until("the pipeline without faults to commit its first batch", self._committed, within_s=self._commits_s)
            if self.progress.kind != "checkpoint":
                self.start_s = monotonic() - began
        except WaitError as failure:
            raise SetupError(f"{failure}.{self._misfits()}\n{self._log()}") from failure

    def _check_sinks(self) -> None:
        """Write into the history what the first committed batch shows of the sinks, unless a fault was there first."""
        if self.schedule.acted or self.schedule.injecting:
            return
        for name, why in preflight.first(self.scenario, self.own, self._checked):
            self.history.write(SinkMissing(sink=name, why=why))
        for query, partitions in preflight.crowded(self.observer.stateful(), self._conf).items():
            cores = self._conf["spark.cores.max"]
            self.history.write(ShuffleCrowded(query=query, partitions=partitions, cores=cores))

    def _launched(self, number: int) -> None:
        if number > 1:
            self.observer.catch_up()
        self.observer.attempt = number
        if number > 1:
            self.snapshots.launched()
        # Where a pipeline without a checkpoint goes on from: once it has moved, this attempt is at work.
        self._found = {} if self.progress.kind == "checkpoint" else self.positions.launched(number)

    def _ended(self, number: int) -> None:
        """An attempt has ended, no step did it, and the next one has not been started: after the first fault the sinks
        are read. While a step is under way it reads them itself, or has their server away."""
        if self.schedule.acted and not self.schedule.injecting:
            self.snapshots.ended(len(self.schedule.outcomes), number)

    def _begun(self) -> bool | Waiting:
        self._fault_free()
        self._fits()
        if self.observer.started():
            return True
        if len(ended := self._clean_ends()) > self._ends_at_once:
            often = f" {len(ended)} times" if len(ended) > 1 else ""
            saw = f"the pipeline ended{often} with status 0, and began no query that has a checkpoint"
            raise SetupError(f"{saw}; a query lives only while its program waits\n{tail(ended[-1].log)}")
        slow = "the driver is alive; " if self.supervisor.alive else ""
        cure = "" if self.observer.unread_s() else "; a pipeline that manages its own offsets says `progress`"
        if self._mirror is not None:
            cure = f"{cure}; a program that sets {MANAGER} says so in `conf`"
        return Waiting(f"{slow}no checkpoint{cure}")

    def _clean_ends(self) -> list[Death]:
        """Return the attempts that ended and of which all was recorded that they did: the next one was started."""
        return [each for each in self.supervisor.deaths if each.status == 0 and each.number < self.observer.attempt]

    @property
    def _ends_at_once(self) -> int:
        """How often a program may end by itself before a query of it began: not at all where it gets no input before,
        which it could wait for."""
        waits = self._fed_first or self._by_time
        return max(ENDS_AT_ONCE, self.scenario.restart.max_restarts) if waits else 0

    def _committed(self) -> bool | Waiting:
        self._fault_free()
        if self.progress.kind == "checkpoint" and not self.schedule.acted:
            self._fits()
        if self.schedule.acted or count(self.progress.committed()) > 0:
            return True
        return Waiting(f"{self.producer.sent} records sent, none committed")

    def _fits(self) -> None:
        """Raise SetupError for a program that does not wait for its queries. Also for one whose queries read something
        else, or keep a checkpoint that stays for the next run."""
        if (ended := self._clean_ends()) and self.observer.cut_off(ended[0].number):
            saw = "the pipeline ended with status 0 while its query ran, and no batch was committed"
            raise SetupError(f"{saw}. Have the program wait for the query: `awaitTermination()`\n{tail(ended[0].log)}")
        if (kept := self.observer.outside()) is not None:
            raise SetupError(misfits.kept_elsewhere(kept, self._shown()))
        if (silent_s := self.observer.unread_s()) > UNREAD_S + (self.scenario.pipeline.interval_s or 0.0):
            saw = f"a query of the pipeline began {silent_s:.0f} s ago, and none reads the run's source"
            raise SetupError(f"{saw}.{self._misfits()}\n{self._log()}")

    def _misfits(self, log: Path | None = None) -> str:
        """Return sentences on what does not fit, by the log of the newest attempt, or by this one."""
        return misfits.misfits(self._shown(log)) if self.progress.kind == "checkpoint" else ""

    def _shown(self, log: Path | None = None) -> misfits.Shown:
        """Return what is known of the program by now."""
        own, driver = self.own, self.supervisor.driver
        kept = [own.folder, own.folder.resolve(), own.checkpoint]
        topic = own.placeholders().get("topic")
        return misfits.Shown(
            entry=self.root / self.scenario.pipeline.entry,
            name=self.scenario.pipeline.entry,
            log=log or (driver.log if driver else None),
            within=[*map(str, kept), *([self._mirror.remote.url] if self._mirror is not None else [])],
            source=f"the run's topic {topic} (`{{topic}}`)" if topic else f"the source {self.scenario.input.source}",
            begun=bool(self.observer.all()),
            other=self.observer.other(),
            absent=preflight.absent(self.scenario, self.own, self._checked),
        )

    def _fault_free(self) -> None:
        self.healthy()
        failed = [death for death in self.supervisor.deaths if death.status != 0]
        if failed and not self.schedule.acted:
            saw = f"the pipeline ended with status {failed[0].status} before any fault was injected"
            error = last_error(failed[0].log).rstrip(".")
            raise SetupError(f"{saw}: {error}.{self._misfits(failed[0].log)}\n{last_words(failed[0].driver)}")

    def _log(self) -> str:
        driver = self.supervisor.driver
        return last_words(driver) if driver else "(it never started)"

    def _fed(self, workload: Workload) -> None:
        """Wait until all is sent and each step has an outcome, or nothing can come any more, or the time is up."""
        rest = Deadline(0.0)

        def finished() -> bool | Waiting:
            nonlocal rest
            self._fault_free()
            if rest.over() and not self.schedule.injecting:
                preflight.late(self.scenario, workload, self.own, self._checked)
                rest = Deadline(LATE_S)
            committed = count(self.progress.committed())
            self.observe(committed=committed, outstanding=committed < self.producer.acknowledged)
            if self.schedule.done and (self.feeder.done or self.supervisor.gave_up or self.deadline.over()):
                return True
            return Waiting(
                f"{self.producer.sent} of {self.producer.total} sent, {len(self.schedule.outcomes)} steps done"
            )

        until("the input and the schedule", finished, within_s=self.deadline.left_s() + 60.0)


def resolved(pipeline: Pipeline, own: RunResources, root: Path) -> Pipeline:
    """Return the pipeline with its placeholders filled in and its entry point found."""
    places = own.placeholders()
    entry = root / filled(pipeline.entry, places)
    if not entry.is_file():
        raise SetupError(f"asked for the pipeline {entry}; there is no such file")
    return replace(
        pipeline,
        entry=str(entry),
        args=tuple(filled(word, places) for word in pipeline.args),
        env={name: filled(word, places) for name, word in pipeline.env.items()},
        conf={name: filled(word, places) for name, word in pipeline.conf.items()},
    )

"""Why a run is inconclusive that did not catch up: what was left, what took the time, and what to change.

Pure. Each sentence rests on the run folder: its history, the committed offsets, the source as read back,
and the settings. No verdict depends on what stands here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from statistics import median
from typing import Any

from harness.history import Line, RestartsEnded, Sent
from harness.report import claims
from harness.report.causes.sentences import listed
from harness.report.escape import plural, visible
from harness.report.timeline.counts import Counts
from harness.report.timeline.curves import Curve, curves, value
from harness.report.timeline.from_history import Attempt, Happened, Work, happened
from harness.run_folder import command
from harness.scenario import Scenario, Verdict, Word
from harness.snapshot import Progressed

MOST = 8
SHUFFLE = "spark.sql.shuffle.partitions"
MOST_CHARACTERS = 500
"""So many characters of an attempt's diagnostics are shown."""
SHARE = 0.1
"""A restart that took a smaller share of the time is not shown."""


@dataclass(frozen=True, kw_only=True)
class NotCaughtUp:
    """Why a run did not catch up. `summary` are sentences, of which the first says what was left; `facts` are (name,
    text); `cures` are what helps, the likeliest first."""

    summary: list[str]
    facts: list[tuple[str, str]]
    cures: list[str]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The parts of a run folder that this is made from. `planned` is how many records were to be sent, None if that is
    not known."""

    verdict: Verdict
    run: Mapping[str, Any]
    plan: Scenario
    progressed: Progressed
    counts: Counts | None
    past: Happened
    starved: Mapping[int, int] = field(default_factory=dict)
    """By attempt, how often its log says that Spark had nothing to run it on."""
    planned: int | None = None
    begin: float = 0.0
    """When the time began to run: at the end of the warm-up."""
    end: float = 0.0
    """When the sinks began to be read."""
    gave_up: bool = False
    """The driver had been started as often as it may, or ended well where a program that did is not started again."""
    ended_well: bool = False

    @property
    def committed(self) -> int:
        """How many records of the source were committed."""
        return self.counts.before(self.progressed.committed) if self.counts else 0

    @cached_property
    def committed_over_time(self) -> Curve:
        """How many records had been committed when; empty where that is not known."""
        return curves(self.past, self.progressed, self.counts, sink_rows=None).committed

    @property
    def timeout_s(self) -> float:
        """The time that the scenario gave the run."""
        return self.plan.timeout_s

    @property
    def over(self) -> bool:
        """Return whether the time ended the run."""
        return self.timeout_s > 0 and self.end - self.begin >= self.timeout_s - 1.0


def ran(verdict: Verdict, history: Sequence[Line], **parts: Any) -> Ran:
    """Return what is needed of a run: its verdict, its history, and `run`, `plan`, `progressed`, `counts`."""
    past = happened(history, verdict.steps)
    times = {phase.name: phase.begin for phase in past.phases}
    planned = next((line.event.total for line in reversed(history) if isinstance(line.event, Sent)), None)
    begin, end = times.get("feeding", 0.0), times.get("reading", past.end)
    given_up = [line.event for line in history if isinstance(line.event, RestartsEnded)]
    parts |= {"gave_up": bool(given_up), "ended_well": any(event.well for event in given_up)}
    return Ran(verdict=verdict, past=past, planned=planned, begin=begin, end=end, **parts)


def not_caught_up(run: Ran) -> NotCaughtUp | None:
    """Return what is known of a run that did not catch up; None if the run is not inconclusive, or caught up."""
    if run.verdict.word is not Word.INCONCLUSIVE or run.progressed.caught_up:
        return None
    slow = [*_restarts(run), *_batches(run), *_shuffles(run)]
    return NotCaughtUp(summary=[*_left(run), *slow], facts=list(_facts(run)), cures=list(_cures(run)))


def _left(run: Ran) -> Iterator[str]:
    total = run.counts.total if run.counts else None
    if total is not None and total > run.committed:
        left = f"{total - run.committed:,} of {plural(total, 'record')} in the source were not committed"
        yield f"{left} when the sinks were last read."
        yield f"Rows are expected of the {run.committed:,} committed records alone; the others are not judged."
        if not run.verdict.findings and run.verdict.self_tests:
            yield "Of the committed records no row was found missing, doubled or wrong."
    elif total is not None:
        yield f"All {plural(total, 'record')} read back from the source were committed; the reasons say what was open."
    if run.ended_well:
        yield "The program ended well, and there a program that did is not started again."
    elif run.gave_up:
        yield "The driver died again and again by itself, and the harness no longer restarted it."
        # One that no fault ended: what a cluster manager says of a kill is nothing new.
        alone = [each for each in run.past.attempts if not each.scheduled]
        yield from (
            f"The error of attempt {a.number}: {visible(a.error, MOST_CHARACTERS)}" for a in alone[-1:] if a.error
        )
        diagnosed = [each for each in alone if each.diagnostics]
        yield from (
            f"Diagnostics of attempt {each.number}: {visible(each.diagnostics, MOST_CHARACTERS)}"
            for each in diagnosed[-1:]
        )
    elif run.over:
        yield f"The time was up: `timeout` gave {run.timeout_s:g} s after the warm-up."
    sent = run.past.sent[-1][1] if run.past.sent else None
    if sent is not None and run.planned is not None and sent < run.planned:
        why = "" if run.plan.input.rate_per_s else ": it sends more as the pipeline plans more"
        yield f"The harness had not yet sent {run.planned - sent:,} of {plural(run.planned, 'record')}{why}."


def _restarts(run: Ran) -> Iterator[str]:
    """Yield how long each attempt after the first took until it committed, and why if its log shows it."""
    for number, took, done in _slow(run):
        of = f"{took:.0f} of these {run.timeout_s:g} s" if run.over else f"{took:.0f} s"
        yield (
            f"Attempt {number} of the driver took {of} from its launch to its first commit."
            if done
            else f"Attempt {number} of the driver committed nothing in the {took:.0f} s after its launch."
        )
        if times := run.starved.get(number):
            often = "once" if times == 1 else f"{times:,} times"
            yield f"It had no executor yet: logs/driver-{number}.log says {often} that no resources were accepted."


def _slow(run: Ran) -> Iterator[tuple[int, float, bool]]:
    """Yield each restart that took long: its number, for how long, and whether it committed at last."""
    for attempt in (each for each in run.past.attempts if each.number > 1):
        first, last = _first_commit(run, attempt), min(attempt.end or run.end, run.end)
        took = (last if first is None else first) - attempt.begin
        if took >= SHARE * run.timeout_s:
            yield attempt.number, took, first is not None


def _first_commit(run: Ran, attempt: Attempt) -> float | None:
    """When an attempt first committed, in Spark's log or in the pipeline's own offsets. An attempt's first entry is
    where it found these."""
    works = [work.committed for work in run.past.works if work.attempt == attempt.number]
    moved = [each.at_s for each in run.progressed.positions if each.attempt == attempt.number]
    return min((each for each in (*works, *moved[1:]) if each is not None), default=None)


def _batches(run: Ran) -> Iterator[str]:
    """Yield how long a batch took, of those that one attempt planned and committed."""
    works = run.past.works
    took = [w.committed - w.planned for w in works if w.planned is not None and w.committed is not None]
    if took:
        of = f"median of {len(took):,}; the longest {max(took):.1f} s"
        yield f"A batch took {median(took):.1f} s from its plan to its commit ({of})."
    for work in [each for each in works if _open(run, each)][:MOST]:
        of = f" of {visible(work.query, 40)}" if len(run.past.queries) > 1 else ""
        began = work.planned if work.planned is not None else work.in_sink or run.end
        if not took or run.end - began > median(took):
            late = f"{run.end - began:.1f} s after its plan"
            yield f"Batch {work.batch}{of} was not committed when the sinks were read, {late}."


def _open(run: Ran, work: Work) -> bool:
    last = max((each.number for each in run.past.attempts), default=0)
    began = work.planned if work.planned is not None else work.in_sink
    done = work.committed is not None and work.committed <= run.end
    return work.attempt == last and not done and work.ended is None and began is not None and began < run.end


def _stateful(run: Ran) -> list[tuple[str, int]]:
    """Return queries that keep state, with their shuffle partitions, where these are more than the cores."""
    stored = claims.mappings(claims.mapping(run.run.get("outcome")).get("stateful"))
    known = [(str(each.get("checkpoint", "")), each.get("shuffle_partitions")) for each in stored]
    cores = _cores(run)
    return [(name, count) for name, count in known if isinstance(count, int) and cores and count > cores]


def _cores(run: Ran) -> int | None:
    given = str(claims.mapping(run.run.get("spark")).get("spark.cores.max", ""))
    return int(given) if given.isascii() and given.isdigit() else None


def _shuffles(run: Ran) -> Iterator[str]:
    for name, count in _stateful(run)[:MOST]:
        yield (
            f"The query {visible(name, 40)} keeps state in {count:,} shuffle partitions: "
            f"each batch runs {count:,} tasks or more on {plural(_cores(run) or 0, 'core')}."
        )


def _facts(run: Ran) -> Iterator[tuple[str, str]]:
    if run.counts:
        left = [
            (partition, run.progressed.committed.get(partition, 0), end)
            for partition, end in sorted(run.progressed.end.items())
        ]
        named = [
            f"partition {partition}, offsets {first} to {end - 1}" for partition, first, end in left if end > first
        ]
        more = f"; and {len(named) - MOST} more partitions" if len(named) > MOST else ""
        if named:
            yield "Records not committed", "; ".join(named[:MOST]) + more


def _cures(run: Ran) -> Iterator[str]:
    if counts := _stateful(run):
        here = listed(sorted({f"{count:,}" for _, count in counts}))
        yield f"Lower `{SHUFFLE}` (here {here}) to the number of cores ({_cores(run)}), under `pipeline.conf`."
    if run.ended_well:
        yield "Take a stack that starts the program again, or have it end with another status while it has work left."
        return
    if run.gave_up:
        yield "Mend what ends the driver: the last lines of its log say what it was."
        return
    starved = [took for number, took, _ in _slow(run) if run.starved.get(number)]
    if run.over and starved:
        # With fewer records it would have waited as long.
        took = f"{sum(starved):.0f} s or more, as long as the restart took"
        yield f"Raise `timeout` (here {run.timeout_s:g} s) by {took}."
        return
    if run.over:
        yield from _sizes(run)


def _sizes(run: Ran) -> Iterator[str]:
    """More time or fewer records, by the pace of the newest attempt where it shows."""
    records, pace = run.plan.input.records, _pace(run)
    needed_s = _needed_s(run, records, pace) if pace and records else 0.0
    if pace and needed_s > run.timeout_s:
        yield f"Raise `timeout` (here {run.timeout_s:g} s) to {needed_s:,.0f} s or more."
        own = f"the start of attempt {pace.attempt} included, which committed {pace.per_s:.0f} a second"
        yield f"So long do {records:,} records take, {own}."
    else:
        yield f"Raise `timeout` (here {run.timeout_s:g} s)."
    if records:
        done = _in_time(run)
        four = f"four fifths of what was committed in {run.timeout_s:g} s"
        few = f" to {_fewer(done):,}: {four}" if 10 <= done < records else ""
        yield f"Or feed less: lower `input.records` (here {records:,}){few}."
    if typed := command.typed(run.run):
        yield f"Then run the changed scenario: `{visible(typed, 200)}`. `replay` keeps the stored settings."


def _in_time(run: Ran) -> int:
    """Return how many records had been committed when the time was up; what was committed while the sinks were read is
    not among them."""
    curve = run.committed_over_time
    return min(run.committed, value(curve, run.begin + run.timeout_s)) if curve else run.committed


def _fewer(done: int) -> int:
    """Four fifths, rounded down to two digits: the next run may be slower."""
    fewer = done * 4 // 5
    unit = _unit(fewer)
    return fewer // unit * unit


def _unit(number: int) -> int:
    """Return what the second digit of a number counts."""
    return int(10 ** max(0, len(str(number)) - 2))


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Records that an attempt committed in a second; `since_s` when the history has its first commit, `count` by
    then."""

    attempt: int
    since_s: float
    count: int
    per_s: float


def _pace(run: Ran) -> Pace | None:
    """Of the newest attempt; None where fewer than three of its commits show."""
    if not run.past.attempts:
        return None
    newest = run.past.attempts[-1]
    own = [(seconds, count) for seconds, count in run.committed_over_time if newest.begin <= seconds <= run.end]
    if len(own) < 3 or own[-1][0] <= own[0][0]:
        return None
    (since_s, count), (last_s, last) = own[0], own[-1]
    return Pace(attempt=newest.number, since_s=since_s, count=count, per_s=(last - count) / (last_s - since_s))


def _needed_s(run: Ran, records: int, pace: Pace) -> float:
    """Return the `timeout` in which this many records would have been committed, rounded up to two digits."""
    needed = pace.since_s - run.begin + (records - pace.count) / pace.per_s
    unit = _unit(round(needed))
    return ceil(needed / unit) * unit

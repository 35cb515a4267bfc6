"""What a run claims and what it does not: the sentences that a reviewer holds us to, all in one place.

Pure. "Held" is never "proved": the sentences say under what, on what, and with which faults.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from harness.history import Line, SystemChanged
from harness.report import exposures
from harness.report.causes.sentences import sentences
from harness.report.escape import plural
from harness.run_folder import command
from harness.scenario import Guarantee, Input, Pipeline, Scenario, Step, StepOutcome, Verdict, Word
from harness.stacks.kind import AtAddresses
from harness.stacks.registry import STACKS

UNPLANNED = Scenario(
    name="a run without a name", pipeline=Pipeline(entry=""), input=Input(workload="", source=""), timeout_s=0.0
)
"""What is known of a run that has no plan."""
GUARANTEES = {
    "exactly-once": "Every record of the source takes effect in the sink exactly once.",
    "at-least-once": "Every record of the source takes effect in the sink at least once.",
    "at-most-once": "No record of the source takes effect in the sink more than once.",
}
SHOWN = {
    "exactly-once": "Each row that `expected` makes of them is in its sink exactly once, equal cell for cell. The sink "
    "holds nothing else.",
    "at-least-once": "Each row that `expected` makes of them is in its sink, equal cell for cell. The sink holds "
    "nothing that was never sent; it may hold copies.",
    "at-most-once": "Nothing in the sink took effect twice, differs from what was sent, or was never sent. Some of it "
    "may be missing.",
}
LIMITS = (
    "Loss of power or of a machine: processes were killed, the operating system and its disks were not. Spark's "
    "checkpoint on a local disk and a single broker's log are not flushed at every step.",
    "Other crash points: those that were not reached, and the same faults in another order or all at once.",
    "Other amounts: more records, larger batches, more partitions, longer runs.",
    "Other versions and settings than those listed below.",
    "Other inputs and other code paths of the same program.",
)
FIGURES = {"records": "records in the source", "expected_rows": "rows expected", "sink_rows": "rows in the sink"}
COUNTS = {
    "records": "Records in the source, as it was read back",
    "expected_rows": "Rows that the sink should hold, of records that the pipeline committed",
    "sink_rows": "Rows that the sink holds",
    "acknowledged": "Sends that were acknowledged",
    "failed": "Sends refused",
    "unseen": "Rows not in the sink, of records that the pipeline had not committed yet",
    "unknown": "Sends whose answer is unknown",
}


def about(plan: Scenario, steps: Sequence[StepOutcome] = ()) -> list[tuple[str, str]]:
    """Return what was tested, a line each: what is claimed of the pipeline, its program, its sinks, the faults, and why
    its author wrote the scenario. Only the first is a claim. `steps` say where a fault struck another batch than
    planned."""
    sinks = [f"{sink.kind} {sink.target}" for sink in plan.sinks]
    known = [*steps, *[None] * len(plan.schedule)]
    faults = [_step(step, outcome) for step, outcome in zip(plan.schedule, known, strict=False)]
    out = [
        ("Claim", GUARANTEES[plan.guarantee] if plan.pipeline.entry else ""),
        ("Program", plan.pipeline.entry),
        ("Spark", spark(plan)),
        ("Sink" if len(sinks) == 1 else "Sinks", "; ".join(exposures.few(sinks, 6))),
        ("Fault" if len(faults) == 1 else "Faults", "; ".join(exposures.few(faults, 6))),
        ("The scenario's own words", " ".join(sentences(plan.why)) or plan.why),
    ]
    return [(name, text) for name, text in out if text]


def _step(step: Step, outcome: StepOutcome | None) -> str:
    when = step.when
    batch = "" if when.batch is None else f", batch {when.batch}"
    query = f" of {when.query}" if when.query else ""
    struck = "" if outcome is None or outcome.batch in (None, when.batch) else f"; struck at batch {outcome.batch}"
    return f"{step.name} ({when.place}{batch}{query}{struck})"


def details(plan: Scenario) -> list[tuple[str, str]]:
    """Of which program, into which sinks, with which `expected`, fed with what."""
    pipeline, fed = plan.pipeline, plan.input
    claimed = str(plan.guarantee) if pipeline.entry else ""
    out = [("Guarantee", claimed), ("Pipeline", " ".join([pipeline.entry, *pipeline.args]))]
    for number, sink in enumerate(plan.sinks, start=1):
        out.append((f"Sink {number}", f"{sink.kind}: {sink.target}"))
        out.append((f"Rows expected in sink {number}", sink.expected or ""))
        out.append((f"Key of sink {number}", ", ".join(sink.key)))
    out.append(
        ("What `ledger` is", "the records of the input, with their places in the source: no table of the pipeline's")
    )
    if fed.workload:
        words, more = (
            [f"{name} {value}" for name, value in options.items()] for options in (fed.options, fed.source_options)
        )
        many = f"{fed.records or 'all its'} records"
        out.append(("Input", ", ".join([fed.workload, *words, many, f"source {fed.source}", *more])))
    return [(name, text) for name, text in out if text]


def spark(plan: Scenario) -> str:
    """Return the Spark versions that the plan names for its attempts; empty where they run on the installed one."""
    first, then = plan.pipeline.spark, plan.restart.spark
    later = f"{then} from attempt 2 on" if then and then != first else ""
    return ", ".join(filter(None, (first or (later and "the installed one"), later)))


def mapping(part: Any) -> Mapping[str, Any]:
    """Return a part of JSON that should be an object; an empty one if it is not."""
    return part if isinstance(part, Mapping) else {}


def mappings(part: Any) -> list[Mapping[str, Any]]:
    """Return a part of JSON that should be a list of objects."""
    return [mapping(each) for each in part] if isinstance(part, (list, tuple)) else []


def servers(plan: Scenario) -> list[tuple[str, str]]:
    """Return the components of the source and of the sinks, each once, with its role in the run."""
    roles: dict[str, dict[str, None]] = {}
    for kind, role in ((plan.input.source, "source"), *((sink.kind, "sink") for sink in plan.sinks)):
        if kind:
            roles.setdefault(kind, {})[role] = None
    return [(kind, " and ".join(role)) for kind, role in roles.items()]


def changes(run: Mapping[str, Any], history: Sequence[Line]) -> list[str]:
    """Return what the harness changed of the system under test, a sentence each; other tables have the settings."""
    changed = [line.event for line in history if isinstance(line.event, SystemChanged)]
    out = [f"In {event.table}, Onceproof {event.changes}." for event in changed]
    out += [ROW_BREAKPOINT] if changed else []
    given, stack = mappings(run.get("changes")), mapping(run.get("stack"))
    if given:
        out.append(
            f"Onceproof gave Spark {len(given)} settings and variables: “What Onceproof gave to Spark” has the reasons."
        )
    for part in (mapping(part) for part in stack.values()):
        for jar in part.get("neighbours") or ():
            out.append(f"Spark {part.get('version')} ran with {jar}: Onceproof knows of none of that version.")
    for name, part in stack.items():
        if settings := mapping(mapping(part).get("settings")):
            out.append(f"The {name} of the stack ran with {plural(len(settings), 'setting')} of Onceproof's.")
    if flags := mapping(stack.get("flags")):
        out.append(f"The JVMs of {', '.join(map(str, flags))} ran with flags of Onceproof's.")
    return out


ROW_BREAKPOINT = (
    "It counts inserted rows, and has the writer wait at the row of the schedule until the fault was injected. It "
    "neither adds nor changes a row: duplicates come from the pipeline."
)


def figures(verdict: Verdict, *, caught_up: bool = True, sinks: int = 1) -> list[tuple[str, str]]:
    """Return the few figures that are read first. Of a run that is not `caught_up`, rows are expected of committed
    records. Rows are counted over all `sinks`."""
    counts, injected = verdict.counts, sum(step.injected for step in verdict.steps)
    expected = FIGURES["expected_rows"] + ("" if caught_up else ", of the committed records alone")
    words = FIGURES | {"expected_rows": expected}
    if sinks > 1:
        together = f"in {sinks} sinks together"
        words |= {"expected_rows": f"{expected}, {together}", "sink_rows": f"rows {together}"}
    more = counts.get("sink_rows", 0) - counts.get("expected_rows", 0)
    if more and {"sink_rows", "expected_rows"} <= counts.keys():
        words["sink_rows"] += f", {abs(more):,} {'more' if more > 0 else 'fewer'} than expected"
    out = [(f"{counts[name]:,}", text) for name, text in words.items() if name in counts]
    out.append((f"{injected} of {len(verdict.steps)}", "faults injected"))
    found = f"{sum(verdict.self_tests.values())} of {len(verdict.self_tests)}" if verdict.self_tests else "none"
    return [*out, (found, "planted errors found, in copies")]


def agreement(verdict: Verdict) -> str:
    """Return whether the verdict is the one that the scenario named, in a sentence."""
    if not verdict.as_expected:
        return "The verdict is not as expected."
    if verdict.word is Word.VIOLATED:
        return "The verdict is as expected: the scenario was written to show this failure."
    return "The verdict is as expected."


def outcome(verdict: Verdict) -> list[tuple[str, str]]:
    """Counts, self-tests, faults: the figures of the verdict."""
    out = [(COUNTS.get(name, name), f"{count:,}") for name, count in verdict.counts.items()]
    injected = sum(step.injected for step in verdict.steps)
    out.append(("Faults injected", f"{injected} of {len(verdict.steps)}"))
    out.append(("Exposures that count", exposures.harms(verdict)))
    out.append(("Planted errors found by the checker", self_tests(verdict)))
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in verdict.kinds().items())
    return [*out, ("Findings", kinds or "none")]


def self_tests(verdict: Verdict) -> str:
    """`4 of 4 (...)`: errors planted in copies of this run's data, and whether the checker saw them."""
    if not verdict.self_tests:
        return "none were planted"
    each = ", ".join(f"{name} {'found' if found else 'MISSED'}" for name, found in verdict.self_tests.items())
    return f"{sum(verdict.self_tests.values())} of {len(verdict.self_tests)} ({each})"


def claim(verdict: Verdict, guarantee: Guarantee) -> str:
    """Return what the verdict claims, no more."""
    injected = sum(step.injected for step in verdict.steps)
    if verdict.word is Word.HELD:
        count = verdict.counts.get("records")
        source = f"The source holds {plural(count, 'record')}. " if count is not None else ""
        return (
            f"What it says: in this one run, on the versions below, {plural(injected, 'fault')} happened at the places "
            f"and with the evidence above. {source}{SHOWN[guarantee]} The exposures that count are listed above. "
            f"The checker found {sum(verdict.self_tests.values())} of {len(verdict.self_tests)} errors planted in "
            "copies of this data. It is not a proof, and says nothing of:"
        )
    if verdict.word is Word.VIOLATED:
        return (
            "What it says: the rows above contradict the guarantee; one such row is enough. A fault caused a finding "
            "only where the text names it as the cause. It does not say how often this happens, nor that "
            "these are the only ways. "
            "It says nothing of:"
        )
    return "What it says: nothing about the guarantee, for the reasons above. It also says nothing of:"


def explain(folder: str, verdict: Verdict) -> str:
    """Return the command that tells the story of the first finding's record."""
    keys = (finding.key for finding in verdict.findings if finding.key)
    key = next(keys, {})
    # A value with a comma in it would have to be quoted twice.
    plain = all(name and value is not None and value.isalnum() for name, value in key.items())
    text = ",".join(f"{name}={value}" for name, value in key.items()) if key and plain else "KEY"
    return shlex.join(["onceproof", "explain", folder, text])


BLIND = "Writers on the cluster that outlive their driver: an executor of a dead driver is not visible there."


def limits(verdict: Verdict, run: Mapping[str, Any]) -> list[str]:
    """Return what no run of this kind can say."""
    stack = mapping(run.get("stack")).get("stack")
    blind = [BLIND] if isinstance(STACKS.all().get(str(stack)), AtAddresses) else []
    return [*blind, *LIMITS]


def again(folder: str, run: Mapping[str, Any], verdict: Verdict) -> list[tuple[str, str]]:
    """Return the commands, the one that repeats the run first, and what each does. After an error the stored plan would
    only fail again."""
    quoted = shlex.quote(folder)
    given = command.stack_options(run).split()
    replay = (" ".join([f"onceproof replay {quoted}", *given]), REPLAY)
    check = (f"onceproof check {quoted}", CHECK)
    file = (command.typed(run), RUN)
    lines = [file, replay, check] if verdict.word is Word.ERROR else [replay, file, check]
    return [(typed, words) for typed, words in lines if typed]


REPLAY = (
    "The scenario and seed as they were stored, to see whether the same happens again. Where the program has changed "
    "since, `replay` warns and runs it as it is now. How Spark schedules its tasks may differ."
)
RUN = "The scenario file and the program as they are now: after a change of either, use this one."
CHECK = "Judges the stored run again from its folder. Nothing is started, so the same word comes out."

"""What the injections exposed, in words: what this sink would have shown, what it would not, which crash points were
reached and which were not.

Pure. The terminal, the page and the summary all say what stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.report.escape import visible
from harness.scenario import Exposure, Harm, StepOutcome, Verdict, Word

CAME = " (came, and was dropped)"
MOST = 12
"""Lines of one kind that are shown; the rest is counted."""
NOTE = 300
NAME = 80


@dataclass(frozen=True)
class Points:
    """The crash points of one sink: those reached with something exposed, with what, and those not reached."""

    sink: str
    points_reached: tuple[str, ...]
    untried: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, order=True)
class Struck:
    """Where an injection exposed something that counts: the sink, the crash point as the snapshot shows it, the
    fault."""

    sink: str
    point: str
    fault: str


def of_step(verdict: Verdict, number: int) -> list[str]:
    """Return what the injection of step `number` (from 1) exposed, a line each, and whether it counts."""
    if not known(verdict) or not 0 < number <= len(verdict.steps) or not verdict.steps[number - 1].injected:
        return []
    own = [exposure for exposure in verdict.exposures if exposure.step == number]
    out = few([f"{verb(exposure)}: {what(exposure, verdict)}" for exposure in own])
    if own and all(exposure.harm is Harm.LOSS for exposure in own):
        out.append("only a loss was exposed")
    if not own:
        out.append("does not count: nothing was exposed; the verdict's reasons say why")
    elif not any(exposure.counts for exposure in own):
        left = [exposure for exposure in own if not exposure.allowed]
        why = "nothing that was exposed would be seen" if left else "the guarantee allows what was exposed"
        out.append(f"does not count: {why}")
    return out


def known(verdict: Verdict) -> bool:
    """Return whether it is known what was exposed: not where no verdict was reached."""
    return bool(verdict.exposures) or verdict.word not in (Word.HELD, Word.ERROR)


def verb(exposure: Exposure) -> str:
    """Return whether the harm would have shown, and broken the guarantee, or came."""
    if exposure.allowed:
        return "exposed, and allowed by the guarantee"
    if exposure.came:
        return "exposed, came, and was dropped by the sink's reader"
    return "exposed, does not count" if exposure.why else "exposed, counts"


def what(exposure: Exposure, verdict: Verdict) -> str:
    """`postgres payments: repetition of batch 3 (99 rows in the sink, not in Spark's commit log)`."""
    several = len({each.checkpoint for each in verdict.exposures}) > 1
    query = f", {visible(exposure.checkpoint, NAME)}" if several and exposure.checkpoint else ""
    return f"{visible(exposure.sink, NAME)}{query}: {visible(exposure.note, NOTE)}"


def harms(verdict: Verdict) -> str:
    """Return which harms were exposed and would have shown, or came, for one cell of a table."""
    own = [(harm, [s for s in verdict.exposures if s.harm is harm and s.counts]) for harm in Harm]
    shown = [f"{harm}{'' if any(s.would_show for s in exposures) else CAME}" for harm, exposures in own if exposures]
    return ", ".join(shown) or "-"


def points(verdict: Verdict) -> list[Points]:
    """Return by sink, in the order of the scenario; those at which no injection exposed anything come last."""
    points_reached: dict[str, dict[str, list[Exposure]]] = {}
    for exposure in sorted(verdict.exposures, key=lambda exposure: exposure.position):
        points_reached.setdefault(exposure.sink, {}).setdefault(exposure.point, []).append(exposure)
    untried: dict[str, list[str]] = {sink: [] for sink in points_reached}
    for sink, point in verdict.untried:
        untried.setdefault(sink, []).append(point)
    counting = {
        sink: tuple(_point(name, own) for name, own in points.items() if any(exposure.counts for exposure in own))
        for sink, points in points_reached.items()
    }
    return [Points(sink, counting.get(sink, ()), tuple(names)) for sink, names in untried.items()]


def struck(exposures: Iterable[Exposure], steps: Sequence[StepOutcome]) -> tuple[list[Struck], list[Struck]]:
    """Return the cells of a run, each once: those with something exposed that counts, and the others that were
    struck."""
    found = [
        (Struck(sink=exposure.sink, point=exposure.point, fault=steps[exposure.step - 1].name), exposure.counts)
        for exposure in exposures
        if 0 < exposure.step <= len(steps) and steps[exposure.step - 1].injected
    ]
    counting = {cell for cell, counts in found if counts}
    return sorted(counting), sorted({cell for cell, _ in found} - counting)


def points_reached(verdict: Verdict) -> list[str]:
    """`postgres payments: sink-committed (repetition)`, an entry for each sink and crash point."""
    return [
        f"{each.sink}: {point}" if each.sink else point for each in points(verdict) for point in each.points_reached
    ]


def lines(verdict: Verdict) -> list[str]:
    """Return the two lines of a terminal: crash points reached, crash points not reached."""
    found = points(verdict)
    if not found:
        return []
    return [
        f"crash points reached: {_joined((each.sink, each.points_reached) for each in found)}",
        f"crash points not reached: {_joined((each.sink, each.untried) for each in found)}",
    ]


def rests(verdict: Verdict) -> list[str]:
    """Return what a held rests on: what was exposed and would have shown, or came, what limits it, and the crash points
    not reached."""
    if verdict.word is not Word.HELD:
        return []
    shown = [f"{verb(exposure)}: {what(exposure, verdict)}" for exposure in verdict.exposures if exposure.counts]
    return [*few(shown), *noted(verdict), *lines(verdict)]


def noted(verdict: Verdict) -> list[str]:
    """Return the notes of a verdict, a line each."""
    return few([f"note: {visible(ends(note), NOTE)}" for note in verdict.notes])


def ends(reason: str) -> str:
    """Return the first line of a reason, whose other lines are those of a log; of one that leads to them by a colon,
    the last of them too."""
    first, *log = [line.strip() for line in reason.splitlines() if line.strip()] or [""]
    return " ".join([first, *log[-1:]]) if first.endswith(":") else first


def few(texts: Sequence[str], most: int = MOST) -> list[str]:
    """Return at most so many; the last line counts the others."""
    left = len(texts) - most
    return [*texts[:most], *([f"and {left:,} more"] if left > 0 else [])]


def _point(name: str, exposures: Sequence[Exposure]) -> str:
    """The harms that count come first: a line may be cut."""
    counting, left = [], []
    for harm in Harm:
        own = [exposure for exposure in exposures if exposure.harm is harm]
        if any(exposure.counts for exposure in own):
            counting.append(harm.value)
        elif own:
            left.append(f"{harm}, {_left_out(own[0])}")
    return f"{name} ({'; '.join([*counting, *left])})"


def _left_out(exposure: Exposure) -> str:
    """Return why an exposure does not count."""
    if exposure.allowed:
        return "which the guarantee allows"
    return f"which does not count: {visible(exposure.why, NOTE)}"


def _joined(of_sinks: Iterable[tuple[str, Sequence[str]]]) -> str:
    every = list(of_sinks)
    parts = [(sink, ", ".join(visible(point, NAME) for point in few(names))) for sink, names in every if names]
    if len(every) == 1 and parts:
        return parts[0][1]
    return "; ".join(f"{visible(sink, NAME)}: {names}" if sink else names for sink, names in parts) or "none"

"""Would this effect and this sink show a harm? Models of it are planted in a copy of the right rows, which are the
run's own if it holds, and the comparison that judges the run must see them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.checkers.cells import Row
from harness.checkers.compare import compare
from harness.checkers.offset_ranges import Cut, Offsets, Spans, between, covers, meet
from harness.checkers.wrong_total import only_rounding
from harness.judge.stakes.scale import SLICES_MAX, Scale, Slice
from harness.scenario import Harm

_OPPOSITE = {Harm.REPETITION: "lost", Harm.LOSS: "counted twice"}


@dataclass(frozen=True)
class Visibility:
    """What one sink shows of a hit. `touched`: it holds rows of the batch; `right`: the totals of all records before
    these offsets are known to have been right when the fault hit; `dropped`: what its reader has left out as
    repetitions since then."""

    scale: Scale
    touched: bool
    right: Offsets
    dropped: Counter[Row]

    def came(self, spans: Spans) -> bool:
        """Did all of these come again since the fault hit, each row as it was, and did the reader drop it? Then no
        model has to be planted: the harm has happened, and the sink shows what its reader makes of it."""
        if not self.scale.table.folds or self.scale.case.aggregate:
            return False
        rows = Counter(self.scale.rows(Cut(only=spans)))
        return bool(rows) and rows <= self.dropped

    def why_not(self, harm: Harm, spans: Spans) -> str:
        """Why nobody would see the harm; empty if the comparison sees a model of it."""
        scale = self.scale
        if not (count := scale.effects.size(cut=Cut(only=spans))):
            return "it holds no record"
        if harm is Harm.REPETITION and scale.table.folds:
            return "the sink's query folds equal rows"
        if harm is Harm.REPETITION and scale.table.folds is None and scale.table.folding:
            return f"nobody knows whether the sink's query folds equal rows: {scale.table.folding}"
        seen = [self._seen(model) for model in self._models(harm, spans)]
        # Of what only Spark's word says that it was written, nothing says that it is rows beside others.
        if not any(seen[: None if self.touched else 1]):
            part = scale.rows(Cut(only=spans))
            words = f"none of its {count} records pass the effect"
            return f"the effect of {scale.case.sink} is the same with it" if part else words
        # Rows that are added again beside a total show in any case: only what goes into the total can be hidden.
        return self._hidden(harm, spans) if seen[0] else ""

    def _models(self, harm: Harm, spans: Spans) -> Iterator[list[Row]]:
        """What the sink would hold."""
        scale, rows = self.scale, self.scale.rows
        if harm is Harm.LOSS:
            yield rows(Cut(without=spans))
            return
        yield rows(Cut(again=(spans,)))
        if scale.case.aggregate and not scale.table.unique and not scale.replaces:
            yield [*scale.case.expected, *rows(Cut(only=spans))]

    def _seen(self, model: Sequence[Row]) -> bool:
        """Does the comparison see the model in the place of what the sink should hold, as a right run does?"""
        case = self.scale.case
        marks = compare(replace(case, found=list(model)))
        return any(not only_rounding(mark, case) for mark in marks)

    def _hidden(self, harm: Harm, spans: Spans) -> str:
        """Which other slice would hide it: one lost where this one is doubled, or doubled where this one is lost."""
        scale, expected = self.scale, Counter(self.scale.case.expected)
        if not scale.case.aggregate and expected.total() == len(expected):
            return ""
        if not scale.slices:
            return "nothing tells in which slices the source was read, and another one may give the same totals"
        others = self._others(spans)
        if len(others) > SLICES_MAX:
            return f"the source was read in more than {SLICES_MAX} slices, and another one may give the same totals"
        for batch, other in others:
            cut = Cut(again=(spans,), without=other) if harm is Harm.REPETITION else Cut(without=spans, again=(other,))
            if not self._seen(scale.rows(cut)):
                name = "another slice" if batch is None else f"batch {batch}"
                return f"{name} gives the same totals, and one {_OPPOSITE[harm]} would hide it"
        return ""

    def _others(self, spans: Spans) -> list[Slice]:
        """All others: where totals tie, they do not say of an earlier one that it was right at the hit. Where
        Spark's own word says that this batch was in the sink, and the totals are just that, they do."""
        known = [each for each in self.scale.slices if not meet(each[1], spans)]
        return [each for each in known if not covers(between({}, self.right), each[1])]

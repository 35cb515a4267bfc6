"""One sink of one run, examined: the effect over the ledger against the rows that were read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.checkers.attribute import Clues, Origin
from harness.checkers.canaries import Canary, canaries
from harness.checkers.cells import Row
from harness.checkers.compare import Case, Key, Mark, compare, finding, key_of
from harness.checkers.explain import Totals, only_rounding
from harness.checkers.fit import misfit
from harness.checkers.order import OrderCase, misordered, placed
from harness.effect import Effects, Table
from harness.scenario import Finding, Guarantee, Kind, Sink, StepOutcome
from harness.sinks import SinkTable

FINDINGS_MAX = 1000
"""How many findings of one kind and sink a verdict keeps; the rest are counted."""

ROUNDING = "a sum of floating point numbers depends on their order. Cast them to DECIMAL in pipeline and effect"


@dataclass(kw_only=True)
class Examined:
    """What came of one sink. `void` and `unknown` are reasons; `apart` says that it holds none of the keys expected
    of it; `unseen` counts rows that are missing while the pipeline is not drained."""

    sink: Sink
    position: int
    name: str
    drained: bool
    case: Case | None = None
    findings: list[Finding] = field(default_factory=list)
    kinds: Counter[Kind] = field(default_factory=Counter)
    canaries: tuple[Canary, ...] = ()
    void: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    apart: bool = False
    plain: bool = False
    unseen: int = 0
    rounded: int = 0
    expected_rows: int = 0
    sink_rows: int = 0
    holds: set[Key] = field(default_factory=set)

    def counted(self, kind: Kind) -> bool:
        """Count one more finding of a kind; true if it is among the first ones, which are kept."""
        self.kinds[kind] += 1
        return self.kinds[kind] <= FINDINGS_MAX

    def clues(self, effects: Effects, steps: tuple[StepOutcome, ...]) -> Clues:
        """What may explain the findings: asked of the ledger only if there are any."""
        if self.case is None or not self.findings:
            return Clues(steps=steps)
        lineage = _lineage(effects, self.case, self.findings)
        return Clues(lineage=lineage or {}, totals=self._totals(effects, traced=bool(lineage)), steps=steps)

    def _totals(self, effects: Effects, *, traced: bool) -> Totals | None:
        case = self.case
        if case is None or self.sink.effect is None or (traced and not case.aggregate):
            return None
        contributions = {}
        for batch in effects.batches():
            rows = effects.table(self.sink.effect, batch=batch).rows
            contributions[batch] = _single(rows, case.key_places())
        return Totals(
            columns=case.columns, families=case.families, payload=case.payload_places(), contributions=contributions
        )


def examine(
    effects: Effects, sink: Sink, table: SinkTable | None, *, drained: bool, position: int, name: str
) -> Examined:
    """Judge one sink, by its place and name in the scenario. Raises UsageError for an effect that is no query."""
    out = Examined(sink=sink, position=position, name=name, drained=drained)
    if table is None or table.unreadable or sink.effect is None:
        out.void.append(_unreadable(sink, table, name))
        return out
    effect = effects.table(sink.effect)
    behind = effect if drained else effects.table(sink.effect, behind=True)
    out.sink_rows, out.expected_rows = len(table.rows), len(behind.rows)
    out.void += misfit(sink, effect.described, table.columns, name=name)
    if out.void:
        return out
    case = _case(out, effect, table, aggregate=effects.aggregates(sink.effect))
    out.case = case
    out.plain = drained or effects.plain(sink.effect)
    _compare(out, case)
    if sink.order is not None:
        _order(out, table)
    out.void += [f"canary `{canary.name}` of {name}: {canary.why}" for canary in out.canaries if not canary.found]
    return out


def _compare(out: Examined, case: Case) -> None:
    places = case.key_places()
    out.holds = {key_of(row, places) for row in case.found}
    expected = {key_of(row, places) for row in case.expected}
    if not out.expected_rows:
        out.void.append(f"the effect of {out.name} calls for no row")
    # A single total under another key is a wrong total, where its value is all the key that it has.
    alone = len(expected) == 1 and not case.payload_places() and bool(out.holds)
    out.apart = out.drained and bool(expected) and not alone and expected.isdisjoint(out.holds)
    bad = set()
    for mark in compare(case):
        bad.add(mark.key)
        if _certain(mark, out) and not _rounding(mark, out, case) and out.counted(mark.kind):
            out.findings.append(finding(case, mark))
    if out.unseen:
        out.unknown.append(f"{out.unseen} rows of {out.name} are not seen yet: the pipeline has not drained")
    if out.rounded:
        out.unknown.append(f"{out.rounded} totals of {out.name} differ only by rounding: {ROUNDING}")
    out.canaries = canaries(case, bad=bad)


def hidden(examined: Examined, guarantee: Guarantee) -> str:
    """Why nobody can tell, if findings were cut that a weaker guarantee would have to be asked about one by one."""
    cut = [f"{kind} ({count})" for kind, count in sorted(examined.kinds.items()) if count > FINDINGS_MAX]
    if guarantee is Guarantee.EXACTLY_ONCE or not cut:
        return ""
    return f"too many findings in {examined.name} to look at each under {guarantee}: {', '.join(cut)}"


def _certain(mark: Mark, out: Examined) -> bool:
    """While records are under way, only what no later record can mend is a finding: a row that is too much under a
    `plain` effect. Any other effect ("the latest of each account") may have called for it in between."""
    if out.drained:
        return True
    if mark.kind in (Kind.LOST, Kind.WRONG_AGGREGATE) or not out.plain:
        out.unseen += mark.copies
        return False
    return True


def _rounding(mark: Mark, out: Examined, case: Case) -> bool:
    rounded = only_rounding(mark, case.families)
    out.rounded += rounded
    return rounded


def _order(out: Examined, table: SinkTable) -> None:
    assert out.sink.order is not None
    names = tuple(column.name for column in table.columns)
    try:
        case = OrderCase(
            sink=out.name,
            position=out.position,
            columns=names,
            families=tuple(column.family for column in table.columns),
            order=out.sink.order,
            found=table.rows,
        )
    except ValueError as failure:
        out.void.append(f"the order cannot be judged: {failure}")
        return
    if not placed(case):
        out.void.append(f"the order of {out.name} cannot be judged: no two rows share {', '.join(case.order.per)}")
    out.findings += [late for late in misordered(case) if out.counted(late.kind)]


def _unreadable(sink: Sink, table: SinkTable | None, name: str) -> str:
    if table is not None and table.unreadable:
        return f"{name} could not be read: {table.unreadable}"
    if sink.backend == "console":
        return f"{name} could not be read: a console sink cannot be read back"
    return f"{name} was never read" if sink.effect is not None else f"{name} has no effect to compare with"


def _case(out: Examined, effect: Table, table: SinkTable, *, aggregate: bool) -> Case:
    names = [column.name for column in table.columns]
    order = [names.index(name) for name in effect.columns]
    same = order == list(range(len(names)))
    return Case(
        sink=out.name,
        position=out.position,
        columns=effect.columns,
        families=effect.families,
        key=out.sink.key,
        expected=effect.rows,
        found=table.rows if same else [tuple([row[place] for place in order]) for row in table.rows],
        aggregate=aggregate,
    )


def _lineage(effects: Effects, case: Case, findings: Sequence[Finding]) -> dict[Key, list[Origin]] | None:
    """The records whose ledger columns carry a finding's key; None if the key has columns that the ledger has not."""
    names = case.key or case.columns
    if not set(names) <= set(effects.columns()):
        return None
    wanted = {tuple(finding.key.values()) for finding in findings}
    out: dict[Key, list[Origin]] = {}
    for key, partition, offset, batch in effects.origins(names):
        if key in wanted:
            out.setdefault(key, []).append(Origin(partition, offset, batch))
    return out


def _single(rows: Sequence[Row], places: Sequence[int]) -> dict[Key, Row]:
    """Rows by key; a key of several rows is no total."""
    keys = Counter(key_of(row, places) for row in rows)
    return {key: row for row in rows if keys[key := key_of(row, places)] == 1}

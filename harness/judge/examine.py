"""One sink of one run, examined: `expected` over the ledger against the rows that were read back."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from harness.checkers.cells import Cell
from harness.checkers.compare import Case, Key, Mark, compare, finding, key_of
from harness.checkers.offset_ranges import REVERSED, Cut
from harness.checkers.order import OrderCase, misordered, placed
from harness.checkers.origin import Clues, Origin
from harness.checkers.schema_check import folded, folding_note, schema_mismatch
from harness.checkers.self_tests import SelfTest, self_tests
from harness.checkers.wrong_total import Totals, only_rounding, single
from harness.errors import UsageError
from harness.ledger import Ledger, Table
from harness.scenario import Finding, Guarantee, Kind, Sink
from harness.sinks.table import SinkTable

SHUFFLES = (REVERSED, 1, 2)
SHUFFLED_MAX = 100_000
"""A ledger of more records is tried in one other order only."""
FINDINGS_MAX = 1000
"""How many findings of one kind and sink a verdict keeps; the rest are counted."""

ROUNDING = "a sum of floating point numbers depends on their order. Cast them to DECIMAL in pipeline and `expected`"


@dataclass(kw_only=True)
class SinkReasons:
    """What a sink says of the word. `unread` are the reasons of a sink that the scenario says cannot be read. `waiting`
    are those of rows that are missing while the pipeline is not caught up."""

    unread: list[str] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    error: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Counts:
    """Rows of one sink. `unseen` are missing while the pipeline is not caught up, `strange` may be of records which the
    ledger lacks, `rounded` differ by rounding; `kinds` counts the findings of each kind."""

    kinds: Counter[Kind] = field(default_factory=Counter)
    unseen: int = 0
    strange: int = 0
    rounded: int = 0
    expected: int = 0
    found: int = 0


@dataclass(kw_only=True)
class Comparison:
    """The rows of one sink beside those expected. `short`: the pipeline may have taken records that the ledger has not.
    `plain`: a surplus row is one that no later record can mend. `moving` are keys of records that are not committed by
    the pipeline, `holds` those that the sink has, `bad` those of which something differs; `unmatched`: the sink holds
    none of the keys expected of it."""

    case: Case
    short: bool = False
    plain: bool = False
    moving: set[Key] = field(default_factory=set)
    holds: set[Key] = field(default_factory=set)
    bad: set[Key] = field(default_factory=set)
    unmatched: bool = False


@dataclass(kw_only=True)
class Examined:
    """What came of one sink. `behind`: the pipeline is caught up, and a batch has yet to write what it took.
    `comparison` is None where the sink could not be compared."""

    sink: Sink
    name: str
    position: int
    caught_up: bool
    table: SinkTable | None = None
    comparison: Comparison | None = None
    findings: list[Finding] = field(default_factory=list)
    self_tests: tuple[SelfTest, ...] = ()
    behind: bool = False
    reasons: SinkReasons = field(default_factory=SinkReasons)
    counts: Counts = field(default_factory=Counts)

    @property
    def case(self) -> Case | None:
        return self.comparison.case if self.comparison else None

    @property
    def holds(self) -> set[Key]:
        """Return the keys that the sink has."""
        return self.comparison.holds if self.comparison else set()

    def counted(self, kind: Kind) -> bool:
        """Count one more finding of a kind; true if it is among the first ones, which are kept."""
        self.counts.kinds[kind] += 1
        return self.counts.kinds[kind] <= FINDINGS_MAX

    def clues(self, ledger: Ledger) -> Clues:
        """Return what may explain the findings: asked of the ledger only if there are any."""
        if self.comparison is None or not self.findings:
            return Clues()
        case = self.comparison.case
        lineage = _lineage(ledger, case, self.findings)
        traced = bool(lineage) and not case.aggregate
        return Clues(lineage=lineage or {}, totals=None if traced else self._totals(ledger, self.comparison))

    def _totals(self, ledger: Ledger, comparison: Comparison) -> Totals | None:
        contributions, case = {}, comparison.case
        try:
            for batch in ledger.batches():
                rows = ledger.table(self.sink.expected or "", batch=batch).rows
                contributions[batch] = single(rows, case.key_places())
        except UsageError:
            return None
        found = {tuple(f.key.values()) for f in self.findings if f.kind is Kind.WRONG_AGGREGATE}
        return Totals(
            columns=case.columns,
            families=case.families,
            payload=case.payload_places(),
            contributions=contributions,
            excluded=frozenset(comparison.bad - found),
        )


def examine(
    ledger: Ledger,
    sink: Sink,
    table: SinkTable | None,
    *,
    name: str,
    position: int,
    caught_up: bool,
    short: bool = False,
) -> Examined:
    """Judge one sink. `short`: the pipeline may have taken records that the ledger has not. Raises UsageError for an
    `expected` that is no query."""
    out = Examined(sink=sink, name=name, position=position, caught_up=caught_up, table=table)
    if table is None or table.unreadable or sink.expected is None:
        (out.reasons.unread if sink.expected is None else out.reasons.untested).append(_unreadable(out, table))
        return out
    expected = ledger.table(sink.expected)
    committed = expected if caught_up else _of_committed(ledger, sink.expected, expected)
    out.counts.found, out.counts.expected = len(table.rows), len(committed.rows)
    out.reasons.untested += schema_mismatch(sink, expected.described, table.columns, name=name)
    if out.reasons.untested:
        return out
    out.reasons.untested += filter(None, [folded(sink, table, name=name)])
    out.reasons.notes += filter(None, [folding_note(sink, table, name=name), table.note and f"{name}: {table.note}"])
    case = _case(out, expected, table, ledger)
    out.reasons.notes += filter(None, [_shared(out, case)])
    if caught_up and sink.watermark is None and (lost := ledger.unplaced(sink.expected)):
        words = f"{lost} records of the source are in no batch, and `expected` of {name} goes by `_batch`"
        out.reasons.unknown.append(f"{words}: it is not known what it would make of them")
    out.comparison = Comparison(
        case=case,
        short=short,
        plain=caught_up or ledger.plain(sink.expected),
        moving=set() if caught_up else _moving(case, committed),
    )
    _compare(out, out.comparison)
    _shuffled(out, case, ledger)
    if sink.order is not None:
        _order(out, table)
    out.reasons.untested += [
        f"self-test `{self_test.name}` of {out.name}: {self_test.why}"
        for self_test in out.self_tests
        if not self_test.found
    ]
    return out


def _of_committed(ledger: Ledger, sql: str, expected: Table) -> Table:
    """`expected` over the records committed by the pipeline; over all of them if it cannot be run over a part."""
    try:
        return ledger.table(sql, committed=True)
    except UsageError:
        return expected


def _moving(case: Case, committed: Table) -> set[Key]:
    """Return the keys that records not committed by the pipeline have rows of."""
    places, done = case.key_places(), Counter(committed.rows)
    return {key_of(row, places) for row, count in Counter(case.expected).items() if count > done[row]}


def _shared(out: Examined, case: Case) -> str:
    """Return words for a key that several rows of `expected` share; empty if there is none."""
    places = case.key_places()
    keys = len({key_of(row, places) for row in case.expected})
    if not places or keys == len(case.expected):
        return ""
    key = ", ".join(case.key or case.columns)
    return f"{out.name}: {len(case.expected)} rows share {keys} keys ({key}): a finding speaks of all rows of its key"


def _shuffled(out: Examined, case: Case, ledger: Ledger) -> None:
    """The ledger has no order between partitions: a query that hangs on one says nothing."""
    if ledger.plain(out.sink.expected or ""):
        return
    for order in SHUFFLES if ledger.size() <= SHUFFLED_MAX else SHUFFLES[:1]:
        rows = ledger.table(out.sink.expected or "", cut=Cut(order=order)).rows
        marks = compare(replace(case, found=rows))
        if any(not only_rounding(mark, case) for mark in marks):
            cure = "Order it by columns that no two records share"
            out.reasons.error.append(
                f"`expected` of {out.name} gives other rows when the ledger is in another order. {cure}"
            )
            return


def _compare(out: Examined, comparison: Comparison) -> None:
    case, counts, places = comparison.case, out.counts, comparison.case.key_places()
    comparison.holds = {key_of(row, places) for row in case.found}
    expected = {key_of(row, places) for row in case.expected}
    if not counts.expected:
        out.reasons.untested.append(f"`expected` of {out.name} calls for no row")
    # A single total under another key is a wrong total, where its value is all the key that it has.
    alone = len(expected) == 1 and not case.payload_places() and bool(comparison.holds)
    # An empty sink may still be written.
    read = out.caught_up or bool(comparison.holds)
    comparison.unmatched = read and bool(expected) and not alone and expected.isdisjoint(comparison.holds)
    for mark in compare(case):
        comparison.bad.add(mark.key)
        if _certain(mark, out, comparison) and not _rounding(mark, out, case) and out.counted(mark.kind):
            out.findings.append(finding(case, mark))
    if counts.unseen:
        out.reasons.waiting.append(
            f"{counts.unseen} rows of {out.name} are not seen yet: the pipeline has not caught up"
        )
    if counts.strange:
        out.reasons.unknown.append(
            f"{counts.strange} rows of {out.name} may be of records that the source lacked when it was read back"
        )
    if counts.rounded:
        out.reasons.unknown.append(f"{counts.rounded} totals of {out.name} differ only by rounding: {ROUNDING}")
    out.self_tests = self_tests(case, bad=comparison.bad)


def hidden(examined: Examined, guarantee: Guarantee) -> str:
    """Return why findings cannot be judged: some were cut that a weaker guarantee would have to be checked for one by
    one. Empty if none were."""
    cut = [f"{kind} ({count})" for kind, count in sorted(examined.counts.kinds.items()) if count > FINDINGS_MAX]
    if guarantee is Guarantee.EXACTLY_ONCE or not cut:
        return ""
    return f"too many findings in {examined.name} to compare each under {guarantee}: {', '.join(cut)}"


def _certain(mark: Mark, out: Examined, comparison: Comparison) -> bool:
    """Return whether a mark is a finding. While records are under way, only what no later record can mend is one: a row
    that is too much under a `plain` query, of records that are committed. Any other query ("the latest of each
    account") may have called for it in between. A batch in flight may be about to replace it. The record of a row that
    is not expected may be one that the ledger lacks."""
    if comparison.short and mark.kind is not Kind.LOST:
        out.counts.strange += mark.copies
        return False
    if out.caught_up:
        return True
    if mark.kind in (Kind.LOST, Kind.WRONG_AGGREGATE) or not comparison.plain or mark.key in comparison.moving:
        out.counts.unseen += mark.copies
        return False
    return True


def _rounding(mark: Mark, out: Examined, case: Case) -> bool:
    rounded = only_rounding(mark, case)
    out.counts.rounded += rounded
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
        out.reasons.untested.append(f"the order cannot be judged: {failure}")
        return
    if not placed(case):
        out.reasons.untested.append(
            f"the order of {out.name} cannot be judged: no two rows share {', '.join(case.order.per)}"
        )
    out.findings += [late for late in misordered(case) if out.counted(late.kind)]


def _unreadable(out: Examined, table: SinkTable | None) -> str:
    if table is not None and table.unreadable:
        return f"{out.name} could not be read: {table.unreadable}"
    return (
        f"{out.name} was never read"
        if out.sink.expected is not None
        else f"{out.name} has no `expected` to compare with"
    )


def _case(out: Examined, expected: Table, table: SinkTable, ledger: Ledger) -> Case:
    names = [column.name for column in table.columns]
    order = [names.index(name) for name in expected.columns]
    same = order == list(range(len(names)))
    aggregate = ledger.aggregates(out.sink.expected or "")
    case = Case(
        sink=out.name,
        position=out.position,
        columns=expected.columns,
        families=expected.families,
        key=out.sink.key,
        expected=expected.rows,
        found=table.rows if same else [tuple([row[place] for place in order]) for row in table.rows],
        aggregate=aggregate,
        unrounded=ledger.unrounded(out.sink.expected or ""),
    )
    return replace(case, sizes=_sizes(case, out.sink.expected or "", ledger))


def _sizes(case: Case, sql: str, ledger: Ledger) -> dict[Key, list[float]]:
    """Return by key, the largest number that went into each column; asked of floating point numbers only."""
    floats = [place for place, rounds in enumerate(case.rounds) if rounds]
    if not floats:
        return {}
    # Where a column is not simply a sum, the other totals in it have to do.
    direct = ledger.summed(sql)
    usual = [0.0] * len(case.columns)
    for place in set(floats) - set(direct):
        usual[place] = max((_size(row[place], "float") for row in case.expected), default=0.0)
    out: dict[Key, list[float]] = {key_of(row, case.key_places()): usual for row in case.expected}
    places = case.key_places()
    for table in (ledger.extreme(sql, "min"), ledger.extreme(sql, "max")):
        for row in table.rows:
            known = out.get(key_of(row, places), usual)
            out[key_of(row, places)] = list(map(max, known, map(_size, row, table.families)))
    return out


def _size(cell: Cell, family: str) -> float:
    size = abs(float(cell)) if family in ("float", "number") and cell is not None else 0.0
    return size if math.isfinite(size) else 0.0


def _lineage(ledger: Ledger, case: Case, findings: Sequence[Finding]) -> dict[Key, list[Origin]] | None:
    """Return the records whose ledger columns carry a finding's key; None if the key has columns that the ledger has
    not."""
    names = case.key or case.columns
    if not set(names) <= set(ledger.columns()):
        return None
    wanted = {tuple(finding.key.values()) for finding in findings}
    out: dict[Key, list[Origin]] = {}
    try:
        for key, partition, offset, batch in ledger.origins(names):
            if key in wanted:
                out.setdefault(key, []).append(Origin(partition, offset, batch))
    except UsageError:
        # The ledger's column of that name is of a type that has no canonical text; that of `expected` is.
        return None
    return out

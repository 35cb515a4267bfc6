"""The ledger as `expected` of each sink sees it: of a sink with a watermark, with what the judge makes of its windows.

Where it is not known which batch wrote a window, `_late` and `_open` are false of every record there: such a ledger has
its columns and keys, and no rows of `expected` are taken from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from harness.checkers.closed_windows import WRITTEN, Placed
from harness.judge.injections import Readings
from harness.judge.read_folder import Run
from harness.judge.windows import by_writing, unclear
from harness.ledger import Ledger, Source
from harness.run_folder.ledger import read_source


@dataclass(frozen=True, kw_only=True)
class View:
    """What one sink's `expected` is asked of. `unclear`: why it is not known what became of its windows; `placed`: what
    became of each record of it, by where that lies."""

    ledger: Ledger
    unclear: str = ""
    placed: Mapping[tuple[int, int], Placed] = field(default_factory=dict)


@contextmanager
def views(run: Run) -> Iterator[tuple[View, ...]]:
    """One for each sink of the run. Raises UsageError and HarnessError as the judge does."""
    source = Source(
        parquet=run.source if run.source.is_file() else None,
        columns=run.columns,
        batches=run.progressed.batches,
    )
    where = f"scenario `{run.scenario.name}`"
    with ExitStack() as left:
        plain = left.enter_context(Ledger(source, where=where))
        out = []
        for place, sink in enumerate(run.scenario.sinks):
            if sink.watermark is None:
                out.append(View(ledger=plain))
                continue
            why = unclear(run, sink)
            own = _unplaced(source) if why else by_writing(run, Readings(), source, place).source
            placed = {} if why else {(each.partition, each.offset): each for each in own.places or ()}
            ledger = left.enter_context(Ledger(own, where=where))
            out.append(View(ledger=ledger, unclear=why, placed=placed))
        yield tuple(out)


def _unplaced(source: Source) -> Source:
    records = read_source(source.parquet).select(["partition", "offset"]).to_pylist() if source.parquet else []
    places = [
        Placed(each["partition"], each["offset"], WRITTEN, at, None, late=False, open=False)
        for at, each in enumerate(records)
    ]
    return replace(source, places=places)

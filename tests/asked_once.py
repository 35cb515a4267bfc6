"""Queries that put the same question to the same ledger once, whichever test asks: for tests of many run folders whose
records are alike. What is kept are DuckDB's answers; nothing of ours is passed over but what puts the question.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest

import harness.judge.sinks
import harness.judge.windows
from harness.checkers.cells import Row
from harness.checkers.offset_ranges import Cut, OffsetRanges
from harness.ledger import WHOLE, Ledger, Shape, Source, Table

Answer = TypeVar("Answer")
_MADE = ("_db", "_thread", "_view", "_shapes")
"""What a ledger has that is open."""


class AskedOnce(Ledger):
    """A ledger that nobody has asked yet is made at once, and so are its mistakes told; any other one is made when it
    is asked something new. An error is no answer that is kept. Once closed, it answers nothing."""

    known: dict[Any, dict[Any, Any]]
    """The answers by ledger, with all that it is made of. One for all, set by `asked_once`."""

    def __init__(self, source: Source, *, where: str) -> None:
        self._source, self._where, self._over = source, where, False
        parquet = source.parquet and source.parquet.read_bytes()
        more = repr((source.columns, source.batches, source.committed, source.places))
        ledger = (parquet, more, where)
        self._answers = self.known.get(ledger, {})
        if ledger not in self.known:
            super().__init__(source, where=where)
        self.known[ledger] = self._answers

    def __getattr__(self, name: str) -> Any:
        if name not in _MADE:
            raise AttributeError(name)
        self._still_open()
        super().__init__(self._source, where=self._where)
        return self.__dict__[name]

    def _close(self) -> None:
        self._over = True
        if "_db" in self.__dict__:
            super()._close()

    def _still_open(self) -> None:
        # No RuntimeError: of those, some are taken for the words of DuckDB.
        assert not self._over, f"the ledger of {self._where} was asked after it had been closed"

    def _once(self, question: Any, ask: Callable[[], Answer]) -> Answer:
        self._still_open()
        if question not in self._answers:
            self._answers[question] = ask()
        found: Answer = self._answers[question]
        return found

    def table(self, sql: str, *, committed: bool = False, batch: int | None = None, cut: Cut = WHOLE) -> Table:
        ask = super().table
        question = ("table", sql, committed, batch, cut)
        made = self._once(question, lambda: ask(sql, committed=committed, batch=batch, cut=cut))
        return replace(made, rows=[*made.rows])

    def shape(self, sql: str) -> Shape:
        ask = super().shape
        return self._once(("shape", sql), lambda: ask(sql))

    def batches(self) -> tuple[int, ...]:
        return self._once("batches", super().batches)

    def ranges(self) -> list[tuple[int, OffsetRanges]]:
        return [*self._once("ranges", super().ranges)]

    def columns(self) -> tuple[str, ...]:
        return self._once("columns", super().columns)

    def size(self, *, committed: bool = False, cut: Cut = WHOLE) -> int:
        ask = super().size
        return self._once(("size", committed, cut), lambda: ask(committed=committed, cut=cut))

    def origins(self, names: Sequence[str]) -> Iterator[tuple[Row, int, int, int | None]]:
        ask = super().origins
        yield from self._once(("origins", *names), lambda: [*ask(names)])

    def _tree(self, sql: str) -> Any:
        ask = super()._tree
        # As text: whoever has the tree may change it.
        return json.loads(self._once(("tree", sql), lambda: json.dumps(ask(sql))))

    def _query(self, tree: str) -> str:
        ask = super()._query
        return self._once(("query", tree), lambda: ask(tree))


@pytest.fixture(scope="module")
def asked_once() -> Iterator[None]:
    """The judge's ledgers are such ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AskedOnce, "known", {}, raising=False)
        for module in (harness.judge.windows, harness.judge.sinks):
            patch.setattr(module, "Ledger", AskedOnce)
        yield

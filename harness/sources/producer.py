"""Sends a workload to a source: meant in the ledger first, then sent, then every answer into the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from harness.run_folder.ledger import Answer, Attempts, State
from harness.sources.base import Sender, TellsUnmet
from harness.workloads.base import Record, Workload

PORTION = 2000


class Producer:
    """Sends the records of a workload in order, by a sender that is its own to close.

    Counters: `sent` records taken, `counts` of them by what became of each; `total` there are."""

    def __init__(self, workload: Workload, attempts: Attempts, sender: Sender) -> None:
        self._records = workload.records()
        self._attempts = attempts
        self._sender = sender
        self._closed = False
        self.counts = dict.fromkeys(State, 0)
        self._reached: dict[int, int] = {}
        self.total = workload.count

    @property
    def sent(self) -> int:
        """Records taken, sent and answered one way or another."""
        return sum(self.counts.values())

    @property
    def acknowledged(self) -> int:
        return self.counts[State.ACKNOWLEDGED]

    @property
    def reached(self) -> Mapping[int, int]:
        """Next offsets by partition, as far as records were acknowledged. Never changes once it was given out."""
        return self._reached

    @property
    def done(self) -> bool:
        """True once every record was sent and answered."""
        return self.sent >= self.total

    def send(self, n: int) -> int:
        """Take the next `n` records, or those that are left; returns how many, once the ledger holds their answers.

        Raises HarnessError if the
        ledger cannot be written: then nothing of that portion was sent, or its answers stay unknown."""
        taken = 0
        while not self._closed and (portion := list(islice(self._records, min(PORTION, n - taken)))):
            self._portion([self._sender.placed(record) for record in portion])
            taken += len(portion)
        return taken

    def close(self) -> None:
        """Disconnect, and take no more records. Read the source back only after this. Safe to call twice."""
        self._closed = True
        self._sender.close()

    @property
    def unmet(self) -> str:
        """Once it is closed: why the input was not as the scenario asks for it; empty if it was."""
        return self._sender.unmet if isinstance(self._sender, TellsUnmet) else ""

    def _portion(self, portion: Sequence[Record]) -> None:
        self._attempts.meant(portion)
        answers = self._sender.send(portion)
        self._attempts.answers(answers)
        for answer in answers:
            self.counts[answer.state] += 1
        self._reached = _behind(self._reached, answers)


def _behind(reached: Mapping[int, int], answers: Sequence[Answer]) -> dict[int, int]:
    out = dict(reached)
    for answer in answers:
        if answer.partition is not None and answer.offset is not None:
            out[answer.partition] = max(answer.offset + 1, out.get(answer.partition, 0))
    return dict(sorted(out.items()))

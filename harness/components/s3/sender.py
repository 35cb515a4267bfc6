"""Who puts the objects of a run's input."""

from __future__ import annotations

from collections.abc import Sequence

from harness import wait
from harness.components.files.dropped import Dropped, FileSender
from harness.components.s3.run_prefix import Room
from harness.errors import StackError, WaitError
from harness.run_folder.ledger import Answer, State
from harness.workloads.base import Record

WITHIN_S = 60.0
"""How long an object is put again and again, while the server may be away. The same one twice is one."""


class ObjectSender(FileSender):
    """Puts objects of at most `per_file` records. One without an answer may be there."""

    def __init__(self, into: Dropped, per_file: int, room: Room) -> None:
        super().__init__(into, per_file)
        self._room = room

    def _dropped(self, number: int, records: Sequence[Record]) -> list[Answer]:
        form = self._into.form
        good = [record for record in records if form.takes(record.value)]
        error = self._put(number, [record.value for record in good]) if good else ""
        places = {record.seq: at for at, record in enumerate(good)}
        out = []
        for record in records:
            if record.seq not in places:
                out.append(Answer(record.seq, State.FAILED, error=form.refused))
            elif error:
                out.append(Answer(record.seq, State.UNKNOWN, error=error))
            else:
                out.append(Answer(record.seq, State.ACKNOWLEDGED, number, places[record.seq]))
        return out

    def _put(self, number: int, values: list[bytes]) -> str:
        """Why it is not known to be there; empty if it is."""
        name, data = self._into.file(number).name, self._into.form.written(values)
        # Spark may list it at once.
        self._into.values[number] = values

        def put() -> bool | wait.Waiting:
            try:
                self._room.write(name, data)
            except StackError as failure:
                return wait.Waiting(str(failure))
            return True

        try:
            wait.until(f"{name} to be put", put, within_s=WITHIN_S)
        except WaitError as failure:
            return str(failure)
        return ""

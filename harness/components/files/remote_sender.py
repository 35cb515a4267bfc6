"""Who drops files into a folder on a server."""

from __future__ import annotations

import http.client
from functools import partial
from typing import TYPE_CHECKING

from harness.components.files.dropped import FileSender
from harness.errors import StackError, WaitError
from harness.run_folder.ledger import State
from harness.wait import Waiting, until

if TYPE_CHECKING:
    from harness.components.files.remote_source import RemoteOpenFolder

BACK_S = 60.0
"""How long a server that gave no answer is asked whether the file is there."""


class RemoteSender(FileSender):
    """Each file is whole at once."""

    def __init__(self, into: RemoteOpenFolder) -> None:
        super().__init__(into.dropped, into.per_file)
        self._open = into

    def _write(self, number: int, values: list[bytes]) -> tuple[State, str]:
        """Return whether the file is there, and what the server answered if it is not."""
        into, remote = self._open, self._open.remote
        assert remote is not None
        # Spark may list it at once.
        into.dropped.values[number] = values
        try:
            remote.write(into.dropped.file(number).name, into.dropped.form.written(values))
            return State.ACKNOWLEDGED, ""
        except StackError as failure:
            error, answer = str(failure), partial(self._answer, number, coming=_may_come(failure))
        try:
            what = f"an answer whether {into.dropped.file(number).name} is there"
            found = until(what, answer, within_s=BACK_S, every_s=0.2)
        except WaitError:
            into.doubtful.add(number)
            return State.UNKNOWN, error
        if found == "yes":
            return State.ACKNOWLEDGED, ""
        del into.dropped.values[number]
        return State.FAILED, error

    def _answer(self, number: int, *, coming: bool) -> str | Waiting:
        try:
            if self._open.there(number) is not None:
                return "yes"
        except StackError as failure:
            return Waiting(str(failure))
        return Waiting("it is not there, and may still come") if coming else "no"


def _may_come(failure: BaseException | None) -> bool:
    """Return whether the server can still be at work on the request: it has not answered, and the connection was
    neither refused nor cut off."""
    while failure is not None:
        if isinstance(failure, (OSError, http.client.HTTPException)) and not isinstance(failure, ConnectionError):
            return True
        failure = failure.__cause__
    return False

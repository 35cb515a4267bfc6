"""What every stack has in common that lives in a session of ours: it is up or not, and a `with` block takes it down."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.errors import StackError
from harness.session.session import Session, need_space


class SessionStack(ABC):
    """`logs` is where what is started writes."""

    def __init__(self, logs: Path) -> None:
        self.logs = logs.absolute()
        self._session: Session | None = None

    @abstractmethod
    def up(self) -> None:
        """Come up. Raises StackError, and HarnessError when the disk is full; nothing is left running then."""

    @abstractmethod
    def down(self) -> None:
        """End everything. Safe to call twice."""

    def _ready(self) -> None:
        """Look, before anything is started, whether it may be. Raises StackError and HarnessError."""
        if self._session is not None:
            raise StackError("this stack is up already; take it down first")
        self.logs.mkdir(parents=True, exist_ok=True)
        need_space(self.logs)

    def _up(self) -> Session:
        if self._session is None:
            raise StackError("the stack is not up")
        return self._session

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.down()

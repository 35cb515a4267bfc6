"""One part of a run on a server of SQL, as the harness asks it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar


class SqlPart(ABC):
    """A schema or a database, called `name`. `title` is what its server is called, `error` what its client raises,
    `limit` the statement that ends later ones after so many `seconds`."""

    title: ClassVar[str]
    error: ClassVar[type[Exception]]
    limit: ClassVar[str]
    name: str

    @abstractmethod
    def connect(self, name: str) -> Any:
        """Return a connection that commits each statement; the server knows it by `name`. Raises `error`."""

    @abstractmethod
    def run(self, text: str) -> None:
        """Run all statements of a text. Raises `error`."""

    @abstractmethod
    def words(self, failure: BaseException) -> str:
        """Return what the server said."""

    @abstractmethod
    def waited(self, failure: BaseException) -> bool:
        """Return whether it ended a statement that waited for a lock, or took longer than its limit."""

    @abstractmethod
    def lost(self, connection: Any) -> bool:
        """Return whether a connection is closed, as when its server was killed."""

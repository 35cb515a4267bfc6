"""Bounded waiting: the only way this project waits.

Every wait has a deadline and, when it runs out, says what it waited for and what it last saw.
"""

from __future__ import annotations

import fcntl
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import TypeVar

from harness.errors import WaitError

Seen = TypeVar("Seen")
_HERE = threading.local()


def until(
    what: str,
    condition: Callable[[], Seen],
    *,
    within_s: float,
    every_s: float = 0.05,
    stop: threading.Event | None = None,
    hint: str = "",
) -> Seen:
    """Call `condition` until it returns something true, and return that.

    `condition` may return a falsy `Waiting` with words that say why it is not true yet. Raises `WaitError` after
    `within_s` seconds, naming `what` and what was last seen. `stop` ends the wait early (also with `WaitError`)."""

    limit, pause = Deadline(within_s), stop or threading.Event()
    with _counted(what):
        while True:
            _end()
            if seen := condition():
                return seen
            if limit.over():
                text = f"waited {within_s:g} s for {what}; last saw {seen!r}"
                raise WaitError(f"{text}. {hint}".rstrip(". ") if hint else text)
            if pause.wait(every_s):
                raise WaitError(f"stopped while waiting for {what}")


@contextmanager
def ended_by(failure: Callable[[], BaseException | None]) -> Iterator[None]:
    """In this thread, let each wait raise what `failure` returns, once it returns an exception: as a signal would end
    it in the main thread."""
    before, _HERE.failure = _failure(), failure
    try:
        yield
    finally:
        _HERE.failure = before


def undisturbed() -> AbstractContextManager[None]:
    """For cleaning up: here no wait of this thread is ended by `ended_by`."""
    return ended_by(lambda: None)


def pause(seconds: float) -> None:
    """Rest between two checks of a loop that has its own deadline. Raises what ends the waits of this thread."""
    _end()
    with _counted("the next check"):
        threading.Event().wait(seconds)


@contextmanager
def tallied() -> Iterator[dict[str, float]]:
    """What this thread waits for meanwhile, and no other one, in seconds, by what it waits for, each number in that as
    `N`. A wait within a wait is part of the outer one."""
    before, waited = getattr(_HERE, "waited", None), dict[str, float]()
    _HERE.waited = waited
    try:
        yield waited
    finally:
        _HERE.waited = before


@contextmanager
def _counted(what: str) -> Iterator[None]:
    waited: dict[str, float] | None = getattr(_HERE, "waited", None)
    if waited is None:
        yield
        return
    _HERE.waited, began_s, name = None, monotonic(), re.sub(r"\d+", "N", what)
    try:
        yield
    finally:
        _HERE.waited = waited
        waited[name] = waited.get(name, 0.0) + monotonic() - began_s


def _failure() -> Callable[[], BaseException | None]:
    failure: Callable[[], BaseException | None] = getattr(_HERE, "failure", lambda: None)
    return failure


def _end() -> None:
    if failure := _failure()():
        raise failure


@contextmanager
def locked(path: Path, *, within_s: float, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    """Hold the lock file `path` alone among all processes, or with `LOCK_SH` beside others that do. The system lets go
    of it when its holder dies.

    Raises WaitError when another process holds it for longer than `within_s` seconds."""
    with path.open("a+", encoding="utf-8") as file:

        def taken() -> bool | Waiting:
            try:
                fcntl.flock(file, how | fcntl.LOCK_NB)
            except BlockingIOError:
                return Waiting("another process holds it")
            return True

        until(f"the lock {path}", taken, within_s=within_s)
        yield


class Waiting:
    """A falsy value with words: return it from `condition` to say what was seen instead."""

    def __init__(self, words: str) -> None:
        self.words = words

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self.words


class Deadline:
    """A point on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = monotonic() + seconds

    def left_s(self) -> float:
        """Return seconds left, never below zero."""
        return max(0.0, self._end - monotonic())

    def over(self) -> bool:
        """Return True once the time is up."""
        return monotonic() >= self._end

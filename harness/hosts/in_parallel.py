"""Several tasks at once, in threads that keep no process from ending: one that hangs is named and left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from queue import SimpleQueue

from harness.errors import StackError

START_WITHIN_S = 3600.0
"""Each start has its own deadlines. An engine may have images to pull."""
Task = Callable[[], None]


class Pool:
    """So many threads. Those of `concurrent.futures` are waited for when the interpreter ends, without a deadline."""

    def __init__(self, many: int) -> None:
        self._many = many
        self._tasks: SimpleQueue[tuple[Future[None], Task] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._names: dict[Future[None], str] = {}

    def submit(self, name: str, task: Task) -> Future[None]:
        """Do it in one of the threads. Before `close`."""
        future: Future[None] = Future()
        self._names[future] = name
        self._tasks.put((future, task))
        if len(self._threads) < self._many:
            self._threads.append(threading.Thread(target=self._work, name=f"job {name}", daemon=True))
            self._threads[-1].start()
        return future

    def _work(self) -> None:
        while (next_ := self._tasks.get()) is not None:
            future, task = next_
            if future.set_running_or_notify_cancel():
                try:
                    task()
                except BaseException as failure:
                    future.set_exception(failure)
                else:
                    future.set_result(None)

    def close(self, *, within_s: float) -> list[str]:
        """Begin no more, and wait for those that have begun; the names of those that are still at work then."""
        begun = [future for future in self._names if not future.cancel()]
        for _ in self._threads:
            self._tasks.put(None)
        _, left = wait(begun, timeout=within_s)
        return [self._names[future] for future in begun if future in left]


def together(starts: Sequence[Task], *, within_s: float = START_WITHIN_S) -> None:
    """Run all at once; raise the first failure without waiting for the others, and StackError when the time is up."""
    pool = Pool(len(starts))
    try:
        begun = [pool.submit(getattr(start, "__qualname__", "a start"), start) for start in starts]
        done, left = wait(begun, timeout=within_s, return_when=FIRST_EXCEPTION)
        for each in done:
            each.result()
    finally:
        at_work = pool.close(within_s=0)
    if left:
        raise StackError(f"waited {within_s:g} s for the stack to start; still at work: {', '.join(at_work)}")

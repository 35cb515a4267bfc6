"""The standbys of a stack's runs: made, unseen by whoever looks at a run until their program begins, gone with it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from harness.components.spark import driver_process, standby
from harness.hosts.local import LocalProcess
from harness.resources import RunResources
from harness.session import reaper
from harness.stack import Driver

Begun = TypeVar("Begun", bound=Driver)


class Standbys:
    """Those of one stack. A run has at most one that nobody may see."""

    def __init__(self) -> None:
        self._folders: dict[str, list[Path]] = {}
        self._hidden: dict[str, tuple[str, ...]] = {}
        """By run, what the processes carry that nobody may see yet."""

    def make(
        self, own: RunResources, number: int, folder: Path, begin: Callable[[], Begun], shown: Callable[[Begun], None]
    ) -> standby.StandbyDriver:
        """One that becomes attempt `number`, begun by `begin`; `shown` is called with its driver once it may be seen.
        Raises what `begin` raises; `folder` goes with the run."""
        marks = driver_process.marks(own, number)
        self._folders.setdefault(own.run_id, []).append(folder)
        # Before there is anything to be seen.
        self._hidden[own.run_id] = marks
        try:
            driver = begin()
        except BaseException:
            self._hidden.pop(own.run_id, None)
            raise

        def seen() -> None:
            shown(driver)
            self._hidden.pop(own.run_id, None)

        return standby.StandbyDriver(driver, folder, marks, seen)

    def seen(self, own: RunResources, found: Sequence[LocalProcess]) -> list[LocalProcess]:
        """Those of `found` that may be seen."""
        hidden = self._hidden.get(own.run_id)
        return [each for each in found if not (hidden and reaper.carries(each.pid, *hidden))]

    def forget(self, run: str) -> None:
        """That run is over: remove what its standbys left."""
        self._hidden.pop(run, None)
        for folder in self._folders.pop(run, ()):
            shutil.rmtree(folder, ignore_errors=True)

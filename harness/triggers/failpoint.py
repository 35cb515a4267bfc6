"""The trigger `failpoint`: the pipeline's own code has come to a place that it names, and waits there."""

from __future__ import annotations

from pathlib import Path

from harness.context import Listing, Reached, RunContext
from harness.errors import WaitError
from harness.fields import values as v
from harness.kinds import About, Refusals
from harness.scenario import Step, Trigger
from harness.triggers.base import Planned, Trait, alone, no_query, wait_until


class Failpoint:
    """Armed by a file that `harness.failpoint` looks for in the run's folder."""

    about = About(
        name="failpoint",
        summary="a place in the pipeline's own code, which it names to harness.failpoint",
        example="{failpoint: after-insert, batch: 2}",
        options=v.Label,
    )
    traits = frozenset({Trait.IN_PROGRAM})

    def trigger(self, value: str, *, batch: int | None = None, query: str | None = None) -> Trigger:
        """At the failpoint `value`."""
        return Trigger(kind=self.about.name, value=value, place=f"failpoint {value}", batch=batch, query=query)

    def refusals(self, trigger: Trigger, planned: Planned) -> Refusals:
        """The pipeline's own code knows its batch, and whose it is."""
        return no_query(trigger)

    def wait(self, run: RunContext, step: Step, *, later: int, freeze: bool) -> Reached:
        """The program itself waits there, so nothing has to be frozen."""
        when = step.when
        alone(run, when)
        folder = _folder(run)
        folder.mkdir(exist_ok=True)
        # Who came to it as the last step let it go says so only now.
        for old in folder.glob(f"reached.{when.value}.*"):
            old.unlink(missing_ok=True)
        (folder / (f"{when.value}" if when.batch is None else f"{when.value}@{when.batch}")).touch()
        try:
            wait_until(run, when, lambda: bool(_reached(folder, when)))
        except WaitError:
            self.release(run, when)
            raise
        word = _reached(folder, when)[0]
        return Reached(int(word) if word else when.batch, before=run.observer.listing())

    def agrees(self, trigger: Trigger, reached: Reached, listing: Listing) -> bool:
        """Only the pipeline's own code knows where that is."""
        return True

    def release(self, run: RunContext, trigger: Trigger) -> None:
        """Take away the files that armed it and those that said it was reached."""
        folder = _folder(run)
        for path in [*folder.glob(f"{trigger.value}*"), *folder.glob(f"reached.{trigger.value}.*")]:
            path.unlink(missing_ok=True)


def _reached(folder: Path, when: Trigger) -> list[str]:
    """Return the batches in which it was reached, empty texts for unnumbered ones; of a step that names a batch that
    one alone."""
    words = [path.read_text(encoding="utf-8") for path in sorted(folder.glob(f"reached.{when.value}.*"))]
    return [word for word in words if when.batch is None or word in ("", str(when.batch))]


def _folder(run: RunContext) -> Path:
    return run.own.folder / "failpoints"


KIND = Failpoint()

"""The one stack of a suite: which, already up or not, and up for as long as the suite lasts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import starmap
from pathlib import Path

from harness.errors import HarnessError, Interrupted, UsageError
from harness.run_folder import store
from harness.scenario import Scenario
from harness.stack import RunsSparkVersions, Stack, TakesArchives
from harness.stacks import other_versions
from harness.stacks.addresses import NoAddress, Where, missing
from harness.stacks.kind import StaysUp
from harness.stacks.needed_parts import needed
from harness.stacks.registry import STACKS
from harness.stacks.supported import not_run, refuse, without_address
from harness.suite.options import Options
from harness.suite.side_by_side import struck_components


def open_stack(name: str, reports: Path, where: Where | None = None, *, needs: Collection[str] = ()) -> Stack:
    """Return the stack called `name`, not yet up; its services log under `reports/latest/logs`. `where` is a cluster
    that is there already, `needs` are the components that come up with it. Raises UsageError, and StackError where a
    package is missing."""
    logs = store.latest(reports) / "logs"
    return STACKS[name].open(logs, needs=needs, where=where)


def notify(words: str) -> None:
    """Write to standard error."""
    print(f"onceproof: {words}", file=sys.stderr, flush=True)


Notify = Callable[[str], object]


def stack_of(
    options: Options, work: Sequence[Scenario] = (), *, struck: Collection[str] = (), notify: Notify = notify
) -> Stack:
    """Return the stack, not yet up. `struck` are components that faults stop, besides those of `work`; `notify` gets
    the messages for its user. Raises UsageError for `work` that it does not support."""
    needs = needed(work)
    try:
        stack = _that_is_up(options, needs, {*struck, *struck_components(work)}, notify) or open_stack(
            options.stack, options.reports, options.where, needs=needs
        )
    except NoAddress as refused:
        raise UsageError("\n".join([str(refused), *starmap(not_run, _lacking(work, options).items())])) from refused
    refuse(work, stack.name)
    other_versions.provide(work, notify)
    if isinstance(stack, TakesArchives) and isinstance(stack, RunsSparkVersions):
        for name in dict.fromkeys(each for scenario in work for each in other_versions.of_attempts(scenario)):
            import_module(stack.training).before(notify, name)
    return stack


def addressed(work: Sequence[Scenario], options: Options) -> list[Scenario]:
    """Return those whose components have an address each, where they need one; the others are named. Raises UsageError
    if none is left."""
    lacking = _lacking(work, options)
    left = [each for each in work if each.path not in lacking]
    if not left:
        raise missing(list(dict.fromkeys(name for names in lacking.values() for name in names)))
    for path, names in lacking.items():
        print(not_run(path, names))
    return left


def _lacking(work: Sequence[Scenario], options: Options) -> dict[str, list[str]]:
    """Return by path, the components of a scenario for which an address is missing."""
    at = options.where.at if options.where else ()
    found = {each.path: without_address(each, options.stack, at) for each in work}
    return {path: names for path, names in found.items() if names}


def _that_is_up(options: Options, needs: Collection[str], struck: Collection[str], notify: Notify) -> Stack | None:
    """Return the stack that `onceproof up` left running; None if there is none that can be used."""
    kind = STACKS[options.stack]
    if options.own_stack or not isinstance(kind, StaysUp):
        return None
    return kind.that_is_up(store.latest(options.reports) / "logs", needs=needs, own=struck, notify=notify)


@contextmanager
def up(stack: Stack, notify: Notify = notify) -> Iterator[Stack]:
    """Bring the stack up, and down afterwards, however the work ends. `notify` gets the messages for its user."""
    trains = import_module(stack.training) if isinstance(stack, TakesArchives) else None
    if trains is not None:
        trains.before(notify)
    try:
        stack.up()
        if trains is not None:
            trains.after(stack, notify)
        yield stack
    except (HarnessError, Interrupted) as first:
        try:
            stack.down()
        except HarnessError as then:
            # What went wrong is reported first, even if it also hinders the end.
            first.args = (f"{first}\nand then: {then}",)
        raise
    except BaseException:
        stack.down()
        raise
    else:
        stack.down()

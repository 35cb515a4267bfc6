"""What a kind of stack is made of. One module says what is known of it before anything starts
(`harness/stacks/containers/__init__.py`); what runs it stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from harness.kinds import About
from harness.scenario import Scenario
from harness.stack import Means, Stack

if TYPE_CHECKING:
    # It asks which stacks there are.
    from harness.stacks.addresses import Where


class StackKind(Protocol):
    """A stack, as `--stack` names it."""

    @property
    def about(self) -> About:
        """Who it is."""

    @property
    def means(self) -> frozenset[Means]:
        """What it can do to the processes of a run."""

    @property
    def has(self) -> type[Any]:
        """The ability of the components that it can have, such as `AsProcesses`."""

    def open(self, logs: Path, *, needs: Collection[str], where: Where | None) -> Stack:
        """Return one that is not up: its services log under `logs`, `needs` are the components that come up with it,
        `where` is the cluster that a user has named. Raises UsageError, and StackError where a package is missing."""


@runtime_checkable
class OneAtATime(Protocol):
    """No run is played beside another on it."""

    one_at_a_time: bool


@runtime_checkable
class AtAddresses(Protocol):
    """It is a cluster that is there already: its user says where its Spark and its components are."""

    at_addresses: bool


@runtime_checkable
class HasSparkVersions(Protocol):
    """It can run drivers on other Spark versions than the installed one: its stack is `RunsSparkVersions`."""

    has_spark_versions: bool


@runtime_checkable
class StaysUp(Protocol):
    """Its stack can be one that `onceproof up` left running."""

    def that_is_up(
        self, logs: Path, *, needs: Collection[str], own: Collection[str], notify: Callable[[str], object]
    ) -> Stack | None:
        """Return the one that is up, which from here on does not end for want of users; None without one that can be
        used, and `notify` gets the reason. Components in `own` are started with the command all the same."""


@runtime_checkable
class Refuses(Protocol):
    """It does some things of a scenario otherwise, besides what its means and its components say."""

    def refusals(self, scenario: Scenario) -> Iterator[str]:
        """Return what a scenario asks for and the stack does not do, each in words that follow `asked for`."""

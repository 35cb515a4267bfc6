"""What a fault is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol, runtime_checkable

from harness.context import Reached, RunContext
from harness.fields.shape import Shape
from harness.kinds import About, Refusals
from harness.scenario import Fault, Impact, Step, Trigger
from harness.stack import Means
from harness.triggers.base import Planned

NOT_BORNE_OUT = "the evidence does not bear out that it died at the crash point"


class NoOptions(Shape):
    """Nothing beside the fault's name."""


class Proof(Enum):
    """Which listing of the checkpoint has to agree that the fault was injected where its trigger says."""

    BEFORE = auto()
    """The one at the trigger: a driver that lives goes on as soon as it may, and one that was asked to end may finish
    its batch on the way."""
    AFTER = auto()
    """The one after the fault: of a driver that was killed the checkpoint still says where it stood."""
    SINK = auto()
    """The one at the trigger, and rows of a sink went with it, so nothing else has to be in flight."""
    IN_PROGRESS = auto()
    """The one after the fault has the batch planned and not committed, wherever the trigger stood; with no checkpoint
    to compare, the trigger's own word counts."""


@dataclass(frozen=True, kw_only=True)
class Injection:
    """What a fault did. `signalled` maps each victim, a process by its name, to what became of it, in words; no
    process was struck if it is empty. `lived`: a victim that was to die lives on. `driver_status` is the driver's exit
    status (negative for a signal) if the fault ended it. `proof` says which listing has to agree, `why` why no
    process of the pipeline was affected, `note` what else a reader should know. `snapshot_taken`: the snapshot was
    taken while the victims were frozen. `later`: what lives on of the driver stands still, and the driver ends only
    once that goes on again. `healed`: what it took away is back; where it is not, a driver which stops after it is not
    to blame. `committed_meanwhile`: the newest batch that each query had committed before what was away came back, by
    its checkpoint's name. `disconnected`: the components whose servers ended their connections with a driver that was
    paused. `confirm` is asked once everything goes on again, and says why it was no injection after all."""

    signalled: Mapping[str, str]
    lived: bool = False
    driver_status: int | None = None
    proof: Proof = Proof.BEFORE
    why: str = ""
    snapshot_taken: bool = False
    later: bool = False
    note: str = ""
    healed: bool = True
    committed_meanwhile: Mapping[str, int] = field(default_factory=dict)
    disconnected: tuple[str, ...] = ()
    confirm: Callable[[], str] | None = None


class FaultKind(Protocol):
    """A kind of fault: a word after `do`. `about.options` is the model of the keys that may stand beside it."""

    @property
    def about(self) -> About:
        """Who it is."""

    @property
    def impact(self) -> Impact:
        """What it does to the attempt of the driver that it strikes; `Impact.NONE` if it strikes something else."""

    @property
    def needs(self) -> frozenset[Means]:
        """What it needs of a stack."""

    def refusals(self, fault: Fault, trigger: Trigger | None, planned: Planned) -> Refusals:
        """Return why it can strike nothing at that trigger, in such a run; nothing if it can. Without a trigger, which
        the file says wrongly: why at none."""

    def inject(self, run: RunContext, step: Step, reached: Reached) -> Injection:
        """Do it where the trigger was met, at `reached`. No attempt is started before this returns."""


@runtime_checkable
class VariesImpact(Protocol):
    """A fault whose options decide what it does to the attempt."""

    def impact_of(self, options: Mapping[str, Any]) -> Impact:
        """In place of `impact`."""


@runtime_checkable
class Implies(Protocol):
    """A fault that implies a trigger if `when` names none."""

    def trigger(self, batch: int | None, query: str | None) -> Trigger | str:
        """Return the trigger that such a `when` stands for; or what it lacks, as words that are the whole of a
        `Refusal`."""


def implied(kind: FaultKind, batch: int | None, query: str | None) -> Trigger | str | None:
    """Return what `Implies.trigger` returns of this fault; None where `when` has to name a trigger."""
    # By attribute first: a night's plans ask a million times, and Python 3.11 compares with a protocol in 30 us.
    return kind.trigger(batch, query) if hasattr(kind, "trigger") and isinstance(kind, Implies) else None

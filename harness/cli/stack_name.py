"""The name of a stack on the command line."""

from __future__ import annotations

from typing import Any

import click

from harness.stacks.kind import OneAtATime
from harness.stacks.registry import STACKS, names


class StackName(click.ParamType):  # type: ignore[type-arg]  # Click 8.1 has no type arguments there
    """One of the registry's, which is asked once a command is read. `side_by_side`: one that takes several runs."""

    name = "stack"

    def __init__(self, *, side_by_side: bool = False) -> None:
        self._side_by_side = side_by_side

    def _choice(self) -> click.Choice[str]:
        known = names()
        if self._side_by_side:
            known = [name for name in known if not isinstance(STACKS[name], OneAtATime)]
        return click.Choice(known)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Refuses another one as `click.Choice` does."""
        return self._choice().convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:
        """Return all names, for help. Click 8.1 gives no context."""
        given = {} if ctx is None else {"ctx": ctx}
        return self._choice().get_metavar(param, **given)

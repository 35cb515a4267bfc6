"""Numbers of the command line."""

from __future__ import annotations

from math import isnan
from typing import Any

import click


class Range(click.FloatRange):
    """One that has no NaN in it, which no bound refuses."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises click.BadParameter."""
        number = float(super().convert(value, param, ctx))
        if isnan(number):
            self.fail(f"{value!r} is no number", param, ctx)
        return number

"""The base of every mapping in a scenario file, as a pydantic model."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """A mapping of known keys. `short` names the key that a bare text stands for; `hidden` may only be used so.
    `others` names the field that has what stands under all other keys; no file writes it."""

    model_config = ConfigDict(extra="forbid")
    short: ClassVar[str] = ""
    hidden: ClassVar[bool] = False
    others: ClassVar[str] = ""

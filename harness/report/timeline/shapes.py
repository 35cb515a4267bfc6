"""What a picture is made of. Across, a place is a share of the width in per cent; down, it is in pixels. So the picture
fits a telephone and a wide screen while its letters keep their size.

Classes are ours; data stands only in `text` and `title`, which the template escapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LETTER = 6.8
"""Pixels that a letter of a label takes."""
WIDE, NARROW = 7.0, 3.4
"""Pixels that one per cent has on a screen, and on a telephone."""
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400)
TICKS = 12
GRID = 1000
"""The width of the inner co-ordinates of a path."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What all have: a class of the style sheet, the top, and what a pointer over it shows."""

    kind: str
    y: int
    title: str = ""


@dataclass(frozen=True, kw_only=True)
class Box(Shape):
    """A rectangle."""

    x: str
    width: str
    height: int


@dataclass(frozen=True, kw_only=True)
class Label(Shape):
    """A text; `anchor` is `start`, `middle` or `end`. `screen`: a telephone does not show it."""

    x: str
    text: str
    anchor: str = "start"
    screen: bool = False


@dataclass(frozen=True, kw_only=True)
class Stroke(Shape):
    """An upright or level line."""

    x: str
    x2: str
    y2: int


@dataclass(frozen=True, kw_only=True)
class Mark(Shape):
    """A sign at one place: `cross` for a death, `diamond` for a reading."""

    sign: str
    x: str


@dataclass(frozen=True, kw_only=True)
class Way(Shape):
    """A path in a box, `GRID` wide."""

    height: int
    d: str


@dataclass(frozen=True)
class Scale:
    """Seconds to places."""

    end: float

    def at(self, seconds: float) -> float:
        """Per cent of the width."""
        return 100 * min(max(seconds, 0.0), self.end) / self.end if self.end > 0 else 0.0

    def x(self, seconds: float) -> str:
        """Return the same as an attribute."""
        return percent(self.at(seconds))

    def grid(self, seconds: float) -> str:
        """Return the same within a path."""
        return short(self.at(seconds) * GRID / 100)


def percent(share: float) -> str:
    """`12.3%`."""
    return f"{short(share)}%"


def short(value: float) -> str:
    """Return two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def box(kind: str, scale: Scale, times: tuple[float, float], place: tuple[int, int], title: str = "") -> Box:
    """Return a rectangle from one time to another; `place` is its top and its height."""
    left, right = map(scale.at, times)
    y, height = place
    width = percent(max(0.0, right - left))
    return Box(kind=kind, x=percent(left), width=width, y=y, height=height, title=title)


def upright(kind: str, scale: Scale, seconds: float, place: tuple[int, int], title: str = "") -> Stroke:
    """Return an upright line at a time."""
    y, height = place
    return Stroke(kind=kind, x=scale.x(seconds), x2=scale.x(seconds), y=y, y2=y + height, title=title)


def level(kind: str, scale: Scale, times: tuple[float, float], y: int, title: str = "") -> Stroke:
    """Return a level line from one time to another."""
    return Stroke(kind=kind, x=scale.x(times[0]), x2=scale.x(times[1]), y=y, y2=y, title=title)


def fitting(scale: Scale, times: tuple[float, float], y: int, text: str, *, kind: str = "in") -> list[Label]:
    """Return a label in the middle of a box; none if it does not fit."""
    left, right = map(scale.at, times)
    space, need = right - left, LETTER * len(text) + 6
    if space * WIDE < need:
        return []
    middle = percent((left + right) / 2)
    return [Label(kind=kind, x=middle, y=y, text=text, anchor="middle", screen=space * NARROW < need)]


def ticks(end: float) -> list[float]:
    """Round seconds from 0, `TICKS` at most."""
    step = next((step for step in STEPS if end / step <= TICKS), end / TICKS or 1.0)
    return [place * step for place in range(int(end / step) + 1)]


def staircase(points: Sequence[tuple[float, int]], scale: Scale, most: int, height: int) -> str:
    """Return a curve that keeps its value until the next point, as a path from the first point to the end."""
    if not points or most <= 0:
        return ""

    def down(count: int) -> str:
        return short(height - height * count / most)

    first, *rest = points
    out = [f"M{scale.grid(first[0])} {short(height)}V{down(first[1])}"]
    out += [f"H{scale.grid(seconds)}V{down(count)}" for seconds, count in rest]
    return "".join([*out, f"H{GRID}"])


def combs(times: Iterable[float], scale: Scale, height: int) -> str:
    """Upright lines at these times, as one path."""
    return "".join(f"M{place} 0V{height}" for place in dict.fromkeys(map(scale.grid, times)))

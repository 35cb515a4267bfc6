"""The block of YAML in a pipeline's own comments that gives defaults to the scenarios that name it.

    # /// onceproof
    # args: [--topic, "{topic}"]
    # sink: {postgres: payments, expected: select id from ledger, key: [id]}
    # ///

It is text to us, as PEP 723 is to its readers: the program is never imported nor run. Only its first 256 KB are read.
"""

from __future__ import annotations

from pathlib import Path

from harness.errors import Mistake
from harness.load.models import shapes
from harness.load.reader import Section, read
from harness.load.yaml_tree import BYTES_MAX, Node, grow

OPENS = "# /// onceproof"
CLOSES = "# ///"


def header(path: Path, *, file: str, mistakes: list[Mistake]) -> Section | None:
    """Return the header block of the program at `path`, an empty section if it has none; None if it cannot be read.
    Mistakes are placed in `file`."""
    with path.open("rb") as program:
        text = program.read(BYTES_MAX).decode("utf-8", errors="replace")
    lines = [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")]
    opened = [number for number, line in enumerate(lines, 1) if line == OPENS]
    if not opened:
        return Section(file, Node(1, 1), "", mistakes)
    for number in opened[1:]:
        mistakes.append(Mistake(file, number, 1, f"a second header block; the first begins on line {opened[0]}"))
    found: list[Mistake] = []
    inside = block(lines, opened[0], file=file, mistakes=found)
    tree = grow("\n".join(inside), file=file, mistakes=found, first=(opened[0] + 1, 3))
    mistakes.extend(found)
    if found:
        return None
    if tree is None:
        return Section(file, Node(1, 1), "", mistakes)
    return read(tree, shapes().header, file=file, path="", mistakes=mistakes)


def block(lines: list[str], opened: int, *, file: str, mistakes: list[Mistake]) -> list[str]:
    """Return the lines of a block without their `# `, none with a mistake; `opened` is the number of its first line,
    from
    1."""
    inside: list[str] = []
    for number, line in enumerate(lines[opened:], opened + 1):
        if line == CLOSES:
            return inside
        if not line.startswith("# ") and line != "#":
            words = f"a line of the header block begins with '# '; the block of line {opened} ends with '{CLOSES}'"
            mistakes.append(Mistake(file, number, 1, words))
            return []
        inside.append(line[2:])
    mistakes.append(Mistake(file, opened, 1, f"the header block that begins here has no end: '{CLOSES}'"))
    return []

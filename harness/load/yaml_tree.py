"""YAML text to a tree that knows where each thing stands, and nothing else.

Only events of ruamel.yaml's parser are used: no object is ever made from a file. Scalars stay text (`no`, `017` and
`12:30:45` are what they look like); the models say later what each must be. Refused, each with its place: tags,
anchors, aliases, a second document, a key twice, a key that is not text; more than 256 KB, more than 10 000 values,
more than 32 levels. The parser keeps its own stack, so depth cannot exhaust Python's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from harness.errors import Mistake
from harness.fields.hints import seen

BYTES_MAX = 256_000
DEPTH_MAX = 32
VALUES_MAX = 10_000
"""ruamel reads about 60 000 values a second: this keeps, with `BYTES_MAX`, the worst file well under a second."""

NO_KEY = "\0"

NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
"""What an unquoted scalar may be and still say nothing (YAML 1.2 core schema)."""


@dataclass
class Node:
    """One value: `items` for a mapping, `elements` for a list, else `text` (None for an empty value).

    `line` and `column` count from 1. `keys` holds where each key of a mapping stands."""

    line: int
    column: int
    text: str | None = None
    items: dict[str, Node] | None = None
    elements: list[Node] | None = None
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)

    def plain(self) -> Any:
        """Return the value as dict, list, str or None. At most `DEPTH_MAX` deep, so this may recurse."""
        if self.items is not None:
            return {key: node.plain() for key, node in self.items.items()}
        if self.elements is not None:
            return [node.plain() for node in self.elements]
        return self.text

    def at(self, loc: tuple[int | str, ...]) -> Node:
        """Return the deepest node on the way `loc`; parts that the file does not have are stepped over."""
        node = self
        for part in loc:
            if node.items is not None and part in node.items:
                node = node.items[str(part)]
            elif node.elements is not None and isinstance(part, int):
                node = node.elements[part]
        return node


class TooMuch(Exception):
    """The file cannot be read on: the mistake that says why."""

    def __init__(self, line: int, column: int, text: str) -> None:
        super().__init__(text)
        self.line, self.column, self.text = line, column, text


@dataclass
class Grower:
    """Builds the tree from events; collects mistakes after which reading can go on."""

    file: str
    first_line: int
    first_column: int
    mistakes: list[Mistake]
    open: list[Node] = field(default_factory=list)
    pending: list[str | None] = field(default_factory=list)
    """For each open mapping the key that waits for its value, None while a key is due."""
    root: Node | None = None
    values: int = 0
    aliases: set[str] = field(default_factory=set)

    def wrong(self, line: int, column: int, text: str) -> None:
        self.mistakes.append(Mistake(self.file, line, column, text))

    def take(self, event: Event) -> None:
        """One event of the parser."""
        line = event.start_mark.line + self.first_line
        column = event.start_mark.column + self.first_column
        if isinstance(event, DocumentStartEvent) and self.root is not None:
            raise TooMuch(line, column, "a second document begins here: a file holds one")
        if isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            self.open.pop()
            self.pending.pop()
        elif isinstance(event, (AliasEvent, ScalarEvent, MappingStartEvent, SequenceStartEvent)):
            self.values += 1
            if self.values > VALUES_MAX:
                raise TooMuch(line, column, f"more than {VALUES_MAX} values: this is no scenario")
            self.value(event, Node(line, column))

    def value(self, event: Event, node: Node) -> None:
        """A scalar, alias or the start of a list or mapping."""
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if isinstance(event, AliasEvent) and anchor not in self.aliases:
            self.aliases.add(str(anchor))
            self.wrong(node.line, node.column, f"alias *{anchor} is not allowed: write the value out")
        elif anchor and not isinstance(event, AliasEvent):
            self.wrong(node.line, node.column, f"anchor &{anchor} is not allowed: write the value out")
        if tag:
            self.wrong(node.line, node.column, f"tag {tag} is not allowed: each key knows its type")
        if isinstance(event, ScalarEvent):
            node.text = self.scalar(event, node)
        self.attach(node, event)
        if isinstance(event, MappingStartEvent):
            node.items = {}
        elif isinstance(event, SequenceStartEvent):
            node.elements = []
        else:
            return
        self.open.append(node)
        self.pending.append(None)
        if len(self.open) > DEPTH_MAX:
            raise TooMuch(node.line, node.column, f"more than {DEPTH_MAX} levels deep: this is no scenario")

    def scalar(self, event: ScalarEvent, node: Node) -> str | None:
        """Return its text; None for an unquoted nothing. No NUL, nothing that UTF-8 cannot hold."""
        text = str(event.value)
        if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
            self.wrong(node.line, node.column, "a NUL or half a surrogate pair is not allowed in a text")
        return None if event.style is None and text in NOTHING else text

    def attach(self, node: Node, event: Event) -> None:
        """Hang the node where it belongs; a key of a mapping is remembered until its value comes.

        An alias stands for something that is not known: its key is there, with no value to find fault with."""
        if not self.open:
            self.root = node
            return
        parent, key = self.open[-1], self.pending[-1]
        if parent.items is not None and key is None:
            self.pending[-1] = self.key(parent, node, event)
            return
        self.pending[-1] = None
        if isinstance(event, AliasEvent):
            return
        if parent.elements is not None:
            parent.elements.append(node)
        elif parent.items is not None and key in parent.keys:
            parent.items[key] = node
            if isinstance(event, ScalarEvent) and not event.value and node.text is None:
                node.line, node.column = parent.keys[key]  # an empty value has no place

    def key(self, parent: Node, node: Node, event: Event) -> str:
        """Return the name of a key; one that is not a text gets a name under which its value is dropped."""
        name = node.text
        if name is None:
            if not isinstance(event, AliasEvent):
                self.wrong(node.line, node.column, "a key must be a text")
            return NO_KEY
        if name in parent.keys:
            line = parent.keys[name][0]
            self.wrong(node.line, node.column, f"key {seen(name)} stands here again; it was first on line {line}")
        parent.keys[name] = (node.line, node.column)
        return name


def events(text: str) -> Iterator[Event]:
    """Yield the parser's events, one at a time."""
    yield from YAML(typ="safe", pure=True).parse(text)


def grow(text: str, *, file: str, mistakes: list[Mistake], first: tuple[int, int] = (1, 1)) -> Node | None:
    """Return the tree of one document, None if there is none or it cannot be read. `first` is where its text begins."""
    grower = Grower(file, first[0], first[1], mistakes)
    try:
        for event in events(text):
            grower.take(event)
    except TooMuch as stop:
        grower.wrong(stop.line, stop.column, stop.text)
        return None
    except MarkedYAMLError as error:
        # Of a block scalar ruamel gives the context alone.
        mark, words = error.problem_mark or error.context_mark, error.problem or error.context
        grower.wrong(mark.line + first[0], mark.column + first[1], f"not YAML: {words}")
        return None
    except ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n"), error.position - (before.rfind("\n") + 1)
        grower.wrong(line + first[0], column + first[1], f"not YAML: character U+{ord(text[error.position]):04X}")
        return None
    return grower.root


def decoded(data: bytes, *, file: str, mistakes: list[Mistake]) -> str | None:
    """Return bytes of a file as text; None, with a mistake, if they are too many or not UTF-8."""
    if len(data) > BYTES_MAX:
        mistakes.append(Mistake(file, 1, 1, f"more than {BYTES_MAX} bytes: this is no scenario"))
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
        mistakes.append(Mistake(file, line, column, f"not UTF-8: byte 0x{data[error.start]:02x}"))
        return None

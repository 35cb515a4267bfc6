"""Reads what Java's ObjectOutputStream has written, as far as Spark's checkpoints need it. Pure.

The grammar is that of the "Java Object Serialization Specification", chapter 6. Nothing of what is read is ever made or
called: an object becomes its class's name, its fields, and what its own `writeObject` has added.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from harness.errors import HarnessError

MAGIC = b"\xac\xed\x00\x05"
NULL, REFERENCE, CLASS_DESC, OBJECT, STRING, ARRAY, CLASS, BLOCK, END, RESET, LONG_BLOCK = range(0x70, 0x7B)
LONG_STRING, PROXY, ENUM = 0x7C, 0x7D, 0x7E
FIRST_HANDLE = 0x7E0000
WRITES, SERIALIZABLE, EXTERNALIZABLE, BLOCK_DATA = 1, 2, 4, 8
SIZES = {"B": ">b", "C": ">H", "D": ">d", "F": ">f", "I": ">i", "J": ">q", "S": ">h", "Z": ">?"}
DEEPEST = 150
"""How deep objects may be nested: Python's own limit is near that of the calls that this takes."""


class NoJavaStreamError(HarnessError):
    """The bytes are none that can be read."""


@dataclass(eq=False)
class Described:
    """A class as the stream describes it, its fields as (type, name)."""

    name: str
    flags: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)
    parent: Described | None = None

    def line(self) -> list[Described]:
        """Return its ancestors and itself, the eldest first."""
        return [*(self.parent.line() if self.parent else []), self]


@dataclass(eq=False)
class JavaObject:
    """An object: its fields by their names, those of ancestors too, and what its classes wrote besides, in order:
    objects, and the bytes of blocks."""

    name: str
    fields: dict[str, Any] = field(default_factory=dict)
    more: list[Any] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        """Return a field; Scala calls a private one `package$Class$$name`."""
        if name in self.fields:
            return self.fields[name]
        for mangled, value in self.fields.items():
            if mangled.endswith(f"$${name}"):
                return value
        raise NoJavaStreamError(f"asked for the field {name} of {self.name}; it has {sorted(self.fields)}")


def read(data: bytes) -> Any:
    """Return the first object of a stream: a `JavaObject`, a str, a list for an array (bytes for one of bytes), None.
    Raises NoJavaStreamError."""
    if not data.startswith(MAGIC):
        raise NoJavaStreamError(f"asked for a stream of Java objects; it begins with {data[:4].hex() or 'nothing'}")
    try:
        return _Reader(data).content()
    except (struct.error, LookupError, TypeError, ValueError, AttributeError, RecursionError) as failure:
        raise NoJavaStreamError(f"a stream of Java objects breaks off, or has another form: {failure!r}") from failure


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, len(MAGIC)
        self._handles: list[Any] = []
        self._depth = 0

    def _take(self, count: int) -> bytes:
        if count < 0:  # it would go back, and read the same for ever
            raise IndexError(f"{count} bytes at {self._at}")
        found = self._data[self._at : self._at + count]
        if len(found) < count:
            raise IndexError(f"{count} bytes at {self._at}")
        self._at += count
        return found

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _text(self, form: str = ">H") -> str:
        return self._take(self._number(form)).decode("utf-8", "replace")

    def _kept(self, thing: Any) -> Any:
        self._handles.append(thing)
        return thing

    def content(self) -> Any:
        """Return the next object, or block of bytes; `END` itself where a class's own writing ends."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise RecursionError("objects lie too deep in one another")
        try:
            return self._content(self._number(">B"))
        finally:
            self._depth -= 1

    def _content(self, tag: int) -> Any:
        if tag == NULL:
            return None
        if tag == END:
            return END
        if tag == REFERENCE:
            handle = self._number(">I") - FIRST_HANDLE
            if handle < 0:
                raise IndexError(f"a reference to {handle} at {self._at}")
            return self._handles[handle]
        if tag == RESET:
            self._handles.clear()
            return self._content(self._number(">B"))
        if tag in (BLOCK, LONG_BLOCK):
            return self._take(self._number(">B" if tag == BLOCK else ">i"))
        if tag in (STRING, LONG_STRING):
            return self._kept(self._text(">H" if tag == STRING else ">q"))
        made = {OBJECT: self._object, ARRAY: self._array, ENUM: self._enum, CLASS: self._class}
        if tag in made:
            return made[tag]()
        if tag in (CLASS_DESC, PROXY):
            return self._described(tag)
        raise NoJavaStreamError(f"a stream of Java objects has the tag {tag:#x} at {self._at - 1}")

    def _desc(self) -> Described | None:
        found = self.content()
        if found is not None and not isinstance(found, Described):
            raise NoJavaStreamError(f"a stream of Java objects has no class at {self._at}")
        return found

    def _described(self, tag: int) -> Described:
        if tag == PROXY:
            made: Described = self._kept(Described("proxy", SERIALIZABLE))
            for _ in range(self._number(">i")):
                self._text()
        else:
            name = self._text()
            self._take(8)
            made = self._kept(Described(name))
            made.flags = self._number(">B")
            for _ in range(self._number(">H")):
                kind, called = chr(self._number(">B")), self._text()
                if kind in "[L":
                    self.content()
                made.fields.append((kind, called))
        self._added([])
        made.parent = self._desc()
        return made

    def _added(self, to: list[Any]) -> None:
        while (found := self.content()) is not END:
            to.append(found)

    def _object(self) -> JavaObject:
        described = self._desc()
        made: JavaObject = self._kept(JavaObject(described.name if described else ""))
        for each in described.line() if described else []:
            if each.flags & SERIALIZABLE:
                for kind, name in each.fields:
                    made.fields[name] = self._value(kind)
                if each.flags & WRITES:
                    self._added(made.more)
            elif each.flags & EXTERNALIZABLE:
                if not each.flags & BLOCK_DATA:
                    raise NoJavaStreamError(f"{each.name} writes itself in a form that says not where it ends")
                self._added(made.more)
        return made

    def _value(self, kind: str) -> Any:
        return self.content() if kind in "[L" else self._number(SIZES[kind])

    def _array(self) -> Any:
        described = self._desc()
        kind = described.name[1:2] if described else "L"
        made: list[Any] = []
        place = len(self._handles)
        self._kept(made)
        count = self._number(">i")
        if kind == "B":
            self._handles[place] = whole = self._take(count)
            return whole
        made.extend(self._value(kind) for _ in range(count))
        return made

    def _enum(self) -> Any:
        self._desc()
        place = len(self._handles)
        self._kept("")
        self._handles[place] = self.content()
        return self._handles[place]

    def _class(self) -> Any:
        return self._kept(self._desc())

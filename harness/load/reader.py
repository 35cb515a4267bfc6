"""One mapping of a file, read key by key against its shape: good values kept, each mistake with its place.

pydantic checks every key separately, so that one bad key hides no other. Nested shapes become further `Section`s. A
value that could not be read is absent from `values`, and is reported.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from harness.errors import Mistake
from harness.fields.hints import did_you_mean, seen
from harness.fields.shape import Shape
from harness.kinds import Refusal
from harness.load.yaml_tree import Node

RENAMED = {"expect": "verdict", "effect": "expected"}
"""Keys of versions before."""
QUOTE = "; a comma ends a value inside { }: put quotes around it"


@dataclass
class Section:
    """A mapping of the file `file`: `values` by key as the file writes it; `path` is how messages call it."""

    file: str
    node: Node
    path: str
    mistakes: list[Mistake]
    values: dict[str, Any] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """Return True if the file says anything of `key`, right or wrong."""
        return self.node.items is not None and (key in self.node.items or key in self.node.keys)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the good value of `key`, else `default`."""
        return self.values.get(key, default)

    def section(self, key: str) -> Section:
        """Return the nested section `key`; an empty one in the same place if the file has none."""
        return self.values.get(key) or Section(self.file, Node(self.node.line, self.node.column), "", self.mistakes)

    def sections(self, key: str) -> list[Section]:
        """Return the list of sections `key`; empty if the file has none."""
        return list(self.values.get(key, ()))

    def refuse(self, refusal: Refusal) -> None:
        """Why a kind says that something of it cannot be, unless its key was refused already."""
        if self.has(refusal.key) and refusal.key not in self.values:
            return
        mine = f"{joined(self.path, refusal.key)} {refusal.words}"
        words = refusal.words.replace("{path}", self.path) if refusal.whole else mine
        self.wrong(words, *([refusal.key] if self.has(refusal.key) else []))

    def wrong(self, words: str, *loc: str | int) -> None:
        """A mistake at the value `loc` (a key, perhaps an index), or at the mapping itself."""
        node = self.node.at(loc)
        self.mistakes.append(Mistake(self.file, node.line, node.column, words))

    def retract(self, words: str, *loc: str | int) -> None:
        """Remove a mistake at the value `loc`, if there is one."""
        node = self.node.at(loc)
        retracted = Mistake(self.file, node.line, node.column, words)
        self.mistakes[:] = [mistake for mistake in self.mistakes if mistake != retracted]


@cache
def adapter(shape: type[Shape], name: str) -> TypeAdapter[Any]:
    """Return what reads one field of a shape."""
    info = shape.model_fields[name]
    kind: Any = info.annotation
    return TypeAdapter(Annotated[kind, *info.metadata] if info.metadata else kind)


def nested(info: FieldInfo) -> tuple[type[Shape] | None, type | None]:
    """Return the shape that a field holds, if any, and whether it holds a `list` of them, or a `dict` of them by
    name."""
    kind = info.annotation
    many = get_origin(kind)
    inner = get_args(kind)[-1] if many in (list, dict) else kind
    return (inner if isinstance(inner, type) and issubclass(inner, Shape) else None), many


def read(node: Node, shape: type[Shape], *, file: str, path: str, mistakes: list[Mistake]) -> Section | None:
    """`node` as a section of this shape; None, with the mistake, if it is no mapping."""
    fields = {info.alias or name: name for name, info in shape.model_fields.items()}
    bare = bool(shape.short) and node.text is not None
    if bare:
        node = Node(node.line, node.column, items={shape.short: Node(node.line, node.column, node.text)})
    elif shape.hidden:
        del fields[shape.short]
    fields.pop(shape.others, None)
    section = Section(file, node, path, mistakes)
    if node.items is None:
        section.wrong(f"{path or 'the top level'} must be a mapping, not {seen(node.plain())}")
        return None
    names = {key: each for key, each in node.items.items() if shape.others and named(key, shape, fields)}
    if names:
        by_name(section, shape.others, Node(node.line, node.column, items=names), shape, path=path)
    for key, value in node.items.items():
        if key in fields:
            take(section, key, value, shape, path=path if bare else joined(path, key))
        elif key not in names:
            line, column = node.keys[key]
            words = f"unknown key {joined(path, seen(key)[1:-1])!r}{hint(key, fields, shape, path=path)}"
            mistakes.append(Mistake(file, line, column, words))
    for key, name in fields.items():
        if shape.model_fields[name].is_required() and not section.has(key):
            section.wrong(f"{joined(path, key)} is missing")
    return section


def named(key: str, shape: type[Shape], fields: Collection[str]) -> bool:
    """Return whether a key is a name, of a shape that has them: not a known key, nor one with a slip in it."""
    return key not in (*fields, shape.others) and (" " in key or not did_you_mean(key, fields))


def hint(key: str, fields: Collection[str], shape: type[Shape], *, path: str) -> str:
    """Return what may be meant by an unknown key, in words; empty if nothing is."""
    if RENAMED.get(key) in fields:
        return f": it is called {RENAMED[key]} now"
    if shape.others and key == shape.others:
        return f": what it names belongs under {path} itself"
    return did_you_mean(key, fields) or (QUOTE if " " in key or ")" in key else "")


def take(section: Section, key: str, node: Node, shape: type[Shape], *, path: str) -> None:
    """Read one known key of a section; `path` is how messages call it."""
    name = next(name for name, info in shape.model_fields.items() if key == (info.alias or name))
    inner, many = nested(shape.model_fields[name])
    if inner is not None and many is list:
        several(section, key, node, inner)
    elif inner is not None:
        part = read(node, inner, file=section.file, path=path, mistakes=section.mistakes)
        if part is not None:
            section.values[key] = part
    else:
        try:
            section.values[key] = adapter(shape, name).validate_python(node.plain())
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                refuse(section, node, path, detail)


def several(section: Section, key: str, node: Node, inner: type[Shape]) -> None:
    """Read a list of sections; one mapping alone counts as a list of one, if the key is `sink`."""
    path = joined(section.path, key)
    if node.items is not None and key == "sink":
        named = {path: node}
    elif node.elements is not None:
        named = {f"{path}[{index}]": element for index, element in enumerate(node.elements)}
    else:
        section.wrong(f"{path} must be a list, not {seen(node.plain())}", key)
        return
    parts = (read(n, inner, file=section.file, path=p, mistakes=section.mistakes) for p, n in named.items())
    section.values[key] = [part for part in parts if part is not None]


def by_name(section: Section, key: str, node: Node, shape: type[Shape], *, path: str) -> None:
    """Read sections whose keys are names, as the field `key` of a shape has them."""
    inner, _ = nested(shape.model_fields[key])
    assert inner is not None and node.items is not None
    parts = dict[str, Section | None]()
    for name, each in node.items.items():
        if each.items is None and each.text is None and each.elements is None:
            section.wrong(f"{joined(path, name)} says nothing{QUOTE if ' ' in name else ''}", name)
        else:
            parts[name] = read(each, inner, file=section.file, path=joined(path, name), mistakes=section.mistakes)
    section.values[key] = {name: part for name, part in parts.items() if part is not None}


def refuse(section: Section, node: Node, path: str, detail: ErrorDetails) -> None:
    """Turn one finding of pydantic into a mistake with its place and our words."""
    loc = detail["loc"]
    if loc and loc[-1] == "[key]":
        line, column = node.keys[str(loc[0])]
        words = f"{path}: the key {detail['msg']}"
    else:
        there = node.at(loc)
        line, column = there.line, there.column
        wanted = {"list_type": "must be a list", "dict_type": "must be a mapping"}.get(detail["type"])
        words = f"{path}{''.join(map(bracketed, loc))} " + (
            detail["msg"] if wanted is None else f"{wanted}, not {seen(detail['input'])}"
        )
    section.mistakes.append(Mistake(section.file, line, column, words))


def bracketed(part: int | str) -> str:
    """Return a place inside a value, as a message writes it."""
    return f"[{part}]" if isinstance(part, int) else f".{part}"


def joined(path: str, key: str) -> str:
    """`sink.key`, or `key` at the top."""
    return f"{path}.{key}" if path else key

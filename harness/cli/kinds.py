"""What `onceproof kinds` shows: every component, source, workload, sink, trigger and fault that there is here, for a
terminal or as the page `docs/kinds.md`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from harness.component import COMPONENTS, needs
from harness.faults import FAULTS
from harness.fields import values as v
from harness.kinds import About, Registry
from harness.load.models import annotated, meaning, own
from harness.resources import components
from harness.scenario import Input
from harness.sinks import SINKS
from harness.sources import SOURCES
from harness.stack import Means
from harness.stacks.registry import STACKS, names
from harness.stacks.supported import has
from harness.triggers import TRIGGERS
from harness.workloads import WORKLOADS

HEAD = """\
# What a scenario file may name
Printed by `onceproof kinds --markdown` from the registries; edit the kinds, not this page. `onceproof kinds` shows the
same, with the kinds of installed packages and of a repository's `conftest.py` ([extending.md](extending.md)).
[scenarios.md](scenarios.md) explains the file's other keys."""


class Section(NamedTuple):
    """One registry: where a file names its kinds, and which components one of them needs."""

    registry: Registry[Any]
    place: str
    needs: Callable[[Any], Collection[str]] = needs


SECTIONS = (
    Section(COMPONENTS, "by their placeholders, `setup`, sinks and sources"),
    Section(SOURCES, "under `input`", lambda kind: components(kind.requested_parts(Input()))),
    Section(WORKLOADS, "under `input`"),
    Section(SINKS, "under `sink`", lambda kind: [kind.component] if kind.component else ()),
    Section(TRIGGERS, "under `when`, one a step; some take `batch: N` and `query: NAME` beside it"),
    Section(FAULTS, "after `do`"),
    Section(STACKS, "after `--stack`"),
)


class Option(NamedTuple):
    """One key of a kind: what has to be there, what holds where it is left out (empty: it is needed), what it means."""

    key: str
    wanted: str
    default: str
    meaning: str


def lines() -> Iterator[str]:
    """For a terminal: one block a kind."""
    for number, section in enumerate(SECTIONS):
        yield from [""] * bool(number)
        yield f"{section.registry.noun}s: {section.place}"
        for kind in section.registry:
            about = kind.about
            yield from ("", f"  {about.name}", f"    {about.summary}", f"    e.g. {about.example}")
            for each in options(kind):
                left_out = f"{each.default} if left out" if each.default else "needed"
                yield f"    takes {each.key}, {each.wanted} ({left_out}){each.meaning and f': {each.meaning}'}"
            yield from (f"    {word} {text}" for word, text in facts(kind, section))


def markdown() -> Iterator[str]:
    """Yield the same as a page."""
    yield HEAD
    for section in SECTIONS:
        yield from ("", f"## {section.registry.noun.capitalize()}s", f"{section.place[:1].upper()}{section.place[1:]}.")
        for kind in section.registry:
            yield from ("", f"### {kind.about.name}", f"{kind.about.summary}: `{kind.about.example}`", "")
            if found := options(kind):
                yield from ("| option | what it takes | if it is left out | meaning |", "| --- | --- | --- | --- |")
                yield from ("| " + " | ".join(cell.replace("|", "\\|") for cell in _row(each)) + " |" for each in found)
                yield ""
            yield from (f"- {word} {text}" for word, text in facts(kind, section))


def _row(option: Option) -> tuple[str, ...]:
    return f"`{option.key}`", option.wanted, option.default or "it is needed", option.meaning


def facts(kind: Any, section: Section) -> Iterator[tuple[str, str]]:
    """Yield what it gives and needs, and which stacks have it; each with its word."""
    if section.registry is STACKS:
        yield "can", "; ".join(sorted(kind.means))
        return
    name, server = kind.about.name, section.registry is COMPONENTS
    if server:
        yield "gives", ", ".join([f"{{{name}.{each}}}" for each in kind.gives] + [f"{{{each}}}" for each in kind.bare])
    needed = [name] if server else section.needs(kind)
    if needed and not server:
        yield "needs the component", ", ".join(needed)
    means: frozenset[Means] = getattr(kind, "needs", frozenset())
    if means:
        yield "needs a stack that can", ", ".join(sorted(means))
    known = COMPONENTS.all()
    able = [
        stack
        for stack in names()
        if means <= STACKS[stack].means and all(has(stack, known.get(each)) for each in needed)
    ]
    yield "on", ", ".join(able) or "no stack"


def options(kind: Any) -> list[Option]:
    """Return the keys that only this kind has in a file; of a trigger its value, under its own name."""
    about = kind.about
    if not hasattr(about.options, "model_fields"):
        fields = about.beside.model_fields if about.beside else {}
        beside = [_option(name, info, about) for name, info in fields.items()]
        return [Option(about.name, _wanted(about.options), "", ""), *beside]
    return [_option(key, about.options.model_fields[name], about) for key, name in own(about).items()]


def _option(key: str, info: FieldInfo, about: About) -> Option:
    words = meaning(about, info)
    return Option(key, _wanted(annotated(info)), _default(info), f"{words[:1].lower()}{words[1:]}")


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return ""
    default = info.get_default(call_default_factory=True)
    value = "nothing" if default is None else v.written(annotated(info), default)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _wanted(annotation: Any) -> str:
    found = v.form(annotation)
    return found.wanted if found else str(getattr(annotation, "__name__", annotation))

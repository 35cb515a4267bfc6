"""A plugin of pytest that leaves out the tests of some components: `-p tests.not_of`, with their names in the
environment (`NOT_OF=kafka,eventhubs`).

A test is one of each component that it names: in its own text and parameters, or in the fixtures, helpers and constants
that it uses."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import pytest

VARIABLE = "NOT_OF"
OURS = ("tests", "test_")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out those that name one."""
    names = re.compile(rf"(?<![A-Za-z0-9])(?:{os.environ[VARIABLE].replace(',', '|')})(?![A-Za-z0-9])", re.IGNORECASE)
    gone = [item for item in items if any(map(names.search, texts(item)))]
    items[:] = [item for item in items if item not in gone]
    config.hook.pytest_deselected(items=gone)


def texts(item: pytest.Item) -> Iterator[str]:
    """All that a test says, by itself and by what it uses."""
    yield item.name
    yield repr(getattr(getattr(item, "callspec", None), "params", {}))
    seen: set[int] = set()
    yield from used(getattr(item, "function", None), seen)
    # Of a function of Python, the only items that are here.
    fixtures: Any = getattr(item, "_fixtureinfo", None)
    for found in fixtures.name2fixturedefs.values() if fixtures else ():
        for fixture in found:
            yield from used(fixture.func, seen)


def used(what: Any, seen: set[int]) -> Iterator[str]:
    """What a function, a class or a constant of the tests says, and those that it uses."""
    if id(what) in seen:
        return
    seen.add(id(what))
    if isinstance(what, str | bytes | tuple | list | dict | set | frozenset):
        yield repr(what)
    elif isinstance(what, FunctionType | type) and what.__module__.startswith(OURS):
        yield inspect.getsource(what)
        functions = [what] if isinstance(what, FunctionType) else [*filter(inspect.isfunction, vars(what).values())]
        for function in map(inspect.unwrap, functions):
            for name in mentioned(function.__code__):
                yield from used(function.__globals__.get(name), seen)


def mentioned(code: CodeType) -> Iterator[str]:
    """The names that it looks up, functions in it included."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from mentioned(each)

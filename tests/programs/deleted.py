"""Imports every module of copies of the tree, and loads their scenarios, each copy in a process of its own.

    python deleted.py < {COPY: [SCENARIO...]}       one line of JSON a copy: {"wrong": {...}, "named": {...}}

Processes are forks of this one, which has loaded the packages of others: those are most of what an import takes.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

OF_OTHERS = ("click", "deltalake", "docker", "duckdb", "jinja2", "kafka", "psycopg2", "pyarrow", "pydantic", "pyspark",
             "rich", "ruamel.yaml", "testcontainers.core.container")  # fmt: skip
"""Only to save time."""
PACKAGE = "harness"


def main() -> int:
    """Check each, and print what was found; 1 if a process of one died."""
    for name in OF_OTHERS:
        importlib.import_module(name)
    died = 0
    for copy, scenarios in json.load(sys.stdin).items():
        sys.stdout.flush()
        if (pid := os.fork()) == 0:
            checked(Path(copy), scenarios)
        died |= os.waitpid(pid, 0)[1]
    return int(died != 0)


def checked(copy: Path, scenarios: list[str]) -> None:
    """Print what is wrong with a copy, and what its scenarios name; ends this process."""
    sys.path.insert(0, str(copy))
    os.chdir(copy)
    wrong: dict[str, str] = dict(imported(copy))
    names: dict[str, Any] = {}
    if not wrong:
        from harness.load import load

        for path in scenarios:
            try:
                names[path] = named(load(Path(path)))
            except Exception as failure:
                wrong[path] = repr(failure)
    print(json.dumps({"wrong": wrong, "named": names}), flush=True)
    # Without what the parent has registered to be done at its end.
    os._exit(0)


def imported(copy: Path) -> Iterator[tuple[str, str]]:
    """The modules that cannot be imported, and why."""
    for module in pkgutil.walk_packages([str(copy / PACKAGE)], f"{PACKAGE}.", onerror=lambda name: None):
        if module.name.rpartition(".")[2] != "__main__":
            try:
                found = importlib.import_module(module.name)
            except Exception as failure:
                yield module.name, repr(failure)
            else:
                assert copy in Path(str(found.__file__)).parents, found


def named(scenario: Any) -> dict[str, list[str]]:
    """The kinds that a scenario names, those of the components that it needs among them, and the components' folders
    that they lie in."""
    from harness.component import COMPONENTS
    from harness.faults import FAULTS
    from harness.kinds import Registry
    from harness.sinks import SINKS
    from harness.sources import SOURCES
    from harness.stacks.needed_parts import component_names
    from harness.triggers import TRIGGERS

    kinds: list[tuple[Registry[Any], str]] = [(SOURCES, scenario.input.source)]
    kinds += [(SINKS, sink.kind) for sink in scenario.sinks]
    kinds += [each for step in scenario.schedule for each in ((TRIGGERS, step.when.kind), (FAULTS, step.do.kind))]
    kinds += [(COMPONENTS, name) for name in component_names(scenario)]
    modules = [registry.origin(name).split(".") for registry, name in kinds]
    folders = {words[2] for words in modules if words[:2] == [PACKAGE, "components"]}
    return {
        "kinds": sorted({f"{registry.origin(name)} {name}" for registry, name in kinds}),
        "folders": sorted(folders),
    }


if __name__ == "__main__":
    sys.exit(main())

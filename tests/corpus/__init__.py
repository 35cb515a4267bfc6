"""Run folders that fool a naive judge, each with its one right verdict and a twin that differs in one fact."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from tests.corpus.case import Adversary

# By what is there: where a component's folder is deleted, so are the cases that need it (`test_folders_alone.py`).
MODULES = tuple(importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))


def cases_of(*modules: ModuleType) -> tuple[Adversary, ...]:
    """The cases of these modules, in their order."""
    return tuple(each for module in modules for each in vars(module).values() if isinstance(each, Adversary))


EVERY = cases_of(*MODULES)
"""The corpus, and the guards: cases that the code of before it judged right as well."""
CASES = tuple(case for case in EVERY if not case.guard)

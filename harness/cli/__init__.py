"""The command `onceproof` (`python -m harness` is the same). It starts light: each verb imports what it needs itself.

Whatever is raised on purpose becomes one message on stderr and its exit code. Anything else is a fault of ours: one
line, the traceback in a file, exit 4. With ONCEPROOF_DEBUG set, tracebacks are shown.
"""

from __future__ import annotations

from harness.cli.commands import main

__all__ = ["main"]

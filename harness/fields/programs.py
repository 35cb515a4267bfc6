"""What is wrong with a program of the user's as it is written. Nothing of it is run."""

from __future__ import annotations

import platform
import warnings
from functools import lru_cache


@lru_cache(maxsize=256)
def no_python(text: bytes) -> str:
    """Why Python does not run a file that holds `text`, as words after its name; empty if nothing shows before it is
    run. An archive, and what is compiled already, can be run as well: neither is text.

    It is this Python that is asked, also of a program that an image with a newer one runs: which stack there will be,
    no scenario says."""
    if b"\0" in text:
        return ""
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "program", "exec", dont_inherit=True)
    except SyntaxError as wrong:
        line = f" (line {wrong.lineno})" if wrong.lineno else ""
        return f"which Python {platform.python_version()} cannot read: {wrong.msg}{line}"
    except (ValueError, RecursionError, MemoryError):
        return ""
    return ""

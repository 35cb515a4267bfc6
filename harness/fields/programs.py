"""What is wrong with a program of the user's as it is written. Nothing of it is run."""

from __future__ import annotations

import platform
import re
import warnings
from functools import lru_cache

CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.MULTILINE)
"""How a program declares its encoding, in its first two lines (PEP 263)."""


@lru_cache(maxsize=256)
def no_python(text: bytes) -> str:
    """Return why Python does not run a file that holds `text`, as words after its name; empty if nothing shows before
    it is run. An archive, and what is compiled already, can be run as well: neither is text.

    It is this Python that is asked, also of a program that an image with a newer one runs: which stack there will be,
    no scenario says."""
    if b"\0" in text:
        return ""
    if why := _undeclared(text):
        return f"which Python {platform.python_version()} cannot read: {why}"
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "program", "exec", dont_inherit=True)
    except SyntaxError as wrong:
        line = f" (line {wrong.lineno})" if wrong.lineno else ""
        return f"which Python {platform.python_version()} cannot read: {wrong.msg}{line}"
    except (ValueError, RecursionError, MemoryError):
        return ""
    return ""


def _undeclared(text: bytes) -> str:
    """Why it is no UTF-8 and declares no other encoding, in words; empty otherwise. `compile` passes over such bytes
    in a comment, where the interpreter that is given the file does not."""
    declared = CODING.search(b"\n".join(text.splitlines()[:2]))
    if declared and declared[1].lower() not in (b"utf-8", b"utf8"):
        return ""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as wrong:
        line = text.count(b"\n", 0, wrong.start) + 1
        cure = "save it as UTF-8, or declare its encoding, such as # -*- coding: latin-1 -*-"
        return f"byte 0x{text[wrong.start]:02x} is no UTF-8 (line {line}): {cure}"
    return ""

"""Where in its file a scenario says what was not met, and how a view of the repository names that file."""

from __future__ import annotations

import os
import re
from pathlib import Path

HEAD_BYTES = 1024 * 1024
VERDICT = re.compile(rb"^verdict[ \t]*:", re.MULTILINE)
NAMES = re.compile(rb"^name[ \t]*:", re.MULTILINE)


def line(file: str) -> int:
    """Return the line, from 1, of the file's top key `verdict`, else of `name`, else its first."""
    try:
        with Path(file).open("rb") as text:
            head = text.read(HEAD_BYTES)
    except (OSError, ValueError):
        return 1
    found = VERDICT.search(head) or NAMES.search(head)
    return 1 if found is None else head.count(b"\n", 0, found.start()) + 1


def in_repository(file: str) -> str:
    """Return the file as the repository names it: relative to GitLab's or GitHub's checkout, else to the current
    folder, with `/`. A file outside stays as it is."""
    root = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR") or Path.cwd()
    whole = Path(os.path.abspath(file))  # noqa: PTH100 - a link in the repository is named as it is there
    home = Path(os.path.abspath(root))  # noqa: PTH100
    return whole.relative_to(home).as_posix() if whole.is_relative_to(home) else Path(file).as_posix()

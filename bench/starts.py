"""Whether the pipelines that `onceproof new` writes are as their scenarios expect. Each sink and shape is written into
a new folder and run there, as a user would.

    PYTHONPATH=. .venv/bin/python bench/starts.py [WORD]     WORD: only those whose name holds it

The exit code is that of `onceproof run`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from harness.sinks.starts.write import scaffold, starts


def main(word: str = "") -> int:
    with tempfile.TemporaryDirectory() as name:
        for sink, start in starts().items():
            for shape in start.shapes:
                if word in f"{sink}_{shape}":
                    scaffold(f"{sink}_{shape}".replace("-", "_"), sink, shape, Path(name))
        command = [sys.executable, "-m", "harness", "run", "scenarios"]
        return subprocess.run(command, cwd=name, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

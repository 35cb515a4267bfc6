"""A warm run of this checkout against one of another checkout, turn by turn in one sitting, and against the script by
hand: seconds and CPU-seconds, medians, and ratios pair by pair.

    PYTHONPATH=. .venv/bin/python bench/pairs.py OTHER [--rounds 10] [--by-hand 10] [--scenario FILE]

OTHER is a checkout with its own `.venv`. Each has a stack that stays up. CPU-seconds are those of the whole machine, as
in `bench/scenarios.py`: let nothing else run beside it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.naive import naive
from bench.scenarios import Cost, Meter

SCENARIO = Path("scenarios/proving/upsert_before_offset_commit.yaml")
RUN_S = 600.0


def command(tree: Path, folder: Path, *words: str) -> None:
    """Run the command of that checkout, on its own stack. Raises SystemExit with what it says unless it ends with 0."""
    env = {**os.environ, "ONCEPROOF_SHARED_STACK": str(folder / "stack")}
    argv = [str(tree / ".venv" / "bin" / "onceproof"), *words]
    done = subprocess.run(argv, cwd=tree, env=env, capture_output=True, text=True, timeout=RUN_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(argv)} in {tree}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


@contextmanager
def stack(tree: Path, folder: Path) -> Iterator[None]:
    """A stack of that checkout, up."""
    folder.mkdir()
    try:
        command(tree, folder, "up", str(SCENARIO))
        yield
    finally:
        command(tree, folder, "down")


def printed(number: int, name: str, cost: Cost) -> Cost:
    """Print a round at once, so that what fails later loses none, and return its cost."""
    print(f"round {number}, {name}: {cost.seconds:.1f} s, {cost.cpu_seconds:.1f} CPU-s", flush=True)
    return cost


def table_row(name: str, costs: Sequence[Cost]) -> str:
    seconds, cpu = [each.seconds for each in costs], [each.cpu_seconds for each in costs]
    spread = f"{statistics.median(seconds):.1f} ({min(seconds):.1f} to {max(seconds):.1f})"
    return f"| {name} | {len(costs)} | {spread} | {statistics.median(cpu):.1f} ({min(cpu):.1f} to {max(cpu):.1f}) |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--scenario", type=Path, default=SCENARIO)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--by-hand", type=int, default=10, help="rounds of the script by hand")
    given = parser.parse_args()
    trees = {"this": Path.cwd(), "other": given.other.absolute()}
    costs: dict[str, list[Cost]] = {name: [] for name in (*trees, "by hand")}
    with tempfile.TemporaryDirectory(prefix="onceproof-pairs-") as scratch, ExitStack() as stacks:
        # The database of the script by hand runs as `nobody`.
        Path(scratch).chmod(0o711)
        folders = {name: Path(scratch) / name for name in trees}
        for name, tree in trees.items():
            stacks.enter_context(stack(tree, folders[name]))
        for number in range(given.rounds + 1):
            for name, tree in trees.items():
                meter = Meter()
                words = ["run", str(given.scenario), "--jobs", "1", "--keep", "none"]
                command(tree, folders[name], *words, "--reports", str(folders[name] / "reports"))
                # The first one loads files that the next ones find in memory.
                costs[name] += [printed(number, name, meter.cost())] if number else []
            if number <= given.by_hand:
                folder, meter = Path(scratch) / f"by-hand-{number}", Meter()
                folder.mkdir()
                if not naive(folder):
                    raise SystemExit("the script by hand says that a payment is not in the table once")
                costs["by hand"] += [printed(number, "by hand", meter.cost())] if number else []
    print("| what | rounds | seconds | CPU-seconds |\n| --- | --- | --- | --- |")
    print("\n".join(table_row(name, each) for name, each in costs.items() if each))
    pairs = list(zip(costs["this"], costs["other"], strict=True))
    for what in ("seconds", "cpu_seconds"):
        ratios = [getattr(this, what) / getattr(other, what) for this, other in pairs]
        spread = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"{what}, this to other, pair by pair: {spread}")


if __name__ == "__main__":
    main()

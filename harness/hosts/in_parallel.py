"""Several starts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait


def together(starts: Sequence[Callable[[], None]]) -> None:
    """Run all at once; raise the first failure without waiting for the others."""
    pool = ThreadPoolExecutor(max_workers=len(starts))
    try:
        done, _ = wait([pool.submit(start) for start in starts], return_when=FIRST_EXCEPTION)
        for each in done:
            each.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)

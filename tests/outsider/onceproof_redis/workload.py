"""The workload `orders`: orders of shops, as JSON, keyed by shop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from harness.kinds import About
from harness.workloads.base import Column, Generated, GeneratedKind, Record


class Orders:
    """Ids 1 to n."""

    columns = (
        Column("id", "VARCHAR", "json_extract_string(value, '$.id')"),
        Column("shop", "VARCHAR", "json_extract_string(value, '$.shop')"),
    )

    def __init__(self, count: int, *, keys: int, seed: int) -> None:
        self.count = count
        self._keys = keys
        self._seed = seed

    def records(self) -> Iterator[Record]:
        """All of them, from the first; each call begins at the first."""
        random = Random(f"orders {self._seed}")
        for seq in range(self.count):
            shop = f"shop-{random.randint(1, self._keys)}"
            yield Record(seq, shop.encode(), json.dumps({"id": str(seq + 1), "shop": shop}).encode())


class OrdersKind(GeneratedKind):
    """Drawn from the seed."""

    about = About(
        name="orders",
        summary="orders of shops as JSON, keyed by shop",
        example="{workload: orders, records: 600}",
        options=Generated,
    )

    def generate(self, count: int, *, keys: int, skew: float, seed: int) -> Orders:
        """Drawn from the seed."""
        return Orders(count, keys=keys, seed=seed)


KIND = OrdersKind()

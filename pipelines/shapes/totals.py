"""Running totals by account, with state of the program's own: `applyInPandasWithState`.

Executors import nothing of this folder, so the function is a closure. Driver and executors need pandas
(`pip install 'pandas>=2.2,<3'`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    import pandas

ROW = "id bigint, account string, total decimal(14, 2)"
STATE = "total decimal(14, 2)"


def running(payments: DataFrame) -> DataFrame:
    """Each payment with the total of its account up to it, in the order of the topic."""
    # PySpark 4.0.0 hands pyarrow 26 a float for an integer where an Arrow batch has more rows than accounts.
    payments.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    by_account = payments.groupBy("account")
    return by_account.applyInPandasWithState(_adding(), ROW, STATE, "update", "NoTimeout")


def _adding() -> Callable[..., Any]:
    def added(key: tuple[str], parts: Iterable[pandas.DataFrame], state: Any) -> Iterator[pandas.DataFrame]:
        import pandas

        # The order of the rows is that of the shuffle.
        rows = pandas.concat(parts).sort_values("off")
        totals, total = [], state.get[0] if state.exists else Decimal(0)
        for amount in rows["amount"]:
            total += amount
            totals.append(total)
        state.update((total,))
        yield pandas.DataFrame({"id": rows["id"].tolist(), "account": key[0], "total": totals})

    return added

"""What the pipelines into a search index share: arguments, the stream of payments as documents, and an index.

Only the driver imports this file: it writes a batch by itself, through one connection that it keeps.
"""

from __future__ import annotations

import argparse
import http.client
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

ANSWER_S = 30.0
CONFLICT = 409
PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz"
WRITTEN = {"timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
"""Without a format of its own Spark writes three decimals of a second."""
FAILURES = (OSError, http.client.HTTPException, RuntimeError)
"""What `Index.send` raises."""

Line = dict[str, Any]


def arguments(about: str | None) -> argparse.Namespace:
    """The command line: where Kafka and OpenSearch are, which topic and index, the checkpoint."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "search", "index", "checkpoint"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    return parser.parse_args()


def run(args: argparse.Namespace, batch: Callable[[DataFrame, int], None]) -> None:
    """The stream of payments, each with its `document` and its place in the topic, batch by batch, without end."""
    spark = SparkSession.builder.appName("search").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafka.fetch.max.wait.ms", 5)
        .load()
    )
    payment = f.from_json(records.value.cast("string"), PAYMENT)
    document = f.to_json(payment, WRITTEN).alias("document")
    payments = records.select(payment.alias("payment"), document, "partition", "offset").select(
        "payment.*", "document", "partition", "offset"
    )
    stream = payments.writeStream.foreachBatch(batch).option("checkpointLocation", args.checkpoint)
    stream.start().awaitTermination()


class Index:
    """One index, at `http://host:port`."""

    def __init__(self, url: str, name: str) -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port or 9200, timeout=ANSWER_S)
        self._path = f"/{name}/_bulk"

    def send(self, rows: Sequence[Row], action: Callable[[Row], Line]) -> None:
        """Write the document of each row in one request. A document that has a later version already, or the same one,
        counts as written. Raises one of FAILURES; then it is not known what was written."""
        if not rows:
            return
        lines = (f"{json.dumps({'index': action(row)})}\n{row['document']}\n" for row in rows)
        try:
            self._connection.request("POST", self._path, "".join(lines).encode(), {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            status, told = answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            # The next request opens a new connection.
            self._connection.close()
            raise
        if status >= 300:
            raise RuntimeError(f"OpenSearch answered with status {status}: {told[:200]!r}")
        refused = [item["index"] for item in json.loads(told)["items"] if not _written(item["index"])]
        if refused:
            raise RuntimeError(f"OpenSearch refused {len(refused)} of {len(rows)} documents: {refused[0]}")


def _written(item: Line) -> bool:
    return int(item["status"]) < 300 or int(item["status"]) == CONFLICT


def without_id(_: Row) -> Line:
    """OpenSearch makes an id of its own for each document that it is sent."""
    return {}


def by_id(row: Row) -> Line:
    """The payment's own id, and the place of its record as the version: an older one never takes the place of it."""
    return {"_id": str(row["id"]), "version": row["offset"] + 1, "version_type": "external"}


def halves(rows: Sequence[Row]) -> Iterable[Sequence[Row]]:
    """A batch in two requests."""
    return rows[: len(rows) // 2], rows[len(rows) // 2 :]

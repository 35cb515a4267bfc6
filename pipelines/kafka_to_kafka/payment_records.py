"""What the pipelines from Kafka to Kafka share: arguments, the stream of payments, and what is written of each.

Only the driver imports this file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from kafka import KafkaProducer
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

ANSWER_S = 30.0
PAYMENT = "id bigint, account string, amount decimal(12, 2), currency string, event_time timestamp_ntz"
SECURED = ("SECURITY_PROTOCOL", "SASL_MECHANISM", "SASL_JAAS_CONFIG", "SSL_TRUSTSTORE_TYPE", "SSL_TRUSTSTORE_LOCATION")
WRITTEN = {"timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"}
"""Without a format of its own Spark writes three decimals of a second."""


def arguments(about: str | None, *more: str, call_ms: bool = False) -> argparse.Namespace:
    """The command line: where Kafka is, which topics, how large a batch may be, and the named extras."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("bootstrap", "topic", "to", "checkpoint", *more):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--max-records", type=int, default=100, help="records in one batch at most")
    parser.add_argument("--late-log", type=int, metavar="MS", help="log offsets at most that often, beside the batches")
    parser.add_argument("--login", default="KAFKA", help="how the variables begin that have TLS and login, if any")
    if call_ms:
        parser.add_argument("--call-ms", type=int, default=0, help="how long the check of a record takes")
    return parser.parse_args()


def secured(prefix: str) -> dict[str, str]:
    """Spark's options for TLS and login, from variables: KAFKA_SASL_JAAS_CONFIG is kafka.sasl.jaas.config. No password
    is in the command line, and without the variables the broker asks for nothing."""
    named = ((name, os.environ.get(f"{prefix}_{name}")) for name in SECURED)
    return {f"kafka.{name.lower().replace('_', '.')}": value for name, value in named if value}


def stream(args: argparse.Namespace, *, poll_ms: int = 120_000) -> DataFrame:
    """Each payment as a record of the topic that is written: its account, itself as JSON, and where it came from
    (topic, partition, offset), also as partition and offset. A task waits `poll_ms` for the broker, by default as long
    as Spark does by itself."""
    spark = SparkSession.builder.appName("kafka to kafka").config("spark.sql.shuffle.partitions", "3").getOrCreate()
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", args.bootstrap)
        .option("subscribe", args.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", args.max_records)
        .option("kafkaConsumer.pollTimeoutMs", poll_ms)
        .option("kafka.fetch.max.wait.ms", 5)
        .options(**secured(args.login))
        .load()
    )
    payment = f.from_json(records.value.cast("string"), PAYMENT)
    # Two topics have equal partitions and offsets. A topic goes by its place in --topic, which no name of it changes.
    places = f.create_map(*(f.lit(each) for place in enumerate(args.topic.split(",")) for each in reversed(place)))
    origin = f.concat_ws(":", places[records.topic], "partition", "offset")
    header = f.struct(f.lit("origin").alias("key"), origin.cast("binary").alias("value"))
    key, value = payment.account.alias("key"), f.to_json(payment, WRITTEN).alias("value")
    return records.select("partition", "offset", key, value, f.array(header).alias("headers"))


def sent(producer: KafkaProducer, to: str, rows: Sequence[Row], half: Callable[[], None]) -> None:
    """Send them and wait for every answer; after the first half of them call `half`."""
    for part, after in ((rows[: len(rows) // 2], half), (rows[len(rows) // 2 :], None)):
        answers = [
            producer.send(
                to,
                key=row["key"].encode(),
                value=row["value"].encode(),
                headers=[(header["key"], bytes(header["value"])) for header in row["headers"]],
            )
            for row in part
        ]
        for answer in answers:
            answer.get(ANSWER_S)
        if after is not None:
            after()

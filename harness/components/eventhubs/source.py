"""The source `eventhubs`: a hub of the run's own, by the Kafka endpoint."""

from __future__ import annotations

from harness.components.kafka.source import KafkaTopic, Parted
from harness.kinds import About


class Hub(KafkaTopic):
    """Read by Spark's Kafka source, or by the pipeline itself."""

    label = "eventhubs"
    about = About(
        name="eventhubs",
        summary="a hub of the run's own, or several, read by Event Hubs' Kafka endpoint",
        example="{source: eventhubs, partitions: 3}",
        options=Parted,
    )


KIND = Hub()

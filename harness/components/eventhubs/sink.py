"""The sink `eventhubs`: a hub of the run's own, which the pipeline writes into by the Kafka endpoint."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness.components.kafka.sink import OfTopic, Read
from harness.fields import values as v
from harness.kinds import About


class Place(Read):
    """Which hub."""

    eventhubs: Annotated[v.Part, Field(description="a hub of the run's own: {eventhubs.NAME.topic}")]


class Hub(OfTopic):
    """Read by the harness itself, with another login."""

    about = About(
        name="eventhubs",
        summary="a hub of the run's own, by Event Hubs' Kafka endpoint",
        example='{eventhubs: payments, columns: "id bigint", expected: select id from ledger, key: [id]}',
        options=Place,
    )
    component = "eventhubs"


KIND = Hub()

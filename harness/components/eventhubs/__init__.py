"""Event Hubs, by its Kafka endpoint: TLS, and a connection string as the login (SASL PLAIN). Each run has its own hubs,
which are topics.

On `processes` this is a Kafka broker of ours with that login: no Event Hubs. It has the same login, and not the
service's limits, its throttling, or what it does otherwise than Kafka. On `external` it is a namespace by its
connection string.

process      the broker with that login
certificate  its certificate
connection   connection strings; a namespace that is there
source       a hub as the source of a run
sink         a hub that the pipeline writes into
fault        gives the program's login another key
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.component import Addressed, Followed, Started
from harness.fields.shape import Shape
from harness.kinds import About
from harness.resources import Resources

if TYPE_CHECKING:
    from harness.hosts.processes import ProcessHost


class EventHubs:
    """One namespace."""

    about = About(
        name="eventhubs",
        summary="Event Hubs' Kafka endpoint, here a Kafka broker of ours with TLS and that login; a run "
        "has its own hubs; the options of Spark for the login are in EVENTHUBS_SECURITY_PROTOCOL, "
        "EVENTHUBS_SASL_JAAS_CONFIG and their like",
        example='args: ["{eventhubs.bootstrap}", "{eventhubs.topic}"]',
        options=Shape,
    )
    gives = ("bootstrap", "topic", "topics", "pattern", "group")
    bare = ()
    by_placeholder = True

    def as_processes(self, host: ProcessHost) -> Started:
        """Kafka's broker from the jars, with that login."""
        from harness.components.eventhubs.process import EventHubs as Broker
        from harness.machine.class_data import Kind

        return Broker(host.session, host.java, host.jars, logs=host.logs, flags=host.flags[Kind.BROKER])

    def at(self, address: str) -> Addressed:
        """Return a connection string."""
        from harness.components.eventhubs.connection import EventHubsThere

        return EventHubsThere(address)

    def group(self, own: Resources) -> Followed:
        """Return the run's own group."""
        from harness.components.kafka.consumer_group import followed

        return followed(own.at)


KIND = EventHubs()

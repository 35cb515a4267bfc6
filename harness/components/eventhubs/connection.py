"""Connection strings of Event Hubs, and a namespace that is there already."""

from __future__ import annotations

from urllib.parse import urlsplit

from harness.components.kafka.access import Access
from harness.components.kafka.access.there import KafkaThere
from harness.errors import UsageError
from harness.hosts.ports import HOST

USER = "$ConnectionString"
"""The user of every login by connection string; the string is its password."""
PORT = 9093
MUST_BE = (
    "--at eventhubs=… must be the connection string of a namespace, "
    "Endpoint=sb://NAME.servicebus.windows.net/;SharedAccessKeyName=NAME;SharedAccessKey=KEY; what was given is none"
)
WHOLE = ("Endpoint", "SharedAccessKeyName", "SharedAccessKey")


def connection_string(host: str, name: str, key: str) -> str:
    """As the portal shows it."""
    return f"Endpoint=sb://{host}/;SharedAccessKeyName={name};SharedAccessKey={key}"


def login(string: str, bootstrap: str, *, ca: str = "") -> Access:
    """Return the Kafka endpoint by a connection string."""
    return Access(bootstrap=bootstrap, scheme="sasl_ssl", user=USER, password=string, ca=ca)


class EventHubsThere(KafkaThere):
    """A namespace that is not ours."""

    component = "eventhubs"
    bare = ()

    def __init__(self, address: str) -> None:
        host, name, key = parsed(address)
        self._at(login(address, f"{host}:{PORT}"))
        self.address, self.secrets = address, (key,)
        self.plain = f"Endpoint=sb://{host}/;SharedAccessKeyName={name}"


def parsed(string: str) -> tuple[str, str, str]:
    """Return host, name of the key and key of a connection string. Raises UsageError, which does not repeat it."""
    parts = dict(part.partition("=")[::2] for part in string.strip(";").split(";"))
    if "EntityPath" in parts:
        raise UsageError(f"{MUST_BE}: it names one hub, and each run makes its own hubs")
    try:
        endpoint = urlsplit(parts.get("Endpoint", ""))
        host, port = endpoint.hostname or "", endpoint.port
    except ValueError:
        raise UsageError(MUST_BE) from None
    if set(parts) != {*WHOLE} or not all(parts.values()) or endpoint.scheme != "sb":
        raise UsageError(MUST_BE)
    if not HOST.fullmatch(host) or port or endpoint.path.strip("/"):
        raise UsageError(MUST_BE)
    return host, parts["SharedAccessKeyName"], parts["SharedAccessKey"]

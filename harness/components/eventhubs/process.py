"""Kafka's broker as Event Hubs' Kafka endpoint: one listener with TLS. Its logins are the connection string and another
one for the harness. So the harness reads hubs whose key the program has no more."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.components.eventhubs.certificate import made
from harness.components.eventhubs.connection import USER, connection_string, login
from harness.components.kafka.access import Access, jaas
from harness.components.kafka.process import Kafka
from harness.components.kafka.topics import Topics
from harness.hosts.ports import LOOPBACK
from harness.machine.jars import Jars
from harness.machine.java import Java
from harness.resources import Resources
from harness.session.session import Session

OURS, KEY_NAME = "onceproof", "program"
LISTENER = "listener.name.sasl_ssl"
REFUSED = b"Invalid username or password"
"""What the broker's log says of a login that it has refused."""


class EventHubs(Kafka):
    """One broker."""

    name = component = "eventhubs"
    bare = ()
    protocol = "SASL_SSL"

    def __init__(self, session: Session, java: Java, jars: Jars, *, logs: Path, flags: Sequence[str] = ()) -> None:
        super().__init__(session, java, jars, logs=logs, flags=flags)
        self._keys = [base64.b64encode(secrets.token_bytes(32)).decode() for _ in range(2)]
        """The key that the program gets, and one that it does not know."""
        self._rotated, self._earlier = False, 0
        self._word, self._own = secrets.token_hex(16), secrets.token_hex(16)
        self.topics = Topics(
            Access(bootstrap=self.bootstrap, scheme="sasl_ssl", user=OURS, password=self._own, ca=self._certificate)
        )
        self.inside = self._given()
        self.secrets = (*self._keys, self._own, self._word)

    def provide(self, run_id: str, parts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Resources]:
        """A run is given the key that counts by then: the run before it may have had another one made to."""
        if self._rotated:
            self._keys.reverse()
            self._rotated = False
            self.inside = self._given()
        return super().provide(run_id, parts)

    def rotate(self, *, back: bool = False) -> None:
        """Let another key count from the next start on; or the one again that the program was given."""
        self._rotated = not back
        if not back:
            self._earlier = self._refusals()

    def refused(self) -> bool:
        """Return whether a login was refused since the key was last changed. That of the harness never is."""
        return self._refusals() > self._earlier

    def _refusals(self) -> int:
        return self.log.read_bytes().count(REFUSED) if self.log.exists() else 0

    def login(self) -> Mapping[str, str]:
        """TLS, and who may come in."""
        users = {OURS: self._own, USER: self._string(self._keys[int(self._rotated)])}
        line = jaas(
            "PLAIN", username=OURS, password=self._own, **{f"user_{name}": word for name, word in users.items()}
        )
        return {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            f"{LISTENER}.plain.sasl.jaas.config": line,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.folder / "broker.p12"),
            "ssl.keystore.password": self._word,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._certificate,
        }

    def describe(self) -> Mapping[str, Any]:
        """Whose broker it is, and what it asks for."""
        return {"stands_in": "a Kafka broker with Event Hubs' login", "protocol": self.protocol, **super().describe()}

    def wanted_port(self) -> int:
        """Any: the one that a user asks for is Kafka's."""
        return 0

    def _lay_out(self) -> None:
        super()._lay_out()
        made(self._session, self._java, self.folder, word=self._word, log=self.log)

    def _given(self) -> Access:
        """Return the login that the program is given."""
        return login(self._string(self._keys[0]), self.bootstrap, ca=self._certificate)

    @property
    def _certificate(self) -> str:
        return str(self.folder / "broker.pem")

    def _string(self, key: str) -> str:
        return connection_string(LOOPBACK, KEY_NAME, key)

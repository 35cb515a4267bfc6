"""How a broker is reached that asks for TLS, for a login, or for both; as an address, as the harness's own client takes
it, and as the variables of a pipeline.

`sasl_ssl://user:password@host:port?mechanism=PLAIN&ca=/path/to/ca.pem`; hosts may be several with commas. A broker that
asks for neither is `host:port`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from harness.errors import UsageError

SCHEMES = {"ssl": (True, False), "sasl_plaintext": (False, True), "sasl_ssl": (True, True)}
"""TLS and a login, by scheme."""
MECHANISMS = {"PLAIN": "plain.PlainLoginModule"}
MECHANISMS |= dict.fromkeys(("SCRAM-SHA-256", "SCRAM-SHA-512"), "scram.ScramLoginModule")
MODULE = "org.apache.kafka.common.security"
VARIABLE = "KAFKA_PASSWORD"
MUST_BE = (
    "--at kafka=… must be HOST:PORT, or several with commas, or sasl_ssl://user:password@host:port?ca=FILE "
    "(ssl, sasl_plaintext; mechanism=SCRAM-SHA-512); what was given is neither"
)


@dataclass(frozen=True, kw_only=True)
class Access:
    """One such broker. `ca` is a PEM file of the certificates that are trusted, also where the executors run; without
    one it is what each program trusts by itself."""

    bootstrap: str
    scheme: str
    user: str = ""
    password: str = field(default="", repr=False)
    mechanism: str = "PLAIN"
    ca: str = ""

    def __str__(self) -> str:
        return self.bootstrap

    @property
    def protocol(self) -> str:
        """As Kafka calls it."""
        return self.scheme.upper()

    @property
    def jaas(self) -> str:
        """The line of the login, with the password."""
        return jaas(self.mechanism, username=self.user, password=self.password)

    def address(self, *, plain: bool = False) -> str:
        """Return the whole address; `plain`: without the password."""
        user = quote(self.user, safe="")
        word = "" if plain or not self.password else f":{quote(self.password, safe='')}"
        query = [f"mechanism={self.mechanism}"] if self.user and self.mechanism != "PLAIN" else []
        query += [f"ca={quote(self.ca)}"] if self.ca else []
        return (
            f"{self.scheme}://{user}{word}{'@' if user else ''}{self.bootstrap}{'?' if query else ''}{'&'.join(query)}"
        )


Address = str | Access
"""`host:port` of a broker that asks for nothing, or one of the others."""


def jaas(mechanism: str, **options: str) -> str:
    """Return a line of JAAS with these options."""
    text = " ".join(f"{name}={_quoted(value)}" for name, value in options.items())
    return f"{MODULE}.{MECHANISMS[mechanism]} required {text};"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def client(address: Address) -> dict[str, Any]:
    """Return what a client of kafka-python is given."""
    if isinstance(address, str):
        return {"bootstrap_servers": address}
    tls, login = SCHEMES[address.scheme]
    given: dict[str, Any] = {"bootstrap_servers": address.bootstrap, "security_protocol": address.protocol}
    if tls and address.ca:
        given["ssl_cafile"] = address.ca
    if login:
        given |= {
            "sasl_mechanism": address.mechanism,
            "sasl_plain_username": address.user,
            "sasl_plain_password": address.password,
        }
    return given


def variables(address: Address, prefix: str) -> dict[str, str]:
    """Return what a pipeline's process gets: each is an option of Spark's source and sink (`KAFKA_SASL_MECHANISM` is
    `kafka.sasl.mechanism`), whatever the prefix."""
    if isinstance(address, str):
        return {}
    tls, login = SCHEMES[address.scheme]
    given = {"SECURITY_PROTOCOL": address.protocol}
    if tls and address.ca:
        given |= {"SSL_TRUSTSTORE_TYPE": "PEM", "SSL_TRUSTSTORE_LOCATION": address.ca}
    if login:
        given |= {"SASL_MECHANISM": address.mechanism, "SASL_JAAS_CONFIG": address.jaas}
    return {f"{prefix}_{name}": value for name, value in given.items()}


def parsed(address: str, environ: Mapping[str, str] | None = None) -> Address:
    """Return the broker of an address; a password that it leaves out is taken from `KAFKA_PASSWORD`. Raises UsageError,
    which does not repeat what was given: it may hold a password."""
    scheme, separator, rest = address.partition("://")
    if not separator:
        return address
    try:
        parts = urlsplit(f"//{rest}")  # a scheme of a URL has no underscore
        query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise UsageError(MUST_BE) from None
    login, _, hosts = parts.netloc.rpartition("@")
    if scheme not in SCHEMES or parts.path.strip("/") or parts.fragment or not hosts:
        raise UsageError(MUST_BE)
    # A password that holds a `?` is split there: what follows is no name that may be shown.
    if "@" in parts.query:
        raise UsageError(f"{MUST_BE}: a ? or @ in a user, a password or a path is written %3F or %40")
    if set(query) - {"mechanism", "ca"}:
        raise UsageError("--at kafka=…: what follows the ? can only be mechanism=… and ca=…; there is something else")
    user, colon, word = login.partition(":")
    if bool(user) is not SCHEMES[scheme][1]:
        raise UsageError(f"{MUST_BE}: {scheme} {'has no' if user else 'needs a'} user")
    password = unquote(word) if colon else (os.environ if environ is None else environ).get(VARIABLE, "")
    mechanism, ca = query.get("mechanism", ["PLAIN"])[0], query.get("ca", [""])[0]
    if mechanism not in MECHANISMS:
        raise UsageError(f"--at kafka=…: mechanism must be one of {', '.join(MECHANISMS)}")
    if ca and not Path(ca).is_file():
        raise UsageError(f"--at kafka=…: there is no file of certificates at {ca}")
    return Access(
        bootstrap=hosts, scheme=scheme, user=unquote(user), password=password if user else "",
        mechanism=mechanism, ca=str(Path(ca).absolute()) if ca else "",
    )  # fmt: skip

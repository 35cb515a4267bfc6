"""Addresses of a broker with TLS or a login: what they may be, what a program is given of them, and that no password is
shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.components.eventhubs.connection import EventHubsThere
from harness.components.kafka.access import Access, client, jaas, parsed, variables
from harness.components.kafka.access.there import KafkaThere
from harness.errors import UsageError

STRING = "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=program;SharedAccessKey=s3cretKey="


def with_login(address: str, **environ: str) -> Access:
    found = parsed(address, environ)
    assert isinstance(found, Access)
    return found


def test_a_broker_that_asks_for_nothing_is_its_address() -> None:
    assert parsed("a:1,b:2") == "a:1,b:2"
    assert client("a:1") == {"bootstrap_servers": "a:1"}
    assert variables("a:1", "KAFKA") == {}


def test_a_login_with_tls(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.touch()
    found = with_login(f"sasl_ssl://me:pa%40s%2Fs@a:1,b:2?mechanism=SCRAM-SHA-512&ca={ca}")
    assert client(found) == {
        "bootstrap_servers": "a:1,b:2", "security_protocol": "SASL_SSL", "ssl_cafile": str(ca),
        "sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "me", "sasl_plain_password": "pa@s/s",
    }  # fmt: skip
    assert variables(found, "KAFKA") == {
        "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
        "KAFKA_SSL_TRUSTSTORE_TYPE": "PEM",
        "KAFKA_SSL_TRUSTSTORE_LOCATION": str(ca),
        "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "KAFKA_SASL_JAAS_CONFIG": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="me" password="pa@s/s";',
    }
    assert parsed(found.address()) == found, "how a later process finds it again"


def test_tls_alone_and_a_login_alone() -> None:
    assert client(with_login("ssl://a:1")) == {"bootstrap_servers": "a:1", "security_protocol": "SSL"}
    plain = with_login("sasl_plaintext://me:word@a:1")
    assert set(variables(plain, "X")) == {"X_SECURITY_PROTOCOL", "X_SASL_MECHANISM", "X_SASL_JAAS_CONFIG"}


def test_a_password_from_the_environment() -> None:
    found = with_login("sasl_ssl://me@a:1", KAFKA_PASSWORD="word")
    assert found.password == "word"
    assert parsed(found.address(), {}) == found


def test_a_quote_in_a_password_ends_no_jaas_line() -> None:
    assert jaas("PLAIN", password='a"b\\c').endswith(r'required password="a\"b\\c";')


@pytest.mark.parametrize(
    "address",
    [
        "http://me:s3cret@a:1",
        "sasl_ssl://a:1",
        "ssl://me:s3cret@a:1",
        "sasl_ssl://me:s3cret@",
        "sasl_ssl://me:s3cret@a:1/topic",
        "sasl_ssl://me:s3cret@a:1?mechanism=GSSAPI",
        "sasl_ssl://me:s3cret@a:1?password=s3cret",
        "sasl_ssl://me:s3cret@a:1?ca=/no/such/file",
        "sasl_ssl://me:s3cret@a:1?ca",
        "sasl_ssl://me:pa?s3cret=word@a:1",
        "sasl_ssl://me:pa?ca=s3cret@a:1",
        "sasl_ssl://me:p@ss?ca=s3cret@a:1",
        "sasl_ssl://me@home:pa?s3cret=word",
    ],
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(UsageError, match="--at kafka=…") as refused:
        parsed(address, {})
    assert "s3cret" not in str(refused.value)


def test_no_password_is_shown() -> None:
    there = KafkaThere("sasl_ssl://me:s3cret@a:1")
    assert (there.plain, there.secrets) == ("sasl_ssl://me@a:1", ("s3cret",))
    assert "s3cret" not in repr(there.inside)
    hub = EventHubsThere(STRING)
    assert hub.plain == "Endpoint=sb://shop.servicebus.windows.net/;SharedAccessKeyName=program"
    assert "s3cretKey=" in hub.secrets


def test_a_connection_string_is_user_and_password() -> None:
    hub = EventHubsThere(STRING)
    assert isinstance(hub.inside, Access)
    assert (hub.inside.user, hub.inside.password) == ("$ConnectionString", STRING)
    assert str(hub.inside) == "shop.servicebus.windows.net:9093"
    assert set(variables(hub.inside, "EVENTHUBS")) == {
        "EVENTHUBS_SECURITY_PROTOCOL", "EVENTHUBS_SASL_MECHANISM", "EVENTHUBS_SASL_JAAS_CONFIG"
    }, "a service's certificate is one that everybody trusts"  # fmt: skip


@pytest.mark.parametrize(
    "string",
    [
        "",
        "shop.servicebus.windows.net:9093",
        f"{STRING};EntityPath=orders",
        STRING.replace("sb:", "http:"),
        STRING.replace("SharedAccessKey=s3cretKey=", ""),
        STRING.replace("windows.net/", "windows.net:99999999/"),
        STRING.replace("windows.net/", "windows.net/orders"),
    ],
)
def test_a_connection_string_that_is_none(string: str) -> None:
    with pytest.raises(UsageError, match="--at eventhubs=… must be the connection string of a namespace") as refused:
        EventHubsThere(string)
    assert "s3cret" not in str(refused.value)

"""An address with a login, as `--at` is given it: `scheme://user:password@host:port`."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from harness.errors import UsageError
from harness.hosts.ports import HOST


class Login(NamedTuple):
    """Its parts; no user and no password are empty."""

    scheme: str
    host: str
    port: int
    user: str
    password: str


def login(address: str, *, schemes: Collection[str], port: int, variable: str, must_be: str, alone: str) -> Login:
    """Return the parts of an address. `port` is the usual one, `variable` of the environment has the password that the
    address leaves out. Raises UsageError: `must_be` for what is no such address, `alone` with it where it names more
    than the server. The address is not repeated in it: it may hold a password."""
    try:
        parts = urlsplit(address)
        host, number = parts.hostname or "", parts.port or port
    except ValueError:
        raise UsageError(must_be) from None
    if parts.scheme not in schemes or not HOST.fullmatch(host):
        raise UsageError(must_be)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise UsageError(f"{must_be}: it names {alone}")
    password = os.environ.get(variable, "") if parts.password is None else unquote(parts.password)
    return Login(parts.scheme, host, number, unquote(parts.username or ""), password)

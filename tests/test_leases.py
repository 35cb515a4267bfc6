"""Addresses of a session's network: nobody is given one that somebody has, also one who is off the network."""

from __future__ import annotations

import pytest

from harness.errors import StackError
from harness.hosts.ports import Leases

SMALL = "10.9.8.0/29"
"""Six hosts, of which the first one is the gateway."""


def test_each_has_its_own_until_its_run_is_over() -> None:
    leases = Leases([SMALL])
    server = leases.take(None)
    first = [leases.take("one") for _ in range(2)]
    second = [leases.take("two") for _ in range(2)]
    assert len({server, *first, *second}) == 5
    assert "10.9.8.1" not in {server, *first, *second}
    leases.free("one")
    assert {leases.take("three"), leases.take("three")} == {*first}
    with pytest.raises(StackError, match=r"asked for an address in 10\.9\.8\.0/29; all 5 are taken"):
        leases.take("four")


def test_one_given_back_is_not_the_next() -> None:
    leases = Leases(["fd00::/64", "172.30.0.0/16"])
    before = leases.take("one")
    leases.free("one")
    assert (before, leases.take("two")) == ("172.30.0.2", "172.30.0.3")


def test_a_network_without_such_addresses_leaves_them_to_the_engine() -> None:
    assert Leases(["fd00::/64"]).take("one") is None
    assert Leases([]).take(None) is None

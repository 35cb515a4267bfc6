"""Ports: ours from the moment they are chosen, and never anybody else's."""

from __future__ import annotations

import socket

import pytest

from harness.errors import StackError
from harness.hosts.ports import LOOPBACK, Port


def test_a_reserved_port_is_given_to_nobody_else() -> None:
    ports = [Port() for _ in range(50)]
    assert len({port.number for port in ports}) == 50
    with socket.socket() as plain, pytest.raises(OSError):
        plain.bind((LOOPBACK, ports[0].number))
    for port in ports:
        port.release()


def test_a_server_of_ours_may_listen_on_it_again_and_again() -> None:
    port = Port()
    assert not port.open()
    for _ in range(3):
        with socket.create_server((LOOPBACK, port.number), reuse_port=False):
            assert port.open()
        assert not port.open()
    port.release()


def test_a_taken_port_is_one_clear_error() -> None:
    with socket.create_server((LOOPBACK, 0)) as server:
        taken = server.getsockname()[1]
        with pytest.raises(StackError, match=f"port {taken} was asked for Kafka and cannot be had"):
            Port(taken, what="Kafka")


def test_a_number_that_is_no_port_is_one_clear_error() -> None:
    with pytest.raises(StackError, match="port 70000"):
        Port(70_000)


def test_a_wanted_port_is_had() -> None:
    first = Port()
    number = first.number
    first.release()
    again = Port(number)
    assert (again.number, str(again)) == (number, f"{LOOPBACK}:{number}")
    again.release()

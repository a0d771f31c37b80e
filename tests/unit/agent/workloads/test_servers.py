"""Waiting for the servers of other machines."""

from __future__ import annotations

import socket
import threading

import pytest

from sojourn.agent.workloads import servers
from sojourn.agent.workloads.servers import await_servers


def _free() -> tuple[str, int]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return "127.0.0.1", int(found.getsockname()[1])


def _serve(address: tuple[str, int], heard: list[bytes]) -> None:
    with socket.create_server(address) as server:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"SSH-2.0-x\r\n")
            heard.append(connection.recv(100))


def test_servers_that_come_later_are_awaited_and_greeted() -> None:
    """One that hears nothing logs it, which would be in the log of the task."""
    addresses, heard = [_free(), _free()], list[bytes]()
    timers = [
        threading.Timer(delay, _serve, (address, heard))
        for address, delay in zip(addresses, (0.0, 0.3), strict=True)
    ]
    for timer in timers:
        timer.start()
    await_servers(addresses, threading.Event())
    for timer in timers:
        timer.join(10)
    assert heard == [b"SSH-2.0-Sojourn\r\n"] * 2


def test_whoever_is_stopped_does_not_wait() -> None:
    stopped = threading.Event()
    stopped.set()
    await_servers([_free()], stopped)


def test_one_that_never_comes_is_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_WITHIN", 0.2)
    await_servers([_free()], threading.Event())
